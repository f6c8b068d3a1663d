"""`Forecaster`: physical fields in and out, one file, the right components, constants."""

import sys

import numpy as np
import pytest
import torch

from cscnn.algebra.grids import grid_symmetries, transform_on_grid
from cscnn.data import Background, Field
from cscnn.data.files import write
from cscnn.data.simulators import ON_GRIDS, create
from cscnn.forecasting import Forecaster, Task, Units, Window, collate
from cscnn.forecasting.forecaster import KEY
from cscnn.forecasting.packing import symmetric_part
from cscnn.networks import CSResNet, Grid, build, load, save
from cscnn.networks.files import CHECKSUM
from cscnn.networks.weights import checksum
from cscnn.testing import relative_error
from tests.networks.tiny import OPTIONS, need

FLUID = Task.from_header(create("navier_stokes").header())
UNITS = Units({"smoke": 0.5, "velocity": 3.0}, {"smoke": 1.0})
#: Networks and tasks that they do not serve.
UNSUPPORTED = {
    ("steerable_resnet", "maxwell_spacetime"), ("steerable_resnet", "maxwell_spacetime4d"),
    ("steerable_resnet", "sine_gordon"), ("resnet", "maxwell_spacetime4d"),
    ("clifford_resnet", "maxwell_spacetime4d"), ("fno", "maxwell_spacetime4d"),
    ("unet", "maxwell_spacetime4d"), ("convnext_unet", "maxwell_spacetime4d"),
    ("clifford_resnet", "elastodynamics"), ("clifford_resnet", "viscoelastic"),
}  # fmt: skip
GRIDS = {1: (8,), 2: (8, 8), 3: (4, 4, 4)}


def tiny(name="cs_resnet", task=FLUID, units=None, **options):
    need(name)
    return Forecaster.build(name, task, units, width=2, **{**OPTIONS[name], **options})


def frames(task, count=None, batch=2):
    space = GRIDS[task.dim - (task.time_axis is not None)]
    return {
        f.name: symmetric_part(
            f, torch.randn(batch, count or task.frames_in, *space, task.algebra.size(f.grade))
        )
        for f in task.fields
    }


def test_numpy_arrays_are_frames():
    forecaster, known = tiny().eval(), frames(FLUID)
    arrays = {name: x.numpy() for name, x in known.items()}
    for array in arrays.values():
        array.setflags(write=False)
    with torch.no_grad():
        expected, made = forecaster(known, steps=2), forecaster(arrays, steps=2)
    assert all(torch.equal(made[name], x) for name, x in expected.items())
    for wrong, message in (
        ({**arrays, "smoke": [1.0]}, "frames: smoke must be a tensor or an array of numbers, got"),
        ({**arrays, "smoke": np.array(["a"])}, "smoke must be .*, got an array of <U1"),
        (arrays["smoke"], "frames must map names to tensors, got ndarray"),
    ):
        with pytest.raises(TypeError, match=message):
            forecaster(wrong)


def test_a_forecast_is_its_definition():
    """Scale, pack, network, unpack, restore; and again with what came out."""
    forecaster = tiny(units=UNITS).eval()
    known = frames(FLUID)
    with torch.no_grad():
        made = forecaster(known, steps=3)
        window = {name: x.clone() for name, x in known.items()}
        for step in range(3):
            smoke, velocity = (window["smoke"] - 1) / 0.5, window["velocity"] / 3
            x = torch.cat([smoke, velocity, torch.zeros_like(smoke)], -1)
            gravity = torch.zeros_like(x[:, :1])
            gravity[..., 2] = 0.5
            y = forecaster.network(torch.cat([x, gravity], 1))
            new = {"smoke": y[..., :1] * 0.5 + 1, "velocity": y[..., 1:3] * 3}
            for name, value in new.items():
                torch.testing.assert_close(made[name][:, step : step + 1], value)
                window[name] = torch.cat([window[name], value], 1)[:, -4:]
    assert set(made) == {"smoke", "velocity"}
    assert made["velocity"].shape == (2, 3, 8, 8, 2)


def test_only_the_last_frames_count():
    forecaster = tiny().eval()
    known = frames(FLUID, 6)
    recent = {name: x[:, -4:] for name, x in known.items()}
    assert torch.equal(forecaster(known)["smoke"], forecaster(recent)["smoke"])
    with pytest.raises(ValueError, match=r"at least 4 frames, got \(2, 3, 8, 8, 1\)"):
        forecaster(frames(FLUID, 3))
    for steps in (0, -1):
        with pytest.raises(ValueError, match=f"steps must be at least 1, got {steps}"):
            forecaster(known, steps=steps)
    with pytest.raises(ValueError, match=r"expected \['smoke', 'velocity'\], got \['smoke'\]"):
        forecaster({"smoke": known["smoke"]})


def test_blocks_of_spacetime_follow_each_other():
    task = Task.from_header(create("maxwell_spacetime").header(), frames_in=4)
    forecaster = tiny(task=task).eval()
    known = frames(task)
    with torch.no_grad():
        made = forecaster(known, steps=6)["faraday"]
        first = forecaster(known)["faraday"]
        second = forecaster({"faraday": first})["faraday"]
    assert made.shape == (2, 6, 8, 8, 3)
    torch.testing.assert_close(made, torch.cat([first, second], 1)[:, :6])


def test_a_guard_sees_every_block_and_can_end_it():
    forecaster, seen = tiny().eval(), []

    def guard(new):
        seen.append(new["smoke"].shape[1])
        return None if len(seen) == 2 else {name: 0 * x for name, x in new.items()}

    made = forecaster.roll_out(frames(FLUID), 5, guard=guard)
    assert seen == [1, 1]
    assert made["smoke"].shape[1] == 2


@pytest.mark.parametrize("task", ON_GRIDS)
@pytest.mark.parametrize("name", OPTIONS)
def test_one_file_is_enough(name, task, tmp_path):
    described = Task.from_header(create(task).header(), frames_in=4)
    scale = {f.name: 2.0 for f in described.fields}
    if (name, task) in UNSUPPORTED:
        pytest.skip("tests/networks checks which these are, and what they say")
    options = {"levels": 1} if name == "cs_unet" else {}
    forecaster = tiny(name, described, Units(scale), **options)
    forecaster.coarsen = 2
    known = frames(described, batch=1)
    expected = forecaster.eval()(known, steps=2)
    path = tmp_path / "model.safetensors"
    forecaster.save(path)
    for place in (path, tmp_path):  # a file, or the folder of a run
        again = Forecaster.load(place)
        assert (again.task, again.units, again.coarsen) == (described, forecaster.units, 2)
        assert (again.name, again.recipe) == (name, forecaster.recipe)
        assert not again.training
        made = again(known, steps=2)
        assert all(torch.equal(made[n], x) for n, x in expected.items())
    assert list(tmp_path.iterdir()) == [path]


def test_loading_runs_no_noise(tmp_path, monkeypatch):
    forecaster = tiny()
    forecaster.save(tmp_path / "a.safetensors")

    def refuse(self, x):
        raise AssertionError("the network was run")

    monkeypatch.setattr(CSResNet, "forward", refuse)
    Forecaster.load(tmp_path / "a.safetensors")


def test_feedback_keeps_the_precision_of_the_weights():
    forecaster = tiny().double().eval()
    known = frames(FLUID)
    rounded = {name: x.round() for name, x in known.items()}
    whole_numbers = {name: x.int() for name, x in rounded.items()}
    with torch.no_grad():
        expected = forecaster({name: x.double() for name, x in rounded.items()}, steps=3)
        made = forecaster(whole_numbers, steps=3)
    assert all(torch.equal(made[name], x) for name, x in expected.items())


def test_units_fit_the_task():
    with pytest.raises(ValueError, match="no scale for field 'velocity': there are smoke"):
        tiny(units=Units({"smoke": 1.0}))
    with pytest.raises(ValueError, match=r"velocity has grade 1, and units shift it by 3\.0"):
        tiny(units=Units({"smoke": 1.0, "velocity": 1.0}, {"velocity": 3.0}))


def test_double_precision_stays(tmp_path):
    forecaster = tiny().double()
    forecaster.save(tmp_path / "a.safetensors")
    again = Forecaster.load(tmp_path / "a.safetensors")
    assert again.dtype == torch.float64
    assert again(frames(FLUID))["smoke"].dtype == torch.float64


def test_the_file_is_that_of_the_network_too(tmp_path):
    forecaster = tiny(units=UNITS).eval()
    path = tmp_path / "model.safetensors"
    forecaster.save(path)
    x = FLUID.input_type.noise((1, 8, 8))
    assert torch.equal(load(path)(x), forecaster.network(x))
    save(path, forecaster.network)
    with pytest.raises(ValueError, match=r"does not describe a forecaster .*have: cscnn_network"):
        Forecaster.load(path)


def test_bad_files(tmp_path):
    """What can be wrong with the network is tested in tests/networks/test_files.py."""
    from safetensors.torch import save_file

    path = tmp_path / "bad"
    for data in ("{}", '{"format": 2}'):  # format 2 had no description of the network
        tensors, metadata = {"a": torch.ones(1)}, {KEY: data}
        save_file(tensors, path, {**metadata, CHECKSUM: checksum(metadata, tensors)})
        with pytest.raises(ValueError, match=r"has format .* of cscnn_forecaster, this .* reads 4"):
            Forecaster.load(path)
    with pytest.raises(ValueError, match="this Identity does not know how it was made"):
        Forecaster(torch.nn.Identity(), FLUID).save(path)


def test_files_without_safetensors_name_the_extra(tmp_path, monkeypatch):
    forecaster = tiny()
    for module in [m for m in sys.modules if m.split(".")[0] == "safetensors"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "safetensors", None)
    path = tmp_path / "a"
    for action in (lambda: forecaster.save(path), lambda: Forecaster.load(path)):
        with pytest.raises(ImportError, match=r"needs the package safetensors.*cscnn\[train\]"):
            action()


def test_sizes():
    with pytest.raises(ValueError, match="width or params, not both: got 3 and 1000"):
        Forecaster.build("resnet", FLUID, width=3, params=1000)
    forecaster = Forecaster.build("resnet", FLUID, params=50_000)
    assert abs(forecaster.n_parameters() / 50_000 - 1) < 0.03
    with pytest.raises(ValueError, match="cs_pointnet serves point sets and curved spaces, not"):
        Forecaster.build("cs_pointnet", FLUID)


def test_any_network_can_be_the_one():
    network = CSResNet(FLUID.algebra, 5, 1, width=2, blocks=1, kernel_size=3)
    forecaster = Forecaster(network, FLUID, UNITS)
    assert forecaster(frames(FLUID), steps=2)["smoke"].shape == (2, 2, 8, 8, 1)
    assert (forecaster.name, forecaster.recipe) == ("CSResNet", None)


def test_networks_of_other_tasks_are_refused(tmp_path):
    """It was seen at the first forecast, or never: a wrong spacing has no shape."""
    network = tiny().network
    longer = FLUID.replace(frames_in=2)
    with pytest.raises(ValueError, match=r"cs_resnet was made for input_type=.*: build the netw"):
        Forecaster(network, longer)
    finer = FLUID.replace(spacing=tuple(h / 2 for h in FLUID.grid_spacing))
    with pytest.raises(ValueError, match=r"was made for Grid\(spacing=.*, task .* has Grid\("):
        Forecaster(network, finer)
    uniform = build("resnet", FLUID.input_type, FLUID.output_type, Grid(FLUID.grid_spacing[0],
                    FLUID.padding_mode), width=2, **OPTIONS["resnet"])  # fmt: skip
    assert Forecaster(uniform, FLUID).name == "resnet"  # one number for all axes


# --- components and constants ---------------------------------------------------------------------


def two_scalars():
    fields = (Field("sine", 0), Field("cosine", 0), Field("gradient", 1))
    return Task("two scalars", (1, 1), fields, frames_in=2)


def test_the_loss_counts_components_that_carry_data():
    """With two scalars and a vector the second multivector of a frame holds a scalar only."""
    task = two_scalars()
    forecaster = tiny(task=task)
    window = collate([Window({n: x[0] for n, x in frames(task).items()},
                             {n: x[0] for n, x in frames(task, 1).items()},
                             task.constant_multivectors())])  # fmt: skip
    loss = forecaster.loss(window)
    predicted = forecaster.units.scaled(forecaster(window.known))
    errors = [(predicted[n] - window.target[n]).flatten() for n in predicted]
    torch.testing.assert_close(loss, torch.cat(errors).square().mean())
    # what a mask that is a union over channels gives: zeros are counted
    everything = forecaster.predict(forecaster.pack(window.known)) - task.pack(window.target)
    union = everything[..., :3].square().mean()
    assert abs((union / loss).item() - 1) > 0.05


def test_baselines_predict_no_component_that_is_always_zero():
    task = two_scalars()
    y = tiny("resnet", task).predict(task.pack(frames(task)))
    mask = task.output_type.mask
    assert torch.equal((y != 0).any(0).any(1).any(1), mask)


def test_constants_transform_with_the_field():
    task = Task("plane", (1, 1), FLUID.fields, 2, boundary="periodic",
                backgrounds=(Background("gravity", 1, (0.0, 1.0)),))  # fmt: skip
    forecaster = tiny(task=task).double()
    algebra, constants = task.algebra, forecaster.constants
    x = task.pack({name: f.double() for name, f in frames(task).items()})
    y = forecaster.predict(x)
    broken = 0.0
    for g in grid_symmetries(algebra, (8, 8)):
        moved, expected = transform_on_grid(algebra, g, x), transform_on_grid(algebra, g, y)
        told = algebra.transform(g, constants)
        assert relative_error(forecaster.predict(moved, told), expected) < 1e-9
        assert relative_error(forecaster.predict(moved, told.expand(2, 1, 4)), expected) < 1e-9
        broken = max(broken, relative_error(forecaster.predict(moved), expected))
    assert broken > 1e-3  # gravity that stays breaks the symmetry
    with pytest.raises(ValueError, match=r"has 1 constants, i.e. a tensor \(1, 4\)"):
        forecaster.predict(x, torch.zeros(2, 4))
    with pytest.raises(ValueError, match=r"takes fields of shape \(batch, 2, \*, \*, 4\)"):
        forecaster.predict(x[:, :1])
    free = tiny(task=task.replace(backgrounds=()))
    with pytest.raises(ValueError, match="has 0 constants"):
        free.predict(x.float(), torch.zeros(1, 4))
    assert torch.equal(free.predict(x.float(), torch.empty(2, 0, 4)), free.predict(x.float()))


def test_data_are_seen_in_cells(tmp_path):
    simulator = create("navier_stokes", grid=(16, 16), frames=6)
    header = simulator.describe(0, "train")
    rng = np.random.default_rng(0)
    rows = [{f.name: rng.standard_normal(header.shape(f.name)) for f in header.fields}]
    write(tmp_path / "train.h5", header, rows, range(1))
    task = Task.from_header(
        header.replace(grid=(8, 8), spacing=tuple(2 * h for h in header.spacing))
    )
    forecaster = tiny(task=task)
    forecaster.coarsen = 2
    with forecaster.view(tmp_path / "train.h5") as source:
        assert source.header.grid == (8, 8)
        expected = rows[0]["velocity"].reshape(6, 8, 2, 8, 2, 2).mean((2, 4))
        assert np.allclose(source.read(0)["velocity"], expected, atol=1e-6)
    forecaster.task = task.replace(frame_spacing=1.0)
    with pytest.raises(
        ValueError, match=r"train.h5 is not for this forecaster: .*frames 1.0 apart"
    ):
        forecaster.view(tmp_path / "train.h5")
