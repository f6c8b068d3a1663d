"""Named fields as multivectors, and back: which channel and which blades a field has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from cscnn.forecasting.task import Task


def pack(task: Task, fields: Mapping[str, Tensor]) -> Tensor:
    """See `Task.pack`."""
    if set(fields) != {f.name for f in task.fields}:
        raise ValueError(f"expected {[f.name for f in task.fields]}, got {sorted(fields)}")
    algebra, channels = task.algebra, task.frame_type.channels
    values = [fields[f.name] for f in task.fields]
    if task.time_axis is not None:
        values = [x.unsqueeze(1) for x in values]
    shape = values[0].shape[:-1]
    packed = values[0].new_zeros(*shape[:2], channels, *shape[2:], algebra.n_blades)
    used: Counter[int] = Counter()
    for field, x in zip(task.fields, values, strict=True):
        expected = (*shape, algebra.grade_sizes[field.grade])
        if x.shape != expected:
            raise ValueError(f"field {field.name} must have shape {expected}, got {tuple(x.shape)}")
        packed[:, :, used[field.grade], ..., algebra.grade_slice(field.grade)] = x
        used[field.grade] += 1
    return packed.flatten(1, 2)


def unpack(task: Task, x: Tensor) -> dict[str, Tensor]:
    """Inverse of `pack`."""
    frames = x.unflatten(1, (-1, task.frame_type.channels))
    used: Counter[int] = Counter()
    fields = {}
    for field in task.fields:
        part = task.algebra.grade(frames[:, :, used[field.grade]], field.grade)
        used[field.grade] += 1
        fields[field.name] = part.squeeze(1) if task.time_axis is not None else part
    return fields
