"""The page about the study: for each task tables, curves and verdicts of what has been trained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from experiments.rollouts.page import curves, draw, networks, other_split, row, write_records
from experiments.rollouts.records import Record
from experiments.rollouts.results import Results
from experiments.rollouts.verdicts import compare

STORY = """# Results at a medium size

After this page you know which networks forecast best with 200,000 parameters, when all of them are
trained for the same time.

The three tasks of the paper: [smoke](data/navier_stokes.md) on 64² cells, the field of [moving
charges](data/maxwell_spacetime.md) on windows of 16 × 32² points, and [light in three
dimensions](data/maxwell3d.md) on 32³ points. All networks are told the known constants, such as
the direction of buoyancy. Learning rates are chosen by the mean error of rollouts of the
validation split, in trainings of two minutes. Of our networks the one with the best search takes
part in the comparison. Errors are relative L² errors of the test split, means over its simulations.
A row that is missing has not been trained.
"""

#: What differs in further test splits.
SEEN = {"moving": "observers in motion, up to rapidity 0.5"}


def write_page(results: Results, folder: Path) -> Path:
    """Write medium.md, its records and its figures.

    Args:
        results: of the study.
        folder: of the page; figures are in a folder of their own.
    """
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    lines = [STORY]
    for task in results.study.settings:
        lines += _section(results, task, folder / "figures")
    return write_records(results, folder, lines)


def _section(results: Results, task: str, figures: Path) -> list[str]:
    setting = results.study.settings[task]
    labels = {key: c.label for key, c in results.study.contenders.items()}
    ours = [key for key, contender in results.study.contenders.items() if contender.ours]
    search = _search(results, task)
    if not search:
        return []
    lines = [f"\n## {task}\n", *networks(results, task, labels, "levers"), *search]
    minutes = setting.longer * setting.seconds / 60
    for part, count in (("time", setting.splits["train"]), ("few", setting.few)):
        records = results.finished(task, part)
        if not records:
            continue
        splits = {"": f"{count} simulations, {minutes:g} minutes of one core"}
        splits |= {name: f"Tested on {SEEN[name]}" for name in setting.others}
        for name, title in splits.items():
            seen = other_split(records, name) if name else records
            picture = "_".join(filter(None, ("medium", task, part, name))) + ".png"
            lines += [
                f"\n### {title}\n" if not name else f"\n{title}:\n",
                *curves(seen, labels, setting.horizon, correlation=not name),
                "",
                *(f"- {sentence}" for sentence in compare(seen, ours)),
                draw(seen, labels, figures / picture),
            ]
        lines += _learning(records, labels)
    return lines


def _search(results: Results, task: str) -> list[str]:
    """Validation errors of the search for learning rates."""
    setting = results.study.settings[task]
    rows = []
    for key, contender in results.study.contenders.items():
        trials, best = results.rates(task, key)
        found = {trial.rate: results.find(trial) for trial in trials}
        if not any(found.values()):
            continue
        cells = []
        for rate in setting.rates:
            record = found.get(rate)
            text = "" if record is None else f"{record.score:.3f}"
            cells.append(f"**{text}**" if rate == best else text)
        rows.append(row([contender.label, *cells]))
    if not rows:
        return []
    head = ["network", *(f"{rate:g}" for rate in setting.rates)]
    return [
        "\n**The best learning rate is bold.** Mean validation error of rollouts after "
        f"{setting.seconds:g} s.\n",
        row(head), row(["---"] * len(head)), *rows,
    ]  # fmt: skip


def _learning(records: Sequence[Record], labels: dict[str, str]) -> list[str]:
    """How much the validation error still falls at the end of trainings."""
    rows = [
        row([labels[r.contender], *(f"{r.learning[i]:.4f}" for i in (-3, -2, -1))])
        for r in records
        if len(r.learning) >= 3 and r.seed == 0
    ]
    if not rows:
        return []
    checks = records[0].plan["setting"]["checks"]
    head = ["network", *(f"after {checks - i} of {checks} parts" for i in (2, 1, 0))]
    return [
        "\n**Has the validation error flattened?** Mean squared error of single steps:\n",
        row(head), row(["---"] * len(head)), *rows,
    ]  # fmt: skip
