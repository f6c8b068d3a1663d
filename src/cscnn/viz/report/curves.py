"""The parts of the page that are charts."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from html import escape

from cscnn.viz.report.charts import Series, line_chart
from cscnn.viz.report.contents import Contents, finite
from cscnn.viz.report.headline import comparable
from cscnn.viz.report.layout import section, style

NAMES = 8  #: of frames that fit below an axis


def rollout(runs: Sequence[Contents]) -> str:
    """Errors against steps."""
    lines = _lines(runs, ("rollout", "steps"), ("rollout", "relative_l2"))
    still = _lines(runs, ("rollout", "steps"), ("rollout", "persistence", "relative_l2"))
    if comparable(runs):
        lines += _reference(still, "nothing changes")
    charts = line_chart(
        "Error",
        "Each step starts from the forecast before it. Grey: the forecast that nothing changes.",
        lines,
        "step",
        "relative L² error",
    )
    charts += line_chart(
        "Correlation",
        "Of forecast and truth: 1 is perfect, 0 is no relation.",
        _lines(runs, ("rollout", "steps"), ("rollout", "correlation")),
        "step",
        "correlation",
        log=False,
    )
    return _charts("rollout", "As forecasts run on", charts)


def symmetry(runs: Sequence[Contents]) -> str:
    """Errors against angle and rapidity."""
    angles, floor = ("symmetry", "rotation", "angles"), ("symmetry", "rotation", "floor")
    charts = line_chart(
        "Equivariance under rotations",
        "Turn the field and forecast, or forecast and turn: how much the results differ. "
        "Dotted: what turning fields on a grid costs by itself.",
        _lines(runs, angles, ("symmetry", "rotation", "errors")) + _floors(runs, angles, floor),
        "angle in degrees",
        "relative difference",
    )
    rapidities, floor = ("symmetry", "boost", "rapidities"), ("symmetry", "boost", "floor")
    charts += line_chart(
        "Equivariance under boosts",
        "Change to a moving observer and forecast, or forecast and change: how much the results "
        "differ. Dotted: what changing fields on a grid costs by itself.",
        _lines(runs, rapidities, ("symmetry", "boost", "errors"))
        + _floors(runs, rapidities, floor),
        "rapidity",
        "relative difference",
    )
    charts += _frames(runs)
    return _charts("symmetry", "Symmetry", charts)


def _frames(runs: Sequence[Contents]) -> str:
    """Errors against the observer, who has a rapidity or names of axes."""
    values, errors = ("symmetry", "frames", "values"), ("symmetry", "frames", "mse")
    title, text = "The same test set in other frames", "A flat line: it does not matter who looks."
    kinds = [run.entries(*values) for run in runs if run.entries(*values)]
    if all(finite(value) is not None for kind in kinds for value in kind):
        boosted = any(_kind(run) == "boosted" for run in runs)
        axis = "rapidity" if boosted else "angle in degrees"
        return line_chart(title, text, _lines(runs, values, errors), axis, "mean square error")
    names = tuple(dict.fromkeys(str(value) for kind in kinds for value in kind))
    lines = []
    for i, run in enumerate(runs):
        where = [float(names.index(str(value))) for value in run.entries(*values)]
        lines.append(Series(run.label, where, run.curve(*errors), style(i)))
    if len(names) > NAMES:
        return line_chart(title, text, lines, "frame, by number", "mean square error")
    return line_chart(title, text, lines, "axes of the observer", "mean square error", names=names)


def _kind(run: Contents) -> object:
    frames = (run.evaluation or {}).get("symmetry", {}).get("frames")
    return frames.get("kind") if isinstance(frames, dict) else None


def learning(runs: Sequence[Contents]) -> str:
    """Losses against epochs."""
    lines = []
    for i, run in enumerate(runs):
        epochs = [m["epoch"] + 1 for m in run.metrics]
        train, valid = ([m.get(k) for m in run.metrics] for k in ("train_loss", "valid_loss"))
        some = any(v is not None for v in valid)
        lines.append(Series(f"{run.label}, training", epochs, train, style(i), faint=some))
        if some:
            lines.append(Series(f"{run.label}, validation", epochs, valid, style(i)))
    charts = line_chart("Loss", "In the units of the model.", lines, "epoch", "loss")
    body = f'<div class="charts">{charts}</div>' if charts else ""
    body += "".join(
        f'<p class="missing"><b>{escape(run.label)}</b> has not finished an epoch: '
        f"<code>cscnn train --resume {escape(str(run.run.path))}</code> goes on.</p>"
        for run in runs
        if not run.metrics
    )
    return section("learning", "Learning", body)


def _lines(runs: Sequence[Contents], x: tuple[str, ...], y: tuple[str, ...]) -> list[Series]:
    """A line for each run that has these numbers."""
    found = []
    for i, run in enumerate(runs):
        pairs = zip(run.curve(*x), run.curve(*y), strict=False)
        known = [(a, b) for a, b in pairs if a is not None]
        found.append(Series(run.label, [a for a, _ in known], [b for _, b in known], style(i)))
    return found


def _floors(runs: Sequence[Contents], x: tuple[str, ...], y: tuple[str, ...]) -> list[Series]:
    return [
        dataclasses.replace(line, label=f"{line.label}, the grid alone", faint=True)
        for line in _lines(runs, x, y)
    ]


def _reference(lines: Sequence[Series], label: str) -> list[Series]:
    """The first line that has points, in grey."""
    known = [line for line in lines if any(y is not None for y in line.y)]
    return [Series(label, known[0].x, known[0].y, "reference")] if known else []


def _charts(name: str, title: str, charts: str) -> str:
    return section(name, title, f'<div class="charts">{charts}</div>') if charts else ""
