"""Signals end a run: all of its processes, within seconds, with one message."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lightning.fabric.plugins.environments import LightningEnvironment
from lightning.fabric.strategies.launchers.subprocess_script import _ChildProcessObserver

from cscnn.forecasting.training.launch import (
    Launcher,
    Signals,
    Terminated,
    without_lost_connections,
)
from cscnn.forecasting.training.train import make_trainer, train
from tests.forecasting.training.runs import QUIET, command, config, identity
from tests.forks import needs_fork

pytestmark = QUIET


def living(group: int) -> list[str]:
    """Processes of a group."""
    result = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, its_group = (folder / "stat").read_text().rsplit(")", 1)[1].split()[:3]
        except OSError:  # it has just ended
            continue
        if int(its_group) == group and state != "Z":
            result.append(f"{folder.name} {state}")
    return result


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks processes up in /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_all_processes_end_with_the_first(number: int, data: Path, tmp_path: Path) -> None:
    """Two devices with a loader each; the signal is for the process that the user started."""
    run = config(data, tmp_path / "run", trainer__epochs=100_000, trainer__devices=2,
                 data__workers=1, optimizer__schedule="constant")  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "cscnn.cli", *command(run, tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1"},
    )
    try:
        deadline = time.monotonic() + 120
        while not (run.folder / "state.ckpt").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert len(living(process.pid)) >= 4
        process.send_signal(number)
        out, _ = process.communicate(timeout=30)
        deadline = time.monotonic() + 5
        while living(process.pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert living(process.pid) == []
    finally:
        if living(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
    message = f"terminated: cscnn train --resume {run.folder} goes on after the last epoch"
    expected = {signal.SIGTERM: (143, message), signal.SIGKILL: (-signal.SIGKILL, "")}
    assert (process.returncode, out.strip()) == expected[signal.Signals(number)]


@pytest.mark.parametrize("error", [KeyboardInterrupt, Terminated])
def test_ended_children_are_no_alarm(error: type[BaseException]) -> None:
    """Lightning kills the first process too if it sees that a child was killed."""
    environment = LightningEnvironment()
    launcher = Launcher(environment, 1, 1)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    launcher.procs = [child]
    watch = _ChildProcessObserver(main_pid=-1, child_processes=launcher.procs)
    watch._terminate_all = lambda: pytest.fail("it would kill all")

    def interrupted() -> None:
        raise error

    launcher._call_children_scripts = lambda: None
    with pytest.raises(error):
        launcher.launch(interrupted)
    assert child.returncode not in (None, 0)
    assert watch._run()


def test_loaders_do_not_report_that_others_ended() -> None:
    reported = []
    hook = without_lost_connections(lambda kind, *_: reported.append(kind))
    for kind in (BrokenPipeError, ConnectionResetError, EOFError, ValueError):
        hook(kind, kind(), None)
    assert reported == [ValueError]


@needs_fork
@pytest.mark.parametrize(
    ("number", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)]
)
def test_a_signal_is_not_lost_in_a_destructor(
    number: int, error: type, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exception that is raised there is only reported; the next batch ends the run."""
    run = config(data, tmp_path / "run")
    lost = []
    monkeypatch.setattr("sys.unraisablehook", lost.append)
    monkeypatch.setattr("cscnn.forecasting.training.train.TrainingModule.on_train_batch_end",
                        lambda self, *_: Deleted() and None)  # fmt: skip

    class Deleted:
        def __del__(self) -> None:
            os.kill(os.getpid(), number)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(error):
            train(run)
        assert lost
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGINT, before)
    assert not (run.folder / "metrics.csv").exists()  # it was in the first epoch


def test_handlers_of_the_user_stay(data: Path, tmp_path: Path) -> None:
    run = config(data, tmp_path)
    trainer = make_trainer(run, identity(run))

    def own(*_: object) -> None:
        """Not ours."""

    before = signal.signal(signal.SIGTERM, own)
    try:
        with Signals().installed(trainer):
            trainer._signal_connector.register_signal_handlers()  # as Lightning does
            assert signal.getsignal(signal.SIGTERM) is own
    finally:
        signal.signal(signal.SIGTERM, before)
