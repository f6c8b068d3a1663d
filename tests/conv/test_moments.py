"""Sums over edges by hand: the naive sum and its derivatives, in all orders of memory."""

import pytest
import torch

from cscnn import CliffordAlgebra
from cscnn.conv import CliffordSteerablePointConv, moments, points
from cscnn.geometry import Edges, nearest_edges
from cscnn.kernels import Complete
from tests.conv.point_builders import cloud, features, make, naive, relative

CASES = {
    "plane": ((1, 1), Complete(), False),
    "spacetime": ((1, -1), Complete(group="SO+", causal=True, radial="rings"), False),
    "space": ((1, 1, 1), Complete(group="SO"), False),
    "tensors": ((1, 1), Complete(group="SO"), True),
}
#: Each receiver by itself in memory, or all of a group together.
LAYOUTS = {"one by one": 1, "together": 1 << 30}
#: Of 8 points the first hears nobody, others hear 4, 3 (which is padded) or 1.
RECEIVERS = [1, 1, 1, 1, 5, 2, 2, 3, 3, 2, 3, 3, 7, 7, 7, 7]


def build(case):
    metric, kernel, symmetric = CASES[case]
    torch.manual_seed(0)
    algebra = CliffordAlgebra(metric, symmetric=symmetric)
    conv = CliffordSteerablePointConv(algebra, 2, 3, 0.9, kernel=kernel)
    torch.nn.init.normal_(conv.bias)
    return conv.double()


def derivatives(y, inputs):
    projection = torch.randn(y.shape, generator=torch.Generator().manual_seed(1), dtype=y.dtype)
    return [y, *torch.autograd.grad((projection * y).sum(), inputs)]


@pytest.mark.parametrize("long", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("curved", [False, True], ids=["flat", "curved"])
@pytest.mark.parametrize("case", CASES)
def test_is_the_naive_sum_with_its_derivatives(case, curved, long, monkeypatch):
    """By features, positions, weights of edges, frames and parameters."""
    conv = build(case)
    metric = conv.algebra.metric
    monkeypatch.setattr(moments, "LONG", long)
    monkeypatch.setattr(points, "ROOM_BY_HAND", 12 * 2 * conv.table.count)  # several groups
    monkeypatch.setattr(points, "plain", None)  # nothing else runs
    where = cloud(metric, 8).requires_grad_()
    weights = torch.rand(8, dtype=torch.float64, requires_grad=True)
    frames = CliffordAlgebra(metric).random_orthogonal("any", batch=8, dtype=torch.float64)
    frames.requires_grad_()

    sender = torch.randint(8, (len(RECEIVERS),), generator=torch.Generator().manual_seed(0))

    def edges():
        index = torch.stack([sender, torch.tensor(RECEIVERS)])
        flat = Edges.from_edge_index(index, where, weights=weights)
        return flat.change_frames(frames) if curved else flat

    x = features(edges(), conv).requires_grad_()
    inputs = [x, where, weights, *conv.parameters(), *[frames] * curved]
    results = (derivatives(f(x, edges()), inputs) for f in (conv, lambda *a: naive(conv, *a)))
    for a, b in zip(*results, strict=True):
        assert relative(a, b) < 1e-11


@pytest.mark.parametrize("frozen", ["features", "parameters"])
def test_only_some_derivatives(frozen):
    conv = make((1, 1))
    edges = nearest_edges(cloud((1, 1)), 4)
    x = features(edges, conv).requires_grad_()
    chosen = [x] if frozen == "parameters" else list(conv.parameters())
    expected = derivatives(conv(x, edges), chosen)
    conv.requires_grad_(frozen != "parameters")
    x = x.detach().requires_grad_(frozen != "features")
    chosen = [x] if frozen == "parameters" else list(conv.parameters())
    for a, b in zip(derivatives(conv(x, edges), chosen), expected, strict=True):
        assert relative(a, b) < 1e-12


@pytest.mark.parametrize("symmetric", [False, True], ids=["vectors", "tensors"])
def test_second_derivatives(symmetric):
    torch.manual_seed(0)
    algebra = CliffordAlgebra((1, 1), symmetric=symmetric)
    conv = CliffordSteerablePointConv(algebra, 1, 1, kernel=Complete(group="SO")).double()
    where = cloud((1, 1), 3)
    frames = CliffordAlgebra((1, 1)).random_orthogonal("any", batch=3, dtype=torch.float64)
    x = torch.randn(3, 1, algebra.n_blades, dtype=torch.float64)

    def function(where, frames, x):
        return conv(x, nearest_edges(where, 2).change_frames(frames))[..., 1:]

    inputs = [t.requires_grad_() for t in (where, frames, x)]
    assert torch.autograd.gradgradcheck(function, inputs)


def test_transforms():
    """Under vmap and forward mode, where nothing is by hand."""
    conv = make((1, 1, 1), kernel=Complete(group="SO"))
    edges = nearest_edges(cloud((1, 1, 1)), 4).prepared()
    x = torch.stack([features(edges, conv, seed) for seed in (1, 2)])
    expected = torch.stack([conv(each, edges) for each in x])
    assert relative(torch.vmap(lambda each: conv(each, edges))(x), expected) < 1e-12
    y, slope = torch.func.jvp(lambda each: conv(each, edges), (x[0],), (x[1],))
    assert relative(y, expected[0]) < 1e-12
    assert relative(slope, conv(x[1], edges) - conv(torch.zeros_like(x[1]), edges)) < 1e-12


def test_memory_does_not_grow_with_messages(monkeypatch):
    """Of an edge only its radial features are kept."""
    conv = make((1, 1, 1)).float()
    monkeypatch.setattr(points, "KEPT", 0)
    monkeypatch.setattr(points, "ROOM_BY_HAND", 1 << 10)
    edges = nearest_edges(torch.rand(50, 3), 20)
    x = features(edges, conv).float().requires_grad_()
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        conv(x, edges)
    per_edge = sum(t.numel() for t in {t.data_ptr(): t for t in kept}.values()) / len(edges)
    assert per_edge < conv.table.count
