"""Interruptions leave no trace: the same command goes on to the same weights."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cscnn.cli import main
from cscnn.forecasting import Run, Units
from cscnn.forecasting.runs import TRAINED
from cscnn.forecasting.training import ModelConfig
from cscnn.forecasting.training.train import train
from cscnn.kernels import Complete
from tests.forecasting.training.runs import QUIET, command, config, same
from tests.forks import fork, needs_fork

pytestmark = QUIET


@needs_fork
@pytest.mark.parametrize("ema", [0.0, 0.9])
def test_kills_leave_no_trace(data: Path, tmp_path: Path, ema: float) -> None:
    """SIGKILL at random moments; resumed, the final weights are the same to the last bit."""
    expected = train(config(data, tmp_path / "whole", optimizer__ema=ema))
    disturbed = config(data, tmp_path / "killed", optimizer__ema=ema)
    chance, kills = random.Random(1), 0
    state = disturbed.folder / "state.ckpt"
    for _ in range(6):
        pid = fork(lambda: train(disturbed))
        seen = state.stat().st_mtime_ns if state.exists() else 0
        deadline = time.monotonic() + 60
        if kills % 2:  # some at once, some after the next epoch
            while time.monotonic() < deadline:
                if state.exists() and state.stat().st_mtime_ns != seen:
                    break
                if os.waitpid(pid, os.WNOHANG)[0]:
                    pid = 0
                    break
                time.sleep(0.002)
        else:
            time.sleep(chance.uniform(0.05, 0.4))
        if not pid:
            break
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        kills += os.WIFSIGNALED(status)
        if not os.WIFSIGNALED(status):
            break
    assert kills >= 2
    assert same(expected, train(disturbed))


@needs_fork
def test_ctrl_c_says_how_to_go_on(data: Path, tmp_path: Path) -> None:
    options = config(data, tmp_path / "run", trainer__epochs=500)
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "cscnn.cli", *command(options, tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        # a shell that starts tests in the background lets them ignore SIGINT, and their children
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 120
    while not (options.folder / "state.ckpt").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"cscnn train --resume {options.folder} goes on" in out


def test_resume_by_command(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unfinished = config(data, tmp_path / "run", trainer__epochs=2)
    train(unfinished)
    whole = config(data, tmp_path / "whole")
    settings = json.loads((unfinished.folder / "config.json").read_text())
    settings["trainer"]["epochs"] = 3
    (unfinished.folder / "config.json").write_text(json.dumps(settings))
    assert main(["train", "--resume", str(unfinished.folder)]) == 0
    assert "3 epochs" in capsys.readouterr().out
    assert len(Run(unfinished.folder).metrics()) == 3
    assert main(["train", "--resume", str(whole.folder)]) == 1
    assert "is not a complete run, it has no config.json" in capsys.readouterr().err


def test_typed_kernels_survive_a_resume(data: Path, tmp_path: Path) -> None:
    options = {"blocks": 1, "kernel_size": 3, "kernel": Complete(group="O+", hidden_dim=4)}
    run = config(data, tmp_path / "run", trainer__epochs=1, optimizer__schedule="constant")
    run.model = ModelConfig(width=2, options=options)
    train(run)
    again = Run(run.folder).config()
    assert again.model.options["kernel"]["name"] == "complete"
    again.trainer.epochs = 2
    assert len(train(again).metrics()) == 2
    assert Run(run.folder).forecaster().network.kernel == options["kernel"]


def test_units_of_a_run_stay(data: Path, tmp_path: Path) -> None:
    run = config(data, tmp_path / "run", trainer__epochs=1, optimizer__schedule="constant")
    units = Units({"sine": 1.0, "cosine": 2.0, "gradient": 3.0})
    train(run, units)
    run.trainer.epochs = 2
    with pytest.raises(ValueError, match=r"learns in units .*2\.0"):
        train(run, Units({"sine": 9.0, "cosine": 9.0, "gradient": 9.0}))
    assert train(run).forecaster().units == units


def test_given_units_survive_a_kill_in_the_first_epoch(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = config(data, tmp_path / "run", trainer__epochs=1)
    units = Units({"sine": 1.0, "cosine": 2.0, "gradient": 3.0})

    def killed(*_: object, **__: object) -> None:
        raise SystemError("killed")

    with monkeypatch.context() as patch:
        patch.setattr("lightning.Trainer.fit", killed)
        with pytest.raises(SystemError, match="killed"):
            train(run, units)
    assert not (run.folder / "state.ckpt").exists()
    with pytest.raises(ValueError, match=r"learns in units .*2\.0"):
        train(run, Units({"sine": 9.0, "cosine": 9.0, "gradient": 9.0}))
    assert main(["train", "--resume", str(run.folder)]) == 0
    assert Run(run.folder).forecaster().units == units
    assert {path.name for path in run.folder.iterdir()} < set(TRAINED)


def test_a_run_can_be_made_longer(data: Path, tmp_path: Path) -> None:
    short = config(data, tmp_path / "a", trainer__epochs=1, optimizer__schedule="constant")
    train(short)
    short.trainer.epochs = 3
    long = config(data, tmp_path / "b", optimizer__schedule="constant")
    assert same(train(short), train(long))


def test_lengths_that_cannot_be(undisturbed: Run, data: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"holds a run with trainer\.epochs=3, not 5"):
        train(config(data, undisturbed.path, trainer__epochs=5))  # cosine knows its length
    run = config(data, tmp_path / "run", optimizer__schedule="constant", trainer__epochs=2)
    train(run)
    run.trainer.epochs = 1
    with pytest.raises(ValueError, match=r"has trained for 2 epochs already, got .*epochs=1"):
        train(run)
    assert Run(run.folder).config().trainer.epochs == 2


def test_folders_of_other_runs_are_refused(undisturbed: Run, data: Path) -> None:
    before = (undisturbed.path / "model.safetensors").read_bytes()
    with pytest.raises(ValueError, match=r"holds a run with optimizer\.lr=0\.001, not 0\.1"):
        train(config(data, undisturbed.path, optimizer__lr=0.1))
    assert (undisturbed.path / "model.safetensors").read_bytes() == before


def test_a_finished_run_is_left_alone(undisturbed: Run, data: Path) -> None:
    before = undisturbed.file("model.safetensors").stat().st_mtime_ns
    train(config(data, undisturbed.path))
    assert undisturbed.file("model.safetensors").stat().st_mtime_ns == before


def test_a_run_that_lost_patience_has_ended(data: Path, tmp_path: Path) -> None:
    still = config(data, tmp_path / "run", optimizer__lr=1e-30, trainer__epochs=9,
                   trainer__patience=1)  # fmt: skip
    rows = train(still).metrics()
    assert len(rows) < 9
    assert train(still).metrics() == rows
