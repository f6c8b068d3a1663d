"""Forecasts of forecasts: the model is given what it predicted before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from cscnn.data import Scaling
from cscnn.models import FieldModel

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
    """

    prediction: dict[str, Tensor]
    target: dict[str, Tensor]
    stable: Tensor


@torch.no_grad()
def forecast(
    model: FieldModel,
    frames: Mapping[str, Tensor],
    scaling: Scaling | None = None,
    background: Tensor | None = None,
) -> dict[str, Tensor]:
    """One application of a model, from physical units to physical units.

    Args:
        model: the model.
        frames: field name -> (batch, frames_in, *space, components).
        scaling: the units of the model.
        background: see `FieldModel.forward`.

    Returns:
        field name -> (batch, frames_out, *space, components).
    """
    known = dict(frames) if scaling is None else scaling.apply(frames)
    dtype = next((p.dtype for p in model.parameters() if p.is_floating_point()), torch.float32)
    x = model.task.pack({name: f.to(dtype) for name, f in known.items()})
    predicted = model.task.unpack(model(x) if background is None else model(x, background))
    return predicted if scaling is None else scaling.restore(predicted)


@torch.no_grad()
def rollout(
    model: FieldModel,
    frames: Mapping[str, Tensor],
    scaling: Scaling | None = None,
    steps: int | None = None,
    bound: float = BOUND,
) -> Rollout:
    """Forecast from the first frames of trajectories as far as wanted.

    If frames are channels, predictions take the place of the oldest frames; if time is an axis of
    the grid, block follows block. Both is the same: the last ``frames_in`` frames are the input.

    Args:
        model: the model.
        frames: whole trajectories, field name -> (batch, frames, *space, components).
        scaling: the units of the model.
        steps: frames to predict; by default all that are there to compare with.
        bound: a trajectory is given up when a value is farther from the middle of the data than
            this times their range. The data are all trajectories here.
    """
    task = model.task
    there = min(x.shape[1] for x in frames.values()) - task.frames_in
    steps = there if steps is None else steps
    if not 1 <= steps <= there:
        raise ValueError(
            f"a rollout needs at least 1 step and {task.frames_in} frames to start from; the "
            f"trajectories of {there + task.frames_in} frames allow 1 to {there}, got {steps}"
        )
    known = {name: x[:, : task.frames_in] for name, x in frames.items()}
    limits = {name: _limits(x, bound) for name, x in frames.items()}
    parts: list[dict[str, Tensor]] = []
    alive = torch.ones(len(next(iter(known.values()))), dtype=torch.bool)
    stable: list[Tensor] = []  # for each frame, which trajectories are still alive
    while len(stable) < steps and (alive.any() or not stable):
        new = forecast(model, known, scaling)
        good = torch.stack([_inside(new[name], *limits[name]) for name in new]).all(0).cpu()
        for frame in range(task.frames_out):
            alive = alive & good[:, frame]
            stable.append(alive)
        parts.append(new)
        # what was given up goes on from zero: not a number is slow, and may spoil its neighbours
        keep = {name: _where(alive, x, 0.0) for name, x in new.items()}
        known = {
            name: torch.cat([x, keep[name].to(x)], 1)[:, -task.frames_in :]
            for name, x in known.items()
        }
    mask = torch.stack(stable[:steps], 1)
    lost = steps - mask.shape[1]
    mask = torch.nn.functional.pad(mask, (0, lost))
    prediction = {}
    for name, x in frames.items():
        made = torch.cat([part[name] for part in parts], 1)[:, :steps].to(x)
        made = torch.cat([made, made.new_zeros(len(made), lost, *made.shape[2:])], 1)
        prediction[name] = _where(mask, made, float("nan"))
    target = {name: x[:, task.frames_in :][:, :steps] for name, x in frames.items()}
    return Rollout(prediction, target, mask.sum(1))


def persistence(frames: Mapping[str, Tensor], steps: int) -> dict[str, Tensor]:
    """The forecast that nothing changes: the last of these frames, ``steps`` times."""
    return {name: x[:, -1:].expand(-1, steps, *(-1,) * (x.dim() - 2)) for name, x in frames.items()}


def _limits(x: Tensor, bound: float) -> tuple[float, float]:
    """Smallest and largest value that is not too far from the data."""
    low, high = float(x.min()), float(x.max())
    reach = bound * (high - low) or float("inf")  # nothing is known about a constant's range
    middle = (low + high) / 2
    return middle - reach, middle + reach


def _inside(x: Tensor, low: float, high: float) -> Tensor:
    """Frames (batch, frames) that are finite and within limits."""
    return (x.isfinite() & (x >= low) & (x <= high)).flatten(2).all(2)


def _where(mask: Tensor, x: Tensor, other: float) -> Tensor:
    """x where a mask over its first axes holds."""
    mask = mask.reshape(*mask.shape, *(1,) * (x.dim() - mask.dim())).to(x.device)
    return torch.where(mask, x, other)
