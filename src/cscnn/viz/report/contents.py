"""What the page knows about a run: its files, checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cscnn.forecasting.evaluation.results import (
    Evaluation,
    MotionErrors,
    ObserverErrors,
    Samples,
    known,
)
from cscnn.forecasting.runs import Run
from cscnn.forecasting.task import Task
from cscnn.forecasting.training.config import TrainConfig
from cscnn.viz.numbers import listing

COLOURS = 8  #: of runs


@dataclass(frozen=True)
class Contents:
    """A run, and of what ``cscnn evaluate`` measures whatever is there.

    Attributes:
        label: a short name that no other run of the page has.
        style: a class of the style sheet, which gives it a colour.
        run: the folder.
        config: what the training was told.
        metrics: a dict for each epoch; empty before the first.
        evaluation: what ``cscnn evaluate`` measured, or None.
        samples: of its rollouts, or None.
    """

    label: str
    style: str
    run: Run
    config: TrainConfig
    metrics: list[dict[str, float]]
    evaluation: Evaluation | None
    samples: Samples | None

    @property
    def task(self) -> Task | None:
        """What was forecast, if that is known."""
        return None if self.evaluation is None else self.evaluation.task

    @property
    def network(self) -> str:
        """Name of the architecture."""
        return self.config.model.name if self.evaluation is None else self.evaluation.model.name

    @property
    def time_unit(self) -> str:
        """Of all times; empty if it is not known."""
        return "" if self.evaluation is None else self.evaluation.data.time_unit

    @property
    def parameters(self) -> int | None:
        """Of the network."""
        return None if self.evaluation is None else self.evaluation.model.parameters

    def number(self, measure: Callable[[Evaluation], float | None]) -> float | None:
        """A number of the evaluation, or None if it was not measured or is not finite.

        Args:
            measure: takes it, e.g. ``lambda e: e.cost.parameters``.
        """
        return None if self.evaluation is None else known(measure(self.evaluation))

    def curve(self, measure: Callable[[Evaluation], Sequence[float]]) -> list[float | None]:
        """A list of numbers of the evaluation, empty without one; None for what is not finite."""
        return [] if self.evaluation is None else [known(v) for v in measure(self.evaluation)]

    def motion(self, name: str) -> MotionErrors | None:
        """Violations under ``"rotation"`` or ``"boost"``, if they were measured."""
        if self.evaluation is None:
            return None
        symmetry = self.evaluation.symmetry
        return symmetry.boost if name == "boost" else symmetry.rotation

    @property
    def observers(self) -> ObserverErrors | None:
        """Errors for other observers, if they were measured."""
        return None if self.evaluation is None else self.evaluation.symmetry.observers


def first_known(values: Iterable[float | None]) -> float | None:
    """The first of the numbers that there are."""
    return next((value for value in values if value is not None), None)


def largest(values: Iterable[float | None]) -> float | None:
    """The largest of the numbers that there are."""
    return max((v for value in values if (v := known(value)) is not None), default=None)


def comparable(runs: Sequence[Contents]) -> bool:
    """Whether all runs that were evaluated forecast the same windows and rollouts.

    What they were told beside the frames, and what they saw beyond borders, may differ.
    """
    tests = []
    for run in runs:
        if run.evaluation is not None:
            task, data = run.evaluation.task, run.evaluation.data
            asked = task.replace(backgrounds=(), given=(), displacement=True, open_padding="zeros")
            tests.append((asked, data.path, data.split, data.windows, data.rollouts))
    return all(test == tests[0] for test in tests)


def observed(runs: Sequence[Contents]) -> str:
    """A sentence on how many windows other observers saw, with a space before it; may be empty."""
    counts = sorted({part.windows for run in runs if (part := run.observers) and part.windows})
    return f" Measured on {listing([str(n) for n in counts])} windows." if counts else ""


def load_runs(folders: Sequence[str | Path]) -> list[Contents]:
    """Read runs; their labels differ."""
    paths = [Path(folder) for folder in folders]
    if not paths:
        raise ValueError("a report needs at least one run, got none")
    resolved = [path.resolve() for path in paths]
    for i, path in enumerate(resolved):
        if path in resolved[:i]:
            raise ValueError(f"each run can be on the page once, got {paths[i]} twice")
    labels = _labels(resolved)
    return [_load(path, labels[i], f"run-{i % COLOURS}") for i, path in enumerate(paths)]


def _labels(paths: Sequence[Path]) -> list[str]:
    """The last part of each path, or as many as are needed to tell them apart."""
    for count in range(1, max(len(path.parts) for path in paths) + 1):
        labels = ["/".join(path.parts[-count:]) for path in paths]
        if len(set(labels)) == len(labels):
            break
    return labels


def _load(path: Path, label: str, style: str) -> Contents:
    run = Run(path)
    config = run.config()
    metrics = run.metrics() if (path / "metrics.csv").is_file() else []
    evaluation = samples = None
    if (path / "evaluation.json").is_file():
        evaluation = Evaluation.load(path / "evaluation.json")
        if (path / "samples.npz").is_file():
            samples = Samples.load(path / "samples.npz", evaluation.task)
    return Contents(label, style, run, config, metrics, evaluation, samples)
