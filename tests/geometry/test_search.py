"""Neighbours by a few numbers, against brute force."""

import pytest
import torch

pytest.importorskip("scipy")

from cscnn.geometry import NeighbourSearch, joining_edges, radius_edges


@pytest.fixture
def clouds() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.rand(n, 2, generator=generator, dtype=torch.float64) for n in (150, 90, 30)]


def degrees(clouds, radius, period=1.0):
    """Neighbours within a radius, the point itself included."""
    counts = []
    for x in clouds:
        v = x[:, None] - x[None]
        v = v - period * (v / period).round() if period else v
        counts += (v.norm(dim=-1) <= radius).sum(1).tolist()
    return sum(counts) / len(counts)


@pytest.mark.parametrize("period", [None, (1.0, 1.0)])
def test_defaults_give_a_usual_number_of_neighbours(clouds, period):
    search = NeighbourSearch.fit(clouds[:2], period=period)
    assert search.by == "radius"
    mean = degrees(clouds[:2], search.radius, 1.0 if period else None)
    assert 16 <= mean <= 32
    assert search.neighbours == round(mean)


def test_what_is_given_stays(clouds):
    by_radius = NeighbourSearch.fit(clouds, radius=0.125, period=(1.0, 1.0))
    assert by_radius.radius == 0.125
    assert by_radius.neighbours == round(degrees(clouds, 0.125))
    nearest = NeighbourSearch.fit(clouds, neighbours=6, period=(1.0, 1.0))
    assert (nearest.by, nearest.neighbours) == ("nearest", 6)
    assert all((nearest.edges(x).degree == 6).all() for x in clouds)
    lengths = [nearest.edges(x).position.norm(dim=-1).reshape(-1, 6).amax(1) for x in clouds]
    assert nearest.radius == pytest.approx(float(torch.cat(lengths).mean()), rel=5e-3)


def test_small_boxes_and_small_clouds_limit_the_radius(clouds):
    few = NeighbourSearch.fit([clouds[0][:10]], period=(1.0, 1.0))
    assert few.radius < 0.5
    assert few.neighbours <= 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"radius": 1.0, "neighbours": 3}, "not both: got 1.0 and 3"),
        ({"neighbours": 0}, "neighbours must be at least 1, got 0"),
        ({"radius": -1.0}, "radius must be positive, got -1.0"),
    ],
)
def test_wrong_options(clouds, options, message):
    with pytest.raises(ValueError, match=message):
        NeighbourSearch.fit(clouds, **options)
    with pytest.raises(ValueError, match=r"at a distance of 0\.0"):
        NeighbourSearch.fit([torch.zeros(4, 2)])
    with pytest.raises(ValueError, match="'box'"):
        NeighbourSearch(1.0, 3, by="box")


def test_known_pairs_give_the_same_edges(clouds):
    x, period = clouds[0], (1.0, None)
    edges = radius_edges(x, 0.2, period=period)
    order = torch.randperm(len(edges), generator=torch.Generator().manual_seed(1))
    again = joining_edges(x, edges.receiver[order], edges.sender[order], period=period)
    assert torch.equal(again.sender, edges.sender)
    assert torch.equal(again.position, edges.position)
    with pytest.raises(ValueError, match="indices of 150 points, got 150 to 150"):
        joining_edges(x, torch.tensor([150]), torch.tensor([0]))
