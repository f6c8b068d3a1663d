"""A Clifford-steerable U-Net."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from torch import Tensor, nn

from cscnn._util.checks import check_int
from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.group import time_axis
from cscnn.conv import CliffordSteerableConv, downsample, upsample
from cscnn.conv.options import per_axis
from cscnn.conv.padding import check_amount
from cscnn.kernels import Complete
from cscnn.networks.blocks import PreActivationBlock
from cscnn.networks.entries import register
from cscnn.networks.grid import Grid
from cscnn.networks.steerable import SIZES, Kernel, SteerableNetwork


@register("cs_unet", sizes=replace(SIZES, ratio=2))
class CSUNet(SteerableNetwork):
    """An equivariant U-Net: residual blocks on grids from fine to coarse and back, with skips.

    Coarser grids are means over cells of two points per axis, finer ones linear interpolations, see
    `cscnn.conv.downsample` and `upsample`. Blocks activate before they convolve, and skips are
    added: nothing but sums is on the way from the embedding to the output on the finest grid.

    Commutes with the rotations and reflections of the grid that its kernels know, for any number of
    points: cells of all grids fill the same box. On a torus it commutes with translations by
    2^levels points, if these divide the number of points; with others up to the resolution of the
    fields.

    Args:
        algebra: the Clifford algebra; axis i of the grid carries basis vector e_{i+1}.
        c_in, c_out: channels.
        width: channels on the finest grid, on the next one, and so on; the last number serves all
            that are coarser, a single one all grids.
        blocks: residual blocks on each grid, on the way down and again on the way up.
        levels: how often the number of points is halved, one for all axes or one per axis: 0 for an
            axis of few points, e.g. ``(0, 2, 2)`` for a short time. Axes with fewer halvings take
            part in the first ones. The distances that kernels see follow.
        kernel_size: taps per axis of the blocks' convolutions.
        kernel: ``Complete(hidden_dim=4)``, ``Implicit()``, ..., or a name. The kernel networks of
            ``Implicit()`` have thousands of parameters for each of many convolutions.
        options: ``activation``, ``norm``, ``grid`` and ``group``, as for `CSResNet`.

    Shape:
        (batch, c_in, *grid, blades) -> (batch, c_out, *grid, blades)

    Example:
        >>> import torch
        >>> net = CSUNet(CliffordAlgebra((1, 1)), c_in=4, c_out=1, width=(4, 8), kernel_size=3)
        >>> net(torch.randn(1, 4, 30, 17, 4)).shape
        torch.Size([1, 1, 30, 17, 4])
    """

    def __init__(
        self,
        algebra: CliffordAlgebra,
        c_in: int,
        c_out: int,
        width: int | Sequence[int] = (8, 16),
        blocks: int = 1,
        levels: int | Sequence[int] = 2,
        kernel_size: int = 5,
        kernel: Kernel = Complete(hidden_dim=4),
        **options: Any,
    ):
        super().__init__(algebra, c_in, c_out, kernel_size=kernel_size, kernel=kernel, **options)
        self.halvings: tuple[int, ...] = check_levels(levels, algebra.dim)
        self.levels: int = max(self.halvings)
        widths = level_widths(width, self.levels)
        check_int("blocks", blocks, low=1)
        self.embedding = nn.Sequential(*list(self.embed(widths[0]))[:-1])
        self.down = nn.ModuleList(self._blocks(i, w, blocks) for i, w in enumerate(widths))
        self.widen = nn.ModuleList(self.conv(a, b, 1) for a, b in pairwise(widths))
        self.narrow = nn.ModuleList(self.conv(b, a, 1) for a, b in pairwise(widths))
        self.up = nn.ModuleList(self._blocks(i, w, blocks) for i, w in enumerate(widths[:-1]))
        self.output = nn.Sequential(self.act(widths[0]), *self.project(widths[0]))
        self._check_causal()

    def _blocks(self, level: int, width: int, count: int) -> nn.Sequential:
        """Residual blocks on the grid of a level."""
        modes = self.grid.padding_modes(self.algebra.dim)
        spacings = self.grid.spacings(self.algebra.dim)
        factors = [2 ** min(level, n) for n in self.halvings]
        grid = Grid(tuple(f * s for f, s in zip(factors, spacings, strict=True)), modes)
        return nn.Sequential(
            *(
                PreActivationBlock(
                    self.algebra,
                    [self.conv(width, width, self.kernel_size, grid) for _ in range(2)],
                    self.norm,
                    [self.act(width) for _ in range(2)],
                )
                for _ in range(count)
            )
        )

    def _check_causal(self) -> None:
        """Raise if kernels that see no future meet coarse times, which do."""
        conv = self.widen[0]
        assert isinstance(conv, CliffordSteerableConv)
        if conv.kernel.causal and self.halvings[time_axis(self.algebra)]:
            axis = time_axis(self.algebra)
            others = tuple(0 if i == axis else n for i, n in enumerate(self.halvings))
            raise ValueError(
                f"levels={self.halvings} halves the time axis {axis}, and means over times show "
                f"the future to a causal kernel: give levels={others}"
            )

    @property
    def grid_multiple(self) -> int:
        """Translations by this many points are symmetries, if it divides the sizes of a grid."""
        return int(2**self.levels)

    def _factors(self, level: int) -> tuple[int, ...]:
        """By which factor each axis is halved below a level."""
        return tuple(2 if level < n else 1 for n in self.halvings)

    def _check_grid(self, grid: Sequence[int]) -> None:
        """Raise if the coarsest grid has too few points for the padding of its convolutions."""
        modes = self.grid.padding_modes(self.algebra.dim)
        for axis, (n, halvings, mode) in enumerate(zip(grid, self.halvings, modes, strict=True)):
            coarsest = -(-n // 2**halvings)
            try:
                check_amount(coarsest, axis, self.kernel_size // 2, mode)
            except ValueError as error:
                raise ValueError(
                    f"{error}, after {halvings} halvings of {n} points: halve it less often, by "
                    f"levels={_one_less(self.halvings, axis)}, or take a smaller kernel_size"
                ) from None

    def entries(self) -> list[nn.Module]:
        return []  # no activation is on the shortcuts

    def compute(self, x: Tensor) -> Tensor:
        self._check_grid(tuple(x.shape[2:-1]))
        modes = self.grid.padding_modes(self.algebra.dim)
        x = self.embedding(x)
        skips = []
        for level, (blocks, widen) in enumerate(zip(self.down[:-1], self.widen, strict=True)):
            x = blocks(x)
            skips.append(x)
            x = widen(downsample(x, self._factors(level)))
        x = self.down[-1](x)
        for narrow, blocks, skip in reversed(list(zip(self.narrow, self.up, skips, strict=True))):
            x = blocks(skip + upsample(narrow(x), skip.shape[2:-1], modes))
        y = self.output(x)
        assert isinstance(y, Tensor)
        return y


def _one_less(halvings: Sequence[int], axis: int) -> tuple[int, ...]:
    """Fewer halvings of an axis."""
    return tuple(max(n - 1, 0) if i == axis else n for i, n in enumerate(halvings))


def check_levels(levels: int | Sequence[int], dim: int) -> tuple[int, ...]:
    """How often each axis is halved."""
    halvings = tuple(check_int("levels", n, low=0) for n in per_axis("levels", levels, dim))
    if max(halvings) == 0:
        raise ValueError(f"a U-Net halves at least one axis, got levels={levels}: use cs_resnet")
    return halvings


def level_widths(width: int | Sequence[int], levels: int) -> tuple[int, ...]:
    """Channels on each grid, the finest first; the last number given serves all that follow."""
    given = tuple(width) if isinstance(width, Sequence) else (width,)
    if not 1 <= len(given) <= levels + 1:
        raise ValueError(
            f"width is a number of channels, or up to {levels + 1}, one for each grid, got {width}"
        )
    widths = tuple(check_int("width", w, low=1) for w in given)
    return widths + widths[-1:] * (levels + 1 - len(widths))
