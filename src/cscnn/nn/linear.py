"""`MVLinear`: channel mixing that commutes with O(p, q)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from cscnn._util.checks import check_int
from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.clifford import check_algebra
from cscnn.nn.functional import check_field, from_planes, mix_channels, to_planes


class MVLinear(nn.Module):
    """Mixes channels with one weight matrix per grade (paper, Def. 2.13).

    Commutes with ρ(g) for every g in O(p, q), since ρ(g) acts on each grade alone.

    Args:
        algebra: the Clifford algebra.
        c_in, c_out: channels.
        bias: add a learnt constant to the scalar blade. A sequence of blade indices is accepted
            only if a constant there is invariant, i.e. ``(0,)``.

    Shape:
        (batch, c_in, *space, blades) -> (batch, c_out, *space, blades)

    Example:
        >>> import torch
        >>> from cscnn import CliffordAlgebra
        >>> layer = MVLinear(CliffordAlgebra((1, 1)), 3, 5)
        >>> layer(torch.randn(2, 3, 16, 16, 4)).shape
        torch.Size([2, 5, 16, 16, 4])
    """

    def __init__(
        self, algebra: CliffordAlgebra, c_in: int, c_out: int, bias: bool | Sequence[int] = True
    ):
        super().__init__()
        self.algebra: CliffordAlgebra = check_algebra(algebra)
        self.c_in: int = check_int("c_in", c_in, low=1)
        self.c_out: int = check_int("c_out", c_out, low=1)
        self.weight = nn.Parameter(torch.empty(self.c_out, self.c_in, algebra.n_grades))
        self.bias: nn.Parameter | None = (
            nn.Parameter(torch.empty(self.c_out)) if check_bias(bias, algebra) else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights with variance 1 / c_in."""
        nn.init.normal_(self.weight, std=1 / math.sqrt(self.c_in))
        if self.bias is not None:
            nn.init.normal_(self.bias, std=0.1 / math.sqrt(self.c_in))

    def forward(self, x: Tensor) -> Tensor:
        check_field(x, self.algebra, self.c_in, self.weight)
        y = from_planes(mix_channels(to_planes(x), self.weight, self.algebra), like=x)
        return y if self.bias is None else add_scalar_bias(y, self.bias)

    def extra_repr(self) -> str:
        return f"{self.algebra}, {self.c_in}, {self.c_out}, bias={self.bias is not None}"


def add_scalar_bias(x: Tensor, bias: Tensor) -> Tensor:
    """Add bias (channels,) to the scalar blade of a field (batch, channels, *space, blades)."""
    column = bias.to(x.dtype).reshape(-1, *(1,) * (x.dim() - 2))
    return x + nn.functional.pad(column, (0, x.shape[-1] - 1))


def check_bias(bias: bool | Sequence[int], algebra: CliffordAlgebra) -> bool:
    """Whether there is a bias; raise if it would sit on a blade that O(p, q) moves."""
    if isinstance(bias, bool):
        return bias
    if isinstance(bias, str) or not isinstance(bias, Sequence):
        raise TypeError(f"bias must be True, False or a sequence of blade indices, got {bias!r}")
    blades = tuple(bias)
    broken = [b for b in blades if b != 0]
    if broken:
        names = [algebra.blade_names[b] if 0 <= b < algebra.n_blades else b for b in broken]
        raise ValueError(
            f"a constant bias on blades {broken} ({names}) is not invariant under "
            f"O{algebra.signature} and would break equivariance: only blade 0 (the scalar) may "
            "have a bias"
        )
    return bool(blades)
