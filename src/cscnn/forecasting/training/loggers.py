"""Loggers of Lightning for a run, which go on in the same log when the run does."""

from __future__ import annotations

import csv
import inspect
import io
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lightning.fabric.loggers.logger import rank_zero_experiment
from lightning.pytorch.loggers import CSVLogger, Logger, TensorBoardLogger, WandbLogger
from lightning.pytorch.loggers.csv_logs import ExperimentWriter

from cscnn._util.files import write_text
from cscnn.forecasting.training.loggerconfig import LoggerChoice

#: Packages that Lightning's loggers need, by the name of the class.
PACKAGES = {"TensorBoardLogger": "tensorboard", "WandbLogger": "wandb", "MLFlowLogger": "mlflow"}
#: Arguments that name the log to go on in; the first that a class has is used.
VERSIONS = ("run_id", "version")
#: The class of a logger, and what it calls its log.
Version = tuple[str, int | str]


class CSVRows(ExperimentWriter):
    """Lightning's writer of a CSV file, which appends; this one replaces the file by a whole one.

    Args:
        log_dir: folder of the log.
        rows: that are there already.
    """

    def __init__(self, log_dir: str, rows: list[dict[str, Any]]):
        super().__init__(log_dir)
        self.metrics = rows

    def save(self) -> None:
        """Write all rows."""
        if not self.metrics:
            return
        names = sorted({name for row in self.metrics for name in row})
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, names)
        writer.writeheader()
        writer.writerows(self.metrics)
        write_text(Path(self.metrics_file_path), text.getvalue())

    def _check_log_dir_exists(self) -> None:
        """The file from before stays until it is replaced."""


class CSVLog(CSVLogger):
    """Lightning's log in a CSV file, which it deletes when a run goes on; this one does not.

    The file is written whole or not at all.

    Args:
        save_dir, name, version, prefix, flush_logs_every_n_steps: as for Lightning's.
        steps: of the state from which the run goes on; later rows are repeated, and replaced.
    """

    def __init__(self, save_dir: str, *args: Any, steps: int = 0, **kwargs: Any):
        super().__init__(save_dir, *args, **kwargs)
        self._steps = steps

    @property
    @rank_zero_experiment
    def experiment(self) -> Any:
        if self._experiment is None:
            Path(self.root_dir).mkdir(parents=True, exist_ok=True)
            self._experiment = CSVRows(self.log_dir, self._earlier_rows())
            self._experiment.save()
        return self._experiment

    def _earlier_rows(self) -> list[dict[str, Any]]:
        path = Path(self.log_dir) / ExperimentWriter.NAME_METRICS_FILE
        if not self._steps or not path.is_file():
            return []
        with path.open(newline="", encoding="utf-8") as file:
            rows = [{k: v for k, v in row.items() if v} for row in csv.DictReader(file)]
        return [row for row in rows if int(float(row.get("step", 0))) < self._steps]


def make_loggers(
    choices: Sequence[LoggerChoice],
    folder: Path,
    steps: int = 0,
    versions: Sequence[Version] = (),
) -> list[Logger]:
    """The loggers of a run. None of them needs a network, unless its arguments ask for one.

    Args:
        choices: classes and arguments.
        folder: of the run, where they write.
        steps: that the state has from which the run goes on; 0 at its start.
        versions: what `versions_of` gave when that state was written. A logger goes on in the first
            log of its class that no other has taken; without one it begins a new log.
    """
    left, loggers = list(versions), []
    for choice in choices:
        cls = _class(choice.class_path)
        own = next((version for version in left if version[0] == cls.__name__), None)
        if own is not None:
            left.remove(own)
        loggers.append(_make(cls, choice, folder, steps, None if own is None else own[1]))
    return loggers


def versions_of(loggers: Sequence[Logger]) -> list[Version]:
    """What the logs are called, so that they can be found again."""
    return [
        (type(logger).__name__, version)
        for logger in loggers
        if isinstance(version := logger.version, int | str)
    ]


def _make(
    cls: type[Logger], choice: LoggerChoice, folder: Path, steps: int, version: int | str | None
) -> Logger:
    known = inspect.signature(cls).parameters
    arguments = {**_defaults(cls, folder, steps), **choice.init_args}
    if "save_dir" in known:
        arguments.setdefault("save_dir", str(folder))
    name = next((name for name in VERSIONS if name in known), None)
    if name is not None and version is not None:
        arguments[name] = version
    try:
        return cls(**arguments)
    except TypeError as error:
        raise ValueError(
            f"trainer.logger {choice.class_path} does not take {arguments}: {error}"
        ) from error


def _class(path: str) -> type[Logger]:
    """The class of a path, which must be a logger: nothing else is called."""
    module, _, name = path.rpartition(".")
    package = PACKAGES.get(name, module.partition(".")[0])
    if find_spec(package) is None:
        raise ImportError(
            f"trainer.logger {path} needs the package {package}: pip install {package}",
            name=package,
        )
    try:
        cls = getattr(import_module(module), name)
    except AttributeError:
        raise ValueError(f"trainer.logger {path}: module {module} has no {name}") from None
    if not isinstance(cls, type) or not issubclass(cls, Logger):
        raise ValueError(
            f"trainer.logger {path} must be a class derived from lightning.pytorch.loggers.Logger, "
            f"got {cls!r}"
        )
    return CSVLog if cls is CSVLogger else cls


def _defaults(cls: type[Logger], folder: Path, steps: int) -> dict[str, Any]:
    """Arguments that keep a log in the folder of its run."""
    if issubclass(cls, CSVLog):
        # metrics come once an epoch: none may be lost if the run is killed
        return {"name": "csv", "version": "", "steps": steps, "flush_logs_every_n_steps": 1}
    if issubclass(cls, TensorBoardLogger):  # what was logged after the state is shown no more
        return {"name": "tensorboard", "version": "", "purge_step": steps}
    if issubclass(cls, WandbLogger):
        return {"project": "cscnn", "name": folder.name, "offline": True}
    if cls.__name__ == "MLFlowLogger":
        return {
            "experiment_name": "cscnn",
            "run_name": folder.name,
            "save_dir": str(folder / "mlruns"),
        }
    return {}
