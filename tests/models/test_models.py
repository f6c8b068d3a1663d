"""Every model on every task it serves: runs, symmetries, budgets, files."""

import copy
import json
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_models import GRIDS, OWN, SERVED, UNSUPPORTED, briefly_trained, periodic, sample, tiny

from cscnn import models
from cscnn.interop import load_flax_params
from cscnn.models import TASKS, Background, Field, FieldModel, Task, build, match, names
from cscnn.models.cs_resnet import ProductGate, double, halve
from cscnn.testing import (
    assert_equivariant,
    grid_equivariance_errors,
    grid_symmetries,
    relative_error,
    transform_on_grid,
)

pytest.importorskip("cliffordlayers", reason="the extra 'baselines' is not installed")
pytest.importorskip("neuralop", reason="the extra 'baselines' is not installed")

CS = ("cs_resnet", "cs_unet", "steerable_resnet")
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
    "plane": periodic((1, 1)),
    "space": periodic((1, 1, 1)),
    "spacetime": periodic((1, -1, -1)),
    "spacetime4d": periodic((1, -1, -1, -1)),
}


COMPLETE = {"kernel": "complete", "kernel_options": {"hidden_dim": 4}}


def symmetry_errors(model, grid):
    """Violations on noise in the components that the task has, in float64."""
    blades = list(model.task.blades)

    def restricted(x):
        kept = torch.zeros_like(x)
        kept[..., blades] = x[..., blades]
        return model(kept)

    shape = (1, model.task.in_channels, *grid)
    return grid_equivariance_errors(restricted, model.algebra, shape)


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize(
    ("name", "task", "options"),
    [
        ("cs_resnet", "plane", {}),
        ("cs_resnet", "plane", COMPLETE),
        ("cs_resnet", "plane", {"activation": "product"}),
        ("cs_resnet", "space", {}),
        ("cs_resnet", "space", COMPLETE),
        ("cs_resnet", "spacetime", {}),
        ("cs_resnet", "spacetime", COMPLETE),
        ("cs_resnet", "spacetime4d", {"blocks": 1}),
        ("steerable_resnet", "plane", {}),
        ("steerable_resnet", "space", {}),
    ],
)
def test_equivariant_models(name, task, options, trained):
    model = tiny(name, PERIODIC[task], **options).double()
    grid = (6, 6, 6)[: model.task.dim] if model.task.dim < 4 else (4, 4, 4, 4)
    if trained:
        briefly_trained(model, grid)
    errors = symmetry_errors(model, grid)
    assert errors["translation"] < 1e-9
    assert errors["point group"] < 1e-9


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize("task", ["plane", "space", "spacetime"])
def test_unet_commutes_with_the_point_group_and_coarse_translations(task, trained):
    model = tiny("cs_unet", PERIODIC[task], levels=1).double()
    grid = (8, 8, 8)[: model.task.dim]
    if trained:
        briefly_trained(model, grid)
    assert symmetry_errors(model, grid)["point group"] < 1e-9
    x = sample(model.task, dtype=torch.float64, grid=grid)
    axes = tuple(range(2, 2 + model.task.dim))
    shifts = (2, 4, 6)[: model.task.dim]
    assert relative_error(model(x.roll(shifts, axes)), model(x).roll(shifts, axes)) < 1e-9
    odd = relative_error(model(x.roll(1, 2)), model(x).roll(1, 2))
    assert odd > 1e-6  # the control


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize("task", ["plane", "space", "spacetime"])
@pytest.mark.parametrize("name", ["resnet", "clifford_resnet", "fno", "gfno"])
def test_baselines_commute_with_translations_only(name, task, trained):
    """The last one because of its ends; see test_gfno for what lies between them."""
    model = tiny(name, PERIODIC[task], width=4 if name != "gfno" else 1).double()
    grid = (6, 6, 6)[: model.task.dim]
    if trained:
        briefly_trained(model, grid)
    errors = symmetry_errors(model, grid)
    assert errors["translation"] < (1e-7 if name == "fno" else 1e-9)  # its spectra are float32
    assert errors["point group"] > 0.1


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
    if (name, task, params) == ("steerable_resnet", "maxwell3d", 7_000_000):
        return  # takes long to build; a wrong number would have been refused
    kind = type(tiny(name, task, width=1, **({"calibrate": False} if name in CS else {})))
    count = build(name, task, **kind.quick(chosen)).n_parameters()
    assert abs(count - params) <= 0.03 * params


def test_budgets_that_cannot_be_met():
    with pytest.raises(ValueError, match=r"cannot have 10 parameters .* the closest"):
        match("resnet", "navier_stokes", 10)


@pytest.mark.parametrize("name", ["cs_resnet", "cs_unet", "steerable_resnet"])
def test_what_is_quick_to_build_has_as_many_parameters(name):
    model = tiny(name, "navier_stokes")
    options = type(model).quick(model.config["options"])
    assert build(name, "navier_stokes", **options).n_parameters() == model.n_parameters()


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


def test_other_packages_offer_models(tmp_path, monkeypatch):
    from cscnn.models import registry

    (tmp_path / "plugin.py").write_text(
        "from cscnn.models import FieldModel\n"
        "class First(FieldModel):\n"
        "    def __init__(self, task, width=1):\n"
        "        super().__init__(task)\n"
        "    def compute(self, x):\n"
        "        return x[:, : self.task.out_channels]\n"
    )
    info = tmp_path / "plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[cscnn.models]\nfirst = plugin:First\n")
    monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    assert "first" not in names()
    monkeypatch.syspath_prepend(tmp_path)
    assert names()[-1] == "first"
    x = sample(TASKS["navier_stokes"])
    assert torch.equal(build("first", "navier_stokes")(x), x[:, :1])


@pytest.mark.parametrize(
    ("package", "name", "extra"),
    [("neuralop", "fno", "baselines"), ("cliffordlayers", "clifford_resnet", "baselines")],
)
def test_missing_packages_name_their_extra(package, name, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"{name} needs the package {package}.*cscnn\[{extra}\]"):
        tiny(name, "navier_stokes")


def test_files_without_safetensors_name_the_extra(tmp_path, monkeypatch):
    model = tiny("resnet", "navier_stokes")
    monkeypatch.setitem(sys.modules, "safetensors", None)
    for action in (lambda: models.save(model, tmp_path / "a"), lambda: models.load(tmp_path / "a")):
        with pytest.raises(ImportError, match=r"needs the package safetensors.*cscnn\[train\]"):
            action()
