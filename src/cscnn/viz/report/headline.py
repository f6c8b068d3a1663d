"""The few numbers that matter, and an honest sentence about each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from cscnn.viz.report.contents import Contents, largest
from cscnn.viz.report.numbers import listing, number, percent, times

#: The frame of the data: no boost, or coordinates as they are.
USUAL = (0, "(x)", "(x, y)", "(x, y, z)")


@dataclass(frozen=True)
class Card:
    """A question, a number for each run, lower is better.

    Attributes:
        title: the question.
        text: what the numbers are.
        values: for each run, None if it was not measured.
        notes: below each number.
        show: makes text of a number.
        reference: a number to compare with, and its name.
    """

    title: str
    text: str
    values: list[float | None]
    notes: list[str]
    show: Callable[[float | None], str]
    reference: tuple[str, float] | None = None


def comparable(runs: Sequence[Contents]) -> bool:
    """Whether all runs that were evaluated saw the same task and data."""
    seen = {
        repr((run.task, *(run.evaluation["data"].get(k) for k in ("path", "split", "windows"))))
        for run in runs
        if run.evaluation is not None
    }
    return len(seen) <= 1


def cards(runs: Sequence[Contents]) -> list[Card]:
    """Those for which there is a number."""
    found = [_one_step(runs), _frames(runs), _equivariance(runs)]
    return [card for card in found if any(v is not None for v in card.values)]


def _one_step(runs: Sequence[Contents]) -> Card:
    still = next((p for r in runs if (p := r.find("one_step", "persistence", "relative_l2"))), None)
    return Card(
        "How far off is a forecast?",
        "Relative L² error of one step on data that no run was trained on.",
        [run.find("one_step", "relative_l2") for run in runs],
        [f"mean square {number(run.find('one_step', 'mse'))}" for run in runs],
        percent,
        None if still is None or not comparable(runs) else ("nothing changes", still),
    )


def _frames(runs: Sequence[Contents]) -> Card:
    kinds = {str(_part(run, "frames").get("kind")) for run in runs if _part(run, "frames")}
    kind = listing(sorted(kinds)) if kinds else "other"
    notes = []
    for run in runs:
        mean, usual = run.find("symmetry", "frames", "mean"), _usual(run)
        ratio = mean / usual if mean is not None and usual else None
        note = f"{times(ratio)} its error in the usual frame" if ratio is not None else ""
        if (worst := run.find("symmetry", "frames", "worst")) is not None:
            note += f"{', ' if note else ''}worst {number(worst)}"
        notes.append(note)
    return Card(
        f"And seen from {kind} frames?",
        "Mean square error of the same forecasts when somebody else describes the same physics.",
        [run.find("symmetry", "frames", "mean") for run in runs],
        notes,
        number,
    )


def _usual(run: Contents) -> float | None:
    """The error in the frame of the data, in the same units."""
    values = run.entries("symmetry", "frames", "values")
    errors = run.curve("symmetry", "frames", "mse")
    usual = [e for v, e in zip(values, errors, strict=False) if v in USUAL and e is not None]
    return usual[0] if usual else run.find("one_step", "mse")


def _equivariance(runs: Sequence[Contents]) -> Card:
    boosts = any(_part(run, "boost") for run in runs)
    kind, name = ("boost", "boosts") if boosts else ("rotation", "rotations")
    values = [largest(run.curve("symmetry", kind, "errors")) for run in runs]
    if all(value is None for value in values):
        name, values = "turns and flips of the grid", [
            run.find("symmetry", "point group") for run in runs
        ]  # fmt: skip
        notes = [""] * len(runs)
    else:
        notes = [_exact(run, kind) for run in runs]
    return Card(
        "Does it keep the symmetry?",
        f"Largest relative difference between transforming before and after, over {name}.",
        values,
        notes,
        number,
    )


def _exact(run: Contents, kind: str) -> str:
    """What a grid keeps exactly, and what it cannot."""
    floor = largest(run.curve("symmetry", kind, "floor"))
    note = f"turns and flips of the grid {number(run.find('symmetry', 'point group'))}"
    return note if floor is None else f"{note}; the grid alone costs {number(floor)}"


def _part(run: Contents, name: str) -> dict[str, object]:
    found = (run.evaluation or {}).get("symmetry", {}).get(name)
    return found if isinstance(found, dict) else {}


def best(values: Sequence[float | None]) -> int | None:
    """The position of the smallest of several numbers; None if there is a tie."""
    known = sorted((v, i) for i, v in enumerate(values) if v is not None)
    return known[0][1] if len(known) > 1 and known[0][0] < known[1][0] else None


def card_html(card: Card, runs: Sequence[Contents], compare: bool) -> str:
    """The card with a bar for each run, from zero."""
    top = max(v for v in (*card.values, card.reference and card.reference[1]) if v is not None)
    winner = best(card.values) if compare else None
    rows = []
    for i, (run, value, note) in enumerate(zip(runs, card.values, card.notes, strict=True)):
        if value is None:
            continue
        kind = f"run-{i % 8}" + (" best" if i == winner else "")
        mark = '<span class="badge">lowest</span>' if i == winner else ""
        rows.append(
            f'<li class="{kind}"><span class="who">{escape(run.label)}{mark}</span>'
            f'<span class="value">{card.show(value)}</span>{_bar(value, top)}'
            f'<span class="note">{escape(note)}</span></li>'
        )
    if card.reference is not None:
        name, value = card.reference
        rows.append(
            f'<li class="reference"><span class="who">if {escape(name)}</span>'
            f'<span class="value">{card.show(value)}</span>{_bar(value, top)}</li>'
        )
    return (
        f'<section class="card"><h3>{escape(card.title)}</h3><p>{escape(card.text)}</p>'
        f"<ul>{''.join(rows)}</ul></section>"
    )


def _bar(value: float, top: float) -> str:
    share = 100 * value / top if top else 0
    return f'<span class="bar" aria-hidden="true"><i style="width:{share:.2f}%"></i></span>'


def verdict(card: Card, runs: Sequence[Contents]) -> str:
    """Who is ahead, whoever it is, and by how much; nothing about one run alone."""
    known = sorted((v, i) for i, v in enumerate(card.values) if v is not None)
    if len(known) < 2:
        return ""
    low = known[0][0]
    first = [f"<b>{escape(runs[i].label)}</b>" for v, i in known if v == low]
    if len(first) > 1:
        return f"{listing(first)} tie at {card.show(low)}."
    second, position = known[1]
    ratio = f", {times(second / low)} as much" if low > 0 else ""
    return (
        f"{first[0]} is lowest with {card.show(low)}; next is {escape(runs[position].label)} with "
        f"{card.show(second)}{ratio}."
    )
