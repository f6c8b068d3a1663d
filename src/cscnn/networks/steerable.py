"""What Clifford-steerable networks on grids share: their layers, and checks of their input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from cscnn._util.checks import check_choice, check_int
from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.clifford import check_algebra
from cscnn.algebra.group import check_group
from cscnn.conv import CliffordSteerableConv
from cscnn.kernels import Implicit, KernelChoice, kernel_choice
from cscnn.networks.blocks import ACTIVATIONS, CSBlock, activation_layer
from cscnn.networks.entries import Sizes
from cscnn.networks.grid import Grid
from cscnn.nn.linear import constant_blades

#: A kernel for each layer: a typed choice, its name, or its JSON form.
Kernel = KernelChoice | str | Mapping[str, Any]


#: How networks of steerable kernels grow: a small budget asks for small kernel networks.
SIZES = Sizes(
    pairs=True, fallbacks=tuple({"kernel": {"hidden_dim": h}} for h in (8, 6, 4, 3, 2, 1))
)


class SteerableNetwork(nn.Module):
    """Base of networks (batch, c_in, *grid, blades) -> (batch, c_out, *grid, blades).

    Subclasses make their layers by `conv`, `act` and `block` and implement `compute`.

    Args:
        algebra: the Clifford algebra; axis i of the grid carries basis vector e_{i+1}.
        c_in, c_out: channels.
        kernel_size: taps per axis of the blocks' convolutions.
        kernel: of all convolutions.
        activation: ``"gate"`` (the paper's) or ``"product"``, see `ProductGate`.
        norm: normalise after each convolution of a block, in spacetime by absolute squares.
        grid: distances of points and padding.
        group: of products and biases, ``"O"``, ``"SO"``, ``"O+"`` or ``"SO+"``; by default that of
            the kernel. For SO they have terms with the pseudoscalar, see `MVLinear`. The network
            commutes with what this group and that of the kernel have in common.
    """

    embedding: nn.Sequential
    output: nn.Sequential

    def __init__(
        self,
        algebra: CliffordAlgebra,
        c_in: int,
        c_out: int,
        *,
        kernel_size: int = 7,
        kernel: Kernel = Implicit(),
        activation: str = "gate",
        norm: bool = True,
        grid: Grid = Grid(),
        group: str | None = None,
    ):
        super().__init__()
        self.algebra: CliffordAlgebra = check_algebra(algebra)
        self.c_in: int = check_int("c_in", c_in, low=1)
        self.c_out: int = check_int("c_out", c_out, low=1)
        self.kernel_size = kernel_size
        self.kernel: KernelChoice = kernel_choice(kernel)
        self.activation: str = check_choice("activation", activation, ACTIVATIONS)
        self.norm = norm
        self.grid = grid
        self.group: str = check_group(algebra, self.kernel.group if group is None else group)

    def conv(
        self, c_in: int, c_out: int, kernel_size: int, grid: Grid | None = None
    ) -> CliffordSteerableConv:
        """A convolution with the options of this network, on its grid or another one."""
        grid = grid or self.grid
        return CliffordSteerableConv(
            self.algebra,
            c_in,
            c_out,
            kernel_size,
            kernel=self.kernel,
            padding_mode=grid.padding_modes(self.algebra.dim),
            spacing=grid.spacings(self.algebra.dim),
            bias=constant_blades(self.algebra, self.group, self.kernel.group),
        )

    def act(self, channels: int) -> nn.Module:
        """An activation."""
        return activation_layer(self.activation, self.algebra, channels, self.group)

    def block(self, width: int, block_width: int) -> CSBlock:
        """A residual block."""
        convs = (
            self.conv(width, block_width, self.kernel_size),
            self.conv(block_width, width, self.kernel_size),
        )
        return CSBlock(self.algebra, convs, self.norm, (self.act(block_width), self.act(width)))

    def embed(self, width: int) -> nn.Sequential:
        """Two 1-point convolutions into ``width`` channels."""
        return nn.Sequential(
            self.conv(self.c_in, width, 1), self.act(width),
            self.conv(width, width, 1), self.act(width),
        )  # fmt: skip

    def project(self, width: int) -> nn.Sequential:
        """Two 1-point convolutions into the output channels."""
        return nn.Sequential(
            self.conv(width, width, 1), self.act(width), self.conv(width, self.c_out, 1)
        )

    def entries(self) -> list[nn.Module]:
        """The convolutions whose outputs enter a chain of residual blocks, see `calibrate_`."""
        return [self.embedding[2]]

    def last(self) -> nn.Module:
        """The convolution that makes the output."""
        return self.output[-1]

    def compute(self, x: Tensor) -> Tensor:
        """The network itself, on checked input."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """(batch, c_in, *grid, blades) -> (batch, c_out, *grid, blades)"""
        check_channels(self, x)
        return self.compute(x)


def check_channels(network: Any, x: Tensor) -> None:
    """Raise unless x is a field (batch, c_in, *grid, blades) for a network."""
    algebra = network.algebra
    if x.dim() != algebra.dim + 3 or x.shape[1] != network.c_in:
        expected = f"(batch, {network.c_in}, {'*, ' * algebra.dim}{algebra.n_blades})"
        raise ValueError(
            f"{type(network).__name__} takes fields of shape {expected}, got {tuple(x.shape)}"
        )
    algebra.check(x)
    weight = next((p for p in network.parameters() if p.is_floating_point()), x)
    # Mixed precision has other dtypes in places, but never float64.
    if x.dtype != weight.dtype and torch.float64 in (x.dtype, weight.dtype):
        raise TypeError(
            f"the field is {x.dtype} but the network's weights are {weight.dtype}: cast one of "
            f"them, e.g. x.to({weight.dtype})"
        )
