"""How a grid is cut into overlapping tiles for spectral convolution.

Convolving by a discrete Fourier transform wraps around the ends of its interval. *Overlap-save*
makes that harmless: a tile of t points yields t - k + 1 outputs that no wrapped value has touched
(k is the kernel size); tiles overlap by k - 1 and only those outputs are kept.

An axis that is one tile can do better: a periodic axis wraps exactly as the transform does and
needs no margin, and with zeros outside half a kernel of zeros serves both ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple


@dataclass(frozen=True)
class AxisTiles:
    """Tiles along one axis: y[o] = sum over |v| ≤ half of K(v) x[o + shift + v].

    Attributes:
        size, out: number of input and output points.
        circular: whether x is periodic; otherwise it is zero outside.
        half: points of the kernel on either side of its centre.
        shift: input coordinate of the first output.
        tile: points of a tile, the length of its transform.
        step: outputs kept per tile, the distance between tiles.
        first: position in the tile of the first output that is kept.
        start: input coordinate at which the first tile starts.
        count: number of tiles.
    """

    size: int
    out: int
    circular: bool
    half: int
    shift: int
    tile: int
    step: int
    first: int
    start: int
    count: int

    @property
    def length(self) -> int:
        """Points from the start of the first tile to the end of the last."""
        return (self.count - 1) * self.step + self.tile

    @property
    def frequencies(self) -> int:
        """Non-negative frequencies of a real signal on the tile."""
        return self.tile // 2 + 1


@cache
def cut_axis(size: int, shift: int, circular: bool, half: int, count: int) -> AxisTiles:
    """Cut an axis into at most ``count`` tiles of equal length.

    Args:
        size: input points.
        shift: half the kernel minus the padding, at most half the kernel in absolute value; zero
            if circular.
        circular: periodic instead of zero outside.
        half: points of the kernel on either side of its centre.
        count: number of tiles wanted.
    """
    out = size if circular else size - 2 * shift
    if count > 1:
        step = math.ceil(out / count)
        tile, first, start, count = step + 2 * half, half, shift - half, math.ceil(out / step)
    elif circular:
        tile, step, first, start = size, size, 0, 0
    else:
        tile, step, first, start = size + half - shift, out, max(shift, 0), min(shift, 0)
    return AxisTiles(size, out, circular, half, shift, tile, step, first, start, count)


class Tiling(NamedTuple):
    """How a grid is cut: what a spectral convolution has to know beside field and kernel.

    Attributes:
        axes: the tiles along each axis.
        grades: number of blades of each grade.
        parity: whether the kernel commutes with v -> -v.
    """

    axes: tuple[AxisTiles, ...]
    grades: tuple[int, ...]
    parity: bool


def make_tiling(
    grid: Sequence[int],
    kernel: Sequence[int],
    shift: Sequence[int],
    circular: Sequence[bool],
    counts: Sequence[int],
    grades: Sequence[int],
    parity: bool,
) -> Tiling:
    """A grid cut into ``counts`` tiles along its axes; see `cut_axis`."""
    axes = zip(grid, shift, circular, kernel, counts, strict=True)
    return Tiling(
        tuple(cut_axis(n, s, c, k // 2, q) for n, s, c, k, q in axes), tuple(grades), parity
    )


class Borders(NamedTuple):
    """How spectral convolution pads: by itself zeros up to half the kernel, and periodic axes.

    Attributes:
        outside: padding that has to be added before.
        circular: whether an axis is periodic.
        shift: half the kernel minus the zeros that it adds itself.
    """

    outside: tuple[int, ...]
    circular: tuple[bool, ...]
    shift: tuple[int, ...]


def borders_for(
    kernel_size: tuple[int, ...], padding: tuple[int, ...], modes: tuple[str, ...]
) -> Borders:
    """The borders for these options of a convolution."""
    axes = []
    for k, p, mode in zip(kernel_size, padding, modes, strict=True):
        if mode == "circular" and p == k // 2:
            axes.append((0, True, 0))
        elif mode == "zeros" and p <= k // 2:
            axes.append((0, False, k // 2 - p))
        else:
            axes.append((p, False, k // 2))
    return Borders(*(tuple(column) for column in zip(*axes, strict=True)))
