"""Steerable kernels applied along edges, without their matrices.

A steerable kernel is K(v) = sum_j R_j(v) E_j(v), with radial numbers R_j for each pair of channels
and basis kernels E_j that do not know channels. Along an edge it is cheaper to let the few numbers
of E_j(v) f_m (the message: 4d - 2 numbers or so for each of 2^d blades' grades) meet the radial
numbers than to build the matrix of all channels and blades. A component for each output blade C
and each basis kernel j that maps to the grade of C, in this order, makes the output.

Composing with the pseudoscalar permutes blades, up to signs, so that kernels of SO(p, q) have each
component twice. A message has it once: one of its rows makes several components.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.bilinear import BilinearTable
from cscnn.algebra.blades import Term
from cscnn.algebra.constants import constant
from cscnn.kernels.basis import Element, SteerableBasis, monomials_up_to


class Part(NamedTuple):
    """The components of a message that make one output grade.

    Attributes:
        start, stop: where they are.
        blades: number of blades of the grade.
        elements: the basis kernels that map to it.
    """

    start: int
    stop: int
    blades: int
    elements: tuple[int, ...]


class MessageTable:
    """Where the components of messages are, and what they are.

    Args:
        basis: the basis kernels.

    Attributes:
        parts: one for each output grade.
        size: number of components.
        blades, elements: output blade and basis kernel of each component.
        count: number of rows.
        rows, signs: which row makes each component, and with which factor 1 or -1.
        repeated: whether some row makes several components.
        products: the rows as a bilinear map of monomials in v and blades of a feature.
    """

    def __init__(self, basis: SteerableBasis):
        self.algebra = basis.algebra
        self._recipe = (basis.algebra, basis.elements)
        parts: list[Part] = []
        places: dict[tuple[int, int], int] = {}
        start = 0
        for grade, blades in enumerate(self.algebra.grade_sizes):
            elements = [j for j, out in enumerate(basis.output_grades) if out == grade]
            first = self.algebra.grade_slice(grade).start
            for blade in range(first, first + blades):
                for j in elements:
                    places[blade, j] = len(places)
            stop = start + blades * len(elements)
            parts.append(Part(start, stop, blades, tuple(elements)))
            start = stop
        self.parts = tuple(parts)
        self.size = start
        self.blades, self.elements = (tuple(key[i] for key in places) for i in (0, 1))
        distinct, self.rows, self.signs = _distinct(_components(basis, places))
        self.count = len(distinct)
        self.repeated = self.count < self.size
        self.monomials = basis.monomials
        n = self.algebra.n_blades
        number = len(monomials_up_to(self.algebra.dim, basis.degree))
        terms: list[Term] = []
        matrix = [[0.0] * (self.count * n) for _ in range(number)]
        for row, entries in enumerate(distinct):
            for (monomial, blade), factor in entries:
                terms.append((monomial, blade, row, factor))
                matrix[monomial][row * n + blade] = factor
        self.matrix = tuple(tuple(line) for line in matrix)
        sizes = (number, n, self.count)
        self.products = BilinearTable(terms, sizes, recipe=(_products, self._recipe))

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are the shared one."""
        return _shared, self._recipe

    def operators(self, points: Tensor) -> Tensor:
        """What makes the rows of features at points (N, d), as (N, rows, blades)."""
        table = constant(self.matrix, points.dtype, points.device)
        return (self.monomials(points) @ table).unflatten(1, (self.count, -1))

    def components(self, rows: Tensor) -> Tensor:
        """Rows (n, rows, ...) -> components (n, components, ...)."""
        if not self.repeated:
            return rows
        index = torch.tensor(self.rows, device=rows.device)
        signs = torch.tensor(self.signs, dtype=rows.dtype, device=rows.device)
        return rows.index_select(1, index) * signs.view(-1, *(1,) * (rows.dim() - 2))


#: What a component is made of: (monomial, blade of the feature) and factor.
Row = tuple[tuple[tuple[int, int], float], ...]


def _components(basis: SteerableBasis, places: dict[tuple[int, int], int]) -> list[Row]:
    """All components, in their order."""
    found: list[dict[tuple[int, int], float]] = [{} for _ in places]
    for entry, terms in enumerate(basis.terms()):
        out, column = divmod(entry, basis.algebra.n_blades)
        for element, monomial, factor in terms:
            component = found[places[out, element]]
            key = (monomial, column)
            component[key] = component.get(key, 0.0) + factor
    return [tuple(sorted(component.items())) for component in found]


def _distinct(components: list[Row]) -> tuple[list[Row], tuple[int, ...], tuple[float, ...]]:
    """Components that differ by more than a sign; which makes each, and with which sign."""
    distinct: list[Row] = []
    seen: dict[Row, tuple[int, float]] = {}
    rows, signs = [], []
    for component in components:
        sign = -1.0 if component and component[0][1] < 0 else 1.0
        key = tuple((place, round(sign * factor, 9)) for place, factor in component)
        if key not in seen:
            seen[key] = len(distinct), sign
            distinct.append(component)
        row, first = seen[key]
        rows.append(row)
        signs.append(sign * first)
    return distinct, tuple(rows), tuple(signs)


@cache
def _shared(algebra: CliffordAlgebra, elements: tuple[Element, ...]) -> MessageTable:
    kinds = tuple(dict.fromkeys(kind for kind, _, _ in elements))
    special = any(dual for _, _, dual in elements)
    return MessageTable(SteerableBasis(algebra, special, kinds))


def _products(algebra: CliffordAlgebra, elements: tuple[Element, ...]) -> BilinearTable:
    return _shared(algebra, elements).products


def message_table(basis: SteerableBasis) -> MessageTable:
    """The table of a basis, made once."""
    return _shared(basis.algebra, basis.elements)
