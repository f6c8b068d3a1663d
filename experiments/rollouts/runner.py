"""Run the trials that a study lacks, several at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cscnn._util.jsonform import write_json
from cscnn._util.progress import Bar, duration
from cscnn.data.generate import generate
from experiments import archive
from experiments.command import run_trials
from experiments.rollouts.measure import run_trial
from experiments.rollouts.plan import PARTS
from experiments.rollouts.records import FORMAT, Record
from experiments.rollouts.results import Results, Study
from experiments.rollouts.timing import measure_speeds, read_speeds


def open_results(
    study: Study, out: Path, known: Path | None = None, *, workers: int = 1, quiet: bool = False
) -> Results:
    """The study in a folder: its data are made, and its steps are timed, unless they were.

    Args:
        study: what is compared.
        out: folder.
        known: folder with records and speeds of an earlier study, see `write_records`.
        workers: processes that simulate.
        quiet: show no progress.
    """
    study.register()
    for setting in study.settings.values():
        bar = Bar("trajectories", quiet=quiet)
        generate(setting.files(out / "data"), workers=workers, progress=bar)
    records: list[Record] = []
    speeds = read_speeds(out / "speeds.json")
    if known is not None:
        file = known / f"{study.name}.json"
        records = archive.load(file, Record, FORMAT)
        if not records:
            raise FileNotFoundError(f"there are no records {file}")
        speeds = speeds or read_speeds(known / f"{study.name}_speeds.json")
    if speeds is None:
        speeds = measure_speeds(
            study.settings, study.contenders, study.recipes, out / "data", quiet=quiet
        )
        write_json(out / "speeds.json", speeds)
    return Results(study, out, speeds, records)


def run(
    results: Results,
    task: str,
    parts: Sequence[str] = PARTS,
    *,
    workers: int = 1,
    quiet: bool = False,
) -> None:
    """Everything of a task that is not there yet.

    Args:
        results: what there is; new records are added to its folder.
        task: which.
        parts: of `PARTS`.
        workers: trainings at a time.
        quiet: show no progress.
    """
    while missing := results.missing(task, parts):
        run_trials(
            task,
            run_trial,
            missing,
            results,
            record=results.lost,
            tell=outcome,
            workers=workers,
            quiet=quiet,
        )


def outcome(record: Record) -> str:
    """A training in one line."""
    if record.diverged:
        return f"{record.name}: {record.diverged}"
    first, last = record.errors[0], record.errors[-1]
    return (
        f"{record.name}: {first:.4f} at step 1, {last:.4f} at step {len(record.errors)}, "
        f"valid {record.score:.4f}, in {duration(record.seconds)}"
    )
