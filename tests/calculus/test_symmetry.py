"""Operators commute with the grid's symmetries exactly, with rotations and boosts at a rate."""

import math

import pytest
import torch

from cscnn import CliffordAlgebra
from cscnn.calculus import (
    Differences,
    Spectral,
    dalembertian,
    directional_derivative,
    exterior_derivative,
    interior_derivative,
    partial_derivative,
    vector_derivative,
)
from cscnn.testing import grid_equivariance_errors, random_element, relative_error
from tests.calculus.fields import positions, smooth_field
from tests.conftest import metric_name, signatures

OPERATORS = (vector_derivative, exterior_derivative, interior_derivative, dalembertian)


@pytest.mark.parametrize("scheme", [Differences(), Differences(accuracy=4, boundary="circular"),
                                    Differences(staggered=True), Spectral()])  # fmt: skip
@pytest.mark.parametrize("metric", [*signatures(3), (1, -1, -1, -1)], ids=metric_name)
def test_commutes_with_the_grid(metric, scheme):
    algebra = CliffordAlgebra(metric)
    size = 6 if len(metric) < 4 else 5
    periodic = isinstance(scheme, Spectral) or scheme.boundary == "circular"
    for operator in OPERATORS:
        errors = grid_equivariance_errors(
            lambda f, o=operator: o(f, algebra, scheme), algebra, (1, 1, *(size,) * len(metric))
        )
        assert errors["point group"] < 1e-12
        assert (errors["translation"] < 1e-12) == periodic


def rate_and_error(operator, algebra, g, h):
    """Violation of operator(g.f) = g.operator(f) at the fixed point of g, at h; its rate."""
    errors = []
    for step in (2 * h, h):
        at = positions((9,) * algebra.dim, (step,) * algebra.dim) - 4 * step
        centre = (slice(None), *(4,) * algebra.dim)
        moved = algebra.transform(g, smooth_field(algebra, at @ torch.linalg.inv(g).T))
        there = operator(moved)[centre]
        here = algebra.transform(g, operator(smooth_field(algebra, at))[centre])
        errors.append(float((there - here).norm() / here.norm()))
    return math.log2(errors[0] / errors[1]), errors[1]


@pytest.mark.parametrize(
    ("metric", "kind"),
    [
        ((1, 1), "rotation"),
        ((1, 1, 1), "rotation"),
        ((1, -1), "boost"),
        ((1, -1, -1), "boost"),
        ((1, -1, -1, -1), "boost"),
    ],
    ids=metric_name,
)
@pytest.mark.parametrize("accuracy", [2, 4])
def test_converges_to_equivariance(metric, kind, accuracy):
    algebra = CliffordAlgebra(metric)
    g = random_element(
        algebra, "O", kind, rapidity=(0.4, 0.6), generator=torch.Generator().manual_seed(2)
    )
    for operator in OPERATORS:
        rate, error = rate_and_error(
            lambda f, o=operator: o(f, algebra, Differences(accuracy=accuracy)), algebra, g, 0.05
        )
        assert abs(rate - accuracy) < 0.3
        assert error < 0.01


def test_what_is_no_operator_of_the_group_does_not_converge():
    """The control: ∇ of the Euclidean plane under boosts, and ∂_0 under rotations and flips."""
    plane, spacetime = CliffordAlgebra((1, 1)), CliffordAlgebra((1, -1))
    generator = torch.Generator().manual_seed(0)
    for algebra, kind, operator in (
        (spacetime, "boost", lambda f: vector_derivative(f, plane)),
        (plane, "rotation", lambda f: partial_derivative(f, 0, plane)),
    ):
        g = random_element(algebra, "O", kind, rapidity=(0.4, 0.6), generator=generator)
        rate, error = rate_and_error(operator, algebra, g, 0.05)
        assert abs(rate) < 0.1
        assert error > 0.1
    errors = grid_equivariance_errors(
        lambda f: partial_derivative(f, 0, plane), plane, (1, 1, 6, 6)
    )
    assert errors["point group"] > 0.1


@pytest.mark.parametrize(("metric", "kind"), [((1, 1), "rotation"), ((1, -1), "boost")])
def test_directional_derivative_moves_with_its_direction(metric, kind):
    algebra = CliffordAlgebra(metric)
    g = random_element(
        algebra, "O", kind, rapidity=(0.4, 0.6), generator=torch.Generator().manual_seed(2)
    )
    at = 0.02 * (positions((5, 5), (1, 1)) - 2)
    v = torch.tensor([0.3, -0.8]).double()
    moved = algebra.transform(g, smooth_field(algebra, at @ torch.linalg.inv(g).T))
    there = directional_derivative(moved, g @ v, algebra)[:, 2, 2]
    here = algebra.transform(g, directional_derivative(smooth_field(algebra, at), v, algebra))
    assert relative_error(there, here[:, 2, 2]) < 1e-3
    unmoved = directional_derivative(moved, v, algebra)[:, 2, 2]
    assert relative_error(unmoved, here[:, 2, 2]) > 0.1
