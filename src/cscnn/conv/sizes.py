"""`ConvSizes`: what the cost of a convolution depends on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ConvSizes:
    """Sizes of a convolution and of the field that it meets.

    Attributes:
        grid: input points along each axis.
        kernel: kernel size.
        shift, circular: see `cscnn.conv.spectral.overlap.cut_axis`, for each axis.
        batch: number of samples.
        c_in, c_out: flattened channels, c·n.
        parity: whether the spectrum of the kernel is real.
        itemsize: bytes per number.
        device: type of the device.
    """

    grid: tuple[int, ...]
    kernel: tuple[int, ...]
    shift: tuple[int, ...]
    circular: tuple[bool, ...]
    batch: int
    c_in: int
    c_out: int
    parity: bool
    itemsize: int
    device: str = "cpu"

    @property
    def out(self) -> tuple[int, ...]:
        """Output points along each axis."""
        axes = zip(self.grid, self.shift, self.circular, strict=True)
        return tuple(n if circular else n - 2 * shift for n, shift, circular in axes)
