"""Forecasts as data: what a forecaster makes of the beginnings of trajectories."""

from __future__ import annotations

from pathlib import Path

import torch

from cscnn._util.checks import check_int
from cscnn._util.progress import Bar
from cscnn.data import Source, open_fields
from cscnn.data.files import write
from cscnn.data.source import Trajectory
from cscnn.forecasting.forecaster import Forecaster


def predict(
    forecaster: Forecaster,
    file: str | Path,
    out: str | Path,
    *,
    steps: int,
    start: int = 0,
    device: torch.device | str | None = None,
    quiet: bool = True,
) -> None:
    """Forecast every trajectory of a file and write the forecasts in the same format.

    Args:
        forecaster: in eval mode.
        file: trajectories, in any format that is read.
        out: the file to write: frames ``start + frames_in`` and on, ``steps`` of them.
        steps: frames to forecast; there need not be a truth to compare with.
        start: first frame that the network is shown, of the frames as it sees them.
        device: move the forecaster there; by default it computes where it is.
        quiet: show no progress bar.
    """
    check_int("steps", steps, low=1)
    check_int("start", start, low=0)
    forecaster = forecaster if device is None else forecaster.to(device)
    with open_fields(file) as fine:
        source = forecaster.view(fine)
        header = source.header.replace(
            frames=steps,
            generator="cscnn predict",
            generator_version=1,
            parameters={
                "model": forecaster.name,
                "start": start,
                "data": source.header.parameters,
            },
        )
        if Path(out).exists() and Path(out).samefile(file):
            raise ValueError(f"{out} is what the forecasts begin with: choose another output")
        numbers = Bar("trajectories", quiet=quiet).over("forecasting", range(len(source)))
        forecasts = (_forecast(forecaster, source, number, start, steps) for number in numbers)
        write(Path(out), header, forecasts, range(len(source)))


@torch.no_grad()
def _forecast(
    forecaster: Forecaster, source: Source, number: int, start: int, steps: int
) -> Trajectory:
    """One trajectory from frame ``start + frames_in`` on."""
    arrays = source.read(number, start, start + forecaster.task.frames_in)
    frames = {name: torch.as_tensor(array).float()[None] for name, array in arrays.items()}
    return {name: x[0].cpu().numpy() for name, x in forecaster(frames, steps).items()}
