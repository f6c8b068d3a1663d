"""Many devices train like one, and survive the death of one."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from cscnn.cli import main
from cscnn.forecasting import Forecaster, Run
from cscnn.forecasting.training.config import STRATEGIES, UNUSED
from cscnn.forecasting.training.loader import GlobalBatches, WindowData
from cscnn.forecasting.training.sharding import (
    Replicated,
    Sharded,
    connection_lost,
    constant_buffers,
    shard_,
    strategy,
)
from cscnn.forecasting.training.train import _lost, train
from cscnn.networks.baselines import FNO
from tests.forecasting.training.runs import (
    QUIET,
    command,
    config,
    free_port,
    start_workers,
    workers,
)
from tests.forks import needs_fork
from tests.networks.tiny import need

pytestmark = QUIET

#: A model of few parameters: to split and gather each of them takes time.
SMALL = {
    "model__options": {"blocks": 1, "kernel_size": 3, "kernel": "complete"},
    "optimizer__schedule": "constant",
}
TWO = {"trainer__devices": 2, "trainer__strategy": "ddp"}


def test_shares_of_devices_make_up_the_batches(data: Path, tmp_path: Path) -> None:
    windows = WindowData(config(data, tmp_path).data).train_windows()
    for seed in (3, None):
        whole = list(GlobalBatches(windows, 6, seed))
        shares = [list(GlobalBatches(windows, 6, seed, rank, 3)) for rank in range(3)]
        for number, batch in enumerate(whole):
            parts = [share[number] for share in shares]  # all devices have as many batches
            assert sorted(i for part in parts for i in part) == sorted(batch)
    assert len(list(GlobalBatches(windows, 6, None))[-1]) == 4  # 16 windows: nothing is left out
    first, second = GlobalBatches(windows, 6, 3), GlobalBatches(windows, 6, 3)
    second.set_epoch(1)
    assert list(first) != list(second)


def test_too_few_windows_for_the_devices(data: Path, tmp_path: Path) -> None:
    windows = WindowData(config(data, tmp_path).data)

    class Trainer:
        global_rank, world_size = 0, 64

    windows.trainer = Trainer()
    with pytest.raises(ValueError, match="64 devices need at least as many windows, got 16"):
        windows.train_dataloader()


def test_two_processes_train_like_one(undisturbed: Run, data: Path, tmp_path: Path) -> None:
    options = config(data, tmp_path / "two", trainer__devices=2)  # and no strategy
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "cscnn.cli", *command(options, tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1"},
    )
    assert done.returncode == 0, done.stderr
    for one, two in zip(undisturbed.metrics(), Run(options.folder).metrics(), strict=True):
        for name in ("train_loss", "valid_loss"):
            assert two[name] == pytest.approx(one[name], rel=1e-5)


def close(one: Run, other: Run) -> None:
    """Check that two runs agree up to rounding."""
    for row, expected in zip(other.metrics(), one.metrics(), strict=True):
        for name in ("train_loss", "valid_loss"):
            assert row[name] == pytest.approx(expected[name], rel=1e-5)
    first, second = (load_file(run.file("model.safetensors")) for run in (one, other))
    assert first.keys() == second.keys()
    for name in first:
        torch.testing.assert_close(second[name], first[name], rtol=1e-3, atol=1e-5)


@needs_fork
def test_split_parameters_train_like_whole_ones(data: Path, tmp_path: Path) -> None:
    """Begun on two devices, resumed there, then on one; five windows do not suit two devices.

    With noise, which belongs to a window, and steps that use the parameters again.
    """
    options = {**SMALL, "optimizer__ema": 0.9, "data__valid_windows": 5, "data__frames_out": 4,
               "training__unroll": 2, "training__noise": 0.1}  # fmt: skip
    run = config(data, tmp_path / "run", **options, **TWO, trainer__epochs=1)
    run.trainer.strategy = "fsdp"
    workers(2, lambda: train(run), tmp_path / "errors")
    run.trainer.epochs = 2
    workers(2, lambda: train(run), tmp_path / "errors")
    run.trainer.epochs, run.trainer.devices, run.trainer.strategy = 3, 1, "auto"
    close(train(config(data, tmp_path / "one", **options)), train(run))


def test_types_that_cannot_be_split() -> None:
    need("fno")
    model = FNO(2, 3, 3, width=2, modes=3, layers=1)
    with pytest.raises(ValueError, match=r"FNO has torch\.complex64, torch\.float32: use ddp"):
        shard_(model, None)


def test_several_devices_without_a_strategy() -> None:
    several = strategy("auto", 2)
    assert isinstance(several, Replicated)
    assert False in (
        several._ddp_kwargs.get(name) for name in ("forward_sync_buffers", "broadcast_buffers")
    )
    assert strategy("auto", 1) == "auto"


def test_every_strategy_starts_processes_by_our_launcher() -> None:
    """Those of Lightning's own outlive a process that was killed."""
    for name in STRATEGIES:
        made = strategy(name, 2)
        assert isinstance(made, Replicated | Sharded)
        if isinstance(made, Replicated):
            assert made._ddp_kwargs["find_unused_parameters"] is (name == UNUSED)


def test_buffers_are_not_sent_round() -> None:
    """By whatever name torch's version has for it."""

    def old(module: object, broadcast_buffers: bool = True) -> None: ...

    def new(
        module: object, broadcast_buffers: object = None, forward_sync_buffers: object = None
    ) -> None: ...

    assert constant_buffers(old) == {"broadcast_buffers": False}
    assert constant_buffers(new) == {"forward_sync_buffers": False}


@pytest.mark.parametrize(
    ("error", "connected", "lost"),
    [
        (RuntimeError("[gloo/pair.cc:561] Connection closed by peer"), True, True),
        (torch.distributed.DistNetworkError("failed to connect"), False, True),
        (RuntimeError("Distributed package doesn't have NCCL built in"), False, False),
        (torch.OutOfMemoryError("out of memory. NCCL holds 2 GB"), True, False),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), True, False),
        (ValueError("gloo"), True, False),
    ],
)
def test_which_errors_are_lost_connections(
    error: Exception, connected: bool, lost: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.distributed.is_initialized", lambda: connected)
    assert connection_lost(error) is lost


def test_lost_connections_tell_their_cause(data: Path, tmp_path: Path) -> None:
    run = config(data, tmp_path, **TWO)

    class Trainer:
        global_rank, world_size = 0, 2

    error = RuntimeError("[gloo] closed by peer\nframe #0: ...")
    message = _lost(run, Trainer(), error)
    assert "the state after 0 epochs; the same command goes on" in message
    assert message.endswith("(RuntimeError: [gloo] closed by peer)")
    (run.folder / "state.ckpt").write_bytes(b"half of a state")
    message = _lost(run, Trainer(), error)
    assert "lost the others" in message
    assert "state.ckpt is damaged" in message


@needs_fork
def test_a_killed_worker_ends_the_run(data: Path, tmp_path: Path) -> None:
    run = config(data, tmp_path / "run", **SMALL, **TWO, trainer__epochs=10_000)
    arguments = command(run, tmp_path)

    def work() -> None:
        sys.exit(main(arguments))

    first, second = start_workers(2, work, tmp_path / "errors")
    deadline = time.monotonic() + 60
    while not (run.folder / "state.ckpt").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(second, signal.SIGKILL)
    os.waitpid(second, 0)
    assert os.WEXITSTATUS(os.waitpid(first, 0)[1]) == 1
    (message,) = (tmp_path / "errors/0").read_text().splitlines()
    assert "process 0 of 2 lost the others" in message
    assert "the same command goes on" in message
    epochs = int(message.split("the state after ")[1].split()[0])
    assert epochs >= 1
    run.trainer.epochs, run.trainer.devices, run.trainer.strategy = epochs + 1, 1, "auto"
    whole = train(config(data, tmp_path / "one", **SMALL, trainer__epochs=epochs + 1))
    close(whole, train(run))


@needs_fork
def test_torchrun_starts_again_after_a_death(data: Path, tmp_path: Path) -> None:
    run = config(data, tmp_path / "run", **SMALL, **TWO, trainer__epochs=8)
    worker = tmp_path / "worker.py"
    worker.write_text(
        f"""
import os, pathlib, signal, sys, threading, time, warnings
from cscnn.cli import main
warnings.simplefilter("ignore")

def die():
    while not pathlib.Path({str(run.folder / "state.ckpt")!r}).exists():
        time.sleep(0.001)
    pathlib.Path({str(tmp_path / "died")!r}).touch()
    os.kill(os.getpid(), signal.SIGKILL)

if os.environ["RANK"] == "1" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    threading.Thread(target=die, daemon=True).start()
sys.exit(main({command(run, tmp_path)!r}))
"""
    )
    torchrun = [
        sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--nproc-per-node", "2",
        "--max-restarts", "1", "--monitor-interval", "0.1", "--master-addr", "127.0.0.1",
        "--master-port", str(free_port()), str(worker),
    ]  # fmt: skip
    done = subprocess.run(
        torchrun, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "died").exists()
    close(train(config(data, tmp_path / "one", **SMALL, trainer__epochs=8)), Run(run.folder))


@needs_fork
@pytest.mark.parametrize("training", [True, False])
def test_all_devices_stop_if_the_loss_of_one_is_not_a_number(
    training: bool, data: Path, tmp_path: Path
) -> None:
    run = config(data, tmp_path / "run", **SMALL, **TWO)

    def work() -> None:
        loss = Forecaster.loss
        bad = float("nan") if os.environ["RANK"] == "1" else 1.0

        def broken(self: Forecaster, batch: object, *how: object) -> torch.Tensor:
            return (bad if self.training is training else 1.0) * loss(self, batch, *how)

        Forecaster.loss = broken
        train(run)

    for pid in start_workers(2, work, tmp_path / "errors"):
        assert os.WEXITSTATUS(os.waitpid(pid, 0)[1]) == 1
    for text in ((tmp_path / "errors" / rank).read_text() for rank in "01"):
        name = (
            "loss is nan at epoch 1, batch 0" if training else "validation loss is nan at epoch 1"
        )
        assert f"NonFiniteLoss: the {name}" in text
    assert Forecaster.load(run.folder / "diagnosis.safetensors").n_parameters() > 0
