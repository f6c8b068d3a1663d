"""The sections of the page that are charts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from cscnn.forecasting.evaluation.results import RolloutErrors, known
from cscnn.viz.numbers import listing
from cscnn.viz.report.charts import Chart, Series, line_chart
from cscnn.viz.report.contents import Contents, comparable
from cscnn.viz.report.section import Section

NAMES = 8  #: of observers that fit below an axis


def rollout(runs: Sequence[Contents]) -> Section | None:
    """Errors against steps."""
    errors = _by_step(runs, lambda r: r.relative_l2)
    text = "Each step starts from the forecast before it."
    if comparable(runs):
        errors += _reference(_by_step(runs, lambda r: r.persistence))
        text += " Dashed: the persistence forecast."
    charts = [
        line_chart("Error", text, errors, "step", "relative L² error"),
        line_chart(
            "Correlation",
            "Between forecast and truth: 1 is perfect, 0 is no relation.",
            _by_step(runs, lambda r: r.correlation),
            "step",
            "correlation",
            log=False,
        ),
    ]
    return _charts("rollout", "As forecasts run on", charts)


def symmetry(runs: Sequence[Contents]) -> Section | None:
    """Errors against angle, rapidity and observer."""
    charts = [
        line_chart(
            "Equivariance under rotations",
            "Relative difference between rotating before the forecast and after it. "
            "Dotted: the error of interpolation on the grid alone.",
            _motions(runs, "rotation"),
            "angle in degrees",
            "relative difference",
        ),
        line_chart(
            "Equivariance under boosts",
            "Relative difference between boosting before the forecast and after it. "
            "Dotted: the error of interpolation on the grid alone.",
            _motions(runs, "boost"),
            "rapidity",
            "relative difference",
        ),
        _observers(runs),
    ]
    return _charts("symmetry", "Symmetry", charts)


def _by_step(
    runs: Sequence[Contents], errors: Callable[[RolloutErrors], Sequence[float]]
) -> list[Series]:
    """A line for each run against the steps of its rollout."""
    return [
        Series(
            run.label,
            run.evaluation.rollout.steps if run.evaluation else [],
            run.curve(lambda e: errors(e.rollout)),
            run.style,
        )
        for run in runs
    ]


def _motions(runs: Sequence[Contents], name: str) -> list[Series]:
    """Violations of each run, and then what is due to interpolation."""
    errors, floors = [], []
    for run in runs:
        if (part := run.motion(name)) is not None:
            line = Series(run.label, part.values, [known(e) for e in part.errors], run.style)
            errors.append(line)
            label = f"{run.label}, interpolation alone"
            floor = [known(e) for e in part.floors]
            floors.append(dataclasses.replace(line, label=label, y=floor, faint=True))
    return errors + floors


def _observers(runs: Sequence[Contents]) -> Chart | None:
    """Errors against the observer, who has a rapidity or names of axes."""
    title = "The same test set for other observers"
    text = "The error of an equivariant network is the same for all: a flat line."
    measured = [(run, part) for run in runs if (part := run.observers) is not None]
    observers = [observer for _, part in measured for observer in part.observers]
    names = tuple(dict.fromkeys(str(observer) for observer in observers))
    numeric = not any(isinstance(observer, str) for observer in observers)
    lines = []
    for run, part in measured:
        x = [float(o) if numeric else float(names.index(str(o))) for o in part.observers]
        lines.append(Series(run.label, x, [known(e) for e in part.mse], run.style))
    if numeric:
        boosted = any(part.kind == "boosted" for _, part in measured)
        axis = "rapidity" if boosted else "angle in degrees"
        return line_chart(title, text, lines, axis, "mean square error")
    if len(names) > NAMES:
        return line_chart(title, text, lines, "observer, by number", "mean square error")
    return line_chart(title, text, lines, "axes of the observer", "mean square error", names=names)


def learning(runs: Sequence[Contents]) -> Section:
    """Losses against epochs."""
    lines = []
    for run in runs:
        epochs = [m["epoch"] + 1 for m in run.metrics]
        train, valid = ([m.get(k) for m in run.metrics] for k in ("train_loss", "valid_loss"))
        validated = any(v is not None for v in valid)
        lines.append(Series(f"{run.label}, training", epochs, train, run.style, faint=validated))
        if validated:
            lines.append(Series(f"{run.label}, validation", epochs, valid, run.style))
    losses = listing(list(dict.fromkeys(run.config.loss for run in runs)))
    text = f"What training minimises ({losses}), in the units of the network."
    chart = line_chart("Loss", text, lines, "epoch", "loss")
    return Section("learning", "Learning", "learning.html", [chart] if chart else [])


def _reference(lines: Sequence[Series]) -> list[Series]:
    """The first line that has points, as that of the persistence forecast."""
    line = next((line for line in lines if any(y is not None for y in line.y)), None)
    if line is None:
        return []
    return [dataclasses.replace(line, label="persistence forecast", style="reference")]


def _charts(name: str, title: str, charts: Sequence[Chart | None]) -> Section | None:
    drawn = [chart for chart in charts if chart is not None]
    return Section(name, title, "charts.html", drawn) if drawn else None
