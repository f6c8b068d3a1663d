"""Solitons of the sine-Gordon equation: the equation, covariance, closed forms."""

import math

import numpy as np
import pytest
import torch

from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.group import boost
from cscnn.data.simulators import SineGordon

MIXTURES = [((1, 1), (0, 0)), ((3, 3), (0, 0)), ((0, 0), (1, 1)), ((2, 2), (2, 2))]


def soliton_points() -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(200, 2, dtype=torch.float64, generator=generator) * 5
    return points + torch.tensor([19.0, 0.0])


@pytest.mark.parametrize(("kinks", "breathers"), MIXTURES)
def test_solitons_solve_the_sine_gordon_equation(kinks: tuple, breathers: tuple) -> None:
    """At fourth order in the step, by differences of the exact gradient."""
    solitons = SineGordon(kinks=kinks, breathers=breathers).draw(np.random.default_rng(0))
    points, errors = soliton_points(), []
    phase, gradient = solitons.field(points)
    for h in (0.04, 0.02):
        second = []
        for axis in range(2):
            step = torch.zeros(2, dtype=torch.float64)
            step[axis] = h
            near, far = (
                solitons.field(points + k * step)[1][:, axis]
                - solitons.field(points - k * step)[1][:, axis]
                for k in (1, 2)
            )
            second.append((8 * near - far) / (12 * h))
        errors.append((second[0] - second[1] + phase.sin()).abs().max().item())
    assert phase.sin().abs().max() > 0.9
    assert errors[1] < 1e-4
    assert errors[0] / errors[1] > 12
    step = torch.tensor([1e-4, 0.0], dtype=torch.float64)
    change = solitons.field(points + step)[0].sin() - solitons.field(points - step)[0].sin()
    assert torch.allclose(change / 2e-4, phase.cos() * gradient[:, 0], atol=1e-5)


@pytest.mark.parametrize(("kinks", "breathers"), MIXTURES)
@pytest.mark.parametrize("mirrored", [False, True])
def test_moved_solitons_have_the_moved_fields(
    kinks: tuple, breathers: tuple, mirrored: bool
) -> None:
    solitons = SineGordon(kinks=kinks, breathers=breathers).draw(np.random.default_rng(1))
    points = soliton_points()
    g = boost(CliffordAlgebra((1, -1)), 0.7, [1.0])
    if mirrored:
        g = g @ torch.diag(torch.tensor([1.0, -1.0], dtype=torch.float64))
    phase, gradient = solitons.field(points)
    moved, moved_gradient = solitons.transformed(g).field(points @ g.mT)
    assert (moved.cos() - phase.cos()).abs().max() < 1e-11
    assert (moved.sin() - phase.sin()).abs().max() < 1e-11
    lift = torch.tensor([1.0, -1.0], dtype=torch.float64)
    assert ((gradient * lift) @ g.mT - moved_gradient * lift).abs().max() < 1e-10
    assert (moved_gradient - gradient).abs().max() > 0.1


def test_a_kink_is_a_kink() -> None:
    solitons = SineGordon(kinks=(1, 1), breathers=(0, 0)).draw(np.random.default_rng(0))
    x = torch.linspace(-60, 60, 400, dtype=torch.float64)
    points = torch.stack([torch.full_like(x, 3.0), x], -1)
    _, gradient = solitons.field(points)
    turned = torch.trapezoid(gradient[:, 1], x)
    assert abs(abs(turned) - 2 * math.pi) < 1e-6
    velocity = -gradient[:, 0] / gradient[:, 1]
    middle = gradient[:, 1].abs() > 0.1
    assert velocity[middle].std() < 1e-9
    assert velocity[middle].abs().max() <= 0.8
