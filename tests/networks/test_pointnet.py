"""`CSPointNet`: symmetries, budgets, size of signals; what it says of grids."""

import math
from dataclasses import replace

import pytest
import torch

from cscnn import CliffordAlgebra
from cscnn.geometry import (
    Edges,
    all_pairs,
    anti_de_sitter,
    fibonacci_sphere,
    nearest_edges,
    radius_edges,
    sphere,
)
from cscnn.kernels import Complete, Implicit
from cscnn.networks import (
    CSPointNet,
    FieldType,
    Grid,
    Neighbourhood,
    build,
    calibrate_,
    count_parameters,
    fit_budget,
    names,
    noise_edges,
    recompute_blocks,
)
from cscnn.testing import relative_error

KERNELS = {"complete": Complete(hidden_dim=4), "implicit": Implicit(num_layers=2, hidden_dim=4)}
TINY = {
    "c_in": 2,
    "c_out": 3,
    "width": 3,
    "blocks": 2,
    "neighbourhood": Neighbourhood(neighbours=9),
}


def calibrated(network):
    edges = noise_edges(network.algebra.dim, 256, network.neighbourhood)
    calibrate_(network, torch.randn(256, network.c_in, network.algebra.n_blades), edges)
    return network


def tiny(metric, **options):
    model = calibrated(CSPointNet(CliffordAlgebra(metric), **{**TINY, **options})).double()
    with torch.no_grad():  # products start at zero
        for name, parameter in model.named_parameters():
            if "act" in name and name.endswith("weight"):
                parameter.normal_()
    return model


def noise(edges, model, seed=1):
    shape = (edges.n_senders, model.c_in, model.algebra.n_blades)
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def cloud(metric, count=9, size=0.5):
    generator = torch.Generator().manual_seed(0)
    return size * torch.randn(count, len(metric), generator=generator, dtype=torch.float64)


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": KERNELS["complete"]},
        {"kernel": KERNELS["implicit"]},
        {"activation": "product"},
        {"norm": False, "neighbourhood": Neighbourhood(neighbours=9, aggregation="sum")},
        {"width": (3, 2), "neighbourhood": Neighbourhood(1.0, 9, aggregation="weighted mean")},
    ],
    ids=["complete", "implicit", "product", "plain sum", "weighted mean"],
)
@pytest.mark.parametrize("metric", [(1, 1), (1, -1), (1, 1, 1), (1, -1, -1, -1)], ids=str)
def test_isometries_of_flat_space(metric, options):
    model = tiny(metric, **options)
    algebra, where = model.algebra, cloud(metric)
    x = noise(all_pairs(where), model)
    y = model(x, all_pairs(where))
    assert y.shape == (9, 3, algebra.n_blades)
    for kind in algebra.kinds():
        generator = torch.Generator().manual_seed(3)
        g = algebra.random_orthogonal(kind, rapidity=2.0, generator=generator, dtype=torch.float64)
        moved = model(algebra.transform(g, x), all_pairs(where @ g.mT + 1))
        assert relative_error(moved, algebra.transform(g, y)) < 1e-9, kind
        half_moved = model(algebra.transform(g, x), all_pairs(where))  # the control
        assert relative_error(half_moved, algebra.transform(g, y)) > 1e-6, kind
    order = torch.randperm(9)
    assert relative_error(model(x[order], all_pairs(where[order])), y[order]) < 1e-9


def test_the_wrong_signature_is_not_symmetric():
    model, spacetime = tiny((1, 1)), CliffordAlgebra((1, -1))
    where = cloud((1, 1))
    x = noise(all_pairs(where), model)
    g = spacetime.random_orthogonal("boost", rapidity=1.0, dtype=torch.float64)
    moved = model(spacetime.transform(g, x), all_pairs(where @ g.mT))
    assert relative_error(moved, spacetime.transform(g, model(x, all_pairs(where)))) > 1e-2


def test_arrow_of_time():
    model = tiny((1, -1), kernel=Complete("O+", causal=True))
    where = cloud((1, -1))
    x = noise(all_pairs(where), model)
    y = model(x, all_pairs(where))
    flip = torch.diag(torch.tensor([-1.0, 1.0]).double())
    back = model(model.algebra.transform(flip, x), all_pairs(where @ flip))
    assert relative_error(back, model.algebra.transform(flip, y)) > 1e-2
    last = int(where[:, 0].argmax())
    changed = x.clone()
    changed[last] += 1
    others = torch.arange(9) != last
    assert torch.equal(model(changed, all_pairs(where))[others], y[others])


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("space", [sphere(2), anti_de_sitter(2)], ids=["S2", "AdS2"])
def test_gauge_and_isometries(space, kernel):
    model = tiny(space.metric, activation="product", kernel=KERNELS[kernel])
    algebra = model.algebra
    start = torch.zeros(12, 3, dtype=torch.float64)
    start[:, space.ambient.index(space.sign)] = 1
    v = cloud(space.metric, 12).unsqueeze(-1)
    where = space.exp(start, (space.frames(start) @ v).squeeze(-1))
    frames = space.frames(where)
    edges = space.edges(where, frames=frames)
    x = noise(edges, model)
    y = model(x, edges)
    h = algebra.random_orthogonal("any", rapidity=1.0, batch=12, dtype=torch.float64)
    other = space.edges(where, frames=frames @ torch.linalg.inv(h))
    action = algebra.action(h).mT
    assert relative_error(model(x @ action, other), y @ action) < 1e-9
    ambient = CliffordAlgebra(space.ambient)
    for kind in ambient.kinds():
        g = ambient.random_orthogonal(kind, rapidity=1.0, dtype=torch.float64)
        moved = space.edges(where @ g.mT, frames=g @ frames)
        assert relative_error(model(x, moved), y) < 1e-9, kind
    blind = replace(other, transport=None)  # the control: without transport frames matter
    plain = model(x, replace(edges, transport=None))
    assert relative_error(model(x @ action, blind), plain @ action) > 1e-2


def test_gradients_reach_the_positions():
    model = tiny((1, 1), c_in=1, c_out=1, width=2, blocks=1)
    where = cloud((1, 1), 4).requires_grad_()
    x = noise(all_pairs(where), model).requires_grad_()
    assert torch.autograd.gradcheck(lambda p, f: model(f, all_pairs(p)), (where, x))


def test_recomputing_changes_nothing():
    edges = nearest_edges(cloud((1, 1), 20), 5)
    model = tiny((1, 1))
    x = noise(edges, model)
    grads = []
    for recompute in (False, True):
        recompute_blocks(model, recompute)
        model.zero_grad()
        model(x, edges).square().sum().backward()
        grads.append([p.grad.clone() for p in model.parameters()])
    for a, b in zip(*grads, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize(
    ("metric", "budgets"), [((1, 1), (20_000, 100_000)), ((1, -1, -1), (50_000,))]
)
def test_budgets_are_met(metric, budgets):
    full = FieldType.full(CliffordAlgebra(metric), 1)
    for params in budgets:
        options = fit_budget("cs_pointnet", full, full, params)
        network = build("cs_pointnet", full, full, **options)
        assert abs(count_parameters(network) - params) <= 0.03 * params
    with pytest.raises(ValueError, match="cannot have 10 parameters"):
        fit_budget("cs_pointnet", full, full, 10)


@pytest.mark.parametrize(
    ("metric", "aggregation", "kernel", "activation"),
    [
        ((1, 1), "sum", "complete", "gate"),
        ((1, 1), "sum", "implicit", "product"),
        ((1, 1), "mean", "implicit", "gate"),
        ((1, 1), "integral", "complete", "product"),
        ((1, 1), "integral", "implicit", "gate"),
        ((1, 1, 1), "mean", "complete", "gate"),
        ((1, 1, 1), "mean", "implicit", "product"),
        ((1, -1, -1, -1), "mean", "complete", "product"),
        ((1, -1, -1, -1), "sum", "implicit", "gate"),
    ],
)
def test_signals_and_gradients_keep_their_size(metric, aggregation, kernel, activation):
    """On a random cloud, not the one of the calibration; see the same test of cs_resnet."""
    algebra, dim = CliffordAlgebra(metric), len(metric)
    generator = torch.Generator().manual_seed(5)
    where = torch.rand(200, dim, generator=generator)
    volume = math.pi ** (dim / 2) / math.gamma(dim / 2 + 1)
    radius = (20 / (200 * volume)) ** (1 / dim)
    period = [1.0] * dim if radius < 0.5 else None
    edges = radius_edges(where, radius, period=period).weighted(torch.full((200,), 1 / 200))
    if aggregation == "sum":
        edges = edges.weighted(None)
    neighbours = round(float(edges.degree.double().mean()))
    torch.manual_seed(0)
    near = Neighbourhood(radius, neighbours, aggregation)
    model = calibrated(
        CSPointNet(
            algebra, 2, 2, 6, blocks=3, neighbourhood=near, kernel=kernel, activation=activation
        )
    )
    x = torch.randn(200, 2, algebra.n_blades, generator=generator).requires_grad_()
    y = model(x, edges)
    assert 0.1 < y.var() < 10
    g = torch.randn(y.shape, generator=generator)
    (gradient,) = torch.autograd.grad(y, x, g)
    assert 0.1 < gradient.square().sum() / g.square().sum() < 10


# --- registry, input ------------------------------------------------------------------------------


def test_registry():
    assert "cs_pointnet" in names()
    full = FieldType.full(CliffordAlgebra((1, 1)), 1)
    network = build("cs_pointnet", full, full, Neighbourhood(radius=2.0), width=2, blocks=1)
    assert network.blocks[0].convs[0].radius == 2.0
    with pytest.raises(ValueError, match="serves point sets and curved spaces, got Grid"):
        build("cs_pointnet", full, full, Grid())
    with pytest.raises(ValueError, match="cs_resnet serves grids, got Neighbourhood"):
        build("cs_resnet", full, full, Neighbourhood())
    with pytest.raises(TypeError, match=r"cs_pointnet has the options .*width.*; got \['radius'\]"):
        build("cs_pointnet", full, full, radius=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"activation": "relu"}, "activation must be one of gate, product, got 'relu'"),
        ({"neighbourhood": Neighbourhood(aggregation="max")}, "aggregation must be one of"),
        ({"neighbourhood": Neighbourhood(radius=0.0)}, "radius must be positive"),
        ({"blocks": 0}, "blocks"),
        ({"kernel": "free"}, "kernel must have one of the names"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        CSPointNet(CliffordAlgebra((1, 1)), **{**TINY, **options})


def test_bad_input():
    model = tiny((1, 1))
    points = cloud((1, 1))
    edges = all_pairs(points)
    with pytest.raises(ValueError, match=r"expected features \(9, 2, 4\) .* got \(9, 1, 4\)"):
        model(torch.randn(9, 1, 4).double(), edges)
    with pytest.raises(ValueError, match="must join the points of one set"):
        model(torch.randn(9, 2, 4).double(), all_pairs(points, receivers=points[:3]))
    with pytest.raises(ValueError, match="expected features"):
        model(torch.randn(9, 2, 4).double(), all_pairs(cloud((1, 1, 1))))


def test_a_batch_is_one_set_without_edges_between():
    model = tiny((1, 1))
    parts = [all_pairs(cloud((1, 1), n)) for n in (4, 7)]
    inputs = [noise(edges, model) for edges in parts]
    together = model(torch.cat(inputs), Edges.cat(parts))
    apart = torch.cat([model(x, edges) for x, edges in zip(inputs, parts, strict=True)])
    assert relative_error(together, apart) < 1e-12


def test_sphere_fields_do_not_depend_on_the_frames():
    """A vector field on S², given and returned as ambient vectors, whatever the frames are."""
    space, (where, weights) = sphere(2), fibonacci_sphere(60)
    near = Neighbourhood(radius=0.6, neighbours=9, aggregation="integral", window=True)
    model = tiny((1, 1), c_in=1, c_out=1, neighbourhood=near)
    field = torch.linalg.cross(where.roll(1, -1) ** 2, where)
    results = []
    for angle in (0.0, 1.0):
        cosine, sine = math.cos(angle), math.sin(angle)
        spin = torch.tensor([[cosine, -sine], [sine, cosine]], dtype=torch.float64)
        frames = space.frames(where) @ spin
        inside = (field.unsqueeze(1) @ frames).squeeze(1)
        x = model.algebra.embed(inside, 1).unsqueeze(1)
        y = model(x, space.edges(where, 0.6, frames=frames, weights=weights))
        results.append((frames @ model.algebra.grade(y[:, 0], 1).unsqueeze(-1)).squeeze(-1))
    assert relative_error(results[1], results[0]) < 1e-9
