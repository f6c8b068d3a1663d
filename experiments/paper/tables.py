"""The tables of the results page, as lines of Markdown."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from experiments.paper.figures import labels, motions
from experiments.paper.outcomes import Outcome, Score, scores, step_seconds
from experiments.paper.plan import Setting


def setting_table(settings: Iterable[Setting]) -> list[str]:
    """Sizes and options of each task."""
    rows = [
        "| task | parameters | steps | batch | learning rates | network | data |",
        "|---|---:|---:|---:|---|---|---|",
    ]
    for setting in settings:
        parts = [f"{name} {value}" for name, value in setting.options.items()]
        parts += [f"warm-up over {setting.warmup} steps"] if setting.warmup else []
        parts += [f"{name}: {_listed(own)}" for name, own in setting.own_options.items()]
        parts += [f"{k} kernel networks of width {w}" for k, w in setting.hidden_dim.items()]
        options = {**setting.simulator, **setting.data}
        preset, batch = options.pop("preset", "full"), options.pop("batch", 8)
        cells = (
            setting.task,
            f"{setting.params:,}",
            setting.steps,
            batch,
            _rates(setting),
            ", ".join(parts) or "as published",
            f"{preset} " + ", ".join(f"{name}={value}" for name, value in options.items()),
        )
        rows.append(_row(cells))
    return [*rows, ""]


def _row(cells: Iterable[object]) -> str:
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def _listed(options: Mapping[str, Any]) -> str:
    return " ".join(f"{name} {value}" for name, value in options.items())


def _rates(setting: Setting) -> str:
    """All learning rates of a search, those that need not be tried in brackets."""
    return ", ".join(
        f"{rate:g}" if rate in setting.rates else f"({rate:g})"
        for rate in sorted((*setting.rates, *setting.further_rates))
    )


def machine_line(machine: Mapping[str, str]) -> str:
    """A machine in one line."""
    return ", ".join(f"{name} {value}" for name, value in machine.items())


def effort(outcomes: Sequence[Outcome]) -> list[str]:
    """How long all trainings take, and on what machines they ran."""
    done = [o for o in outcomes if o.seconds_per_step is not None]
    if not done:
        return []
    seconds = sum(o.steps * (o.seconds_per_step or 0.0) for o in done)
    machines = Counter(machine_line(o.record.machine) for o in done if o.record.machine)
    sentences = [
        f"The steps of all {len(done)} trainings take {seconds / 3600:.1f} hours, one training at "
        "a time. Simulation, validation and measurements are not included.",
        *(f"Machine of {count} of them: {name}." for name, count in machines.most_common()),
    ]
    return [" ".join(sentences), ""]


def model_table(outcomes: Sequence[Outcome], setting: Setting) -> list[str]:
    """A row for each model: errors by size of the training set, sizes and cost."""
    sizes = sorted({o.trajectories for o in outcomes})
    by_key, seconds = scores(outcomes), step_seconds(outcomes)
    head = [
        "model", *(f"{n} simulations" for n in sizes), "steps", "learning rate", "width",
        "parameters", "degrees of freedom", "s / step", "s of all steps", "grid symmetries",
    ]  # fmt: skip
    rows = [_row(head), "|---|" + "---:|" * (len(head) - 1)]
    best = {
        n: min((by[n].mean for by in by_key.values() if n in by and not by[n].diverged), default=0)
        for n in sizes
    }
    for key, label in labels(outcomes).items():
        cells = [_score(by_key[key].get(n), best[n]) for n in sizes]
        measured = [o for o in outcomes if o.key == key and o.record.measured]
        if measured:
            cells += _properties(measured, setting, seconds[key])
        rows.append(_row([label, *cells]))
    return [*rows, *_persistence(outcomes)]


def lowest(outcomes: Sequence[Outcome]) -> list[str]:
    """The caption of a table: which model has the lowest error with the most data."""
    size = max(o.trajectories for o in outcomes)
    means = {
        label: by[size].mean
        for key, label in labels(outcomes).items()
        if size in (by := scores(outcomes)[key]) and not by[size].diverged
    }
    if not means:
        return []
    best = min(means, key=lambda label: means[label])
    return [
        f"**Lowest error with {size} simulations: {best}.** Test errors of one step; lower is "
        "better.",
        "",
    ]


def _score(score: Score | None, best: float) -> str:
    """The cell of an error, in bold if no other is less."""
    if score is None:
        return ""
    ahead = not score.diverged and score.mean == best
    return f"**{score}**" if ahead else str(score)


def _properties(outcomes: Sequence[Outcome], setting: Setting, seconds: float) -> list[str]:
    """What the trials of a model have in common, from that of the first; the worst symmetry."""
    first = outcomes[0]
    measured = first.record.measured
    assert measured is not None
    violation = max(o.point_group or 0.0 for o in outcomes)
    width = measured.options.get("width", "")
    return [
        f"{first.steps}",
        _rate(first, setting),
        " / ".join(str(w) for w in width) if isinstance(width, list) else f"{width}",
        f"{measured.parameters:,}",
        f"{measured.degrees_of_freedom:,}",
        f"{seconds:.3f}",
        f"{first.steps * seconds:.0f}",
        f"{violation:.0e}" if math.isfinite(violation) else "not finite",
    ]


def _rate(outcome: Outcome, setting: Setting) -> str:
    """A learning rate, and whether it is the smallest or the largest of a search."""
    rate, tried = outcome.record.plan.rate, (*setting.rates, *setting.further_rates)
    if outcome.borrowed or min(tried) == max(tried):
        return f"{rate:g}"
    edge = "≤ " if rate == min(tried) else "≥ " if rate == max(tried) else ""
    return f"{edge}{rate:g}"


def _persistence(outcomes: Sequence[Outcome]) -> list[str]:
    """How good the best run is, beside the persistence forecast."""
    errors = [(o, o.record.measured.one_step) for o in outcomes if o.record.measured]
    if not errors:
        return []
    persistence = errors[0][1].persistence["relative_l2"]
    size = max(o.trajectories for o in outcomes)
    largest = [(o, e) for o, e in errors if o.trajectories == size]
    text = "no model of the largest size has finished"
    if largest:
        best, one_step = min(largest, key=lambda pair: pair[1].scaled_mse)
        error = one_step.total["relative_l2"]
        text = f"the best run of the table ({best.label}) has {error:.3g}"
    return ["", f"The persistence forecast has a relative error of {persistence:.3g}; {text}."]


def rotation_table(outcomes: Sequence[Outcome]) -> list[str]:
    """Violations under rotations by any angle: a row for each model, a column for each angle."""
    measured = [(o, errors) for o in outcomes if (errors := motions(o, "rotation")) is not None]
    if not measured:
        return []
    angles = measured[0][1].values
    rows = [_row(["model", *(f"{angle:g}°" for angle in angles)])]
    rows.append("|---|" + "---:|" * len(angles))
    for outcome, errors in measured:
        rows.append(_row([outcome.label, *(f"{e:.2g}" for e in errors.errors)]))
    floors = [max(errors.floors[i] for _, errors in measured) for i in range(len(angles))]
    return [*rows, _row(["interpolation alone, at most", *(f"{f:.2g}" for f in floors)])]


def borrowed_rates(outcomes: Sequence[Outcome]) -> list[str]:
    """Which ablations have the learning rate of another network."""
    names = dict.fromkeys(f'"{o.label}"' for o in outcomes if o.borrowed)
    if not names:
        return []
    return [
        "These networks are trained on the middle training size. Some have the learning rate of "
        "the network that they vary; a rate of their own might suit them better: "
        f"{', '.join(names)}.",
        "",
    ]
