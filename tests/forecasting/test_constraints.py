"""Constraints of forecasts: whatever the network says, and in physical units."""

import re

import numpy as np
import pytest
import torch

from cscnn.algebra.grids import grid_symmetries, transform_on_grid
from cscnn.calculus import Differences, Spectral, curl, divergence, project
from cscnn.cli import main
from cscnn.data import Field, open_fields
from cscnn.data.laws import residuals
from cscnn.data.simulators import create
from cscnn.data.simulators.navier_stokes import NavierStokes
from cscnn.forecasting import Constraint, Forecaster, Task, Units
from cscnn.forecasting.constraints import Constraints, read_constraints
from cscnn.forecasting.export import export
from cscnn.networks import names
from cscnn.networks.entries import ENTRIES
from cscnn.testing import relative_error
from tests.forecasting.training.runs import QUIET, command, config, make_data
from tests.networks.tiny import OPTIONS, need

pytestmark = QUIET

SMOKE = create("navier_stokes", grid=(8, 6), size=(4.0, 3.0))
FLUID = Task.from_header(SMOKE.header())
UNITS = Units({"smoke": 0.5, "velocity": 3.0}, {"smoke": 1.0})
BOTH = {"velocity": "divergence_free", "smoke": "keep_mean"}
WALLS = Differences(0.5, boundary="wall", staggered=True)
PLASMA = Task(
    "plasma",
    (1, 1, 1),
    (Field("pressure", 0), Field("velocity", 1), Field("other", 1), Field("magnetic", 2)),
    frames_in=2,
    frames_out=2,
    boundary=("periodic", "wall", "periodic"),
    spacing=(0.5, 0.25, 0.5),
)


def tiny(name="cs_resnet", task=FLUID, constraints=BOTH, **options):
    need(name)
    options = {"width": 2, **OPTIONS[name], **options}
    return Forecaster.build(name, task, UNITS, constraints=constraints, **options).double()


def frames(task=FLUID, grid=(8, 6), batch=2):
    return {
        f.name: 1 + torch.randn(batch, task.frames_in, *grid, task.algebra.grade_sizes[f.grade])
        .double() for f in task.fields
    }  # fmt: skip


def grid_networks():
    return [name for name in names() if name in OPTIONS and ENTRIES[name].interface != "points"]


@pytest.mark.parametrize("name", grid_networks())
def test_every_network_can_be_constrained(name):
    forecaster = tiny(name).eval()
    known = frames(grid=(8, 8))
    made = forecaster(known, steps=2)
    algebra = FLUID.algebra
    flow = algebra.embed(made["velocity"], 1)
    assert divergence(flow, algebra, WALLS).abs().max() < 1e-12 * flow.abs().max()
    means = made["smoke"].mean((2, 3)) - known["smoke"][:, -1:].mean((2, 3))
    assert means.abs().max() < 1e-12
    # the control: the same network without constraints
    free = Forecaster(forecaster.network, FLUID, UNITS)(known, steps=2)
    assert divergence(algebra.embed(free["velocity"], 1), algebra, WALLS).abs().max() > 1e-3
    assert (free["smoke"].mean((2, 3)) - known["smoke"][:, -1:].mean((2, 3))).abs().max() > 1e-3
    # and what is constrained is the projection of what that predicts
    first = project(algebra.embed(free["velocity"][:, 0], 1), algebra, "coclosed", WALLS)
    assert relative_error(flow[:, 0], first) < 1e-12


def test_fields_of_one_grade_and_several_frames():
    """Only the named field changes, in every frame; walls may be conductors."""
    told = {
        "other": {"kind": "divergence_free", "scheme": "spectral"},
        "magnetic": {"kind": "closed", "scheme": "differences", "wall": "conductor"},
    }
    layer = Constraints(PLASMA, told)
    shape = (3, PLASMA.output_type.channels, 4, 5, 6, 8)
    state, known = torch.randn(2, *shape, dtype=torch.float64)
    before, after = PLASMA.unpack(state), PLASMA.unpack(layer(state, known))
    assert before["velocity"].shape[1] == 2
    for name in ("pressure", "velocity"):
        assert torch.equal(before[name], after[name])
    algebra, h = PLASMA.algebra, PLASMA.spacing
    walls = {mode: ("circular", mode, "circular") for mode in ("wall", "conductor")}
    for name, grade, operator, scheme in (
        ("other", 1, divergence, Spectral(h, walls["wall"])),
        ("magnetic", 2, curl, Differences(h, 2, walls["conductor"])),
    ):
        assert operator(algebra.embed(after[name], grade), algebra, scheme).abs().max() < 1e-12
        assert operator(algebra.embed(before[name], grade), algebra, scheme).abs().max() > 0.1


def test_several_constraints_of_one_field():
    """Along a wall the mean of a flow may be kept, and it stays without divergence."""
    layer = Constraints(PLASMA, {"velocity": ["keep_mean", "divergence_free"]})
    assert [c.kind for c in layer.constraints] == ["divergence_free", "keep_mean"]
    channels = PLASMA.output_type.channels
    state, known = torch.randn(2, 3, channels, 4, 5, 6, 8, dtype=torch.float64)
    flow, last = (PLASMA.unpack(y)["velocity"] for y in (layer(state, known), known))
    scheme = Differences(PLASMA.spacing, 2, ("circular", "wall", "circular"), staggered=True)
    algebra = PLASMA.algebra
    assert divergence(algebra.embed(flow, 1), algebra, scheme).abs().max() < 1e-12
    change = (flow.mean((2, 3, 4)) - last[:, -1:].mean((2, 3, 4))).abs()
    assert change[..., [0, 2]].max() < 1e-13
    assert change[..., 1].min() > 1e-4  # the normal component has no mean to keep


def test_means_of_symmetric_tensors():
    """Of all components on a torus; between walls not of those that they negate."""
    fields = (Field("velocity", 1), Field("stress", "symmetric"))
    known = torch.randn(2, 4, 5, 6, dtype=torch.float64)[:, None]
    state = torch.randn(2, 4, 5, 6, dtype=torch.float64)[:, None]
    for boundary, free in (("periodic", [0, 1, 2, 3]), ("wall", [0, 3])):
        task = Task("solid", (1, 1), fields, frames_in=1, boundary=boundary)
        after = Constraints(task, {"stress": "keep_mean"})(state, known)
        before, last, new = (task.unpack(x) for x in (state, known, after))
        change = new["stress"].mean((2, 3)) - last["stress"].mean((2, 3))
        assert change[..., free].abs().max() < 1e-14
        others = [k for k in range(4) if k not in free]
        assert torch.allclose(new["stress"][..., others], before["stress"][..., others])
        assert torch.equal(new["velocity"], before["velocity"])
        with pytest.raises(ValueError, match="says nothing of field stress of grade symmetric"):
            Constraints(task, {"stress": "divergence_free"})


def test_time_as_an_axis():
    """Means of every slice are those of the last known one; B is closed at each time."""
    task = Task("F", (1, -1, -1), (Field("charge", 0), Field("F", 2)), frames_in=4, frames_out=2,
                time_axis=0, boundary=("open", "periodic", "periodic"))  # fmt: skip
    layer = Constraints(task, {"charge": "keep_mean"})
    state, known = torch.randn(2, 3, 1, 4, 5, 6, 8, dtype=torch.float64)
    after = task.unpack(layer(state, known))
    last = task.unpack(known)["charge"][:, -1:].mean((2, 3))
    assert (after["charge"].mean((2, 3)) - last).abs().max() < 1e-13
    assert torch.equal(after["F"], task.unpack(state)["F"])
    with pytest.raises(ValueError, match="closed says nothing of field F of grade 2"):
        Constraints(task, {"F": "closed"})


def test_equivariance_survives():
    """An equivariant network with constraints commutes with the symmetries of the grid."""
    task = Task.from_header(SMOKE.header().replace(spacing=(0.5, 0.5)))
    forecaster = tiny(task=task).eval()
    algebra = task.algebra
    known = frames(grid=(6, 6))
    x = forecaster.pack(known)
    constants = forecaster.constants.double()
    with torch.no_grad():
        y = forecaster.predict(x, constants)
        for g in grid_symmetries(algebra, (6, 6)):
            moved = transform_on_grid(algebra, g, x)
            told = algebra.transform(g, constants)
            expected = transform_on_grid(algebra, g, y)
            assert relative_error(forecaster.predict(moved, told), expected) < 1e-9
            if not torch.equal(g, torch.eye(2).to(g)):  # the control: buoyancy is not turned
                still = forecaster.predict(moved, constants)
                assert relative_error(still, expected) > 1e-6 or torch.equal(told, constants)


def test_files_and_export_keep_constraints(tmp_path):
    forecaster = tiny().float().eval()
    forecaster.save(tmp_path / "model.safetensors")
    again = Forecaster.load(tmp_path / "model.safetensors")
    assert again.constrain.constraints == read_constraints(BOTH)
    known = {name: x.float() for name, x in frames().items()}
    for name, x in forecaster(known, 2).items():
        assert torch.equal(again(known, 2)[name], x)
    assert export(forecaster, tmp_path / "model.pt2", grid=(8, 6)) < 1e-5


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the exporter
def test_onnx(tmp_path):
    pytest.importorskip("onnxscript")
    pytest.importorskip("onnxruntime")
    assert export(tiny().float().eval(), tmp_path / "model.onnx", grid=(8, 6)) < 1e-5


# --- data -----------------------------------------------------------------------------------------


def test_what_simulated_flows_obey():
    """Faces averaged to centres: staggered differences see no divergence, up to the walls."""
    fields = SMOKE.simulate([np.random.default_rng(0)])
    flow = FLUID.algebra.embed(fields["velocity"].double(), 1)
    change = {}
    for scheme in ("staggered", "differences", "spectral"):
        told = {"velocity": {"kind": "divergence_free", "scheme": scheme}}
        layer = Constraints(FLUID, told)
        state = flow[:, -1:]
        change[scheme] = layer.floor(state, state)["velocity"]
    assert change["staggered"] < 1e-12
    assert change["differences"] > 0.01
    assert 0.001 < change["spectral"] < change["differences"]


def test_training_with_constraints(tmp_path, capsys):
    data = make_data(tmp_path / "data", "navier_stokes")
    options = config(data, tmp_path / "run", "navier_stokes", trainer__epochs=1,
                     model__constraints={"velocity": "divergence_free"})  # fmt: skip
    assert main(command(options, tmp_path, "--dry-run")) == 0
    change = re.search(r"change velocity of the data by (\S+)", capsys.readouterr().out)
    assert float(change[1]) < 1e-6
    assert main(command(options, tmp_path)) == 0
    made = str(tmp_path / "forecast.h5")
    run, test = str(tmp_path / "run"), str(data / "test.h5")
    assert main(["predict", run, test, "--steps", "3", "--out", made]) == 0
    with open_fields(made) as source:
        (law,) = residuals(NavierStokes.laws, source)
    assert law.relative < 1e-5  # measured from the file, inside the walls
    forecaster = Forecaster.load(tmp_path / "run")
    assert forecaster.constrain.constraints == (Constraint("velocity", "divergence_free"),)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"speed": "keep_mean"}, ValueError, "no field 'speed' to constrain.* smoke, velocity"),
        ({"velocity": "solenoidal"}, ValueError, "kind must be one of divergence_free"),
        ({"velocity": {"kind": "closed", "how": 1}}, ValueError, "unknown entries how"),
        ({"velocity": {"scheme": "spectral"}}, ValueError, "no entry kind"),
        ({"velocity": {"kind": "closed", "scheme": "upwind"}}, ValueError, "scheme must be one of"),
        ({"velocity": 3}, TypeError, "velocity must be one of .* got 3"),
        ({"smoke": "divergence_free"}, ValueError, "says nothing of field smoke of grade 0"),
        ({"velocity": "keep_mean"}, ValueError, "says nothing of field velocity .*'wall', 'wall'"),
        (
            {"velocity": {"kind": "divergence_free", "accuracy": 4}},
            ValueError,
            "accuracy=4 is for scheme differences, got scheme 'staggered'",
        ),
        (
            {"velocity": ["divergence_free", {"kind": "curl_free", "scheme": "spectral"}]},
            ValueError,
            r"field velocity need one scheme, got staggered \(accuracy 2\) and spectral",
        ),
        (
            {"velocity": ["divergence_free", {"kind": "curl_free", "wall": "conductor"}]},
            ValueError,
            "field velocity need one wall, got wall and conductor",
        ),
        (
            {"smoke": ["keep_mean", "keep_mean"]},
            ValueError,
            "field smoke has the constraint keep_mean twice",
        ),
    ],
)
def test_mistakes_are_explained(given, error, message):
    with pytest.raises(error, match=message):
        Constraints(FLUID, given)


def test_open_borders_are_refused():
    task = Task.from_header(create("maxwell3d").header())
    for kind in ("closed", "keep_mean"):
        with pytest.raises(ValueError, match=f"magnetic cannot be {kind}: axis 0 .* is open"):
            Constraints(task, {"magnetic": kind})
