"""Basis blades of Cl(p, q) and their products, in plain Python integers.

A blade is a set of axes, written as a bit mask: bit i is set when e_{i+1} is a factor. Everything
else in the library is derived from the three facts computed here: the order of the blades, the
sign of a product of two blades, and which grades a product reaches.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from itertools import combinations

MAX_DIM = 6

#: One non-zero entry of a bilinear product: (left blade, right blade, output blade, coefficient).
Term = tuple[int, int, int, float]


def check_metric(metric: object) -> tuple[int, ...]:
    """Return ``metric`` as a tuple of +1/-1 integers, or say what is wrong with it."""
    if isinstance(metric, str) and set(metric) <= {"+", "-"}:
        metric = [1 if sign == "+" else -1 for sign in metric]
    if isinstance(metric, str | set | frozenset) or not isinstance(metric, Iterable):
        raise TypeError(f"metric must list one sign per axis, e.g. (1, -1) or '+-', got {metric!r}")
    entries = tuple(metric)
    signs = []
    for axis, entry in enumerate(entries):
        try:
            if isinstance(entry, bool):
                raise TypeError
            sign = operator.index(entry)
        except TypeError:
            raise TypeError(
                f"metric entries must be the integers +1 or -1, got {entry!r} "
                f"({type(entry).__name__}) for axis {axis} of {entries!r}"
            ) from None
        if sign == 0:
            raise ValueError(
                f"metric {entries!r} is degenerate: axis {axis} has sign 0, expected +1 or -1"
            )
        if sign not in (1, -1):
            raise ValueError(
                f"metric entries must be +1 or -1, got {sign} for axis {axis} of {entries!r}; "
                "to give the numbers p and q use CliffordAlgebra.from_signature(p, q)"
            )
        signs.append(sign)
    if not 1 <= len(signs) <= MAX_DIM:
        raise ValueError(
            f"metric must have between 1 and {MAX_DIM} entries, got {len(signs)}: {entries!r}"
        )
    return tuple(signs)


def ordered_blades(dim: int) -> tuple[tuple[int, ...], ...]:
    """All blades as tuples of axes, by grade and then lexicographically: (), (0,), ..., (0, 1)."""
    return tuple(axes for k in range(dim + 1) for axes in combinations(range(dim), k))


def bit_mask(axes: Iterable[int]) -> int:
    """The set of axes as an integer with those bits set."""
    return sum(1 << axis for axis in axes)


def blade_name(axes: tuple[int, ...]) -> str:
    """``(0, 2)`` -> ``'e13'``; the scalar is ``'1'``."""
    return "e" + "".join(str(axis + 1) for axis in axes) if axes else "1"


def product_sign(metric: tuple[int, ...], a: int, b: int) -> int:
    """Sign of e_a e_b: (-1)^(swaps that sort the factors) times the squares of shared axes."""
    sign = 1
    for axis, square in enumerate(metric):
        if b >> axis & 1:
            if (a >> (axis + 1)).bit_count() % 2:
                sign = -sign
            if a >> axis & 1:
                sign *= square
    return sign


def product_terms(metric: tuple[int, ...]) -> tuple[Term, ...]:
    """The n^2 non-zero terms of the geometric product: each pair of blades has one output."""
    masks = [bit_mask(axes) for axes in ordered_blades(len(metric))]
    index = {mask: i for i, mask in enumerate(masks)}
    return tuple(
        (i, j, index[a ^ b], product_sign(metric, a, b))
        for i, a in enumerate(masks)
        for j, b in enumerate(masks)
    )


def admissible_paths(metric: tuple[int, ...]) -> tuple[tuple[int, int, int], ...]:
    """Grade triples (left, out, right) that the geometric product reaches, in C order.

    Two blades of grades m and n share any number s of axes with 0 ≤ s ≤ m, n and m + n - s ≤ d,
    and their product has grade m + n - 2s.
    """
    d = len(metric)
    shared = {
        (m, m + n - 2 * s, n)
        for m in range(d + 1)
        for n in range(d + 1)
        for s in range(max(0, m + n - d), min(m, n) + 1)
    }
    return tuple(sorted(shared))
