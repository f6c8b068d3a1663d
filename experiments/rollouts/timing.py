"""Seconds of a training step of each network and recipe, side by side."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from cscnn._util.jsonform import from_json, read_json
from cscnn._util.machine import machine
from cscnn._util.progress import Bar
from cscnn.forecasting.training.loader import WindowData
from cscnn.forecasting.training.module import TrainingModule
from cscnn.forecasting.training.train import build_forecaster
from cscnn.forecasting.unroll import Unroll
from cscnn.forecasting.windows import collate
from experiments.rollouts.plan import Contender, Recipe, Setting, Trial

ROUNDS = 5  #: timings of each, of which the minimum counts


@dataclass(frozen=True)
class Speeds:
    """Seconds of a training step, "task/contender/recipe" -> seconds, and on what machine."""

    machine: dict[str, str]
    seconds: dict[str, float]


def read_speeds(path: Path) -> Speeds | None:
    """What was measured, if it was."""
    return from_json(Speeds, read_json(path), str(path)) if path.is_file() else None


def measure_speeds(
    settings: Mapping[str, Setting],
    contenders: Mapping[str, Contender],
    recipes: Mapping[str, Recipe],
    data: Path,
    *,
    quiet: bool = False,
) -> Speeds:
    """Measure on one thread, as trainings run: the minimum of interleaved timings.

    Args:
        settings, contenders, recipes: by their keys.
        data: folder of the folders of data, which are there.
        quiet: show no progress.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        steps = {
            f"{task}/{key}/{lever}": _Step(
                Trial(setting, key, contender, lever, recipe, setting.rates[0], setting.steps), data
            )
            for task, setting in settings.items()
            for key, contender in contenders.items()
            for lever, recipe in recipes.items()
            if lever in (setting.recipes or recipes) and task in (contender.tasks or settings)
        }
        seconds = dict.fromkeys(steps, float("inf"))
        for _ in Bar("rounds", quiet=quiet).over("seconds of steps", range(ROUNDS)):
            for name, step in steps.items():
                step()  # memory and caches are those of another model
                seconds[name] = min(seconds[name], step())
        return Speeds(machine(), seconds)
    finally:
        torch.set_num_threads(before)


class _Step:
    """A training step that can be timed."""

    def __init__(self, trial: Trial, data: Path):
        config = trial.config(data, data)
        windows = WindowData(config.data, 0, unroll=config.training.unroll)
        self.forecaster = build_forecaster(
            config, windows, windows.fit_units(Bar("trajectories", quiet=True))
        )
        self.batch = collate([windows.train_windows()[i] for i in range(config.data.batch)])
        self.learning = config.training
        training = TrainingModule(self.forecaster, config.optimizer)
        self.optimizer = training.configure_optimizers()["optimizer"]
        #: with the number of epochs that are unrolled so
        self.unrolls = Counter(map(self.learning.unrolled, range(config.trainer.epochs)))
        windows.close()

    def __call__(self) -> float:
        """Seconds of a step, the mean over the epochs of the training."""
        seconds = sum(epochs * self._seconds(unroll) for unroll, epochs in self.unrolls.items())
        return seconds / self.unrolls.total()

    def _seconds(self, unroll: Unroll) -> float:
        first = 1 if unroll.pushforward else unroll.steps  # with it, lengths are drawn
        drawn = [replace(unroll, steps=n) for n in range(first, unroll.steps + 1)]
        batch, learning = self.batch, self.learning
        start = time.perf_counter()
        for each in drawn:
            self.optimizer.zero_grad()
            self.forecaster.loss(batch, learning.loss, learning.weights, each).backward()
            self.optimizer.step()
        return (time.perf_counter() - start) / len(drawn)
