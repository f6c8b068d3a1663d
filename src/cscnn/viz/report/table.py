"""All numbers of all runs in one table."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from cscnn.viz.report.contents import Contents, largest
from cscnn.viz.report.numbers import count, number, percent, size

FEW = 4  #: columns that fit side by side on a phone, labels above them

Show = Callable[[float | None], str]


@dataclass(frozen=True)
class Row:
    """A number of each run.

    Attributes:
        label: what it is.
        values: for each run, and last that of the forecast that nothing changes.
        show: makes text of a number.
        better: -1 if low is good, 1 if high is, 0 if neither.
    """

    label: str
    values: list[float | None]
    show: Show = number
    better: int = -1


def rows(runs: Sequence[Contents]) -> dict[str, list[Row]]:
    """The rows by heading; those without a number are left out."""
    names = list(
        dict.fromkeys(
            f
            for r in runs
            for f in (r.evaluation or {"one_step": {}})["one_step"].get("fields", {})
        )
    )
    measures: tuple[tuple[str, str, Show], ...] = (
        ("relative_l2", "relative L² error", percent),
        ("mse", "mean square error", number),
        ("vrmse", "error by standard deviation (VRMSE)", number),
        ("spectrum_error", "error of the spectrum", number),
    )
    found = {
        "One step": [
            Row(label, _each(runs, "one_step", key, still=("one_step", "persistence", key)), show)
            for key, label, show in measures
        ]
        + [
            Row(
                f"relative L² error of {name}",
                _each(runs, "one_step", "fields", name, "relative_l2"),
                percent,
            )
            for name in names
        ],
        "Rollout": [
            Row(
                "relative L² error of the last step",
                [_last(r.curve("rollout", "relative_l2")) for r in runs]
                + [_last(_first([r.curve("rollout", "persistence", "relative_l2") for r in runs]))],
                percent,
            ),
            Row("time until the correlation is lost", _lost(runs), _when, 1),
            Row("steps before it blows up", _each(runs, "rollout", "stable_steps"), count, 1),
        ],
        "Symmetry": [
            Row("translations", _each(runs, "symmetry", "translation")),
            Row("turns and flips of the grid", _each(runs, "symmetry", "point group")),
            Row("rotations, largest", _most(runs, "rotation")),
            Row("boosts, largest", _most(runs, "boost")),
            Row(
                "mean square error in other frames, mean", _each(runs, "symmetry", "frames", "mean")
            ),
            Row(
                "mean square error in other frames, worst",
                _each(runs, "symmetry", "frames", "worst"),
            ),
        ],
        "Cost": [
            Row("parameters", _each(runs, "cost", "parameters"), count, 0),
            Row("forecasts per second", _each(runs, "cost", "windows_per_second"), number, 1),
            Row("peak memory", _each(runs, "cost", "peak_bytes"), size),
        ],
    }
    kept = {
        title: [row for row in group if any(v is not None for v in row.values)]
        for title, group in found.items()
    }
    return {title: group for title, group in kept.items() if group}


def _each(runs: Sequence[Contents], *keys: str, still: tuple[str, ...] = ()) -> list[float | None]:
    reference = (
        next((v for r in runs if (v := r.find(*still)) is not None), None) if still else None
    )
    return [*(run.find(*keys) for run in runs), reference]


def _most(runs: Sequence[Contents], kind: str) -> list[float | None]:
    return [*(largest(run.curve("symmetry", kind, "errors")) for run in runs), None]


def _lost(runs: Sequence[Contents]) -> list[float | None]:
    """Infinite for a run that is followed to the end without being lost."""
    found: list[float | None] = []
    for run in runs:
        steps = run.curve("rollout", "steps")
        survives = bool(steps) and run.find("rollout", "stable_steps") == len(steps)
        lost = run.find("rollout", "correlation_time")
        found.append(math.inf if lost is None and survives else lost)
    return [*found, None]


def _when(value: float | None) -> str:
    return "not lost" if value == math.inf else number(value)


def _first(curves: Sequence[list[float | None]]) -> list[float | None]:
    return next((curve for curve in curves if curve), [])


def _last(curve: list[float | None]) -> float | None:
    return curve[-1] if curve else None


def table_html(runs: Sequence[Contents], compare: bool) -> str:
    """The table, the best of each row in bold if runs can be compared.

    On a narrow screen the style sheet puts labels above their numbers. Roles are spelt out because
    some browsers forget what a table is when its layout changes.
    """
    groups = rows(runs)
    still = compare and any(row.values[-1] is not None for g in groups.values() for row in g)
    head = "".join(
        f'<th scope="col" role="columnheader" class="run-{i % 8}"><i class="dot"></i>'
        f"{escape(run.label)}</th>"
        for i, run in enumerate(runs)
    )
    if still:
        head += '<th scope="col" role="columnheader" class="reference">nothing changes</th>'
    columns = len(runs) + 1 + still
    body = []
    for title, group in groups.items():
        body.append(
            f'<tbody role="rowgroup"><tr role="row"><th scope="rowgroup" role="rowheader" '
            f'class="group" colspan="{columns}">{title}</th></tr>'
        )
        for row in group:
            body.append(
                f'<tr role="row"><th scope="row" role="rowheader">{escape(row.label)}</th>'
                f"{_cells(row, compare, still)}</tr>"
            )
        body.append("</tbody>")
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="all numbers of all runs">'
        f'<table role="table" class="metrics{" few" * (columns <= FEW)}"><thead role="rowgroup">'
        '<tr role="row"><th scope="col" role="columnheader"><span class="hidden">measure</span>'
        f"</th>{head}</tr></thead>{''.join(body)}</table></div>"
    )


def _cells(row: Row, compare: bool, still: bool) -> str:
    values = row.values[:-1]
    known = [v for v in values if v is not None]
    top = max((row.better * v for v in known), default=None)
    bold = compare and row.better != 0 and len(known) > 1 and len(set(known)) > 1
    cells = [
        f'<td role="cell"><b>{row.show(v)}</b></td>'
        if bold and v is not None and row.better * v == top
        else f'<td role="cell">{row.show(v)}</td>'
        for v in values
    ]
    if still:
        value = row.values[-1]
        cells.append(
            f'<td role="cell" class="reference">{"" if value is None else row.show(value)}</td>'
        )
    return "".join(cells)
