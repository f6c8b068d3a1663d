"""Constant curvature: exp, log, transport, holonomy, and points that no geodesic joins."""

import math

import pytest
import torch

from cscnn.geometry import (
    ConstantCurvature,
    anti_de_sitter,
    de_sitter,
    hyperbolic,
    orthonormal_frames,
    sphere,
)

SPACES = {
    "S2": sphere(2),
    "S3, radius 2": sphere(3, radius=2.0),
    "H2": hyperbolic(2),
    "H3": hyperbolic(3),
    "dS2": de_sitter(2),
    "dS4, radius 3": de_sitter(4, radius=3.0),
    "AdS2": anti_de_sitter(2),
    "AdS3": anti_de_sitter(3),
    "(2, 2) in (2, 3)": ConstantCurvature((1, 1, -1, -1, -1), -1),
}


def sample(space, count, seed=0, size=0.6):
    """Points around one of them."""
    generator = torch.Generator().manual_seed(seed)
    axis = space.ambient.index(space.sign)
    start = torch.zeros(count, len(space.ambient), dtype=torch.float64)
    start[:, axis] = space.radius
    return space.exp(start, tangent(space, start, generator, size))


def tangent(space, x, generator, size=1.0):
    values = torch.randn(len(x), space.dim, 1, generator=generator, dtype=torch.float64)
    return size * space.radius * (space.frames(x) @ values).squeeze(-1)


@pytest.fixture(params=SPACES.values(), ids=SPACES.keys())
def space(request):
    return request.param


def test_signs(space):
    assert sorted([*space.metric, space.sign]) == sorted(space.ambient)
    assert de_sitter(4).metric == anti_de_sitter(4).metric == (1, -1, -1, -1)
    assert hyperbolic(3).metric == (1, 1, 1)


def test_frames_are_orthonormal_and_tangent(space):
    x = sample(space, 30)
    frames = space.frames(x)
    gram = frames.mT @ space.form(x) @ frames
    signs = torch.diag(torch.tensor(space.metric, dtype=torch.float64)).expand_as(gram)
    torch.testing.assert_close(gram, signs, atol=1e-12, rtol=0)
    assert (frames.mT @ space.form(x) @ x.unsqueeze(-1)).abs().max() < 1e-12 * space.radius


def test_frames_have_one_orientation_and_know_the_future(space):
    x = sample(space, 40, size=1.0)
    frames = space.frames(x)
    assert (torch.linalg.det(torch.cat([x.unsqueeze(-1), frames], -1)) > 0).all()
    if space.metric.count(1) != 1:
        return
    pairs = space.edges(x)
    # Transport along any geodesic keeps time's direction.
    assert (pairs.transport[:, 0, 0] >= 1 - 1e-9).all()


def test_log_inverts_exp(space):
    x = sample(space, 50)
    u = tangent(space, x, torch.Generator().manual_seed(1), size=0.7)
    limit = math.pi * space.radius
    inside = space.sign * space.inner(u, u) < 0.99 * limit**2
    y = space.exp(x, u)
    space.check(y)
    v, joined = space.log(x, y)
    assert inside.sum() > 25
    assert joined[inside].all()
    torch.testing.assert_close(v[inside], u[inside], atol=1e-10, rtol=1e-10)


def test_near_points_keep_their_digits(space):
    x = sample(space, 10)
    for size in (1e-3, 1e-6, 1e-9):
        u = size * tangent(space, x, torch.Generator().manual_seed(1))
        error = (space.log(x, space.exp(x, u))[0] - u).abs().max()
        assert error < 1e-14 * space.radius


def test_transport_is_an_isometry_that_keeps_the_velocity(space):
    x = sample(space, 30)
    u = tangent(space, x, torch.Generator().manual_seed(1), size=0.5)
    y = space.exp(x, u)
    frames = space.frames(x).mT
    moved = space.transport(x, y, frames)
    form = space.form(x)
    assert (moved @ form @ y.unsqueeze(-1)).abs().max() < 1e-10, "tangent at y"
    torch.testing.assert_close(
        moved @ form @ moved.mT, frames @ form @ frames.mT, atol=1e-10, rtol=1e-10
    )
    torch.testing.assert_close(
        space.transport(x, y, u.unsqueeze(1)).squeeze(1), -space.log(y, x)[0], atol=1e-9, rtol=1e-9
    )
    torch.testing.assert_close(space.transport(y, x, moved), frames, atol=1e-9, rtol=1e-9)


def test_transport_composes_along_a_geodesic(space):
    x = sample(space, 20)
    u = tangent(space, x, torch.Generator().manual_seed(2), size=0.5)
    half, end = space.exp(x, u / 2), space.exp(x, u)
    w = tangent(space, x, torch.Generator().manual_seed(3)).unsqueeze(1)
    direct = space.transport(x, end, w)
    twice = space.transport(half, end, space.transport(x, half, w))
    torch.testing.assert_close(direct, twice, atol=1e-10, rtol=1e-10)


def test_holonomy_of_a_triangle_on_the_sphere_is_its_area():
    space = sphere(2)
    corners = space.project(torch.tensor([[1, 0.1, 0], [0.2, 1, 0.3], [-0.1, 0.3, 1]]).double())
    frame = space.frames(corners[:1]).mT
    moved = frame
    for a, b in ((0, 1), (1, 2), (2, 0)):
        moved = space.transport(corners[a : a + 1], corners[b : b + 1], moved)
    turned = (moved @ frame.mT)[0]
    angle = math.atan2(float(turned[0, 1] - turned[1, 0]), float(turned.trace()))
    a, b, c = corners
    triple = float(torch.linalg.det(corners))
    area = 2 * math.atan2(triple, 1 + float(a @ b + b @ c + c @ a))
    assert area > 0.5
    assert abs(abs(angle) - area) < 1e-12


def test_edges_do_not_change_under_isometries(space):
    from cscnn import CliffordAlgebra

    x = sample(space, 12)
    group = CliffordAlgebra(space.ambient)
    for seed in range(3):
        g = group.random_orthogonal(
            "any", rapidity=1.0, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
        )
        frames = space.frames(x)
        here, there = space.edges(x, frames=frames), space.edges(x @ g.T, frames=g @ frames)
        assert torch.equal(here.receiver, there.receiver)
        assert torch.equal(here.sender, there.sender)
        torch.testing.assert_close(here.position, there.position, atol=1e-9, rtol=1e-9)
        torch.testing.assert_close(here.transport, there.transport, atol=1e-9, rtol=1e-9)


def test_no_geodesic_no_edge():
    # Two events of dS2 that no geodesic joins, antipodes, coincident points.
    space = de_sitter(2)
    x = torch.tensor([[0.0, 1, 0], [2.0, -(5**0.5), 0], [0.0, -1, 0], [0.0, 1, 0]]).double()
    v, joined = space.log(x[:1].expand(4, 3), x)
    assert joined.tolist() == [True, False, False, True]
    assert torch.equal(v, torch.zeros_like(v))
    edges = space.edges(x)
    pairs = set(zip(edges.receiver.tolist(), edges.sender.tolist(), strict=True))
    assert pairs == {(0, 0), (0, 3), (3, 0), (3, 3), (1, 1), (1, 2), (2, 1), (2, 2)}


def test_null_separated_events_are_joined_by_a_straight_line():
    space = de_sitter(2)
    x = torch.tensor([[0.0, 1, 0]]).double()
    y = x + torch.tensor([[1.5, 0, 1.5]]).double()
    v, joined = space.log(x, space.check(y))
    assert joined.all()
    torch.testing.assert_close(v, y - x)


def test_antipodes_and_two_sheets():
    for space, y in ((sphere(2), [-1.0, 0, 0]), (hyperbolic(2), [-1.0, 0, 0])):
        x = torch.tensor([[1.0, 0, 0], y]).double()
        edges = space.edges(x)
        assert edges.receiver.tolist() == edges.sender.tolist() == [0, 1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_and_gradients_are_finite_everywhere(dtype):
    """Antipodes, coincident points, light cones, points that no geodesic joins."""
    for space, rows in (
        (sphere(2), [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [1, 0, 0], [-1, 1e-6, 0]]),
        (de_sitter(2), [[0, 1, 0], [2, -(5**0.5), 0], [0, -1, 0], [0, 1, 0], [1.5, 1, 1.5]]),
        (hyperbolic(2), [[1, 0, 0], [-1, 0, 0], [1, 0, 0], [2**0.5, 1, 0], [-(2**0.5), 1, 0]]),
    ):
        x = torch.tensor(rows, dtype=dtype, requires_grad=True)
        n, m = torch.cartesian_prod(torch.arange(5), torch.arange(5)).unbind(-1)
        v, joined = space.log(x[n], x[m])
        moved = space.transport(x[n], x[m], v.unsqueeze(1)).squeeze(1)
        assert not moved[~joined].any()
        edges = space.edges(x, frames=space.frames(x.detach()))
        there = space.exp(x[n], v)
        values = (v, moved, there, edges.position, edges.transport)
        assert all(value.isfinite().all() for value in values)
        gradient = torch.autograd.grad(sum(value.square().sum() for value in values), x)[0]
        assert gradient.isfinite().all()


def test_transport_next_to_antipodes_is_an_isometry():
    space = sphere(2)
    for dtype, angle in ((torch.float64, 1e-3), (torch.float32, 0.04)):
        x = torch.tensor([[1.0, 0, 0]], dtype=dtype)
        y = torch.tensor([[-math.cos(angle), 0.6 * math.sin(angle), 0.8 * math.sin(angle)]])
        moved = space.edges(torch.cat([x, space.project(y.to(dtype))])).transport
        gram = moved.mT @ moved
        torch.testing.assert_close(gram, torch.eye(2, dtype=dtype).expand_as(gram))


def test_long_geodesics_have_finite_gradients():
    space = sphere(2, radius=1e-3)
    x = torch.tensor([[1e-3, 0, 0]], dtype=torch.float64)
    u = torch.tensor([[0.0, 2.0, 0.0]], dtype=torch.float64, requires_grad=True)  # 318 rounds
    space.exp(x, u).sum().backward()
    assert u.grad.isfinite().all()


def test_neighbours_within_a_radius():
    for space in (sphere(2, radius=2.0), hyperbolic(2), de_sitter(2)):
        x = sample(space, 60)
        every, near = space.edges(x), space.edges(x, 0.8)
        signs = torch.tensor(space.metric, dtype=torch.float64)
        length = (every.position.square() @ signs).abs().sqrt()
        assert len(near) == int((length <= 0.8).sum())
        assert 60 < len(near) < len(every)
        given = space.edges(x, 0.8, pairs=(every.receiver, every.sender))
        assert torch.equal(given.sender, near.sender)
    for space in (de_sitter(2), sphere(2)):
        x = sample(space, 60)
        near, ended = space.edges(x, 0.8), space.edges(x, 0.8, ambient_radius=0.5)
        given = space.edges(x, 0.8, ambient_radius=0.5, pairs=(near.receiver, near.sender))
        assert torch.equal(given.sender, ended.sender)
        assert len(ended) < len(near)


def test_a_radius_without_end_is_none(space):
    x = sample(space, 12)
    every = space.edges(x)
    for radius in (1e3, 1e6, math.inf):
        for points in (x, x.float()):
            assert len(space.edges(points, radius * space.radius)) == len(every)
    assert len(space.edges(x[:0], 1.0)) == 0


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_neighbours_at_exactly_the_radius(dtype):
    angle = 0.1 * torch.arange(20, dtype=dtype)
    zero = torch.zeros_like(angle)
    for space, x in (
        (sphere(2), [angle.cos(), angle.sin(), zero]),
        (hyperbolic(2), [angle.cosh(), angle.sinh(), zero]),
    ):
        degree = space.edges(torch.stack(x, -1), radius=0.3).degree.tolist()
        assert degree == [4, 5, 6, *[7] * 14, 6, 5, 4]


def test_other_receivers():
    space = sphere(2)
    x, y = sample(space, 20), sample(space, 6, seed=5)
    edges = space.edges(x, 1.0, receivers=y, weights=torch.arange(20.0))
    assert (edges.n_receivers, edges.n_senders) == (6, 20)
    assert torch.equal(edges.weight, edges.sender.double())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ConstantCurvature((1, 1), -1), "must be one of the ambient signs"),
        (lambda: ConstantCurvature((1, 0), 1), "signs ±1"),
        (lambda: sphere(2, radius=0), "radius must be positive, got 0"),
        (lambda: sphere(2).edges(torch.full((2, 3), 2.0)), r"<x, x> = 12, not 1"),
        (lambda: sphere(2).edges(torch.zeros(2, 2)), r"\(number, 3\)"),
        (lambda: de_sitter(2).project(torch.tensor([[2.0, 1, 0]])), "no multiple of point 0"),
        (
            lambda: sphere(2).edges(torch.eye(3), frames=torch.ones(3, 3, 2)),
            "frame at point 0 is not orthonormal",
        ),
        (
            lambda: orthonormal_frames(torch.eye(2)[None], torch.ones(2, 2), (1, 1)),
            "the form is degenerate",
        ),
        (
            lambda: orthonormal_frames(torch.eye(2)[None], torch.eye(2), (1, -1)),
            r"has the signs \[1, 1\]",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_frames_of_null_axes():
    form = torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)  # light-cone coordinates
    frame = orthonormal_frames(torch.eye(2).double()[None], form, (-1, 1))[0]
    torch.testing.assert_close(
        frame.T @ form @ frame, torch.diag(torch.tensor([-1.0, 1.0])).double()
    )
