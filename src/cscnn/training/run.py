"""The folder of a training run: what is in it, and how to read it."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from cscnn import models
from cscnn.data import FieldSource, Scaling, open_fields
from cscnn.models import FieldModel


@dataclass(frozen=True)
class Run:
    """A folder written by ``cscnn train``.

    ==================== ===========================================================
    config.json          the resolved configuration
    model.safetensors    the best weights, from which the model can be built again
    scaling.json         units in which the model computes, from the training split
    metrics.csv          a row for each epoch
    state.ckpt           what is needed to resume
    evaluation.json      written by ``cscnn evaluate``
    samples.npz          fields for the report, written by ``cscnn evaluate``
    ==================== ===========================================================
    """

    path: Path

    def file(self, name: str) -> Path:
        """One of the files, which must exist."""
        path = self.path / name
        if not path.is_file():
            hint = "" if self.path.is_dir() else ": there is no such folder"
            raise FileNotFoundError(f"{self.path} is not a complete run, it has no {name}{hint}")
        return path

    def config(self) -> dict[str, Any]:
        """The resolved configuration."""
        path = self.file("config.json")
        try:
            config = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{path} is damaged: {error}") from error
        if not isinstance(config, dict) or "data" not in config:
            raise ValueError(f"{self.path / 'config.json'} is no configuration of a run")
        return config

    def model(self, device: torch.device | str = "cpu") -> FieldModel:
        """The trained model, in eval mode."""
        path = self.file("model.safetensors")
        model = models.load(path)
        if not isinstance(model, FieldModel):
            raise ValueError(f"{path} holds a {model.config['name']}, which predicts no grids")
        return model.to(device).eval()

    def scaling(self) -> Scaling:
        """The units of the model."""
        return Scaling.load(self.file("scaling.json"))

    def source(self, split: str) -> FieldSource:
        """The data of a split, as given in the configuration."""
        path = self.config()["data"].get(split)
        if not path:
            raise ValueError(
                f"{self.path}: the configuration names no data for split {split!r}; choose "
                "another --split, or --data FILE"
            )
        return open_fields(path)

    def metrics(self) -> list[dict[str, float]]:
        """A dict for each epoch: epoch, step, train_loss, valid_loss, lr, seconds."""
        with self.file("metrics.csv").open(newline="", encoding="utf-8") as file:
            return [{k: float(v) for k, v in row.items() if v} for row in csv.DictReader(file)]
