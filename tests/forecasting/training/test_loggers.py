"""Logs of Lightning beside those of a run: by name or class, and the same one after a resume."""

import csv
import errno
import json
import os
import sys
from pathlib import Path

import pytest

from cscnn.forecasting import Run
from cscnn.forecasting.training import TrainConfig
from cscnn.forecasting.training.command import parse
from cscnn.forecasting.training.loggerconfig import read_loggers
from cscnn.forecasting.training.loggers import CSVLog, make_loggers, versions_of
from cscnn.forecasting.training.module import TrainingModule
from cscnn.forecasting.training.train import train
from tests.forecasting.training.runs import QUIET, config

pytestmark = QUIET
RECORDER = "tests.forecasting.training.recorder.Recorder"


def killed_in_epoch(options: TrainConfig, epoch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Train until an epoch has begun, and no further."""
    step = TrainingModule.training_step

    def die(module: TrainingModule, batch: object, number: int) -> object:
        if module.current_epoch == epoch and number > 0:
            raise SystemError("killed")
        return step(module, batch, number)

    with monkeypatch.context() as patch:
        patch.setattr(TrainingModule, "training_step", die)
        with pytest.raises(SystemError, match="killed"):
            train(options)


def rows_of(path: Path) -> list[dict[str, float]]:
    with path.open(newline="") as file:
        return [{k: float(v) for k, v in row.items() if v} for row in csv.DictReader(file)]


def check_losses(rows: list[dict[str, float]], run: Run) -> None:
    """Each loss of the run is in the log, once. Lightning's logs count epochs from 0."""
    for name in ("train_loss", "valid_loss"):
        logged = {row["epoch"]: row[name] for row in rows if name in row}
        assert sum(name in row for row in rows) == len(run.metrics())
        assert logged == pytest.approx({row["epoch"] - 1: row[name] for row in run.metrics()})


@pytest.mark.parametrize("name", ["csv", "lightning.pytorch.loggers.CSVLogger"])
def test_csv_goes_on_in_its_file(
    name: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = config(data, tmp_path / "run", trainer__logger=name)
    killed_in_epoch(options, 2, monkeypatch)
    assert len(rows_of(options.folder / "csv" / "metrics.csv")) >= 2
    run = train(options)
    check_losses(rows_of(options.folder / "csv" / "metrics.csv"), run)
    train(options)  # it has ended: nothing is lost
    check_losses(rows_of(options.folder / "csv" / "metrics.csv"), run)
    assert (options.folder / "csv" / "hparams.yaml").is_file()


def test_csv_is_whole_if_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = CSVLog(str(tmp_path), name="csv", version="", flush_logs_every_n_steps=1)
    log.log_metrics({"loss": 1.0}, 1)
    log.log_metrics({"loss": 0.5, "other": 2.0}, 2)  # a new column
    path = tmp_path / "csv" / "metrics.csv"
    before = path.read_text(encoding="utf-8")
    assert [row["loss"] for row in rows_of(path)] == [1.0, 0.5]

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="the one from before is intact"):
            log.log_metrics({"loss": 0.25}, 3)
    assert path.read_text(encoding="utf-8") == before
    log.log_metrics({"loss": 0.125}, 4)
    assert [row["step"] for row in rows_of(path)] == [1, 2, 3, 4]


@pytest.mark.external
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_goes_on(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    options = config(data, tmp_path / "run", trainer__logger="tensorboard")
    killed_in_epoch(options, 2, monkeypatch)
    run = train(options)
    read = EventAccumulator(str(options.folder / "tensorboard")).Reload()
    for name in ("train_loss", "valid_loss"):
        logged = [event.value for event in read.Scalars(name)]
        assert logged == pytest.approx([row[name] for row in run.metrics()])
    assert not list((options.folder / "tensorboard").glob("version_*"))


def test_a_class_of_somebody_else_and_several_at_once(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = [{"class_path": RECORDER, "init_args": {"note": "mine"}}, "csv"]
    options = config(data, tmp_path / "run", trainer__logger=chosen)
    killed_in_epoch(options, 1, monkeypatch)
    run = train(Run(options.folder).config())  # as --resume does
    (log,) = options.folder.glob("recorded_*")  # the same one
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    assert {entry[-1] for entry in entries} == {"mine"}
    kinds = [entry[0] for entry in entries]
    assert kinds.count("opened") == 2
    assert kinds.count("hyperparams") == 1
    losses = [entry for entry in entries if entry[0] == "metrics" and "train_loss" in entry[1]]
    assert len(losses) == len(run.metrics())
    check_losses(rows_of(options.folder / "csv" / "metrics.csv"), run)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_wandb_is_offline_and_keeps_its_id(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb", reason="wandb is not installed")
    for name in ("WANDB_CONFIG_DIR", "WANDB_CACHE_DIR", "WANDB_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("WANDB_SILENT", "true")
    options = config(data, tmp_path / "run", trainer__logger="wandb")
    killed_in_epoch(options, 1, monkeypatch)
    train(options)
    runs = [p.name for p in (options.folder / "wandb").glob("offline-run-*")]
    assert runs
    assert len({name.rpartition("-")[2] for name in runs}) == 1


def test_a_logger_may_come_and_go(data: Path, tmp_path: Path) -> None:
    """It changes nothing of what is learned."""
    options = config(data, tmp_path / "run", trainer__epochs=2, optimizer__schedule="constant")
    train(options)
    options.trainer.epochs, options.trainer.logger = 3, "csv"
    longer = train(options)
    rows = rows_of(options.folder / "csv" / "metrics.csv")
    assert {row["epoch"] for row in rows} == {2.0}
    plain = train(config(data, tmp_path / "plain", optimizer__schedule="constant"))
    assert longer.metrics()[-1]["valid_loss"] == plain.metrics()[-1]["valid_loss"]


def test_the_command_line_takes_names_and_classes() -> None:
    def logger_of(*words: str) -> object:
        return parse(["--out", "o", *words])[0].trainer.logger

    assert logger_of() is None
    assert logger_of("--trainer.logger", "csv") == "csv"
    assert logger_of("--trainer.logger", "[csv, wandb]") == ["csv", "wandb"]
    text = f"{{class_path: {RECORDER}, init_args: {{note: mine}}}}"
    assert logger_of("--trainer.logger", text) == {
        "class_path": RECORDER, "init_args": {"note": "mine"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("tensorbord", "must be one of csv, tensorboard, wandb, mlflow, .* got 'tensorbord'"),
        (3, "takes csv, .* got 3"),
        ({"init_args": {}}, "or class_path and init_args, got {'init_args': {}}"),
        ({"class_path": "a.B", "args": {}}, "or class_path and init_args"),
        ({"class_path": "a.B", "init_args": [1]}, "init_args by name"),
    ],
)
def test_what_is_no_logger(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_loggers(value)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ("subprocess.Popen", ValueError, "must be a class derived from lightning"),
        ("lightning.pytorch.loggers.Nothing", ValueError, "has no Nothing"),
        ("nowhere.Logger", ImportError, "needs the package nowhere: pip install nowhere"),
        ({"class_path": RECORDER, "init_args": {"colour": 1}}, ValueError, "does not take"),
    ],
)
def test_classes_that_cannot_be(
    value: object, error: type, message: str, data: Path, tmp_path: Path
) -> None:
    options = config(data, tmp_path / "run", trainer__logger=value)
    with pytest.raises(error, match=message):
        train(options)
    assert not (options.folder / "config.json").exists()


def test_a_missing_package_is_named(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    options = config(data, tmp_path / "run", trainer__logger="tensorboard")
    with pytest.raises(ImportError, match="needs the package tensorboard: pip install tensorboard"):
        train(options)


def test_runs_from_before_are_refused() -> None:
    told = TrainConfig(out="o").to_dict()
    told["trainer"]["tensorboard"] = False
    with pytest.raises(ValueError, match="tensorboard"):
        TrainConfig.from_dict(told)


def test_logs_are_found_again_by_their_class(tmp_path: Path) -> None:
    """Also if other loggers come first when a run goes on, or the same one twice."""
    record = {"class_path": RECORDER}
    before = make_loggers(read_loggers(["csv", record, record]), tmp_path)
    versions = versions_of(before)
    after = make_loggers(read_loggers([record, record, "csv", record]), tmp_path, 1, versions)
    assert [logger.version for logger in after] == [1, 2, "", 3]
