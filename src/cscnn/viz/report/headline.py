"""The few numbers that matter, and an honest sentence about each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cscnn.forecasting.evaluation.results import RolloutErrors, known
from cscnn.viz.numbers import count, listing, number, percent, size, times
from cscnn.viz.report.contents import Contents, comparable, first_known, largest, observed
from cscnn.viz.report.section import Section

#: Of a transformation that was measured on a grid: its name, and how its values are written.
MOTIONS = {"boost": ("boosts", "rapidity {:g}"), "rotation": ("rotations", "{:g}°")}


@dataclass(frozen=True)
class Bar:
    """A number of a card, with its share of the longest bar in per cent."""

    label: str
    style: str
    value: str
    share: float
    note: str = ""
    best: bool = False


@dataclass(frozen=True)
class Card:
    """A question, a number for each run, lower is better.

    Attributes:
        title: the question.
        text: what the numbers are.
        values: for each run, None if it was not measured; infinite if the forecast was lost.
        notes: below each number.
        show: makes text of a number.
        reference: a number to compare with, and its name.
    """

    title: str
    text: str
    values: list[float | None]
    notes: list[str]
    show: Callable[[float | None], str] = number
    reference: tuple[str, float] | None = None

    def bars(self, runs: Sequence[Contents], compare: bool) -> list[Bar]:
        """Bars from zero, the best one marked if runs can be compared."""
        shown = (*self.values, self.reference and self.reference[1])
        top = max((v for v in shown if v is not None and math.isfinite(v)), default=0.0)
        winner = best(self.values) if compare else None

        def share(value: float) -> float:
            if math.isinf(value):
                return 100.0
            return 100 * value / top if top else 0.0

        bars = [
            Bar(run.label, run.style, self.show(value), share(value), note, i == winner)
            for i, (run, value, note) in enumerate(zip(runs, self.values, self.notes, strict=True))
            if value is not None
        ]
        if self.reference is not None:
            name, value = self.reference
            bars.append(Bar(name, "reference", self.show(value), share(value)))
        return bars


@dataclass(frozen=True)
class Verdict:
    """Who is ahead: the labels come first, then the text."""

    title: str
    text: str
    leaders: list[str]


def headline(runs: Sequence[Contents]) -> Section:
    """Cards, and sentences that compare the runs if they can be compared."""
    compare = comparable(runs)
    shown = cards(runs)
    verdicts = [v for card in shown if compare and (v := verdict(card, runs)) is not None]
    if verdicts and (sizes := _sizes(runs)):
        verdicts.append(Verdict("Are they of the same size?", sizes, []))
    content = {
        "comparable": compare,
        "cards": [
            {"title": card.title, "text": card.text, "bars": card.bars(runs, compare)}
            for card in shown
        ],
        "verdicts": verdicts,
    }
    return Section("short", "In short", "headline.html", content)


def cards(runs: Sequence[Contents]) -> list[Card]:
    """Those for which there is a number."""
    drafts = [_one_step(runs), _rollout(runs), _observers(runs), _equivariance(runs), _cost(runs)]
    return [card for card in drafts if any(v is not None for v in card.values)]


def _one_step(runs: Sequence[Contents]) -> Card:
    persistence = first_known(
        run.number(lambda e: e.one_step.persistence.get("relative_l2")) for run in runs
    )
    squares = [run.number(lambda e: e.one_step.total.get("mse")) for run in runs]
    return Card(
        "How accurate is a forecast?",
        "Relative L² error of one step on test data, which no run was trained on.",
        [run.number(lambda e: e.one_step.total.get("relative_l2")) for run in runs],
        [f"mean square error {number(square)}" for square in squares],
        percent,
        None
        if persistence is None or not comparable(runs)
        else ("persistence forecast", persistence),
    )


def _rollout(runs: Sequence[Contents]) -> Card:
    rollouts = [None if run.evaluation is None else run.evaluation.rollout for run in runs]
    step = min((len(rollout.steps) for rollout in rollouts if rollout), default=0)
    persistence = first_known(known(r.persistence[step - 1]) for r in rollouts if r and step)
    return Card(
        f"And after {step} steps?",
        f"Relative L² error of step {step} of rollouts, each step from the forecast before it.",
        [None if not (r and step) else _error_at(r, step) for r in rollouts],
        [_lasts(r) if r else "" for r in rollouts],
        lambda value: "lost" if value == math.inf else percent(value),
        None
        if persistence is None or not comparable(runs)
        else ("persistence forecast", persistence),
    )


def _error_at(rollout: RolloutErrors, step: int) -> float | None:
    """Infinite if a trajectory was given up before."""
    return math.inf if rollout.stable_steps < step else known(rollout.relative_l2[step - 1])


def _lasts(rollout: RolloutErrors) -> str:
    """How long forecasts last, and how many do not."""
    steps = len(rollout.steps)
    correlation, persistence = (
        f"≥ {steps}" if frames is None else number(frames)
        for frames in (rollout.correlation_frames, rollout.persistence_frames)
    )
    note = f"correlated for {correlation} steps, better than persistence for {persistence}"
    if rollout.lost:
        note += f"; {rollout.lost} of {len(rollout.stable)} trajectories lost"
    return note


def _cost(runs: Sequence[Contents]) -> Card:
    costs = [None if run.evaluation is None else run.evaluation.cost for run in runs]
    machines = {str(run.evaluation.machine) for run in runs if run.evaluation is not None}
    return Card(
        "What does it cost?",
        "Time for one forecast, when several are computed together."
        + " The runs were measured on different machines." * (len(machines) > 1),
        [known(1000 / c.windows_per_second) if c and c.windows_per_second else None for c in costs],
        [f"{count(c.parameters)} parameters, {size(c.peak_bytes)} of memory" if c else ""
         for c in costs],
        lambda value: f"{number(value)} ms",
    )  # fmt: skip


def _observers(runs: Sequence[Contents]) -> Card:
    names = sorted({part.kind for run in runs if (part := run.observers)})
    notes = []
    for run in runs:
        note = ""
        if (part := run.observers) is not None:
            own = part.mse[0]
            note = f"{times(part.mean / own)} its error for the observer of the data, " * (own > 0)
            note += f"worst {number(part.worst)}"
        notes.append(note)
    return Card(
        f"And for {listing(names) if names else 'other'} observers?",
        "Mean square error of forecasts of the same events, described by other observers."
        f"{observed(runs)}",
        [known(part.mean) if (part := run.observers) else None for run in runs],
        notes,
    )


def _equivariance(runs: Sequence[Contents]) -> Card:
    """What a grid keeps exactly; below it what is right up to the resolution of the grid."""
    return Card(
        "Is it equivariant?",
        "Largest relative difference between transforming before and after the forecast, over "
        "translations and the symmetries of the grid, which are exact for an equivariant network.",
        [_exact(run) for run in runs],
        [_resolved(run) for run in runs],
    )


def _exact(run: Contents) -> float | None:
    """The largest violation that no grid excuses; translations are not seen beside borders."""
    if run.evaluation is None:
        return None
    symmetry = run.evaluation.symmetry
    exact = [symmetry.translation] * symmetry.interior + [symmetry.point_group]
    for part in (symmetry.rotation, symmetry.boost):
        if part is not None and not any(part.floors):  # on points nothing is interpolated
            exact += part.errors
    return largest(exact)


def _resolved(run: Contents) -> str:
    """Translations and the point group by themselves, and what a finer grid would reduce."""
    if run.evaluation is None:
        return ""
    symmetry = run.evaluation.symmetry
    borders = "" if symmetry.interior else " (borders included)"
    note = (
        f"translations {number(known(symmetry.translation))}{borders}, point group "
        f"{number(known(symmetry.point_group))}"
    )
    for name, (title, form) in MOTIONS.items():
        if (part := run.motion(name)) is not None:
            note += (
                f"; {title} up to {form.format(max(part.values))} {number(largest(part.errors))}"
            )
            if floor := largest(part.floors):
                note += f", a matter of resolution: interpolation alone {number(floor)}"
    return note


def best(values: Sequence[float | None]) -> int | None:
    """The position of the smallest of several numbers; None if there is a tie."""
    ranked = sorted((v, i) for i, v in enumerate(values) if v is not None)
    return ranked[0][1] if len(ranked) > 1 and ranked[0][0] < ranked[1][0] else None


def verdict(card: Card, runs: Sequence[Contents]) -> Verdict | None:
    """Which run is ahead, and by how much; nothing about one run alone."""
    ranked = sorted((v, i) for i, v in enumerate(card.values) if v is not None)
    if len(ranked) < 2:
        return None
    low = ranked[0][0]
    leaders = [runs[i].label for v, i in ranked if v == low]
    if len(leaders) > 1:
        return Verdict(card.title, f" tie at {card.show(low)}.", leaders)
    second, position = ranked[1]
    if math.isinf(second):
        return Verdict(card.title, f" is lowest with {card.show(low)}; no other lasts.", leaders)
    ratio = f", {times(second / low)} as much" if low > 0 else ""
    text = (
        f" is lowest with {card.show(low)}; next is {runs[position].label} with "
        f"{card.show(second)}{ratio}."
    )
    return Verdict(card.title, text, leaders)


def _sizes(runs: Sequence[Contents]) -> str:
    """A sentence about models of very different sizes."""
    sizes = [(run.parameters, run.label) for run in runs if run.parameters]
    if not sizes:
        return ""
    (low, small), (high, large) = min(sizes), max(sizes)
    if high < 1.5 * low:
        return ""
    return f"{large} has {count(high)} parameters, {times(high / low)} as many as {small}."
