"""Plain convolutions on grids of any size and padding, which keep, halve or double them."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from cscnn._util.checks import check_int
from cscnn.conv.export import TORCH_CONVS
from cscnn.conv.padding import pad_axis

#: torch's transposed convolutions by the number of dimensions.
TRANSPOSED_CONVS: dict[int, Any] = {
    1: nn.ConvTranspose1d,
    2: nn.ConvTranspose2d,
    3: nn.ConvTranspose3d,
}


def extend_axis(x: Tensor, axis: int, amount: int, mode: str) -> Tensor:
    """`pad_axis`, also by more points than the axis has: its periods and mirror images repeat.

    Coarse grids of a U-Net have few points. One point has no slope and no mirror image beside it:
    it is repeated.
    """
    while amount > 0:
        size = x.shape[axis]
        inner = mode in ("reflect", "extrapolate")
        if inner and size == 1:
            mode = "replicate"
        step = amount if mode in ("zeros", "replicate") else min(amount, size - inner)
        x = pad_axis(x, axis, step, mode)
        amount -= step
    return x


class ExtendGrid(nn.Module):
    """Extends all axes of (batch, channels, *grid) to both sides, each in its own mode."""

    def __init__(self, amount: int, modes: tuple[str, ...]):
        super().__init__()
        self.amount, self.modes = amount, modes

    def forward(self, x: Tensor) -> Tensor:
        for axis, mode in enumerate(self.modes, 2):
            x = extend_axis(x, axis, self.amount, mode)
        return x


class GridConv(nn.Module):
    """A plain convolution of an odd number of taps: n points become ceil(n / stride).

    Args:
        c_in, c_out: channels.
        kernel_size: taps per axis.
        modes: padding mode of each axis.
        stride: keep each point, or every second one.
        groups: of channels that are not mixed with others.
    """

    def __init__(
        self,
        c_in: int,
        c_out: int,
        kernel_size: int,
        modes: tuple[str, ...],
        *,
        stride: int = 1,
        groups: int = 1,
    ):
        super().__init__()
        if check_int("kernel_size", kernel_size, low=1) % 2 == 0:
            raise ValueError(f"kernel_size must be odd, got {kernel_size}")
        amount = kernel_size // 2
        by_torch = set(modes) == {"zeros"}  # it pads with zeros by itself, and faster
        self.pad = ExtendGrid(0 if by_torch else amount, modes)
        self.conv = TORCH_CONVS[len(modes)](
            c_in,
            c_out,
            kernel_size,
            stride=stride,
            padding=amount if by_torch else 0,
            groups=groups,
        )

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(self.pad(x))
        assert isinstance(y, Tensor)
        return y


class DoublingConv(nn.Module):
    """The transposed convolution of four taps per axis that doubles a grid, in any padding mode."""

    def __init__(self, channels: int, modes: tuple[str, ...]):
        super().__init__()
        beyond = 0 if set(modes) == {"zeros"} else 1  # points of the coarse grid, two of the fine
        self.pad = ExtendGrid(beyond, modes)
        self.conv = TRANSPOSED_CONVS[len(modes)](
            channels, channels, 4, stride=2, padding=1 + 2 * beyond
        )

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(self.pad(x))
        assert isinstance(y, Tensor)
        return y


def complete_cells(x: Tensor, modes: tuple[str, ...]) -> Tensor:
    """One more point at the end of each axis of odd length, so that cells of two fill the grid."""
    for axis, mode in enumerate(modes, 2):
        if size := x.shape[axis] % 2 * x.shape[axis]:
            x = extend_axis(x, axis, 1, mode).narrow(axis, 1, size + 1)
    return x


def crop_to(x: Tensor, like: Tensor) -> Tensor:
    """The first points of a grid that was doubled, as many as there were before it was halved."""
    for axis in range(2, x.dim()):
        x = x.narrow(axis, 0, like.shape[axis])
    return x
