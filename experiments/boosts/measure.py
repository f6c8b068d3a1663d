"""One trial: train at rest, look at the same solutions from moving frames, keep the record."""

from __future__ import annotations

import math
import shutil
import time
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

import cscnn
from cscnn._util.jsonform import to_json
from cscnn._util.machine import machine
from cscnn.forecasting import Run, train
from cscnn.forecasting.evaluation.observers import boosted_errors
from cscnn.forecasting.forecaster import Forecaster
from cscnn.forecasting.task import Task
from cscnn.forecasting.training.module import NonFiniteLoss
from experiments.boosts.plan import Trial
from experiments.boosts.records import Record
from experiments.boosts.results import Results


class Persistence(nn.Module):
    """A network that repeats the last frame of its input.

    Args:
        task: with time as an axis of the grid.
    """

    def __init__(self, task: Task):
        super().__init__()
        assert task.time_axis is not None
        self.axis, self.channels = 2 + task.time_axis, task.in_channels

    def forward(self, x: Tensor) -> Tensor:
        frames = x[:, : self.channels]
        return frames.narrow(self.axis, frames.shape[self.axis] - 1, 1).expand_as(frames)


def run_trial(trial: Trial, results: Results) -> Record:
    """Train or go on, measure, and keep the record. Training that diverges is a result too."""
    start = time.monotonic()
    config = trial.config(results.out / "data", results.out / "runs")
    record = Record(
        trial.name, trial.setting.name, trial.key, trial.plan(),
        spacing=trial.setting.spacing_at(trial.refinement),
        displacement=trial.later * trial.setting.spacing_at(trial.refinement),
        variant=trial.variant,
        padding=trial.padding, rate=trial.rate, seed=trial.seed, prolongation=trial.prolongation,
        machine={**machine(), "cscnn": cscnn.__version__},
    )  # fmt: skip
    try:
        run = train(config)
        valid = min(row["valid_loss"] for row in run.metrics())
        record = replace(record, valid=valid, **measure(run, trial))
        if not math.isfinite(sum(record.errors)):
            raise NonFiniteLoss(f"the errors are {record.errors}")
    except NonFiniteLoss as error:
        record = replace(record, valid=None, errors=(), diverged=str(error))
    record = replace(record, seconds=time.monotonic() - start)
    results.store.keep(record)
    shutil.rmtree(config.folder)  # the record has all that is wanted
    return record


@torch.no_grad()
def measure(run: Run, trial: Trial) -> dict[str, Any]:
    """Attributes of a record: errors of new events for each observer."""
    setting = trial.setting
    forecaster = run.forecaster()
    assert forecaster.recipe is not None
    persistence = Forecaster(Persistence(forecaster.task), forecaster.task, forecaster.units)
    with run.source("test") as source:
        mine, last = (
            boosted_errors(f, source.header, rapidities=setting.rapidities, count=setting.observed)
            for f in (forecaster, persistence)
        )
    return {
        "parameters": forecaster.n_parameters(),
        "options": to_json(forecaster.recipe.options),
        "rapidities": setting.rapidities,
        "errors": tuple(mine.relative_l2),
        "persistence": tuple(last.relative_l2),
    }
