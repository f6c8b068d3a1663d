"""Run the trials that a study lacks, several at a time."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from cscnn._util.progress import Bar, duration
from cscnn.data.generate import generate
from experiments.boosts import PARTS
from experiments.boosts.measure import run_trial
from experiments.boosts.plan import Trial
from experiments.boosts.records import Record
from experiments.boosts.results import Results
from experiments.command import run_trials


def run(
    results: Results,
    task: str,
    parts: Collection[str] = PARTS,
    *,
    workers: int = 1,
    quiet: bool = False,
) -> None:
    """Everything of a task that is not there yet: first the search for options.

    Args:
        results: what there is; new records are added to its folder.
        task: which.
        parts: of `experiments.boosts.PARTS`.
        workers: trainings at a time.
        quiet: show no progress.
    """
    while missing := results.missing(task, parts):
        _make_data(missing, results.out / "data", workers, quiet)
        folder = Results(results.settings, results.models, results.out)  # known ones stay here
        run_trials(
            task,
            run_trial,
            missing,
            folder,
            record=results.lost,
            tell=outcome,
            workers=workers,
            quiet=quiet,
        )
    if not quiet:
        for key in results.settings[task].models:
            _, choice = results.search(task, key)
            if choice is not None:
                print(f"{task}, {key}: {choice[0]}, padding {choice[1]}, rate {choice[2]:g}")


def outcome(record: Record) -> str:
    """A training in one line."""
    if record.diverged:
        return f"{record.name}: {record.diverged} in {duration(record.seconds)}"
    errors = ", ".join(
        f"{error:.4f} at {rapidity:g}"
        for rapidity, error in zip(record.rapidities, record.errors, strict=True)
    )
    return f"{record.name}: {errors}, valid {record.valid:.3g}, in {duration(record.seconds)}"


def _make_data(trials: list[Trial], folder: Path, workers: int, quiet: bool) -> None:
    """Simulate what the trials need."""
    grids = {trial.refinement: trial.setting for trial in trials}
    for refinement, setting in grids.items():
        generate(
            setting.files(folder, refinement),
            workers=workers,
            progress=Bar("trajectories", quiet=quiet),
        )
