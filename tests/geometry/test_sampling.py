"""Points and weights: on the space, and exact for known integrals."""

import math

import pytest

from cscnn.geometry import (
    de_sitter,
    de_sitter_grid,
    fibonacci_sphere,
    hyperbolic,
    hyperbolic_disc,
    latlon_sphere,
    sphere,
)


def test_spheres():
    for points, weights in (fibonacci_sphere(500), latlon_sphere(12, 24)):
        sphere(2).check(points)
        assert abs(float(weights.sum()) - 4 * math.pi) < 1e-12
        assert abs(float(weights @ points[:, 2] ** 4) - 4 * math.pi / 5) < 1e-3
    exact = float(weights @ (points[:, 0] ** 2 * points[:, 2] ** 4))
    assert abs(exact - 4 * math.pi / 35) < 1e-13


def test_hyperbolic_disc():
    points, weights = hyperbolic_disc(2000, 1.5)
    hyperbolic(2).check(points)
    assert points[:, 0].max() <= math.cosh(1.5)
    assert abs(float(weights.sum()) - 2 * math.pi * (math.cosh(1.5) - 1)) < 1e-12
    integral = math.pi * (math.cosh(1.5) ** 2 - 1)
    assert abs(float(weights @ points[:, 0]) - integral) < 1e-6


def test_de_sitter():
    points, weights = de_sitter_grid(40, 50, 2.0)
    de_sitter(2).check(points)
    assert abs(float(weights.sum()) - 4 * math.pi * math.sinh(1.0)) < 1e-2


@pytest.mark.parametrize(
    "call",
    [
        lambda: fibonacci_sphere(0),
        lambda: latlon_sphere(4, 0),
        lambda: hyperbolic_disc(10, -1.0),
        lambda: de_sitter_grid(3, 4, 0.0),
    ],
)
def test_bad_input(call):
    with pytest.raises(ValueError, match="must be"):
        call()
