"""The modern U-Net of PDEArena, on components."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from operator import mul

import torch
from torch import Tensor, nn

from cscnn._util.checks import check_int
from cscnn.networks.baselines.residual import at_most_3d
from cscnn.networks.baselines.sampling import DoublingConv, GridConv, crop_to
from cscnn.networks.batches import compute_nonempty
from cscnn.networks.blocks import split_width
from cscnn.networks.entries import Sizes, register
from cscnn.networks.grid import Grid

#: How it grows. With few parameters it has fewer levels, then fewer blocks, before it gets narrow.
SIZES = Sizes(
    pairs=True,
    least=8,
    fallbacks=(
        {"multipliers": [1, 2, 2]},
        {"multipliers": [1, 2]},
        {"blocks_per_level": 1},
        {"multipliers": [1, 2, 2], "blocks_per_level": 1},
        {"multipliers": [1, 2], "blocks_per_level": 1},
    ),
)


class PreActivationBlock(nn.Module):
    """Norm, GELU and convolution, twice, beside a shortcut.

    Args:
        c_in, within, c_out: channels before, between and after the convolutions.
        modes: padding mode of each axis.
        norm: normalise all channels and points of a sample together.
    """

    def __init__(self, c_in: int, within: int, c_out: int, modes: tuple[str, ...], *, norm: bool):
        super().__init__()
        self.layers = nn.Sequential(
            nn.GroupNorm(1, c_in) if norm else nn.Identity(), nn.GELU(),
            GridConv(c_in, within, 3, modes),
            nn.GroupNorm(1, within) if norm else nn.Identity(), nn.GELU(),
            GridConv(within, c_out, 3, modes),
        )  # fmt: skip
        self.shortcut = nn.Identity() if c_in == c_out else GridConv(c_in, c_out, 1, modes)

    def forward(self, x: Tensor) -> Tensor:
        y = self.layers(x) + self.shortcut(x)
        assert isinstance(y, Tensor)
        return y


@register("unet", interface="components", sizes=SIZES, on_meta=True)
class UNet(nn.Module):
    """The modern U-Net of PDEArena (Gupta and Brandstetter 2022), without attention.

    Residual blocks have a norm and an activation before each convolution. Grids are halved by
    convolutions with stride 2 and doubled by transposed ones. On the way down, what each of these
    layers returns is kept, and a block on the way up gets it beside its own input.

    The defaults are those of ``Unetmod-64``. Compared with its code: as many parameters, which are
    144,263,683 for 12 components in and 3 out. With its weights the same output to the last bit, on
    grids of zero padding whose sizes are divisible by 8.

    What differs on purpose: one to three axes; any padding mode; any size (n points are halved to
    ceil(n / 2), and what doubling adds is cut off); widths that are pairs; a last norm with groups
    of at least 8 channels, where narrow networks had groups of one.

    Norms average over the grid, so each output sees the whole input. On a torus whose sizes are
    multiples of 2^(levels - 1), it commutes with translations by as many points.

    Given a budget of parameters, it has as many of the levels as leave 8 channels on the finest
    grid, at least two. Smaller ones have one block per level, then fewer channels.

    Args:
        dim: axes of the grid, one to three.
        c_in, c_out: components of input and output.
        width: channels on the finest grid, or a pair: these, and those between the two convolutions
            of the finest blocks.
        multipliers: factor of the channels for each level, relative to the one before. The grid is
            halved between levels.
        blocks_per_level: on the way down; there is one more on the way up.
        norm: normalise before each convolution of a block.
        grid: padding.

    Shape:
        (batch, c_in, *grid) -> (batch, c_out, *grid)
    """

    def __init__(
        self,
        dim: int,
        c_in: int,
        c_out: int,
        width: int | Sequence[int] = 64,
        multipliers: Sequence[int] = (1, 2, 2, 4),
        blocks_per_level: int = 2,
        *,
        norm: bool = True,
        grid: Grid = Grid(),
    ):
        super().__init__()
        at_most_3d("UNet", dim)
        check_int("blocks_per_level", blocks_per_level, low=1)
        modes = grid.component_modes(dim)
        outer, within = split_width(width)

        def block(before: int, after: int, skipped: int = 0) -> nn.Module:
            """From and to these multiples of the finest channels, those skipped beside them."""
            c_in = outer * (before + skipped)
            return PreActivationBlock(c_in, within * after, outer * after, modes, norm=norm)

        levels = _levels(multipliers)
        bottom = levels[-1][1]
        self.embedding = GridConv(c_in, outer, 3, modes)
        self.down = nn.ModuleList()
        for above, here in levels:
            if len(self.down):
                self.down.append(GridConv(outer * above, outer * above, 3, modes, stride=2))
            self.down.append(block(above, here))
            self.down.extend(block(here, here) for _ in range(blocks_per_level - 1))
        self.middle = nn.Sequential(block(bottom, bottom), block(bottom, bottom))
        self.up = nn.ModuleList()
        for above, here in reversed(levels):
            if len(self.up):
                self.up.append(DoublingConv(outer * here, modes))
            self.up.extend(block(here, here, here) for _ in range(blocks_per_level))
            self.up.append(block(here, above, above))
        self.output = nn.Sequential(
            nn.GroupNorm(_groups(outer), outer) if norm else nn.Identity(), nn.GELU(),
            GridConv(outer, c_out, 3, modes),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        return compute_nonempty(self._compute, x)

    def _compute(self, x: Tensor) -> Tensor:
        x = self.embedding(x)
        skips = [x]
        for layer in self.down:
            x = layer(x)
            skips.append(x)
        x = self.middle(x)
        for layer in self.up:
            if isinstance(layer, DoublingConv):
                x = crop_to(layer(x), skips[-1])
            else:
                x = layer(torch.cat([x, skips.pop()], 1))
        y = self.output(x)
        assert isinstance(y, Tensor)
        return y


def _levels(multipliers: Sequence[int]) -> list[tuple[int, int]]:
    """Multiples of the finest channels, above each level and on it."""
    if isinstance(multipliers, str) or not isinstance(multipliers, Sequence) or not multipliers:
        raise ValueError(f"multipliers needs one number for each level, got {multipliers!r}")
    checked = (check_int("multipliers", m, low=1) for m in multipliers)
    return list(pairwise(accumulate(checked, mul, initial=1)))


def _groups(channels: int) -> int:
    """Of the last norm: at most eight, each of at least 8 channels."""
    return max(g for g in range(1, 9) if g == 1 or (channels % g == 0 and channels >= 8 * g))
