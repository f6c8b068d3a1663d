"""One trial: train, roll out on unseen data, keep the record."""

from __future__ import annotations

import math
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import cscnn
from cscnn._util.machine import machine
from cscnn.data import FieldSource, open_fields
from cscnn.forecasting import Run, train
from cscnn.forecasting.evaluation.evaluator import Evaluator
from cscnn.forecasting.evaluation.results import RolloutErrors
from cscnn.forecasting.training.module import NonFiniteLoss
from experiments.rollouts.plan import Trial
from experiments.rollouts.records import Record
from experiments.rollouts.results import Results


def run_trial(trial: Trial, results: Results) -> Record:
    """Train or go on, measure, and keep the record. Training that diverges is a result too."""
    results.study.register()
    config = trial.config(results.out / "data", results.out / "runs")
    record = Record(
        trial.name, trial.setting.name, trial.key, trial.lever, trial.plan(),
        rate=trial.rate, steps=trial.steps, seed=trial.seed,
        machine={**machine(), "cscnn": cscnn.__version__},
    )  # fmt: skip
    try:
        start = time.monotonic()
        run = train(config)
        record = replace(record, seconds=time.monotonic() - start, **measure(run, trial))
        record = replace(record, others=measure_others(run, trial, results.out / "data"))
    except NonFiniteLoss as error:
        record = replace(record, diverged=str(error))
    results.store.keep(record)
    shutil.rmtree(config.folder)  # the record has all that is wanted
    return record


@torch.no_grad()
def measure(run: Run, trial: Trial) -> dict[str, Any]:
    """Attributes of a record: errors of rollouts of the validation and the test split."""
    valid, test = (roll_out(run, split, trial.setting.horizon) for split in ("valid", "test"))
    if not math.isfinite(sum(valid.relative_l2) + sum(test.relative_l2)):
        steps = min(valid.stable_steps, test.stable_steps)
        raise NonFiniteLoss(f"rollouts leave the data after {steps} steps")
    return {
        "parameters": run.forecaster().n_parameters(),
        "valid": sum(valid.relative_l2) / len(valid.relative_l2),
        "errors": tuple(test.relative_l2),
        "correlation_frames": test.correlation_frames,
        "persistence": tuple(test.persistence),
        "learning": tuple(row["valid_loss"] for row in run.metrics()),
    }


@torch.no_grad()
def measure_others(run: Run, trial: Trial, data: Path) -> dict[str, tuple[float, ...]]:
    """Errors of rollouts of the further test splits; none where a rollout leaves the data."""
    found = {}
    for name in trial.setting.others:
        with open_fields(data / trial.setting.name / f"{name}.h5") as source:
            errors = _errors(run, source, trial.setting.horizon).relative_l2
        found[name] = tuple(errors) if math.isfinite(sum(errors)) else ()
    return found


def roll_out(run: Run, split: str, horizon: int) -> RolloutErrors:
    """Errors of rollouts from the beginning of all trajectories of a split."""
    with run.source(split) as source:
        return _errors(run, source, horizon)


def _errors(run: Run, source: FieldSource, horizon: int) -> RolloutErrors:
    evaluator = Evaluator(run.forecaster(), source, batch=8, quiet=True)
    return evaluator.rollouts(len(source), horizon)[0]
