"""The records that a study has so far, and the trainings that follow from them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from experiments import archive
from experiments.boosts import PARTS, records
from experiments.boosts.plan import Model, Setting, Trial
from experiments.boosts.records import Record

Choice = tuple[str, str, float]  #: variant, padding and learning rate


class Results:
    """Records of a study: those in its folder, and those of an earlier one.

    Args:
        settings: task -> setting.
        models: key -> network.
        out: folder.
        known: records of an earlier study, used where their plan is the same.
    """

    def __init__(
        self,
        settings: Mapping[str, Setting],
        models: Mapping[str, Model],
        out: Path,
        known: Iterable[Record] = (),
    ):
        self.settings, self.models, self.out = settings, models, out
        self.store = archive.Store(out / "records", Record, records.FORMAT, known)

    def find(self, trial: Trial) -> Record | None:
        """The record of a trial, if it has been run."""
        return self.store.find(trial.name, trial.plan())

    def lost(self, trial: Trial) -> Path | None:
        """Where the record of a training should be, if there is none."""
        return None if self.find(trial) is not None else self.store.file(trial.name)

    # --- the search for variant, padding and learning rate ----------------------------------------

    def search(self, task: str, key: str) -> tuple[list[Trial], Choice | None]:
        """Trials of the search, as far as it is known what to try, and its result when it is over.

        On the validation split, at rest: whatever differs from the best choice in one thing, which
        is its variant, its padding or its learning rate by one place, until nothing is better.
        """
        setting, variants = self.settings[task], self.models[key].variants
        middle = setting.rates[len(setting.rates) // 2]
        best: Choice = (next(iter(variants)), setting.paddings[0], middle)
        tried: dict[Choice, Trial] = {}
        while True:
            variant, padding, rate = best
            around = [
                best,
                *((other, padding, rate) for other in variants),
                *((variant, other, rate) for other in setting.paddings),
                *((variant, padding, other) for other in beside(setting.rates, rate)),
            ]
            tried |= {choice: self._trial(task, key, choice) for choice in around}
            errors = {choice: self._valid(trial) for choice, trial in tried.items()}
            if None in errors.values():
                return list(tried.values()), None
            better = min(errors, key=lambda choice: errors[choice] or 0.0)
            if better == best:
                return list(tried.values()), best
            best = better

    def _valid(self, trial: Trial) -> float | None:
        """Error on the validation split, infinite if diverged; None if it has not been run."""
        record = self.find(trial)
        if record is None:
            return None
        return math.inf if record.valid is None else record.valid

    def _trial(
        self,
        task: str,
        key: str,
        choice: Choice,
        seed: int = 0,
        finer: int = 0,
        later: int = 1,
        longer: int = 1,
    ) -> Trial:
        setting = self.settings[task]
        refinement = finer or setting.refinement
        return Trial(setting, key, self.models[key], *choice, seed, refinement, later, longer)

    # --- trials -----------------------------------------------------------------------------------

    def trials(self, task: str, part: str) -> list[Trial]:
        """The trainings of a part, of models whose search is over."""
        setting = self.settings[task]
        keys = setting.models if part == "models" else setting.refined
        grids = setting.refinements if part == "resolution" else (setting.refinement,)
        factors = setting.displacements if part == "displacement" else (1,)
        lengths = setting.prolongations if part == "steps" else (1,)
        chosen = {key: self.search(task, key)[1] for key in keys}
        return [
            self._trial(task, key, choice, seed, finer, later, longer)
            for seed in range(setting.seeds)
            for finer in grids
            for later in factors
            for longer in lengths
            for key, choice in chosen.items()
            if choice is not None
        ]

    def missing(self, task: str, parts: Collection[str] = PARTS) -> list[Trial]:
        """What can be run now; more will come while choices are searched."""
        searched = [self.search(task, key)[0] for key in self.settings[task].models]
        trials = [trial for found in searched for trial in found]
        trials += [trial for part in parts for trial in self.trials(task, part)]
        once = {trial.name: trial for trial in trials}
        return [trial for trial in once.values() if self.find(trial) is None]

    def finished(self, task: str, part: str) -> list[Record]:
        """Records of a part."""
        found = (self.find(trial) for trial in self.trials(task, part))
        return [record for record in found if record is not None]

    def unfinished(self, task: str) -> list[str]:
        """What is missing, in words."""
        setting, gaps = self.settings[task], []
        unknown = [k for k in setting.models if self.search(task, k)[1] is None]
        if unknown:
            gaps.append(f"options of {', '.join(unknown)}")
        for part in PARTS:
            lost = [t for t in self.trials(task, part) if self.find(t) is None]
            if lost:
                gaps.append(f"{len(lost)} trainings of the part {part}")
        return gaps

    def all_records(self) -> list[Record]:
        """All that belong to the study, those of the search included."""
        found: dict[str, Record] = {}
        for task, setting in self.settings.items():
            trials = [t for key in setting.models for t in self.search(task, key)[0]]
            trials += [trial for part in PARTS for trial in self.trials(task, part)]
            for trial in trials:
                if (record := self.find(trial)) is not None:
                    found[record.name] = record
        return list(found.values())


def beside(rates: Sequence[float], rate: float) -> tuple[float, ...]:
    """The neighbours of a learning rate in an ascending list."""
    place = rates.index(rate)
    return (*rates[max(0, place - 1) : place], *rates[place + 1 : place + 2])
