"""Runs that differ by their seed alone, as one line of a chart."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from cscnn.viz.report.contents import Contents

SEED = re.compile(r"[-_/. ]*(seed)?[-_. ]*\d+$")  #: the end of names such as resnet_seed1


@dataclass(frozen=True)
class Group:
    """Runs of one configuration with different seeds; most groups have one run.

    Attributes:
        label: in legends.
        style: a class of the style sheet.
        runs: all of which were evaluated.
    """

    label: str
    style: str
    runs: list[Contents]


def by_seed(runs: Sequence[Contents]) -> list[Group]:
    """Groups of evaluated runs, in the order of their first run."""
    groups: dict[str, list[Contents]] = {}
    for run in runs:
        if run.evaluation is not None:
            groups.setdefault(_key(run), []).append(run)
    joined = [part for group in groups.values() for part in _seeds_differ(group)]
    labels = [_label(group) for group in joined]
    return [
        Group(
            label if labels.count(label) == 1 else f"{label} ({group[0].label}, …)",
            group[0].style,
            group,
        )
        for label, group in zip(labels, joined, strict=True)
    ]


def _key(run: Contents) -> str:
    """What runs of a group share."""
    assert run.evaluation is not None
    told = run.config.to_dict()
    data = run.evaluation.data
    rest = {name: value for name, value in told.items() if name not in ("out", "seed")}
    return json.dumps([rest, run.evaluation.task.to_dict(), data.path, data.split, data.rollouts])


def _seeds_differ(runs: list[Contents]) -> list[list[Contents]]:
    """The runs together, or each by itself if two have the same seed: then they are copies."""
    different = len({run.config.seed for run in runs}) == len(runs)
    return [runs] if different else [[run] for run in runs]


def _label(group: list[Contents]) -> str:
    """The name of a run, or what the names of several have in common."""
    if len(group) == 1:
        return group[0].label
    names = {SEED.sub("", run.label) for run in group}
    common = names.pop() if len(names) == 1 else ""
    return f"{common or group[0].network}, {len(group)} seeds"
