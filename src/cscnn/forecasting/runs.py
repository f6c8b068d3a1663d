"""The folder of a training run: what is in it, and how to read it."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import torch

from cscnn._util.jsonform import from_json, read_json
from cscnn._util.suggest import did_you_mean
from cscnn.data import FieldSource, open_fields
from cscnn.forecasting.forecaster import Forecaster
from cscnn.forecasting.hub.pretrained import CARD
from cscnn.forecasting.training.config import TrainConfig
from cscnn.forecasting.units import Units

SPLITS = ("train", "valid", "test")
EVALUATED = ("evaluation.json", "samples.npz")  #: files of ``cscnn evaluate``

#: Files of ``cscnn train``.
TRAINED = (
    "config.json", "units.json", "metrics.csv", "model.safetensors", "diagnosis.safetensors",
    "state.ckpt",
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """A folder written by ``cscnn train``.

    - ``config.json``: the resolved configuration
    - ``units.json``: units that the caller gave; without it they are fitted
    - ``model.safetensors``: the forecaster with the best weights, all that a forecast needs
    - ``metrics.csv``: a row for each epoch, which count from 1
    - ``state.ckpt``: what is needed to resume
    - ``diagnosis.safetensors``: the weights at which the loss was not a number, if it was not
    - ``evaluation.json``: written by ``cscnn evaluate``
    - ``samples.npz``: fields for the report, written by ``cscnn evaluate``
    """

    path: Path

    def file(self, name: str) -> Path:
        """One of the files, which must exist."""
        path = self.path / name
        if not path.is_file():
            hint = "" if self.path.is_dir() else ": there is no such folder"
            hint = ": it is a file, not the folder of a run" if self.path.is_file() else hint
            raise FileNotFoundError(f"{self.path} is not a complete run, it has no {name}{hint}")
        return path

    def config(self) -> TrainConfig:
        """The resolved configuration."""
        path = self.file("config.json")
        data = read_json(path)
        try:
            return TrainConfig.from_dict(data)
        except ValueError as error:
            raise ValueError(f"{path} is no configuration of a run: {error}") from error

    def given_units(self) -> Units | None:
        """Units that the caller of the training gave, if so and if it has begun."""
        path = self.path / "units.json"
        if not path.is_file() or not (self.path / "config.json").is_file():
            return None
        return from_json(Units, read_json(path), str(path))

    def forecaster(self, device: torch.device | str = "cpu") -> Forecaster:
        """The trained forecaster, in eval mode."""
        return Forecaster.load(self.file("model.safetensors"), device)

    def source(self, split: str) -> FieldSource:
        """The data of a split, as given in the configuration: one file or several."""
        path = getattr(self.config().data, split, None) if split in SPLITS else None
        if not path:
            advice = "; choose another --split, or --data FILE"
            hint = did_you_mean(split, SPLITS, advice) if split not in SPLITS else advice
            raise ValueError(
                f"{self.path}: the configuration names no data for split {split!r}{hint}"
            )
        return open_fields(path)

    def metrics(self) -> list[dict[str, float]]:
        """A dict for each epoch: epoch, step, unroll, train_loss, valid_loss, lr, seconds.

        Epochs count from 1.
        """
        with self.file("metrics.csv").open(newline="", encoding="utf-8") as file:
            try:
                return [{k: float(v) for k, v in row.items() if v} for row in csv.DictReader(file)]
            except (ValueError, TypeError, csv.Error) as error:
                raise ValueError(f"{self.path / 'metrics.csv'} is damaged: {error}") from error


def load_forecaster(path: Path, device: torch.device | str = "cpu") -> Forecaster:
    """A forecaster in eval mode, from the folder of a run, a folder to share, or a file."""
    if not path.exists():
        raise FileNotFoundError(f"there is no folder or file {path}")
    return Forecaster.load(path, device) if path.is_file() else Run(path).forecaster(device)


def is_run(path: Path) -> bool:
    """Whether a path is meant as the folder of a run, complete or not; one to share has a card."""
    if not path.is_dir():
        return False
    return (path / "config.json").is_file() or not (path / CARD).is_file()


def remove_run(folder: Path) -> None:
    """Remove the files of a run, and nothing else.

    Args:
        folder: of the run; it need not be there.
    """
    for name in (*TRAINED, *EVALUATED):
        (folder / name).unlink(missing_ok=True)
