"""Forecasters that predict changes: the definition, its symmetry, its units, files and exports."""

import contextlib
import math

import numpy as np
import pytest
import torch
from torch import nn

from cscnn._util.progress import Bar
from cscnn.algebra.grids import grid_symmetries, transform_on_grid
from cscnn.data.generate import generate, plans
from cscnn.data.simulators.sine_gordon import SineGordon
from cscnn.forecasting import Background, Forecaster, Task, Units
from cscnn.forecasting.export import export
from cscnn.forecasting.training.config import DataConfig
from cscnn.forecasting.training.loader import WindowData
from cscnn.testing import relative_error
from tests.forecasting.test_forecaster import frames, tiny
from tests.forecasting.test_unroll import TASKS, units
from tests.forecasting.test_windows import HEADER, Memory

FLUID = TASKS["frame by frame"]


class Nothing(nn.Module):
    """Zero, of the shape of an output."""

    def __init__(self, channels):
        super().__init__()
        self.channels = channels

    def forward(self, x):
        return torch.zeros_like(x[:, :1]).repeat_interleave(self.channels, 1)


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_no_change_is_the_newest_frame_or_the_input(task):
    network = Nothing(task.output_type.channels)
    forecaster = Forecaster(network, task, units(task), predicts="change").double()
    known = {n: x.double() for n, x in frames(task).items()}
    made = forecaster(known)
    for name, x in known.items():
        newest = x[:, -1:] if task.time_axis is None else x[:, -task.frames_out :]
        assert torch.allclose(made[name], newest.expand_as(made[name]))


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_outputs_are_changes_in_their_own_unit(task):
    """Of one network, as the state and as the change; in physical units."""
    state = tiny(task=task, units=units(task)).double()
    change = Forecaster(state.network, task, units(task), predicts="change").double()
    known = {n: x.double() for n, x in frames(task).items()}
    with torch.no_grad():
        outputs, made = state(known), change(known)
    for name, y in outputs.items():
        scale, shift = state.units.scale[name], state.units.shift.get(name, 0.0)
        x = known[name]
        base = x[:, -1:] if task.time_axis is None else x[:, -task.frames_out :]
        expected = base + (y - shift) / scale * state.units.change[name]
        torch.testing.assert_close(made[name], expected.expand_as(y), rtol=1e-6, atol=1e-6)


def test_changes_transform_like_states():
    task = Task("plane", (1, 1), FLUID.fields, 2, 2, boundary="periodic",
                backgrounds=(Background("gravity", 1, (0.0, 1.0)),))  # fmt: skip
    forecaster = tiny(task=task, units=units(task), predicts="change").double()
    x = task.pack({name: f.double() for name, f in frames(task).items()})

    def error():
        y, worst = forecaster.predict(x), 0.0
        for g in grid_symmetries(task.algebra, (8, 8)):
            moved, expected = (transform_on_grid(task.algebra, g, f) for f in (x, y))
            told = task.algebra.transform(g, forecaster.constants)
            worst = max(worst, relative_error(forecaster.predict(moved, told), expected))
        return worst

    assert error() < 1e-9
    forecaster.factors[..., 1] *= 1.5  # the control: a unit for each component
    assert error() > 1e-3


def test_a_field_that_never_changes_stays():
    sizes = Units({"smoke": 1.0, "velocity": 1.0}, change={"smoke": 0.0, "velocity": 1.0})
    forecaster = tiny(units=sizes, predicts="change").eval()
    known = frames(FLUID)
    made = forecaster(known, steps=3)
    assert torch.equal(made["smoke"], known["smoke"][:, -1:].expand_as(made["smoke"]))
    assert not torch.allclose(made["velocity"][:, 0], known["velocity"][:, -1])


@pytest.mark.parametrize("displacements", [(1,), (1, 2), (3,)])
def test_units_of_changes_are_measured(displacements):
    source = Memory()
    fitted = Units.fit(source, trajectories=2, displacements=displacements)
    for name in ("smoke", "velocity"):
        squares = []
        for number in range(2):
            values = source.read(number)[name]
            for lag in displacements:
                squares += [(values[t + lag] - values[t]) ** 2 for t in range(len(values) - lag)]
        assert fitted.change[name] == pytest.approx(math.sqrt(np.mean(squares)), rel=1e-12)


def test_displacements_are_those_of_the_forecast():
    assert TASKS["frame by frame"].displacements == (1,)
    assert TASKS["more out than in"].displacements == (1, 2)
    assert TASKS["spacetime"].displacements == (4,)
    assert TASKS["short steps"].displacements == (2,)


def test_frames_of_cells_are_several_frames_of_the_files(tmp_path):
    simulator = SineGordon(frames=16, grid=(8,))
    generate(plans(simulator, tmp_path, {"train": 1}))

    def change(**options):
        data = WindowData(DataConfig(train=str(tmp_path / "train.h5"), **options))
        with contextlib.closing(data):
            return data.fit_units(Bar("trajectories", quiet=True)).change

    fine = change(frames_in=8, frames_out=4)
    assert change(frames_in=4, frames_out=2, coarsen=2) == fine
    assert change(frames_in=4, frames_out=2) != fine


def test_changes_need_their_units():
    with pytest.raises(ValueError, match=r"needs the size of the change of smoke.*Units\.fit"):
        tiny(predicts="change")
    with pytest.raises(ValueError, match="the change of a must be at least 0, got -1"):
        Units({"a": 1.0}, change={"a": -1.0})
    with pytest.raises(ValueError, match="predicts must be one of state, change, got 'future'"):
        tiny(predicts="future")
    still = Units.fit(Memory(HEADER.replace(frames=1)))
    assert still.change == {}  # one frame has no changes, but a scale


def test_files_and_exports_know_what_is_predicted(tmp_path):
    forecaster = tiny("resnet", units=units(FLUID), predicts="change").eval()
    known = frames(FLUID, batch=1)
    forecaster.save(tmp_path / "model.safetensors")
    again = Forecaster.load(tmp_path)
    assert again.predicts == "change"
    assert torch.equal(again(known, steps=2)["velocity"], forecaster(known, steps=2)["velocity"])
    assert export(forecaster, tmp_path / "model.pt2", grid=(8, 8)) < 1e-5


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_onnx_knows_what_is_predicted(tmp_path):
    pytest.importorskip("onnxscript")
    pytest.importorskip("onnxruntime")
    task = TASKS["short steps"]
    forecaster = tiny("resnet", task=task, units=units(task), predicts="change").eval()
    assert export(forecaster, tmp_path / "model.onnx", grid=(8, 8)) < 1e-4
