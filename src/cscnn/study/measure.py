"""One trial: train it, measure it, and write down what came out."""

from __future__ import annotations

import json
import math
import multiprocessing
import multiprocessing.connection
import os
import shutil
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cscnn.atomic import write_text
from cscnn.data import FieldSource, Scaling, open_fields
from cscnn.evaluation import symmetry
from cscnn.evaluation.evaluate import plain
from cscnn.evaluation.subject import NonFinitePrediction, Subject
from cscnn.measure import machine
from cscnn.progress import Bar
from cscnn.study.freedom import degrees_of_freedom
from cscnn.study.plan import SPLITS, Trial
from cscnn.training.config import TrainConfig
from cscnn.training.module import NonFiniteLoss
from cscnn.training.run import Run
from cscnn.training.train import train

#: Rollouts of a detailed trial.
SOME = 8
#: Measurements of each model side by side.
ROUNDS = 10


def record_file(trial: Trial, out: Path) -> Path:
    """Where the result of a trial is kept."""
    return out / "records" / f"{trial.name}.json"


def load_record(trial: Trial, out: Path) -> dict[str, Any] | None:
    """The result of a trial, if it is there and of the same plan."""
    path = record_file(trial, out)
    if not path.is_file():
        return None
    record = json.loads(path.read_text(encoding="utf-8"))
    return record if record.get("plan") == trial.fingerprint() else None


def save_record(trial: Trial, out: Path, record: dict[str, Any]) -> None:
    """Keep the result of a trial."""
    path = record_file(trial, out)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(record, indent=1) + "\n")


def run_trial(trial: Trial, out: Path) -> dict[str, Any]:
    """Train or go on, measure, and keep the record. Training that diverges is a result too."""
    config = trial.config(out / "data", out / "runs")
    folder = config.folder
    plan = folder / "plan.json"
    text = json.dumps(trial.fingerprint()) + "\n"
    if folder.exists() and not (plan.exists() and plan.read_text(encoding="utf-8") == text):
        shutil.rmtree(folder)  # of another plan under the same name, or half removed
    folder.mkdir(parents=True, exist_ok=True)
    write_text(plan, text)
    _move(folder / "config.json", config)
    scaling = folder / "scaling.json"
    if not scaling.exists():  # one scale for all sizes: that of the whole training split
        common = out / "data" / trial.setting.task / "scaling.json"
        write_text(scaling, common.read_text(encoding="utf-8"))
    record: dict[str, Any] = {
        "name": trial.name,
        "plan": trial.fingerprint(),
        "task": trial.setting.task,
        "contender": trial.key,
        "label": trial.contender.label,
        "trajectories": trial.trajectories,
        "rate": trial.rate,
        "seed": trial.seed,
        "machine": machine(),
    }
    try:
        run = train(config)
        record |= plain(_validation(run))
        record |= plain(measure(run, trial))
    except (NonFiniteLoss, NonFinitePrediction) as error:
        record["diverged"] = str(error)
    save_record(trial, out, record)
    (folder / "state.ckpt").unlink(missing_ok=True)  # it is finished: no need to resume
    return record


def _move(file: Path, config: TrainConfig) -> None:
    """Let the configuration of an interrupted run name its present folder and data.

    The study may have been moved; the plan says that it is the same.
    """
    if file.is_file():
        old, new = json.loads(file.read_text(encoding="utf-8")), config.to_dict()
        old["out"] = new["out"]
        for split in SPLITS:
            old["data"][split] = new["data"][split]
        write_text(file, json.dumps(old, indent=2) + "\n")


def _validation(run: Run) -> dict[str, Any]:
    """How training went, without a look at the test split."""
    rows = run.metrics()
    losses = [row["valid_loss"] for row in rows if math.isfinite(row["valid_loss"])]
    if not losses:
        raise NonFiniteLoss("the validation error was never finite")
    return {
        "valid": min(losses),
        "curve": {
            "step": [row["step"] for row in rows],
            "valid": [row["valid_loss"] for row in rows],
            "train": [row["train_loss"] for row in rows],
        },
    }


def measure(run: Run, trial: Trial) -> dict[str, Any]:
    """Errors, symmetry and cost of a trained model."""
    with run.source("test") as source:
        subject = _subject(run, trial, source)
        chosen = subject.choose(trial.setting.test_windows, seed=0)
        quiet = Bar("windows", quiet=True)
        one_step = subject.one_step(chosen, quiet)
        if not math.isfinite(one_step["scaled_mse"]):
            raise NonFinitePrediction(f"the test error is {one_step['scaled_mse']}")
        x = subject.scaled_input(chosen[:2]).float().to(subject.device)
        batch = _batch(subject, trial)
        model = subject.model
        result: dict[str, Any] = {
            "parameters": model.n_parameters(),
            "degrees_of_freedom": degrees_of_freedom(model),
            "options": model.config["options"],
            "error": one_step["scaled_mse"],
            "one_step": one_step,
            "seconds_per_step": min(_step_seconds(subject, batch) for _ in range(5)),
            "point_group": symmetry.point_group_error(model, x),
        }
        if trial.detailed:
            result["symmetry"] = subject.symmetry(chosen, seed=0, quiet=True)
            result["rollout"], samples = subject.rollouts(min(SOME, len(source)), None, quiet)
            packed: dict[str, Any] = dict(samples)
            np.savez_compressed(run.path / "samples.npz", **packed)
    return result


def _subject(run: Run, trial: Trial, source: FieldSource) -> Subject:
    device = torch.accelerator.current_accelerator() or "cpu"
    coarsen = int(trial.setting.data.get("coarsen", 1))
    return Subject(run.model(device), run.scaling(), source, coarsen, batch=8)


def _batch(subject: Subject, trial: Trial) -> Tensor:
    """Inputs of a step of training."""
    size = int(trial.setting.data.get("batch", 8))
    return subject.scaled_input(subject.choose(size, seed=0)).float().to(subject.device)


def _step_seconds(subject: Subject, x: Tensor) -> float:
    """Of a forward and a backward pass."""
    parameters = list(subject.model.parameters())
    subject.model.train()
    start = time.perf_counter()
    loss = subject.model(x).square().mean()
    gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
    float(next(g for g in gradients if g is not None).flatten()[0].abs())  # waits for devices
    seconds = time.perf_counter() - start
    subject.model.eval()
    return seconds


def compare_seconds(trials: Sequence[Trial], out: Path, threads: int, bar: Bar) -> dict[str, Any]:
    """Seconds of a step of each trained model, side by side in one process, and where.

    The least of some, as other work only adds. A median would be that of a slow minute for some
    models and of a fast one for others.

    Args:
        trials: one of each contender, all trained in ``out``.
        out: folder of the study.
        threads: of a training.
        bar: shows progress.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    found: dict[str, list[float]] = {trial.key: [] for trial in trials}
    try:
        with ExitStack() as files:
            rows = []
            for trial in trials:
                run = Run(out / "runs" / trial.name)
                data = out / "data" / trial.setting.task / "test.h5"
                subject = _subject(run, trial, files.enter_context(open_fields(data)))
                rows.append((trial.key, subject, _batch(subject, trial)))
            for done in range(ROUNDS):
                bar(f"{trials[0].setting.task}, seconds of steps", done, ROUNDS)
                for key, subject, x in rows:
                    _step_seconds(subject, x)  # memory and caches are those of another model
                    found[key].append(_step_seconds(subject, x))
            bar(f"{trials[0].setting.task}, seconds of steps", ROUNDS, ROUNDS)
        least = {key: min(seconds) for key, seconds in found.items()}
        plans = {trial.key: trial.model_plan() for trial in trials}
        return {"machine": machine(), "seconds": least, "plans": plans}
    finally:
        torch.set_num_threads(before)


def prepare_data(trials: list[Trial], out: Path, workers: int, bar: Bar) -> None:
    """Simulate what the trials need, and fit the scales."""
    from cscnn.data.generate import generate

    for setting in {t.setting.task: t.setting for t in trials}.values():
        plans = setting.files(out / "data")
        made = generate(
            plans,
            workers=workers,
            progress=lambda split, done, total, task=setting.task: bar(  # type: ignore[misc]
                f"{task} {split}", done, total
            ),
        )
        train_file = out / "data" / setting.task / "train.h5"
        scaling = train_file.with_name("scaling.json")
        if made[train_file] or not scaling.exists():
            with open_fields(train_file) as source:
                Scaling.fit(source).save(scaling)


def start_worker(threads: int) -> None:
    """Settings of a process that runs trials. It ends with the one that started it."""
    torch.set_num_threads(threads)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)  # what has been trained is kept; nobody waits for more

    threading.Thread(target=follow, daemon=True).start()


def timed(trial: Trial, out: Path) -> tuple[Trial, dict[str, Any], float]:
    """`run_trial`, with the seconds it took."""
    start = time.monotonic()
    return trial, run_trial(trial, out), time.monotonic() - start
