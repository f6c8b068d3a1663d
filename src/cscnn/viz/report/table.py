"""All numbers of all runs in one table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cscnn.forecasting.evaluation.lifetimes import time_of
from cscnn.forecasting.evaluation.metrics import METRICS
from cscnn.forecasting.evaluation.results import Evaluation, ObserverErrors, RolloutErrors, known
from cscnn.viz.numbers import count, number, percent, size
from cscnn.viz.report.contents import Contents, comparable, first_known, largest
from cscnn.viz.report.section import Section

FEW = 4  #: columns that fit side by side on a phone, labels above them

Show = Callable[[float | None], str]
Measure = Callable[[Evaluation], float | None]


@dataclass(frozen=True)
class Row:
    """A number of each run.

    Attributes:
        label: what it is.
        values: for each run.
        show: makes text of a number.
        better: -1 if low is good, 1 if high is, 0 if neither.
        persistence: that of the persistence forecast.
    """

    label: str
    values: list[float | None]
    show: Show = number
    better: int = -1
    persistence: float | None = None

    def best(self) -> list[bool]:
        """Whether each value is the best of several that differ."""
        measured = {v for v in self.values if v is not None}
        if not self.better or len(measured) < 2:
            return [False] * len(self.values)
        top = max(self.better * v for v in measured)
        return [v is not None and self.better * v == top for v in self.values]


@dataclass(frozen=True)
class Table:
    """Rows by heading.

    Attributes:
        groups: heading -> rows, without those that have no number.
        compare: whether runs can be compared.
        bold: whether there are best ones to mark.
        persistence: whether the last column is the persistence forecast.
        columns: in all.
    """

    groups: dict[str, list[Row]]
    compare: bool
    bold: bool
    persistence: bool
    columns: int

    @property
    def few(self) -> bool:
        """Whether a phone has room for all columns."""
        return self.columns <= FEW

    def cells(self, row: Row) -> list[tuple[str, bool]]:
        """The text of each run, and whether it is to be bold."""
        best = row.best() if self.compare else [False] * len(row.values)
        return [(row.show(v), b) for v, b in zip(row.values, best, strict=True)]

    def reference(self, row: Row) -> str:
        """The text of the persistence forecast, empty where there is none."""
        return "" if row.persistence is None else row.show(row.persistence)


def numbers(runs: Sequence[Contents]) -> Section | None:
    """All numbers."""
    evaluated = sum(run.evaluation is not None for run in runs)
    if not evaluated:
        return None
    groups, compare = rows(runs), comparable(runs)
    persistence = compare and any(
        row.persistence is not None for group in groups.values() for row in group
    )
    columns = len(runs) + 1 + persistence
    table = Table(groups, compare, compare and evaluated > 1, persistence, columns)
    return Section("numbers", "All numbers", "numbers.html", table)


def rows(runs: Sequence[Contents]) -> dict[str, list[Row]]:
    """The rows by heading; those without a number are left out."""
    groups = {
        "One step": _one_step(runs),
        "Rollout": _rollout(runs),
        "Symmetry": _symmetry(runs),
        "Cost": [
            Row("parameters", _each(runs, lambda e: e.cost.parameters), count, 0),
            Row("forecasts per second", _each(runs, lambda e: e.cost.windows_per_second), better=1),
            Row("peak memory", _each(runs, lambda e: e.cost.peak_bytes), size),
        ],
    }
    measured = {
        title: [row for row in group if any(v is not None for v in row.values)]
        for title, group in groups.items()
    }
    return {title: group for title, group in measured.items() if group}


def _one_step(runs: Sequence[Contents]) -> list[Row]:
    measured = [run.evaluation.one_step for run in runs if run.evaluation]
    names = dict.fromkeys(name for one_step in measured for name in one_step.total)
    fields = dict.fromkeys(name for one_step in measured for name in one_step.fields)
    group = [_errors(runs, name) for name in names]
    return group + [_field_error(runs, name) for name in fields]


def _field_error(runs: Sequence[Contents], field: str) -> Row:
    values = _each(runs, lambda e: e.one_step.fields.get(field, {}).get("relative_l2"))
    return Row(f"relative L² error of {field}", values, percent)


def _errors(runs: Sequence[Contents], name: str) -> Row:
    """The row of a metric, which may be one that this version does not know."""
    metric = METRICS.get(name)
    persistence = _each(runs, lambda e: e.one_step.persistence.get(name))
    values = _each(runs, lambda e: e.one_step.total.get(name))
    if metric is None:
        return Row(name, values, better=0, persistence=first_known(persistence))
    show = percent if metric.percent else number
    return Row(metric.title, values, show, metric.better, first_known(persistence))


def _rollout(runs: Sequence[Contents]) -> list[Row]:
    persistence = first_known(
        run.number(lambda e: e.rollout.persistence[-1] if e.rollout.persistence else None)
        for run in runs
    )
    last = _each(runs, lambda e: e.rollout.relative_l2[-1] if e.rollout.relative_l2 else None)
    units = {run.time_unit for run in runs if run.evaluation is not None}
    unit = f" [{units.pop()}]" if len(units) == 1 and units != {""} else ""
    return [
        Row("relative L² error of the last step", last, percent, persistence=persistence),
        Row(
            f"time until the correlation is below 0.8{unit}",
            [_lifetime(run, lambda r: r.correlation_frames) for run in runs],
            _when,
            1,
        ),
        Row(
            f"time until persistence is better{unit}",
            [_lifetime(run, lambda r: r.persistence_frames) for run in runs],
            _when,
            1,
        ),
        Row("steps before it blows up", _each(runs, lambda e: e.rollout.stable_steps), count, 1),
        Row("trajectories that blow up", _each(runs, lambda e: e.rollout.lost), count),
    ]


def _symmetry(runs: Sequence[Contents]) -> list[Row]:
    def observers(summary: Callable[[ObserverErrors], float]) -> list[float | None]:
        return [known(summary(part)) if (part := run.observers) else None for run in runs]

    def motion(name: str) -> list[float | None]:
        return [largest(m.errors) if (m := run.motion(name)) else None for run in runs]

    return [
        Row("translations", _each(runs, lambda e: e.symmetry.translation)),
        Row("rotations and reflections of the grid", _each(runs, lambda e: e.symmetry.point_group)),
        Row("rotations, largest", motion("rotation")),
        Row("boosts, largest", motion("boost")),
        Row("mean square error for other observers, mean", observers(lambda o: o.mean)),
        Row("mean square error for other observers, worst", observers(lambda o: o.worst)),
    ]


def _each(runs: Sequence[Contents], measure: Measure) -> list[float | None]:
    return [run.number(measure) for run in runs]


class AtLeast(float):
    """A time that was not reached in the rollout, which has this length."""


def _lifetime(
    run: Contents, measure: Callable[[RolloutErrors], float | None]
) -> float | AtLeast | None:
    """Frames as units of time."""
    if run.evaluation is None or not run.evaluation.rollout.times:
        return None
    times, frames = run.evaluation.rollout.times, measure(run.evaluation.rollout)
    return AtLeast(times[-1]) if frames is None else time_of(frames, times)


def _when(value: float | None) -> str:
    return f"≥ {number(value)}" if isinstance(value, AtLeast) else number(value)
