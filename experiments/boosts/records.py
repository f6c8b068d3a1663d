"""What a training at rest gave, typed, with one JSON form."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments import archive

FORMAT = 1  #: of files; raised when entries change their meaning


@dataclass(frozen=True)
class Record:
    """The result of a trial.

    Attributes:
        name: of the trial.
        task, model: keys.
        plan: all that the result depends on, see `Trial.plan`.
        spacing: distance of points.
        displacement: by how much the forecast is later, in units of length.
        variant, padding, rate, seed, prolongation: see `Trial`.
        machine: on which it ran, with versions.
        seconds: of training and measuring.
        parameters: of the network.
        options: with which it was built.
        valid: least error on the validation split, at rest; None if training diverged.
        rapidities: of the observers.
        errors: relative error of new events, for each observer.
        persistence: that of the persistence forecast.
        diverged: why there are no errors, if so.
    """

    name: str
    task: str
    model: str
    plan: dict[str, Any]
    spacing: float
    displacement: float
    variant: str
    padding: str
    rate: float
    seed: int
    machine: dict[str, str]
    seconds: float = 0.0
    parameters: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    valid: float | None = None
    rapidities: tuple[float, ...] = ()
    errors: tuple[float, ...] = ()
    persistence: tuple[float, ...] = ()
    diverged: str = ""
    prolongation: int = 1

    def error(self, rapidity: float) -> float:
        """For an observer; infinite if training diverged."""
        if not self.errors:
            return math.inf
        if rapidity not in self.rapidities:
            raise ValueError(f"{self.name} has rapidities {self.rapidities}, got {rapidity}")
        return self.errors[self.rapidities.index(rapidity)]


def save(path: Path, records: Iterable[Record]) -> None:
    """Write a file of records, whole or not at all."""
    archive.save(path, records, FORMAT)


def load(path: Path) -> list[Record]:
    """Read what `save` wrote; none if there is no file."""
    return archive.load(path, Record, FORMAT)
