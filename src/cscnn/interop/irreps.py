"""Multivectors of three dimensions as irreps of O(3), in the layout of e3nn, and back.

The grades 0, 1, 2, 3 are the irreps 0e, 1o, 1e, 0o, and symmetric traceless tensors are 2e. e3nn
orders the components of 1o and 1e as x, y, z; a bivector has its axial vector (x, y, z) as
(z, -y, x) on e12, e13, e23. Of 2e they are those of `TENSORS`, which are orthonormal, so lengths
stay. Names of irreps are texts here, so e3nn need not be installed.
"""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import torch
from torch import Tensor

from cscnn._util.checks import check_int
from cscnn.algebra import CliffordAlgebra, tensors
from cscnn.algebra.checks import check_dtype
from cscnn.algebra.clifford import check_algebra
from cscnn.algebra.constants import constant

#: Irreps of O(3) and the grades that transform like them.
GRADES = {"0e": 0, "1o": 1, "1e": 2, "0o": 3, "2e": 4}
#: For each grade, components of irreps in the order of blades: where each is, and its sign.
ORDER = {0: (0,), 1: (0, 1, 2), 2: (2, 1, 0), 3: (0,)}
SIGNS = {0: (1,), 1: (1, 1, 1), 2: (1, -1, 1), 3: (1,)}
#: T^ij of the components of 2e in e3nn's order: xz, xy, 2 yy - xx - zz, yz, zz - xx, normalised.
TENSORS: tuple[tuple[tuple[int, ...], ...], ...] = (
    ((0, 0, 1), (0, 0, 0), (1, 0, 0)),
    ((0, 1, 0), (1, 0, 0), (0, 0, 0)),
    ((-1, 0, 0), (0, 2, 0), (0, 0, -1)),
    ((0, 0, 0), (0, 0, 1), (0, 1, 0)),
    ((-1, 0, 0), (0, 0, 0), (0, 0, 1)),
)


def multivector_irreps(channels: int, symmetric: bool = False) -> str:
    """The irreps of a number of multivectors of three dimensions, as e3nn spells them.

    Args:
        channels: number of multivectors.
        symmetric: whether they have symmetric tensors.

    Example:
        >>> multivector_irreps(8)
        '8x0e+8x1o+8x1e+8x0o'
    """
    check_int("channels", channels, low=1)
    names = [name for name in GRADES if symmetric or name != "2e"]
    return "+".join(f"{channels}x{name}" for name in names)


def to_irreps(algebra: CliffordAlgebra, x: Tensor, irreps: object = None) -> Tensor:
    """Multivectors as flat features of e3nn; ρ(g) becomes ``Irreps(irreps).D_from_matrix(g)``.

    Args:
        algebra: of three dimensions, all of one sign.
        x: (..., channels, 8), or (..., channels, 13) with symmetric tensors.
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
        raise ValueError(
            f"x must have shape (..., channels, {algebra.n_blades}), got {tuple(x.shape)}"
        )
    channels = x.shape[-2]
    parts, used = [], dict.fromkeys(GRADES.values(), 0)
    every = multivector_irreps(channels, algebra.symmetric)
    for count, grade in _parse(every if irreps is None else irreps, algebra):
        start, used[grade] = used[grade], used[grade] + count
        if used[grade] > channels:
            raise ValueError(
                f"{irreps} has {used[grade]} irreps of grade {grade}, x has {channels} channels"
            )
        part = algebra.grade(x, grade)[..., start : used[grade], :]
        parts.append(_to_e3nn(part, grade, algebra).flatten(-2))
    return torch.cat(parts, -1)


def from_irreps(algebra: CliffordAlgebra, features: Tensor, irreps: object) -> Tensor:
    """Flat features of e3nn as multivectors: the inverse of `to_irreps`.

    Args:
        algebra: of three dimensions, all of one sign.
        features: (..., components).
        irreps: of the features, an ``e3nn.o3.Irreps`` or its text, such as ``"8x0e+4x1o"``. Only
            0e, 1o, 1e and 0o are multivectors, and 2e is a symmetric tensor.

    Returns:
        (..., channels, 8), or 13 with symmetric tensors. The i-th copy of every irrep is in channel
        i, and there are as many channels as the most frequent irrep has copies. What is missing is
        zero.

    Example:
        >>> alg = CliffordAlgebra((1, 1, 1))
        >>> from_irreps(alg, torch.tensor([1.0, 2.0, 3.0]), "1e")  # on e12, e13, e23
        tensor([[ 0.,  0.,  0.,  0.,  3., -2.,  1.,  0.]])
    """
    _check_space(algebra)
    check_dtype(features, "features")
    listed = _parse(irreps, algebra)
    total = sum(count * algebra.grade_sizes[grade] for count, grade in listed)
    if features.dim() == 0 or features.shape[-1] != total:
        raise ValueError(
            f"the last axis of features must hold the {total} components of {irreps}, got shape "
            f"{tuple(features.shape)}"
        )
    copies: dict[int, list[Tensor]] = {grade: [] for grade in range(algebra.n_grades)}
    start = 0
    for count, grade in listed:
        size = algebra.grade_sizes[grade]
        part = features[..., start : start + count * size]
        copies[grade].append(_from_e3nn(part.unflatten(-1, (count, size)), grade, algebra))
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


def _to_e3nn(components: Tensor, grade: int, algebra: CliffordAlgebra) -> Tensor:
    """Components of a grade in e3nn's basis."""
    if grade not in ORDER:
        return components @ _change_of_basis(components, algebra).mT
    return _swapped(components, grade)


def _from_e3nn(components: Tensor, grade: int, algebra: CliffordAlgebra) -> Tensor:
    """Inverse of `_to_e3nn`."""
    if grade not in ORDER:
        return components @ _change_of_basis(components, algebra)
    return _swapped(components, grade)


def _change_of_basis(like: Tensor, algebra: CliffordAlgebra) -> Tensor:
    """From our tensors to e3nn's, orthogonal, (5, 5)."""
    return constant(_scalar_products(algebra.metric), like.dtype, like.device)


@cache
def _scalar_products(metric: tuple[int, ...]) -> tuple[tuple[float, ...], ...]:
    theirs = np.array(TENSORS) / np.linalg.norm(TENSORS, axis=(1, 2))[:, None, None]
    products = np.einsum("aij,bij->ab", theirs, tensors.basis(metric))
    return tuple(map(tuple, products.tolist()))


def _swapped(components: Tensor, grade: int) -> Tensor:
    """Components of a grade from x, y, z to blades, or back: both are the same."""
    order = constant(ORDER[grade], torch.int64, components.device)
    return components[..., order] * constant(SIGNS[grade], components.dtype, components.device)


def _parse(irreps: object, algebra: CliffordAlgebra) -> list[tuple[int, int]]:
    """Number and grade of each term."""
    known = {name: grade for name, grade in GRADES.items() if grade < algebra.n_grades}
    terms = []
    for term in str(irreps).replace(" ", "").split("+"):
        match = re.fullmatch(r"(?:(\d+)x)?(\d+[eo])", term)
        if match is None:
            raise ValueError(f"irreps must be like '8x0e+4x1o', got {str(irreps)!r}")
        count, name = match.groups()
        if name not in known:
            hint = f"; make {algebra} with symmetric=True for it" if name in GRADES else ""
            raise ValueError(
                f"{name} of {irreps} is no multivector: grades are {', '.join(known)}{hint}"
            )
        terms.append((int(count or 1), known[name]))
    return terms
