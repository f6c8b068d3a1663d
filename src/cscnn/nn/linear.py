"""`MVLinear`: channel mixing that commutes with O(p, q) or SO(p, q)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from cscnn._util.checks import check_int
from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.clifford import check_algebra
from cscnn.algebra.group import check_group, keeps_orientation
from cscnn.nn.functional import check_field, from_planes, mix_channels, to_planes


class MVLinear(nn.Module):
    """Mixes channels with one weight matrix per grade, for SO(p, q) two (paper, Def. 2.13).

    ::

        y_k = W_k x_k                     O(p, q)
        y_k = W_k x_k + V_k (x I)_k       SO(p, q), I the pseudoscalar

    Commutes with ρ(g) for every g of the group: ρ(g) acts on each grade alone, and
    (ρ(g) x) I = det(g) ρ(g)(x I). That is all linear maps that do: for each pair of channels d + 1
    for O and 2 (d + 1) for SO. O+ has no others than O, and SO+ no others than SO. What commutes
    with boosts of all rapidities commutes with that of rapidity iπ, which reverses time together
    with an axis of space. Symmetric tensors have one map, in two dimensions of SO two.

    Args:
        algebra: the Clifford algebra.
        c_in, c_out: channels.
        bias: add a learnt constant to the scalar blade. A sequence of blade indices is accepted
            only if a constant there is invariant: ``(0,)``, and for SO ``(0, 2**dim - 1)``.
        group: ``"O"``, ``"SO"``, or in spacetime ``"O+"`` or ``"SO+"``.

    Attributes:
        weight: W, (c_out, c_in, grades), or [W V], (c_out, 2 c_in, grades).
        bias: (c_out,), or (c_out, 2) for scalars and pseudoscalars.

    Shape:
        (batch, c_in, *space, blades) -> (batch, c_out, *space, blades)

    Example:
        >>> import torch
        >>> from cscnn import CliffordAlgebra
        >>> layer = MVLinear(CliffordAlgebra((1, 1)), 3, 5, group="SO")
        >>> layer(torch.randn(2, 3, 16, 16, 4)).shape
        torch.Size([2, 5, 16, 16, 4])
    """

    def __init__(
        self,
        algebra: CliffordAlgebra,
        c_in: int,
        c_out: int,
        bias: bool | Sequence[int] = True,
        group: str = "O",
    ):
        super().__init__()
        self.algebra: CliffordAlgebra = check_algebra(algebra)
        self.c_in: int = check_int("c_in", c_in, low=1)
        self.c_out: int = check_int("c_out", c_out, low=1)
        self.group: str = check_group(algebra, group)
        terms = 2 if keeps_orientation(group) else 1
        self.weight = nn.Parameter(torch.empty(self.c_out, terms * self.c_in, algebra.n_grades))
        shape = bias_shape(bias, self.c_out, algebra, group)
        self.bias: nn.Parameter | None = None if shape is None else nn.Parameter(torch.empty(shape))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights with variance 1 / c_in, or half of it for two terms."""
        std = 1 / math.sqrt(self.weight.shape[1])
        nn.init.normal_(self.weight, std=std)
        if keeps_orientation(self.group) and self.algebra.symmetric and self.algebra.dim > 2:
            with torch.no_grad():
                self.weight[..., -1] *= math.sqrt(2)  # x I has no tensors, V none of their weights
        if self.bias is not None:
            nn.init.normal_(self.bias, std=0.1 * std)

    def forward(self, x: Tensor) -> Tensor:
        check_field(x, self.algebra, self.c_in, self.weight)
        y = from_planes(mix_channels(to_planes(x), self.weight, self.algebra), like=x)
        return y if self.bias is None else add_bias(y, self.bias, self.algebra)

    def extra_repr(self) -> str:
        group = "" if self.group == "O" else f", group={self.group!r}"
        return f"{self.algebra}, {self.c_in}, {self.c_out}, bias={self.bias is not None}{group}"


def constant_blades(algebra: CliffordAlgebra, *groups: str) -> tuple[int, ...]:
    """The blades whose constants are invariant under all of these groups."""
    blades = (0, algebra.grade_slice(algebra.dim).start)
    return blades if all(map(keeps_orientation, groups)) else blades[:1]


def constants(bias: Tensor, algebra: CliffordAlgebra) -> Tensor:
    """A bias on scalars (channels,), or on scalars and pseudoscalars (channels, 2), as multivectors
    (channels, blades)."""
    rest = algebra.n_blades - 1
    if bias.dim() == 1:
        return nn.functional.pad(bias.unsqueeze(-1), (0, rest))
    columns = bias.split(1, -1)
    parts = [
        nn.functional.pad(column, (blade, rest - blade))
        for column, blade in zip(columns, constant_blades(algebra, "SO"), strict=False)
    ]
    return sum(parts[1:], parts[0])


def add_bias(x: Tensor, bias: Tensor, algebra: CliffordAlgebra) -> Tensor:
    """Add a bias, see `constants`, to a field (batch, channels, *space, blades)."""
    added = constants(bias.to(x.dtype), algebra)
    return x + added.reshape(-1, *(1,) * (x.dim() - 3), x.shape[-1])


def bias_shape(
    bias: bool | Sequence[int], channels: int, algebra: CliffordAlgebra, group: str = "O"
) -> tuple[int, ...] | None:
    """Shape of a bias, None for none; raise if it would sit on a blade that the group moves."""
    if isinstance(bias, bool):
        return (channels,) if bias else None
    if isinstance(bias, str) or not isinstance(bias, Sequence):
        raise TypeError(f"bias must be True, False or a sequence of blade indices, got {bias!r}")
    blades, allowed = tuple(bias), constant_blades(algebra, group)
    broken = [b for b in blades if b not in allowed]
    if broken:
        names = [algebra.blade_names[b] if 0 <= b < algebra.n_blades else b for b in broken]
        last = "" if len(allowed) == 1 else f" and blade {allowed[-1]} (the pseudoscalar)"
        raise ValueError(
            f"a constant bias on blades {broken} ({names}) is not invariant under "
            f"{group}{algebra.signature} and would break equivariance: only blade 0 (the scalar)"
            f"{last} may have a bias"
        )
    if blades and 0 not in blades:
        raise ValueError(
            f"a bias on the pseudoscalar comes with one on the scalar: bias={allowed}, got {blades}"
        )
    return (channels, 2)[: len(set(blades))] if blades else None
