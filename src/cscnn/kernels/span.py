"""What a vector generates: span{1, v}, or span{1, v, (v⊗v)_0} with tensors, as an algebra."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.constants import constant
from cscnn.algebra.tables import product_terms


@dataclass(frozen=True)
class Span:
    """span{1, v} or span{1, v, S} as an algebra over the functions of η.

    Every part of a product is a sum of as many terms: factor · η^power · left part · right part.
    Tables of numbers times powers of η have a column for each of 1, η, η².

    Attributes:
        algebra: whose multivectors it has.
        grades: of the parts.
        squares: <part, part>, (parts, 3).
        left, right: the parts in each term as 1 among zeros, (terms, parts); those that make the
            first part come first.
        factors: of the terms, (terms, 3); zeros where a part has fewer terms than another.
        alive: (terms + parts, paths + grades), √½ for the grade path of each term, and behind the
            terms of each part for its grade.
        first: √½ for f0 alone, (parts, 1), for biases.
        select: 1 for the grade of each part, (grades, parts).
    """

    algebra: CliffordAlgebra
    grades: tuple[int, ...]
    squares: tuple[tuple[float, ...], ...]
    left: tuple[tuple[float, ...], ...]
    right: tuple[tuple[float, ...], ...]
    factors: tuple[tuple[float, ...], ...]
    alive: tuple[tuple[float, ...], ...]
    first: tuple[tuple[float, ...], ...]
    select: tuple[tuple[float, ...], ...]
    _arrays: dict[Any, Tables] = field(default_factory=dict, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are the shared one."""
        return span, (self.algebra,)

    def tables(self, like: Any) -> Tables:
        """All tables as arrays: tensors like a tensor, or numpy's like one of numpy's."""
        names = Tables._fields[1:]
        if isinstance(like, Tensor):
            tables = (constant(getattr(self, name), like.dtype, like.device) for name in names)
            return Tables(torch, *tables)
        if like.dtype not in self._arrays:
            arrays = (np.array(getattr(self, name), like.dtype) for name in names)
            self._arrays[like.dtype] = Tables(np, *arrays)
        return self._arrays[like.dtype]


class Tables(NamedTuple):
    """Tables of a `Span` as arrays of torch or of numpy, and the module that they are of."""

    xp: Any
    squares: Any
    left: Any
    right: Any
    factors: Any
    alive: Any
    first: Any
    select: Any

    def at(self, eta: Any) -> tuple[Any, Any]:
        """Factors of the terms and norms of the parts at values of η: (terms or parts, M, 1)."""
        powers = self.xp.stack([self.xp.ones_like(eta), eta, eta * eta])
        factors = (self.factors @ powers)[..., None]
        squares = (self.squares @ powers)[..., None]
        # Bounded below for the sake of gradients.
        return factors, self.xp.sqrt(self.at_least(squares, 1e-30))

    def at_least(self, x: Any, low: float) -> Any:
        """The larger one of x and a number."""
        return x.clamp(min=low) if self.xp is torch else np.maximum(x, x.dtype.type(low))

    def sigmoid(self, x: Any) -> Any:
        """1 / (1 + exp(-x))"""
        return torch.sigmoid(x) if self.xp is torch else 0.5 * np.tanh(0.5 * x) + 0.5


def _times_power(factor: float, power: int) -> tuple[float, ...]:
    return tuple(factor * (k == power) for k in range(3))


@cache
def span(algebra: CliffordAlgebra) -> Span:
    """Its products, read off at v = e_1."""
    sign = algebra.metric[0]
    parts: list[dict[int, float]] = [{0: 1.0}, {1: 1.0}]
    grades = [0, 1]
    squares = [_times_power(1.0, 0), _times_power(1.0, 1)]
    if algebra.symmetric:
        grades.append(algebra.dim + 1)
        parts.append(times(algebra, parts[1], parts[1], grades[2]))
        squares.append(_times_power(times(algebra, parts[2], parts[2], 0)[0], 2))
    names = [*algebra.paths, *range(algebra.n_grades)]  # of the columns of both weights
    rows: list[list[tuple[int, int, tuple[float, ...], int]]] = []
    for out, grade in enumerate(grades):
        row = []
        for left, right in product(range(len(parts)), repeat=2):
            image = times(algebra, parts[left], parts[right], grade)
            factor = sum(image.get(c, 0) * x for c, x in parts[out].items())
            factor /= sum(x * x for x in parts[out].values())
            if abs(factor) > 1e-12:
                power = (left + right - out) // 2  # parts are of degree 0, 1 and 2 in v
                path = names.index((grades[left], grade, grades[right]))
                row.append((left, right, _times_power(factor * sign**power, power), path))
        rows.append(row)
    most = max(map(len, rows))
    padded = [row + [(0, 0, _times_power(0.0, 0), -1)] * (most - len(row)) for row in rows]
    lefts, rights, factors, _ = zip(*(term for row in padded for term in row), strict=True)
    columns = [
        column
        for grade, row in zip(grades, padded, strict=True)
        for column in (*(path for *_, path in row), names.index(grade))
    ]
    root = math.sqrt(0.5)
    return Span(
        algebra,
        tuple(grades),
        tuple(squares),
        _one_hot(lefts, len(grades)),
        _one_hot(rights, len(grades)),
        factors,
        tuple(tuple(root * (i == column) for i in range(len(names))) for column in columns),
        ((root,), *[(0.0,)] * (len(grades) - 1)),
        tuple(zip(*_one_hot(tuple(grades), algebra.n_grades), strict=True)),
    )


def _one_hot(places: tuple[int, ...], size: int) -> tuple[tuple[float, ...], ...]:
    """A row for each place, with 1 there and else zeros."""
    return tuple(tuple(float(i == place) for i in range(size)) for place in places)


def times(
    algebra: CliffordAlgebra, x: dict[int, float], y: dict[int, float], grade: int
) -> dict[int, float]:
    """The part of a grade of the geometric product, of components {blade: value}."""
    result: dict[int, float] = {}
    for a, b, c, factor in product_terms(algebra.metric, algebra.symmetric):
        if a in x and b in y and algebra.grades[c] == grade:
            result[c] = result.get(c, 0.0) + factor * x[a] * y[b]
    return result
