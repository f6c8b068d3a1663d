"""From records to numbers that can be compared: means and spreads of seeds, seconds of steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Record = dict[str, Any]


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


def scores(records: Sequence[Record]) -> dict[str, dict[int, Score]]:
    """Contender -> trajectories -> errors of its seeds."""
    values: dict[str, dict[int, list[float]]] = {}
    for record in records:
        error = record.get("error")
        by_size = values.setdefault(record["contender"], {})
        by_size.setdefault(record["trajectories"], []).append(
            math.inf if error is None else float(error)
        )
    return {
        key: {n: Score(tuple(found)) for n, found in sorted(by_size.items())}
        for key, by_size in values.items()
    }


def step_seconds(records: Sequence[Record]) -> dict[str, float]:
    """Contender -> seconds of a step, the least of its records, as other work only adds."""
    found: dict[str, float] = {}
    for record in records:
        if "seconds_per_step" in record:
            key, seconds = record["contender"], float(record["seconds_per_step"])
            found[key] = min(seconds, found.get(key, seconds))
    return found


def training_seconds(records: Sequence[Record]) -> dict[str, float]:
    """Contender -> steps of a training times seconds of a step."""
    steps = {r["contender"]: r["curve"]["step"][-1] for r in records if "seconds_per_step" in r}
    seconds = step_seconds(records)
    return {key: steps[key] * seconds[key] for key in steps}


def point_group(record: Record) -> float:
    """Violation of the symmetries of the grid; infinite if it was not finite."""
    found = record["point_group"]
    return math.inf if found is None else float(found)
