"""Runs on points: they learn, go on exactly, and are measured, by command and in Python."""

import json
import os
import shlex
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("scipy")

from cscnn.cli import main
from cscnn.data import open_fields
from cscnn.forecasting import Forecaster, Run, TrainConfig, evaluate
from cscnn.forecasting.predict import predict
from cscnn.forecasting.training.train import train
from tests.forecasting.training.runs import QUIET, config, make_data, same
from tests.forks import fork, needs_fork

pytestmark = QUIET


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("sound"), "acoustic_points")


def options(data: Path, out: Path, **changes: object) -> TrainConfig:
    told = {"model__name": "cs_pointnet", "model__options": {"blocks": 1}, **changes}
    return config(data, out, "acoustic_points", **told)


@pytest.fixture(scope="module")
def run(sound: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Half a minute would make it good; this makes it better than persistence."""
    return train(
        options(
            sound,
            tmp_path_factory.mktemp("runs") / "run",
            model__width=4,
            model__predict="change",
            data__per_trajectory=6,
            optimizer__lr=1e-2,
            trainer__epochs=12,
        )
    )


def test_it_learns_more_than_persistence(run: Run) -> None:
    evaluation, samples = evaluate(run)
    errors, still = evaluation.one_step.total, evaluation.one_step.persistence
    assert set(errors) == {"mse", "relative_l2", "vrmse", "correlation"}
    assert errors["relative_l2"] < 0.8 * still["relative_l2"]
    assert evaluation.rollout.quantities["kinetic_energy(velocity)"].known > 0
    symmetry = evaluation.symmetry
    assert max(symmetry.translation, symmetry.point_group, *symmetry.rotation.errors) < 1e-12
    assert len(samples.positions) == samples.target["pressure"].shape[1]


def test_the_numbers_are_those_of_loops(run: Run) -> None:
    """One step: mean over all windows of the mean square over points and components."""
    forecaster = Run(run.path).forecaster()
    squares, changes = [], []
    with run.source("test") as source:
        for number in range(len(source)):
            positions = torch.from_numpy(source.place(number)["positions"])
            for start in range(6):
                read = source.read(number, start, start + 3)
                fields = {n: torch.from_numpy(x)[None] for n, x in read.items()}
                with torch.no_grad():
                    found = forecaster({n: x[:, :2] for n, x in fields.items()}, points=positions)
                error = [(found[n][0, 0] - x[0, 2]).numpy() for n, x in fields.items()]
                squares.append(np.mean(np.square(np.concatenate(error, 1))))
                change = [(x[0, 1] - x[0, 2]).numpy() for x in fields.values()]
                changes.append(np.mean(np.square(np.concatenate(change, 1))))
    evaluation, _ = evaluate(run)
    assert evaluation.data.windows == len(squares) == 12
    assert evaluation.one_step.total["mse"] == pytest.approx(np.mean(squares), rel=1e-4)
    assert evaluation.one_step.persistence["mse"] == pytest.approx(np.mean(changes), rel=1e-4)


@needs_fork
def test_kills_leave_no_trace(sound: Path, tmp_path: Path) -> None:
    changes = {
        "optimizer__ema": 0.9,
        "training__unroll": 2,
        "training__pushforward": True,
        "training__noise": 0.01,
        "training__loss": "relative",
        "training__weights": {"pressure": 2.0},
    }
    expected = train(options(sound, tmp_path / "whole", **changes))
    disturbed = options(sound, tmp_path / "killed", **changes)
    state = disturbed.folder / "state.ckpt"
    pid = fork(lambda: train(disturbed))
    deadline = time.monotonic() + 60
    while not state.exists() and time.monotonic() < deadline:
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status)
    assert len(Run(disturbed.folder).metrics()) < 3
    assert same(expected, train(disturbed))


@pytest.mark.parametrize(
    "changes", [{"data__stride": 2}, {"data__stride": [1, 2]}, {"data__gap": 2}]
)
def test_strides_and_gaps(changes: dict, sound: Path, tmp_path: Path) -> None:
    run = train(options(sound, tmp_path / "run", trainer__epochs=1, **changes))
    evaluation, _ = evaluate(run, windows=4)
    assert evaluation.symmetry.translation < 1e-12
    forecaster, steps = run.forecaster(), 1 if "data__gap" in changes else 2
    predict(forecaster, sound / "test.h5", tmp_path / "later.h5", steps=steps)
    with open_fields(tmp_path / "later.h5") as later, run.source("test") as truth:
        assert later.sizes == truth.sizes
        assert later.header.frame_spacing == pytest.approx(forecaster.task.frame_spacing)


@pytest.mark.slow
def test_workers_and_edges_on_disk_do_not_matter(sound: Path, tmp_path: Path) -> None:
    expected = train(options(sound, tmp_path / "one"))
    for folder in sound.glob("*.edges"):
        for file in folder.iterdir():
            file.write_bytes(b"damaged")
    assert same(expected, train(options(sound, tmp_path / "two", data__workers=2)))


def test_commands(run: Run, sound: Path, tmp_path: Path, capsys, monkeypatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    assert main(["evaluate", str(run.path), "--steps", "3"]) == 0
    text = capsys.readouterr().out
    assert "rotation 45°" in text
    assert "receptive field" not in text
    command = ["predict", str(run.path), str(sound / "test.h5"), "--steps", "3"]
    assert main([*command, "--out", "later.h5"]) == 0
    assert main(["data", "check", "later.h5"]) == 0
    with open_fields("later.h5") as later, run.source("test") as truth:
        assert later.sizes == truth.sizes
        assert later.header.frames == 3
        assert np.array_equal(later.place(1)["positions"], truth.place(1)["positions"])
        frames = {n: torch.from_numpy(x)[None] for n, x in truth.read(1, 0, 2).items()}
        positions = torch.from_numpy(truth.place(1)["positions"])
        with torch.no_grad():
            expected = Forecaster.load(run.path)(frames, 3, points=positions)
        for name, x in later.read(1).items():
            assert np.allclose(x, expected[name][0], rtol=1e-4, atol=1e-5)
    assert main(["report", str(run.path), "--out", "report.html"]) == 0
    assert "each pixel shows the nearest point" in Path("report.html").read_text("utf-8")
    for name in ("stills.png", "film.gif"):
        assert main(["plot", "later.h5", "--out", name]) == 0
        assert Path(name).stat().st_size > 1000
    capsys.readouterr()
    assert main(["export", str(run.path), "--out", "run.pt2"]) != 0
    assert "task acoustic_points is on points" in capsys.readouterr().err


def training(sound: Path, *more: str) -> list[str]:
    return ["train", "--out", "new", "--data.train", str(sound / "train.h5"), *more]


def test_dry_run_says_how_neighbours_are_found(sound: Path, capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    small = ["--model.name", "cs_pointnet", "--model.width", "2", "--dry-run"]
    assert main(training(sound, *small, "--data.radius", "0.25")) == 0
    text = capsys.readouterr().out
    assert "neighbours          within 0.25, about" in text
    told = json.loads(text[text.index("configuration") + 13 :])
    assert told["data"]["radius"] == 0.25
    assert main(training(sound, *small, "--data.neighbours", "6")) == 0
    assert "neighbours          the 6 nearest" in capsys.readouterr().out
    assert main(training(sound, *small)) == 0
    assert "neighbours          within" in capsys.readouterr().out


def test_a_budget_of_parameters(sound: Path, tmp_path: Path) -> None:
    budget = {"model__width": None, "model__params": 2000, "model__options": {"blocks": 1}}
    run = train(options(sound, tmp_path / "run", trainer__epochs=1, trainer__steps=1, **budget))
    assert run.forecaster().n_parameters() == pytest.approx(2000, rel=0.03)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("--model.name cs_resnet", "cs_resnet serves grids"),
        ("--model.name resnet", "resnet serves grids"),
        ("--data.radius 0.6", "radius 0.6 reaches around an axis of period 1"),
        ("--data.radius -1", "data.radius must be positive, got -1.0"),
        ("--data.radius 0.1 --data.neighbours 4", "not both: got 0.1 and 4"),
        ("--data.neighbours 0", "data.neighbours must be at least 1, got 0"),
        ("--data.augment true", "data.augment turns windows by the symmetries of a grid"),
        ("--data.coarsen 2", "coarsen=2 joins points of a grid"),
        ("--training.loss h1", "h1 compares neighbours on a grid"),
        ("--model.constraints '{velocity: divergence_free}'", "constraints are for grids"),
    ],
)
def test_bad_options(more: str, message: str, sound: Path, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    small = ["--model.name", "cs_pointnet", "--model.width", "2", *shlex.split(more)]
    assert main(training(sound, *small)) != 0
    assert message in capsys.readouterr().err
    assert not Path("new/config.json").exists()


def test_points_are_not_for_grids(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    grid = make_data(tmp_path / "grid", "sine_gordon")
    small = ["--model.width", "2"]
    for more, message in (
        (["--model.name", "cs_pointnet"], "cs_pointnet serves point sets"),
        (["--data.radius", "0.5"], "but these are on a grid"),
    ):
        assert main(training(grid, *small, *more)) != 0
        assert message in capsys.readouterr().err
