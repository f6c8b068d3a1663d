"""What a trial gave, typed, with one JSON form."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from cscnn._util.files import write_text
from cscnn._util.jsonform import from_json, read_json, to_json
from cscnn.forecasting.evaluation.results import OneStepErrors, RolloutErrors, SymmetryErrors

FORMAT = 2  #: of files; raised when entries change their meaning


@dataclass(frozen=True)
class TrialPlan:
    """All that the result of a trial depends on, without names and the places of files.

    Attributes:
        version: of the numbers, see `experiments.paper.plan.VERSION`.
        setting, contender: the attributes of `Setting` and `Contender` that matter, as JSON.
        trajectories, rate, seed, step_factor, detailed: see `Trial`.
    """

    version: int
    setting: dict[str, Any]
    contender: dict[str, Any]
    trajectories: int
    rate: float
    seed: int
    step_factor: float
    detailed: bool

    def network(self) -> NetworkPlan:
        """The part that the cost of a step depends on."""
        return NetworkPlan(self.version, self.setting, self.contender)


@dataclass(frozen=True)
class NetworkPlan:
    """All that the cost of a training step depends on; attributes as in `TrialPlan`."""

    version: int
    setting: dict[str, Any]
    contender: dict[str, Any]


@dataclass(frozen=True)
class LearningCurve:
    """Losses by step, in units of the variance of each field."""

    step: list[int]
    valid: list[float]
    train: list[float]


@dataclass(frozen=True)
class Measurements:
    """What was measured of a trained network.

    Attributes:
        parameters: how many it has.
        degrees_of_freedom: see `experiments.paper.freedom`.
        options: with which it was built.
        one_step: errors on the test split.
        seconds_per_step: of a forward and a backward pass.
        point_group: violation of the rotations and reflections of the grid, in float32.
        symmetry, rollout: of detailed trials.
    """

    parameters: int
    degrees_of_freedom: int
    options: dict[str, Any]
    one_step: OneStepErrors
    seconds_per_step: float
    point_group: float
    symmetry: SymmetryErrors | None = None
    rollout: RolloutErrors | None = None


@dataclass(frozen=True)
class Record:
    """The result of a trial.

    Attributes:
        name: of the trial.
        contender: key of the contender.
        plan: what it depends on.
        machine: on which it ran, where that was kept.
        valid: least error on the validation split; None if training diverged.
        curve: how training went.
        measured: None if training or the test diverged.
        diverged: in which case this says why.
    """

    name: str
    contender: str
    plan: TrialPlan
    machine: dict[str, str] | None = None
    valid: float | None = None
    curve: LearningCurve | None = None
    measured: Measurements | None = None
    diverged: str = ""

    @property
    def task(self) -> str:
        """Name of the task."""
        return str(self.plan.setting["task"])

    @property
    def error(self) -> float:
        """Test error of one step, in units of the variance of each field; infinite if diverged."""
        return math.inf if self.measured is None else self.measured.one_step.scaled_mse


@dataclass(frozen=True)
class Timing:
    """Seconds of training steps from interleaved timings.

    Attributes:
        machine: on which.
        seconds: contender -> minimum of interleaved timings of a forward and a backward pass.
        plans: contender -> what the numbers depend on.
    """

    machine: dict[str, str]
    seconds: dict[str, float]
    plans: dict[str, NetworkPlan]


@dataclass(frozen=True)
class Archive:
    """A file of results.

    Attributes:
        records: name of the trial -> its record.
        timings: task -> its timings.
    """

    records: dict[str, Record] = field(default_factory=dict)
    timings: dict[str, Timing] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """Write a JSON file with a line for each record, whole or not at all."""
        parts = [f'"format": {FORMAT}']
        for title, entries in (("timings", self.timings), ("records", self.records)):
            lines = [
                f"{json.dumps(name)}: {json.dumps(to_json(entry), allow_nan=False)}"
                for name, entry in entries.items()
            ]
            parts.append(f'"{title}": {{\n' + ",\n".join(lines) + "\n}")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, "{\n" + ",\n".join(parts) + "\n}\n")

    @classmethod
    def load(cls, path: Path) -> Archive:
        """Read what `save` wrote; old and foreign files are told in one line."""
        data = read_json(path)
        version = data.pop("format", None) if isinstance(data, dict) else None
        if version != FORMAT:
            raise ValueError(
                f"{path} holds no results of this version: its format must be {FORMAT}, got "
                f"{version!r}; without it the trials are run again"
            )
        return from_json(cls, data, str(path))

    @classmethod
    def find(cls, path: Path) -> Archive:
        """`load`, which reads a file again only after it was changed; empty if there is none."""
        try:
            status = path.stat()
        except FileNotFoundError:
            return cls()
        return _load_once(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=4096)
def _load_once(path: Path, changed: int, size: int) -> Archive:
    return Archive.load(path)
