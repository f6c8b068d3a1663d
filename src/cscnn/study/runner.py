"""Run the trials of a study, several at a time, and skip what is done."""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from cscnn.atomic import write_text
from cscnn.progress import Bar, duration
from cscnn.study import PARTS
from cscnn.study.measure import load_record, prepare_data, start_worker, timed
from cscnn.study.plan import Study, Trial

Records = list[dict[str, Any]]


class Runner:
    """Runs trials in ``out``; the records of finished ones are kept there.

    Args:
        study: which.
        out: folder.
        workers: trainings at a time, each in a process with an equal share of the cores.
        known: records of an earlier study, reused where their plan is the same.
        quiet: show no progress.
    """

    def __init__(
        self,
        study: Study,
        out: Path,
        workers: int = 1,
        known: Mapping[str, dict[str, Any]] | None = None,
        quiet: bool = False,
    ):
        self.study, self.out, self.workers = study, out, workers
        self.known, self.quiet = dict(known or {}), quiet

    def find(self, trial: Trial) -> dict[str, Any] | None:
        """The record of a trial, if it has been run."""
        found = load_record(trial, self.out)
        old = self.known.get(trial.name, {})
        return old if found is None and old.get("plan") == trial.fingerprint() else found

    def tuning(self, task: str) -> list[Trial]:
        """The search for learning rates, as far as it is known what to try."""
        errors: dict[str, dict[float, float]] = {}
        trials: list[Trial] = []
        while len(found := self.study.tuning(task, errors)) > len(trials):
            trials = found
            for trial in trials:
                if (record := self.find(trial)) is not None:
                    errors.setdefault(trial.key, {})[trial.rate] = _valid(record)
        return trials

    def rates(self, task: str) -> dict[str, float] | None:
        """Contender -> learning rate of the least validation error; None if some are missing."""
        best: dict[str, tuple[float, float]] = {}
        for trial in self.tuning(task):
            record = self.find(trial)
            if record is None:
                return None
            error = _valid(record)
            if trial.key not in best or error < best[trial.key][0]:
                best[trial.key] = (error, trial.rate)
        return {key: rate for key, (_, rate) in best.items()}

    def records(self, task: str, part: str) -> Records:
        """What is there of a part."""
        rates = self.rates(task)
        if rates is None:
            return []
        trials = self.study.trials(task, rates, part)
        return [r for r in map(self.find, trials) if r is not None]

    def samples(self, record: Mapping[str, Any]) -> Path:
        """Where the forecasts of a detailed trial are, if it was run here."""
        return self.out / "runs" / str(record["name"]) / "samples.npz"

    def run(self, task: str, parts: Iterable[str]) -> None:
        """Everything of a task that is not there yet."""
        while (rates := self.rates(task)) is None:
            self.run_trials(f"{task}, learning rates", self.tuning(task))
        for part in parts:
            self.run_trials(f"{task}, {part}", self.study.trials(task, rates, part))

    def run_trials(self, what: str, trials: list[Trial]) -> None:
        """Run those of the trials that have no record."""
        missing = [t for t in trials if self.find(t) is None]
        if not missing:
            return
        self.out.mkdir(parents=True, exist_ok=True)
        prepare_data(missing, self.out, self.workers, Bar("trajectories", quiet=self.quiet))
        bar = Bar("runs", quiet=self.quiet)
        bar(what, 0, len(missing))
        for done, (trial, record, seconds) in enumerate(self._results(missing), 1):
            if not self.quiet:
                result = record.get("error", record.get("diverged"))
                shown = f"{result:.4g}" if isinstance(result, float) else result
                print(f"{trial.name}: {shown} in {duration(seconds)}", flush=True)
            bar(what, done, len(missing))

    def _results(self, trials: list[Trial]) -> Iterator[tuple[Trial, dict[str, Any], float]]:
        """Records and seconds, in the order in which they are finished."""
        workers = min(self.workers, len(trials))
        if workers == 1:
            yield from (timed(trial, self.out) for trial in trials)
            return
        threads = max(1, (os.cpu_count() or 1) // workers)
        pool = ProcessPoolExecutor(
            workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=start_worker,
            initargs=(threads,),
        )
        try:
            for job in as_completed([pool.submit(timed, trial, self.out) for trial in trials]):
                yield job.result()
        except BaseException:  # do not wait for trainings to end
            for process in list(pool._processes.values()):
                process.terminate()
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def everything(self) -> dict[str, dict[str, Any]]:
        """All records of the study that there are, by the names of their trials."""
        found: dict[str, Any] = {}
        for task in self.study.settings:
            rates = self.rates(task) or {}
            trials = self.tuning(task)
            for part in PARTS:
                trials += self.study.trials(task, rates, part) if rates else []
            found |= {t.name: r for t in trials if (r := self.find(t)) is not None}
        return found

    def save(self, path: Path) -> None:
        """All records in one file, for `known`."""
        write_text(path, json.dumps(self.everything(), indent=None) + "\n")


def _valid(record: Mapping[str, Any]) -> float:
    """Error on the validation split; infinite if the training diverged."""
    valid = record.get("valid")
    return float("inf") if valid is None else float(valid)


def read_known(path: Path) -> dict[str, dict[str, Any]]:
    """Records that `Runner.save` wrote."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} holds no records of a study: {error}") from error
    if not isinstance(found, dict) or not all(isinstance(v, dict) for v in found.values()):
        raise ValueError(f"{path} holds no records of a study")
    return found
