"""Forecasts that are fed back, beside the truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from cscnn.forecasting.forecaster import Forecaster, Frames
from cscnn.forecasting.points import Points

#: A forecast has left the data if it is farther from their middle than this times their range.
BOUND = 10.0


@dataclass(frozen=True)
class Rollout:
    """An autoregressive forecast in physical units.

    Attributes:
        prediction: field name -> (batch, steps, *space, components). NaN from the frame on that is
            not finite or has left the data far behind.
        target: the truth, in the same form.
        stable: frames before that happens, (batch,); all steps if it does not.
        given: what is given to these trajectories, see `Forecaster.forward`.
        points: of fields on points.
    """

    prediction: dict[str, Tensor]
    target: dict[str, Tensor]
    stable: Tensor
    given: dict[str, Tensor] = field(default_factory=dict)
    points: Points | None = None


@torch.no_grad()
def rollout(
    forecaster: Forecaster,
    frames: Frames,
    steps: int | None = None,
    bound: float = BOUND,
    given: Frames | None = None,
    points: Points | None = None,
) -> Rollout:
    """Forecast from the first frames of trajectories as far as wanted.

    Args:
        forecaster: whose forecasts are fed back, see `Forecaster.roll_out`.
        frames: trajectories, field name -> (batch, frames, *space, components).
        steps: frames to predict; by default all that are there to compare with, or after a gap
            those of one forecast.
        bound: a trajectory is given up when a value is farther from the middle of the data than
            this times their range. The data are all trajectories here.
        given: what is given to the trajectories; a forcing in all of their frames.
        points: of fields on points.
    """
    task = forecaster.task
    start, first = task.frames_in, task.frames_in + task.gap
    length = min(x.shape[1] for x in frames.values())
    most = min(length - first, task.frames_out) if task.gap else length - first
    steps = most if steps is None else steps
    if not 1 <= steps <= most:
        raise ValueError(
            f"a rollout needs at least 1 step and {first} frames before it; the trajectories "
            f"of {length} frames allow 1 to {most}, got {steps}"
        )
    guard = _Guard(frames, bound)
    known = {name: x[:, :start] for name, x in frames.items()}
    predicted = forecaster.roll_out(known, steps, guard=guard, given=given, points=points)
    stable = torch.stack(guard.stable[:steps], 1)
    missing = steps - stable.shape[1]  # frames that were not computed, as no trajectory was left
    stable = torch.nn.functional.pad(stable, (0, missing))
    prediction = {}
    for name, x in frames.items():
        frame = predicted[name].to(x)
        frame = torch.cat([frame, frame.new_zeros(len(frame), missing, *frame.shape[2:])], 1)
        prediction[name] = _keep(stable, frame, torch.nan)
    target = {name: x[:, first:][:, :steps] for name, x in frames.items()}
    return Rollout(prediction, target, stable.sum(1), dict(given or {}), points)


def persistence(frames: Mapping[str, Tensor], steps: int) -> dict[str, Tensor]:
    """The persistence forecast: the last of these frames, ``steps`` times."""
    return {name: x[:, -1:].expand(-1, steps, *(-1,) * (x.dim() - 2)) for name, x in frames.items()}


class _Guard:
    """Gives up trajectories that leave the data, and ends the rollout when none is left.

    Attributes:
        stable: for each new frame, which trajectories have not been given up, (batch,).
    """

    def __init__(self, frames: Frames, bound: float):
        self.limits = {name: _limits(x, bound) for name, x in frames.items()}
        self.alive = torch.ones(len(next(iter(frames.values()))), dtype=torch.bool)
        self.stable: list[Tensor] = []

    def __call__(self, frames: dict[str, Tensor]) -> dict[str, Tensor] | None:
        inside = torch.stack([_inside(x, *self.limits[n]) for n, x in frames.items()]).all(0)
        for column in inside.cpu().unbind(1):
            self.alive = self.alive & column
            self.stable.append(self.alive)
        if not self.alive.any():
            return None
        # a lost trajectory goes on from zero: NaN is slow, and may spoil its neighbours
        return {name: _keep(self.alive, x, 0.0) for name, x in frames.items()}


def _limits(x: Tensor, bound: float) -> tuple[float, float]:
    """Smallest and largest value that is not too far from the data."""
    low, high = float(x.min()), float(x.max())
    distance = bound * (high - low) or float("inf")  # nothing is known about a constant's range
    middle = (low + high) / 2
    return middle - distance, middle + distance


def _inside(x: Tensor, low: float, high: float) -> Tensor:
    """Frames (batch, frames) that are finite and within limits."""
    return (x.isfinite() & (x >= low) & (x <= high)).flatten(2).all(2)


def _keep(mask: Tensor, x: Tensor, other: float) -> Tensor:
    """x where a mask over its first axes holds, else another number."""
    mask = mask.reshape(*mask.shape, *(1,) * (x.dim() - mask.dim())).to(x.device)
    return torch.where(mask, x, other)
