"""A whole evaluation, as a user runs it."""

import json
from dataclasses import replace

import h5py
import numpy as np
import pytest
import torch

from cscnn.cli import main
from cscnn.data import FieldFile
from cscnn.data.simulators import NavierStokes, SineGordon
from cscnn.forecasting import Run, Units, collate
from cscnn.forecasting.evaluation import Evaluation, Evaluator, Samples, evaluate, metrics, table
from cscnn.forecasting.windows import Windows
from cscnn.viz.report.contents import Contents
from cscnn.viz.report.table import rows as report_rows
from tests.forecasting.evaluation.stubs import TINY, make_run

SMOKE = NavierStokes(grid=(16, 16), frames=8, warmup=1, every=1)
WAVES = SineGordon(frames=32, grid=(32,))
FEW = ["--windows", "6", "--batch", "4"]


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    torch.manual_seed(0)
    return make_run(tmp_path_factory.mktemp("smoke"), SMOKE, frames_in=2)


@pytest.fixture(scope="module")
def waves(tmp_path_factory):
    torch.manual_seed(0)
    return make_run(tmp_path_factory.mktemp("waves"), WAVES, name="resnet", frames_in=8)


def weights(run):
    return run.path / "model.safetensors"


def check_numbers(evaluation, observers):
    one_step = evaluation.one_step
    for errors in (one_step.total, one_step.persistence, *one_step.fields.values()):
        assert {*errors} == {*metrics.METRICS}
        assert min(value for name, value in errors.items() if name != "correlation") >= 0
        assert -1 <= errors["correlation"] <= 1
    rollout = evaluation.rollout
    steps = len(rollout.steps)
    assert rollout.steps == list(range(1, steps + 1))
    for name in ("times", "relative_l2", "mse", "correlation", "persistence"):
        assert len(getattr(rollout, name)) == steps
    assert evaluation.cost.windows_per_second > 0
    assert evaluation.cost.peak_bytes > 0
    assert evaluation.cost.parameters == evaluation.model.parameters
    assert evaluation.symmetry.observers.kind == observers
    assert set(evaluation.machine) > {"processor", "torch"}


def test_smoke(smoke, capsys):
    assert main(["evaluate", str(smoke.path), *FEW]) == 0
    out = capsys.readouterr().out
    evaluation = Evaluation.load(smoke.path / "evaluation.json")
    check_numbers(evaluation, "rotated")
    assert "point group" in out
    assert "persistence forecast" in out
    assert "no divergence, ∇⌟v = 0" in out
    flow = evaluation.rollout.laws["incompressible"]
    assert flow.target < 1e-6
    assert flow.prediction > 1e-2
    assert "receptive field: 5 × 5 points" in out
    assert "written to" in out
    assert table(evaluation) in out
    assert evaluation.run == str(smoke.path)
    assert evaluation.model.name == "cs_resnet"
    assert evaluation.model.options == TINY
    assert evaluation.task == smoke.forecaster().task
    assert vars(evaluation.data) == {
        "path": smoke.config().data.test,
        "split": "test",
        "trajectories": 3,
        "windows": 6,
        "stride": 1,
        "rollouts": 3,
        "time_unit": "s",
    }
    symmetry = evaluation.symmetry
    assert symmetry.receptive_field == [2, 2]
    assert symmetry.group == "O"
    assert symmetry.translation < 1e-9
    assert symmetry.point_group < 1e-9
    assert symmetry.boost is None
    rotation = symmetry.rotation
    assert symmetry.observers.windows == 6
    assert "rotated observers, 6 windows" in out
    assert len(rotation.values) == len(rotation.errors) == len(rotation.floors)
    assert symmetry.observers.worst == pytest.approx(symmetry.observers.mean, rel=1e-4)
    names = {p.name for p in smoke.path.iterdir()}
    assert names == {"config.json", "evaluation.json", "model.safetensors", "samples.npz"}


def test_samples_are_those_of_the_first_trajectory(smoke, tmp_path):
    _, samples = evaluate(smoke, windows=1, trajectories=1)
    assert {*samples.known} == {*samples.target} == {*samples.prediction} == {"smoke", "velocity"}
    assert samples.prediction["velocity"].dtype == np.float32
    with smoke.source("test") as source:
        truth, header = source.read(0), source.header
    np.testing.assert_array_equal(samples.target["smoke"], truth["smoke"][2:])
    np.testing.assert_array_equal(samples.known["velocity"], truth["velocity"][:2])
    np.testing.assert_allclose(samples.times, header.frame_spacing * np.arange(1, 7), rtol=1e-6)
    known = {name: torch.as_tensor(x[None, :2]) for name, x in truth.items()}
    with torch.no_grad():
        predicted = smoke.forecaster()(known, steps=6)
    for name, x in predicted.items():
        np.testing.assert_allclose(samples.prediction[name], x[0], rtol=1e-4, atol=1e-5)
    samples.save(tmp_path / "samples.npz")
    loaded = Samples.load(tmp_path / "samples.npz", smoke.forecaster().task)
    np.testing.assert_array_equal(loaded.prediction["smoke"], samples.prediction["smoke"])


def test_numbers_by_hand(smoke):
    """Mean square errors of all windows, one after the other, in physical units."""
    evaluation, _ = evaluate(smoke, windows=100, steps=2)
    assert evaluation.data.windows == 18
    forecaster = smoke.forecaster()
    scale = forecaster.units.scale
    squares = {"smoke": [], "velocity": []}
    total, persistent, scaled = [], [], []
    with smoke.source("test") as source:
        for number in range(3):
            frames = {k: torch.as_tensor(v) for k, v in source.read(number).items()}
            for start in range(6):
                known = {k: v[None, start : start + 2] for k, v in frames.items()}
                with torch.no_grad():
                    y = forecaster.unpack(forecaster.predict(forecaster.pack(known)))
                target = {k: v[None, start + 2 : start + 3] for k, v in frames.items()}
                error = {k: (y[k] - target[k]).flatten() for k in y}
                for name, values in squares.items():
                    values.append(error[name].square().mean().item())
                units = torch.cat([error[k] / scale[k] for k in y])
                scaled.append(units.square().mean().item())
                still = torch.cat([(known[k][:, 1:] - target[k]).flatten() for k in y])
                persistent.append(still.square().mean().item())
                total.append(torch.cat(list(error.values())).square().mean().item())
    one = evaluation.one_step
    assert one.total["mse"] == pytest.approx(np.mean(total), rel=1e-5)
    assert one.scaled_mse == pytest.approx(np.mean(scaled), rel=1e-5)
    assert one.persistence["mse"] == pytest.approx(np.mean(persistent), rel=1e-5)
    for name in ("smoke", "velocity"):
        assert one.fields[name]["mse"] == pytest.approx(np.mean(squares[name]), rel=1e-5)
    # the first step of a rollout is a step from the first frames
    assert evaluation.rollout.mse[0] == pytest.approx(np.mean(total[::6]), rel=1e-5)


def test_the_loss_is_the_scaled_error(waves):
    """Two scalars and a vector are four components, though two channels have six of these grades.

    What the network says in components without data enters neither the loss nor the error.
    """
    forecaster = waves.forecaster()
    task = forecaster.task
    assert [(f.name, f.grade) for f in task.fields] == [("sine", 0), ("cosine", 0), ("gradient", 1)]
    assert (task.output_type.channels, task.output_type.components) == (2, 4)

    def loss_and_error():
        with waves.source("test") as source:
            windows = Windows(source, task, mode="all")
            numbers = range(0, len(windows), 5)
            with torch.no_grad():
                loss = forecaster.loss(collate([windows[i] for i in numbers]))
            return float(loss), Evaluator(forecaster, source).one_step(numbers).scaled_mse

    loss, error = loss_and_error()
    assert loss == pytest.approx(error, rel=1e-5)

    def noise(module, inputs, y):
        return y + 100 * torch.randn_like(y) * ~task.output_type.mask[:, None, None]

    handle = forecaster.network.register_forward_hook(noise)
    assert loss_and_error() == pytest.approx((loss, error), rel=1e-5)
    handle.remove()
    forecaster.network.register_forward_hook(lambda module, inputs, y: y + 5)
    assert min(loss_and_error()) > 5 * loss


def test_the_same_numbers_again(waves):
    first, second = (evaluate(waves, windows=4, trajectories=2)[0] for _ in range(2))
    assert replace(first, cost=second.cost).to_dict() == second.to_dict()


def test_solitons(waves, tmp_path):
    out = tmp_path / "here.json"
    argv = ["evaluate", str(waves.path), *FEW, "--steps", "10", "--out", str(out)]
    assert main([*argv, "--split", "train"]) == 0
    evaluation = Evaluation.load(out)
    check_numbers(evaluation, "boosted")
    assert evaluation.data.split == "train"
    assert evaluation.rollout.steps[-1] == 10
    symmetry = evaluation.symmetry
    assert symmetry.rotation is None
    assert symmetry.translation < 1e-9
    assert symmetry.interior
    assert len(symmetry.boost.values) == len(symmetry.boost.errors) == 4
    assert symmetry.observers.observers == [0.0, 0.25, 0.5, 0.75]
    assert symmetry.observers.windows == 4
    assert set(evaluation.rollout.quantities) == {
        "soliton_energy(cosine, gradient)", "mean(sine)", "mean(cosine)"
    }  # fmt: skip
    assert {p.name for p in tmp_path.iterdir()} == {"here.json", "here.npz"}
    assert not (waves.path / "evaluation.json").exists()


def test_a_forecaster_is_enough(smoke, tmp_path, capsys):
    """The file of a forecaster and data give the numbers of the run."""
    data = smoke.config().data.test
    alone, _ = evaluate(weights(smoke), data=data, windows=3, trajectories=1)
    of_run, _ = evaluate(smoke, windows=3, trajectories=1)
    assert alone.one_step == of_run.one_step
    assert alone.symmetry == of_run.symmetry
    assert alone.run == str(weights(smoke))
    out = tmp_path / "x.json"
    argv = [weights(smoke), "--windows", "1", "--steps", "1"]
    assert "give --out FILE" in fails(capsys, *argv)
    assert "give data (--data FILE)" in fails(capsys, *argv, "--out", out)
    assert main(["evaluate", *map(str, argv), "--out", str(out), "--data", data]) == 0
    assert Evaluation.load(out).data.path == data


def test_a_forecaster_in_memory_and_an_open_source(smoke):
    forecaster, options = smoke.forecaster(), {"windows": 3, "steps": 2, "trajectories": 1}
    expected, _ = evaluate(smoke, **options)
    with smoke.source("test") as source:
        evaluation, _ = evaluate(forecaster, source, **options)
        assert evaluation.one_step == expected.one_step
        assert evaluation.run == "cs_resnet"
        assert source.read(0)["smoke"].shape == (8, 16, 16, 1)  # it is still open
    with pytest.raises(ValueError, match="cs_resnet does not name its data"):
        evaluate(forecaster)


@pytest.fixture
def fresh_metrics():
    """Metrics that a test registers are gone after it."""
    before = dict(metrics.METRICS)
    yield
    metrics.METRICS.clear()
    metrics.METRICS.update(before)


def test_names_of_metrics_are_given_once(fresh_metrics):
    def mse(prediction, target):
        return prediction

    with pytest.raises(ValueError, match=r"a metric named 'mse' already, cscnn\..*\.mse"):
        metrics.metric("another")(mse)


def test_a_new_metric_is_one_function(smoke, tmp_path, fresh_metrics):
    """It is in the JSON, in the table and in reports, and it is given what it needs."""
    seen = []

    @metrics.metric("largest error", needs=("periodic",))
    def worst(prediction, target, periodic):
        seen.append(periodic)
        return (prediction - target).abs().flatten(2).amax(2).double()

    evaluation, _ = evaluate(smoke, windows=2, steps=1, trajectories=1)
    assert set(seen) == {(False, False)}
    one_step = evaluation.one_step
    assert one_step.total["worst"] == pytest.approx(
        (one_step.fields["smoke"]["worst"] + one_step.fields["velocity"]["worst"]) / 2
    )
    path = tmp_path / "evaluation.json"
    evaluation.save(path)
    assert json.loads(path.read_text())["one_step"]["total"]["worst"] == one_step.total["worst"]
    parts = [part.splitlines() for part in table(Evaluation.load(path)).split("\n\n")]
    (header, *rows) = next(lines for lines in parts if "mse" in lines[0].split())
    assert header.split()[2:] == [*metrics.METRICS]
    assert rows[2].split()[-1] == f"{one_step.total['worst']:.4g}"
    reported = report_rows([Contents("a", "", smoke, smoke.config(), [], evaluation, None)])
    (row,) = [row for row in reported["One step"] if row.label == "largest error"]
    assert (row.values, row.persistence) == (
        [one_step.total["worst"]],
        one_step.persistence["worst"],
    )


@pytest.mark.parametrize(("simulator", "frames"), [(SMOKE, 6), (WAVES, 12)])
def test_coarse_runs(simulator, frames, tmp_path):
    """Cells are joined as in training: in space, and in time if it is an axis of the grid."""
    start = 8 - frames if simulator is SMOKE else 4
    run = make_run(tmp_path, simulator, coarsen=2, frames_in=start)
    evaluation, samples = evaluate(run, windows=2)
    header = simulator.header()
    assert len(evaluation.rollout.steps) == frames
    step = header.frame_spacing * (1 if header.time_axis is None else 2)
    assert evaluation.rollout.times[0] == pytest.approx(step)
    name = header.fields[-1].name
    assert samples.target[name].shape[1:-1] == tuple(n // 2 for n in header.grid)


def rescale_output(run, factor):
    """Break the weights of a run."""
    forecaster = run.forecaster()
    with torch.no_grad():
        for parameter in forecaster.network.output[-1].parameters():
            parameter.mul_(factor)
    forecaster.save(weights(run))


# --- errors ---------------------------------------------------------------------------------------


@pytest.fixture
def broken(tmp_path):
    return make_run(tmp_path, SMOKE, frames_in=2)


def fails(capsys, *argv):
    assert main(["evaluate", *map(str, argv)]) == 1
    return capsys.readouterr().err


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_missing_files(name, broken, capsys):
    (broken.path / name).unlink()
    assert f"is not a complete run, it has no {name}" in fails(capsys, broken.path)
    assert not (broken.path / "evaluation.json").exists()


def test_missing_things(smoke, tmp_path, capsys):
    run = smoke.path
    assert "there is no folder or file" in fails(capsys, tmp_path / "nothing")
    assert "there is no file" in fails(capsys, run, "--data", tmp_path / "no.h5")
    assert "names no data for split 'other'" in fails(capsys, run, "--split", "other")
    assert "there is no folder" in fails(capsys, run, "--out", tmp_path / "no" / "x.json")
    assert "--out must end in .json" in fails(capsys, run, "--out", tmp_path / "x.npz")


def test_bad_numbers(smoke, capsys):
    run = smoke.path
    assert "windows" in fails(capsys, run, "--windows", "0")
    assert "1 to 6 steps, got 7" in fails(capsys, run, "--steps", "7", "--windows", "1")
    assert "cannot compute on device 'abacus'" in fails(capsys, run, "--device", "abacus")


def test_data_of_another_task(smoke, waves, capsys):
    other = waves.config().data.test
    message = fails(capsys, smoke.path, "--data", other)
    assert "is not for this forecaster" in message
    assert "has metric (1, 1), the data have (1, -1)" in message


def test_units_of_other_fields(broken, capsys):
    forecaster = broken.forecaster()
    forecaster.units = Units({"temperature": 1.0})
    forecaster.save(weights(broken))
    assert "no scale for field 'smoke'" in fails(capsys, broken.path, *FEW)


def test_predictions_that_are_not_finite(broken, capsys):
    rescale_output(broken, torch.nan)
    assert "is not finite for a window" in fails(capsys, broken.path, *FEW)


def test_data_that_are_not_finite(broken, capsys):
    path = broken.config().data.test
    with FieldFile(path) as source:
        name = source.header.fields[0].name
    with h5py.File(path, "r+") as file:
        datasets = []
        file.visititems(lambda key, item: datasets.append(key) if key.endswith(name) else None)
        file[datasets[0]][1, 4] = np.nan
    assert "trajectory 1 has values that are not finite" in fails(capsys, broken.path)
    with Run(broken.path).source("test") as source:
        evaluator = Evaluator(broken.forecaster(), source)
        with pytest.raises(ValueError, match=f"trajectory 1 has values of {name} that are not"):
            evaluator.rollouts(3)


def test_devices_without_float64(smoke, monkeypatch):
    """What needs float64 is then computed on the CPU, with the same result."""
    options = {"windows": 4, "steps": 2, "trajectories": 1}
    expected, _ = evaluate(smoke, **options)
    asked = []
    monkeypatch.setattr(metrics, "has_float64", lambda device: bool(asked.append(device)))
    evaluation, _ = evaluate(smoke, **options)
    assert asked
    for part in ("one_step", "rollout", "symmetry"):
        assert getattr(evaluation, part) == getattr(expected, part)
