"""The structure itself: checks, batches, changes of frames, groups of receivers."""

import pytest
import torch

from cscnn.geometry import Edges, nearest_edges, radius_edges


def some_edges(points=40, radius=0.4, dim=2, seed=0):
    torch.manual_seed(seed)
    return radius_edges(torch.rand(points, dim, dtype=torch.float64), radius)


def test_groups_hold_every_edge_once_with_receivers_of_similar_degree():
    edges = some_edges()
    for limit in (1, 30, 10**6):
        seen = []
        for receivers, index, present in edges.groups(limit):
            assert index.shape[0] == len(receivers)
            assert (edges.receiver[index] == receivers[:, None]).all(), "padding stays at home"
            kept = index[present] if present is not None else index.flatten()
            assert len(kept) >= 0.75 * index.numel()
            assert index.numel() <= max(limit, index.shape[1])
            seen.append(kept)
        assert torch.equal(torch.cat(seen).sort().values, torch.arange(len(edges)))


def test_what_is_sorted_once_stays_sorted():
    edges = some_edges().prepared()
    turned = edges.change_frames(torch.eye(2).double().expand(40, 2, 2))
    for other in (edges.weighted(torch.ones(40)), turned):
        assert other._similar is edges._similar
    for other in (edges.to(torch.float32), edges.to("meta")):
        assert "_similar" in other.__dict__
        assert other._similar[0].edges.device == other.position.device == other.sender.device
    assert edges.to(torch.float32)._similar[0].edges is edges._similar[0].edges
    half = edges.select(torch.arange(len(edges)) % 2 == 0)
    assert int(half.degree.sum()) == len(half) < len(edges)


def test_receivers_without_edges_are_in_no_group():
    edges = radius_edges(torch.tensor([[0.0], [5.0]]), 1.0, receivers=torch.tensor([[9.0], [0.5]]))
    (group,) = edges.groups(10)
    assert group.receivers.tolist() == [1]
    assert edges.degree.tolist() == [0, 1]


def test_cat_keeps_clouds_apart():
    a, b = some_edges(seed=1), nearest_edges(torch.rand(7, 2).double(), 3)
    both = Edges.cat([a, b.weighted(torch.arange(7.0))])
    assert (both.n_senders, both.n_receivers, len(both)) == (47, 47, len(a) + len(b))
    assert torch.equal(both.receiver[len(a) :], b.receiver + 40)
    assert torch.equal(both.weight[: len(a)], torch.ones(len(a), dtype=torch.float64))
    assert both.transport is None
    turned = b.change_frames(torch.eye(2).double().expand(7, 2, 2))
    assert Edges.cat([a, turned]).transport.shape == (len(both), 2, 2)
    assert torch.equal(a.repeat(2).sender, torch.cat([a.sender, a.sender + 40]))


def test_frames_change_back():
    edges = some_edges()
    angle = torch.rand(40, dtype=torch.float64)
    h = torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], -1).view(-1, 2, 2)
    there = edges.change_frames(h)
    assert not torch.allclose(there.position, edges.position)
    back = there.change_frames(h.mT)
    torch.testing.assert_close(back.position, edges.position)
    torch.testing.assert_close(back.transport, torch.eye(2).double().expand_as(back.transport))


def test_casting_and_repr():
    edges = some_edges()
    assert edges.to(torch.float32).position.dtype == torch.float32
    assert edges.to(torch.float32).sender.dtype == torch.int64
    assert edges.to(edges.position) is edges
    assert "40 senders -> 40 receivers, 2D, flat" in repr(edges)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sender": torch.tensor([0, 9])}, r"indices from 0 to 9, but there are 3 senders"),
        ({"receiver": torch.tensor([0.0, 1.0])}, r"int64"),
        ({"position": torch.zeros(3, 2)}, r"position must have shape \(2, 2\), got \(3, 2\)"),
        ({"transport": torch.zeros(2, 2)}, r"transport must have shape \(2, 2, 2\)"),
        ({"position": torch.tensor([[0.0, 0.0], [0.0, torch.nan]])}, r"edge 1 is not finite"),
        ({"weight": torch.ones(5)}, r"weight must have shape \(2,\), got \(5,\)"),
    ],
)
def test_bad_edges(change, message):
    good = {
        "receiver": torch.tensor([0, 1]), "sender": torch.tensor([0, 2]),
        "position": torch.zeros(2, 2), "n_receivers": 2, "n_senders": 3,
    }  # fmt: skip
    Edges(**good)
    with pytest.raises(ValueError, match=message):
        Edges(**{**good, **change})


def test_weights_are_per_sender():
    edges = some_edges()
    weights = torch.rand(40)
    torch.testing.assert_close(edges.weighted(weights).weight, weights.double()[edges.sender])
    with pytest.raises(ValueError, match=r"each of the 40 senders, got shape \(3,\)"):
        edges.weighted(torch.ones(3))
