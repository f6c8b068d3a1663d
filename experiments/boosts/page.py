"""The page of results: story, table, verdicts and figures, all numbers from records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from cscnn._util.files import write_text
from cscnn.viz.figures import save
from experiments.boosts import PARTS, records
from experiments.boosts.figures import MOVING, animate_collision, plot_errors
from experiments.boosts.plan import Setting
from experiments.boosts.records import Record
from experiments.boosts.results import Results
from experiments.boosts.verdicts import verdicts

TITLES = {
    "sine_gordon": "Solitons in 1 + 1 dimensions",
    "charges": "The field of charges in 1 + 2 dimensions",
    "charges4d": "The field of charges in 1 + 3 dimensions",
}

STORY = """\
# Boosts on grids

After this page you know why Lorentz boosts fail on grids, which kernels keep them, and how well.
Networks here are trained on solutions seen at rest. Then observers in motion ask for forecasts of
the same solutions. `make boosts` trains and writes this page.

![Errors for observers in motion](figures/boosts.png)

![A collision of solitons, seen from two frames](figures/boosts.gif)

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

## Why no window works, and a point does

The kernels of Clifford-steerable networks commute with boosts as functions on spacetime. On a grid
they are cut off by a box of taps. A boost moves points along hyperbolas, which leave every box. So
what the box keeps in one frame is not what it keeps in another, at any resolution. The paper names
this limitation. No bounded window is invariant under boosts, with one exception: a single point.

What lives at a point are differential operators. `kernel="differential"` makes kernels of all
those that commute with O(p, q), see the [theory](explanation/theory.md). On a grid each derivative
becomes a finite difference. Nothing is cut off, and the error of the differences falls with the
distance of points.

## What counts as a forecast

The input is a window of `frames_in` frames. The output at each of its points x stands for the field
at x + Δ, where Δ is `frames_out` frames long and told to the network as a vector. Only the last
`frames_out` frames of the output are beyond the input, and only these count, in training and in
tests. An observer in motion has the boosted Δ, so x + Δ is beyond the last known frame for all of
these points too.

This matters. In the middle of the window x + Δ lies inside the input: a network that copies known
values is perfect there. Errors measured in the middle are those of a look-up, not of a forecast.

New events lie at the open border of time, where the taps reach beyond the data. What is put there
decides as much as the kernel. Zeros are an edge that does not move with the observer.
`open_padding: extrapolate` continues the fields instead, which makes differences one-sided. Points
within a margin of the borders of space do not count.

All models have the same windows, data, steps, and number of parameters. For each of them the same
search chooses, on validation data at rest, a variant (the order of derivatives, or the width of the
networks that make kernels), the padding and the learning rate: it changes one of them at a time,
and ends when no change is better.
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
    write_text(path, "\n".join(lines).rstrip() + "\n")
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
        "Relative error of new events by rapidity of the observer: mean over seeds, and half the "
        "distance of the best and the worst. Variant, padding and rate were chosen at rest.",
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
        f"Windows of {window} points at distance {setting.spacing_at(finer):g}, forecasts "
        f"{setting.frames_out * finer} frames later, margin {setting.margin * finer}; "
        f"{setting.params:,} parameters, {setting.network.get('blocks')} blocks, "
        f"{setting.network.get('kernel_size')} taps per axis, {setting.steps} steps of "
        f"{setting.batch} windows, {setting.seeds} seeds."
    )


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
        rows.append(_row(["the last known frame stays", *cells, "", ""]))
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
    lines = ["## Where they lose", ""]
    for task, setting in results.settings.items():
        groups = [
            ("distance of points", "resolution", lambda r: r.spacing),
            ("forecast later by", "displacement", lambda r: r.displacement),
        ]
        for title, part, value in groups:
            more = results.finished(task, part)
            if not more:
                continue
            same = [r for r in results.finished(task, "models") if r.model in setting.refined]
            lines += [f"{TITLES.get(task, task)}: {REASONS[part]}", ""]
            lines += [_row([title, "model", "at rest", f"rapidity {MOVING:g}", "ratio"])]
            lines += ["|---:|---|---:|---:|---:|"]
            for size in sorted({value(r) for r in (*same, *more)}):
                for key in setting.refined:
                    own = [r for r in (*same, *more) if r.model == key and value(r) == size]
                    if own:
                        lines += [_row([f"{size:g}", results.models[key].label, *_ratio(own)])]
            lines += [""]
    return [*lines, DISCONTINUITIES, ""]


REASONS = {
    "resolution": "the same region of spacetime with other distances of points, and the same taps. "
    "Options are those chosen on the grid of the comparison. On coarse grids "
    "differences are poor, above all for contracted solitons. On fine grids the same taps see less "
    "of the past, so errors at rest may grow. Networks are trained anew on each grid. So the "
    "excess in a moving frame is that of the differences and of what they learned otherwise. It "
    "falls, but more slowly than at second order. A network with the same weights on finer grids "
    "converges at the rate of its differences (tests/kernels/test_differential.py).",
    "displacement": "a forecast that is later by more has to be continued farther from what the "
    "taps see.",
}

DISCONTINUITIES = """\
Differences need fields that are smooth at the distance of points. A kink contracted at rapidity 1
is few points wide, and errors there are those of the last column of the first table. Shocks and
jumps are worse: they are not resolved on any grid. The [theory](explanation/theory.md) has numbers
for discs."""


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
        f"{len(done)} trainings in [boosts.json](boosts.json), {hours:.1f} hours one after the "
        "other, beside other work. " + " ".join(f"Machine: {m}." for m in machines),
        "",
    ]
