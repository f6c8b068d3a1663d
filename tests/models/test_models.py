"""Every model on every task it serves: runs, parts, files, tasks, registry."""

import copy
import json
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_models import GRIDS, OWN, SERVED, UNSUPPORTED, sample, tiny

from cscnn import CliffordAlgebra, models
from cscnn.interop import load_flax_params
from cscnn.models import TASKS, Background, Field, FieldModel, Task, build, names
from cscnn.models.blocks import ProductGate
from cscnn.models.cs_resnet import double, halve
from cscnn.testing import (
    assert_equivariant,
    relative_error,
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


# --- parts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", [(1, 1), (1, -1), (1, -1, -1)])
def test_product_gate(metric):
    algebra = CliffordAlgebra(metric)
    gate = ProductGate(algebra, 3)
    x = torch.randn(4, 3, algebra.n_blades)
    assert relative_error(gate(x), gate.gate(x)) == 0
    torch.nn.init.normal_(gate.weight)
    assert relative_error(gate(x), gate.gate(x)) > 0.1
    assert_equivariant(gate, algebra, shape=(4, 3))


def test_product_gates_are_bounded_where_grades_cancel():
    """1 + e2 has square zero in R^{1,1}, but neither part is null; 1 + e1 + e2 has a null one."""
    algebra = CliffordAlgebra((1, -1))
    gate = ProductGate(algebra, 1)
    torch.nn.init.ones_(gate.mix.weight)
    torch.nn.init.ones_(gate.weight)
    x = 1000 * torch.tensor([1.0, 0.0, 1.0, 0.0]).expand(1, 1, 4)
    assert algebra.norm_squared(x).item() == 0
    assert gate(x).abs().max() < 4 * x.abs().max()
    null = 1000 * torch.tensor([1e-3, 1.0, 1.0, 0.0]).expand(1, 1, 4)
    assert gate(null).abs().max() > null.abs().max()  # no invariant sees how large it is


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


@pytest.mark.external
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
