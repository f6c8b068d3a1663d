"""Multivectors of three dimensions as irreps of O(3), in the layout of e3nn, and back.

The grades 0, 1, 2, 3 are the irreps 0e, 1o, 1e, 0o. e3nn orders the components of 1o and 1e as
x, y, z; a bivector has its axial vector (x, y, z) as (z, -y, x) on e12, e13, e23. Names of irreps
are texts here, so e3nn need not be installed.
"""

from __future__ import annotations

import re

import torch
from torch import Tensor

from cscnn._util.checks import check_int
from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.checks import check_dtype
from cscnn.algebra.clifford import check_algebra
from cscnn.algebra.constants import constant

#: Irreps of O(3) and the grades that transform like them.
GRADES = {"0e": 0, "1o": 1, "1e": 2, "0o": 3}
#: For each grade, components of irreps in the order of blades: where each is, and its sign.
ORDER = {0: (0,), 1: (0, 1, 2), 2: (2, 1, 0), 3: (0,)}
SIGNS = {0: (1,), 1: (1, 1, 1), 2: (1, -1, 1), 3: (1,)}


def multivector_irreps(channels: int) -> str:
    """The irreps of a number of multivectors of three dimensions, as e3nn spells them.

    Example:
        >>> multivector_irreps(8)
        '8x0e+8x1o+8x1e+8x0o'
    """
    check_int("channels", channels, low=1)
    return "+".join(f"{channels}x{name}" for name in GRADES)


def to_irreps(algebra: CliffordAlgebra, x: Tensor, irreps: object = None) -> Tensor:
    """Multivectors as flat features of e3nn; ρ(g) becomes ``Irreps(irreps).D_from_matrix(g)``.

    Args:
        algebra: of three dimensions, all of one sign.
        x: (..., channels, 8).
        irreps: an ``e3nn.o3.Irreps`` or its text, such as ``"8x0e+4x1o"``: of each irrep as many
            as there are, from the first channels; other components are left out. By default all,
            `multivector_irreps`.

    Returns:
        (..., components), all copies of an irrep side by side.

    Example:
        >>> alg = CliffordAlgebra((1, 1, 1))
        >>> velocity = alg.embed(torch.tensor([[1.0, 2.0, 3.0]]), grade=1)
        >>> to_irreps(alg, velocity, "1x1o")
        tensor([1., 2., 3.])
    """
    _check_space(algebra)
    algebra.check(x)
    if x.dim() < 2:
        raise ValueError(f"x must have shape (..., channels, 8), got {tuple(x.shape)}")
    channels = x.shape[-2]
    parts, used = [], dict.fromkeys(GRADES.values(), 0)
    for count, grade in _parse(multivector_irreps(channels) if irreps is None else irreps):
        start, used[grade] = used[grade], used[grade] + count
        if used[grade] > channels:
            raise ValueError(
                f"{irreps} has {used[grade]} irreps of grade {grade}, x has {channels} channels"
            )
        part = algebra.grade(x, grade)[..., start : used[grade], :]
        parts.append(_swapped(part, grade).flatten(-2))
    return torch.cat(parts, -1)


def from_irreps(algebra: CliffordAlgebra, features: Tensor, irreps: object) -> Tensor:
    """Flat features of e3nn as multivectors: the inverse of `to_irreps`.

    Args:
        algebra: of three dimensions, all of one sign.
        features: (..., components).
        irreps: of the features, an ``e3nn.o3.Irreps`` or its text, such as ``"8x0e+4x1o"``. Only
            0e, 1o, 1e and 0o are multivectors.

    Returns:
        (..., channels, 8). The i-th copy of every irrep is in channel i, and there are as many
        channels as the most frequent irrep has copies. What is missing is zero.

    Example:
        >>> alg = CliffordAlgebra((1, 1, 1))
        >>> from_irreps(alg, torch.tensor([1.0, 2.0, 3.0]), "1e")  # on e12, e13, e23
        tensor([[ 0.,  0.,  0.,  0.,  3., -2.,  1.,  0.]])
    """
    _check_space(algebra)
    check_dtype(features, "features")
    listed = _parse(irreps)
    total = sum(count * algebra.grade_sizes[grade] for count, grade in listed)
    if features.dim() == 0 or features.shape[-1] != total:
        raise ValueError(
            f"the last axis of features must hold the {total} components of {irreps}, got shape "
            f"{tuple(features.shape)}"
        )
    copies: dict[int, list[Tensor]] = {grade: [] for grade in GRADES.values()}
    start = 0
    for count, grade in listed:
        size = algebra.grade_sizes[grade]
        part = features[..., start : start + count * size]
        copies[grade].append(_swapped(part.unflatten(-1, (count, size)), grade))
        start += count * size
    channels = max(sum(part.shape[-2] for part in parts) for parts in copies.values())
    grades = []
    for grade, parts in copies.items():
        empty = features.new_zeros(*features.shape[:-1], channels, algebra.grade_sizes[grade])
        there = torch.cat([*parts, empty], -2)
        grades.append(there[..., :channels, :])
    return torch.cat(grades, -1)


def _check_space(algebra: CliffordAlgebra) -> None:
    if 3 not in check_algebra(algebra).signature or algebra.dim != 3:
        raise ValueError(
            f"irreps of O(3) go with CliffordAlgebra((1, 1, 1)), got {algebra}: in other "
            "dimensions and signatures grades are other representations"
        )


def _swapped(components: Tensor, grade: int) -> Tensor:
    """Components of a grade from x, y, z to blades, or back: both are the same."""
    order = constant(ORDER[grade], torch.int64, components.device)
    return components[..., order] * constant(SIGNS[grade], components.dtype, components.device)


def _parse(irreps: object) -> list[tuple[int, int]]:
    """Number and grade of each term."""
    terms = []
    for term in str(irreps).replace(" ", "").split("+"):
        match = re.fullmatch(r"(?:(\d+)x)?(\d+[eo])", term)
        if match is None:
            raise ValueError(f"irreps must be like '8x0e+4x1o', got {str(irreps)!r}")
        count, name = match.groups()
        if name not in GRADES:
            raise ValueError(
                f"{name} of {irreps} is no multivector: grades are {', '.join(GRADES)}"
            )
        terms.append((int(count or 1), GRADES[name]))
    return terms
