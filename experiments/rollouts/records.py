"""What a training gave, typed, with one JSON form."""

from __future__ import annotations

import math
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
        task, contender, lever: keys.
        plan: all that the result depends on, see `Trial.plan`.
        rate, steps, seed: see `Trial`.
        machine: on which it ran, with versions.
        seconds: of the training.
        parameters: of the network.
        valid: mean relative error of rollouts of the validation split; None if training diverged.
        errors: relative error of rollouts of the test split, for each step.
        correlation_frames: when the correlation falls below 0.8; None if it does not.
        persistence: errors of the persistence forecast.
        others: errors of rollouts of further test splits, by their names.
        learning: validation error at each check of the training.
        diverged: why there are no errors, if so.
    """

    name: str
    task: str
    contender: str
    lever: str
    plan: dict[str, Any]
    rate: float
    steps: int
    seed: int
    machine: dict[str, str]
    seconds: float = 0.0
    parameters: int = 0
    valid: float | None = None
    errors: tuple[float, ...] = ()
    correlation_frames: float | None = None
    persistence: tuple[float, ...] = ()
    others: dict[str, tuple[float, ...]] = field(default_factory=dict)
    learning: tuple[float, ...] = ()
    diverged: str = ""

    @property
    def score(self) -> float:
        """By which rates and recipes are chosen; infinite if training diverged."""
        return math.inf if self.valid is None else self.valid

    def error(self, step: int) -> float:
        """Of a rollout step, counted from 1; infinite if training diverged."""
        return self.errors[step - 1] if self.errors else math.inf


def store(folder: Path, known: list[Record] | None = None) -> archive.Store[Record]:
    """The records of a study in a folder."""
    return archive.Store(folder, Record, FORMAT, known or ())
