"""Forecasts as data: what a forecaster makes of the beginnings of trajectories."""

from __future__ import annotations

from pathlib import Path

import torch

from cscnn._util.checks import check_int
from cscnn._util.progress import Bar
from cscnn.data import Source, open_fields
from cscnn.data.edges import EdgeStore
from cscnn.data.files import write
from cscnn.data.paths import Paths
from cscnn.data.source import Trajectory
from cscnn.forecasting.fits import check_steps
from cscnn.forecasting.forecaster import Forecaster
from cscnn.forecasting.given import split
from cscnn.forecasting.neighbours import edge_store, points_of


def predict(
    forecaster: Forecaster,
    file: Paths,
    out: str | Path,
    *,
    steps: int,
    start: int = 0,
    stride: int | None = None,
    device: torch.device | str | None = None,
    quiet: bool = True,
) -> None:
    """Forecast every trajectory and write the forecasts into one file in the same format.

    What is given to the trajectories is read from the file, and written with the forecasts: a
    forcing has to be there for all frames that are forecast.

    Args:
        forecaster: in eval mode.
        file: trajectories, in any format that is read; or a folder, a pattern or a list of files.
        out: the file to write: frames ``start + frames_in + gap`` and on, ``steps`` of them, with
            the time of the first as ``Header.start_time``.
        steps: frames to forecast; there need not be a truth to compare with.
        start: first frame that the network is shown, of the frames as it sees them.
        stride: stored frames from one of these frames to the next; by default the smallest of
            training.
        device: move the forecaster there; by default it computes where it is.
        quiet: show no progress bar.
    """
    check_steps(forecaster.task, steps)
    check_int("start", start, low=0)
    forecaster = forecaster if device is None else forecaster.to(device)
    with open_fields(file) as fine:
        source = forecaster.view(fine, stride)
        task, seen = forecaster.task, source.header
        first = start + task.frames_in + task.gap
        header = seen.replace(
            frames=steps,
            start_time=seen.start_time + first * seen.frame_spacing,
            generator="cscnn predict",
            generator_version=1,
            parameters={
                "model": forecaster.name,
                "start": start,
                "data": seen.parameters,
            },
        )
        if Path(out).exists() and any(Path(out).samefile(part.path) for part in fine.files):
            raise ValueError(f"{out} is what the forecasts begin with: choose another output")
        numbers = Bar("trajectories", quiet=quiet).over("forecasting", range(len(source)))
        edges = edge_store(source, forecaster.task)
        forecasts = (
            {**fine.place(n), **_forecast(forecaster, source, n, start, steps, edges)}
            for n in numbers
        )
        write(Path(out), header, forecasts, range(len(source)))


@torch.no_grad()
def _forecast(
    forecaster: Forecaster,
    source: Source,
    number: int,
    start: int,
    steps: int,
    edges: EdgeStore | None,
) -> Trajectory:
    """One trajectory from frame ``start + frames_in + gap`` on, and what is given to it."""
    task, header = forecaster.task, source.header
    forced = [g.name for g in header.given if g.kind == "forcing"]
    stop = start + task.frames_in
    if forced:  # and of the frames that the last forecast has beyond the last one that is wanted
        stop += task.gap + -(-steps // task.frames_out) * task.frames_out
        if stop > header.frames:
            raise ValueError(
                f"the forcing {forced[0]} must be known for all frames that are forecast: {steps} "
                f"steps from frame {start} on need {stop} frames, the trajectories have "
                f"{header.frames}"
            )
    arrays = {
        n: torch.as_tensor(a).float()[None] for n, a in source.read(number, start, stop).items()
    }
    fields, given = split(task, arrays)
    frames = {name: x[:, : task.frames_in] for name, x in fields.items()}
    points = None if edges is None else points_of(edges, number)
    forecast = forecaster(frames, steps, given=given, points=points)
    later = {
        name: x[:, task.frames_in + task.gap :][:, :steps] if name in forced else x
        for name, x in given.items()
    }
    return {name: x[0].cpu().numpy() for name, x in {**forecast, **later}.items()}
