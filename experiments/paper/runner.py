"""Run the trials of a study, several at a time, and skip what is done."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cscnn._util.progress import Bar, duration
from experiments.command import run_trials
from experiments.paper.measure import prepare_data, run_timed
from experiments.paper.plan import Trial
from experiments.paper.records import Record
from experiments.paper.results import Results
from experiments.paper.timing import compare_seconds
from experiments.pool import threads_for


@dataclass
class Runner:
    """Runs the trials that a study lacks.

    Args:
        results: what there is; new records are added to its folder.
        workers: trainings at a time, each in a process with an equal share of the cores.
        quiet: show no progress.
    """

    results: Results
    workers: int = 1
    quiet: bool = False

    def run(self, task: str, parts: Iterable[str]) -> None:
        """Everything of a task that is not there yet."""
        results, parts = self.results, tuple(parts)
        while missing := self._missing(results.tuning(task, parts)):
            self.run_trials(f"{task}, learning rates", missing)
        for part in parts:
            trials = results.study.trials(task, results.rates(task), part)
            self.run_trials(f"{task}, {part}", self._missing(trials))

    def _missing(self, trials: Iterable[Trial]) -> list[Trial]:
        return [trial for trial in trials if not self._has(trial)]

    def _has(self, trial: Trial) -> bool:
        return self.results.find(trial) is not None

    def measure_seconds(self, task: str) -> None:
        """Time a step of each model that has a record beside the others, unless that was done.

        All are measured together, also those that were trained elsewhere.
        """
        results = self.results
        finished: dict[str, Trial] = {}
        for trial in results.trials(task):
            if results.find(trial) is not None:
                finished.setdefault(trial.key, trial)
        if {*finished} <= {*results.seconds(task)} or not results.data(task, "test").is_file():
            return
        bar = Bar("rounds", quiet=self.quiet)
        timing = compare_seconds(list(finished.values()), results, threads_for(self.workers), bar)
        results.keep_timing(task, timing)

    def run_trials(self, title: str, trials: list[Trial]) -> None:
        """Run trials, whether they have records or not."""
        if not trials:
            return
        results = self.results
        results.out.mkdir(parents=True, exist_ok=True)
        prepare_data(trials, results, self.workers, Bar("trajectories", quiet=self.quiet))
        if self.workers > 1:
            results = Results(results.study, results.out)  # known records stay here
        run_trials(
            title,
            run_timed,
            trials,
            results,
            record=lambda trial: None if self._has(trial) else results.file(trial.name),
            tell=_outcome,
            workers=self.workers,
            quiet=self.quiet,
        )


def _outcome(finished: tuple[Trial, Record, float]) -> str:
    """A training in one line."""
    trial, record, seconds = finished
    return f"{trial.name}: {record.diverged or f'{record.error:.4g}'} in {duration(seconds)}"
