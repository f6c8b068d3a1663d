"""Grids: their symmetries, under which convolutions are equivariant, and means over cells."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor

from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.group import check_group, in_group


def grid_symmetries(
    algebra: CliffordAlgebra,
    grid: Sequence[int],
    spacing: Sequence[float] | None = None,
    group: str = "O",
    borders: Sequence[object] | None = None,
) -> Iterator[Tensor]:
    """Signed permutations of axes, (dim, dim), that preserve metric, grid, spacing and borders.

    Args:
        grid: points per axis.
        spacing: of each axis; by default the same.
        group: which of them.
        borders: what lies beyond the ends of each axis; by default the same.
    """
    check_group(algebra, group)
    same = (1.0,) * algebra.dim
    axes = list(zip(algebra.metric, grid, spacing or same, borders or same, strict=True))
    for order in itertools.permutations(range(algebra.dim)):
        if all(axes[i] == axes[j] for i, j in enumerate(order)):
            for signs in itertools.product((1.0, -1.0), repeat=algebra.dim):
                g = torch.zeros(algebra.dim, algebra.dim, dtype=torch.float64)
                for j, (i, sign) in enumerate(zip(order, signs, strict=True)):
                    g[i, j] = sign
                if in_group(algebra, g, group):
                    yield g


def transform_on_grid(algebra: CliffordAlgebra, g: Tensor, x: Tensor) -> Tensor:
    """[g.f](y) = ρ(g) f(g^-1 y) about the centre of the grid, for a signed permutation g.

    Args:
        g: (dim, dim), from `grid_symmetries`.
        x: field (batch, channels, *grid, blades).
    """
    return algebra.transform(g, move_grid(g, x, 2))


def move_grid(g: Tensor, x: Tensor, first: int) -> Tensor:
    """f(g^-1 y) about the centre of the grid, for values that do not change.

    Args:
        g: (dim, dim), from `grid_symmetries`.
        x: tensor whose axes ``first``, ..., ``first + dim - 1`` are the grid.
    """
    source = [int(row.abs().argmax()) for row in g]  # new axis i runs along old axis source[i]
    flips = [first + i for i, j in enumerate(source) if g[i, j] < 0]
    after = range(first + len(g), x.dim())
    return x.permute(*range(first), *(first + j for j in source), *after).flip(flips)


def cell_means(x: Tensor, size: int, axes: Iterable[int]) -> Tensor:
    """Means over cells of ``size`` points along each of some axes, whose lengths it must divide.

    Example:
        >>> cell_means(torch.tensor([[1.0, 3.0, 5.0, 7.0]]), 2, axes=[1])
        tensor([[2., 6.]])
    """
    for axis in axes:
        x = x.unflatten(axis, (-1, size)).mean(axis + 1)
    return x
