"""What was trained on what: the head of the page, and how the runs were made at its end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cscnn.data.paths import spelled
from cscnn.viz.numbers import count, duration, listing
from cscnn.viz.report.contents import Contents
from cscnn.viz.report.section import Section


@dataclass(frozen=True)
class Heading:
    """The head of the page; ``facts`` has a dict for each run."""

    title: str
    lead: str
    facts: list[dict[str, str]]


def heading(runs: Sequence[Contents]) -> Heading:
    """What was trained on what."""
    tasks = list(dict.fromkeys(run.task.name for run in runs if run.task is not None))
    title = listing(tasks).replace("_", " ") if tasks else "Training"
    return Heading(title, _lead(runs), [_facts(run) for run in runs])


def _facts(run: Contents) -> dict[str, str]:
    facts = {"model": run.network, "parameters": count(run.parameters)}
    if run.task is not None and (told := run.task.told()):
        facts["given"] = ", ".join(told)
    if run.metrics:
        facts["epochs"] = f"{len(run.metrics)} of {run.config.trainer.epochs}"
        facts["trained for"] = duration(sum(m.get("seconds", 0.0) for m in run.metrics))
    facts["training data"] = _short(spelled(run.config.data.train) or "unknown")
    if run.evaluation is not None:
        data = run.evaluation.data
        facts["tested on"] = (
            f"{data.trajectories} trajectories of split {data.split}, {_short(data.path)}"
        )
        facts["machine"] = next(iter(run.evaluation.machine.values()), "unknown")
    return facts


def _short(paths: str) -> str:
    """The last two parts of each path in a list."""
    return ", ".join("/".join(Path(path).parts[-2:]) for path in paths.split(", "))


def _lead(runs: Sequence[Contents]) -> str:
    task = next((run.task for run in runs if run.task is not None), None)
    if task is None:
        return f"{len(runs)} run{'s' * (len(runs) > 1)}."
    p, q = task.algebra.signature
    space = f"spacetime with {p} + {q} dimensions" if p and q else f"{task.dim}-dimensional space"
    fields = listing([field.name for field in task.fields])
    before = f"{task.frames_in} frames" if task.frames_in > 1 else "frame"
    after = f"next {task.frames_out} frames" if task.frames_out > 1 else "next frame"
    after += f" after a gap of {task.gap}" if task.gap else ""
    return f"{fields.capitalize()} in {space}: the {after} from the {before} before."


def making(runs: Sequence[Contents]) -> Section:
    """Configurations and machines."""
    configurations = [json.dumps(run.config.to_dict(), indent=2) for run in runs]
    return Section("making", "How it was made", "making.html", configurations)
