"""The parts of the page that are charts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from cscnn.viz.report.charts import Series, line_chart
from cscnn.viz.report.contents import Contents
from cscnn.viz.report.headline import comparable
from cscnn.viz.report.layout import section, style


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
        "Grey: what turning a field on a grid costs by itself.",
        _lines(runs, angles, ("symmetry", "rotation", "errors"))
        + _reference(_lines(runs, angles, floor), "the grid alone"),
        "angle in degrees",
        "relative difference",
    )
    rapidities, floor = ("symmetry", "boost", "rapidities"), ("symmetry", "boost", "floor")
    charts += line_chart(
        "Equivariance under boosts",
        "Change to a moving observer and forecast, or forecast and change: how much the results "
        "differ.",
        _lines(runs, rapidities, ("symmetry", "boost", "errors"))
        + _reference(_lines(runs, rapidities, floor), "the grid alone"),
        "rapidity",
        "relative difference",
    )
    kinds = {
        ((r.evaluation or {}).get("symmetry", {}).get("frames") or {}).get("kind") for r in runs
    }
    charts += line_chart(
        "The same test set in other frames",
        "A flat line means that it does not matter who looks.",
        _lines(runs, ("symmetry", "frames", "values"), ("symmetry", "frames", "mse")),
        "rapidity" if "boosted" in kinds else "angle in degrees",
        "mean square error",
    )
    return _charts("symmetry", "Symmetry", charts)


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
        f"<code>cscnn train --out {escape(str(run.run.path))}</code> goes on.</p>"
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


def _reference(lines: Sequence[Series], label: str) -> list[Series]:
    """The first line that has points, in grey."""
    known = [line for line in lines if any(y is not None for y in line.y)]
    return [Series(label, known[0].x, known[0].y, "reference")] if known else []


def _charts(name: str, title: str, charts: str) -> str:
    return section(name, title, f'<div class="charts">{charts}</div>') if charts else ""
