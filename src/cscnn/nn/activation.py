"""Activations that commute with O(p, q)."""

from __future__ import annotations

from torch import Tensor, nn

from cscnn._util.checks import check_choice
from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.clifford import check_algebra
from cscnn.nn.functional import check_field, gate

APPROXIMATIONS = ("tanh", "none")


class MVGELU(nn.Module):
    """x Φ(x^(0)): scales each multivector by the Gaussian CDF Φ of its scalar part.

    GELU on scalars, and a gate for all other grades. Commutes with ρ(g): the scalar is invariant.

    Args:
        algebra: the Clifford algebra.
        approximate: as for ``torch.nn.GELU``, except for its default: ``"tanh"`` is the
            approximation of Φ in the published networks, ``"none"`` is Φ itself. They are up to
            2e-4 apart; weights go with the one they were trained with.

    Shape:
        (batch, channels, *space, blades), unchanged.
    """

    def __init__(self, algebra: CliffordAlgebra, approximate: str = "tanh"):
        super().__init__()
        self.algebra: CliffordAlgebra = check_algebra(algebra)
        self.approximate: str = check_choice("approximate", approximate, APPROXIMATIONS)

    def forward(self, x: Tensor) -> Tensor:
        check_field(x, self.algebra)
        return gate(x, self.approximate)

    def extra_repr(self) -> str:
        return f"{self.algebra}, approximate={self.approximate!r}"
