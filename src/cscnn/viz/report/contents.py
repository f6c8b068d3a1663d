"""What the page knows about a run: its files, checked."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cscnn.models.tasks import Task
from cscnn.training.run import Run

FORMAT = 1  #: of evaluation.json
NEEDED = ("model", "task", "data", "one_step", "rollout", "symmetry", "cost", "machine")


@dataclass(frozen=True)
class Samples:
    """The rollout of one trajectory: fields (steps, *space, components) by name."""

    target: dict[str, np.ndarray]
    prediction: dict[str, np.ndarray]
    times: np.ndarray

    @property
    def space(self) -> int:
        """Axes of space."""
        return next(iter(self.target.values())).ndim - 2


@dataclass(frozen=True)
class Contents:
    """A run, and of what ``cscnn evaluate`` measures whatever is there.

    Attributes:
        label: a short name that no other run of the page has.
        run: the folder.
        config: what the training was told.
        metrics: a dict for each epoch; empty before the first.
        evaluation: what `cscnn evaluate` found, or None.
        samples: or None.
    """

    label: str
    run: Run
    config: dict[str, Any]
    metrics: list[dict[str, float]]
    evaluation: dict[str, Any] | None
    samples: Samples | None

    @property
    def task(self) -> Task | None:
        """What was forecast, if that is known."""
        return None if self.evaluation is None else Task.from_dict(self.evaluation["task"])

    @property
    def model_name(self) -> str:
        """Of the architecture."""
        if self.evaluation is not None:
            return str(self.evaluation["model"]["name"])
        return str(self.config.get("model", {}).get("name", "model"))

    def find(self, *keys: str) -> float | None:
        """A number of the evaluation, or None if it was not measured or is not a number."""
        found: Any = self.evaluation
        for key in keys:
            if not isinstance(found, Mapping):
                return None
            found = found.get(key)
        return finite(found)

    def entries(self, *keys: str) -> list[Any]:
        """A list of the evaluation, empty if there is none."""
        found: Any = self.evaluation
        for key in keys:
            if not isinstance(found, Mapping):
                return []
            found = found.get(key)
        return list(found) if isinstance(found, list) else []

    def curve(self, *keys: str) -> list[float | None]:
        """A list of numbers of the evaluation, empty if there is none."""
        return [finite(value) for value in self.entries(*keys)]


def finite(value: Any) -> float | None:
    """A number, or None for what is missing or infinite."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if math.isfinite(value) else None


def largest(values: Iterable[float | None]) -> float | None:
    """The largest of the numbers that there are."""
    return max((v for v in values if v is not None), default=None)


def load_runs(folders: Sequence[str | Path]) -> list[Contents]:
    """Read some runs; their labels differ."""
    paths = [Path(folder) for folder in folders]
    if not paths:
        raise ValueError("a report needs at least one run, got none")
    whole = [path.resolve() for path in paths]
    for i, path in enumerate(whole):
        if path in whole[:i]:
            raise ValueError(f"each run can be on the page once, got {paths[i]} twice")
    return [_load(path, label) for path, label in zip(paths, _labels(whole), strict=True)]


def _labels(paths: Sequence[Path]) -> list[str]:
    """The last part of each path, or as many as are needed to tell them apart."""
    for count in range(1, max(len(path.parts) for path in paths) + 1):
        labels = ["/".join(path.parts[-count:]) for path in paths]
        if len(set(labels)) == len(labels):
            break
    return labels


def _load(path: Path, label: str) -> Contents:
    run = Run(path)
    config = run.config()
    metrics = run.metrics() if (path / "metrics.csv").is_file() else []
    evaluation = _evaluation(path / "evaluation.json")
    samples = _samples(path / "samples.npz", evaluation)
    return Contents(label, run, config, metrics, evaluation, samples)


def _evaluation(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is no JSON: {error}") from error
    version = found.get("format") if isinstance(found, dict) else None
    if version != FORMAT:
        raise ValueError(f"{path} must have format {FORMAT}, got {version!r}: evaluate again")
    if missing := [name for name in NEEDED if not isinstance(found.get(name), dict)]:
        raise ValueError(f"{path} has no entry {', '.join(missing)}: evaluate again")
    try:
        Task.from_dict(found["task"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} describes no task: {error}") from error
    return dict(found)


def _samples(path: Path, evaluation: dict[str, Any] | None) -> Samples | None:
    if evaluation is None or not path.is_file():
        return None
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: np.asarray(stored[name]) for name in stored.files}
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is no file of arrays: {error}") from error
    task = Task.from_dict(evaluation["task"])
    fields: dict[str, dict[str, np.ndarray]] = {"target": {}, "prediction": {}}
    times = arrays.get("times", np.empty(0))
    for field in task.fields:
        size = task.algebra.grade_sizes[field.grade]
        for kind, found in fields.items():
            name = f"{kind}/{field.name}"
            if name not in arrays:
                raise ValueError(f"{path} has no array {name}, only {', '.join(sorted(arrays))}")
            found[field.name] = arrays[name]
        shapes = [found[field.name].shape for found in fields.values()]
        space = task.dim - (task.time_axis is not None)
        wanted = (len(times), *shapes[0][1:-1], size)
        if shapes != [wanted] * 2 or len(wanted) != space + 2 or not len(times):
            raise ValueError(
                f"{path}: target and prediction of {field.name} must be (steps, *space, "
                f"components) with {len(times)} steps, {space} axes of space and {size} "
                f"components, got {shapes[0]} and {shapes[1]}"
            )
    return Samples(fields["target"], fields["prediction"], times)
