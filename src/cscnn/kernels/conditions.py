"""Invariants of several multivectors: what radial functions may know of a field.

A kernel that depends on multivectors c is steerable if K(gv | ρ(g) c) = ρ(g) K(v | c) ρ(g)^-1. With
radial functions of the orbit of v and of invariants of c, every sum of basis kernels is.
"""

from __future__ import annotations

import torch
from torch import Tensor

from cscnn._util.checks import check_choice
from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.constants import constant
from cscnn.algebra.group import GROUPS, keeps_orientation
from cscnn.kernels.orbits import invariants
from cscnn.nn.functional import widened


def multivector_invariants(x: Tensor, algebra: CliffordAlgebra, group: str = "O") -> Tensor:
    """Invariants of multivectors under a group: f(ρ(g) x) = f(x) for all g of it.

    - the scalars x_i^(0),
    - the inner products <x_i, x_j>_k of every grade k > 0, for i ≤ j,
    - for ``"SO"`` and ``"SO+"`` the same of x_i and the duals x_j I,
    - for ``"O+"`` and ``"SO+"`` the squares of the vectors x_i^(1) that are not space-like, with
      the sign of their time: they tell the future from the past, continuously.

    Each as asinh(f), which is f for small f, and ± log(2|f|) for large ones.

    Shape:
        (..., channels, blades) -> (..., features)

    Example:
        >>> x = torch.tensor([[3.0, 0.0, 4.0, 0.0]])
        >>> torch.sinh(multivector_invariants(x, CliffordAlgebra((1, -1))))  # x^(0), <x, x>_1, _2
        tensor([  3.0000, -16.0000,   0.0000])
    """
    algebra.check(x)
    check_choice("group", group, GROUPS)
    if x.dim() < 2:
        shape = f"(..., channels, {algebra.n_blades})"
        raise ValueError(f"multivectors have shape {shape}, got {tuple(x.shape)}")
    dtype, x = x.dtype, widened(x)
    partners = torch.cat([x, algebra.undual(x)], -2) if keeps_orientation(group) else x
    first, second = torch.triu_indices(x.shape[-2], partners.shape[-2], device=x.device)
    signs = constant(algebra.form, x.dtype, x.device)
    products = x[..., first, :] * signs * partners[..., second, :]
    by_grade = products.split(algebra.grade_sizes, -1)
    features = [partners[..., 0], *(part.sum(-1) for part in by_grade[1:])]
    if group.endswith("+"):
        vectors = algebra.grade(x, 1)
        at = invariants(vectors.reshape(-1, algebra.dim), algebra, group)
        features.append((at.side * at.eta.abs()).reshape(vectors.shape[:-1]))
    return torch.asinh(torch.cat(features, -1)).to(dtype)


def count_invariants(channels: int, algebra: CliffordAlgebra, group: str = "O") -> int:
    """Number of features of `multivector_invariants`."""
    nothing = torch.zeros(channels, algebra.n_blades, device="cpu")
    return multivector_invariants(nothing, algebra, group).shape[-1]
