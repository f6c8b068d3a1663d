"""Finite differences: weights of derivatives on equidistant points, exact rational numbers.

A central stencil of radius r has 2r + 1 points. It differentiates polynomials up to degree 2r
exactly. Its error on smooth functions falls with the spacing h like h^a, a being its accuracy.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import factorial

from cscnn._util.checks import check_int


@cache
def central_weights(order: int, radius: int) -> tuple[float, ...]:
    """Weights of the derivative of an order at the points -radius, ..., radius, of spacing one.

    ``f^(order)(0) ≈ sum_s weight[s] f(s)``. Symmetric for even orders, antisymmetric for odd ones.

    Example:
        >>> central_weights(2, 1)
        (1.0, -2.0, 1.0)
    """
    return tuple(float(w) for w in _weights(order, tuple(range(-radius, radius + 1)), 0))


@cache
def extrapolation_weights(amount: int, degree: int) -> tuple[tuple[float, ...], ...]:
    """Values at -1, -2, ..., -amount of the polynomial through the points 0, 1, ..., degree.

    Example:
        >>> extrapolation_weights(1, degree=1)  # f(-1) = 2 f(0) - f(1)
        ((2.0, -1.0),)
    """
    points = tuple(range(degree + 1))
    rows = (_weights(0, points, -step) for step in range(1, amount + 1))
    return tuple(tuple(float(w) for w in row) for row in rows)


def _weights(order: int, points: tuple[int, ...], at: int) -> list[Fraction]:
    """Weights that differentiate all polynomials of degree below len(points) exactly at a point."""
    size = len(points)
    if order >= size:
        raise ValueError(f"a derivative of order {order} needs {order + 1} points, got {size}")
    rows = [
        [Fraction((s - at) ** power) for s in points]
        + [Fraction(factorial(order) if power == order else 0)]
        for power in range(size)
    ]
    return _solve(rows)


def _solve(rows: list[list[Fraction]]) -> list[Fraction]:
    """Solution of a regular linear system, given with its right-hand side as last column."""
    for i in range(len(rows)):
        pivot = next(k for k in range(i, len(rows)) if rows[k][i] != 0)
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for k in range(len(rows)):
            if k != i and rows[k][i] != 0:
                factor = rows[k][i]
                rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i], strict=True)]
    return [row[-1] for row in rows]


def accuracy_of(order: int, radius: int) -> int:
    """Accuracy of the central stencil of a derivative of order one or more."""
    return 2 * (radius - (order - 1) // 2)


def radius_for(order: int, accuracy: int) -> int:
    """Radius of the shortest central stencils of all derivatives up to an order.

    Example:
        >>> radius_for(4, accuracy=2)  # five points
        2
    """
    check_int("order", order, low=0)
    if check_int("accuracy", accuracy, low=2) % 2:
        raise ValueError(f"central stencils have an even accuracy, got accuracy={accuracy}")
    return 0 if order == 0 else accuracy // 2 + (order - 1) // 2
