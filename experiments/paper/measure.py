"""One trial: train it, measure it, and keep its record."""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace

from cscnn._util.files import write_text
from cscnn._util.jsonform import from_json, read_json, to_json, write_json
from cscnn._util.machine import machine
from cscnn._util.progress import Bar
from cscnn.data import open_fields
from cscnn.data.generate import generate
from cscnn.forecasting import Run, TrainConfig, Units
from cscnn.forecasting.evaluation import symmetry
from cscnn.forecasting.evaluation.evaluator import Evaluator, NonFinitePrediction
from cscnn.forecasting.runs import SPLITS
from cscnn.forecasting.training.module import NonFiniteLoss
from cscnn.forecasting.training.train import train
from experiments.paper.freedom import degrees_of_freedom
from experiments.paper.plan import Trial
from experiments.paper.records import LearningCurve, Measurements, Record
from experiments.paper.results import Results
from experiments.paper.timing import device, time_step, training_batch

ROLLOUTS = 8  #: of a detailed trial
TIMINGS = 5  #: of a step, of which the minimum is kept


def run_trial(trial: Trial, results: Results) -> Record:
    """Train or go on, measure, and keep the record. Training that diverges is a result too."""
    config = trial.config(results.out / "data", results.out / "runs")
    _prepare_folder(config, trial)
    units = from_json(Units, read_json(results.units(trial.setting.task)))
    record = Record(trial.name, trial.key, trial.plan(), machine())
    try:
        run = train(config, units)  # the units of the whole training split, for all sizes
        curve = learning_curve(run)
        valid = min((v for v in curve.valid if math.isfinite(v)), default=None)
        if valid is None:
            raise NonFiniteLoss("the validation error was never finite")
        record = replace(record, valid=valid, curve=curve)
        record = replace(record, measured=measure(run, trial))
    except (NonFiniteLoss, NonFinitePrediction) as error:
        record = replace(record, diverged=str(error))
    results.keep(record)
    (config.folder / "state.ckpt").unlink(missing_ok=True)  # it is finished: no need to resume
    return record


def run_timed(trial: Trial, results: Results) -> tuple[Trial, Record, float]:
    """`run_trial`, with the seconds it took."""
    start = time.monotonic()
    return trial, run_trial(trial, results), time.monotonic() - start


def _prepare_folder(config: TrainConfig, trial: Trial) -> None:
    """Make the folder of a run; what another plan of the same name has left is removed.

    The study may have been moved: the configuration of an interrupted run of the same plan is made
    to name its present folder and data.
    """
    folder = config.folder
    plan = folder / "plan.json"
    text = json.dumps(to_json(trial.plan())) + "\n"
    if folder.exists() and not (plan.exists() and plan.read_text(encoding="utf-8") == text):
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_text(plan, text)
    if (folder / "config.json").is_file():
        before = Run(folder).config()
        paths = {split: getattr(config.data, split) for split in SPLITS}
        moved = replace(before, out=config.out, data=replace(before.data, **paths))
        write_json(folder / "config.json", moved)


def learning_curve(run: Run) -> LearningCurve:
    """How training went, without a look at the test split."""
    rows = run.metrics()
    return LearningCurve(
        step=[round(row["step"]) for row in rows],
        valid=[row["valid_loss"] for row in rows],
        train=[row["train_loss"] for row in rows],
    )


def measure(run: Run, trial: Trial) -> Measurements:
    """Errors, symmetry and cost of a trained forecaster."""
    with run.source("test") as source:
        forecaster = run.forecaster(device())
        evaluator = Evaluator(forecaster, source, batch=8)
        chosen = evaluator.choose(trial.setting.test_windows, seed=0)
        one_step = evaluator.one_step(chosen)
        if not math.isfinite(one_step.scaled_mse):
            raise NonFinitePrediction(f"the test error is {one_step.scaled_mse}")
        window = evaluator.read(chosen[:2])
        x = forecaster.pack(window.known, window.given)
        batch = training_batch(evaluator, trial)
        assert forecaster.recipe is not None
        measured = Measurements(
            parameters=forecaster.n_parameters(),
            degrees_of_freedom=degrees_of_freedom(forecaster),
            options=forecaster.recipe.options,
            one_step=one_step,
            seconds_per_step=min(time_step(forecaster, batch) for _ in range(TIMINGS)),
            point_group=symmetry.point_group_error(forecaster, x),
        )
        if not trial.detailed:
            return measured
        rollout, samples = evaluator.rollouts(min(ROLLOUTS, len(source)))
        samples.save(run.path / "samples.npz")
        return replace(measured, symmetry=evaluator.symmetry(chosen, seed=0), rollout=rollout)


def prepare_data(trials: Sequence[Trial], results: Results, workers: int, bar: Bar) -> None:
    """Simulate what the trials need, and fit the units of each task to its training split."""
    for setting in {t.setting.task: t.setting for t in trials}.values():
        made = generate(
            setting.files(results.out / "data"),
            workers=workers,
            progress=lambda split, done, total, task=setting.task: bar(  # type: ignore[misc]
                f"{task} {split}", done, total
            ),
        )
        train_file, units_file = results.data(setting.task, "train"), results.units(setting.task)
        if made[train_file] or not units_file.exists():
            with open_fields(train_file) as source:
                write_json(units_file, Units.fit(source))
