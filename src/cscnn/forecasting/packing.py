"""Named fields as multivectors, and back: which channel and which grades a field has."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from torch import Tensor

from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.clifford import SYMMETRIC
from cscnn.algebra.tensors import size_hint
from cscnn.data.fields import Quantity

if TYPE_CHECKING:
    from cscnn.forecasting.task import Task


def grades_of(quantity: Quantity, algebra: CliffordAlgebra) -> tuple[int, ...]:
    """Where a quantity is in a multivector: a symmetric tensor has its trace in grade 0."""
    if isinstance(quantity.grade, int):
        return (quantity.grade,)
    return (0, algebra.dim + 1)


def place_fields(fields: Sequence[Quantity], algebra: CliffordAlgebra) -> tuple[int, ...]:
    """The channel of each field: the first in which all of its grades are free.

    Example:
        >>> from cscnn.data import Field
        >>> fields = [Field("pressure", 0), Field("stress", "symmetric"), Field("velocity", 1)]
        >>> place_fields(fields, CliffordAlgebra((1, 1), symmetric=True))
        (0, 1, 0)
    """
    channels: list[set[int]] = [set() for _ in fields]
    places = []
    for field in fields:
        grades = {*grades_of(field, algebra)}
        places.append(next(i for i, taken in enumerate(channels) if not taken & grades))
        channels[places[-1]] |= grades
    return tuple(places)


def embed(quantity: Quantity, algebra: CliffordAlgebra, x: Tensor) -> Tensor:
    """Components (..., size) as multivectors (..., blades); an error names the quantity."""
    try:
        return algebra.embed(x, quantity.grade)
    except ValueError as error:
        raise ValueError(f"{quantity.name}: {error}") from error


def symmetric_part(quantity: Quantity, x: Tensor) -> Tensor:
    """(T + Tᵀ) / 2 of a symmetric tensor (..., dim²), such as noise; of others x itself."""
    if quantity.grade != SYMMETRIC:
        return x
    dim = math.isqrt(x.shape[-1])
    square = x.unflatten(-1, (dim, dim))
    return ((square + square.mT) / 2).flatten(-2)


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
    for field, channel, x in zip(task.fields, task.field_channels, values, strict=True):
        expected = (*shape, algebra.size(field.grade))
        if x.shape != expected:
            raise ValueError(
                f"field {field.name} must have shape {expected}, got {tuple(x.shape)}"
                + size_hint(field.grade, algebra.dim)
            )
        for grade, part in _parts(field, algebra, x).items():
            packed[:, :, channel, ..., algebra.grade_slice(grade)] = part
    return packed.flatten(1, 2)


def _parts(field: Quantity, algebra: CliffordAlgebra, x: Tensor) -> dict[int, Tensor]:
    """What goes into each grade."""
    if field.grade != SYMMETRIC:
        return dict.fromkeys(grades_of(field, algebra), x)
    embedded = embed(field, algebra, x)
    return {grade: algebra.grade(embedded, grade) for grade in grades_of(field, algebra)}


def unpack(task: Task, x: Tensor) -> dict[str, Tensor]:
    """Inverse of `pack`."""
    frames = x.unflatten(1, (-1, task.frame_type.channels))
    fields = {}
    for field, channel in zip(task.fields, task.field_channels, strict=True):
        part = task.algebra.grade(frames[:, :, channel], field.grade)
        fields[field.name] = part.squeeze(1) if task.time_axis is not None else part
    return fields
