"""Differences along one axis as small matrices: a piece of the axis at a time, padding included.

A product with a matrix of some twenty rows takes less time than adding up shifted copies of a
field. Every padding mode is linear, so it is a factor of that matrix and moves no data. The adjoint
is the transposed matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from cscnn.conv.padding import pad_axis
from cscnn.kernels.differential import axis_weights

#: Longest axis whose padding is put into its matrix, which has size² entries.
LONGEST = 256


@dataclass(frozen=True)
class Axis:
    """All differences up to an order along one axis.

    Attributes:
        size: points of the field.
        radius: taps on either side of the centre.
        step: their distance.
        order: the highest order.
        padding, mode: how the axis is continued; axes longer than `LONGEST` have padding 0.
    """

    size: int
    radius: int
    step: float
    order: int
    padding: int
    mode: str

    @property
    def out(self) -> int:
        """Points of the derivatives."""
        return self.size + 2 * (self.padding - self.radius)


class Piece(NamedTuple):
    """A part of an axis: which points it needs, and the matrices from these to its own points.

    Attributes:
        nearby: the points that are needed, and perhaps others.
        chosen: those among them that are needed, if not all.
        matrices: (order + 1, points, columns), for derivatives of order 0, 1, ...
        start: with which column the points begin if order 0 is a cut-out; else None.
    """

    nearby: slice
    chosen: Tensor | None
    matrices: Tensor
    start: int | None


@lru_cache(maxsize=1024)
def piece(
    axis: Axis, first: int, last: int, adjoint: bool, dtype: torch.dtype, device: str
) -> Piece:
    """Matrices to the points first, ..., last - 1: of the derivatives or, adjoint, of the field."""
    matrices, used = (_padded_rows if axis.padding else _rows)(axis, first, last, adjoint)
    start = int(matrices[0, 0].argmax())
    unit = torch.eye(len(used), dtype=torch.float64, device="cpu")
    cut_out = torch.equal(unit[start : start + last - first], matrices[0])
    constants = matrices.to(dtype).to(device).contiguous()
    nearby = slice(int(used[0]), int(used[-1]) + 1)
    gaps = nearby.stop - nearby.start > len(used)
    chosen = (used - nearby.start).to(device) if gaps else None
    return Piece(nearby, chosen, constants, start if cut_out else None)


def _rows(axis: Axis, first: int, last: int, adjoint: bool) -> tuple[Tensor, Tensor]:
    """Matrices of a piece without padding, and the points that it needs."""
    reach = 2 * axis.radius
    if adjoint:
        used = _range(max(first - reach, 0), min(last, axis.out))
        return _band(axis, used, _range(first, last)).transpose(1, 2), used
    used = _range(first, last + reach)
    return _band(axis, _range(first, last), used), used


def _padded_rows(axis: Axis, first: int, last: int, adjoint: bool) -> tuple[Tensor, Tensor]:
    """The same with padding."""
    full = _padded(axis)
    rows = (full.transpose(1, 2) if adjoint else full)[:, first:last]
    used = rows.ne(0).any(0).any(0).nonzero().flatten()
    if len(used) == 0:  # points that are far outside, or that no derivative sees
        used = _range(0, 1)
    return rows[:, :, used], used


def _range(first: int, last: int) -> Tensor:
    return torch.arange(first, last, device="cpu")


def _band(axis: Axis, rows: Tensor, columns: Tensor) -> Tensor:
    """Differences without padding: (order + 1, rows, columns) in float64."""
    weights = torch.stack(
        [axis_weights(order, axis.radius, axis.step) for order in range(axis.order + 1)]
    )
    tap = columns[None] - rows[:, None]
    inside = (tap >= 0) & (tap <= 2 * axis.radius)
    return weights[:, tap.clamp(0, 2 * axis.radius)] * inside


@lru_cache(maxsize=64)
def _padded(axis: Axis) -> Tensor:
    """Differences of the padded axis: (order + 1, out, size) in float64."""
    unit = torch.eye(axis.size, dtype=torch.float64, device="cpu")
    padding = pad_axis(unit[None, None], 2, axis.padding, axis.mode)[0, 0]
    band = _band(axis, _range(0, axis.out), _range(0, len(padding)))
    return band @ padding
