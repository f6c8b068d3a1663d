"""Frames within packed multivectors (batch, channels, *grid, blades), wherever they are.

Frames are channels, or slices along the time axis of the grid. All functions take both.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from cscnn.forecasting.packing import grades_of
from cscnn.forecasting.task import Task

FramesLike = Mapping[str, Tensor | np.ndarray]  #: what `as_tensors` takes


def frame_axis(task: Task) -> int:
    """Along which frames follow each other."""
    return 1 if task.time_axis is None else 2 + task.time_axis


def block_size(task: Task) -> int:
    """Entries along that axis that one forecast takes."""
    return task.output_type.channels if task.time_axis is None else task.frames_out


def as_tensors(what: str, fields: FramesLike) -> dict[str, Tensor]:
    """Named arrays as tensors, or an error that says what came instead.

    Args:
        what: they are, for the message.
        fields: name -> tensor or numpy array.
    """
    if not isinstance(fields, Mapping):
        raise TypeError(f"{what} must map names to tensors, got {type(fields).__name__}")
    tensors = {}
    for name, x in fields.items():
        if isinstance(x, np.ndarray) and x.dtype.kind in "fiub":
            x = torch.from_numpy(np.array(x))  # a copy: arrays may be read-only, or run backwards
        if not isinstance(x, Tensor):
            kind = f"an array of {x.dtype}" if isinstance(x, np.ndarray) else type(x).__name__
            raise TypeError(f"{what}: {name} must be a tensor or an array of numbers, got {kind}")
        tensors[name] = x
    return tensors


def recent(task: Task, name: str, x: Tensor) -> Tensor:
    """The frames that a forecast sees, of a field (batch, frames, *space, components)."""
    sizes = {f.name: task.algebra.size(f.grade) for f in task.fields}
    size = sizes.get(name)  # unknown names are told elsewhere
    if size is not None and x.dim() > 2 and x.shape[-1] != size:
        hint = ": a scalar needs x[..., None]" if size == 1 else ""
        raise ValueError(
            f"field {name} must be (batch, frames, *space, components) with {size} component(s) on "
            f"the last axis, got {tuple(x.shape)}{hint}"
        )
    if x.dim() < 4 or x.shape[1] < task.frames_in:
        raise ValueError(
            f"field {name} must be (batch, frames, *space, components) with at least "
            f"{task.frames_in} frames, got {tuple(x.shape)}"
        )
    return x[:, -task.frames_in :]


def newest(task: Task, y: Tensor) -> Tensor:
    """The new frames of an output: all, unless time is an axis of the grid."""
    axis, size = frame_axis(task), block_size(task)
    return y.narrow(axis, y.shape[axis] - size, size)


def block(task: Task, target: Tensor, number: int) -> Tensor:
    """What the forecast of a step shall be, of a target that serves several steps."""
    axis, size = frame_axis(task), block_size(task)
    if target.shape[axis] < (number + 1) * size:
        raise ValueError(
            f"step {number + 1} has no target: it ends after {target.shape[axis] // size} "
            f"forecasts of {task.frames_out} frames; cut windows with unroll={number + 1}"
        )
    return target.narrow(axis, number * size, size)


def append(task: Task, x: Tensor, new: Tensor) -> Tensor:
    """The next input: new frames come in, the oldest go."""
    axis = frame_axis(task)
    return torch.cat([x, new.to(x)], axis).narrow(axis, new.shape[axis], x.shape[axis])


def base(task: Task, x: Tensor) -> Tensor:
    """What a change is added to: the newest frame, or the input at the same point."""
    if task.time_axis is not None:
        return x
    return torch.cat([x[:, -task.frame_type.channels :]] * task.frames_out, 1)


def factors(task: Task, values: Mapping[str, float]) -> Tensor:
    """One number for each field, (channels of an output, *1, blades); zero without data."""
    algebra = task.algebra
    frame = torch.zeros(task.frame_type.channels, *(1,) * task.grid_axes, algebra.n_blades)
    for field, channel in zip(task.fields, task.field_channels, strict=True):
        for grade in grades_of(field, algebra):
            frame[channel, ..., algebra.grade_slice(grade)] = values[field.name]
    return torch.cat([frame] * (task.output_type.channels // len(frame)))
