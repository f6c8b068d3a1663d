"""The page about the study: tables, figures and verdicts for each test set."""

from __future__ import annotations

from pathlib import Path

from experiments.rollouts.page import curves, draw, networks, other_split, write_records
from experiments.rollouts.results import Results
from experiments.rollouts.verdicts import compare

STORY = """# Stress as a tensor

After this page you know what it is worth to tell a network that a stress is a [symmetric
tensor](glossary.md#symmetric-tensor).

The [elastic waves](data/elastodynamics.md) of the training split run along x mainly. Test splits
have waves along x, at 45° and along y: the same physics, seen from other sides. The networks:

- **stress as a tensor**: a CS-ResNet of [multivectors and symmetric
  tensors](explanation/left_open.md#which-other-fields-are-there).
- **components as scalars**: the same network, with the traceless components of the stress as
  scalar channels. Velocity and trace are a vector and a scalar, as above. For such a network no
  axis differs from another, so it cannot learn which component belongs to which axis.
- ResNet, U-Net and FNO, which take all components as channels.

All predict the change from one frame to the next, and have as many channels as the parameters
allow. Learning rates are chosen by the mean error of rollouts of the validation split. Errors are
relative L² errors of both fields, means over the simulations of a test split.
"""


def write_page(results: Results, folder: Path) -> Path:
    """Write tensors.md, its records and its figures.

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
    records = results.finished(task, "time")
    if not records:
        return []
    labels = {key: c.label for key, c in results.study.contenders.items()}
    lines = [
        f"\n## {task}\n",
        f"{setting.splits['train']} simulations, {setting.seconds:g} s of one core for each "
        f"training, {setting.seeds} seeds.\n",
        *networks(results, task, labels),
    ]
    ours = [key for key, contender in results.study.contenders.items() if contender.ours]
    for name in ("", *setting.others):
        seen = other_split(records, name) if name else records
        where = f"{name.replace('_', ' ')}°" if name else "as in training"
        file = f"tensors_{task}{'_' + name if name else ''}.png"
        lines += [
            f"\n### Tested on waves {where}\n",
            "Relative error by rollout step. What follows ± is half the range of the seeds.\n",
            *curves(seen, labels, setting.horizon, correlation=not name),
            "",
            *(f"- {sentence}" for sentence in compare(seen, ours)),
            draw(seen, labels, figures / file),
        ]
    return lines
