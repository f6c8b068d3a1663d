"""How far a model is from commuting with the symmetries of its task.

The paper's relative error |f(gx) - g f(x)| / |f(gx) + g f(x)|, in the scaled units of the model and
on the components that carry data: 0 if equivariant, about 1 if the two have nothing in common, more
if they are opposite. Backgrounds are transformed with the field. Inputs are fields (batch,
in_channels, *grid, blades).

Grids have borders, and no padding of borders commutes with shifts, turns or boosts. What is
compared lies inside, farther from the borders than the model sees (`reach`). If the model sees the
whole grid from everywhere, as Fourier neural operators and deep networks do, nothing is left, and
all is compared that the transformation itself leaves on the grid.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from cscnn.algebra import CliffordAlgebra
from cscnn.conv.symmetry import transform_on_grid
from cscnn.data import RandomSymmetry
from cscnn.evaluation.resample import fade, move, positions
from cscnn.kernels import SteerableKernel
from cscnn.kernels.orbits import time_axis
from cscnn.models import FieldModel, Task

ANGLES = (5.0, 15.0, 30.0, 45.0, 60.0, 75.0)  #: degrees
RAPIDITIES = (0.1, 0.25, 0.5, 0.75)
SMALLEST = 3.0  #: radius, in points, of a ball on which something can be compared


class Moved(NamedTuple):
    """Result of `motion_error`.

    Attributes:
        error: of the model.
        floor: of the interpolation alone, there and back, for input or output, whichever is larger.
            Errors of this size may be the interpolation's.
    """

    error: float
    floor: float


def relative_violation(a: Tensor, b: Tensor) -> float:
    """|a - b| / |a + b|; 0 if both vanish. What is not finite counts as infinite."""
    difference, total = float((a - b).norm()), float((a + b).norm())
    if not math.isfinite(difference + total):
        return math.inf
    return difference / total if total > 0 else (math.inf if difference else 0.0)


def in_float64(model: FieldModel) -> FieldModel:
    """A copy whose rounding is far below its violations."""
    return copy.deepcopy(model).to(torch.float64).eval()


def predict(model: FieldModel, x: Tensor, g: Tensor | None = None) -> Tensor:
    """What the model says about the components with data, its backgrounds transformed by g."""
    if model.task.backgrounds and g is not None:
        known = model.background.to(x)
        y = model(x, model.algebra.transform(g.to(known), known))
    else:
        y = model(x)
    return model.task.pack(model.task.unpack(y))


def reach(model: FieldModel, grid: Sequence[int], seed: int = 0) -> tuple[int, ...]:
    """How many points away, along each axis, the input matters for the output.

    Found from the gradient of the central output of a random input; parts below 1e-10 of its
    largest entry are rounding of spectral convolutions.
    """
    task, state = model.task, next(model.parameters(), model.background)
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(
        1, task.in_channels, *grid, 2**task.dim, generator=generator, dtype=torch.float64
    )
    x = x.to(state.device, state.dtype).requires_grad_()
    centre = tuple(n // 2 for n in grid)
    with torch.enable_grad():
        y = predict(model, x).flatten(2, -2)[:, :, np.ravel_multi_index(centre, tuple(grid))]
        if not y.requires_grad:
            return (0,) * task.dim
        (gradient,) = torch.autograd.grad(y.square().sum(), x)
    size = gradient.abs().amax((0, 1, -1))
    seen = (size > 1e-10 * size.max()).nonzero()
    result = []
    for axis, (n, mode) in enumerate(zip(grid, task.padding_mode, strict=True)):
        distance = (seen[:, axis] - centre[axis]).abs()
        if mode == "circular":
            distance = torch.minimum(distance, n - distance)
        result.append(int(distance.max()) if len(distance) else 0)
    return tuple(result)


def has_interior(task: Task, grid: Sequence[int], sight: Sequence[int]) -> bool:
    """Whether there are points from which a model sees no border, after a shift of a few points."""
    axes = zip(grid, task.padding_mode, sight, strict=True)
    return all(mode == "circular" or n // 8 + 1 + 2 * far < n for n, mode, far in axes)


@torch.no_grad()
def translation_error(
    model: FieldModel, x: Tensor, sight: Sequence[int] | None = None, seed: int = 0
) -> float:
    """Shift by a random number of points: cyclically along periodic axes, else a little.

    Args:
        model: the model, in float64 for exact results.
        x: inputs.
        sight: see `reach`, by which it is found by default.
    """
    grid, rng = tuple(x.shape[2:-1]), np.random.default_rng(seed)
    sight = reach(model, grid, seed) if sight is None else sight
    shifts, inside = [], []
    for n, mode, far in zip(grid, model.task.padding_mode, sight, strict=True):
        if mode == "circular":
            shifts.append(int(rng.integers(1, max(n, 2))))
            inside.append(slice(None))
            continue
        shift = int(rng.integers(1, max(2, n // 8 + 1)))
        shifts.append(shift)
        # what came in from the other end and what sees a border are left out
        start, stop = (shift + far, n - far) if shift + 2 * far < n else (shift, n)
        inside.append(slice(start, stop))
    axes = tuple(range(2, 2 + len(grid)))
    moved = predict(model, x.roll(shifts, axes))
    still = predict(model, x).roll(shifts, axes)
    part = (slice(None), slice(None), *inside)
    return relative_violation(moved[part], still[part])


@torch.no_grad()
def point_group_error(
    model: FieldModel, x: Tensor, group: str | None = None, limit: int = 12, seed: int = 0
) -> float:
    """The worst error of the quarter turns, flips and permutations of axes that keep the grid.

    Args:
        model: the model.
        x: inputs.
        group: by default that of the model's kernels, else O.
        limit: try at most so many elements, chosen at random.
    """
    elements = RandomSymmetry(model.task, group or symmetry_group(model)).elements(x.shape[2:-1])
    others = [g for g in elements if not torch.equal(g, torch.eye(len(g), dtype=g.dtype))]
    chosen = np.random.default_rng(seed).permutation(len(others))[:limit]
    still = predict(model, x)
    worst = 0.0
    for number in chosen:
        g = others[number].to(x)
        moved = predict(model, transform_on_grid(model.algebra, g, x), g)
        worst = max(worst, relative_violation(moved, transform_on_grid(model.algebra, g, still)))
    return worst


def symmetry_group(model: FieldModel) -> str:
    """The group of a model's steerable kernels; O if it has none."""
    groups = {m.group for m in model.modules() if isinstance(m, SteerableKernel)}
    return groups.pop() if len(groups) == 1 else "O"


@torch.no_grad()
def motion_error(
    model: FieldModel, x: Tensor, g: Tensor, sight: Sequence[int] | None = None
) -> Moved:
    """Error under any g in O(p, q), about the centre of the grid, by interpolation.

    The input is faded out on a ball that stays on the grid when it is moved, and outputs are
    compared on its inner half.

    Args:
        model: the model.
        x: inputs.
        g: (dim, dim).
        sight: see `reach`, by which it is found by default.
    """
    grid, spacing, algebra = tuple(x.shape[2:-1]), model.task.grid_spacing, model.algebra
    sight = reach(model, grid) if sight is None else sight
    half, step = _half(grid, spacing), max(spacing)
    radius = room(grid, spacing, g) * step
    if radius < SMALLEST * step:
        raise ValueError(
            f"grid {grid} is too small for this transformation: a ball of radius "
            f"{radius / step:.1f} points stays on it, at least {SMALLEST:g} are needed"
        )
    blind = half - max(far * h for far, h in zip(sight, spacing, strict=True))
    inner = min(radius / 2, blind) if blind > 2 * step else radius / 2
    mask = (positions(grid, spacing).norm(dim=-1) <= inner).to(x.device)
    x = x * fade(grid, spacing, radius).to(x)[..., None]
    y = predict(model, x)
    moved = predict(model, move(algebra, g, x, spacing), g)
    error = relative_violation(moved[:, :, mask], move(algebra, g, y, spacing)[:, :, mask])
    inverse = torch.linalg.inv(g.double())
    floor = 0.0
    for field in (x, y):
        back = move(algebra, inverse, move(algebra, g, field, spacing), spacing)
        floor = max(floor, relative_violation(back[:, :, mask], field[:, :, mask]))
    return Moved(error, floor)


def room(grid: Sequence[int], spacing: Sequence[float], g: Tensor) -> float:
    """Radius, in points, of the largest ball that stays on the grid when it is moved by g."""
    stretch = float(torch.linalg.matrix_norm(g.double(), 2))
    return (_half(grid, spacing) / max(spacing) - 1) / stretch


def _half(grid: Sequence[int], spacing: Sequence[float]) -> float:
    return min((n - 1) / 2 * h for n, h in zip(grid, spacing, strict=True))


def has_rotations(task: Task) -> bool:
    """Whether arbitrary angles can be tried: two or three dimensions of Euclidean space."""
    return len(set(task.metric)) == 1 and task.dim in (2, 3) and task.time_axis is None


def has_boosts(task: Task) -> bool:
    """Whether there is one time axis among axes of space."""
    signs = list(task.metric)
    return len(set(signs)) == 2 and min(signs.count(s) for s in set(signs)) == 1


def rotation(dim: int, degrees: float, seed: int = 0) -> Tensor:
    """By an angle, in the plane or about a random axis of space: (dim, dim)."""
    angle = math.radians(degrees)
    plane = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    if dim == 2:
        return torch.matrix_exp(angle * plane)
    if dim != 3:
        raise ValueError(f"rotations by an angle are for 2 and 3 dimensions, got {dim}")
    x, y, z = _unit(3, seed).tolist()
    cross = torch.tensor([[0, -z, y], [z, 0, -x], [-y, x, 0]], dtype=torch.float64)
    return torch.matrix_exp(angle * cross)


def boost(algebra: CliffordAlgebra, rapidity: float, seed: int = 0) -> Tensor:
    """By a rapidity, along a random direction of space: (dim, dim)."""
    time = time_axis(algebra)
    space = [axis for axis in range(algebra.dim) if axis != time]
    rate = torch.zeros(algebra.dim, algebra.dim, dtype=torch.float64)
    rate[time, space] = rate[space, time] = _unit(len(space), seed)
    return torch.matrix_exp(rapidity * rate)


def _unit(dim: int, seed: int) -> Tensor:
    if dim == 1:
        return torch.ones(1, dtype=torch.float64)
    vector = torch.as_tensor(np.random.default_rng(seed).standard_normal(dim))
    return vector / vector.norm()
