"""From records to numbers that can be compared: means and spreads of seeds, seconds of steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from experiments.paper.records import Record


@dataclass(frozen=True)
class Outcome:
    """A finished trial as tables and figures show it.

    Attributes:
        record: its result.
        label: of the contender, for people.
        borrowed: whether its learning rate is that of another contender.
        seconds: of a step, measured beside the other contenders, if that was done.
    """

    record: Record
    label: str
    borrowed: bool = False
    seconds: float | None = None

    @property
    def key(self) -> str:
        """Of the contender."""
        return self.record.contender

    @property
    def trajectories(self) -> int:
        """Of the training set."""
        return self.record.plan.trajectories

    @property
    def steps(self) -> int:
        """Of the training; 0 if it diverged."""
        return self.record.curve.step[-1] if self.record.curve else 0

    @property
    def seconds_per_step(self) -> float | None:
        """From interleaved timings, or else in its own run; None if it diverged."""
        if self.record.measured is None:
            return None
        return self.seconds or self.record.measured.seconds_per_step

    @property
    def point_group(self) -> float | None:
        """Violation of the symmetries of the grid; infinite if not finite, None if diverged."""
        if self.record.measured is None:
            return None
        violation = self.record.measured.point_group
        return violation if math.isfinite(violation) else math.inf


@dataclass(frozen=True)
class Score:
    """Errors of the seeds of one model on one size.

    Attributes:
        values: one for each seed; infinite where training diverged.
    """

    values: tuple[float, ...]

    @property
    def finite(self) -> tuple[float, ...]:
        """Of the seeds that did not diverge."""
        return tuple(value for value in self.values if math.isfinite(value))

    @property
    def mean(self) -> float:
        """Of the seeds that did not diverge; infinite if all did."""
        return sum(self.finite) / len(self.finite) if self.finite else math.inf

    @property
    def spread(self) -> float:
        """Half the distance of the best and the worst of the seeds that did not diverge."""
        return (max(self.finite) - min(self.finite)) / 2 if self.finite else 0.0

    @property
    def diverged(self) -> int:
        """How many seeds did."""
        return len(self.values) - len(self.finite)

    def below(self, other: Score, factor: float = 1.0) -> bool:
        """Whether all seeds are below all seeds of the other times a factor."""
        return max(self.values) < factor * min(other.values)

    def __str__(self) -> str:
        if not self.finite:
            return "diverged"
        text = f"{self.mean:.3g}"
        if len(self.finite) > 1:
            text += f" ± {self.spread:.1g}"
        return f"{text} ({self.diverged} of {len(self.values)} diverged)" if self.diverged else text


Scores = dict[str, dict[int, Score]]  #: contender -> trajectories -> errors of its seeds


def scores(outcomes: Sequence[Outcome]) -> Scores:
    """The errors of the seeds of each contender."""
    values: dict[str, dict[int, list[float]]] = {}
    for outcome in outcomes:
        by_size = values.setdefault(outcome.key, {})
        by_size.setdefault(outcome.trajectories, []).append(outcome.record.error)
    return {
        key: {size: Score(tuple(errors)) for size, errors in sorted(by_size.items())}
        for key, by_size in values.items()
    }


def step_seconds(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Contender -> seconds of a step, the minimum over its trials, as other work only adds."""
    minima: dict[str, float] = {}
    for outcome in outcomes:
        seconds = outcome.seconds_per_step
        if seconds is not None:
            minima[outcome.key] = min(seconds, minima.get(outcome.key, seconds))
    return minima


def training_seconds(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Contender -> steps of a training times seconds of a step."""
    steps = {o.key: o.steps for o in outcomes if o.seconds_per_step is not None}
    seconds = step_seconds(outcomes)
    return {key: steps[key] * seconds[key] for key in steps}
