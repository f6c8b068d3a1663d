"""How far a forecaster is from commuting with the symmetries of its task.

The paper's relative error |f(gx) - g f(x)| / |f(gx) + g f(x)|, in the scaled units of the network
and on the components that carry data: 0 if equivariant, about 1 if the two have nothing in common,
more if they are opposite. Constants are transformed with the field. Inputs are fields (batch,
in_channels, *grid, blades), see `Forecaster.pack`.

Grids have borders, and no padding of borders commutes with translations, rotations or boosts. What
is compared lies inside, farther from the borders than the receptive field reaches. If that is the
entire grid, as for Fourier neural operators and deep networks, no such points are left, and all is
compared that the transformation itself leaves on the grid.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.grids import transform_on_grid
from cscnn.algebra.group import boost, common_group, rotation
from cscnn.forecasting.augment import task_symmetries
from cscnn.forecasting.evaluation.resample import fade, move, positions
from cscnn.forecasting.evaluation.results import MotionErrors
from cscnn.forecasting.forecaster import Forecaster
from cscnn.forecasting.receptive_field import receptive_field
from cscnn.forecasting.task import Task
from cscnn.kernels import SteerableKernel
from cscnn.nn import MVLinear

ANGLES = (5.0, 15.0, 30.0, 45.0, 60.0, 75.0)  #: degrees
RAPIDITIES = (0.1, 0.25, 0.5, 0.75)
SMALLEST = 3.0  #: radius, in points, of a ball on which something can be compared


class Violation(NamedTuple):
    """Result of `motion_error`.

    Attributes:
        error: of the forecaster.
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


def in_float64(forecaster: Forecaster) -> Forecaster:
    """A copy whose rounding is far below its violations."""
    return copy.deepcopy(forecaster).to(torch.float64).eval()


def transformed_constants(forecaster: Forecaster, g: Tensor) -> Tensor:
    """The constants of the task for an observer moved by g (dim, dim): (constants, blades)."""
    constants = forecaster.constants
    if not len(constants):
        return constants
    return forecaster.task.algebra.transform(g.to(constants), constants)


def has_interior(task: Task, grid: Sequence[int], radii: Sequence[int]) -> bool:
    """Whether there are points from which no border is seen, after a shift of a few points."""
    axes = zip(grid, task.padding_mode, radii, strict=True)
    return all(mode == "circular" or n // 8 + 1 + 2 * radius < n for n, mode, radius in axes)


# --- symmetries of the grid -----------------------------------------------------------------------


@torch.no_grad()
def translation_error(
    forecaster: Forecaster, x: Tensor, radii: Sequence[int] | None = None, seed: int = 0
) -> float:
    """Shift by a random number of points: cyclically along periodic axes, else a little.

    Args:
        forecaster: in float64 for exact results.
        x: inputs.
        radii: the receptive field; measured by default.
        seed: of the shifts.
    """
    grid, rng = tuple(x.shape[2:-1]), np.random.default_rng(seed)
    radii = receptive_field(forecaster, grid, seed) if radii is None else radii
    shifts, inside = [], []
    for n, mode, radius in zip(grid, forecaster.task.padding_mode, radii, strict=True):
        if mode == "circular":
            shifts.append(int(rng.integers(1, max(n, 2))))
            inside.append(slice(None))
            continue
        shift = int(rng.integers(1, max(2, n // 8 + 1)))
        shifts.append(shift)
        # what came in from the other end and what sees a border are left out
        start, stop = (shift + radius, n - radius) if shift + 2 * radius < n else (shift, n)
        inside.append(slice(start, stop))
    axes = tuple(range(2, 2 + len(grid)))
    extract = forecaster.task.output_type.extract
    shifted_first = extract(forecaster.predict(x.roll(shifts, axes)))
    shifted_last = extract(forecaster.predict(x)).roll(shifts, axes)
    interior = (slice(None), slice(None), *inside)
    return relative_violation(shifted_first[interior], shifted_last[interior])


@torch.no_grad()
def point_group_error(
    forecaster: Forecaster, x: Tensor, group: str | None = None, limit: int = 12, seed: int = 0
) -> float:
    """The largest error of the rotations and reflections that map the grid to itself.

    Args:
        forecaster: in float64 for exact results.
        x: inputs.
        group: by default that of the kernels, else O.
        limit: largest number of elements to try, chosen at random.
        seed: of the choice.
    """
    task, algebra = forecaster.task, forecaster.task.algebra
    _, *elements = task_symmetries(task, tuple(x.shape[2:-1]), group or symmetry_group(forecaster))
    chosen = np.random.default_rng(seed).permutation(len(elements))[:limit]
    y = forecaster.predict(x)
    extract = task.output_type.extract
    errors = [0.0]
    for number in chosen:
        g = elements[number].to(x)
        moved = forecaster.predict(
            transform_on_grid(algebra, g, x), transformed_constants(forecaster, g)
        )
        expected = transform_on_grid(algebra, g, y)
        errors.append(relative_violation(extract(moved), extract(expected)))
    return max(errors)


def symmetry_group(network: nn.Module) -> str:
    """What the groups of a network's kernels and linear layers have in common; O if it has none."""
    parts = (m for m in network.modules() if isinstance(m, SteerableKernel | MVLinear))
    return common_group({m.group for m in parts})


# --- rotations and boosts, by interpolation -------------------------------------------------------


@torch.no_grad()
def motion_error(
    forecaster: Forecaster, x: Tensor, g: Tensor, radii: Sequence[int] | None = None
) -> Violation:
    """Error under any g in O(p, q), about the centre of the grid, by interpolation.

    The input is faded out on a ball that stays on the grid when it is moved, and outputs are
    compared on its inner half.

    Args:
        forecaster: in float64.
        x: inputs.
        g: (dim, dim).
        radii: the receptive field; measured by default.
    """
    task, grid = forecaster.task, tuple(x.shape[2:-1])
    algebra, spacing = task.algebra, task.grid_spacing
    radii = receptive_field(forecaster, grid) if radii is None else radii
    step = max(spacing)
    radius = room(grid, spacing, g) * step
    if radius < SMALLEST * step:
        raise ValueError(
            f"grid {grid} is too small for this transformation: a ball of radius "
            f"{radius / step:.1f} points stays on it, at least {SMALLEST:g} are needed"
        )
    blind = _half(grid, spacing) - max(n * h for n, h in zip(radii, spacing, strict=True))
    compared = min(radius / 2, blind) if blind > 2 * step else radius / 2
    ball = (positions(grid, spacing).norm(dim=-1) <= compared).to(x.device)

    def violation(a: Tensor, b: Tensor) -> float:
        return relative_violation(a[:, :, ball], b[:, :, ball])

    extract = task.output_type.extract
    x = x * fade(grid, spacing, radius).to(x)[..., None]
    y = forecaster.predict(x)
    moved = forecaster.predict(move(algebra, g, x, spacing), transformed_constants(forecaster, g))
    error = violation(extract(moved), extract(move(algebra, g, y, spacing)))
    there_and_back = [
        move(algebra, torch.linalg.inv(g.double()), move(algebra, g, field, spacing), spacing)
        for field in (x, y)
    ]
    floor = max(violation(there_and_back[0], x), violation(extract(there_and_back[1]), extract(y)))
    return Violation(error, floor)


def motion_errors(
    forecaster: Forecaster,
    x: Tensor,
    motions: Mapping[float, Tensor],
    progress: Callable[[Sequence[float]], Iterable[float]] = lambda values: values,
) -> MotionErrors | None:
    """`motion_error` of those motions for which the grid has room; None if it has for none.

    Args:
        forecaster: in float64.
        x: inputs.
        motions: angle or rapidity -> (dim, dim).
        progress: wraps the sequence of angles or rapidities, for a progress bar.
    """
    grid, spacing = tuple(x.shape[2:-1]), forecaster.task.grid_spacing
    values = [v for v, g in motions.items() if room(grid, spacing, g) >= SMALLEST]
    if not values:
        return None
    radii = receptive_field(forecaster, grid)
    errors = [motion_error(forecaster, x, motions[value], radii) for value in progress(values)]
    return MotionErrors(values, [e.error for e in errors], [e.floor for e in errors])


def room(grid: Sequence[int], spacing: Sequence[float], g: Tensor) -> float:
    """Radius, in points, of the largest ball that stays on the grid when it is moved by g."""
    stretch = float(torch.linalg.matrix_norm(g.double(), 2))
    return (_half(grid, spacing) / max(spacing) - 1) / stretch


def _half(grid: Sequence[int], spacing: Sequence[float]) -> float:
    return min((n - 1) / 2 * h for n, h in zip(grid, spacing, strict=True))


def rotations(task: Task, seed: int = 0) -> dict[float, Tensor]:
    """By each of `ANGLES`, in the plane or about a random axis of space; none in spacetime."""
    if len(set(task.metric)) > 1 or task.dim not in (2, 3) or task.time_axis is not None:
        return {}
    axis = None if task.dim == 2 else random_direction(3, seed)
    return {angle: rotation(math.radians(angle), axis) for angle in ANGLES}


def boosts(task: Task, seed: int = 0) -> dict[float, Tensor]:
    """By each of `RAPIDITIES`, along a random direction; none unless there is one time axis."""
    signs = list(task.metric)
    if len(set(signs)) < 2 or min(signs.count(sign) for sign in set(signs)) > 1:
        return {}
    return {rapidity: random_boost(task.algebra, rapidity, seed) for rapidity in RAPIDITIES}


def random_boost(algebra: CliffordAlgebra, rapidity: float, seed: int = 0) -> Tensor:
    """The boost (dim, dim) by a rapidity along a random direction of space."""
    return boost(algebra, rapidity, random_direction(algebra.dim - 1, seed))


def random_direction(dim: int, seed: int = 0) -> list[float]:
    """A random unit vector; on a line the positive one."""
    if dim == 1:
        return [1.0]
    vector = np.random.default_rng(seed).standard_normal(dim)
    return list((vector / np.linalg.norm(vector)).tolist())
