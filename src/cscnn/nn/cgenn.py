"""`CGENN`: Clifford group equivariant networks, the paper's kernel network among them."""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn

from cscnn._util.checks import check_int
from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.clifford import check_algebra
from cscnn.nn.activation import MVGELU
from cscnn.nn.functional import check_field, from_planes, to_planes
from cscnn.nn.norm import GradeNorm
from cscnn.nn.product import GeometricProductLayer


class CGENN(nn.Module):
    """Stack of geometric product layers (Ruhe et al. 2023; paper, Algorithm 2).

    ``num_layers`` product layers; after each but the last come `GradeNorm` and `MVGELU`.
    f(ρ(g) x) = ρ(g) f(x) for every g of the group.

    Args:
        algebra: the Clifford algebra.
        c_in, c_out: channels.
        hidden_dim: channels between the layers.
        num_layers: number of product layers.
        group: of the product layers, see `MVLinear`.

    Shape:
        (batch, c_in, *space, blades) -> (batch, c_out, *space, blades)

    Example:
        >>> import torch
        >>> from cscnn import CliffordAlgebra
        >>> net = CGENN(CliffordAlgebra((1, -1, -1, -1)), c_in=2, c_out=1)
        >>> net(torch.randn(100, 2, 16)).shape
        torch.Size([100, 1, 16])
    """

    def __init__(
        self,
        algebra: CliffordAlgebra,
        c_in: int,
        c_out: int,
        hidden_dim: int = 12,
        num_layers: int = 4,
        group: str = "O",
    ):
        super().__init__()
        check_int("num_layers", num_layers, low=1)
        check_int("hidden_dim", hidden_dim, low=1)
        self.algebra: CliffordAlgebra = check_algebra(algebra)
        self.c_in = c_in
        widths = [c_in, *[hidden_dim] * (num_layers - 1), c_out]
        self.products = nn.ModuleList(
            GeometricProductLayer(algebra, a, b, group=group) for a, b in pairwise(widths)
        )
        self.norms = nn.ModuleList(GradeNorm(algebra, width) for width in widths[1:-1])
        self.gate = MVGELU(algebra)

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for layer in (*self.products, *self.norms):
            layer.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        check_field(x, self.algebra, self.c_in)
        # One change of memory order for the whole stack: blades beside the channels.
        y = to_planes(x).contiguous().movedim(2, -1)
        for product, norm in zip(self.products[:-1], self.norms, strict=True):
            y = self.gate(norm(product(y)))
        return from_planes(self.products[-1](y).movedim(-1, 2), like=x)
