"""Forecasts as data: what a model makes of the beginnings of trajectories."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from cscnn.algebra.blades import check_int
from cscnn.data import open_fields
from cscnn.data.files import write
from cscnn.data.source import FieldSource, Trajectory
from cscnn.data.windows import average_cells, check_task, coarse_task
from cscnn.evaluation.rollout import forecast
from cscnn.models import FieldModel
from cscnn.progress import Bar
from cscnn.training.run import Run


def predict(
    run: Run,
    file: Path,
    out: Path,
    *,
    steps: int,
    start: int = 0,
    device: torch.device | str = "cpu",
    quiet: bool = True,
) -> None:
    """Forecast every trajectory of a file and write the forecasts in the same format.

    Args:
        run: whose model to use.
        file: trajectories, in any format that is read.
        out: the file to write: frames ``start + frames_in`` and on, ``steps`` of them.
        steps: frames to forecast; there need not be a truth to compare with.
        start: first frame that the model is shown.
        device: where to compute.
        quiet: show no progress bar.
    """
    check_int("steps", steps, low=1)
    check_int("start", start, low=0)
    model, scaling = run.model(device), run.scaling()
    coarsen = int(run.config()["data"]["coarsen"])
    with open_fields(file) as source:
        header = source.header
        task = coarse_task(header, coarsen)
        try:
            check_task(model.task, header, coarsen)
        except ValueError as error:
            raise ValueError(f"{file} is not for the model of {run.path}: {error}") from error
        forecasts = header.replace(
            frames=steps,
            grid=tuple(n // coarsen for n in header.grid),
            spacing=task.grid_spacing,
            frame_spacing=task.frame_spacing,
            generator="cscnn predict",
            generator_version=1,
            parameters={"model": model.config["name"], "start": start, "data": header.parameters},
        )
        bar = Bar("trajectories", quiet=quiet)

        def trajectories() -> Iterator[Trajectory]:
            for number in bar.over("forecasting", range(len(source))):
                known = _beginning(model, source, number, start, coarsen)
                parts = []
                for _ in range(-(-steps // model.task.frames_out)):
                    inputs = {name: x.to(device) for name, x in known.items()}
                    new = {n: x.cpu() for n, x in forecast(model, inputs, scaling).items()}
                    parts.append(new)
                    known = {
                        name: torch.cat([x, new[name]], 1)[:, -model.task.frames_in :]
                        for name, x in known.items()
                    }
                yield {
                    name: torch.cat([part[name] for part in parts], 1)[0, :steps].numpy()
                    for name in known
                }

        write(out, forecasts, trajectories(), range(len(source)))


def _beginning(
    model: FieldModel, source: FieldSource, number: int, start: int, coarsen: int
) -> dict[str, torch.Tensor]:
    """The frames that the model is shown, field name -> (1, frames_in, *space, components)."""
    time = source.header.time_axis is not None
    stop = start + model.task.frames_in * (coarsen if time else 1)
    fields = {}
    for name, array in source.read(number, start, stop).items():
        x = torch.as_tensor(np.ascontiguousarray(array)).float()
        fields[name] = average_cells(x, coarsen, time=time)[None]
    return fields
