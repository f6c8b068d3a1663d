"""The plain ResNet, on components, and the form that all residual baselines share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor, nn

from cscnn._util.checks import check_int
from cscnn.networks.baselines.sampling import GridConv
from cscnn.networks.blocks import split_width
from cscnn.networks.entries import Sizes, register
from cscnn.networks.grid import Grid

#: How residual networks grow: beside the width, by the number of blocks.
SIZES = Sizes(pairs=True, fallbacks=tuple({"blocks": b} for b in (9, 7, 10, 6, 11, 5, 12, 4)))


class ChannelNorm(nn.Module):
    """Layer norm over the channels at each point of (batch, channels, *grid)."""

    def __init__(self, channels: int, eps: float = 1e-5):
        super().__init__()
        self.norm = nn.LayerNorm(channels, eps=eps)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x.movedim(1, -1)).movedim(-1, 1)
        assert isinstance(y, Tensor)
        return y


class ResidualNet(nn.Module):
    """The form of `CSResNet` on any features: embedding, residual blocks, output, with GELU.

    Args:
        c_in, c_out: channels of input and output.
        width: channels between, or a pair: these, and those between the two convolutions of a
            block.
        blocks: number of residual blocks.
        kernel_size: taps per axis of the blocks' convolutions; the others have one.
        conv: makes a convolution from its channels and its kernel size.
        norm: makes a norm from its channels.
    """

    def __init__(
        self,
        c_in: int,
        c_out: int,
        width: int | Sequence[int],
        *,
        blocks: int,
        kernel_size: int,
        conv: Callable[[int, int, int], nn.Module],
        norm: Callable[[int], nn.Module],
    ):
        super().__init__()
        outer, within = split_width(width)
        check_int("blocks", blocks, low=1)
        self.embedding = nn.Sequential(
            conv(c_in, outer, 1), nn.GELU(), conv(outer, outer, 1), nn.GELU()
        )
        self.blocks = nn.ModuleList(
            nn.Sequential(
                conv(outer, within, kernel_size), norm(within), nn.GELU(),
                conv(within, outer, kernel_size), norm(outer),
            )
            for _ in range(blocks)
        )  # fmt: skip
        self.output = nn.Sequential(conv(outer, outer, 1), nn.GELU(), conv(outer, c_out, 1))

    def forward(self, x: Tensor) -> Tensor:
        x = self.embedding(x)
        for block in self.blocks:
            x = nn.functional.gelu(x + block(x))
        y = self.output(x)
        assert isinstance(y, Tensor)
        return y


@register("resnet", interface="components", sizes=SIZES, on_meta=True)
class ResNet(ResidualNet):
    """The plain ResNet: the form of `CSResNet`, on components, with nothing built in.

    Args:
        dim: axes of the grid, one to three.
        c_in, c_out: components of input and output.
        width: channels, or a pair: these, and those between the two convolutions of a block.
        blocks: number of residual blocks.
        kernel_size: taps per axis.
        norm: normalise after each convolution of a block.
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
        blocks: int = 8,
        *,
        kernel_size: int = 7,
        norm: bool = True,
        grid: Grid = Grid(),
    ):
        at_most_3d("ResNet", dim)
        modes = grid.component_modes(dim)
        super().__init__(
            c_in,
            c_out,
            width,
            blocks=blocks,
            kernel_size=kernel_size,
            conv=lambda a, b, size: GridConv(a, b, size, modes),
            norm=lambda channels: ChannelNorm(channels) if norm else nn.Identity(),
        )


def at_most_3d(name: str, dim: int) -> None:
    """Raise for a baseline on a four-dimensional grid."""
    if dim not in (1, 2, 3):
        raise ValueError(
            f"{name} is made of torch's convolutions or transforms of 1 to 3 dimensions, got {dim}"
        )
