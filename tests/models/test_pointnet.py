"""`cs_pointnet`: symmetries, files, budgets, size of signals; what it says of grids."""

import copy
import json
import math
import pickle
from dataclasses import replace

import pytest
import torch

from cscnn import CliffordAlgebra, cli, models
from cscnn.bench import zoo
from cscnn.geometry import (
    Edges,
    all_pairs,
    anti_de_sitter,
    fibonacci_sphere,
    nearest_edges,
    radius_edges,
    sphere,
)
from cscnn.models import PointModel, build, match
from cscnn.models.cs_pointnet import CSPointNet
from cscnn.testing import relative_error

KERNELS = {
    "complete": {"kernel": "complete", "kernel_options": {"hidden_dim": 4}},
    "implicit": {"kernel": "implicit", "kernel_options": {"num_layers": 2, "hidden_dim": 4}},
}
TINY = {"c_in": 2, "c_out": 3, "width": 3, "blocks": 2, "neighbours": 9}


def tiny(metric, **options):
    model = build("cs_pointnet", CliffordAlgebra(metric), **{**TINY, **options}).double()
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
        KERNELS["complete"],
        KERNELS["implicit"],
        {"activation": "product"},
        {"norm": False, "aggregation": "sum"},
        {"inner": 2, "aggregation": "weighted mean"},
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
    model = tiny((1, -1), kernel_options={"group": "O+", "causal": True})
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
    model = tiny(space.metric, activation="product", **KERNELS[kernel])
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


@pytest.mark.parametrize("options", [*KERNELS.values(), {"activation": "product"}], ids=str)
def test_trains_saves_and_loads(options, tmp_path):
    model = build("cs_pointnet", CliffordAlgebra((1, -1, -1)), **TINY, **options)
    edges = nearest_edges(cloud((1, -1, -1), 20).float(), 5)
    x = torch.randn(20, 2, 8)
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-3)
    model(x, edges).square().mean().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    optimiser.step()
    y = model.eval()(x, edges)
    path = tmp_path / "model.safetensors"
    models.save(model, path)
    again = models.load(path).eval()
    assert isinstance(again, CSPointNet)
    assert again.algebra == model.algebra
    assert torch.equal(again(x, edges), y)
    assert torch.equal(copy.deepcopy(model)(x, edges), y)
    assert torch.equal(pickle.loads(pickle.dumps(model))(x, edges), y)
    assert json.loads(json.dumps(model.config)) == model.config


def test_gradients_reach_the_positions():
    model = tiny((1, 1), c_in=1, c_out=1, width=2, blocks=1)
    where = cloud((1, 1), 4).requires_grad_()
    x = noise(all_pairs(where), model).requires_grad_()
    assert torch.autograd.gradcheck(lambda p, f: model(f, all_pairs(p)), (where, x))


def test_checkpointing_changes_nothing():
    edges = nearest_edges(cloud((1, 1), 20), 5)
    model = tiny((1, 1))
    x = noise(edges, model)
    grads = []
    for model.checkpointing in (False, True):
        model.zero_grad()
        model(x, edges).square().sum().backward()
        grads.append([p.grad.clone() for p in model.parameters()])
    for a, b in zip(*grads, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize(
    ("metric", "budgets"), [((1, 1), (20_000, 100_000)), ((1, -1, -1), (50_000,))]
)
def test_budgets_are_met(metric, budgets):
    algebra, channels = CliffordAlgebra(metric), {"c_in": 1, "c_out": 1}
    for params in budgets:
        chosen = match("cs_pointnet", algebra, params, **channels)
        model = build("cs_pointnet", algebra, calibrate=False, **channels, **chosen)
        assert abs(model.n_parameters() - params) <= 0.03 * params
    with pytest.raises(ValueError, match=r"cannot have 10 parameters for CliffordAlgebra"):
        match("cs_pointnet", algebra, 10, **channels)


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
    model = build(
        "cs_pointnet", algebra, c_in=2, c_out=2, width=6, blocks=3, radius=radius, kernel=kernel,
        aggregation=aggregation, neighbours=neighbours, activation=activation,
    )  # fmt: skip
    x = torch.randn(200, 2, algebra.n_blades, generator=generator).requires_grad_()
    y = model(x, edges)
    assert 0.1 < y.var() < 10
    g = torch.randn(y.shape, generator=generator)
    (gradient,) = torch.autograd.grad(y, x, g)
    assert 0.1 < gradient.square().sum() / g.square().sum() < 10


# --- registry and commands ------------------------------------------------------------------------


def test_registry():
    assert "cs_pointnet" in models.names()
    algebra = CliffordAlgebra((1, 1))
    with pytest.raises(
        ValueError, match="serves point sets and curved spaces, not grids like that"
    ):
        build("cs_pointnet", "navier_stokes")
    with pytest.raises(ValueError, match="cs_resnet predicts fields on grids: it takes a task"):
        build("cs_resnet", algebra)
    with pytest.raises(TypeError, match=r"cs_pointnet has the options .*radius.*; got \['reach'\]"):
        build("cs_pointnet", algebra, c_in=1, c_out=1, reach=2)
    with pytest.raises(TypeError, match="c_out"):
        build("cs_pointnet", algebra, c_in=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"activation": "relu"}, "activation must be 'gate' or 'product', got 'relu'"),
        ({"aggregation": "max"}, "aggregation must be one of"),
        ({"radius": 0.0}, "radius must be positive"),
        ({"blocks": 0}, "blocks"),
        ({"kernel": "free"}, "kernel must be"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        build("cs_pointnet", CliffordAlgebra((1, 1)), **{**TINY, **options})


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


def test_own_point_models_are_registered():
    @models.register("nothing_on_points")
    class Nothing(PointModel):
        def __init__(self, algebra, c_in, c_out, width=1):
            super().__init__(algebra, c_in, c_out)

        def compute(self, x, edges):
            return 0 * x

    model = build("nothing_on_points", CliffordAlgebra((1,)), c_in=1, c_out=1)
    edges = all_pairs(torch.rand(3, 1))
    assert model(torch.randn(3, 1, 2), edges).abs().max() == 0


def test_costs_of_point_sets(monkeypatch, capsys):
    monkeypatch.setattr(zoo, "CLOUDS", {"points of R^2": ((1, 1), 50, 4)})
    monkeypatch.setattr(zoo, "TASKS", {})
    monkeypatch.setattr(zoo, "names", lambda: ("cs_resnet", "cs_pointnet"))
    assert cli.main(["info", "models", "--params", "20000"]) == 0
    rows = [r for r in capsys.readouterr().out.splitlines() if "cs_" in r and "R^2" in r]
    assert len(rows) == 1
    assert "| points of R^2 | 50 × 4 edges | cs_pointnet | " in rows[0]


def test_training_on_a_grid_says_why_not(tmp_path, capsys):
    pytest.importorskip("lightning", reason="the extra 'train' is not installed")
    file = tmp_path / "train.h5"
    small = ["--preset", "small", "--split", "train=1", "--out", str(tmp_path)]
    assert cli.main(["generate", "sine_gordon", *small]) == 0
    capsys.readouterr()
    argv = ["train", "--data.train", str(file), "--out", str(tmp_path / "run")]
    argv += ["--model.name", "cs_pointnet", "--model.width", "2", "--trainer.epochs", "1"]
    assert cli.main(argv) == 1
    error = capsys.readouterr().err
    assert "cs_pointnet serves point sets and curved spaces, not grids" in error
    assert len(error.strip().splitlines()) == 1


def test_sphere_fields_do_not_depend_on_the_frames():
    """A vector field on S², given and returned as ambient vectors, whatever the frames are."""
    space, (where, weights) = sphere(2), fibonacci_sphere(60)
    model = tiny((1, 1), c_in=1, c_out=1, radius=0.6, aggregation="integral", window=True)
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
