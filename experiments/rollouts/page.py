"""The page about the study: tables and a figure of all that there are records of."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cscnn._util.files import replacing, write_text
from cscnn._util.jsonform import write_json
from cscnn.viz.figures import new_figure
from experiments import archive
from experiments.markdown import page_text
from experiments.rollouts.records import FORMAT, Record
from experiments.rollouts.results import Results
from experiments.rollouts.verdicts import compare

STORY = """# Forecasts that last

After this page you know which training makes forecasts last, for our networks and for others, at
the same number of parameters and in the same training time.

A network that is trained on single steps only ever sees true inputs. In a
[rollout](glossary.md#rollout) it sees its own predictions, and errors grow. Each recipe changes
one thing:

- **change**: the network predicts the change since the newest frame, not the state.
- **noise**: Gaussian noise on the inputs, in units of each field.
- **unrolled**: the loss is the mean over several steps of the network's own forecast.
- **pushforward**: each batch draws a number of steps. Only the last step has a loss and gradients.
- **no divergence**: predicted velocities are projected on flows without divergence.

The learning rate and the recipe of each network are chosen in short trainings, by the mean error of
rollouts of the validation split. Then the best of ours and all others are trained with more seeds.
Errors are relative L² errors of the test split, means over its simulations.
"""

DIVERGED = "diverged"  #: what stands for numbers of a training that has none
COLOURS = ("#b3123f", "#c4572e", "#e0912f", "#4c6a92", "#3a8f6f", "#7a5aa6", "#6b6b6b")


def write_page(results: Results, folder: Path) -> Path:
    """Write rollouts.md, its records and its figure.

    Args:
        results: of the study.
        folder: of the page; figures are in a folder of their own.
    """
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    lines = [STORY]
    for task in results.study.settings:
        lines += _section(results, task, folder)
    return write_records(results, folder, lines)


def write_records(results: Results, folder: Path, lines: Sequence[str]) -> Path:
    """Write the page, its records and speeds, in files with the name of the study.

    Args:
        results: of the study.
        folder: of the files.
        lines: of the page; how it was made is added.
    """
    name, records = results.study.name, results.all_records()
    machines = sorted({record.machine.get("processor", "?") for record in records})
    hours = sum(record.seconds for record in records) / 3600
    made = (
        f"\n{len(records)} trainings, {hours:.1f} hours of one core ({', '.join(machines)}). "
        f"Made by `python -m experiments.{name} --page docs`.\n"
    )
    archive.save(folder / f"{name}.json", records, FORMAT)
    write_json(folder / f"{name}_speeds.json", results.speeds)
    page = folder / f"{name}.md"
    write_text(page, page_text([*lines, made]))
    return page


def _section(results: Results, task: str, folder: Path) -> list[str]:
    setting, study = results.study.settings[task], results.study
    labels = {key: contender.label for key, contender in study.contenders.items()}
    lines = [
        f"\n## {task}\n",
        f"{setting.splits['train']} simulations, {setting.params:,} parameters, "
        f"{setting.seconds:g} s of one core for each training of the search.\n",
        "**The chosen recipe is bold.** Relative error at rollout steps "
        f"{' / '.join(map(str, _shown(setting.horizon)))}, one seed. Empty cells were not "
        "trained.\n",
        *_levers(results, task, labels),
    ]
    ours = [key for key, contender in study.contenders.items() if contender.ours]
    titles = {
        "time": f"In the same time, {setting.longer * setting.seconds:g} s",
        "steps": f"In the same number of steps, {setting.steps}",
    }
    for part, title in titles.items():
        records = results.finished(task, part)
        if not records:
            continue
        lines += [f"\n### {title}\n", *curves(records, labels, setting.horizon), ""]
        lines += [f"- {sentence}" for sentence in compare(records, ours)]
        picture = folder / "figures" / f"rollouts_{task}_{part}.png"
        lines.append(draw(records, labels, picture))
    return lines


def networks(
    results: Results, task: str, labels: Mapping[str, str], part: str = "time"
) -> list[str]:
    """A table of parameters and times of a step, for networks that were trained in equal time.

    For tasks with one recipe.

    Args:
        results: of the study.
        task: which.
        labels: key of a network -> its name for people.
        part: networks that were trained in it are shown.
    """
    (recipe,) = results.recipes(task)
    records = results.finished(task, part)
    lines = [row(["network", "parameters", "a training step"]), row(["---"] * 3)]
    for key, label in labels.items():
        size = next((r.parameters for r in records if r.contender == key), None)
        if size is None:
            continue
        seconds = results.speeds.seconds[f"{task}/{key}/{recipe}"]
        lines.append(row([label, f"{size:,}", f"{1e3 * seconds:.0f} ms"]))
    return lines


def other_split(records: Sequence[Record], name: str) -> list[Record]:
    """Records with the errors of another test split, and without what was not measured on it."""
    return [
        replace(r, errors=r.others.get(name, ()), persistence=(), correlation_frames=None)
        for r in records
    ]


def draw(records: Sequence[Record], labels: Mapping[str, str], picture: Path) -> str:
    """Write a figure of errors by step; returns the line that shows it."""
    with replacing(picture) as temporary:
        plot(records, labels).savefig(temporary, dpi=150, format="png")
    return f"\n![Error by rollout step](figures/{picture.name})"


def _levers(results: Results, task: str, labels: Mapping[str, str]) -> list[str]:
    recipes = results.study.recipes
    head = ["network", *(recipe.label for recipe in recipes.values())]
    lines = [row(head), row(["---"] * len(head))]
    for key, label in labels.items():
        best, cells = results.best(task, key), []
        found = {t.lever: results.find(t) for t in results.levers(task, key)}
        for lever in recipes:
            record = found.get(lever)
            text = "" if record is None else _errors(record)
            bold = best is not None and best.lever == lever and len(found) > 1
            cells.append(f"**{text}**" if bold else text)
        lines.append(row([label, *cells]))
    return lines


def _errors(record: Record) -> str:
    if not record.errors:
        return DIVERGED
    return " / ".join(f"{record.error(step):.3f}" for step in _shown(len(record.errors)))


def _shown(horizon: int) -> tuple[int, int, int]:
    """The first, a middle and the last step of rollouts."""
    return 1, (horizon + 1) // 2, horizon


def curves(
    records: Sequence[Record],
    labels: Mapping[str, str],
    horizon: int,
    correlation: bool = True,
) -> list[str]:
    """A table of errors by step, a row for each network; what is after ± is half the range.

    Args:
        records: of all networks.
        labels: key of a network -> its name for people.
        horizon: steps of a rollout.
        correlation: with a column of the steps until the correlation is lost.
    """
    steps = [s for s in (1, 2, 3, 5, 7, 10, 15, 20) if s <= horizon]
    head = ["network", "recipe", "steps", *(f"step {s}" for s in steps)]
    head += ["correlation ≥ 0.8"] if correlation else []
    lines = [row(head), row(["---"] * len(head))]
    for key, label in labels.items():
        own = [record for record in records if record.contender == key]
        if not own:
            continue
        cells = [_spread([record.error(s) for record in own]) for s in steps]
        if correlation:
            cells.append(_lifetime(own, horizon))
        lines.append(row([label, own[0].lever, str(own[0].steps), *cells]))
    return lines


def _lifetime(records: Sequence[Record], horizon: int) -> str:
    """Steps until the correlation is lost; a lower bound if a rollout was too short to tell."""
    if any(record.diverged for record in records):
        return DIVERGED
    frames = [r.correlation_frames for r in records]
    known = _spread([horizon if value is None else value for value in frames], 1)
    return f"≥ {known}" if None in frames else known


def _spread(values: Sequence[float], digits: int = 3) -> str:
    if not math.isfinite(sum(values)):
        return DIVERGED
    mean = sum(values) / len(values)
    half = (max(values) - min(values)) / 2
    return f"{mean:.{digits}f}" + (f" ± {half:.{digits}f}" if len(values) > 1 else "")


def row(cells: Sequence[str]) -> str:
    """A line of a table."""
    return f"| {' | '.join(cells)} |"


def plot(records: Sequence[Record], labels: Mapping[str, str]) -> Any:
    """Error against rollout step: the mean of the seeds, and the range from best to worst."""
    figure = new_figure(6.4, 4.2, "constrained")
    ax = figure.subplots()
    for (key, label), colour in zip(labels.items(), COLOURS, strict=False):
        rows = np.array([r.errors for r in records if r.contender == key and r.errors])
        if len(rows):
            steps = np.arange(1, rows.shape[1] + 1)
            ax.fill_between(steps, rows.min(0), rows.max(0), color=colour, alpha=0.2, lw=0)
            ax.plot(steps, rows.mean(0), marker="o", ms=3, color=colour, label=label)
    still = next((r.persistence for r in records if r.persistence), ())
    if still:
        ax.plot(range(1, len(still) + 1), still, ":", color="0.4", lw=1, label="persistence")
    ax.set(xlabel="rollout step", ylabel="relative error", ylim=(0, None))
    ax.grid(alpha=0.25)
    ax.legend(fontsize=8)
    return figure
