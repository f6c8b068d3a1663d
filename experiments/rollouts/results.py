"""The records that a study has so far, and the trainings that follow from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.rollouts.plan import PARTS, Contender, Recipe, Setting, Trial
from experiments.rollouts.records import Record, store
from experiments.rollouts.timing import Speeds


@dataclass(frozen=True)
class Study:
    """What is compared.

    Attributes:
        settings, contenders, recipes: by their keys.
        name: of its folder in ``experiments``, and of its files.
        networks: registers networks of the contenders that are not in the library; called in each
            process.
    """

    settings: Mapping[str, Setting]
    contenders: Mapping[str, Contender]
    recipes: Mapping[str, Recipe]
    name: str = "rollouts"
    networks: Callable[[], None] | None = None

    def register(self) -> None:
        """Make all networks known in this process."""
        if self.networks is not None:
            self.networks()


class Results:
    """Records of a study: those in its folder, and those of an earlier one.

    Args:
        study: what is compared.
        out: folder.
        speeds: seconds of a training step.
        known: records of an earlier study, used where their plan is the same.
    """

    def __init__(self, study: Study, out: Path, speeds: Speeds, known: Iterable[Record] = ()):
        self.study, self.out, self.speeds = study, out, speeds
        self.store = store(out / "records", list(known))

    def find(self, trial: Trial) -> Record | None:
        """The record of a trial, if it has been run."""
        return self.store.find(trial.name, trial.plan())

    def lost(self, trial: Trial) -> Path | None:
        """Where the record of a training should be, if there is none."""
        return None if self.find(trial) is not None else self.store.file(trial.name)

    def steps(self, task: str, key: str, lever: str, factor: float = 1.0) -> int:
        """Optimiser steps in the time that all have: two digits, so that it says no more."""
        seconds = factor * self.study.settings[task].seconds
        steps = seconds / self.speeds.seconds[f"{task}/{key}/{lever}"]
        return max(1, int(float(f"{steps:.1e}")))

    def recipes(self, task: str) -> tuple[str, ...]:
        """Keys of the recipes of a task; with the first of them learning rates are searched."""
        return self.study.settings[task].recipes or tuple(self.study.recipes)

    def trial(
        self,
        task: str,
        key: str,
        lever: str,
        rate: float,
        seed: int = 0,
        steps: int = 0,
        trajectories: int = 0,
    ) -> Trial:
        """A training, by default in the time that all have in the search."""
        study = self.study
        steps = steps or self.steps(task, key, lever)
        return Trial(
            study.settings[task], key, study.contenders[key], lever, study.recipes[lever], rate,
            steps, seed, trajectories,
        )  # fmt: skip

    # --- choices ----------------------------------------------------------------------------------

    def rates(self, task: str, key: str) -> tuple[list[Trial], float | None]:
        """Trials of the search for a learning rate, and the best when it is over.

        From the middle one on, neighbours of the best are tried until none is better, by the error
        of rollouts of the validation split. Networks that were not timed have none.
        """
        base = self.recipes(task)[0]
        if f"{task}/{key}/{base}" not in self.speeds.seconds:
            return [], None
        if parent := self.study.contenders[key].like:
            return [], self.rates(task, parent)[1]
        rates = self.study.settings[task].rates
        best, tried = len(rates) // 2, dict[int, Trial]()
        while True:
            around = range(max(0, best - 1), min(len(rates), best + 2))
            tried |= {i: self.trial(task, key, base, rates[i]) for i in around}
            scores = {i: self._score(trial) for i, trial in tried.items()}
            if None in scores.values():
                return list(tried.values()), None
            better = min(scores, key=lambda i: scores[i] or 0.0)
            if better == best:
                return list(tried.values()), rates[best]
            best = better

    def levers(self, task: str, key: str) -> list[Trial]:
        """Trials of all recipes at the best learning rate; none before it is known."""
        rate = self.rates(task, key)[1]
        if rate is None:
            return []
        chosen = self.recipes(task)
        if self.study.contenders[key].like:
            chosen = chosen[:1]
        return [self.trial(task, key, lever, rate) for lever in chosen]

    def best(self, task: str, key: str) -> Trial | None:
        """The recipe whose rollouts are the best on the validation split; None if not known yet."""
        scores = {trial.lever: (self._score(trial), trial) for trial in self.levers(task, key)}
        if not scores or any(score is None for score, _ in scores.values()):
            return None
        return min(scores.values(), key=lambda pair: pair[0] or 0.0)[1]

    def finalists(self, task: str) -> list[Trial]:
        """The best training of each network of others, and that of the best of ours.

        Those whose search is not over do not take part.
        """
        found = {
            key: self.best(task, key) for key, c in self.study.contenders.items() if not c.like
        }
        best = {key: trial for key, trial in found.items() if trial is not None}
        ours = [key for key in best if self.study.contenders[key].ours]
        chosen = min(ours, key=lambda key: self._score(best[key]) or 0.0, default=None)
        return [best[key] for key in best if key == chosen or key not in ours]

    def _score(self, trial: Trial) -> float | None:
        record = self.find(trial)
        return None if record is None else record.score

    # --- trials -----------------------------------------------------------------------------------

    def trials(self, task: str, part: str) -> list[Trial]:
        """The trainings of a part, as far as it is known what they are."""
        setting, keys = self.study.settings[task], self.study.contenders
        if part == "levers":
            return [t for key in keys for t in (*self.rates(task, key)[0], *self.levers(task, key))]
        trajectories = 0
        if part == "few":
            if not setting.few:
                return []
            trajectories = setting.few
        return [
            self.trial(
                task, best.key, best.lever, best.rate, seed, self._length(best, part), trajectories
            )
            for seed in range(setting.seeds)
            for best in self.finalists(task)
        ]

    def _length(self, best: Trial, part: str) -> int:
        """Steps of a finalist."""
        setting = best.setting
        if part == "steps":
            return setting.steps
        return self.steps(setting.name, best.key, best.lever, setting.longer)

    def missing(self, task: str, parts: Sequence[str] = PARTS) -> list[Trial]:
        """What can be run now; more will come while choices are made."""
        trials = [trial for part in parts for trial in self.trials(task, part)]
        once = {trial.name: trial for trial in trials}
        return [trial for trial in once.values() if self.find(trial) is None]

    def finished(self, task: str, part: str) -> list[Record]:
        """Records of a part."""
        once = {trial.name: trial for trial in self.trials(task, part)}
        found = (self.find(trial) for trial in once.values())
        return [record for record in found if record is not None]

    def all_records(self) -> list[Record]:
        """All that belong to the study."""
        found = (r for task in self.study.settings for p in PARTS for r in self.finished(task, p))
        return list({record.name: record for record in found}.values())
