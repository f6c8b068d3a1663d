"""Graphs of PyTorch Geometric: round trips, batches, and the same convolution."""

import pytest
import torch

from cscnn import CliffordAlgebra
from cscnn.conv import CliffordSteerablePointConv
from cscnn.geometry import Edges, nearest_edges, radius_edges, sphere
from cscnn.interop import from_pyg, to_pyg
from cscnn.networks import FieldType

SPACE = CliffordAlgebra((1, 1, 1))
FIELDS = FieldType(SPACE, ((0, 1), (2,)))


def assert_same(a: Edges, b: Edges) -> None:
    for name in ("receiver", "sender", "position", "weight", "transport"):
        x, y = getattr(a, name), getattr(b, name)
        assert (x is None) == (y is None)
        assert x is None or torch.equal(x, y)
    assert (a.n_receivers, a.n_senders) == (b.n_receivers, b.n_senders)


class TestWithoutTheirPackage:
    def test_directions_and_shifts_by_loops(self):
        points = torch.rand(9, 2, dtype=torch.float64)
        index = torch.randint(9, (2, 30))
        shift = torch.randint(-1, 2, (30, 2)).double()
        edges = Edges.from_edge_index(index, points, shift=shift)
        for e, (source, target) in enumerate(index.T.tolist()):
            assert (edges.sender[e], edges.receiver[e]) == (source, target)
            there = points[target] + shift[e]
            assert torch.allclose(edges.position[e], points[source] - there)
        assert torch.equal(edges.edge_index, index)

    def test_periodic_shifts_are_those_of_our_own_search(self):
        points = torch.rand(40, 3, dtype=torch.float64)
        own = radius_edges(points, 0.3, period=(1.0, 1.0, None), loops=False)
        difference = points[own.receiver] - points[own.sender]
        shift = (-own.position - difference).round()  # as ASE gives them, in a cell of size one
        assert shift.abs().max() == 1
        other = Edges.from_edge_index(own.edge_index, points, shift=shift)
        assert torch.allclose(other.position, own.position)

    def test_two_sets_of_points(self):
        senders, receivers = torch.rand(5, 2), torch.rand(3, 2)
        own = nearest_edges(senders, 2, receivers=receivers, weights=torch.rand(5))
        weights = torch.zeros(5).index_copy(0, own.sender, own.weight)
        other = Edges.from_edge_index(own.edge_index, senders, receivers=receivers, weights=weights)
        assert_same(own, other)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"edge_index": torch.zeros(3, 2, dtype=torch.int64)}, r"\(2, E\), got \(3, 2\)"),
            ({"edge_index": torch.tensor([[0], [7]])}, "indices from 7 to 7, .* 4 receivers"),
            ({"edge_index": torch.tensor([[-1], [1]])}, "indices from -1 to -1, .* 4 senders"),
            ({"edge_index": torch.zeros(2, 5)}, "int64 indices, got torch.float32"),
            ({"shift": torch.zeros(2, 2)}, r"shift must have shape \(1, 2\), got \(2, 2\)"),
            ({"points": torch.zeros(4)}, "floating tensor"),
            ({"receivers": torch.zeros(4, 3)}, "receivers must be a floating tensor"),
        ],
    )
    def test_wrong_graphs(self, arguments, message):
        default = {"edge_index": torch.tensor([[0], [1]]), "points": torch.zeros(4, 2)}
        with pytest.raises(ValueError, match=message):
            Edges.from_edge_index(**{**default, **arguments})


@pytest.mark.external
@pytest.mark.filterwarnings("ignore")
class TestWithTheirPackage:
    @pytest.fixture(autouse=True)
    def data(self):
        return pytest.importorskip("torch_geometric.data", reason="torch_geometric is absent")

    @pytest.mark.parametrize("fields", [None, FIELDS])
    def test_a_graph_comes_back(self, fields):
        points = torch.rand(30, 3)
        edges = radius_edges(points, 0.4, period=(1.0, None, None), weights=torch.rand(30) + 1)
        x = torch.randn(30, 2, 8) * (FIELDS.mask if fields else 1)
        graph = to_pyg(x, points, edges, fields=fields, label=torch.tensor([3.0]))
        assert graph.validate()
        assert graph.x.shape == (30, 7 if fields else 16)
        assert graph.label == 3
        y, again = from_pyg(graph, fields or SPACE)
        assert torch.equal(x, y)
        assert_same(edges, again)

    def test_curved_spaces_keep_their_transport(self):
        manifold = sphere(2)
        points = torch.nn.functional.normalize(torch.randn(20, 3, dtype=torch.float64), dim=-1)
        edges = manifold.edges(points, 0.9)
        plane = CliffordAlgebra((1, 1))
        x = torch.randn(20, 2, 4, dtype=torch.float64)
        y, again = from_pyg(to_pyg(x, points, edges), plane)
        assert again.transport is not None
        assert torch.equal(x, y)
        assert_same(edges, again)

    def test_a_convolution_on_their_neighbours_is_one_on_ours(self, data):
        """Edges by hand, in their direction: k nearest sources of each target."""
        points = torch.rand(40, 3, dtype=torch.float64)
        near = torch.cdist(points, points).topk(6, largest=False).indices  # targets x sources
        index = torch.stack([near.flatten(), torch.arange(40).repeat_interleave(6)])
        index = index[:, torch.randperm(240)]
        x = torch.randn(40, 2, 8, dtype=torch.float64)
        graph = data.Data(x=x.flatten(1), pos=points, edge_index=index)
        conv = CliffordSteerablePointConv(SPACE, 2, 3, radius=0.6).double()
        own = conv(x, nearest_edges(points, 6))
        assert torch.allclose(conv(*from_pyg(graph, SPACE)), own, atol=1e-12)
        graph.edge_index = index.flip(0)  # control: the other direction
        assert not torch.allclose(conv(*from_pyg(graph, SPACE)), own, atol=1e-3)

    def test_a_batch_is_a_batch(self, data):
        conv = CliffordSteerablePointConv(SPACE, 2, 3, radius=0.5).double()
        clouds = [torch.rand(n, 3, dtype=torch.float64) for n in (12, 20, 7)]
        fields = [torch.randn(len(points), 2, 8, dtype=torch.float64) for points in clouds]
        edges = [radius_edges(points, 0.5) for points in clouds]
        graphs = [to_pyg(*parts) for parts in zip(fields, clouds, edges, strict=True)]
        batch = data.Batch.from_data_list(graphs)
        x, joined = from_pyg(batch, SPACE)
        assert_same(joined, Edges.cat(edges))
        assert_same(joined, radius_edges(batch.pos, 0.5, batch=batch.batch))
        each = [conv(*parts) for parts in zip(fields, edges, strict=True)]
        assert torch.allclose(conv(x, joined), torch.cat(each), atol=1e-12)

    def test_what_is_missing_is_told(self, data):
        graph = data.Data(x=torch.zeros(4, 7), pos=torch.zeros(4, 3))
        with pytest.raises(ValueError, match=r"no edge_index: geometry\.radius_edges makes edges"):
            from_pyg(graph, SPACE)
        graph.edge_index = torch.zeros(2, 0, dtype=torch.int64)
        with pytest.raises(ValueError, match=r"8 columns for each .* got shape \(4, 7\)"):
            from_pyg(graph, SPACE)
        with pytest.raises(ValueError, match=r"1 columns for .* got \(4, 7\)"):
            from_pyg(graph, FieldType(SPACE, ((0,),)))
        with pytest.raises(ValueError, match=r"got shapes \(4, 2, 8\) and \(5, 3\)"):
            to_pyg(torch.zeros(4, 2, 8), torch.zeros(5, 3))
        with pytest.raises(ValueError, match="fields has 2 channels"):
            to_pyg(torch.zeros(4, 3, 8), torch.zeros(4, 3), fields=FIELDS)
        with pytest.raises(ValueError, match="must join the 4 points"):
            to_pyg(torch.zeros(4, 2, 8), torch.zeros(4, 3), nearest_edges(torch.rand(5, 3), 2))


def test_without_their_package_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch_geometric.data", None)
    with pytest.raises(ImportError, match=r"cscnn\[pyg\]"):
        to_pyg(torch.zeros(4, 2, 8), torch.zeros(4, 3))
