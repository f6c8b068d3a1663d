"""The results page: tables, figures and verdicts, all from records."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cscnn.atomic import write_text
from cscnn.data import open_fields
from cscnn.study import figures
from cscnn.study.claims import claims
from cscnn.study.plan import Setting
from cscnn.study.runner import Runner
from cscnn.study.summary import Record, point_group, scores, step_seconds
from cscnn.viz import draw_kernel_story, plot_comparison, plot_rollouts
from cscnn.viz.backend import pyplot, save


def write_page(runner: Runner, tasks: Sequence[str], folder: Path) -> Path:
    """Draw everything that there are records of.

    Args:
        runner: of the study.
        tasks: which.
        folder: of results.md and, in a folder figures, the pictures.
    """
    pictures = folder / "figures"
    pictures.mkdir(parents=True, exist_ok=True)
    scaling = {task: found for task in tasks if (found := runner.records(task, "scaling"))}
    ablations = {task: found for task in tasks if (found := runner.records(task, "ablations"))}
    longer = {task: found for task in tasks if (found := runner.records(task, "time"))}
    study = runner.study
    every = [record for task in tasks for record in runner.records(task)]
    seconds = {task: runner.seconds(task) for task in tasks}
    timed = all(r["contender"] in seconds[r["task"]] for r in every)
    timings = [runner.timing(task) for task in scaling] if timed else []
    discussed = (folder / "results_discussion.md").is_file()
    comments = " What we make of it: [discussion](results_discussion.md)." if discussed else ""
    lines = [
        f"# Results: the paper's experiments at size `{study.name}`",
        "",
        f"Written by `cscnn study --preset {study.name}`.{comments}",
        "",
        "Every model has the same budget of parameters and sees the same windows in the same order "
        "for the same number of steps (AdamW, cosine schedule, gradients clipped at norm 1), "
        "unless said otherwise. Ours is told the constant vectors of its task (the direction of "
        "buoyancy, the displacement from input to target), which others are not; the ablations say "
        "what that does. Learning rates are chosen on the validation split at the middle training "
        "size, and more of them (in brackets) are tried while the best is the least or the "
        "largest; `≤` and `≥` mark the ends of that search. Errors are mean squares of one step on "
        "the test split, in units of the variance of each field; relative errors are roots, in "
        "units of the target. `±` is half the distance of best and worst seed. Seconds per step "
        "are those of a forward and a backward pass"
        f"{_timed(timings)}.",
        "",
        *_settings([study.settings[task] for task in tasks]),
        *_effort(every),
    ]

    missing = {task: len(runner.missing(task)) for task in tasks}
    counts = [f"{task} ({count} trainings or more)" for task, count in missing.items() if count]
    if counts:
        lines += [f"Not run yet: {', '.join(counts)}.", ""]

    def picture(name: str, figure: Any, alt: str) -> list[str]:
        if figure is None:
            return []
        save(figure, pictures / f"results_{name}.png", dpi=85)
        pyplot().close(figure)
        return [f"![{alt}](figures/results_{name}.png)", ""]

    if scaling:
        lines += ["## Error by number of training simulations", ""]
        lines += picture(
            "scaling", figures.plot_scaling(scaling), "test error against training simulations"
        )
        for task, found in scaling.items():
            lines += [f"### {task}", "", *_table(found, study.settings[task]), ""]
        lines += ["## What was expected, and what was found", ""]
        lines += ["| task | statement | holds | numbers |", "|---|---|---|---|"]
        for task, found in scaling.items():
            verdicts = claims(
                task,
                found,
                ablations.get(task, ()),
                longer.get(task, ()),
                study.settings[task].longer,
                study.scaling[task],
                study.settings[task].seeds,
                max(study.settings[task].sizes),
            )
            for claim in verdicts:
                lines.append(f"| {task} | {claim.text} | {claim.verdict} | {claim.found} |")
        lines.append("")
        if longer:
            lines += [*TIME, ""]
        for task, found in longer.items():
            size = max(r["trajectories"] for r in found)
            slow = [
                r for r in scaling.get(task, ())
                if r["trajectories"] == size and r["contender"] not in study.settings[task].longer
            ]  # fmt: skip
            both = sorted([*found, *slow], key=lambda r: study.scaling[task].index(r["contender"]))
            lines += [f"### {task}", "", *_table(both, study.settings[task]), ""]
        lines += ["## Convergence", ""]
        for task, found in scaling.items():
            lines += [f"{task}, largest training size:", ""]
            alt = f"validation error of {task} by steps and by time"
            lines += picture(f"convergence_{task}", figures.plot_convergence(found), alt)
        lines += [
            "## Symmetry of the trained models",
            "",
            "The paper's relative error under turns and boosts of inputs by interpolation "
            "([what is measured](evaluation.md)), and test errors of the same events for other "
            "observers.",
            "",
        ]
        alt = "equivariance error by angle and rapidity"
        lines += picture("equivariance", figures.plot_equivariance(scaling), alt)
        alt = "relative test error by frame of the observer"
        lines += picture("frames", figures.plot_frames(scaling), alt)
    if ablations:
        lines += [
            "## Ablations",
            "",
            *_borrowed([r for found in ablations.values() for r in found]),
        ]
        lines += picture(
            "ablations", figures.plot_ablations(ablations), "errors without one ingredient"
        )
        for task, found in ablations.items():
            lines += [f"### {task}", "", *_table(found, study.settings[task]), ""]
    lines += ["## Forecasts", ""]
    for task, found in scaling.items():
        shown = [r for r in found if r["contender"] in SHOWN and "rollout" in r]
        alt = f"errors of rollouts of {task} by time"
        lines += picture(f"rollouts_{task}", _rollouts(shown, task), alt)
        alt = f"target, predictions and errors of {task}"
        lines += picture(f"fields_{task}", _fields(runner, shown, task), alt)
    lines += ["## Kernels", ""]
    for name, caption in draw_kernel_story(pictures):
        lines += [f"![{caption}](figures/{name})", "", caption, ""]
    path = folder / "results.md"
    write_text(path, "\n".join(lines).rstrip() + "\n")
    return path


TIME = (
    "## Error at equal training time",
    "",
    "Networks whose steps are cheaper than ours take so many more of them that they compute about "
    "as long, with the same learning rates and the largest training set. Slower ones take the same "
    "steps as ours.",
)

#: Models in pictures of forecasts, and fields of them.
SHOWN = ("resnet", "cs_resnet", "ours")
FIELDS = {"navier_stokes": ["smoke"], "maxwell3d": ["electric"]}


def _rollouts(records: Sequence[Record], task: str) -> Any | None:
    if not records:
        return None
    curves = {r["label"]: (r["rollout"]["times"], r["rollout"]["relative_l2"]) for r in records}
    first = records[0]["rollout"]
    still = (first["times"], first["persistence"]["relative_l2"])
    return plot_rollouts(curves, persistence=still, title=task)


def _fields(runner: Runner, records: Sequence[Record], task: str) -> Any | None:
    """None where the runs are those of somebody else, whose fields are not kept."""
    samples = {}
    for record in records:
        path = runner.samples(record)
        if path.is_file():
            with np.load(path) as arrays:
                samples[record["label"]] = dict(arrays)
    file = runner.out / "data" / task / "test.h5"
    if not samples or not file.is_file():
        return None
    with open_fields(file) as source:
        return plot_comparison(samples, source.header, fields=FIELDS.get(task), title=task)


def _machine(found: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in found.items())


def _timed(timings: Sequence[Mapping[str, Any]]) -> str:
    """How seconds were measured, and where."""
    if not timings:
        return ", the least of all runs"
    machines = dict.fromkeys(_machine(timing["machine"]) for timing in timings)
    return f", the least of some side by side ({'; '.join(machines)})"


def _options(options: Mapping[str, Any]) -> str:
    return " ".join(f"{k} {v}" for k, v in options.items())


def _settings(settings: Iterable[Setting]) -> list[str]:
    rows = [
        "| task | parameters | steps | batch | learning rates | network | data |",
        "|---|---:|---:|---:|---|---|---|",
    ]
    for s in settings:
        parts = [f"{k} {v}" for k, v in s.model.items()]
        parts += [f"warm-up over {s.warmup} steps"] if s.warmup else []
        parts += [f"{name}: {_options(options)}" for name, options in s.own.items()]
        parts += [f"{name} kernel networks of width {w}" for name, w in s.kernel_width.items()]
        network = ", ".join(parts) or "as published"
        options = {k: v for k, v in s.simulator.items() if k != "preset"}
        data = f"{s.simulator.get('preset', 'paper')} " + ", ".join(
            f"{k}={v}" for k, v in {**options, **s.data}.items() if k != "batch"
        )
        batch = s.data.get("batch", 8)
        every = sorted((*s.rates, *s.further_rates))
        rates = ", ".join(f"{rate:g}" if rate in s.rates else f"({rate:g})" for rate in every)
        rows.append(
            f"| {s.task} | {s.params:,} | {s.steps} | {batch} | {rates} | {network} | {data} |"
        )
    return [*rows, ""]


def _effort(records: Sequence[Record]) -> list[str]:
    done = [r for r in records if "curve" in r and "seconds_per_step" in r]
    if not done:
        return []
    seconds = sum(r["curve"]["step"][-1] * r["seconds_per_step"] for r in done)
    machines = Counter(_machine(r["machine"]) for r in done if "machine" in r)
    lines = [
        f"{len(done)} trainings; their steps take {seconds / 3600:.1f} hours, one training at a "
        "time; data, validation and measurements come on top.",
        *(f"Machine of {count} of them: {name}." for name, count in machines.most_common()),
    ]
    return [" ".join(lines), ""]


def _borrowed(records: Sequence[Record]) -> list[str]:
    names = dict.fromkeys(f'"{r["label"]}"' for r in records if r["borrowed"])
    if not names:
        return []
    return [
        f"With the middle training size. {', '.join(names)} have the learning rate of the network "
        "that they vary; their own might suit them better.",
        "",
    ]


def _rate(rate: float, setting: Setting, borrowed: bool) -> str:
    """A learning rate, and whether it is the least or the largest of a search."""
    if borrowed:
        return f"{rate:g}"
    every = (*setting.rates, *setting.further_rates)
    low, high = min(every), max(every)
    edge = "" if low == high else "≤ " if rate == low else "≥ " if rate == high else ""
    return f"{edge}{rate:g}"


def _table(records: Sequence[Record], setting: Setting) -> list[str]:
    sizes = sorted({r["trajectories"] for r in records})
    found = scores(records)
    seconds = step_seconds(records)
    head = [
        "model", *(f"{n} simulations" for n in sizes), "steps", "learning rate", "width",
        "parameters", "degrees of freedom", "s / step", "s of all steps", "grid symmetries",
    ]  # fmt: skip
    rows = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    best = {
        n: min((by[n].mean for by in found.values() if n in by and not by[n].diverged), default=0)
        for n in sizes
    }
    for key, label in figures.labels(records).items():
        some = [r for r in records if r["contender"] == key and "options" in r]
        cells = []
        for n in sizes:
            score = found[key].get(n)
            text = "" if score is None else str(score)
            ahead = score is not None and not score.diverged and score.mean == best[n]
            cells.append(f"**{text}**" if ahead else text)
        if some:
            first = some[0]
            options, steps = first["options"], first["curve"]["step"][-1]
            width = f"{options.get('width', '')}"
            if options.get("inner") not in (None, options.get("width")):
                width += f" / {options['inner']}"
            violation = max(point_group(r) for r in some)
            cells += [
                f"{steps:.0f}",
                _rate(first["rate"], setting, first["borrowed"]),
                width,
                f"{first['parameters']:,}",
                f"{first['degrees_of_freedom']:,}",
                f"{seconds[key]:.3f}",
                f"{steps * seconds[key]:.0f}",
                f"{violation:.0e}" if math.isfinite(violation) else "not finite",
            ]
        rows.append(f"| {label} | {' | '.join(cells)} |")
    still = [r["one_step"]["persistence"] for r in records if "one_step" in r]
    if still:
        rows += ["", f"Predicting no change has a relative error of {still[0]['relative_l2']:.3g}; "
                 f"{_relative(records)}."]  # fmt: skip
    return rows


def _relative(records: Sequence[Record]) -> str:
    size = max(r["trajectories"] for r in records)
    some = [r for r in records if r["trajectories"] == size and "one_step" in r]
    if not some:
        return "no model of the largest size has finished"
    best = min(some, key=lambda r: float(r["error"]))
    return f"the best run here, of {best['label']}, {best['one_step']['relative_l2']:.3g}"
