"""The page about the study: a table, a figure and verdicts for each kind of kernel."""

from __future__ import annotations

from pathlib import Path

from experiments.conditioning.presets import KEYS
from experiments.rollouts.page import curves, draw, networks, write_records
from experiments.rollouts.results import Results
from experiments.rollouts.verdicts import compare

STORY = """# Kernels that see the field

After this page you know whether conditional kernels give better forecasts than plain global
context, at the same number of parameters and in the same training time.

A [steerable kernel](glossary.md#steerable-kernel) is the same for all fields. A conditional kernel
also sees the mean of the field over the grid, so each sample has kernels of its own. A cheaper way
to tell a network about the mean is plain global context: before each block the mean, mixed by a
linear map, is added at every point. The networks of each table differ in this alone:

- **without**: no layer sees further than its taps.
- **global context**: blocks see the mean.
- **conditional**: all kernels see 4 multivectors, mixes of the mean.

All are CS-ResNets of four blocks, with as many channels as the parameters allow. A conditional
network takes fewer steps in the time that all have. Learning rates are chosen by the mean error of
rollouts of the validation split. Errors are relative L² errors of the test split, means over its
simulations.
"""


def write_page(results: Results, folder: Path) -> Path:
    """Write conditioning.md, its records and its figures.

    Args:
        results: of the study.
        folder: of the page; figures are in a folder of their own.
    """
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    lines = [STORY]
    for task in results.study.settings:
        for kind in KEYS:
            lines += _section(results, task, kind, folder / "figures")
    return write_records(results, folder, lines)


def _section(results: Results, task: str, kind: str, figures: Path) -> list[str]:
    setting = results.study.settings[task]
    records = [r for r in results.finished(task, "time") if r.contender in KEYS[kind]]
    if not records:
        return []
    labels = {key: results.study.contenders[key].label for key in KEYS[kind]}
    conditional = KEYS[kind][-1]
    return [
        f"\n## {task}, {kind} kernels\n",
        f"{setting.splits['train']} simulations, {setting.seconds:g} s of one core for each "
        f"training, {setting.seeds} seeds.\n",
        *networks(results, task, labels),
        "\nRelative error by rollout step. What follows ± is half the range of the seeds.\n",
        *curves(records, labels, setting.horizon),
        "",
        *(f"- {sentence}" for sentence in compare(records, [conditional])),
        draw(records, labels, figures / f"conditioning_{task}_{kind}.png"),
    ]
