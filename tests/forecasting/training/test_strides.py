"""Runs with a stride, a range of strides or a gap, as a user makes, measures and uses them."""

import contextlib
import json

import numpy as np
import pytest
import torch

from cscnn.cli import main
from cscnn.data import Field, FieldFile, Header
from cscnn.data.files import find_damage, write
from cscnn.forecasting import Forecaster, Run, evaluate, train
from cscnn.forecasting.evaluation import Evaluation
from cscnn.forecasting.training.command import parse
from cscnn.forecasting.training.loader import WindowData
from tests.forecasting.training.runs import QUIET, command, config, make_data

pytestmark = QUIET

HEADER = Header(
    metric=(1, 1),
    axes=("x", "y"),
    spacing=(1.0, 1.0),
    boundary=("periodic", "periodic"),
    fields=(Field("level", 0),),
    frames=17,
    grid=(4, 4),
    frame_spacing=0.5,
)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Levels that rise at one rate from random beginnings: later by t, higher by t."""
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    times = 0.5 * np.arange(17).reshape(-1, 1, 1, 1)
    for split, count in {"train": 8, "valid": 4, "test": 4}.items():
        rows = ({"level": 3 * rng.standard_normal((1, 4, 4, 1)) + times} for _ in range(count))
        write(folder / f"{split}.h5", HEADER.replace(split=split), rows, range(count))
    return folder


def options(data, out, **changes):
    network = {"model__name": "resnet", "model__options": {"blocks": 1, "kernel_size": 1}}
    return config(data, out, **{"data__frames_in": 1, **network, **changes})


def trained(data, out, **changes):
    train(options(data, out, **changes))
    return Run(out)


LONG = {
    "trainer__epochs": 12, "data__per_trajectory": 16, "data__batch": 8, "optimizer__lr": 0.02,
    "optimizer__schedule": "constant", "model__predict": "change", "model__width": 8,
}  # fmt: skip


@pytest.fixture(scope="module")
def told(data, tmp_path_factory):
    return trained(data, tmp_path_factory.mktemp("runs") / "told", data__stride=[1, 4], **LONG)


def test_one_model_forecasts_in_steps_of_several_lengths(told, data, tmp_path):
    """It is better than one that is not told, which can only forecast a mean over strides."""
    untold = trained(data, tmp_path / "run", data__stride=[1, 4], data__constants=False, **LONG)
    errors = {
        stride: [
            evaluate(run, windows=8, trajectories=1, stride=stride)[0].one_step.total["mse"]
            for run in (told, untold)
        ]
        for stride in (1, 4)
    }
    for stride, (hearing, deaf) in errors.items():
        bias = 0.5 * (stride - 2.5)  # by which the mean of all rises is wrong
        assert hearing < 0.1 * bias**2, errors
        assert deaf > 0.5 * bias**2, errors


def test_evaluations_compare_with_the_right_frames(told, data, capsys):
    """Against frames sliced in numpy."""
    evaluation, samples = evaluate(told, windows=4, trajectories=2, stride=3)
    with FieldFile(data / "test.h5") as source:
        stored = source.read(0)["level"]
    np.testing.assert_array_equal(samples.target["level"], stored[3::3])
    np.testing.assert_allclose(samples.times, [1.5, 3.0, 4.5, 6.0, 7.5])
    np.testing.assert_allclose(evaluation.rollout.times, [1.5, 3.0, 4.5, 6.0, 7.5])
    assert evaluation.data.stride == 3
    with torch.no_grad():
        known = {"level": torch.as_tensor(stored[:1])[None]}
        spacing = torch.tensor([[1.5]])
        made = told.forecaster()(known, 5, given={"frame_spacing": spacing})["level"][0]
    np.testing.assert_allclose(samples.prediction["level"], made, atol=1e-5)
    assert main(["evaluate", str(told.path), "--windows", "4", "--stride", "4"]) == 0
    assert "test.h5, stride 4" in capsys.readouterr().out
    assert Evaluation.load(told.path / "evaluation.json").data.stride == 4
    smallest, _ = evaluate(told, windows=4, trajectories=1)
    assert (smallest.data.stride, smallest.rollout.times[0]) == (1, 0.5)


def test_forecasts_of_a_stride(told, data, tmp_path):
    out = tmp_path / "out.h5"
    arguments = ["--steps", "2", "--start", "1", "--stride", "4", "--out", str(out)]
    assert main(["predict", str(told.path), str(data / "test.h5"), *arguments]) == 0
    assert list(find_damage(out)) == []
    with FieldFile(out) as forecasts, FieldFile(data / "test.h5") as source:
        assert (forecasts.header.frames, forecasts.header.frame_spacing) == (2, 2.0)
        assert forecasts.read(1)["frame_spacing"].tolist() == [2.0]
        stored = torch.as_tensor(source.read(1)["level"])
    with torch.no_grad():
        expected = told.forecaster()(
            {"level": stored[None, 4:5]}, 2, given={"frame_spacing": torch.tensor([[2.0]])}
        )["level"][0]
    with FieldFile(out) as forecasts:
        np.testing.assert_allclose(forecasts.read(1)["level"], expected, atol=1e-5)


def test_files_remember_the_range(told):
    again = Forecaster.load(told.path)
    assert (again.stride.low, again.stride.high) == (1, 4)
    assert again.task.given[-1].name == "frame_spacing"


def test_files_from_before_strides_are_read(data, tmp_path, monkeypatch):
    """Their descriptions have no stride and no gap."""
    run = trained(data, tmp_path / "run", trainer__epochs=1)
    real = json.dumps

    def without(description):
        if "task" in description:
            del description["stride"], description["task"]["gap"]
        return real(description)

    monkeypatch.setattr("cscnn.forecasting.forecaster.json.dumps", without)
    run.forecaster().save(tmp_path / "old.safetensors")
    monkeypatch.undo()
    old = Forecaster.load(tmp_path / "old.safetensors")
    assert (old.stride.low, old.stride.high, old.task.gap) == (1, 1, 0)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("evaluate RUN --stride 5", "stride must be from 1 to 4, as in training, got 5"),
        ("evaluate RUN --stride 0", "stride must be at least 1, got 0"),
        ("predict RUN DATA --out NEW --stride 5", "must be from 1 to 4, as in training, got 5"),
        ("evaluate RUN --stride 4 --steps 5", "a rollout can have 1 to 4 steps, got 5"),
    ],
)
def test_strides_outside_of_the_range(command, message, told, data, tmp_path, capsys):
    names = {"RUN": told.path, "DATA": data / "test.h5", "NEW": tmp_path / "new.h5"}
    assert main([str(names.get(word, word)) for word in command.split()]) == 1
    assert message in capsys.readouterr().err


def test_data_with_other_times_are_refused(told, data, tmp_path):
    """A stride of 2 would be one of 1 there: the range is about times."""
    with FieldFile(data / "test.h5") as source:
        header = source.header.replace(frame_spacing=0.25)
        write(tmp_path / "fine.h5", header, [source.read(0)], [0])
    with pytest.raises(ValueError, match=r"frames 0\.5 apart, the data 0\.25"):
        told.forecaster().view(tmp_path / "fine.h5", stride=2)


# --- one stride -----------------------------------------------------------------------------------


def test_a_fixed_stride_is_the_task(data, tmp_path):
    run = trained(data, tmp_path / "run", data__stride=3, trainer__epochs=1, training__unroll=2)
    forecaster = run.forecaster()
    assert forecaster.task.frame_spacing == 1.5
    assert not forecaster.task.given
    _, samples = evaluate(run, windows=4, trajectories=1)
    with FieldFile(data / "test.h5") as source:
        np.testing.assert_array_equal(samples.target["level"], source.read(0)["level"][3::3])
    with pytest.raises(ValueError, match=r"frames 1\.5 apart, the data 1\.0 with stride 2"):
        forecaster.view(data / "test.h5", stride=2)
    # what is stored with that time between frames already is seen frame by frame
    with FieldFile(data / "test.h5") as source:
        row = {"level": source.read(0)["level"][::3]}
        header = source.header.replace(frames=6, frame_spacing=1.5)
        write(tmp_path / "thin.h5", header, [row], [0])
    assert forecaster.view(tmp_path / "thin.h5", stride=1).header == header


def test_it_is_the_same_as_thinner_data(data, tmp_path):
    """Validation with a stride of 4, when all windows begin at multiples of it."""
    for split in ("train", "valid", "test"):
        with FieldFile(data / f"{split}.h5") as source:
            rows = [{"level": source.read(i)["level"][::4]} for i in range(len(source))]
            header = source.header.replace(frames=5, frame_spacing=2.0)
            write(tmp_path / f"{split}.h5", header, rows, range(len(rows)))
    strided, thin = (
        WindowData(options(folder, tmp_path, data__stride=stride).data)
        for folder, stride in ((data, 4), (tmp_path, 1))
    )
    with contextlib.closing(strided), contextlib.closing(thin):
        assert strided.task == thin.task
        a, b = strided.valid_windows(), thin.valid_windows()
        for number in range(len(b)):
            trajectory, start = b.locate(number)
            window = a[trajectory * a.starts + 4 * start]
            assert torch.equal(window.known["level"], b[number].known["level"])
            assert torch.equal(window.target["level"], b[number].target["level"])


@pytest.mark.parametrize("stride", [2, 3])
def test_time_as_an_axis_of_the_grid(stride, tmp_path_factory, tmp_path):
    folder = make_data(tmp_path_factory.mktemp("waves"))
    changes = {"data__frames_in": 2, "data__frames_out": 1, "trainer__epochs": 1}
    train(config(folder, tmp_path / "run", data__stride=stride, **changes))
    run = Run(tmp_path / "run")
    with FieldFile(folder / "test.h5") as source:
        header, stored = source.header, source.read(0)["gradient"]
    task = run.forecaster().task
    assert task.spacing == (stride * header.spacing[0], header.spacing[1])
    evaluation, samples = evaluate(run, windows=2, trajectories=1)
    np.testing.assert_array_equal(samples.target["gradient"], stored[2 * stride :: stride])
    assert evaluation.symmetry.observers.kind == "boosted"
    assert all(np.isfinite(evaluation.symmetry.observers.mse))


# --- a gap ----------------------------------------------------------------------------------------


def test_direct_forecasts_of_a_later_time(data, tmp_path):
    run = trained(
        data, tmp_path / "run", data__frames_in=2, data__stride=2, data__gap=3, trainer__epochs=1
    )
    assert run.forecaster().task.gap == 3
    evaluation, samples = evaluate(run, windows=4, trajectories=2)
    with FieldFile(data / "test.h5") as source:
        stored = source.read(0)["level"]
    np.testing.assert_array_equal(samples.target["level"], stored[[10]])  # 0 and 2, then 4 × 2
    np.testing.assert_allclose(evaluation.rollout.times, [4.0])
    np.testing.assert_allclose(samples.times, [4.0])
    out = tmp_path / "out.h5"
    assert main(["predict", str(run.path), str(data / "test.h5"), "--out", str(out)]) == 0
    with FieldFile(out) as forecasts:
        got = forecasts.read(0)["level"]
    with torch.no_grad():
        expected = run.forecaster()({"level": torch.as_tensor(stored[[0, 2]])[None]})["level"]
    np.testing.assert_allclose(got, expected[0], atol=1e-5)


def test_a_gap_is_not_fed_back(data, tmp_path, capsys):
    run = trained(data, tmp_path / "run", data__gap=3, trainer__epochs=1)
    names = [str(run.path), str(data / "test.h5"), "--out", str(tmp_path / "out.h5")]
    assert main(["predict", *names, "--steps", "2"]) == 1
    assert "has 1 to 1 steps, got 2. For rollouts in steps of 4" in capsys.readouterr().err
    assert main(["evaluate", str(run.path), "--steps", "2"]) == 1
    assert "takes 1 and leaves out 3: a rollout can have 1 to 1" in capsys.readouterr().err


# --- options --------------------------------------------------------------------------------------


def test_options_come_from_files_and_the_command_line(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("data: {stride: [1, 4], gap: 2}\n")
    read, _ = parse(["--config", str(path)])
    assert (read.data.stride, read.data.gap) == ([1, 4], 2)
    read, _ = parse(["--config", str(path), "--data.stride", "3"])
    assert read.data.stride == 3
    read, _ = parse(["--data.stride", "[2,3]", "--data.gap", "1"])
    assert (read.data.stride, read.data.gap) == ([2, 3], 1)


def test_a_run_goes_on_with_its_own_strides_only(data, tmp_path):
    run = tmp_path / "run"
    assert main(command(options(data, run, data__stride=[1, 2], trainer__epochs=1), tmp_path)) == 0
    with pytest.raises(ValueError, match=r"a run with data\.stride=\[1, 2\], not 1"):
        train(options(data, run, trainer__epochs=1))
    with pytest.raises(ValueError, match=r"a run with data\.gap=0, not 1"):
        train(options(data, run, trainer__epochs=1, data__stride=[1, 2], data__gap=1))
