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
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cscnn.atomic import write_text
from cscnn.data import Scaling, open_fields
from cscnn.evaluation import symmetry
from cscnn.evaluation.evaluate import plain
from cscnn.evaluation.subject import NonFinitePrediction, Subject
from cscnn.progress import Bar
from cscnn.study.freedom import degrees_of_freedom
from cscnn.study.plan import Trial
from cscnn.training.module import NonFiniteLoss
from cscnn.training.run import Run
from cscnn.training.train import train

#: Rollouts of a detailed trial.
SOME = 8


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
    if plan.exists() and plan.read_text(encoding="utf-8") != text:
        shutil.rmtree(folder)  # of another plan under the same name
    folder.mkdir(parents=True, exist_ok=True)
    write_text(plan, text)
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
    }
    try:
        record |= measure(train(config), trial)
    except (NonFiniteLoss, NonFinitePrediction) as error:
        record["diverged"] = str(error)
    save_record(trial, out, record)
    (folder / "state.ckpt").unlink(missing_ok=True)  # it is finished: no need to resume
    return record


def measure(run: Run, trial: Trial) -> dict[str, Any]:
    """Errors, symmetry and cost of a trained model."""
    rows = run.metrics()
    if not any(math.isfinite(row["valid_loss"]) for row in rows):
        raise NonFiniteLoss("the validation error was never finite")
    model = run.model(
        "cpu" if (device := torch.accelerator.current_accelerator()) is None else device
    )
    data = trial.setting.data
    with run.source("test") as source:
        subject = Subject(model, run.scaling(), source, int(data.get("coarsen", 1)), batch=8)
        chosen = subject.choose(trial.setting.test_windows, seed=0)
        quiet = Bar("windows", quiet=True)
        one_step = subject.one_step(chosen, quiet)
        x = subject.scaled_input(chosen[:2]).float().to(subject.device)
        result: dict[str, Any] = {
            "parameters": model.n_parameters(),
            "degrees_of_freedom": degrees_of_freedom(model),
            "options": model.config["options"],
            "error": one_step["scaled_mse"],
            "one_step": one_step,
            "valid": min(row["valid_loss"] for row in rows),
            "curve": {
                "step": [row["step"] for row in rows],
                "valid": [row["valid_loss"] for row in rows],
                "train": [row["train_loss"] for row in rows],
            },
            "seconds_per_step": step_seconds(subject, chosen[: int(data.get("batch", 8))]),
            "point_group": symmetry.point_group_error(model, x),
        }
        if trial.detailed:
            result["symmetry"] = subject.symmetry(chosen, seed=0, quiet=True)
            result["rollout"], samples = subject.rollouts(min(SOME, len(source)), None, quiet)
            packed: dict[str, Any] = dict(samples)
            np.savez_compressed(run.path / "samples.npz", **packed)
    return plain(result)


def step_seconds(subject: Subject, numbers: list[int], repeats: int = 5) -> float:
    """Forward and backward pass on a batch: the least of several, as other work only adds."""
    x = subject.scaled_input(numbers).float().to(subject.device)
    parameters = list(subject.model.parameters())
    found = []
    subject.model.train()
    for _ in range(repeats):
        start = time.perf_counter()
        loss = subject.model(x).square().mean()
        gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
        float(next(g for g in gradients if g is not None).flatten()[0].abs())  # waits for devices
        found.append(time.perf_counter() - start)
    subject.model.eval()
    return min(found)


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
