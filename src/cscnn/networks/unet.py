"""A Clifford-steerable U-Net."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from cscnn._util.checks import check_int
from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.grids import cell_means
from cscnn.networks.blocks import split_width
from cscnn.networks.entries import register
from cscnn.networks.steerable import SIZES, SteerableNetwork


@register("cs_unet", sizes=SIZES)
class CSUNet(SteerableNetwork):
    """An equivariant U-Net for large grids.

    Grids are halved by averaging cells of two points per axis and doubled by repeating them. Both
    treat the points of a cell alike, so they commute with all symmetries of an even grid, which
    striding (it keeps one point of each cell) does not.

    Args:
        algebra: the Clifford algebra; axis i of the grid carries basis vector e_{i+1}.
        c_in, c_out: channels.
        width: channels on the finest grid, or a pair: these, and those between the two
            convolutions of the finest blocks; doubled on each coarser grid.
        levels: how often the grid is halved; its sizes must be divisible by 2^levels.
        options: as for `CSResNet`.

    Shape:
        (batch, c_in, *grid, blades) -> (batch, c_out, *grid, blades)
    """

    def __init__(
        self,
        algebra: CliffordAlgebra,
        c_in: int,
        c_out: int,
        width: int | Sequence[int] = 8,
        levels: int = 2,
        **options: Any,
    ):
        super().__init__(algebra, c_in, c_out, **options)
        outer, within = split_width(width)
        self.levels = check_int("levels", levels, low=1)
        widths = [outer * 2**i for i in range(levels + 1)]
        block_widths = [within * 2**i for i in range(levels + 1)]
        self.embedding = self.embed(outer)
        self.down = nn.ModuleList(map(self.block, widths[:-1], block_widths[:-1]))
        self.widen = nn.ModuleList(self.conv(a, b, 1) for a, b in pairwise(widths))
        self.bottom = self.block(widths[-1], block_widths[-1])
        self.narrow = nn.ModuleList(self.conv(b, a, 1) for a, b in pairwise(widths))
        self.merge = nn.ModuleList(self.conv(2 * w, w, 1) for w in widths[:-1])
        self.up = nn.ModuleList(map(self.block, widths[:-1], block_widths[:-1]))
        self.output = self.project(outer)

    @property
    def grid_multiple(self) -> int:
        """Sizes of grids must be multiples of this."""
        return int(2**self.levels)

    def entries(self) -> list[nn.Module]:
        return [*super().entries(), *self.widen, *self.merge]

    def compute(self, x: Tensor) -> Tensor:
        grid = tuple(x.shape[2:-1])
        if any(n % self.grid_multiple for n in grid):
            raise ValueError(
                f"this U-Net halves the grid {self.levels} times: sizes must be divisible by "
                f"{self.grid_multiple}, got {grid}"
            )
        x = self.embedding(x)
        skips = []
        for block, widen in zip(self.down, self.widen, strict=True):
            x = block(x)
            skips.append(x)
            x = widen(halve(x))
        x = self.bottom(x)
        levels = list(zip(self.narrow, self.merge, self.up, skips, strict=True))
        for narrow, merge, block, skip in reversed(levels):
            x = block(merge(torch.cat([skip, double(narrow(x))], 1)))
        y = self.output(x)
        assert isinstance(y, Tensor)
        return y


def halve(x: Tensor) -> Tensor:
    """Mean over cells of two points per axis of (batch, channels, *grid, blades)."""
    return cell_means(x, 2, range(2, x.dim() - 1))


def double(x: Tensor) -> Tensor:
    """Each point twice along every axis of the grid: the adjoint of `halve`, up to a factor."""
    for axis in range(2, x.dim() - 1):
        x = x.repeat_interleave(2, axis)
    return x
