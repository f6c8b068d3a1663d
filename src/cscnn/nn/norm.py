"""Normalisations by the invariant norms of multivectors."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from cscnn._util.checks import check_int
from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.clifford import check_algebra
from cscnn.nn.functional import check_field, grade_norm
from cscnn.nn.fused import fused_layer_norm


class GradeNorm(nn.Module):
    """Divides every grade of every channel by its norm, to a learnt degree (Ruhe et al. 2023).

    x_k / (sigmoid(factor) (|x_k| - 1) + 1 + 1e-6). Commutes with ρ(g): |x_k| is invariant.

    Args:
        algebra: the Clifford algebra.
        channels: number of channels.

    Shape:
        (batch, channels, *space, blades), unchanged.
    """

    def __init__(self, algebra: CliffordAlgebra, channels: int):
        super().__init__()
        self.algebra: CliffordAlgebra = check_algebra(algebra)
        self.channels: int = check_int("channels", channels, low=1)
        self.factor = nn.Parameter(torch.zeros(self.channels, algebra.n_grades))

    def reset_parameters(self) -> None:
        """Start half-way between no normalisation and a full one."""
        nn.init.zeros_(self.factor)

    def forward(self, x: Tensor) -> Tensor:
        check_field(x, self.algebra, self.channels, self.factor)
        return grade_norm(x, self.factor, self.algebra)

    def extra_repr(self) -> str:
        return f"{self.algebra}, {self.channels}"


class MVLayerNorm(nn.Module):
    """Divides a field by the mean norm of its channels at each point. No parameters.

    Commutes with ρ(g): norms are invariant.

    Args:
        algebra: the Clifford algebra.
        absolute: measure each grade by the absolute value of its square. In spacetime squares can
            be negative, and without this a large multivector can count as a small one.

    Shape:
        (batch, channels, *space, blades), unchanged.
    """

    def __init__(self, algebra: CliffordAlgebra, absolute: bool = False):
        super().__init__()
        self.algebra: CliffordAlgebra = check_algebra(algebra)
        self.absolute = absolute

    def forward(self, x: Tensor) -> Tensor:
        check_field(x, self.algebra)
        return fused_layer_norm(x, self.algebra, self.absolute)

    def extra_repr(self) -> str:
        return f"{self.algebra}"
