"""Training: the protocol, what is written, and that interruptions leave no trace."""

import json
import math
import os
import random
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
import torch
from runs import config, make_data
from safetensors.torch import load_file

from cscnn import models
from cscnn.cli import main
from cscnn.data import Windows
from cscnn.training import Run
from cscnn.training.commands import parse, presets
from cscnn.training.datamodule import GlobalBatches, WindowData
from cscnn.training.module import Forecast, NonFiniteLoss
from cscnn.training.train import build_model, train

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec.*:UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:lightning.*"),
]
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="kills processes as POSIX does")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def undisturbed(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(config(data, tmp_path_factory.mktemp("run") / "undisturbed"))


def same(a: Run, b: Run) -> bool:
    """Whether weights and losses of two runs are the same to the last bit."""
    first, second = (load_file(run.file("model.safetensors")) for run in (a, b))
    losses = [
        [{k: v for k, v in row.items() if k != "seconds"} for row in run.metrics()]
        for run in (a, b)
    ]
    return losses[0] == losses[1] and all(torch.equal(first[k], second[k]) for k in first)


def test_a_run_folder_is_complete(undisturbed: Run, data: Path) -> None:
    names = {p.name for p in undisturbed.path.iterdir()}
    assert names == {
        "config.json", "metrics.csv", "model.safetensors", "scaling.json", "state.ckpt",
    }  # fmt: skip
    rows = undisturbed.metrics()
    assert [row["epoch"] for row in rows] == [0, 1, 2]
    assert [row["step"] for row in rows] == [4, 8, 12]
    assert rows[-1]["train_loss"] < rows[0]["train_loss"]
    assert rows[-1]["lr"] < 1e-4
    assert undisturbed.config()["data"]["train"] == str(data / "train.h5")
    model, source = undisturbed.model(), undisturbed.source("valid")
    task = source.header.task(frames_in=6)
    assert model.task == task
    windows = Windows(source, task, scaling=undisturbed.scaling(), mode="all")
    batch = [torch.stack(t) for t in zip(*(windows[i] for i in range(len(windows))), strict=True)]
    best = min(row["valid_loss"] for row in rows)
    with torch.no_grad():
        assert Forecast(model).loss(batch).item() == pytest.approx(best, rel=1e-5)


def test_the_same_run_again_is_the_same(undisturbed: Run, data: Path, tmp_path: Path) -> None:
    assert same(undisturbed, train(config(data, tmp_path / "again")))
    assert not same(undisturbed, train(config(data, tmp_path / "other", seed=1)))


def test_workers_do_not_matter(undisturbed: Run, data: Path, tmp_path: Path) -> None:
    assert same(undisturbed, train(config(data, tmp_path / "run", data__workers=2)))


def test_a_run_that_lost_patience_has_ended(data: Path, tmp_path: Path) -> None:
    still = config(data, tmp_path / "run", optimizer__lr=1e-30, trainer__epochs=9,
                   trainer__patience=1)  # fmt: skip
    rows = train(still).metrics()
    assert len(rows) < 9
    assert train(still).metrics() == rows


def test_lengths_that_cannot_be(undisturbed: Run, data: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"holds a run with trainer\.epochs=3, not 5"):
        train(config(data, undisturbed.path, trainer__epochs=5))  # cosine knows its length
    run = config(data, tmp_path / "run", optimizer__schedule="constant", trainer__epochs=2)
    train(run)
    run.trainer.epochs = 1
    with pytest.raises(ValueError, match=r"has trained for 2 epochs already, got .*epochs=1"):
        train(run)
    assert Run(run.folder).config()["trainer"]["epochs"] == 2


def test_cosine_ends_with_the_run(data: Path, tmp_path: Path) -> None:
    """Four batches in steps of three make two steps per epoch."""
    run = config(data, tmp_path / "run", trainer__accumulate=3, trainer__epochs=2)
    rows = train(run).metrics()
    assert [row["step"] for row in rows] == [2, 4]
    assert rows[0]["lr"] == pytest.approx(1e-3 * (1e-3 + 0.999 / 2))
    assert rows[1]["lr"] == pytest.approx(1e-6)


def test_damaged_files_are_named(data: Path, tmp_path: Path) -> None:
    run = config(data, tmp_path / "run", trainer__epochs=1)
    train(run)
    state = run.folder / "state.ckpt"
    state.write_bytes(state.read_bytes()[:500])
    with pytest.raises(ValueError, match=r"state\.ckpt is damaged"):
        train(run)
    (run.folder / "scaling.json").write_text("{")
    with pytest.raises(ValueError, match=r"scaling\.json is damaged"):
        Run(run.folder).scaling()
    (run.folder / "config.json").write_text("{")
    with pytest.raises(ValueError, match=r"config\.json is damaged"):
        Run(run.folder).config()


@needs_fork
def test_ctrl_c_says_how_to_go_on(data: Path, tmp_path: Path) -> None:
    options = config(data, tmp_path / "run", trainer__epochs=500)
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "cscnn.cli", *command(options, tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    deadline = time.monotonic() + 120
    while not (options.folder / "state.ckpt").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"cscnn train --resume {options.folder} goes on" in out


def test_too_few_windows_for_the_devices(data: Path, tmp_path: Path) -> None:
    windows = WindowData(config(data, tmp_path).data)

    class Trainer:
        global_rank, world_size = 0, 64

    windows.trainer = Trainer()
    with pytest.raises(ValueError, match="64 devices need at least as many windows, got 16"):
        windows.train_dataloader()


def test_a_run_can_be_made_longer(data: Path, tmp_path: Path) -> None:
    short = config(data, tmp_path / "a", trainer__epochs=1, optimizer__schedule="constant")
    train(short)
    short.trainer.epochs = 3
    long = config(data, tmp_path / "b", optimizer__schedule="constant")
    assert same(train(short), train(long))


def fork(function) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        code = 1
        try:
            function()
            code = 0
        finally:
            os._exit(code)
    return pid


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


def test_folders_of_other_runs_are_refused(undisturbed: Run, data: Path) -> None:
    before = (undisturbed.path / "model.safetensors").read_bytes()
    with pytest.raises(ValueError, match=r"holds a run with optimizer\.lr=0\.001, not 0\.1"):
        train(config(data, undisturbed.path, optimizer__lr=0.1))
    assert (undisturbed.path / "model.safetensors").read_bytes() == before


def test_a_finished_run_is_left_alone(undisturbed: Run, data: Path) -> None:
    before = undisturbed.file("model.safetensors").stat().st_mtime_ns
    train(config(data, undisturbed.path))
    assert undisturbed.file("model.safetensors").stat().st_mtime_ns == before


def test_loss_that_is_not_a_number(data: Path, tmp_path: Path) -> None:
    wild = config(data, tmp_path / "run", optimizer__lr=1e30, optimizer__clip=0.0,
                  optimizer__schedule="constant")  # fmt: skip
    with pytest.raises(NonFiniteLoss, match=r"the loss is (nan|inf) at epoch 0, batch \d"):
        train(wild)
    assert models.load(wild.folder / "diagnosis.safetensors").n_parameters() > 0


def test_strangers_checkpoints_are_not_executed(data: Path, tmp_path: Path) -> None:
    run = config(data, tmp_path / "run", trainer__epochs=1)
    train(run)

    class Evil:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "executed"),))

    torch.save({"state_dict": {}, "evil": Evil()}, run.folder / "state.ckpt")
    with pytest.raises(Exception, match=r"is damaged or not a state"):
        train(run)
    assert not (tmp_path / "executed").exists()


def test_unwritable_folder(data: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        train(config(data, tmp_path / "file" / "run"))


def test_patience_and_average(data: Path, tmp_path: Path) -> None:
    still = config(data, tmp_path / "a", optimizer__lr=1e-30, trainer__epochs=9,
                   trainer__patience=2, data__valid_windows=3)  # fmt: skip
    assert len(train(still).metrics()) <= 4
    plain = config(data, tmp_path / "b", optimizer__schedule="constant", trainer__epochs=1)
    averaged = config(data, tmp_path / "c", optimizer__schedule="constant", trainer__epochs=1,
                      optimizer__ema=0.5)  # fmt: skip
    a, b = (load_file(train(c).file("model.safetensors")) for c in (plain, averaged))
    assert any(not torch.equal(a[name], b[name]) for name in a)


def test_average_is_the_average(data: Path, tmp_path: Path) -> None:
    """Against a loop by hand, which also checks AdamW, clipping, cosine and the order of data."""
    options = config(data, tmp_path / "run", optimizer__ema=0.8, trainer__epochs=1)
    trained = load_file(train(options).file("model.safetensors"))
    windows = WindowData(options.data, options.seed)
    import lightning

    lightning.seed_everything(options.seed, workers=True, verbose=False)
    model = build_model(options, windows.task)
    mean = {n: p.detach().clone() for n, p in model.named_parameters()}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
    items = windows.train_windows()
    batches = GlobalBatches(items, 4, options.seed)
    batches.set_epoch(0)
    for step, indices in enumerate(batches):
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 * (1e-3 + 0.999 * (1 + math.cos(math.pi * step / 4)) / 2)
        x, y, background = (torch.stack(t) for t in zip(*(items[i] for i in indices), strict=True))
        error = model(x, background) - y
        loss = error[..., list(windows.task.blades)].square().mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        for name, p in model.named_parameters():
            mean[name].lerp_(p.detach(), 0.2)
    for name, expected in mean.items():
        assert torch.allclose(trained[name], expected, rtol=1e-5, atol=1e-7), name


def test_accumulated_batches_are_one_large_batch(data: Path, tmp_path: Path) -> None:
    large = config(data, tmp_path / "a", data__batch=8, trainer__epochs=1)
    small = config(data, tmp_path / "b", data__batch=4, trainer__accumulate=2, trainer__epochs=1)
    a, b = (load_file(train(c).file("model.safetensors")) for c in (large, small))
    assert all(torch.allclose(a[n], b[n], rtol=1e-4, atol=1e-6) for n in a)


def test_shares_of_devices_make_up_the_batches(data: Path, tmp_path: Path) -> None:
    windows = WindowData(config(data, tmp_path).data).train_windows()
    for seed in (3, None):
        whole = list(GlobalBatches(windows, 6, seed))
        shares = [list(GlobalBatches(windows, 6, seed, rank, 3)) for rank in range(3)]
        for number, batch in enumerate(whole):
            parts = [share[number] for share in shares if number < len(share)]
            assert sorted(i for part in parts for i in part) == sorted(batch)
    assert len(list(GlobalBatches(windows, 6, None))[-1]) == 4  # 16 windows: nothing is left out
    first, second = GlobalBatches(windows, 6, 3), GlobalBatches(windows, 6, 3)
    second.set_epoch(1)
    assert list(first) != list(second)


def command(options, folder: Path, *more: str) -> list[str]:
    path = folder / "config.yaml"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(options.to_dict()))  # JSON is YAML
    return ["train", "--config", str(path), *more]


def test_two_processes_train_like_one(undisturbed: Run, data: Path, tmp_path: Path) -> None:
    options = config(data, tmp_path / "two", trainer__devices=2, trainer__strategy="ddp")
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


@pytest.mark.parametrize("name", presets())
def test_presets_are_valid(name: str, tmp_path: Path) -> None:
    options, _ = parse(["--preset", name, "--out", "x", "--data.train", "y", "--seed=3"])
    options.check()
    assert options.seed == 3
    changed, _ = parse([f"--preset={name}", "--data.frames_in", "2", "--model.name=resnet"])
    assert (changed.data.frames_in, changed.model.name) == (2, "resnet")
    assert changed.trainer.epochs == options.trainer.epochs


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--preset", "smoke"], "unknown preset 'smoke'"),
        (["--data.trian", "x"], "unknown option data.trian: did you mean data.train?"),
        (["--model.depth", "3"], "unknown option model.depth"),
        (["--data.batch", "x"], "data.batch"),
        (["--out", "X"], "needs training data: --data.train FILE"),
        (["--data.train", "x"], "needs a folder: --out RUN"),
        (["--out", "X", "--data.train", "nothing.h5", "--model.width", "2"],
         "there is no file nothing.h5"),
        (["--out", "X", "--data.train", "D"], "either model.width or model.params"),
        (["--out", "X", "--data.train", "D", "--model.width", "2", "--model.name", "vgg"], "vgg"),
        (["--out", "X", "--data.train", "D", "--model.width", "2", "--data.frames_in", "99"],
         "a window needs 198 frames, the trajectories have 16"),
        (["--out", "X", "--data.train", "D", "--model.width", "2", "--trainer.devices", "3"],
         "data.batch=8 is not divisible by 3 devices"),
        (["--out", "X", "--data.train", "D", "--model.width", "2", "--optimizer.ema", "1.5"],
         "ema must be in [0, 1), got 1.5"),
        (["--out", "X", "--data.train", "D", "--model.width", "2", "--trainer.steps", "-1"],
         "trainer.steps"),
        (["--out", "X", "--data.train", "D", "--model.width", "2", "--trainer.strategy", "fsdp"],
         "fsdp is not supported"),
        (["--resume", "X", "--seed", "3"], "it goes without ['--seed']"),
    ],
)  # fmt: skip
def test_bad_commands(
    arguments: list[str],
    message: str,
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = {"X": str(tmp_path / "run"), "D": str(data / "train.h5")}
    assert main(["train", *(names.get(a, a) for a in arguments)]) == 1
    assert message in capsys.readouterr().err


def test_unknown_keys_in_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("data: {trian: x}\n")
    assert main(["train", "--config", str(path)]) == 1
    assert "unknown option data.trian: did you mean data.train?" in capsys.readouterr().err
    path.write_text("data: [\n")
    assert main(["train", "--config", str(path)]) == 1
    assert main(["train", "--config", str(tmp_path / "absent.yaml")]) == 1
    assert "absent.yaml" in capsys.readouterr().err


def test_dry_run(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = config(data, tmp_path / "run")
    assert main(command(options, tmp_path, "--dry-run")) == 0
    text = capsys.readouterr().out
    for expected in ("batches per epoch   4", "steps in all        12", "batch per device    4",
                     "memory per device   about", '"frames_in": 6'):  # fmt: skip
        assert expected in text
    assert not options.folder.exists()
