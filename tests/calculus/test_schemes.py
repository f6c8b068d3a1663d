"""Partial derivatives: numpy, polynomials, Fourier series, rates."""

import math

import numpy as np
import pytest
import torch

from cscnn.calculus import Differences, Spectral
from cscnn.conv.padding import COMPONENT_MODES


def test_one_sided_differences_are_those_of_numpy():
    f = torch.randn(2, 6, 5, 3, dtype=torch.float64)
    scheme = Differences(spacing=(0.3, 0.2))
    for axis, h in enumerate(scheme.spacing):
        expected = np.gradient(f.numpy(), h, axis=1 + axis, edge_order=2)
        assert np.abs(scheme.partial(f, axis, dim=2).numpy() - expected).max() < 1e-13


@pytest.mark.parametrize("accuracy", [2, 4, 6])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_polynomials_are_differentiated_exactly_up_to_the_border(accuracy, order):
    x = 0.1 * torch.arange(12, dtype=torch.float64)
    scheme = Differences(0.1, accuracy)
    for degree in range(accuracy + order):
        y = scheme.partial((x**degree)[:, None], 0, dim=1, order=order)[:, 0]
        factor = math.perm(degree, order)
        expected = factor * x ** max(degree - order, 0)
        assert (y - expected).abs().max() < 1e-7 * max(factor, 1)
    degree = accuracy + order + 1  # beyond that not: the test can fail
    y = scheme.partial((x**degree)[:, None], 0, dim=1, order=order)[:, 0]
    assert (y - math.perm(degree, order) * x ** (degree - order)).abs().max() > 1e-6


@pytest.mark.parametrize("boundary", ["circular", "extrapolate"])
@pytest.mark.parametrize("accuracy", [2, 4])
@pytest.mark.parametrize("order", [1, 2])
def test_errors_fall_at_the_accuracy(boundary, accuracy, order):
    """Up to the border too."""
    errors = []
    for n in (40, 80):
        h = 2 * math.pi / n
        x = 0.7 + h * torch.arange(n, dtype=torch.float64)
        y = Differences(h, accuracy, boundary).partial(x.sin()[:, None], 0, dim=1, order=order)
        errors.append(float((y[:, 0] - (x + order * math.pi / 2).sin()).abs().max()))
    assert abs(math.log2(errors[0] / errors[1]) - accuracy) < 0.35


@pytest.mark.parametrize("mode", COMPONENT_MODES)
def test_boundaries_continue_the_field(mode):
    """Differences of a field that numpy has padded."""
    f = torch.randn(7, 1, dtype=torch.float64)
    if mode == "extrapolate":
        outside = [3 * f[0] - 3 * f[1] + f[2], 3 * f[-1] - 3 * f[-2] + f[-3]]
        wide = torch.cat([outside[0][None], f, outside[1][None]]).numpy()
    else:
        name = {"zeros": "constant", "circular": "wrap", "replicate": "edge"}.get(mode, mode)
        wide = np.pad(f.numpy(), ((1, 1), (0, 0)), name)
    y = Differences(0.5, boundary=mode).partial(f, 0, dim=1)
    assert np.abs(y.numpy() - (wide[2:] - wide[:-2])).max() < 1e-13


@pytest.mark.parametrize("n", [8, 9])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_fourier_series_are_differentiated_exactly(n, order):
    h = 0.7
    x = h * torch.arange(n, dtype=torch.float64)
    for mode in range((n + 1) // 2):
        k = 2 * math.pi * mode / (n * h)
        y = Spectral(h).partial((k * x + 0.3).sin()[:, None], 0, dim=1, order=order)
        expected = k**order * (k * x + 0.3 + order * math.pi / 2).sin()
        assert (y[:, 0] - expected).abs().max() < 1e-10 * max(k**order, 1)


def test_the_nyquist_mode_has_even_derivatives_only():
    f = torch.tensor([1.0, -1.0]).double().repeat(4)[:, None]
    assert torch.equal(Spectral().partial(f, 0, dim=1), torch.zeros_like(f))
    assert torch.allclose(Spectral().partial(f, 0, dim=1, order=2), -(math.pi**2) * f)


def staggered_flow(sizes=(9, 8), spacing=(0.5, 0.3)):
    """A flow without divergence on faces (from a stream function), averaged to the centres."""
    psi = torch.randn(sizes[0] + 1, sizes[1] + 1, dtype=torch.float64)
    u, v = psi.diff(dim=1) / spacing[1], -psi.diff(dim=0) / spacing[0]
    return torch.stack([(u[1:] + u[:-1]) / 2, (v[:, 1:] + v[:, :-1]) / 2], -1)


def test_staggered_differences_see_what_the_cells_saw():
    spacing = (0.5, 0.3)
    flow = staggered_flow(spacing=spacing)

    def divergence(staggered):
        scheme = Differences(spacing, staggered=staggered)
        terms = [scheme.partial(flow[..., i : i + 1], i, dim=2) for i in range(2)]
        return sum(terms)[1:-1, 1:-1].abs().max()

    assert divergence(staggered=True) < 1e-13
    assert divergence(staggered=False) > 0.1


def test_staggered_differences_are_of_second_order():
    errors = []
    for n in (20, 40):
        h = 2 / n
        x = h * torch.arange(n + 1, dtype=torch.float64)
        f = (x.sin()[:, None] * x.cos())[..., None]
        y = Differences(h, staggered=True).partial(f, 0, dim=2)[..., 0]
        errors.append(float((y - x.cos()[:, None] * x.cos()).abs().max()))
    assert abs(math.log2(errors[0] / errors[1]) - 2) < 0.3


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Differences(spacing=0.0), ValueError, "spacing must be positive, got 0.0"),
        (lambda: Differences(spacing=(1.0, -1.0)), ValueError, "spacing must be positive"),
        (lambda: Spectral(spacing="wide"), TypeError, "spacing must be a positive number"),
        (lambda: Differences(accuracy=3), ValueError, "even accuracy, got accuracy=3"),
        (lambda: Differences(boundary="periodic"), ValueError, "boundary must be one of zeros"),
        (lambda: Differences(boundary=("circular", "open")), ValueError, "got 'open'"),
        (
            lambda: Differences(accuracy=4).partial(torch.zeros(9, 4, 1), 1, dim=2),
            ValueError,
            "extrapolate padding by 2 needs at least 5 points, grid axis 1 has 4",
        ),
        (
            lambda: Differences().partial(torch.zeros(5, 1), 0, dim=1, order=0),
            ValueError,
            "order must be at least 1, got 0",
        ),
        (
            lambda: Spectral((1.0, 1.0)).partial(torch.zeros(5, 1), 0, dim=1),
            ValueError,
            r"spacing needs one value per axis, 1 in all, got \(1.0, 1.0\)",
        ),
    ],
)
def test_mistakes_are_explained(make, error, message):
    with pytest.raises(error, match=message):
        make()
