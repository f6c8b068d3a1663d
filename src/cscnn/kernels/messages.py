"""Steerable kernels applied along edges, without their matrices.

A steerable kernel is K(v) = sum_j R_j(v) E_j(v), with radial numbers R_j for each pair of channels
and basis kernels E_j that do not know channels. Along an edge it is cheaper to let the few numbers
of E_j(v) f_m (the message: 4d - 2 numbers or so for each of 2^d blades' grades) meet the radial
numbers than to build the matrix of all channels and blades. A message has a component for each
output blade C and each basis kernel j that maps to the grade of C, in this order.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from torch import Tensor

from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.constants import constant
from cscnn.kernels.basis import Element, SteerableBasis, monomials_up_to

Rows = tuple[tuple[float, ...], ...]


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
    """

    def __init__(self, basis: SteerableBasis):
        self.algebra = basis.algebra
        self._recipe = (basis.algebra, basis.elements)
        n = self.algebra.n_blades
        parts: list[Part] = []
        rows: dict[tuple[int, int], int] = {}
        place = 0
        for grade, blades in enumerate(self.algebra.grade_sizes):
            elements = [j for j, out in enumerate(basis.output_grades) if out == grade]
            first = self.algebra.grade_slice(grade).start
            for blade in range(first, first + blades):
                for j in elements:
                    rows[blade, j] = len(rows)
            stop = place + blades * len(elements)
            parts.append(Part(place, stop, blades, tuple(elements)))
            place = stop
        self.parts = tuple(parts)
        self.size = place
        self.blades, self.elements = (tuple(key[i] for key in rows) for i in (0, 1))
        self.matrix = _matrix(basis, tuple(rows.items()), self.size * n)
        self._monomials = basis.monomials

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are the shared one."""
        return _shared, self._recipe

    def operators(self, points: Tensor) -> Tensor:
        """All E_j(v) at points (N, d), as (N, components, blades)."""
        table = constant(self.matrix, points.dtype, points.device)
        return (self._monomials(points) @ table).unflatten(1, (self.size, -1))


def _matrix(
    basis: SteerableBasis, rows: tuple[tuple[tuple[int, int], int], ...], width: int
) -> Rows:
    n = basis.algebra.n_blades
    index = dict(rows)
    count = len(monomials_up_to(basis.algebra.dim, basis.degree))
    matrix = [[0.0] * width for _ in range(count)]
    for entry, terms in enumerate(basis.terms()):
        out, column = divmod(entry, n)
        for element, monomial, sign in terms:
            matrix[monomial][index[out, element] * n + column] += sign
    return tuple(tuple(row) for row in matrix)


@cache
def _shared(algebra: CliffordAlgebra, elements: tuple[Element, ...]) -> MessageTable:
    kinds = tuple(dict.fromkeys(kind for kind, _, _ in elements))
    special = any(dual for _, _, dual in elements)
    return MessageTable(SteerableBasis(algebra, special, kinds))


def message_table(basis: SteerableBasis) -> MessageTable:
    """The table of a basis, made once."""
    return _shared(basis.algebra, basis.elements)
