"""What a training gave, typed, with one JSON form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments import archive
from experiments.nbody.presets import Contender, Setting, Trial

FORMAT = 1  #: of files; raised when entries change their meaning


@dataclass(frozen=True)
class Record:
    """The result of a training.

    Attributes:
        name: of the training.
        contender: its key.
        seed: see `Trial`.
        plan: all that the result depends on, see `Trial.plan`.
        machine: on which it ran, with versions.
        parameters: of the network.
        steps: that it took.
        seconds: of the training, with looks at the validation split.
        best: step with the lowest error of the validation split.
        valid: mean squared error of this split then.
        test: of the test split, with the weights of then; None if training diverged.
        straight: of the test split, of x + t v, with t fitted to the training split.
    """

    name: str
    contender: str
    seed: int
    plan: dict[str, Any]
    machine: dict[str, str]
    parameters: int = 0
    steps: int = 0
    seconds: float = 0.0
    best: int = 0
    valid: float | None = None
    test: float | None = None
    straight: float = math.nan

    @property
    def error(self) -> float:
        """Of the test split; infinite if training diverged."""
        return math.inf if self.test is None else self.test


class Results:
    """What there is of a study.

    Args:
        setting: how networks learn.
        contenders: who takes part.
        out: folder of the study.
        known: records of an earlier one.
    """

    def __init__(
        self,
        setting: Setting,
        contenders: dict[str, Contender],
        out: Path,
        known: Sequence[Record] = (),
    ):
        self.setting, self.contenders, self.out = setting, contenders, out
        self.store = archive.Store(out / "records", Record, FORMAT, known)

    def trials(self) -> list[Trial]:
        """All trainings, one seed of everybody after the other."""
        return [
            Trial(key, contender, self.setting, seed)
            for seed in range(self.setting.seeds)
            for key, contender in self.contenders.items()
        ]

    def find(self, trial: Trial) -> Record | None:
        """The record of a training, if it has been run."""
        return self.store.find(trial.name, trial.plan())

    def finished(self) -> list[Record]:
        """All records that there are."""
        return [record for trial in self.trials() if (record := self.find(trial)) is not None]

    def missing(self) -> list[Trial]:
        """Trainings that have no record."""
        return [trial for trial in self.trials() if self.find(trial) is None]

    def lost(self, trial: Trial) -> Path | None:
        """The file of a training that has left no record."""
        return None if self.find(trial) is not None else self.store.file(trial.name)


def load(folder: Path) -> list[Record]:
    """Those beside the page of an earlier study."""
    file = folder / "nbody.json"
    if not (records := archive.load(file, Record, FORMAT)):
        raise FileNotFoundError(f"there are no records {file}")
    return records
