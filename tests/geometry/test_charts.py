"""Metrics given as functions, against closed forms."""

import math

import pytest
import torch

from cscnn.geometry import (
    Chart,
    anti_de_sitter,
    de_sitter,
    hyperbolic,
    schwarzschild,
    sphere,
    torus_of_revolution,
)


def _diag(*values):
    return torch.diag(torch.stack(values))


#: name -> metric in a chart, signs, the map to the quadric, the quadric
CLOSED = {
    "S2": (
        lambda x: _diag(torch.ones_like(x[0]), x[0].sin() ** 2),
        lambda x: torch.stack([x[0].sin() * x[1].cos(), x[0].sin() * x[1].sin(), x[0].cos()]),
        sphere(2),
        (None, 2 * math.pi),
    ),
    "H2": (
        lambda x: _diag(torch.ones_like(x[0]), x[0].sinh() ** 2),
        lambda x: torch.stack([x[0].cosh(), x[0].sinh() * x[1].cos(), x[0].sinh() * x[1].sin()]),
        hyperbolic(2),
        (None, 2 * math.pi),
    ),
    "dS2": (
        lambda x: _diag(torch.ones_like(x[0]), -(x[0].cosh() ** 2)),
        lambda x: torch.stack([x[0].sinh(), x[0].cosh() * x[1].cos(), x[0].cosh() * x[1].sin()]),
        de_sitter(2),
        (None, 2 * math.pi),
    ),
    "AdS2": (  # the first coordinate is time, which is an angle
        lambda x: _diag(x[1].cosh() ** 2, -torch.ones_like(x[0])),
        lambda x: torch.stack([x[1].cosh() * x[0].cos(), x[1].cosh() * x[0].sin(), x[1].sinh()]),
        anti_de_sitter(2),
        (2 * math.pi, None),
    ),
}


@pytest.mark.parametrize("name", CLOSED)
def test_equals_the_closed_form(name):
    metric, embed, space, periods = CLOSED[name]
    chart = Chart(metric, space.metric, periods=periods)
    torch.manual_seed(0)
    x = torch.rand(8, 2, dtype=torch.float64) * torch.tensor([0.8, 6.2]) + 0.7
    x = x.flip(-1) if name == "AdS2" else x
    frames = chart.frames(x)
    tangent = torch.func.vmap(torch.func.jacfwd(embed))(x)
    edges = chart.edges(x, (1.0, 1.0), frames=frames)
    on = torch.func.vmap(embed)(x)
    expected = space.edges(on, frames=tangent @ frames, pairs=(edges.receiver, edges.sender))
    assert len(edges) == len(expected) > 12
    torch.testing.assert_close(edges.position, expected.position, atol=1e-8, rtol=0)
    torch.testing.assert_close(edges.transport, expected.transport, atol=1e-8, rtol=0)


def test_christoffel_symbols_of_the_sphere():
    chart = Chart(CLOSED["S2"][0], (1, 1))
    x = torch.tensor([[0.7, 0.3]], dtype=torch.float64)
    gamma = chart.christoffel(x)[0]
    expected = torch.zeros(2, 2, 2, dtype=torch.float64)
    expected[0, 1, 1] = -math.sin(0.7) * math.cos(0.7)
    expected[1, 0, 1] = expected[1, 1, 0] = math.cos(0.7) / math.sin(0.7)
    torch.testing.assert_close(gamma, expected)
    assert abs(float(chart.volume(x)) - math.sin(0.7)) < 1e-12


def test_torus_of_revolution_around_its_periods():
    chart = torus_of_revolution(2.0, 1.0)
    # The outer equator is a geodesic; the short way leads across the end of the chart.
    x = torch.tensor([[0.0, 0.1], [0.0, 2 * math.pi - 0.1]], dtype=torch.float64)
    v, joined = chart.log(x[:1], x[1:])
    assert joined.all()
    torch.testing.assert_close(v, torch.tensor([[0.0, -0.2]], dtype=torch.float64))
    edges = chart.edges(x, 1.0)
    assert edges.receiver.tolist() == [0, 0, 1, 1]
    lengths = edges.position.norm(dim=-1)
    torch.testing.assert_close(lengths, torch.tensor([0.0, 0.6, 0.6, 0.0], dtype=torch.float64))


def test_free_fall_outside_a_black_hole():
    chart = schwarzschild(2)
    x = torch.tensor([[0.0, 6.0]], dtype=torch.float64)
    u = chart.frames(x)[:, :, 0]  # at rest
    u = u * u[:, :1].sign()
    y = chart.exp(x, 0.5 * u)
    # The energy (1 - 2M/r) dt/dτ of a body dropped at rest is (1 - 2M/6)^½, which gives dr/dτ.
    moved = chart.transport(x, 0.5 * u, u.unsqueeze(1))[0, 0]
    energy = (1 - 2 / y[0, 1]) * moved[0]
    assert abs(float(energy) - (1 - 2 / 6) ** 0.5) < 1e-9
    assert y[0, 1] < 6
    assert abs(float(moved @ chart.form(y)[0] @ moved) - 1) < 1e-9


def test_points_that_no_geodesic_reaches_have_no_edge():
    # A plane with a hole: geodesics through it end at its border.
    plane = Chart(
        lambda x: torch.eye(2, dtype=x.dtype), (1, 1), domain=lambda x: x.square().sum(-1) > 0.25
    )
    x = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [1.0, 1.5]], dtype=torch.float64)
    edges = plane.edges(x, 3.0)
    pairs = set(zip(edges.receiver.tolist(), edges.sender.tolist(), strict=True))
    assert pairs == {(0, 0), (1, 1), (2, 2), (0, 2), (2, 0), (1, 2), (2, 1)}
    with pytest.raises(ValueError, match=r"in the domain; number 1 is at \[0.0, 0.0\]"):
        plane.edges(torch.tensor([[1.0, 0.0], [0.0, 0.0]]), 1.0)


def test_geodesics_that_leave_stop_near_the_border():
    """And the others of the batch do not notice."""
    plane = Chart(
        lambda x: torch.diag(torch.stack([1 / x[0], x[0]])), (1, 1), domain=lambda x: x[:, 0] > 0.25
    )
    x = torch.ones(2, 2, dtype=torch.float64)
    u = torch.tensor([[-2.0, 0.1], [1.0, 0.5]], dtype=torch.float64)
    y = plane.exp(x, u)
    assert y.isfinite().all()
    assert 0.2 < y[0, 0] < 0.4
    torch.testing.assert_close(y[1:], plane.exp(x[1:], u[1:]), atol=1e-9, rtol=0)
    assert plane.transport(x, u, u.unsqueeze(1)).isfinite().all()


def test_no_gradients_reach_the_points_of_a_chart():
    chart = torus_of_revolution()
    x = torch.rand(3, 2, requires_grad=True)
    edges = chart.edges(x, 0.9)
    assert edges.position.dtype == torch.float32
    assert not edges.position.requires_grad
    assert not edges.transport.requires_grad


def test_nobody_there():
    for chart in (torus_of_revolution(), schwarzschild(2)):
        none = torch.zeros(0, 2, dtype=torch.float64)
        assert len(chart.edges(none, 0.2)) == 0
        assert chart.christoffel(none).shape == (0, 2, 2, 2)
        far = torch.tensor([[0.0, 5.0]], dtype=torch.float64)
        assert len(chart.edges(far, 0.2, radius=0.1, receivers=far + 1)) == 0


def test_radius_and_receivers():
    chart = torus_of_revolution()
    torch.manual_seed(0)
    x = torch.rand(10, 2, dtype=torch.float64)
    edges = chart.edges(x, 1.0, radius=0.5, receivers=x[:3], weights=chart.volume(x))
    assert (edges.n_receivers, edges.n_senders) == (3, 10)
    assert edges.position.norm(dim=-1).max() <= 0.5
    assert torch.equal(edges.weight, chart.volume(x)[edges.sender])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_frames_in_any_units(dtype):
    def half_plane(x):
        return torch.eye(2, dtype=x.dtype) / x[1] ** 2

    for chart, x in (
        (Chart(half_plane, (1, 1)), [[0.0, 1.0], [3.0, 2e5]]),
        (Chart(lambda x: 1e-12 * torch.eye(2, dtype=x.dtype), (1, 1)), [[0.0, 0.0]]),
        (schwarzschild(3), [[0.0, 3.0, 0.0], [0.0, 1e6, 1.0]]),
    ):
        x = torch.tensor(x, dtype=dtype)
        frames = chart.frames(x)
        gram = frames.mT @ chart.form(x) @ frames
        signs = torch.diag(torch.tensor(chart.metric, dtype=dtype))
        torch.testing.assert_close(gram, signs.expand_as(gram))
    pole = torch.tensor([[math.pi, 0.0]], dtype=dtype)
    with pytest.raises(ValueError, match="the form is degenerate"):
        Chart(CLOSED["S2"][0], (1, 1)).frames(pole)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_neighbours_at_exactly_the_radius(dtype):
    plane = Chart(lambda x: 1e4 * torch.eye(2, dtype=x.dtype), (1, 1))  # metres, in centimetres
    x = 0.1 * torch.arange(8, dtype=dtype)[:, None].expand(8, 2)
    edges = plane.edges(x, 0.2, radius=10 * 2**0.5)
    assert edges.degree.tolist() == [2, *[3] * 6, 2]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Chart(lambda x: x, (1, 0)), "±1"),
        (lambda: Chart(lambda x: x, (1, 1)).form(torch.ones(2, 2)), "matrix of size 2"),
        (lambda: Chart(lambda x: x, (1, 1), periods=(1.0,)), "each of 2 axes"),
        (lambda: Chart(lambda x: x, (1, 1), tolerance=1.0), "between 0 and 0.01"),
        (
            lambda: Chart(lambda x: x[0] * torch.ones(2, 2), (1, 1)).frames(torch.ones(1, 2)),
            "the form is degenerate",
        ),
        (lambda: torus_of_revolution(1.0, 2.0), "0 < minor < major"),
        (lambda: schwarzschild(4), "2 or 3, got 4"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
