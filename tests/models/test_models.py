"""Every model on every task it serves: runs, symmetries, budgets, files."""

import copy
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_models import GRIDS, OWN, SERVED, UNSUPPORTED, sample, tiny

from cscnn import models
from cscnn.interop import load_flax_params
from cscnn.models import TASKS, Background, Field, FieldModel, Task, build, match, names
from cscnn.models.baselines import GroupSpectralConv, compose, relative, turn, turn_features
from cscnn.models.blocks import ProductGate
from cscnn.models.cs_resnet import double, halve
from cscnn.testing import (
    assert_equivariant,
    grid_equivariance_errors,
    grid_symmetries,
    relative_error,
    transform_on_grid,
)

pytest.importorskip("cliffordlayers", reason="the extra 'baselines' is not installed")
pytest.importorskip("neuralop", reason="the extra 'baselines' is not installed")

GOLDEN = Path(__file__).parents[3] / "shared" / "golden" / "csresnet_e2.npz"


def test_names():
    assert names()[: len(OWN)] == OWN
    with pytest.raises(ValueError, match=r"unknown model 'unet': choose from cs_resnet"):
        build("unet", "navier_stokes")
    with pytest.raises(ValueError, match=r"unknown task 'ns': choose from navier_stokes"):
        build("resnet", "ns")
    with pytest.raises(TypeError, match=r"resnet has the options .*width.*; got \['depth'\]"):
        build("resnet", "navier_stokes", depth=3)
    with pytest.raises(
        TypeError, match=r"fno has the options .*operator_options.*; got \['norm'\]"
    ):
        build("fno", "navier_stokes", norm="instance_norm")
    with pytest.raises(ValueError, match="width or params, not both"):
        build("resnet", "navier_stokes", width=3, params=1000)


@pytest.mark.parametrize(("name", "task"), SERVED)
def test_trains_saves_and_loads(name, task, tmp_path):
    model = tiny(name, task)
    x = sample(model.task)
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-4)
    model(x).square().mean().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    optimiser.step()
    y = model.eval()(x)
    assert y.shape == (1, model.task.out_channels, *x.shape[2:])
    path = tmp_path / "model.safetensors"
    models.save(model, path)
    again = models.load(path).eval()
    assert again.task == model.task
    assert torch.equal(again(x), y)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("name", "task"), [p for p in SERVED if p[1] != "maxwell_spacetime4d"])
def test_pickles_and_copies(name, task):
    model = tiny(name, task).eval()
    x = sample(model.task)
    y = model(x)
    assert torch.equal(copy.deepcopy(model)(x), y)
    assert torch.equal(pickle.loads(pickle.dumps(model))(x), y)


@pytest.mark.parametrize(("name", "task"), UNSUPPORTED)
def test_says_what_it_cannot_do(name, task):
    with pytest.raises(ValueError, match=UNSUPPORTED[name, task]):
        tiny(name, task)


# --- symmetries -----------------------------------------------------------------------------------

PERIODIC = {
    "plane": Task("plane", (1, 1), (Field("s", 0), Field("v", 1)), 2, boundary="periodic"),
    "space": Task("space", (1, 1, 1), (Field("e", 1), Field("b", 2)), 1, boundary="periodic"),
    "spacetime": Task("spacetime", (1, -1, -1), (Field("f", 2),), 1, boundary="periodic"),
}


def briefly_trained(model):
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(3):
        optimiser.zero_grad()
        x = sample(model.task, dtype=torch.float64, grid=(8,) * model.task.dim)
        (model(x) - 0.5 * x[:, : model.task.out_channels]).square().mean().backward()
        optimiser.step()
    return model


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize(
    ("name", "task", "options"),
    [
        ("cs_resnet", "plane", {}),
        ("cs_resnet", "plane", {"kernel": "complete", "kernel_options": {"hidden_dim": 4}}),
        ("cs_resnet", "plane", {"activation": "product"}),
        ("cs_resnet", "space", {}),
        ("cs_resnet", "spacetime", {}),
        ("steerable_resnet", "plane", {}),
        ("steerable_resnet", "space", {}),
    ],
)
def test_equivariant_models(name, task, options, trained):
    model = tiny(name, PERIODIC[task], **options).double()
    if trained:
        briefly_trained(model)
    task = model.task
    grid = (6, 6, 6)[: task.dim]
    errors = grid_equivariance_errors(model, model.algebra, (1, task.in_channels, *grid))
    assert errors["translation"] < 1e-9
    assert errors["point group"] < 1e-9


@pytest.mark.parametrize("task", ["plane", "space"])
def test_unet_commutes_with_the_point_group_and_coarse_translations(task):
    model = tiny("cs_unet", PERIODIC[task], levels=1).double()
    grid = (8, 8, 8)[: model.task.dim]
    errors = grid_equivariance_errors(model, model.algebra, (1, model.task.in_channels, *grid))
    assert errors["point group"] < 1e-9
    x = sample(model.task, dtype=torch.float64, grid=grid)
    axes = tuple(range(2, 2 + model.task.dim))
    shifts = (2, 4, 6)[: model.task.dim]
    assert relative_error(model(x.roll(shifts, axes)), model(x).roll(shifts, axes)) < 1e-9
    odd = relative_error(model(x.roll(1, 2)), model(x).roll(1, 2))
    assert odd > 1e-6  # the control


@pytest.mark.parametrize("name", ["resnet", "clifford_resnet", "fno"])
def test_baselines_commute_with_translations_only(name):
    model = tiny(name, PERIODIC["plane"], width=4).double()
    blades = list(model.task.blades)

    def restricted(x):
        kept = torch.zeros_like(x)
        kept[..., blades] = x[..., blades]
        return model(kept)

    errors = grid_equivariance_errors(restricted, model.algebra, (1, 2, 8, 8))
    assert errors["translation"] < 1e-9
    assert errors["point group"] > 0.1


def test_d4_is_a_group():
    x = torch.randn(3, 3)
    for g in range(8):
        assert sorted(relative(g)) == list(range(8))
        for h in range(8):
            assert torch.equal(turn(turn(x, h), g), turn(x, compose(g, h)))


@pytest.mark.parametrize("h", range(8))
def test_gfno_commutes_with_d4_inside(h):
    layer = GroupSpectralConv(2, 3, modes=2).double()
    x = torch.randn(1, 2, 8, 9, 9, dtype=torch.float64)
    y = layer(x)
    assert relative_error(layer(turn_features(x, h)), turn_features(y, h)) < 1e-9
    assert relative_error(layer(turn(x, h)), turn(y, h)) > 0.1 or h == 0  # the control
    shifted = layer(x.roll((2, 3), (-2, -1)))
    assert relative_error(shifted, y.roll((2, 3), (-2, -1))) < 1e-9


def test_backgrounds_transform_with_the_field():
    task = PERIODIC["plane"].replace(backgrounds=(Background("gravity", 1, (0.0, 1.0)),))
    model = tiny("cs_resnet", task).double()
    x = sample(task, dtype=torch.float64, grid=(6, 6))
    y = model(x)
    assert relative_error(model(x, model.background), y) < 1e-12
    broken = 0.0
    for g in grid_symmetries(model.algebra, (6, 6)):
        moved, known = transform_on_grid(model.algebra, g, x), model.background
        expected = transform_on_grid(model.algebra, g, y)
        turned = model.algebra.transform(g, known.double())
        assert relative_error(model(moved, turned), expected) < 1e-9
        assert relative_error(model(moved, turned.expand(1, 1, 4)), expected) < 1e-9
        broken = max(broken, relative_error(model(moved), expected))
    assert broken > 1e-3  # gravity that does not turn breaks the symmetry
    with pytest.raises(ValueError, match=r"has 1 backgrounds, i.e. a tensor \(1, 4\)"):
        model(x, torch.zeros(2, 4))
    with pytest.raises(ValueError, match="has no backgrounds"):
        tiny("resnet", PERIODIC["plane"])(x.float(), torch.zeros(1, 4))


def test_product_gate():
    algebra = PERIODIC["plane"].algebra
    gate = ProductGate(algebra, 3)
    x = torch.randn(4, 3, 4)
    assert relative_error(gate(x), gate.gate(x)) == 0
    torch.nn.init.normal_(gate.weight)
    assert relative_error(gate(x), gate.gate(x)) > 0.1
    assert_equivariant(gate, algebra, shape=(4, 3))


def test_halve_and_double():
    x = torch.arange(16.0).reshape(1, 1, 4, 4, 1)
    assert halve(x).flatten().tolist() == [2.5, 4.5, 10.5, 12.5]
    assert torch.equal(halve(double(x)), x)
    model = tiny("cs_unet", "navier_stokes")
    with pytest.raises(ValueError, match=r"divisible by 4, got \(6, 8\)"):
        model(torch.randn(1, 4, 6, 8, 4))


def test_operators_of_neuralop_take_its_options():
    model = tiny("fno", "navier_stokes", operator_options={"norm": "instance_norm"})
    assert any("InstanceNorm" in type(m).__name__ for m in model.modules())


# --- sizes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("params", [100_000, 1_000_000, 7_000_000])
@pytest.mark.parametrize(("name", "task"), SERVED)
def test_budgets_are_met(name, task, params):
    chosen = match(name, task, params)
    if params == 100_000:  # small enough to build
        quick = {"calibrate": False} if name in ("cs_resnet", "cs_unet", "steerable_resnet") else {}
        count = build(name, task, **chosen, **quick).n_parameters()
        assert abs(count - params) <= 0.03 * params


def test_counts_are_exact_for_large_models():
    chosen = match("resnet", "navier_stokes", 1_000_000)
    assert abs(build("resnet", "navier_stokes", **chosen).n_parameters() - 1e6) < 0.03e6
    chosen = match("cs_resnet", "navier_stokes", 1_000_000)
    assert abs(build("cs_resnet", "navier_stokes", **chosen).n_parameters() - 1e6) < 0.03e6
    with pytest.raises(ValueError, match=r"cannot have 10 parameters .* the closest"):
        match("resnet", "navier_stokes", 10)


@pytest.mark.parametrize("kernel", ["implicit", "complete"])
@pytest.mark.parametrize(
    ("task", "width"),
    [("navier_stokes", w) for w in (4, 12, 48)]
    + [(t, w) for t in ("maxwell3d", "maxwell_spacetime") for w in (4, 12)]
    + [("maxwell_spacetime4d", 4)],
)
def test_signals_and_gradients_keep_their_size(task, width, kernel):
    """The variance of the output is within [0.1, 10] of the input's, and so are gradients.

    Gradients are those with respect to the input of the first layer, in the components that carry
    data, for unit noise as the gradient of the output. Their squares are compared summed, not per
    component: that is how much unit noise on the input changes the output, whereas four frames
    that are used for one frame have a quarter of its gradient each.
    """
    grid = {2: (24, 24), 3: (12, 12, 12), 4: (6, 6, 6, 6)}
    model = build("cs_resnet", task, width=width, kernel=kernel)
    x = sample(model.task, batch=2, grid=grid[model.task.dim]).requires_grad_()
    blades = list(model.task.blades)
    y = model(x)[..., blades]
    assert 0.1 < y.var() < 10
    g = torch.randn_like(y)
    (grad,) = torch.autograd.grad(y, x, g)
    assert 0.1 < grad[..., blades].square().sum() / g.square().sum() < 10


def test_published_initialisation_is_left_alone():
    options = {"kernel_options": {"unit_variance": False}, "blocks": 2, "kernel_size": 3}
    states = []
    for calibrate in (False, True):
        torch.manual_seed(0)
        model = build("cs_resnet", "navier_stokes", width=2, calibrate=calibrate, **options)
        states.append(model.state_dict())
    assert all(torch.equal(value, states[1][name]) for name, value in states[0].items())


# --- files, tasks, registry -----------------------------------------------------------------------


def test_bad_files(tmp_path):
    from safetensors.torch import save_file

    with pytest.raises(FileNotFoundError, match="there is no model file"):
        models.load(tmp_path / "none")
    bad = tmp_path / "bad"
    bad.write_bytes(b"hello")
    with pytest.raises(ValueError, match="is not a readable safetensors file"):
        models.load(bad)
    save_file({"a": torch.ones(1)}, bad)
    with pytest.raises(ValueError, match="has no description of a cscnn model"):
        models.load(bad)


def test_export_is_the_same_map():
    for name in ("cs_resnet", "cs_unet"):
        model = tiny(name, "navier_stokes").eval()
        x = sample(model.task)
        exported = model.export()
        assert not any(hasattr(m, "expanded_kernel") for m in exported.modules())
        assert relative_error(exported(x), model(x)) < 1e-4


def test_checkpointing_changes_nothing():
    model = tiny("cs_resnet", "navier_stokes")
    x = sample(model.task)
    grads = []
    for model.checkpointing in (False, True):
        model.zero_grad()
        model(x).square().sum().backward()
        grads.append([p.grad.clone() for p in model.parameters()])
    assert all(torch.allclose(a, b, rtol=1e-4, atol=1e-6) for a, b in zip(*grads, strict=True))


@pytest.mark.skipif(not GOLDEN.is_file(), reason=f"there is no {GOLDEN.name}")
def test_published_network():
    data = np.load(GOLDEN, allow_pickle=False)
    config = json.loads(str(data["config"]))
    task = Task("golden", tuple(config["metric"]), (Field("s", 0), Field("v", 1)))
    model = build(
        "cs_resnet",
        task,
        width=config["hidden_channels"],
        blocks=sum(config["blocks"]),
        kernel_size=config["kernel_size"],
        kernel_options={
            "num_layers": config["kernel_num_layers"],
            "hidden_dim": config["kernel_hidden_dim"],
        },
    ).double()
    load_flax_params(model, {k[6:]: data[k] for k in data.files if k.startswith("param/")})
    y = model(torch.from_numpy(np.array(data["x"])))
    assert relative_error(y, torch.from_numpy(np.array(data["y"]))) < 1e-9


@pytest.mark.parametrize("task", list(TASKS.values()), ids=lambda t: t.name)
def test_tasks_pack_what_they_unpack(task):
    frames = () if task.time_axis is not None else (task.frames_in,)
    sizes = task.algebra.grade_sizes
    fields = {
        f.name: torch.randn(2, *frames, *GRIDS[task.dim], sizes[f.grade]) for f in task.fields
    }
    x = task.pack(fields)
    assert x.shape == (2, task.in_channels, *GRIDS[task.dim], 2**task.dim)
    again = task.unpack(x)
    assert all(torch.equal(again[name], value) for name, value in fields.items())
    assert Task.from_dict(json.loads(json.dumps(task.to_dict()))) == task


def test_fields_of_one_grade_get_channels_of_their_own():
    task = Task("two", (1, 1), (Field("a", 0), Field("b", 0), Field("v", 1)), frames_in=3)
    assert (task.multivectors, task.in_channels, task.out_channels) == (2, 6, 2)
    fields = {n: torch.randn(1, 3, 4, 4, k) for n, k in (("a", 1), ("b", 1), ("v", 2))}
    assert all(torch.equal(v, fields[n]) for n, v in task.unpack(task.pack(fields)).items())
    assert tiny("cs_resnet", task)(task.pack(fields)).shape == (1, 2, 4, 4, 4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fields": ()}, "needs fields of different names"),
        ({"fields": (Field("a", 3),)}, "a has grade 3"),
        ({"boundary": "box"}, "one of periodic, wall, open, got 'box'"),
        ({"boundary": ("wall",)}, "one value per axis"),
        ({"frames_in": 0}, "frames_in"),
        ({"time_axis": 2}, "one of the 2 axes, got 2"),
        ({"time_axis": 0, "frames_in": 4}, "grids of one size"),
        ({"backgrounds": (Background("g", 1, (1.0,)),)}, "has 2 components, got"),
    ],
)
def test_impossible_tasks(changes, message):
    with pytest.raises(ValueError, match=message):
        TASKS["navier_stokes"].replace(**changes)


def test_wrong_input_is_refused():
    model = tiny("resnet", "navier_stokes")
    with pytest.raises(ValueError, match=r"shape \(batch, 4, \*, \*, 4\), got \(1, 3, 8, 8, 4\)"):
        model(torch.randn(1, 3, 8, 8, 4))


def test_users_register_models():
    @models.register("zero")
    class Zero(FieldModel):
        def __init__(self, task, width=1):
            super().__init__(task)
            self.scale = torch.nn.Parameter(torch.zeros(width))

        def compute(self, x):
            return x[:, : self.task.out_channels] * self.scale.sum()

    model = build("zero", "navier_stokes", width=3)
    assert model(sample(model.task)).abs().sum() == 0
    with pytest.raises(ValueError, match="there is a model named 'resnet' already"):
        models.register("resnet")(Zero)
