"""Symmetries of convolution along edges, with controls that must fail."""

import pytest
import torch

from cscnn import CliffordAlgebra
from cscnn.geometry import (
    Edges,
    all_pairs,
    anti_de_sitter,
    de_sitter,
    hyperbolic,
    sphere,
    torus_of_revolution,
)
from cscnn.kernels import Complete
from tests.conv.point_builders import (
    METRICS,
    action,
    bias_field,
    cloud,
    features,
    make,
    naive,
    relative,
)

#: group -> one of its elements in R^{1,1} beside boosts, and one that it lacks
GROUPS = {
    "O": ((-1.0, 1.0), None),
    "SO": ((-1.0, -1.0), (1.0, -1.0)),
    "O+": ((1.0, -1.0), (-1.0, 1.0)),
    "SO+": ((1.0, 1.0), (-1.0, -1.0)),
}


@pytest.mark.parametrize("kernel", ["implicit", "complete"])
@pytest.mark.parametrize("metric", [*METRICS, (1, -1, -1, -1)])
def test_isometries_of_flat_space(metric, kernel):
    conv = make(metric, kernel=kernel, aggregation="mean")
    algebra = conv.algebra
    where = cloud(metric)
    edges = all_pairs(where)
    x = features(edges, conv)
    y = conv(x, edges)
    for kind in algebra.kinds():
        g = algebra.random_orthogonal(
            kind, rapidity=2.0, generator=torch.Generator().manual_seed(3), dtype=torch.float64
        )
        moved = all_pairs(where @ g.mT + torch.arange(len(metric)))
        error = relative(conv(action(algebra, g, x), moved), action(algebra, g, y))
        assert error < 1e-9, kind
    order = torch.randperm(9)
    assert relative(conv(x[order], all_pairs(where[order])), y[order]) < 1e-12


def test_the_wrong_signature_is_not_symmetric():
    conv = make((1, 1), aggregation="mean")
    spacetime = CliffordAlgebra((1, -1))
    boost = spacetime.random_orthogonal("boost", rapidity=1.0, dtype=torch.float64)
    where = cloud((1, 1))
    x = features(all_pairs(where), conv)
    moved = conv(action(spacetime, boost, x), all_pairs(where @ boost.mT))
    assert relative(moved, action(spacetime, boost, conv(x, all_pairs(where)))) > 1e-2


@pytest.mark.parametrize("group", GROUPS)
def test_groups(group):
    """Each kernel has the symmetries of its group and not those beyond it."""
    conv = make((1, -1), kernel=Complete(group=group), aggregation="mean")
    where = cloud((1, -1))
    x = features(all_pairs(where), conv)
    y = conv(x, all_pairs(where))
    assert relative(y, naive_mean(conv, x, all_pairs(where))) < 1e-12
    inside, beyond = (torch.diag(torch.tensor(g or (1.0, 1.0)).double()) for g in GROUPS[group])
    rapidity = torch.tensor(1.5, dtype=torch.float64)
    boost = torch.stack([rapidity.cosh(), rapidity.sinh(), rapidity.sinh(), rapidity.cosh()])
    g = inside @ boost.view(2, 2)
    assert relative(conv(action(conv.algebra, g, x), all_pairs(where @ g.mT)), action(
        conv.algebra, g, y)) < 1e-9  # fmt: skip
    if GROUPS[group][1] is not None:
        moved = conv(action(conv.algebra, beyond, x), all_pairs(where @ beyond))
        assert relative(moved, action(conv.algebra, beyond, y)) > 1e-2


def naive_mean(conv, x, edges):
    bias = bias_field(conv)
    return (naive(conv, x, edges) - bias) / edges.degree.double()[:, None, None] + bias


def test_arrow_of_time():
    """Kernels of O+ keep orthochronous symmetry and break time reversal; causal ones look back."""
    conv = make((1, -1), kernel=Complete(group="O+", causal=True))
    where = cloud((1, -1))
    x = features(all_pairs(where), conv)
    y = conv(x, all_pairs(where))
    boost = conv.algebra.random_orthogonal("boost", dtype=torch.float64)
    boost = boost * boost[0, 0].sign()
    moved = conv(action(conv.algebra, boost, x), all_pairs(where @ boost.mT))
    assert relative(moved, action(conv.algebra, boost, y)) < 1e-9
    reverse = torch.diag(torch.tensor([-1.0, 1.0])).double()
    back = conv(action(conv.algebra, reverse, x), all_pairs(where @ reverse))
    assert relative(back, action(conv.algebra, reverse, y)) > 1e-2
    last = int(where[:, 0].argmax())
    changed = x.clone()
    changed[last] += 1
    others = torch.arange(9) != last
    assert torch.equal(conv(changed, all_pairs(where))[others], y[others])


CURVED = {
    "S2": sphere(2), "S3": sphere(3), "H2": hyperbolic(2),
    "dS2": de_sitter(2), "AdS2": anti_de_sitter(2), "dS3": de_sitter(3),
}  # fmt: skip


def curved_cloud(space, count=10):
    axis = space.ambient.index(space.sign)
    start = torch.zeros(count, len(space.ambient), dtype=torch.float64)
    start[:, axis] = 1
    generator = torch.Generator().manual_seed(0)
    v = 0.5 * torch.randn(count, space.dim, 1, generator=generator, dtype=torch.float64)
    return space.exp(start, (space.frames(start) @ v).squeeze(-1))


@pytest.mark.parametrize("kernel", ["implicit", "complete"])
@pytest.mark.parametrize("space", CURVED.values(), ids=CURVED)
def test_gauge_and_isometries(space, kernel):
    conv = make(space.metric, kernel=kernel, aggregation="mean")
    where = curved_cloud(space)
    frames = space.frames(where)
    edges = space.edges(where, frames=frames)
    x = features(edges, conv)
    y = conv(x, edges)
    # Other frames: outputs change by ρ(h_n).
    h = conv.algebra.random_orthogonal(
        "any", rapidity=1.0, batch=len(x), generator=torch.Generator().manual_seed(1),
        dtype=torch.float64,
    )  # fmt: skip
    expected = action(conv.algebra, h, y)
    turned = space.edges(where, frames=frames @ torch.linalg.inv(h))
    for other in (turned, edges.change_frames(h)):
        assert relative(conv(action(conv.algebra, h, x), other), expected) < 1e-9
    # Moved points, with frames and features pushed along: the same numbers.
    ambient = CliffordAlgebra(space.ambient)
    for kind in ambient.kinds():
        g = ambient.random_orthogonal(
            kind, rapidity=1.0, generator=torch.Generator().manual_seed(2), dtype=torch.float64
        )
        assert relative(conv(x, space.edges(where @ g.mT, frames=g @ frames)), y) < 1e-9, kind
    # The control: without transport, frames matter.
    blind = [
        Edges(e.receiver, e.sender, e.position, n_receivers=len(x), n_senders=len(x))
        for e in (edges, edges.change_frames(h))
    ]
    error = relative(
        conv(action(conv.algebra, h, x), blind[1]), action(conv.algebra, h, conv(x, blind[0]))
    )
    assert error > 1e-2


def test_the_wrong_signature_is_not_symmetric_on_curved_spaces():
    space = de_sitter(2)
    where = curved_cloud(space)
    edges = space.edges(where)
    h = CliffordAlgebra((1, -1)).random_orthogonal(
        "boost", rapidity=1.0, batch=len(where), dtype=torch.float64
    )
    for metric in ((1, -1), (1, 1)):
        conv = make(metric, aggregation="mean")
        x = features(edges, conv)
        moved = conv(action(conv.algebra, h, x), edges.change_frames(h))
        error = relative(moved, action(conv.algebra, h, conv(x, edges)))
        assert (error < 1e-9) if metric == space.metric else (error > 1e-2)


def test_gauge_on_a_chart():
    chart = torus_of_revolution()
    torch.manual_seed(0)
    where = torch.rand(6, 2, dtype=torch.float64)
    conv = make((1, 1), aggregation="mean")
    edges = chart.edges(where, 0.9)
    x = features(edges, conv)
    h = conv.algebra.random_orthogonal("any", batch=6, dtype=torch.float64)
    turned = chart.edges(where, 0.9, frames=chart.frames(where) @ torch.linalg.inv(h))
    y = conv(action(conv.algebra, h, x), turned)
    assert relative(y, action(conv.algebra, h, conv(x, edges))) < 1e-9
