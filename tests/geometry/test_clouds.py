"""Neighbours of flat clouds, against brute force."""

import sys

import pytest
import torch

from cscnn.geometry import (
    all_pairs,
    clouds,
    interval_edges,
    nearest_edges,
    radius_edges,
    torus_of_revolution,
)


def pairs_of(edges):
    return set(zip(edges.receiver.tolist(), edges.sender.tolist(), strict=True))


def brute(mask):
    return {tuple(pair) for pair in mask.nonzero().tolist()}


@pytest.fixture
def cloud():
    torch.manual_seed(0)
    return torch.rand(60, 3, dtype=torch.float64), torch.randint(0, 4, (60,))


def test_radius_in_a_batch(cloud):
    x, batch = cloud
    near = torch.cdist(x, x) <= 0.4
    assert pairs_of(radius_edges(x, 0.4)) == brute(near)
    same = batch[:, None] == batch
    edges = radius_edges(x, 0.4, batch=batch)
    assert pairs_of(edges) == brute(near & same)
    assert torch.equal(edges.position, x[edges.sender] - x[edges.receiver])
    assert pairs_of(radius_edges(x, 0.4, loops=False)) == brute(near & ~torch.eye(60).bool())


def test_box_with_a_radius_per_axis(cloud):
    x, _ = cloud
    limit = torch.tensor([0.2, 0.5, 0.1])
    near = ((x[:, None] - x).abs() <= limit).all(-1)
    assert pairs_of(radius_edges(x, limit.tolist(), shape="box")) == brute(near)


def test_other_receivers(cloud):
    x, batch = cloud
    y, other = x[:5] + 0.01, torch.tensor([0, 1, 2, 3, 9])  # nobody is in cloud 9
    edges = radius_edges(x, 0.5, receivers=y, batch=batch, receiver_batch=other)
    assert pairs_of(edges) == brute((torch.cdist(y, x) <= 0.5) & (other[:, None] == batch))
    assert (edges.n_receivers, edges.n_senders) == (5, 60)
    pairs = all_pairs(x, receivers=y, batch=batch, receiver_batch=other)
    assert pairs_of(pairs) == brute(other[:, None] == batch)


@pytest.mark.parametrize("loops", [True, False])
def test_nearest_in_a_batch(cloud, loops):
    x, batch = cloud
    batch[:3] = 7  # a cloud with fewer points than neighbours
    batch[3:] %= 4
    edges = nearest_edges(x, 5, batch=batch, loops=loops)
    distance = torch.cdist(x, x).masked_fill(batch[:, None] != batch, torch.inf)
    if not loops:
        distance.fill_diagonal_(torch.inf)
    nearest = distance.argsort(-1)[:, :5]
    expected = {
        (n, m) for n in range(60) for m in nearest[n].tolist() if distance[n, m] < torch.inf
    }
    assert pairs_of(edges) == expected


def test_coincident_points_keep_their_number_of_neighbours():
    x = torch.zeros(6, 2)
    for loops in (True, False):
        edges = nearest_edges(x, 3, loops=loops)
        assert edges.degree.tolist() == [3] * 6
        assert nearest_edges(x, 3, receivers=x, loops=loops).degree.tolist() == [3] * 6
        assert loops or not (edges.sender == edges.receiver).any()


def test_torus_and_cylinder():
    torch.manual_seed(0)
    x = 20 * torch.rand(50, 2, dtype=torch.float64) - 10  # anywhere: it is wrapped
    difference = x[None] - x[:, None]
    for period in ((2.0, 3.0), (2.0, None)):
        wrapped = difference.clone()
        for axis, length in enumerate(period):
            if length is not None:
                wrapped[..., axis] -= length * (wrapped[..., axis] / length).round()
        near = wrapped.norm(dim=-1) <= 0.6
        edges = radius_edges(x, 0.6, period=period)
        assert pairs_of(edges) == brute(near)
        torch.testing.assert_close(edges.position, wrapped[edges.receiver, edges.sender])
        assert nearest_edges(x, 4, period=period).degree.tolist() == [4] * 50


def test_interval_is_kept_by_boosts():
    torch.manual_seed(0)
    x = torch.randn(40, 2, dtype=torch.float64)
    boost = torch.tensor([[2.0, 3**0.5], [3**0.5, 2.0]], dtype=torch.float64)
    here, there = (interval_edges(p, (1, -1), 0.5) for p in (x, x @ boost.T))
    assert pairs_of(here) == pairs_of(there)
    assert len(here) < 1600
    ended = interval_edges(x, (1, -1), 0.5, euclidean_radius=1.0)
    assert pairs_of(ended) == pairs_of(here) & pairs_of(radius_edges(x, 1.0))
    moved = interval_edges(x @ boost.T, (1, -1), 0.5, euclidean_radius=1.0)
    assert pairs_of(moved) != pairs_of(ended), "the control: a Euclidean bound breaks it"


def test_interval_in_blocks_and_batches(cloud, monkeypatch):
    x, batch = cloud
    signs = torch.tensor([1.0, -1.0, -1.0], dtype=torch.float64)
    difference = x - x[:, None]
    near = (difference.square() @ signs).abs() <= 0.25
    monkeypatch.setattr(clouds, "BLOCK", 150)  # two receivers at a time
    assert pairs_of(interval_edges(x, (1, -1, -1), 0.5)) == brute(near)
    same = batch[:, None] == batch
    edges = interval_edges(x, (1, -1, -1), 0.5, batch=batch, loops=False)
    assert pairs_of(edges) == brute(near & same & ~torch.eye(60).bool())
    few = interval_edges(x, (1, -1, -1), 0.5, receivers=x[:4])
    assert pairs_of(few) == brute(near[:4])
    # A cylinder: space is a circle of length 1.
    wrapped = difference.clone()
    wrapped[..., 1] -= wrapped[..., 1].round()
    near = ((wrapped.square() @ signs).abs() <= 0.25) & (wrapped.norm(dim=-1) <= 0.4)
    around = interval_edges(x, (1, -1, -1), 0.5, euclidean_radius=0.4, period=(None, 1.0, None))
    assert pairs_of(around) == brute(near)


def test_nobody_there():
    none = torch.zeros(0, 3)
    for edges in (radius_edges(none, 1.0), nearest_edges(none, 2), all_pairs(none)):
        assert len(edges) == 0
    assert len(nearest_edges(torch.rand(4, 3), 2, receivers=none)) == 0


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_neighbours_at_exactly_the_radius(dtype):
    line = torch.linspace(0, 1, 11, dtype=dtype)[:, None]
    expected = [4, 5, 6, 7, 7, 7, 7, 7, 6, 5, 4]
    for edges in (radius_edges(line, 0.3), interval_edges(line, (-1,), 0.3)):
        assert edges.degree.tolist() == expected
    assert radius_edges(line, 0.2, period=(1.1,)).degree.tolist() == [5] * 11
    assert radius_edges(line, 0.3 - 1e-4).degree.tolist() == [3, 4, *[5] * 7, 4, 3]
    # Rounding far from the origin does not let others in.
    far = torch.tensor([[4e6], [4e6 + 1], [4e6 + 2]], dtype=dtype)
    assert radius_edges(far, 1.9).degree.tolist() == [2, 3, 2]


def test_gradients_reach_the_points():
    x = torch.rand(9, 2, dtype=torch.float64, requires_grad=True)
    edges = radius_edges(x, 0.8)
    edges.position.square().sum().backward()
    assert x.grad.abs().max() > 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: radius_edges(x, -1.0), "radius must be positive, got -1.0"),
        (lambda x: radius_edges(x, (1.0, 2.0)), "with shape='box'"),
        (lambda x: radius_edges(x, 1.0, shape="cube"), "'ball' or 'box', got 'cube'"),
        (lambda x: radius_edges(x, 1.0, period=(1.5, None)), "around an axis of period 1.5"),
        (lambda x: radius_edges(x, 0.75, period=(1.5, None)), "around an axis of period 1.5"),
        (lambda x: radius_edges(x, 1.0, period=(1.0,)), "each of 2 axes"),
        (lambda x: radius_edges(x[0], 1.0), r"got torch.float32 of shape \(2,\)"),
        (lambda x: radius_edges(x / 0, 1.0), "number 0 is"),
        (lambda x: radius_edges(x, 1.0, batch=torch.ones(3)), "an integer for each of 4 points"),
        (lambda x: nearest_edges(x, 0), "at least 1, got 0"),
        (lambda x: interval_edges(x, (1, -1, -1), 1.0), "each of 2 axes, got"),
        (lambda x: interval_edges(x, (1, -1), 1.0, period=(1.0, None)), "needs a euclidean_radius"),
        (lambda x: all_pairs(x, receivers=x[:2], loops=False), "receivers that are the senders"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call(torch.ones(4, 2))


@pytest.mark.parametrize(
    ("package", "search"),
    [
        ("scipy.spatial", lambda x: radius_edges(x, 1.0)),
        ("torchdiffeq", lambda x: torus_of_revolution().exp(x, x)),
    ],
)
def test_missing_packages_say_what_to_install(package, search, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"{package}: pip install 'cscnn\[geometry\]'"):
        search(torch.rand(3, 2))
