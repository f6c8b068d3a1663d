"""Walls: how a field of multivectors goes on behind one.

A mirror g with normal e_i maps a field f to ρ(g) f(g^-1 x). It negates the blades that contain e_i.
Two conditions make a wall a mirror, half a cell beyond the last points:

    "wall"       f = +ρ(g) f∘g: n⌟f = 0 on the wall. No flow passes it. Blades with the normal are
                 odd, the others even.
    "conductor"  f = -ρ(g) f∘g: n∧f = 0 on the wall, as for the electric vector (no tangential
                 part) and the magnetic bivector (no normal field) at a perfect conductor. Blades
                 with the normal are even, the others odd.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import torch
from torch import Tensor

from cscnn._util.checks import check_choice
from cscnn._util.torch_private import constant_for_compilers
from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.blades import ordered_blades
from cscnn.algebra.clifford import check_algebra
from cscnn.algebra.constants import constant
from cscnn.conv.options import per_axis

WALLS = ("wall", "conductor")


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
            signs = constant(_signs(algebra.dim, axis, mode), f.dtype, f.device)
            f = torch.cat([f, f.flip(place) * signs], place)
    return f


def is_odd(blade: tuple[int, ...], axis: int, mode: str) -> bool:
    """Whether the component of a blade is odd at the walls of an axis."""
    check_choice("a wall", mode, WALLS)
    return (axis in blade) == (mode == "wall")


@constant_for_compilers
@cache
def _signs(dim: int, axis: int, mode: str) -> tuple[int, ...]:
    """Of the mirror image of each blade."""
    return tuple(-1 if is_odd(blade, axis, mode) else 1 for blade in ordered_blades(dim))
