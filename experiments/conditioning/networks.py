"""`ContextResNet`: plain global context, what conditional kernels have to beat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from cscnn import CliffordAlgebra
from cscnn.networks import CSResNet, register
from cscnn.networks.blocks import split_width
from cscnn.networks.steerable import SIZES
from cscnn.nn import MVLinear


class ContextResNet(CSResNet):
    """A CS-ResNet whose blocks see the mean of the field beside its value at each point.

    Before each block the mean over the grid is added to the field at every point, after a linear
    map with one matrix per grade. A convolution of the mean, concatenated to its input, would be
    the same inside of the grid. It commutes with all that `CSResNet` commutes with.

    Args:
        The same as for `CSResNet`.
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
        super().__init__(algebra, c_in, c_out, width, blocks, **options)
        outer, _ = split_width(width)
        # Without bias: `calibrate_` would blow up what noise has for a mean.
        self.context = nn.ModuleList(
            MVLinear(algebra, outer, outer, bias=False) for _ in range(blocks)
        )

    def compute(self, x: Tensor) -> Tensor:
        x = self.embedding(x)
        axes = tuple(range(2, x.dim() - 1))
        for mix, block in zip(self.context, self.blocks, strict=True):
            x = block(x + mix(x.mean(axes, keepdim=True)))
        y = self.output(x)
        assert isinstance(y, Tensor)
        return y


def add_networks() -> None:
    """Register what the library does not have; when asked, so that imports change no tables."""
    register("cs_resnet_context", sizes=SIZES)(ContextResNet)
