"""A whole evaluation, as a user runs it."""

import json

import h5py
import numpy as np
import pytest
import torch
from stubs import make_run

from cscnn import models
from cscnn.cli import main
from cscnn.data import FieldFile, Scaling
from cscnn.data.simulators import NavierStokes, SineGordon
from cscnn.evaluation import evaluate, metrics, table
from cscnn.training.run import Run

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


def check_schema(result, frames):
    assert result["format"] == 1
    assert set(result) == {
        "format", "run", "model", "task", "data", "one_step", "rollout", "symmetry", "cost",
        "machine",
    }  # fmt: skip
    four = {"mse", "relative_l2", "vrmse", "spectrum_error"}
    assert four < set(result["one_step"])
    assert set(result["one_step"]["persistence"]) == four
    for values in result["one_step"]["fields"].values():
        assert set(values) == four
        assert all(v >= 0 for v in values.values())
    rollout = result["rollout"]
    steps = len(rollout["steps"])
    assert rollout["steps"] == list(range(1, steps + 1))
    for name in ("times", "relative_l2", "mse", "correlation"):
        assert len(rollout[name]) == steps
    assert len(rollout["persistence"]["relative_l2"]) == steps
    assert set(result["cost"]) >= {"windows_per_second", "peak_bytes", "parameters"}
    assert result["cost"]["windows_per_second"] > 0
    assert result["cost"]["peak_bytes"] > 0
    assert result["symmetry"]["frames"]["kind"] == frames
    assert set(result["symmetry"]["frames"]) >= {"kind", "values", "mse", "worst", "mean"}


def test_smoke(smoke, capsys):
    assert main(["evaluate", str(smoke), *FEW]) == 0
    out = capsys.readouterr().out
    result = json.loads((smoke / "evaluation.json").read_text())
    check_schema(result, "rotated")
    assert "point group" in out
    assert "written to" in out
    assert table(result) in out
    assert result["model"]["name"] == "cs_resnet"
    assert result["data"] == {
        "path": json.loads((smoke / "config.json").read_text())["data"]["test"],
        "split": "test",
        "trajectories": 3,
        "windows": 6,
    }
    assert result["symmetry"]["translation"] < 1e-9
    assert result["symmetry"]["point group"] < 1e-9
    assert result["symmetry"]["boost"] is None
    rotation = result["symmetry"]["rotation"]
    assert len(rotation["angles"]) == len(rotation["errors"]) == len(rotation["floor"])
    frames = result["symmetry"]["frames"]
    assert frames["worst"] == pytest.approx(frames["mean"], rel=1e-4)
    # files
    names = {p.name for p in smoke.iterdir()}
    assert names == {
        "config.json", "evaluation.json", "model.safetensors", "samples.npz", "scaling.json",
    }  # fmt: skip
    with np.load(smoke / "samples.npz") as samples:
        assert set(samples) == {"times"} | {
            f"{kind}/{name}"
            for kind in ("target", "prediction", "input")
            for name in ("smoke", "velocity")
        }
        assert samples["target/velocity"].shape == (6, 16, 16, 2)
        assert samples["prediction/velocity"].dtype == np.float32
        assert samples["input/smoke"].shape == (2, 16, 16, 1)
        with Run(smoke).source("test") as source:
            truth = source.read(0)
            np.testing.assert_array_equal(samples["target/smoke"], truth["smoke"][2:])
            np.testing.assert_array_equal(samples["input/velocity"], truth["velocity"][:2])
            step = source.header.frame_spacing
        np.testing.assert_allclose(samples["times"], step * np.arange(1, 7), rtol=1e-6)


def test_numbers_by_hand(smoke):
    """Mean square errors of all windows, one after the other, in physical units."""
    found = evaluate(smoke, windows=100, steps=2).result
    assert found["data"]["windows"] == 18
    run = Run(smoke)
    model, scaling = run.model(), run.scaling()
    squares = {"smoke": [], "velocity": []}
    whole = []
    lazy, scaled = [], []
    with run.source("test") as source:
        for number in range(3):
            frames = {k: torch.as_tensor(v) for k, v in source.read(number).items()}
            for start in range(6):
                known = {k: v[None, start : start + 2] for k, v in frames.items()}
                x = model.task.pack(scaling.apply(known))
                with torch.no_grad():
                    y = scaling.restore(model.task.unpack(model(x)))
                target = {k: v[None, start + 2 : start + 3] for k, v in frames.items()}
                for name in squares:
                    squares[name].append((y[name] - target[name]).square().mean().item())
                error = torch.cat([(y[k] - target[k]).flatten() for k in y])
                units = torch.cat([(y[k] - target[k]).flatten() / scaling.scale[k] for k in y])
                scaled.append(units.square().mean().item())
                still = torch.cat([(known[k][:, 1:] - target[k]).flatten() for k in y])
                lazy.append(still.square().mean().item())
                whole.append(error.square().mean().item())
    one = found["one_step"]
    assert one["mse"] == pytest.approx(np.mean(whole), rel=1e-5)
    assert one["scaled_mse"] == pytest.approx(np.mean(scaled), rel=1e-5)
    assert one["persistence"]["mse"] == pytest.approx(np.mean(lazy), rel=1e-5)
    for name in ("smoke", "velocity"):
        assert one["fields"][name]["mse"] == pytest.approx(np.mean(squares[name]), rel=1e-5)
    # the first step of a rollout is a step from the first frames
    assert found["rollout"]["mse"][0] == pytest.approx(np.mean(whole[::6]), rel=1e-5)


def test_the_same_numbers_again(waves):
    first, second = (evaluate(waves, windows=4, trajectories=2).result for _ in range(2))
    for result in (first, second):
        del result["cost"]
    assert first == second


def test_solitons(waves, tmp_path):
    out = tmp_path / "here.json"
    argv = ["evaluate", str(waves), *FEW, "--rollout", "10", "--out", str(out)]
    assert main([*argv, "--split", "train"]) == 0
    result = json.loads(out.read_text())
    check_schema(result, "boosted")
    assert result["data"]["split"] == "train"
    assert result["rollout"]["steps"][-1] == 10
    assert result["symmetry"]["rotation"] is None
    assert result["symmetry"]["translation"] < 1e-9
    assert result["symmetry"]["interior"]
    boost = result["symmetry"]["boost"]
    assert len(boost["rapidities"]) == len(boost["errors"]) == len(boost["floor"]) == 4
    assert result["symmetry"]["frames"]["values"] == [0.0, 0.25, 0.5, 0.75]
    assert {p.name for p in tmp_path.iterdir()} == {"here.json", "here.npz"}
    assert not (waves / "evaluation.json").exists()


@pytest.mark.parametrize(("simulator", "frames"), [(SMOKE, 6), (WAVES, 12)])
def test_coarse_runs(simulator, frames, tmp_path):
    """Cells are joined as in training: in space, and in time if it is an axis of the grid."""
    start = 8 - frames if simulator is SMOKE else 4
    found = evaluate(make_run(tmp_path, simulator, coarsen=2, frames_in=start), windows=2)
    header = simulator.header()
    assert len(found.result["rollout"]["steps"]) == frames
    step = header.frame_spacing * (1 if header.time_axis is None else 2)
    assert found.result["rollout"]["times"][0] == pytest.approx(step)
    name = header.fields[-1].name
    assert found.samples[f"target/{name}"].shape[1:-1] == tuple(n // 2 for n in header.grid)


def test_unstable_models_are_reported(tmp_path):
    run = make_run(tmp_path, SMOKE, frames_in=2)
    model = Run(run).model()
    with torch.no_grad():
        for parameter in model.output[-1].parameters():
            parameter.mul_(30.0)
    models.save(model, run / "model.safetensors")
    result = evaluate(run, windows=2, trajectories=2).result
    rollout = result["rollout"]
    stable = rollout["stable_steps"]
    assert stable < 6
    assert stable == min(rollout["stable"])
    assert rollout["relative_l2"][stable:] == [None] * (6 - stable)
    assert rollout["correlation_time"] is not None
    assert f"stable for {stable} of 6 steps" in table(result)


# --- errors ---------------------------------------------------------------------------------------


@pytest.fixture
def broken(tmp_path):
    return make_run(tmp_path, SMOKE, frames_in=2)


def fails(capsys, *argv):
    assert main(["evaluate", *map(str, argv)]) == 1
    return capsys.readouterr().err


@pytest.mark.parametrize("name", ["model.safetensors", "scaling.json", "config.json"])
def test_missing_files(name, broken, capsys):
    (broken / name).unlink()
    assert f"is not a complete run, it has no {name}" in fails(capsys, broken)
    assert not (broken / "evaluation.json").exists()


def test_missing_things(smoke, tmp_path, capsys):
    assert "there is no folder" in fails(capsys, tmp_path / "nothing")
    assert "there is no file" in fails(capsys, smoke, "--data", tmp_path / "no.h5")
    assert "names no data for split 'other'" in fails(capsys, smoke, "--split", "other")
    assert "there is no folder" in fails(capsys, smoke, "--out", tmp_path / "no" / "x.json")
    assert "--out names a JSON file" in fails(capsys, smoke, "--out", tmp_path / "x.npz")


def test_bad_numbers(smoke, capsys):
    assert "windows" in fails(capsys, smoke, "--windows", "0")
    assert "1 to 6 steps, got 7" in fails(capsys, smoke, "--rollout", "7", "--windows", "1")
    assert "cannot compute on device 'abacus'" in fails(capsys, smoke, "--device", "abacus")


def test_data_of_another_task(smoke, waves, capsys):
    other = json.loads((waves / "config.json").read_text())["data"]["test"]
    assert "has metric (1, 1), the data have (1, -1)" in fails(capsys, smoke, "--data", other)


def test_scaling_of_other_fields(broken, capsys):
    Scaling({"temperature": 1.0}).save(broken / "scaling.json")
    assert "no scale for field 'smoke'" in fails(capsys, broken, *FEW)


def test_model_that_says_nothing(broken, capsys):
    model = Run(broken).model()
    with torch.no_grad():
        next(model.output[-1].parameters()).fill_(torch.nan)
    models.save(model, broken / "model.safetensors")
    assert "is not finite for a window" in fails(capsys, broken, *FEW)


def test_data_that_say_nothing(broken, capsys):
    path = json.loads((broken / "config.json").read_text())["data"]["test"]
    with FieldFile(path) as source:
        name = next(iter(source.read(0)))
    with h5py.File(path, "r+") as file:
        found = []
        file.visititems(lambda key, item: found.append(key) if key.endswith(name) else None)
        file[found[0]][1, 4] = np.nan
    assert "trajectory 1 has values that are not finite" in fails(capsys, broken)


def test_devices_without_float64(smoke, monkeypatch):
    """What needs float64 is then computed on the CPU, with the same result."""
    options = {"windows": 4, "steps": 2, "trajectories": 1}
    expected = evaluate(smoke, **options).result
    asked = []
    monkeypatch.setattr(metrics, "has_float64", lambda device: bool(asked.append(device)))
    found = evaluate(smoke, **options).result
    assert asked
    for part in ("one_step", "rollout", "symmetry"):
        assert found[part] == expected[part]
