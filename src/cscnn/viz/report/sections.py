"""The parts of the page that are words and numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path

from cscnn.viz.report.contents import Contents
from cscnn.viz.report.headline import card_html, cards, comparable, verdict
from cscnn.viz.report.kernels import kernel_figure
from cscnn.viz.report.layout import code, section, style
from cscnn.viz.report.numbers import count, duration, listing, times
from cscnn.viz.report.table import table_html


def heading(runs: Sequence[Contents]) -> str:
    """What was trained on what."""
    tasks = list(dict.fromkeys(run.task.name for run in runs if run.task is not None))
    title = listing(tasks).replace("_", " ") if tasks else "Training"
    entries = []
    for i, run in enumerate(runs):
        facts = {"model": run.model_name, "parameters": count(run.find("model", "parameters"))}
        if run.metrics:
            facts["epochs"] = (
                f"{len(run.metrics)} of {_told(run, 'trainer', 'epochs')}".removesuffix(" of None")
            )
            facts["trained for"] = duration(sum(m.get("seconds", 0.0) for m in run.metrics))
        facts["training data"] = _short(_told(run, "data", "train") or "unknown")
        if run.evaluation is not None:
            data = run.evaluation["data"]
            facts["tested on"] = (
                f"{data.get('trajectories', '?')} trajectories of split {data.get('split', '?')}, "
                f"{_short(data.get('path', '?'))}"
            )
            facts["machine"] = str(next(iter(run.evaluation["machine"].values()), "unknown"))
        items = "".join(f"<div><dt>{k}</dt><dd>{escape(v)}</dd></div>" for k, v in facts.items())
        entries.append(
            f'<li class="{style(i)}"><h2><i class="dot"></i>{escape(run.label)}</h2>'
            f"<dl>{items}</dl></li>"
        )
    return (
        f'<header><p class="kicker">Forecasting fields</p><h1>{escape(title)}</h1>'
        f'<p class="lead">{_lead(runs)}</p><ul class="runs">{"".join(entries)}</ul></header>'
    )


def _short(path: object) -> str:
    """The last two parts of a path."""
    return "/".join(Path(str(path)).parts[-2:])


def _told(run: Contents, *keys: str) -> object:
    found: object = run.config
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _lead(runs: Sequence[Contents]) -> str:
    task = next((run.task for run in runs if run.task is not None), None)
    if task is None:
        return f"{len(runs)} run{'s' * (len(runs) > 1)}."
    p, q = task.algebra.signature
    space = f"spacetime with {p} + {q} dimensions" if p and q else f"{task.dim}-dimensional space"
    fields = escape(listing([field.name for field in task.fields]))
    before = f"{task.frames_in} frames" if task.frames_in > 1 else "frame"
    after = f"next {task.frames_out} frames" if task.frames_out > 1 else "next frame"
    return f"{fields.capitalize()} in {space}: the {after} from the {before} before."


def headline(runs: Sequence[Contents]) -> str:
    """The few numbers that matter."""
    compare = comparable(runs)
    shown = cards(runs)
    body = "".join(card_html(card, runs, compare) for card in shown)
    if body:
        body = f'<div class="cards">{body}</div>'
    if not compare:
        body = (
            '<p class="warning">These runs were tested on different tasks or data, so their '
            f"numbers cannot be compared.</p>{body}"
        )
    elif told := [(c.title, text) for c in shown if (text := verdict(c, runs))]:
        if sizes := _sizes(runs):
            told.append(("Is it a fair race?", sizes))
        items = "".join(f"<li><span>{escape(title)}</span> {text}</li>" for title, text in told)
        body += f'<ul class="verdicts">{items}</ul>'
    return section("short", "In short", body + _not_evaluated(runs))


def _sizes(runs: Sequence[Contents]) -> str:
    """A sentence about models of very different sizes."""
    known = [(n, run.label) for run in runs if (n := run.find("model", "parameters"))]
    if not known:
        return ""
    (low, small), (high, large) = min(known), max(known)
    if high < 1.5 * low:
        return ""
    return (
        f"{escape(large)} has {count(high)} parameters, {times(high / low)} as many as "
        f"{escape(small)}."
    )


def _not_evaluated(runs: Sequence[Contents]) -> str:
    return "".join(
        f'<p class="missing"><b>{escape(run.label)}</b> has not been evaluated: {code(run)} '
        "measures its errors.</p>"
        for run in runs
        if run.evaluation is None
    )


def table(runs: Sequence[Contents]) -> str:
    """All numbers."""
    known = [run for run in runs if run.evaluation is not None]
    if not known:
        return ""
    text = "<p>The best of each row is bold.</p>" if comparable(runs) and len(known) > 1 else ""
    return section("numbers", "All numbers", text + table_html(runs, comparable(runs)))


def kernels(runs: Sequence[Contents]) -> str:
    """What the first layer has learnt."""
    text = "<p>What a layer has learnt: how each part of the field feeds each other part.</p>"
    return section("kernels", "Kernels", text + "".join(kernel_figure(run) for run in runs))


def making(runs: Sequence[Contents]) -> str:
    """Configurations and machines."""
    parts = []
    for run in runs:
        machine = (run.evaluation or {}).get("machine", {})
        where = ", ".join(f"{k} {v}" for k, v in machine.items())
        place = f"<p>Evaluated on {escape(where)}.</p>" if where else ""
        parts.append(
            f"<details><summary>{escape(run.label)}</summary>{place}"
            f"<pre>{escape(json.dumps(run.config, indent=2))}</pre></details>"
        )
    return section("making", "How it was made", "".join(parts))
