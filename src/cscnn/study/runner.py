"""Run the trials of a study, several at a time, and skip what is done."""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import torch

from cscnn.atomic import write_text
from cscnn.progress import Bar, duration
from cscnn.study import PARTS
from cscnn.study.measure import compare_seconds, load_record, prepare_data, start_worker, timed
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

    def tuning(self, task: str, parts: Collection[str] = PARTS) -> list[Trial]:
        """The search for learning rates, as far as it is known what to try."""
        trials: list[Trial] = []
        while len(found := self.study.tuning(task, self._errors(trials), parts)) > len(trials):
            trials = found
        return trials

    def _errors(self, trials: Iterable[Trial]) -> dict[str, dict[float, float]]:
        """Contender -> learning rate -> validation error, of trials that have been run."""
        errors: dict[str, dict[float, float]] = {}
        for trial in trials:
            if (record := self.find(trial)) is not None:
                errors.setdefault(trial.key, {})[trial.rate] = _valid(record)
        return errors

    def rates(self, task: str) -> dict[str, float]:
        """Contender -> learning rate of the least validation error, where the search has ended."""
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
        found = self.tuning(task, parts)
        for part in parts:
            found += self.study.trials(task, rates, part)
        return list({trial.name: trial for trial in found}.values())

    def missing(self, task: str, parts: Iterable[str] = PARTS) -> list[Trial]:
        """Those of them that have no record; while learning rates are searched, more will come."""
        return [trial for trial in self.trials(task, parts) if self.find(trial) is None]

    def records(self, task: str, part: str = "") -> Records:
        """What is there of a part, or of all; with the seconds that were measured side by side."""
        seconds = self.seconds(task)
        trials = self.study.trials(task, self.rates(task), part) if part else self.trials(task)
        found = []
        for trial in trials:
            if (record := self.find(trial)) is not None:
                contender = trial.contender
                record = {**record, "label": contender.label, "borrowed": bool(contender.like)}
                if trial.key in seconds and "seconds_per_step" in record:
                    record["seconds_per_step"] = seconds[trial.key]
                found.append(record)
        return found

    def timing(self, task: str) -> dict[str, Any]:
        """Seconds of steps that were measured side by side, and on what machine, if they were."""
        name = _timing_name(task)
        path = self.out / "records" / f"{name}.json"
        found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
        return dict(found or self.known.get(name, {}))

    def seconds(self, task: str) -> dict[str, float]:
        """Contender -> seconds of a step, of those that were measured side by side as they are."""
        timing = self.timing(task)
        plans = {trial.key: trial.model_plan() for trial in self.trials(task)}
        return {
            key: float(seconds)
            for key, seconds in timing.get("seconds", {}).items()
            if timing.get("plans", {}).get(key) == plans.get(key)
        }

    def samples(self, record: Mapping[str, Any]) -> Path:
        """Where the forecasts of a detailed trial are, if it was run here."""
        return self.out / "runs" / str(record["name"]) / "samples.npz"

    def run(self, task: str, parts: Iterable[str]) -> None:
        """Everything of a task that is not there yet."""
        parts = tuple(parts)
        while missing := [t for t in self.tuning(task, parts) if self.find(t) is None]:
            self.run_trials(f"{task}, learning rates", missing)
        for part in parts:
            trials = self.study.trials(task, self.rates(task), part)
            missing = [t for t in trials if self.find(t) is None]
            self.run_trials(f"{task}, {part}", missing)
        self.measure_seconds(task)

    def measure_seconds(self, task: str) -> None:
        """Time a step of each trained model beside the others, unless that was done.

        Not if others were timed whose weights are not here: all are to be measured together.
        """
        trained: dict[str, Trial] = {}
        for trial in self.trials(task):
            if (self.out / "runs" / trial.name / "model.safetensors").is_file():
                trained.setdefault(trial.key, trial)
        timed = {*self.seconds(task)}
        data = self.out / "data" / task / "test.h5"
        if {*trained} <= timed or not timed <= {*trained} or not data.is_file():
            return
        bar = Bar("rounds", quiet=self.quiet)
        found = compare_seconds(list(trained.values()), self.out, self._threads, bar)
        path = self.out / "records" / f"{_timing_name(task)}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(found, indent=1) + "\n")

    def run_trials(self, what: str, trials: list[Trial]) -> None:
        """Run trials, whether they have records or not."""
        if not trials:
            return
        self.out.mkdir(parents=True, exist_ok=True)
        prepare_data(trials, self.out, self.workers, Bar("trajectories", quiet=self.quiet))
        bar = Bar("runs", quiet=self.quiet)
        bar(what, 0, len(trials))
        for done, (trial, record, seconds) in enumerate(self._results(trials), 1):
            if not self.quiet:
                result = record.get("error", record.get("diverged"))
                shown = f"{result:.4g}" if isinstance(result, float) else result
                print(f"{trial.name}: {shown} in {duration(seconds)}", flush=True)
            bar(what, done, len(trials))
        if lost := [trial.name for trial in trials if self.find(trial) is None]:
            raise RuntimeError(f"the record of {lost[0]} is not in {self.out / 'records'}")

    @property
    def _threads(self) -> int:
        """Of each training."""
        if self.workers == 1:
            return torch.get_num_threads()
        return max(1, (os.cpu_count() or 1) // self.workers)

    def _results(self, trials: list[Trial]) -> Iterator[tuple[Trial, dict[str, Any], float]]:
        """Records and seconds, in the order in which they are finished."""
        if self.workers == 1:
            yield from (timed(trial, self.out) for trial in trials)
            return
        pool = ProcessPoolExecutor(
            min(self.workers, len(trials)),
            mp_context=multiprocessing.get_context("spawn"),
            initializer=start_worker,
            initargs=(self._threads,),
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
        return {
            trial.name: record
            for task in self.study.settings
            for trial in self.trials(task)
            if (record := self.find(trial)) is not None
        }

    def save(self, path: Path) -> None:
        """All records in one file, for `known`. Of an unfinished study, with those known before."""
        unfinished = any(self.missing(task) for task in self.study.settings)
        found = {**self.known, **self.everything()} if unfinished else self.everything()
        for task in self.study.settings:
            if timing := self.timing(task):
                found[_timing_name(task)] = timing
        write_text(path, json.dumps(found, indent=None) + "\n")


def _timing_name(task: str) -> str:
    return f"{task}-timing"


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
