"""What to differentiate, along which axis, in which order: the plan behind a differential kernel.

A field is differentiated along its last axis first. With □ = η_0 ∂_0² + □', where □' is the part of
the other axes, every derivative is a sum of differences along axis 0 of fields that are there:

    ∂^e □^m  =  sum_j  binomial(m, j) η_0^j  ∂_0^(e_0 + 2j)  ∂'^e' □'^(m - j)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor

from cscnn.algebra import CliffordAlgebra
from cscnn.conv.derivatives.axes import Axis
from cscnn.conv.padding import MODES
from cscnn.kernels.differential import Derivative, operators_up_to, tap_stencils


class Term(NamedTuple):
    """One difference in a sum: factor · ∂^order of the source, along the axis of the level."""

    source: int
    order: int
    factor: int


#: For each field that a level makes, the terms that it is the sum of.
Level = tuple[tuple[Term, ...], ...]


@cache
def levels(derivatives: tuple[Derivative, ...], metric: tuple[int, ...]) -> tuple[Level, ...]:
    """What is done along each axis. The last axis starts from the field, its only source.

    Axis 0 makes the derivatives, in their order. The other axes make the sources of the axis
    before. Terms that do not differentiate come first.
    """
    result, wanted = [], list(derivatives)
    for axis, sign in enumerate(metric):
        sources: dict[Derivative, int] = {}
        level = []
        for exponents, boxes in wanted:
            terms = []
            for j in range(boxes + 1):
                rest, factor = _simplified(exponents[1:], boxes - j, metric[axis + 1 :])
                if factor:
                    source = sources.setdefault(rest, len(sources))
                    factor *= math.comb(boxes, j) * sign**j
                    terms.append(Term(source, exponents[0] + 2 * j, factor))
            level.append(tuple(sorted(terms, key=lambda term: term.order)))
        result.append(tuple(level))
        wanted = list(sources)
    return tuple(result)


def _simplified(
    exponents: tuple[int, ...], boxes: int, metric: tuple[int, ...]
) -> tuple[Derivative, int]:
    """The same derivative with a factor: along one axis □ is ±∂², along none it is zero."""
    if len(metric) == 0:
        return Derivative((), 0), int(boxes == 0)
    if len(metric) == 1:
        return Derivative((exponents[0] + 2 * boxes,), 0), metric[0] ** boxes
    return Derivative(exponents, boxes), 1


class Use(NamedTuple):
    """Where a derivative of a blade is added: to which blade of which grade, of which operator."""

    grade: int
    blade: int
    operator: int
    factor: float
    first: bool


class BladePlan(NamedTuple):
    """What is done with one blade of the field.

    Attributes:
        levels: how the derivatives that are used are made, see `levels`.
        orders: for each level and each of its sources, the orders that occur.
        uses: for each of these derivatives, the sums that it is part of.
    """

    levels: tuple[Level, ...]
    orders: tuple[tuple[tuple[int, ...], ...], ...]
    uses: tuple[tuple[Use, ...], ...]


class Plan(NamedTuple):
    """The operators of a kernel as sums of derivatives of blades.

    Attributes:
        blades: the plan of each source blade, in their order.
        operators: for each grade, the operators that lead to it.
        grades: for each grade, where its blades are.
    """

    blades: tuple[BladePlan, ...]
    operators: tuple[tuple[int, ...], ...]
    grades: tuple[slice, ...]


class Differences(NamedTuple):
    """The operators of a differential kernel, and how they become differences on its grid.

    Attributes:
        metric, symmetric: of the algebra.
        group, order: see `DifferentialKernel`.
        kernel_size: taps of the differences along each axis.
        steps: distance of neighbouring taps, in the units of derivatives.
        padding: points added on both sides of each axis.
        modes: how, as numbers of `MODES`.
    """

    metric: tuple[int, ...]
    symmetric: bool
    group: str
    order: int
    kernel_size: tuple[int, ...]
    steps: tuple[float, ...]
    padding: tuple[int, ...]
    modes: tuple[int, ...]

    def axes(self, grid: Sequence[int]) -> tuple[Axis, ...]:
        """The differences on a grid."""
        rows = zip(grid, self.kernel_size, self.steps, self.padding, self.modes, strict=True)
        return tuple(Axis(n, k // 2, h, self.order, p, MODES[m]) for n, k, h, p, m in rows)

    def plan(self, adjoint: bool = False) -> Plan:
        """The plan of all operators, or of their adjoints."""
        return make_plan(self.metric, self.symmetric, self.group, self.order, adjoint)

    def taps(self, weights: Tensor) -> Tensor:
        """The kernel (c_out·n, c_in·n, *kernel_size) of weights (c_out, c_in, operators)."""
        algebra = CliffordAlgebra(self.metric, self.symmetric)
        _, derivatives, table = operators_up_to(algebra, self.group, self.order)
        stencils = tap_stencils(derivatives, self.metric, self.kernel_size, self.steps)
        basis = torch.einsum("jexy,en->jxyn", table, stencils).to(weights)
        taps = torch.einsum("oij,jxyn->oxiyn", weights, basis)
        return taps.flatten(2, 3).flatten(0, 1).unflatten(-1, self.kernel_size)


@cache
def make_plan(
    metric: tuple[int, ...], symmetric: bool, group: str, order: int, adjoint: bool
) -> Plan:
    """The plan of all operators up to an order, or of their adjoints."""
    algebra = CliffordAlgebra(metric, symmetric)
    _, derivatives, table = operators_up_to(algebra, group, order)
    if adjoint:
        table = table.transpose(2, 3)
    ends = [0, *accumulate(algebra.grade_sizes)]
    grades = tuple(slice(*ends[k : k + 2]) for k in range(algebra.n_grades))
    leads_to = [table[:, :, g].flatten(1).any(1).nonzero().flatten().tolist() for g in grades]
    touched: set[tuple[int, int]] = set()
    plans = []
    for source in range(algebra.n_blades):
        uses: dict[Derivative, list[Use]] = {}
        for number, derivative in enumerate(derivatives):
            for operator, blade in table[:, number, :, source].nonzero().tolist():
                grade = next(k for k, g in enumerate(grades) if blade < g.stop)
                use = Use(
                    grade,
                    blade - grades[grade].start,
                    leads_to[grade].index(operator),
                    float(table[operator, number, blade, source]),
                    (operator, blade) not in touched,
                )
                touched.add((operator, blade))
                uses.setdefault(derivative, []).append(use)
        made = levels(tuple(uses), metric)
        sums = tuple(map(tuple, uses.values()))
        plans.append(BladePlan(made, tuple(map(_orders, made)), sums))
    return Plan(tuple(plans), tuple(map(tuple, leads_to)), grades)


def _orders(level: Level) -> tuple[tuple[int, ...], ...]:
    """For each source of a level, the orders of its differences."""
    orders: dict[int, set[int]] = {}
    for term in (term for terms in level for term in terms):
        orders.setdefault(term.source, set()).add(term.order)
    return tuple(tuple(sorted(orders[source])) for source in range(len(orders)))
