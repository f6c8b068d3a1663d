"""The Clifford-steerable ResNet of the paper, and the O(n)-steerable ResNet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from cscnn._util.checks import check_int
from cscnn.algebra import CliffordAlgebra
from cscnn.kernels import Complete
from cscnn.networks.blocks import split_width
from cscnn.networks.entries import Sizes, register
from cscnn.networks.steerable import SIZES, SteerableNetwork


@register("cs_resnet", sizes=SIZES)
class CSResNet(SteerableNetwork):
    """The paper's network: two 1-point embeddings, residual blocks, two 1-point output layers.

    Commutes with translations and with the symmetries of the grid that its kernels know; with
    other rotations and boosts up to the resolution of the fields.

    Args:
        algebra: the Clifford algebra; axis i of the grid carries basis vector e_{i+1}.
        c_in, c_out: channels.
        width: channels between, or a pair: these, and those between the two convolutions of a
            block.
        blocks: number of residual blocks.
        kernel_size: taps per axis of the blocks' convolutions.
        kernel: ``Implicit()`` (the paper's), ``Complete()``, ..., or a name.
        activation: ``"gate"`` (the paper's) or ``"product"``, see `ProductGate`.
        norm: normalise after each convolution of a block, in spacetime by absolute squares.
        grid: distances of points and padding.
        group: of products and biases, by default that of the kernel. ``"SO"`` and ``"SO+"`` give
            them terms with the pseudoscalar, see `MVLinear`: ``kernel=Complete(group="SO")`` makes
            a network of SO throughout. With ``group="O"`` only its convolutions are of SO.

    Shape:
        (batch, c_in, *grid, blades) -> (batch, c_out, *grid, blades)

    Example:
        >>> import torch
        >>> net = CSResNet(CliffordAlgebra((1, 1)), c_in=4, c_out=1, width=8, blocks=2)
        >>> net(torch.randn(1, 4, 32, 32, 4)).shape
        torch.Size([1, 1, 32, 32, 4])
    """

    def __init__(
        self,
        algebra: CliffordAlgebra,
        c_in: int,
        c_out: int,
        width: int | Sequence[int] = 16,
        blocks: int = 8,
        **options: Any,
    ):
        super().__init__(algebra, c_in, c_out, **options)
        outer, within = split_width(width)
        check_int("blocks", blocks, low=1)
        self.embedding: nn.Sequential = self.embed(outer)
        self.blocks = nn.ModuleList(self.block(outer, within) for _ in range(blocks))
        self.output: nn.Sequential = self.project(outer)

    def compute(self, x: Tensor) -> Tensor:
        x = self.embedding(x)
        for block in self.blocks:
            x = block(x)
        y = self.output(x)
        assert isinstance(y, Tensor)
        return y


@register("steerable_resnet", sizes=Sizes(pairs=True))
class SteerableResNet(CSResNet):
    """The O(n)-steerable ResNet: all steerable kernels, with radial profiles on Gaussian rings.

    Steerable kernels between multivectors are known in closed form, so this needs no solver and
    runs in three dimensions as in two. Euclidean spaces only: rings are compact, hyperbolas are
    not. Options as for `CSResNet`, without a choice of kernels.
    """

    def __init__(
        self,
        algebra: CliffordAlgebra,
        c_in: int,
        c_out: int,
        width: int | Sequence[int] = 16,
        blocks: int = 8,
        **options: Any,
    ):
        if len(set(algebra.metric)) > 1:
            raise ValueError(
                "SteerableResNet is for O(n), the symmetry of a Euclidean space, got metric "
                f"{algebra.metric}: use CSResNet"
            )
        if "kernel" in options:
            raise TypeError("SteerableResNet has one kind of kernel: use CSResNet to choose")
        rings = Complete(radial="rings")
        super().__init__(algebra, c_in, c_out, width, blocks, kernel=rings, **options)
