"""Walls are mirrors: derivatives there are those of the mirrored field."""

import itertools
import math

import numpy as np
import pytest
import torch

from cscnn import CliffordAlgebra
from cscnn.algebra.grids import transform_on_grid
from cscnn.calculus import (
    Differences,
    Spectral,
    dalembertian,
    directional_derivative,
    divergence,
    exterior_derivative,
    interior_derivative,
    mirror,
    partial_derivative,
    vector_derivative,
)
from tests.calculus.fields import naive_nabla


def noise(algebra, *grid):
    return torch.randn(*grid, algebra.n_blades, dtype=torch.float64)


@pytest.mark.parametrize("mode", ["wall", "conductor"])
def test_mirrored_fields_are_symmetric(mode):
    """f = ±ρ(g) f(g^-1 x) for the mirror g of each axis, which maps the doubled grid to itself."""
    algebra = CliffordAlgebra((1, 1, 1))
    f = mirror(noise(algebra, 1, 1, 3, 4, 2), algebra, mode)
    assert f.shape == (1, 1, 6, 8, 4, 8)
    for axis in range(3):
        g = torch.eye(3, dtype=torch.float64)
        g[axis, axis] = -1
        image = transform_on_grid(algebra, g, f)
        assert torch.equal(image if mode == "wall" else -image, f)


def test_no_flow_through_walls_no_tangential_field_at_conductors():
    """Means of the last point and its image: the value on the wall, to second order."""
    algebra = CliffordAlgebra((1, 1))
    f = noise(algebra, 4, 5)
    for mode, zero, free in (("wall", [1, 3], [0, 2]), ("conductor", [0, 2], [1, 3])):
        wide = mirror(f, algebra, (mode, "circular"))
        on_wall = (wide[3] + wide[4]) / 2
        assert on_wall[:, zero].abs().max() == 0  # blades with e1, or without
        assert torch.equal(on_wall[:, free], f[3][:, free])


@pytest.mark.parametrize(
    "modes", list(itertools.product(("wall", "conductor", "circular"), repeat=2))
)
def test_differences_at_walls_against_loops(modes):
    metric, h = (1, 1), (0.5, 0.3)
    algebra = CliffordAlgebra(metric)
    f = noise(algebra, 4, 3)
    wide = mirror(f, algebra, modes).numpy()

    def derivative(x, axis):
        return (np.roll(x, -1, axis) - np.roll(x, 1, axis)) / (2 * h[axis])

    for operator, raise_by in ((exterior_derivative, (1,)), (interior_derivative, (-1,)),
                               (vector_derivative, (1, -1))):  # fmt: skip
        expected = naive_nabla(wide, metric, derivative, raise_by)[:4, :3]
        assert (
            np.abs(operator(f, algebra, Differences(h, 2, modes)).numpy() - expected).max() < 1e-13
        )


def test_closed_form_between_walls():
    """v = (sin x cos y, -cos x sin y) on [0, π]²: no flow through walls, and no divergence."""
    algebra, n = CliffordAlgebra((1, 1)), 6
    h = math.pi / n
    x = (torch.arange(n, dtype=torch.float64) + 0.5) * h
    x, y = torch.meshgrid(x, x, indexing="ij")
    v = algebra.embed(torch.stack([x.sin() * y.cos(), -x.cos() * y.sin()], -1), 1)
    scheme = Spectral(h, "wall")
    assert divergence(v, algebra, scheme).abs().max() < 1e-14
    assert (dalembertian(v, algebra, scheme) + 2 * v).abs().max() < 1e-13
    expected = (x.cos() * y.cos())[..., None]
    dx = partial_derivative(v, 0, algebra, scheme)
    assert (dx[..., [1]] - expected).abs().max() < 1e-13
    along = directional_derivative(v, algebra.grade(v, 1), algebra, scheme)
    assert along.shape == v.shape
    assert (along[..., 1] - x.sin() * x.cos()).abs().max() < 1e-13
    # the control: periodic continuation of the same numbers has divergence at the walls
    assert divergence(v, algebra, Spectral(h)).abs().max() > 0.1


def test_errors():
    algebra = CliffordAlgebra((1, 1))
    f = noise(algebra, 4, 4)
    with pytest.raises(ValueError, match="depends on the blade"):
        Differences(boundary="wall").partial(f, 0, 2)
    with pytest.raises(ValueError, match=r"same boundaries: got \('wall', 'wall'\)"):
        divergence(f, algebra, (Spectral(), Differences(boundary="wall", staggered=True)))
    with pytest.raises(ValueError, match="boundary must be"):
        Spectral(boundary="zeros")
