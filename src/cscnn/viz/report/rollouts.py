"""The sections about rollouts: errors and physical quantities by step."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from cscnn.forecasting.evaluation.lifetimes import THRESHOLD
from cscnn.forecasting.evaluation.results import Curve, ErrorCurves, RolloutErrors, known
from cscnn.viz.report.charts import Chart, Series, line_chart
from cscnn.viz.report.contents import Contents, comparable
from cscnn.viz.report.section import Section, chart_section
from cscnn.viz.report.seeds import Group, by_seed

TRAJECTORIES = "Shaded: all trajectories but a tenth on either side."
SEEDS = "Shaded: from the lowest to the highest seed."

Measure = Callable[[RolloutErrors], Curve | None]


def errors(runs: Sequence[Contents]) -> Section | None:
    """Errors and correlation against steps, of all fields and of each."""
    groups, compare = by_seed(runs), comparable(runs)
    fields = _names(groups, lambda rollout: rollout.fields)
    text = f"Each step starts from the forecast before it. {_shading(groups)}"
    charts = [
        _error_chart("Error", text, groups, compare, lambda r: r),
        _correlation_chart(groups),
    ]
    if len(fields) > 1:
        charts += [_field_chart(field, groups, compare) for field in fields]
    return chart_section("rollout", "As forecasts run on", charts)


def _field_chart(field: str, groups: Sequence[Group], compare: bool) -> Chart | None:
    title, text = f"Error of {field}", _shading(groups)
    return _error_chart(title, text, groups, compare, lambda rollout: rollout.fields.get(field))


def _error_chart(
    title: str,
    text: str,
    groups: Sequence[Group],
    compare: bool,
    part: Callable[[RolloutErrors], ErrorCurves | None],
) -> Chart | None:
    lines = _lines(groups, lambda rollout: _error(part(rollout), "relative_l2"))
    if compare:
        still = _lines(groups, lambda rollout: _error(part(rollout), "persistence"))
        lines += _reference("persistence forecast", still)
        text += " Dashed: the persistence forecast."
    return line_chart(title, text, lines, "step", "relative L² error")


def _correlation_chart(groups: Sequence[Group]) -> Chart | None:
    lines = _lines(groups, lambda rollout: _error(rollout, "correlation"))
    steps = max((line.x for line in lines), key=len, default=[])
    limit = Series(f"{THRESHOLD:g}", steps, [THRESHOLD] * len(steps), "reference")
    text = (
        "Between forecast and truth: 1 is perfect, 0 is no relation. "
        f"{_shading(groups)} Dashed: {THRESHOLD:g}, below which a forecast counts as lost."
    )
    drawn = [*lines, limit] if any(line.points(log=False) for line in lines) else []
    return line_chart("Correlation", text, drawn, "step", "correlation", log=False)


def physics(runs: Sequence[Contents]) -> Section | None:
    """Physical quantities and residuals of laws against steps, of forecasts and truth."""
    groups, compare = by_seed(runs), comparable(runs)
    charts = [
        _quantity_chart(name, groups, compare)
        for name in _names(groups, lambda rollout: rollout.quantities)
    ]
    charts += [
        _law_chart(name, groups, compare) for name in _names(groups, lambda rollout: rollout.laws)
    ]
    return chart_section("physics", "Physical quantities", charts)


def _quantity_chart(name: str, groups: Sequence[Group], compare: bool) -> Chart | None:
    def curve(truth: bool) -> Measure:
        def measure(rollout: RolloutErrors) -> Curve | None:
            if (part := rollout.quantities.get(name)) is None:
                return None
            of = part.curves.target if truth else part.curves.prediction
            start = [part.known]  # step 0, where all agree
            return Curve(start + of.mean, start + of.low, start + of.high)

        return measure

    part = next(p for r in _rollouts(groups) if (p := r.quantities.get(name)) is not None)
    axis = part.formula + f" in {part.units}" * bool(part.units)
    return line_chart(
        _capital(part.title),
        f"Mean over space. {_shading(groups)} Dashed: the truth.",
        _lines(groups, curve(truth=False), first=0) + _truth(groups, curve(truth=True), compare, 0),
        "step",
        axis,
        log=False,
    )


def _law_chart(name: str, groups: Sequence[Group], compare: bool) -> Chart | None:
    def curve(truth: bool) -> Measure:
        def measure(rollout: RolloutErrors) -> Curve | None:
            law = rollout.laws.get(name)
            if law is None or law.curves is None:
                return None
            return law.curves.target if truth else law.curves.prediction

        return measure

    law = next(p for r in _rollouts(groups) if (p := r.laws.get(name)) is not None)
    return line_chart(
        f"{_capital(law.meaning)}: {law.equation}",
        f"By how much it is missed, relative to the derivatives in it. {_shading(groups)} "
        "Dashed: the truth.",
        _lines(groups, curve(truth=False)) + _truth(groups, curve(truth=True), compare, 1),
        "step",
        "relative residual",
    )


# --- lines ----------------------------------------------------------------------------------------


def _rollouts(groups: Sequence[Group]) -> list[RolloutErrors]:
    return [r.evaluation.rollout for group in groups for r in group.runs if r.evaluation]


def _names(
    groups: Sequence[Group], part: Callable[[RolloutErrors], Mapping[str, object]]
) -> list[str]:
    """Of what any of the runs has."""
    return list(dict.fromkeys(name for rollout in _rollouts(groups) for name in part(rollout)))


def _error(errors: ErrorCurves | None, name: str) -> Curve | None:
    """A metric of all fields or of one, with its spread."""
    if errors is None:
        return None
    mean, spread = getattr(errors, name), errors.spread.get(name)
    return Curve(mean, [], []) if spread is None else Curve(mean, spread.low, spread.high)


def _lines(groups: Sequence[Group], measure: Measure, first: int = 1) -> list[Series]:
    """A line for each group against steps from the first one, with its spread."""
    lines = []
    for group in groups:
        curves = [c for rollout in _rollouts([group]) if (c := measure(rollout)) is not None]
        if curves:
            joined = curves[0] if len(group.runs) == 1 else _over_seeds(curves)
            mean, low, high = ([known(v) for v in part] for part in dataclasses.astuple(joined))
            steps = range(first, first + len(mean))
            lines.append(Series(group.label, list(steps), mean, group.style, low=low, high=high))
    return lines


def _over_seeds(curves: Sequence[Curve]) -> Curve:
    """Mean, lowest and highest of the means over trajectories; NaN where one is missing."""
    steps = list(zip(*(curve.mean for curve in curves), strict=False))
    complete = [step if all(v == v for v in step) else (float("nan"),) for step in steps]
    mean = [sum(step) / len(step) for step in complete]
    return Curve(mean, [min(step) for step in complete], [max(step) for step in complete])


def _truth(groups: Sequence[Group], measure: Measure, compare: bool, first: int) -> list[Series]:
    """The truth: one line if all runs saw the same, else one for each."""
    lines = _lines(groups, measure, first)
    if compare:
        return _reference("truth", lines)
    return [
        dataclasses.replace(line, label=f"{line.label}, truth", faint=True, low=(), high=())
        for line in lines
    ]


def _reference(label: str, lines: Sequence[Series]) -> list[Series]:
    """The first line that has points, as a reference."""
    line = next((line for line in lines if any(y is not None for y in line.y)), None)
    if line is None:
        return []
    return [dataclasses.replace(line, label=label, style="reference", low=(), high=())]


def _shading(groups: Sequence[Group]) -> str:
    """What the bands are."""
    several = [len(group.runs) > 1 for group in groups]
    if all(several):
        return SEEDS
    if not any(several):
        return TRAJECTORIES
    return f"{SEEDS} Of single runs: all trajectories but a tenth on either side."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
