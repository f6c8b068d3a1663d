"""The protocol of training, and what is in the folder of a run."""

import functools
import math
from pathlib import Path

import lightning
import pytest
import torch
from safetensors.torch import load_file

from cscnn._util.progress import Bar
from cscnn.forecasting import Run, Task, Windows, collate
from cscnn.forecasting.training.callbacks import RunFolder
from cscnn.forecasting.training.loader import GlobalBatches, WindowData
from cscnn.forecasting.training.train import build_forecaster, make_trainer, train
from tests.forecasting.training.runs import QUIET, config, identity, same

pytestmark = QUIET


def test_compiled_models_train_the_same(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a backend that compiles nothing: to run a compiler takes a minute."""
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend=backend))
    short = {"trainer__epochs": 1, "trainer__steps": 2, "data__valid": "", "model__name": "resnet"}
    plain = train(config(data, tmp_path / "plain", **short))
    assert not graphs
    compiled = train(config(data, tmp_path / "compiled", **short, trainer__compile=True))
    assert graphs
    assert same(plain, compiled)
    assert compiled.forecaster().n_parameters() == plain.forecaster().n_parameters()


def test_a_run_folder_is_complete(undisturbed: Run, data: Path) -> None:
    names = {p.name for p in undisturbed.path.iterdir()}
    assert names == {"config.json", "metrics.csv", "model.safetensors", "state.ckpt"}
    rows = undisturbed.metrics()
    assert [row["epoch"] for row in rows] == [1, 2, 3]
    assert [row["step"] for row in rows] == [4, 8, 12]
    assert rows[-1]["train_loss"] < rows[0]["train_loss"]
    assert rows[-1]["lr"] < 1e-4
    assert undisturbed.config().data.train == str(data / "train.h5")
    forecaster, source = undisturbed.forecaster(), undisturbed.source("valid")
    task = Task.from_header(source.header, frames_in=6, margin=2)  # as many points as it sees
    assert forecaster.task == task
    windows = Windows(source, task, mode="all")
    best = min(row["valid_loss"] for row in rows)
    with torch.no_grad():
        loss = forecaster.loss(collate([windows[i] for i in range(len(windows))]))
    assert loss.item() == pytest.approx(best, rel=1e-5)


def test_the_same_run_again_is_the_same(undisturbed: Run, data: Path, tmp_path: Path) -> None:
    assert same(undisturbed, train(config(data, tmp_path / "again")))
    assert not same(undisturbed, train(config(data, tmp_path / "other", seed=1)))


def test_workers_do_not_matter(undisturbed: Run, data: Path, tmp_path: Path) -> None:
    assert same(undisturbed, train(config(data, tmp_path / "run", data__workers=2)))


def test_cosine_ends_with_the_run(data: Path, tmp_path: Path) -> None:
    """Four batches in steps of three make two steps per epoch."""
    run = config(data, tmp_path / "run", trainer__accumulate=3, trainer__epochs=2)
    rows = train(run).metrics()
    assert [row["step"] for row in rows] == [2, 4]
    assert rows[0]["lr"] == pytest.approx(1e-3 * (1e-3 + 0.999 / 2))
    assert rows[1]["lr"] == pytest.approx(1e-6)


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
    options = config(data, tmp_path / "run", optimizer__ema=0.8, trainer__epochs=1, data__margin=0)
    trained = load_file(train(options).file("model.safetensors"))
    windows = WindowData(options.data, options.seed)
    units = windows.fit_units(Bar("trajectories", quiet=True))

    lightning.seed_everything(options.seed, workers=True, verbose=False)
    forecaster = build_forecaster(options, windows, units)
    network, task = forecaster.network, windows.task
    mean = {n: p.detach().clone() for n, p in network.named_parameters()}
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=0.0)
    items = windows.train_windows()
    batches = GlobalBatches(items, 4, options.seed)
    batches.set_epoch(0)
    for step, indices in enumerate(batches):
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 * (1e-3 + 0.999 * (1 + math.cos(math.pi * step / 4)) / 2)
        batch = collate([items[i] for i in indices])
        x, y = (task.pack(units.scaled(fields)) for fields in (batch.known, batch.target))
        shift = torch.zeros(len(x), 1, *x.shape[2:])
        shift[..., 1] = 1  # the displacement, along the time axis
        error = network(torch.cat([x, shift], 1)) - y
        # two scalars and a vector: the second multivector holds a scalar only
        parts = [error[:, 0, ..., 0], error[:, 1, ..., 0], error[:, 0, ..., 1], error[:, 0, ..., 2]]
        loss = torch.stack(parts).square().mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        for name, p in network.named_parameters():
            mean[name].lerp_(p.detach(), 0.2)
    for name, expected in mean.items():
        assert torch.allclose(trained[name], expected, rtol=1e-5, atol=1e-7), name


def test_accumulated_batches_are_one_large_batch(data: Path, tmp_path: Path) -> None:
    large = config(data, tmp_path / "a", data__batch=8, trainer__epochs=1)
    small = config(data, tmp_path / "b", data__batch=4, trainer__accumulate=2, trainer__epochs=1)
    a, b = (load_file(train(c).file("model.safetensors")) for c in (large, small))
    assert all(torch.allclose(a[n], b[n], rtol=1e-4, atol=1e-6) for n in a)


def test_precision_and_recomputing(undisturbed: Run, data: Path, tmp_path: Path) -> None:
    first = undisturbed.metrics()[0]["train_loss"]
    losses = {}
    for precision in ("64", "bf16-mixed"):
        run = config(data, tmp_path / precision, trainer__precision=precision)
        losses[precision] = train(run).metrics()[0]["train_loss"]
    assert losses["64"] == pytest.approx(first, rel=1e-4)
    assert losses["64"] != first
    assert losses["bf16-mixed"] == pytest.approx(first, rel=0.05)
    assert abs(losses["bf16-mixed"] / first - 1) > 1e-6
    assert load_file(tmp_path / "64" / "model.safetensors")["output.2.bias"].dtype == torch.float64
    frugal = config(data, tmp_path / "frugal", model__recompute=True)
    assert train(frugal).metrics()[0]["train_loss"] == pytest.approx(first, rel=1e-5)


def test_without_a_terminal_epochs_are_lines(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    train(config(data, tmp_path / "run", trainer__progress=True))
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("epoch")]
    assert [line.split(":")[0] for line in lines] == [
        "epoch 1/3",
        "epoch 3/3",
    ]  # at most one in 10 s
    assert "train_loss" in lines[-1]
    assert "valid_loss" in lines[-1]


def test_the_bar_says_how_long_the_run_will_take(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as a terminal
    options = config(data, tmp_path, trainer__progress=True)
    trainer = make_trainer(options, identity(options))
    bar = trainer.progress_bar_callback
    bar._trainer = trainer
    assert bar._get_train_description(0) == "epoch 1/3"
    folder = next(c for c in trainer.callbacks if isinstance(c, RunFolder))
    folder.rows = [{"seconds": 100.0}]
    assert bar._get_train_description(1) == "epoch 2/3, 3 min 20 s left"
