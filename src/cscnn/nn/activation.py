"""Activations that commute with O(p, q)."""

from __future__ import annotations

from torch import Tensor, nn

from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.clifford import check_algebra
from cscnn.nn.functional import check_field, gate


class MVGELU(nn.Module):
    """x Φ(x^(0)): scales each multivector by the Gaussian CDF of its scalar part.

    GELU on scalars, and a gate for all other grades. Commutes with ρ(g): the scalar is invariant.

    Shape:
        (batch, channels, *space, blades), unchanged.
    """

    def __init__(self, algebra: CliffordAlgebra):
        super().__init__()
        self.algebra = check_algebra(algebra)

    def forward(self, x: Tensor) -> Tensor:
        check_field(x, self.algebra)
        return gate(x)

    def extra_repr(self) -> str:
        return f"{self.algebra}"
