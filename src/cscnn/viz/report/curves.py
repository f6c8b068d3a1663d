"""The sections of the page about symmetry and learning."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from cscnn.forecasting.evaluation.results import known
from cscnn.viz.numbers import listing
from cscnn.viz.report.charts import Chart, Series, line_chart
from cscnn.viz.report.contents import Contents, observed
from cscnn.viz.report.section import Section, chart_section

NAMES = 8  #: of observers that fit below an axis


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
    return chart_section("symmetry", "Symmetry", charts)


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
    title = "The same events for other observers"
    text = f"The error of an equivariant network is the same for all: a flat line.{observed(runs)}"
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
        epochs = [m["epoch"] for m in run.metrics]
        train, valid = ([m.get(k) for m in run.metrics] for k in ("train_loss", "valid_loss"))
        validated = any(v is not None for v in valid)
        lines.append(Series(f"{run.label}, training", epochs, train, run.style, faint=validated))
        if validated:
            lines.append(Series(f"{run.label}, validation", epochs, valid, run.style))
    losses = listing(list(dict.fromkeys(run.config.training.loss for run in runs)))
    text = f"What training minimises ({losses}), in the units of the network."
    if any(run.config.training.unroll > 1 for run in runs):
        text += " Training losses are over unrolled steps, validation is of one step."
    chart = line_chart("Loss", text, lines, "epoch", "loss")
    return Section("learning", "Learning", "learning.html", [chart] if chart else [])
