"""The Clifford ResNet, on the layers of the package cliffordlayers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from cscnn._util.optional import require
from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.clifford import check_algebra
from cscnn.conv.export import PadGrid
from cscnn.networks.baselines.residual import SIZES, ResidualNet
from cscnn.networks.batches import compute_nonempty
from cscnn.networks.entries import register
from cscnn.networks.grid import Grid
from cscnn.networks.steerable import check_channels


class CliffordConv(nn.Module):
    """A convolution of the package cliffordlayers that keeps the grid, in any padding mode."""

    def __init__(
        self,
        metric: tuple[int, ...],
        c_in: int,
        c_out: int,
        kernel_size: int,
        modes: tuple[str, ...],
    ):
        super().__init__()
        layers = require("cliffordlayers.nn.modules.cliffordconv", "CliffordResNet", "baselines")
        dim = len(metric)
        self.pad = PadGrid((kernel_size // 2,) * dim, modes)
        self.conv = getattr(layers, f"CliffordConv{dim}d")(metric, c_in, c_out, kernel_size)

    def forward(self, x: Tensor) -> Tensor:
        flat = x.movedim(-1, 2)
        padded = self.pad(flat.flatten(1, 2))
        y = self.conv(padded.unflatten(1, flat.shape[1:3]).movedim(2, -1))
        assert isinstance(y, Tensor)
        return y


@register("clifford_resnet", sizes=SIZES)
class CliffordResNet(nn.Module):
    """The Clifford ResNet: multivector-valued kernels, geometric products instead of matrices.

    On the convolutions and norms of the package cliffordlayers. Commutes with translations only.

    Args:
        algebra: the Clifford algebra, of 2 or 3 dimensions.
        c_in, c_out: channels.
        width: channels between, or a pair: these, and those between the two convolutions of a
            block.
        blocks: number of residual blocks.
        kernel_size: taps per axis.
        norm: normalise after each convolution of a block.
        grid: padding.

    Shape:
        (batch, c_in, *grid, blades) -> (batch, c_out, *grid, blades)
    """

    def __init__(
        self,
        algebra: CliffordAlgebra,
        c_in: int,
        c_out: int,
        width: int | Sequence[int] = 16,
        blocks: int = 8,
        *,
        kernel_size: int = 7,
        norm: bool = True,
        grid: Grid = Grid(),
    ):
        super().__init__()
        self.algebra = check_algebra(algebra)
        self.c_in, self.c_out = c_in, c_out
        metric, dim = algebra.metric, algebra.dim
        if dim not in (2, 3):
            raise ValueError(
                f"cliffordlayers has Clifford convolutions in 2 and 3 dimensions, got {dim}"
            )
        if algebra.symmetric:
            raise ValueError(f"cliffordlayers knows multivectors only, got {algebra}")
        layers = require("cliffordlayers.nn.modules.groupnorm", "CliffordResNet", "baselines")
        group_norm = getattr(layers, f"CliffordGroupNorm{dim}d")
        modes = grid.component_modes(dim)
        self.network = ResidualNet(
            c_in,
            c_out,
            width,
            blocks=blocks,
            kernel_size=kernel_size,
            conv=lambda a, b, size: CliffordConv(metric, a, b, size, modes),
            norm=lambda channels: group_norm(metric, 1, channels) if norm else nn.Identity(),
        )

    def forward(self, x: Tensor) -> Tensor:
        """(batch, c_in, *grid, blades) -> (batch, c_out, *grid, blades)"""
        check_channels(self, x)
        try:
            y = compute_nonempty(self.network, x.contiguous())
        except torch.linalg.LinAlgError as error:  # type: ignore[attr-defined]
            largest = x.detach().abs().max().item()
            raise ValueError(
                "the norms of cliffordlayers cannot invert the covariance of these fields, whose "
                f"largest number is {largest:.3g}: bring them to a size of about 1, or build the "
                "network with norm=False"
            ) from error
        assert isinstance(y, Tensor)
        return y
