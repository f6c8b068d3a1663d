"""The matrices of Hodge projections: bases of each axis, and projections in them.

Derived in `cscnn.calculus.projections`. Made in float64, once for each size of the grid.
"""

from __future__ import annotations

import math
from functools import lru_cache, reduce
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from cscnn._util.torch_private import constant_for_compilers, dispatch_mode_active
from cscnn.algebra.blades import bit_mask, product_sign
from cscnn.conv.padding import WALLS, is_odd


class Plan(NamedTuple):
    """What a projection does on grids of every size, in numbers and texts.

    Attributes:
        parts: of the field that are kept: exact, coexact, harmonic.
        boundary: of each axis, ``"circular"`` or one of `WALLS`.
        spacing: of each axis.
        weights: of the neighbours at 1, 2, ... in the difference of each axis; none for Fourier
            series.
        staggered: whether the difference of each axis averages along the others.
        blades: that are projected, as tuples of axes.
        axes: those of ∇.
    """

    parts: tuple[str, ...]
    boundary: tuple[str, ...]
    spacing: tuple[float, ...]
    weights: tuple[tuple[float, ...], ...]
    staggered: tuple[bool, ...]
    blades: tuple[tuple[int, ...], ...]
    axes: tuple[int, ...]


@constant_for_compilers
def tables(
    plan: tuple[Any, ...], sizes: tuple[int, ...], dtype: torch.dtype, device: torch.device
) -> tuple[Tensor | None, ...]:
    """The matrices of each axis (blades, points, rows), then the symbol (blades, blades, *rows).

    Rows are 1 for axes that are not of ∇, and their matrices None. The plan comes as a plain tuple,
    which the compiler knows as a constant.
    """
    make = _as_tensors if dispatch_mode_active() else _kept_tensors
    return make(Plan(*plan), sizes, dtype, device)


def _as_tensors(
    plan: Plan, sizes: tuple[int, ...], dtype: torch.dtype, device: torch.device
) -> tuple[Tensor | None, ...]:
    numbers = np.float64 if dtype == torch.float64 else np.float32
    with torch.inference_mode(False):
        return tuple(  # in memory order, as torch.export writes them
            None if array is None else torch.tensor(array.astype(numbers, "C"), device=device)
            for array in _arrays(plan, sizes)
        )


_kept_tensors = lru_cache(maxsize=16)(_as_tensors)


# --- in numpy -------------------------------------------------------------------------------------


class Basis(NamedTuple):
    """Orthonormal functions of an axis, and what ∂ makes of them: even -> s odd, odd -> -s even.

    Attributes:
        even, odd: (rows, points); at walls a row of zeros stands for what does not exist.
        angles: (rows,), per point, from 0 to π.
    """

    even: np.ndarray
    odd: np.ndarray
    angles: np.ndarray


def _arrays(plan: Plan, sizes: tuple[int, ...]) -> list[np.ndarray | None]:
    """`tables` in numpy."""
    dim = len(sizes)
    bases = {axis: _basis(sizes[axis], plan.boundary[axis] in WALLS) for axis in plan.axes}
    matrices: list[np.ndarray | None] = [None] * dim
    for axis, basis in bases.items():
        mode = plan.boundary[axis]
        odd = [is_odd(blade, axis, mode if mode in WALLS else "wall") for blade in plan.blades]
        matrices[axis] = np.stack([(basis.odd if o else basis.even).T for o in odd])
    vector = np.stack([_sigma(plan, bases, axis) for axis in plan.axes])
    square = (vector**2).sum(0)
    unit = vector / np.sqrt(np.where(square == 0, 1, square))
    exact = _wedge_contract(unit, plan)
    identity = np.eye(len(plan.blades)).reshape(*exact.shape[:2], *(1,) * dim)
    harmonic = identity * (square == 0)
    parts = {"exact": exact, "harmonic": harmonic, "coexact": identity - exact - harmonic}
    return [*matrices, sum((parts[name] for name in plan.parts), np.zeros_like(exact))]


def _basis(size: int, walls: bool) -> Basis:
    """Cosines and sines on the points of an axis."""
    points = np.arange(size)
    if walls:
        angles = math.pi / size * np.arange(size + 1)
        phases = angles[:, None] * (points + 0.5)
        even, odd = np.cos(phases), -np.sin(phases)
        even[-1], odd[0] = 0, 0
    else:
        count = np.arange(size)  # 0, then cosine and sine of 1, 2, ...
        angles = 2 * math.pi / size * ((count + 1) // 2)
        quarter = np.where((count > 0) & (count % 2 == 0), math.pi / 2, 0.0)
        phases = angles[:, None] * points - quarter[:, None]
        even, odd = np.cos(phases), -np.sin(phases)
        for row in {0, size - 1} if size % 2 == 0 else {0}:  # have no derivative on the grid
            odd[row] = even[row] = np.cos(phases[row])
    for rows in (even, odd):
        norm = np.linalg.norm(rows, axis=1, keepdims=True)
        rows /= np.where(norm == 0, 1, norm)
    return Basis(even, odd, angles)


def _sigma(plan: Plan, bases: dict[int, Basis], axis: int) -> np.ndarray:
    """What ∂ of an axis multiplies with, for all rows of all axes: (*rows)."""
    angles = bases[axis].angles
    own = angles
    if plan.weights[axis]:
        waves = (2 * w * np.sin(m * angles) for m, w in enumerate(plan.weights[axis], start=1))
        own = sum(waves, np.zeros_like(angles))
    own = np.where(np.isclose(angles, math.pi), 0.0, own / plan.spacing[axis])
    columns = [np.ones(1)] * len(plan.boundary)
    for other, basis in bases.items():
        mean = (1 + np.cos(basis.angles)) / 2  # of the weights (1, 2, 1) / 4
        columns[other] = mean if plan.staggered[axis] else np.ones_like(mean)
    columns[axis] = -own if plan.boundary[axis] == "conductor" else own
    return reduce(np.multiply.outer, columns)


def _wedge_contract(unit: np.ndarray, plan: Plan) -> np.ndarray:
    """The matrices of f -> u∧(u⌟f), (blades, blades, *rows), of vectors u (axes, *rows)."""
    blades = plan.blades
    number = {blade: i for i, blade in enumerate(blades)}
    result = np.zeros((len(blades), len(blades), *unit.shape[1:]))
    euclidean = (1,) * len(plan.boundary)  # signs that are all the same cancel
    for blade in blades:
        for j, taken in enumerate(plan.axes):
            if taken not in blade:
                continue
            rest = tuple(axis for axis in blade if axis != taken)
            down = product_sign(euclidean, 1 << taken, bit_mask(blade))
            for i, added in enumerate(plan.axes):
                if added not in rest:
                    up = product_sign(euclidean, 1 << added, bit_mask(rest))
                    target = number[tuple(sorted((*rest, added)))]
                    result[target, number[blade]] += up * down * unit[i] * unit[j]
    return result
