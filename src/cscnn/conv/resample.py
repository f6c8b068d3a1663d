"""Coarser and finer grids of the same box: means over cells, and linear interpolation.

The points of a grid are the centres of equal cells that fill a box. A coarser grid fills the same
box with fewer, larger cells. So both maps are symmetric about the centre of the box, whatever the
number of points, and they commute with rotations by 90 degrees and reflections of the box. They
commute with translations by whole coarse cells, which are translations of the fine grid if the
number of points is divisible by the factor.

Every component of a multivector is treated alike. A symmetry moves the points of the grid and
transforms the components at each point, and these two actions commute: a map that averages over
points with real weights, the same for all components, commutes with ρ(g) for every g in O(p, q).
What is left to ask for is that the weights have the symmetries of the grid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from cscnn._util.checks import check_int
from cscnn.algebra.grids import cell_means
from cscnn.conv.options import check_padding_modes, per_axis
from cscnn.conv.padding import pad_axis


def downsample(x: Tensor, factors: int | Sequence[int] = 2) -> Tensor:
    """Mean over cells of ``factors`` points: ceil(n / factor) cells of equal size along each axis.

    If a factor does not divide n, the cells are n / ceil(n / factor) points wide, and points on a
    face between two cells count for both, in proportion. The mean over the grid stays the same.

    Args:
        x: field (batch, channels, *grid, blades).
        factors: one for all axes or one per axis; 1 leaves an axis alone, as does one point.

    Example:
        >>> downsample(torch.tensor([1.0, 3.0, 5.0, 7.0]).reshape(1, 1, 4, 1)).flatten()
        tensor([2., 6.])
    """
    grid = tuple(x.shape[2:-1])
    factors = [check_int("factors", f, low=1) for f in per_axis("factors", factors, len(grid))]
    coarse = tuple(-(-n // f) for n, f in zip(grid, factors, strict=True))
    return _along_axes(x, coarse, _coarsened)


def upsample(x: Tensor, grid: Sequence[int], padding_mode: str | Sequence[str] = "zeros") -> Tensor:
    """Linear interpolation to a grid of the same box, with errors of second order in the spacing.

    Twice as many points are 3/4 of the next coarse point and 1/4 of the one after it.

    Args:
        x: field (batch, channels, *coarse, blades).
        grid: number of points of the result along each axis.
        padding_mode: what lies beyond the borders, as for `CliffordSteerableConv`; one for all axes
            or one per axis. Second order holds up to the borders where it continues the field:
            ``"circular"`` on a torus, ``"extrapolate"`` anywhere.

    Returns:
        (batch, channels, *grid, blades)

    Example:
        >>> upsample(torch.tensor([0.0, 4.0]).reshape(1, 1, 2, 1), [4], "replicate").flatten()
        tensor([0., 1., 3., 4.])
    """
    dim = x.dim() - 3
    if len(grid) != dim:
        raise ValueError(f"grid needs one size per axis, {dim} in all, got {tuple(grid)}")
    modes = check_padding_modes(padding_mode, dim)
    blades = x.shape[-1]
    return _along_axes(x, grid, lambda y, axis, n: _refined(y, axis, n, modes[axis - 2], blades))


def _along_axes(
    x: Tensor, sizes: Sequence[int], run: Callable[[Tensor, int, int], Tensor]
) -> Tensor:
    """Resize the axes of a field that change, one after the other; keeps its memory order."""
    y = x.movedim(-1, 2).flatten(1, 2)
    for axis, size in enumerate(sizes, start=2):
        if y.shape[axis] != size:
            y = run(y, axis, size)
    y = y.unflatten(1, (x.shape[1], x.shape[-1])).movedim(2, -1)
    return y.contiguous() if x.stride(-1) == 1 else y


def _coarsened(x: Tensor, axis: int, cells: int) -> Tensor:
    size = x.shape[axis]
    if size % cells == 0:
        return cell_means(x, size // cells, [axis])
    return _multiply(x, axis, mean_weights(size, cells, x))


def _refined(x: Tensor, axis: int, size: int, mode: str, blades: int) -> Tensor:
    cells = x.shape[axis]
    padded = pad_axis(x, axis, 1, mode, blades=blades)
    if size % cells:
        return _multiply(padded, axis, linear_weights(cells, size, x))
    factor, phases = size // cells, []
    for phase in range(factor):
        weight = (phase + 0.5) / factor + 0.5  # from the coarse point before
        start = int(weight)
        before, after = (padded.narrow(axis, start + i, cells) for i in range(2))
        phases.append(torch.lerp(before, after, weight - start))
    return torch.stack(phases, axis + 1).flatten(axis, axis + 1)


def _multiply(x: Tensor, axis: int, weights: Tensor) -> Tensor:
    """A matrix along an axis."""
    return (x.movedim(axis, -1) @ weights.T).movedim(-1, axis)


def mean_weights(size: int, cells: int, like: Tensor) -> Tensor:
    """Part of each point in the mean over each cell: (cells, size), from integers."""
    edges = torch.arange(size, device=like.device) * cells
    starts = (torch.arange(cells, device=like.device) * size)[:, None]
    overlaps = torch.minimum(edges + cells, starts + size) - torch.maximum(edges, starts)
    return overlaps.clamp(min=0).to(like.dtype) / size


def linear_weights(cells: int, size: int, like: Tensor) -> Tensor:
    """Hat functions of cells, padded by one on both sides: (size, cells + 2), from integers."""
    points = ((2 * torch.arange(size, device=like.device) + 1) * cells)[:, None]
    centres = (2 * torch.arange(-1, cells + 1, device=like.device) + 1) * size
    return (2 * size - (points - centres).abs()).clamp(min=0).to(like.dtype) / (2 * size)


class Downsample(nn.Module):
    """`downsample` as a module: means over cells, on ceil(n / factor) points along each axis.

    Args:
        factors: one for all axes or one per axis; 1 leaves an axis alone.

    Shape:
        (batch, channels, *grid, blades) -> (batch, channels, *coarse, blades)
    """

    def __init__(self, factors: int | Sequence[int] = 2):
        super().__init__()
        self.factors = factors

    def forward(self, x: Tensor) -> Tensor:
        return downsample(x, self.factors)

    def extra_repr(self) -> str:
        return f"factors={self.factors}"


class Upsample(nn.Module):
    """`upsample` as a module: linear interpolation, on factor · n points along each axis.

    Args:
        factors: one for all axes or one per axis; 1 leaves an axis alone.
        padding_mode: what lies beyond the borders.

    Shape:
        (batch, channels, *coarse, blades) -> (batch, channels, *grid, blades)
    """

    def __init__(
        self, factors: int | Sequence[int] = 2, padding_mode: str | Sequence[str] = "zeros"
    ):
        super().__init__()
        self.factors, self.padding_mode = factors, padding_mode

    def forward(self, x: Tensor, grid: Sequence[int] | None = None) -> Tensor:
        """Args: x: the field; grid: the sizes wanted, if they are not multiples."""
        coarse = x.shape[2:-1]
        if grid is None:
            factors = per_axis("factors", self.factors, len(coarse))
            grid = [
                check_int("factors", f, low=1) * n for f, n in zip(factors, coarse, strict=True)
            ]
        return upsample(x, grid, self.padding_mode)

    def extra_repr(self) -> str:
        return f"factors={self.factors}, padding_mode={self.padding_mode!r}"
