"""The results that a study has so far, and the trainings that follow from them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from pathlib import Path

from experiments.paper import PARTS
from experiments.paper.outcomes import Outcome
from experiments.paper.plan import Trial
from experiments.paper.records import Archive, Record, Timing
from experiments.paper.study import Study


class Results:
    """Records of a study: those in its folder, and those of an earlier study.

    Args:
        study: which.
        out: folder.
        known: results of an earlier study, used where their plan is the same.
    """

    def __init__(self, study: Study, out: Path, known: Archive | None = None):
        self.study, self.out = study, out
        self.known = known or Archive()

    # --- files ------------------------------------------------------------------------------------

    def file(self, name: str) -> Path:
        """Where the record of a trial, or the timing of a task, is kept."""
        return self.out / "records" / f"{name}.json"

    def run(self, trial: Trial) -> Path:
        """The folder in which a trial is trained."""
        return self.out / "runs" / trial.name

    def data(self, task: str, split: str) -> Path:
        """A file of data."""
        return self.out / "data" / task / f"{split}.h5"

    def units(self, task: str) -> Path:
        """The units of all trainings of a task, those of the whole training split."""
        return self.data(task, "train").with_name("units.json")

    def keep(self, record: Record) -> None:
        """Write the record of a trial."""
        Archive(records={record.name: record}).save(self.file(record.name))

    def keep_timing(self, task: str, timing: Timing) -> None:
        """Write the timing of a task."""
        Archive(timings={task: timing}).save(self.file(f"{task}-timing"))

    # --- trials -----------------------------------------------------------------------------------

    def find(self, trial: Trial) -> Record | None:
        """The record of a trial, if it has been run."""
        for archive in (Archive.find(self.file(trial.name)), self.known):
            record = archive.records.get(trial.name)
            if record is not None and record.plan == trial.plan():
                return record
        return None

    def tuning(self, task: str, parts: Collection[str] = PARTS) -> list[Trial]:
        """The search for learning rates, as far as it is known what to try."""
        trials: list[Trial] = []
        while len(more := self.study.tuning(task, self._errors(trials), parts)) > len(trials):
            trials = more
        return trials

    def _errors(self, trials: Iterable[Trial]) -> dict[str, dict[float, float]]:
        """Contender -> learning rate -> validation error, of trials that have been run."""
        errors: dict[str, dict[float, float]] = {}
        for trial in trials:
            if (record := self.find(trial)) is not None:
                valid = math.inf if record.valid is None else record.valid
                errors.setdefault(trial.key, {})[trial.rate] = valid
        return errors

    def rates(self, task: str) -> dict[str, float]:
        """Contender -> learning rate of the least validation error, if the search has ended."""
        trials = self.tuning(task)
        errors = self._errors(trials)
        unfinished = {t.key for t in trials if t.rate not in errors.get(t.key, {})}
        return {
            key: min(by_rate, key=lambda rate: by_rate[rate])
            for key, by_rate in errors.items()
            if key not in unfinished
        }

    def trials(self, task: str, parts: Iterable[str] = PARTS) -> list[Trial]:
        """The trainings of a task without repetitions, as far as learning rates are known."""
        parts, rates = tuple(parts), self.rates(task)
        trials = self.tuning(task, parts)
        for part in parts:
            trials += self.study.trials(task, rates, part)
        return _once(trials)

    def missing(self, task: str, parts: Iterable[str] = PARTS) -> list[Trial]:
        """Those of them that have no record; while learning rates are searched, more will come."""
        return [trial for trial in self.trials(task, parts) if self.find(trial) is None]

    def forecast(self, task: str, parts: Collection[str]) -> tuple[list[Trial], bool]:
        """All trainings of a task, and whether all learning rates are known.

        Where they are not, a rate of NaN stands for the one to come.
        """
        tuning, rates = self.tuning(task, parts), self.rates(task)
        unknown = {trial.key: math.nan for trial in tuning if trial.key not in rates}
        trials = [*tuning]
        for part in parts:
            trials += self.study.trials(task, {**rates, **unknown}, part)
        return _once(trials), not unknown

    # --- outcomes ---------------------------------------------------------------------------------

    def outcomes(self, task: str, part: str = "") -> list[Outcome]:
        """What is there of a part, or of all parts, with the seconds of interleaved timings."""
        seconds = self.seconds(task)
        trials = self.study.trials(task, self.rates(task), part) if part else self.trials(task)
        return [
            Outcome(
                record,
                label=trial.contender.label,
                borrowed=bool(trial.contender.rate_of),
                seconds=seconds.get(trial.key),
            )
            for trial in trials
            if (record := self.find(trial)) is not None
        ]

    def timing(self, task: str) -> Timing | None:
        """Seconds of steps from interleaved timings, if there are any."""
        own = Archive.find(self.file(f"{task}-timing")).timings.get(task)
        return own or self.known.timings.get(task)

    def seconds(self, task: str) -> dict[str, float]:
        """Contender -> seconds of a step, of those with interleaved timings, as they are."""
        timing = self.timing(task)
        if timing is None:
            return {}
        plans = {trial.key: trial.plan().network() for trial in self.trials(task)}
        return {
            key: seconds
            for key, seconds in timing.seconds.items()
            if key in plans and timing.plans.get(key) == plans[key]
        }

    def archive(self) -> Archive:
        """All results of the study; of an unfinished one, with those that were known before."""
        records = {
            trial.name: record
            for task in self.study.settings
            for trial in self.trials(task)
            if (record := self.find(trial)) is not None
        }
        if any(self.missing(task) for task in self.study.settings):
            records = {**self.known.records, **records}
        timings = {task: self.timing(task) for task in self.study.settings}
        return Archive(records, {task: t for task, t in timings.items() if t is not None})


def _once(trials: Iterable[Trial]) -> list[Trial]:
    """Without repetitions."""
    return list({trial.name: trial for trial in trials}.values())
