"""The ConvNeXt U-Net of The Well, on components."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from cscnn._util.checks import check_int
from cscnn.conv.export import TORCH_CONVS
from cscnn.networks.baselines.residual import ChannelNorm, at_most_3d
from cscnn.networks.baselines.sampling import (
    TRANSPOSED_CONVS,
    GridConv,
    complete_cells,
    crop_to,
)
from cscnn.networks.batches import compute_nonempty
from cscnn.networks.entries import Sizes, register
from cscnn.networks.grid import Grid

#: Hidden channels of a block for each of its channels, unless told otherwise.
HIDDEN = 4

#: How it grows. With few parameters it has fewer levels, then fewer blocks, before it gets narrow.
SIZES = Sizes(
    second="hidden",
    ratio=HIDDEN,
    least=8,
    fallbacks=(
        {"levels": 3},
        {"levels": 2},
        {"blocks_per_level": 1},
        {"levels": 3, "blocks_per_level": 1},
        {"levels": 2, "blocks_per_level": 1},
        {"levels": 2, "blocks_per_level": 1, "kernel_size": 5},
    ),
)


class ConvNeXtBlock(nn.Module):
    """x + scale · MLP(norm(depthwise convolution(x))), each point on its own in norm and MLP.

    Args:
        channels: before and after.
        hidden: channels inside the MLP.
        kernel_size: taps per axis.
        modes: padding mode of each axis.
        scale: value at which the scale of each channel starts.
    """

    def __init__(
        self, channels: int, hidden: int, kernel_size: int, modes: tuple[str, ...], scale: float
    ):
        super().__init__()
        self.depthwise = GridConv(channels, channels, kernel_size, modes, groups=channels)
        self.norm = ChannelNorm(channels, eps=1e-6)
        self.mlp = nn.Sequential(
            GridConv(channels, hidden, 1, modes), nn.GELU(), GridConv(hidden, channels, 1, modes)
        )
        self.scale = nn.Parameter(torch.full((channels, *(1,) * len(modes)), scale))

    def forward(self, x: Tensor) -> Tensor:
        y = x + self.scale * self.mlp(self.norm(self.depthwise(x)))
        assert isinstance(y, Tensor)
        return y


class UnitNorm(nn.Module):
    """Channels of each point divided by their Euclidean length, times a weight of each."""

    def __init__(self, dim: int, channels: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels, *(1,) * dim))

    def forward(self, x: Tensor) -> Tensor:
        return normalize(x, dim=1, eps=1e-6) * self.weight


class Halve(nn.Module):
    """Norm and a convolution of cells of two points per axis, with twice as many channels."""

    def __init__(self, channels: int, modes: tuple[str, ...]):
        super().__init__()
        self.modes = modes
        self.norm = UnitNorm(len(modes), channels)
        self.conv = TORCH_CONVS[len(modes)](channels, 2 * channels, 2, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(complete_cells(self.norm(x), self.modes))
        assert isinstance(y, Tensor)
        return y


class Double(nn.Module):
    """Norm and a transposed convolution into cells of two points, with half as many channels."""

    def __init__(self, dim: int, channels: int):
        super().__init__()
        self.norm = UnitNorm(dim, channels)
        self.conv = TRANSPOSED_CONVS[dim](channels, channels // 2, 2, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(self.norm(x))
        assert isinstance(y, Tensor)
        return y


@register("convnext_unet", interface="components", sizes=SIZES, on_meta=True)
class ConvNeXtUNet(nn.Module):
    """The ConvNeXt U-Net of The Well (``UNetConvNext``; Ohana et al. 2024).

    ConvNeXt blocks on each level; halving the grid doubles the channels. The features with which a
    level begins on the way down are joined to those on the way up. The finest grid is an exception:
    on the way up it has no blocks and gets nothing but what was doubled.

    The defaults are those of the published benchmark. Compared with its code: with its weights the
    same output to 2e-7 in single precision, in two and three dimensions, on grids of zero padding
    whose sizes are divisible by 16. It has 18,571,563 parameters for 12 components in and 3 out.
    The published network has 1,890 more: biases of norms, which it does not use.

    What differs on purpose: also one axis; any padding mode; any size (an odd grid gets one more
    point before it is halved, which is cut off after it is doubled); no stochastic depth.

    On a torus whose sizes are multiples of 2^levels, it commutes with translations by as many
    points.

    Given a budget of parameters, it has as many levels, from two to four, as leave 8 channels on
    the finest grid. Smaller ones have one block per level, then 5 taps, then fewer channels.

    Args:
        dim: axes of the grid, one to three.
        c_in, c_out: components of input and output.
        width: channels on the finest grid, doubled on each coarser one.
        hidden: channels inside the finest blocks, doubled likewise; by default 4 times the width.
        levels: how often the grid is halved.
        blocks_per_level: on each level, down and up; the coarsest grid has one more between them.
        kernel_size: taps per axis of the depthwise convolutions.
        layer_scale: factor of what a block adds, before training.
        grid: padding.

    Shape:
        (batch, c_in, *grid) -> (batch, c_out, *grid)
    """

    def __init__(
        self,
        dim: int,
        c_in: int,
        c_out: int,
        width: int = 42,
        hidden: int | None = None,
        *,
        levels: int = 4,
        blocks_per_level: int = 2,
        kernel_size: int = 7,
        layer_scale: float = 1e-6,
        grid: Grid = Grid(),
    ):
        super().__init__()
        at_most_3d("ConvNeXtUNet", dim)
        check_int("width", width, low=1)
        check_int("levels", levels, low=1)
        check_int("blocks_per_level", blocks_per_level, low=1)
        finest_hidden = check_int("hidden", HIDDEN * width if hidden is None else hidden, low=1)
        modes = grid.component_modes(dim)

        def blocks(level: int, count: int = blocks_per_level) -> nn.Module:
            sizes = width * 2**level, finest_hidden * 2**level
            made = (ConvNeXtBlock(*sizes, kernel_size, modes, layer_scale) for _ in range(count))
            return nn.Sequential(*made)

        channels = [width * 2**level for level in range(levels + 1)]
        self.embedding = GridConv(c_in, width, 3, modes)
        self.down = nn.ModuleList(map(blocks, range(levels)))
        self.shrink = nn.ModuleList(Halve(c, modes) for c in channels[:-1])
        self.middle = blocks(levels, 1)
        self.merge = nn.ModuleList(GridConv(2 * c, c, 1, modes) for c in channels[1:-1])
        self.up = nn.ModuleList(map(blocks, range(1, levels + 1)))
        self.grow = nn.ModuleList(Double(dim, c) for c in channels[1:])
        self.output = GridConv(width, c_out, 3, modes)

    def forward(self, x: Tensor) -> Tensor:
        return compute_nonempty(self._compute, x)

    def _compute(self, x: Tensor) -> Tensor:
        x = self.embedding(x)
        skips = []
        for blocks, shrink in zip(self.down, self.shrink, strict=True):
            skips.append(x)
            x = shrink(blocks(x))
        x = self.middle(x)
        for level in reversed(range(len(skips))):  # from the grid below this level to its own
            x = crop_to(self.grow[level](self.up[level](x)), skips[level])
            if level > 0:
                x = self.merge[level - 1](torch.cat([x, skips[level]], 1))
        y = self.output(x)
        assert isinstance(y, Tensor)
        return y
