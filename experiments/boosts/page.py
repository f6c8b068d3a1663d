"""The page of results: story, table, verdicts and figures, all numbers from records."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

from cscnn._util.files import write_text
from cscnn.viz.figures import save
from experiments.boosts import PARTS, records
from experiments.boosts.figures import MOVING, animate_collision, plot_errors
from experiments.boosts.plan import Setting
from experiments.boosts.records import Record
from experiments.boosts.results import Results
from experiments.boosts.verdicts import verdicts
from experiments.markdown import page_text

TITLES = {
    "sine_gordon": "Solitons in 1 + 1 dimensions",
    "charges": "The field of charges in 1 + 2 dimensions",
    "charges4d": "The field of charges in 1 + 3 dimensions",
}

STORY = """\
# Boosts on grids

After this page you know why Lorentz [boosts](glossary.md#boost) fail on grids, which kernels keep
them, and how well. Networks are trained on solutions at rest, and tested on the same solutions as
observers in motion see them. `make boosts` trains the networks and writes this page.

![Errors for observers in motion, and by grid spacing](figures/boosts.png)

*Left: relative forecast error by rapidity of the observer, for networks trained at rest. The error
of differential kernels grows far less than that of the others. Right: growth of the error from rest
to rapidity 0.5, by grid spacing. For differential kernels it falls on finer grids; for kernels over
a box it does not. Bands and dots show the seeds.*

![A collision of solitons, seen from two frames](figures/boosts.gif)

*The same collision of solitons, as an observer at rest and an observer in motion see it.*

## Try it

These commands make data, train a small network with differential kernels on solitons at rest, and
measure it for observers in motion:

    cscnn generate sine_gordon --preset small --out data/solitons
    cscnn train --preset sine_gordon_small --out runs/solitons \\
        --data.train data/solitons/train.h5 --data.valid data/solitons/valid.h5 \\
        --data.test data/solitons/test.h5
    cscnn evaluate runs/solitons

The part "boosted observers" of the table has the error at each rapidity. For comparison train
kernels over a box of taps:

    cscnn train --preset sine_gordon_small --out runs/taps \\
        --data.train data/solitons/train.h5 --data.valid data/solitons/valid.h5 \\
        --data.test data/solitons/test.h5 \\
        --model.options '{blocks: 2, kernel_size: 5, kernel: complete, activation: product}'
    cscnn evaluate runs/taps
    cscnn report runs/solitons runs/taps --out report.html

## Why windows fail and points work

The kernels of Clifford-steerable networks commute with boosts as functions on spacetime. On a grid
they are cut off by a box of taps. A boost moves points along hyperbolas, which leave every box. So
the box cuts off different parts of the kernel in different frames, at any resolution. The paper
names this limitation. No bounded window is invariant under boosts, with one exception: a single
point.

The operators that act at a point are differential operators. `kernel="differential"` builds kernels
from all those that commute with O(p, q) ([theory](explanation/theory.md)). On a grid each
derivative becomes a finite difference. Nothing is cut off, and the error of the differences falls
with the grid spacing.

## What counts as a forecast

The input is a window of `frames_in` frames. The output at a point x is the forecast of the field at
x + Δ. The displacement Δ is `frames_out` frames long, and the network gets it as a vector. Only the
last `frames_out` frames of the output are beyond the input. Only these count, in training and in
tests. For an observer in motion Δ is boosted, and x + Δ is beyond the last known frame for all of
these points, too.

This matters. In the middle of the window x + Δ lies inside the input, and a network that copies
known values is perfect there. Errors in the middle of the window would not be errors of a forecast.

New events lie at the open border of time, where the taps reach beyond the data. The padding there
matters as much as the kernel. Zeros are an edge that does not move with the observer.
`open_padding: extrapolate` continues the fields instead, which makes differences one-sided. Points
within a margin of the borders of space do not count.

All models have the same windows, data, steps, and number of parameters. For each model the same
search chooses three options on validation data at rest:

- a variant: the order of derivatives, or the width of kernel networks;
- the padding;
- the learning rate.

It changes one of them at a time, and ends when no change is better.
"""


def write_page(results: Results, folder: Path) -> Path:
    """Write the page, its records and its figures, with all that there are records of.

    Args:
        results: of the study.
        folder: of boosts.md, boosts.json and, in a folder figures, the pictures.
    """
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    lines = [STORY]
    for task in results.settings:
        lines += _section(results, task)
    lines += _limits(results)
    lines += _effort(results)
    task = "sine_gordon" if "sine_gordon" in results.settings else next(iter(results.settings))
    models, grids = (results.finished(task, part) for part in ("models", "resolution"))
    labels = {key: results.models[key].label for key in results.settings[task].models}
    figure = plot_errors(models, [*models, *grids], labels)
    save(figure, folder / "figures" / "boosts.png", dpi=110)
    animate_collision(folder / "figures" / "boosts.gif")
    records.save(folder / "boosts.json", results.all_records())
    path = folder / "boosts.md"
    write_text(path, page_text(lines))
    return path


def _section(results: Results, task: str) -> list[str]:
    """Table and verdicts of a task, and what is missing."""
    setting, found = results.settings[task], results.finished(task, "models")
    lines = [f"## {TITLES.get(task, task)}", "", _setting_line(setting), ""]
    if gaps := results.unfinished(task):
        lines += [f"Not finished: {'; '.join(gaps)}.", ""]
    if not found:
        return lines
    lines += [
        f"{_lowest(results, task, found)} "
        "Relative error of new events by rapidity of the observer: mean over seeds, ± half the "
        "distance between the best and the worst. Variant, padding and rate were chosen at rest.",
        "",
        *_table(results, task, found),
        "",
    ]
    every = [record for part in PARTS for record in results.finished(task, part)]
    judged = verdicts(task, every, setting.seeds)
    if judged:
        lines += ["| target | verdict | of each seed |", "|---|---|---|"]
        lines += [f"| {v.text} | {v.verdict} | {v.numbers} |" for v in judged]
        lines += [""]
    return lines


def _setting_line(setting: Setting) -> str:
    finer = setting.refinement
    window = " × ".join(str(n * finer) for n in (setting.frames_in, *setting.grid))
    return (
        f"Windows have {window} points with spacing {setting.spacing_at(finer):g}. Forecasts are "
        f"{setting.frames_out * finer} frames ahead; the margin is {setting.margin * finer} "
        f"points. Networks: {setting.params:,} parameters, "
        f"{_count(setting.network.get('blocks'), 'block')}, "
        f"{setting.network.get('kernel_size')} taps per axis. Training: {setting.steps} steps, "
        f"batch {setting.batch}, {_count(setting.seeds, 'seed')}."
    )


def _lowest(results: Results, task: str, found: Sequence[Record]) -> str:
    """Which model is the best for the fastest observer, the persistence forecast included."""
    setting = results.settings[task]
    fastest = setting.rapidities[-1]
    errors: dict[str, list[float]] = {}
    for record in found:
        label = results.models[record.model].label
        errors.setdefault(label, []).append(record.error(fastest))
        if record.persistence:
            errors["the persistence forecast"] = [record.persistence[-1]]
    best = min(errors, key=lambda label: sum(errors[label]) / len(errors[label]))
    return f"**Lowest error at rapidity {fastest:g}: {best}.**"


def _count(number: object, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _table(results: Results, task: str, found: Sequence[Record]) -> list[str]:
    setting = results.settings[task]
    head = ["model", *(f"{r:g}" for r in setting.rapidities), "chosen", "parameters"]
    rows = [_row(head), "|---|" + "---:|" * (len(head) - 1)]
    for key in setting.models:
        own = [r for r in found if r.model == key]
        if own:
            first = own[0]
            cells = [score([r.error(rapidity) for r in own]) for rapidity in setting.rapidities]
            cells += [f"{first.variant}, {first.padding}, {first.rate:g}", f"{first.parameters:,}"]
            rows.append(_row([results.models[key].label, *cells]))
    if trained := [r for r in found if r.persistence]:
        cells = [f"{error:.3f}" for error in trained[0].persistence]
        rows.append(_row(["persistence forecast", *cells, "", ""]))
    return rows


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def score(values: Sequence[float]) -> str:
    """The mean of several seeds, and half the distance of the best and the worst."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return "diverged"
    text = f"{sum(finite) / len(finite):.3f}"
    if len(finite) > 1:
        text += f" ± {(max(finite) - min(finite)) / 2:.3f}"
    lost = len(values) - len(finite)
    return f"{text} ({lost} of {len(values)} diverged)" if lost else text


def _limits(results: Results) -> list[str]:
    """Where differential kernels lose: coarse grids, fast observers, long displacements."""
    lines = ["## Limits of differential kernels", ""]
    for task, setting in results.settings.items():
        groups: list[tuple[str, str, Callable[[Record], float]]] = [
            ("spacing", "resolution", lambda r: r.spacing),
            ("time ahead", "displacement", lambda r: r.displacement),
            ("factor of steps", "steps", lambda r: r.prolongation),
        ]
        for title, part, value in groups:
            more = results.finished(task, part)
            if not more:
                continue
            same = [r for r in results.finished(task, "models") if r.model in setting.refined]
            lines += [f"{HEADINGS[part]} ({task}). {REASONS[part]}", ""]
            lines += [_row([title, "model", "at rest", f"rapidity {MOVING:g}", "ratio"])]
            lines += ["|---:|---|---:|---:|---:|"]
            for size in sorted({value(r) for r in (*same, *more)}):
                for key in setting.refined:
                    own = [r for r in (*same, *more) if r.model == key and value(r) == size]
                    if own:
                        lines += [_row([f"{size:g}", results.models[key].label, *_ratio(own)])]
            lines += [""]
    return [*lines, DISCONTINUITIES, ""]


HEADINGS = {
    "resolution": "**On finer grids the excess error of differential kernels falls**",
    "displacement": "**Errors grow with the length of the forecast**",
    "steps": "**Longer training**",
}

REASONS = {
    "resolution": "All grids cover the same region of spacetime, with the same number of taps. "
    "Options are those chosen on the grid of the comparison. On coarse grids differences are poor, "
    "above all for contracted solitons. On fine grids the taps see less of the past, so errors at "
    "rest may grow. Networks are trained anew on each grid. So the excess in a moving frame has "
    "two parts: the error of the differences, and the differences between the trained networks. It "
    "falls, but more slowly than at second order. A network with the same weights on finer grids "
    "converges at the rate of its differences (tests/kernels/test_differential.py).",
    "displacement": "A forecast further ahead has to extrapolate further beyond the taps.",
    "steps": "Options are those chosen with the shortest training.",
}

DISCONTINUITIES = """\
Differences need fields that are smooth on the scale of the spacing. A kink contracted at rapidity 1
is only a few points wide; its errors are in the last column of the first table. Shocks and jumps
are worse, since no grid resolves them. The
[theory](explanation/theory.md#where-differential-kernels-lose) has numbers for discs."""


def _ratio(own: Sequence[Record]) -> list[str]:
    at_rest, moving = ([r.error(rapidity) for r in own] for rapidity in (0.0, MOVING))
    ratios = [b / a for a, b in zip(at_rest, moving, strict=True) if math.isfinite(a)]
    mean = f"{sum(ratios) / len(ratios):.2f}" if ratios else ""
    return [score(at_rest), score(moving), mean]


def _effort(results: Results) -> list[str]:
    """How long the trainings took, and on what."""
    done = results.all_records()
    if not done:
        return []
    machines = sorted({", ".join(f"{k} {v}" for k, v in r.machine.items()) for r in done})
    hours = sum(record.seconds for record in done) / 3600
    return [
        "## How it was measured",
        "",
        f"There are {len(done)} trainings in [boosts.json](boosts.json). One after the other they "
        f"take {hours:.1f} hours, on a machine with other load. "
        + " ".join(f"Machine: {m}." for m in machines),
        "",
    ]
