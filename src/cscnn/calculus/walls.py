"""Walls: how a field of multivectors goes on behind one, see `cscnn.conv.padding`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.clifford import check_algebra
from cscnn.algebra.constants import constant
from cscnn.conv.options import per_axis
from cscnn.conv.padding import WALLS, mirror_signs


def mirror(f: Tensor, algebra: CliffordAlgebra, boundary: str | Sequence[str]) -> Tensor:
    """The field in front of walls and its mirror image behind them: one period.

    Twice the points along each axis with walls; the first half is f. Operators on a grid with walls
    are those of this periodic field.

    Args:
        f: (..., *grid, blades).
        algebra: the Clifford algebra, one axis of the grid for each of its dimensions.
        boundary: ``"wall"``, ``"conductor"``, or another one, which is let be; one for all axes or
            one per axis.

    Example:
        >>> line = CliffordAlgebra((1,))
        >>> f = torch.tensor([[1.0, 3.0], [2.0, 4.0]])  # 1 and 2 are scalars, 3 and 4 along e1
        >>> mirror(f, line, "wall").T
        tensor([[ 1.,  2.,  2.,  1.],
                [ 3.,  4., -4., -3.]])
    """
    check_algebra(algebra).check(f, "f")
    for axis, mode in enumerate(per_axis("boundary", boundary, algebra.dim)):
        if mode in WALLS:
            place = f.dim() - 1 - algebra.dim + axis
            signs = mirror_signs(algebra.dim, axis, mode, algebra.n_blades)
            f = torch.cat([f, f.flip(place) * constant(signs, f.dtype, f.device)], place)
    return f


def even_components(algebra: CliffordAlgebra, boundary: Mapping[int, str]) -> tuple[bool, ...]:
    """Whether walls let each component have a constant part; others than walls do not matter.

    Args:
        algebra: the Clifford algebra.
        boundary: axis -> boundary, as for `mirror`.
    """
    signs = [
        mirror_signs(algebra.dim, axis, mode, algebra.n_blades)
        for axis, mode in boundary.items()
        if mode in WALLS
    ]
    return tuple(all(s[i] > 0 for s in signs) for i in range(algebra.n_blades))
