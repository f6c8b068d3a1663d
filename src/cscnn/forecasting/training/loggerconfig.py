"""Which logs a run writes beside its own: what ``trainer.logger`` says, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: Short names of Lightning's loggers.
SHORT = {
    "csv": "lightning.pytorch.loggers.CSVLogger",
    "tensorboard": "lightning.pytorch.loggers.TensorBoardLogger",
    "wandb": "lightning.pytorch.loggers.WandbLogger",
    "mlflow": "lightning.pytorch.loggers.MLFlowLogger",
}


@dataclass(frozen=True)
class LoggerChoice:
    """A class of loggers by its path, and arguments for it."""

    class_path: str
    init_args: Mapping[str, Any] = field(default_factory=dict)


def read_loggers(value: Any) -> list[LoggerChoice]:
    """The loggers that an option names: one or a list, each by a name or by class_path.

    Example:
        >>> [choice.class_path for choice in read_loggers(["csv", "my.Logger"])]
        ['lightning.pytorch.loggers.CSVLogger', 'my.Logger']
    """
    if value is None or value is False:
        return []
    return [_read(entry) for entry in (value if isinstance(value, list | tuple) else [value])]


def _read(entry: Any) -> LoggerChoice:
    if isinstance(entry, str):
        entry = {"class_path": entry}
    if not isinstance(entry, Mapping) or not {"class_path"} <= {*entry} <= {
        "class_path",
        "init_args",
    }:
        raise ValueError(
            f"trainer.logger takes {', '.join(SHORT)}, or class_path and init_args, got {entry!r}"
        )
    path, arguments = entry["class_path"], entry.get("init_args") or {}
    if not isinstance(path, str) or not isinstance(arguments, Mapping):
        raise ValueError(
            f"trainer.logger needs class_path as text and init_args by name, got {entry!r}"
        )
    path = SHORT.get(path, path)
    if "." not in path.strip("."):
        raise ValueError(
            f"trainer.logger must be one of {', '.join(SHORT)}, or the path of a class such as "
            f"mypackage.MyLogger, got {path!r}"
        )
    return LoggerChoice(path, dict(arguments))
