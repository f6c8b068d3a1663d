"""Seconds of a training step."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack

import torch
from torch import Tensor

from cscnn._util.jsonform import from_json, read_json
from cscnn._util.machine import machine
from cscnn._util.progress import Bar
from cscnn.data import open_fields
from cscnn.forecasting import Forecaster, Units
from cscnn.forecasting.evaluation.evaluator import Evaluator
from cscnn.forecasting.training.loader import WindowData
from cscnn.forecasting.training.train import build_forecaster
from experiments.paper.plan import Trial
from experiments.paper.records import Timing
from experiments.paper.results import Results

#: Interleaved timings of each model.
ROUNDS = 10


def device() -> torch.device | str:
    """The accelerator, if there is one."""
    return torch.accelerator.current_accelerator() or "cpu"


def training_batch(evaluator: Evaluator, trial: Trial) -> Tensor:
    """Inputs of the network in one step of training."""
    size = int(trial.setting.data.get("batch", 8))
    window = evaluator.read(evaluator.choose(size, seed=0))
    return evaluator.forecaster.pack(window.known, window.given)


def time_step(forecaster: Forecaster, x: Tensor) -> float:
    """Seconds of a forward and a backward pass."""
    parameters = list(forecaster.parameters())
    forecaster.train()
    start = time.perf_counter()
    loss = forecaster.predict(x).square().mean()
    gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
    float(next(g for g in gradients if g is not None).flatten()[0].abs())  # waits for devices
    seconds = time.perf_counter() - start
    forecaster.eval()
    return seconds


def _fresh(trial: Trial, results: Results) -> Forecaster:
    """The forecaster of a trial before training."""
    config = trial.config(results.out / "data", results.out / "runs")
    units = from_json(Units, read_json(results.units(trial.setting.task)))
    data = WindowData(config.data)
    try:
        return build_forecaster(config, data, units).eval()
    finally:
        data.close()


def compare_seconds(trials: Sequence[Trial], results: Results, threads: int, bar: Bar) -> Timing:
    """Seconds of a step of each model, from interleaved timings in one process.

    The minimum of interleaved timings, as other work only adds. A median would be that of a slow
    minute for some models and of a fast one for others.

    Args:
        trials: one of each contender of a task. Their weights do not matter: they are fresh.
        results: of the study.
        threads: of a training.
        bar: shows progress.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    task = trials[0].setting.task
    seconds: dict[str, list[float]] = {trial.key: [] for trial in trials}
    try:
        with ExitStack() as files:
            rows = []
            for trial in trials:
                source = files.enter_context(open_fields(results.data(task, "test")))
                evaluator = Evaluator(_fresh(trial, results).to(device()), source)
                rows.append((trial.key, evaluator.forecaster, training_batch(evaluator, trial)))
            for _ in bar.over(f"{task}, seconds of steps", range(ROUNDS)):
                for key, forecaster, x in rows:
                    time_step(forecaster, x)  # memory and caches are those of another model
                    seconds[key].append(time_step(forecaster, x))
        return Timing(
            machine=machine(),
            seconds={key: min(values) for key, values in seconds.items()},
            plans={trial.key: trial.plan().network() for trial in trials},
        )
    finally:
        torch.set_num_threads(before)
