"""Folders of runs that nobody has trained, with everything that a report reads."""

import csv
import dataclasses

import numpy as np

from cscnn._util.jsonform import write_json
from cscnn.data.simulators import create
from cscnn.data.trajectories import symmetric_part
from cscnn.forecasting.evaluation.results import (
    Cost,
    Curve,
    Curves,
    DataInfo,
    ErrorCurves,
    Evaluation,
    LawResidual,
    ModelInfo,
    MotionErrors,
    ObserverErrors,
    OneStepErrors,
    PhysicalQuantity,
    RolloutErrors,
    Samples,
    Spread,
    SymmetryErrors,
)
from cscnn.forecasting.forecaster import Forecaster
from cscnn.forecasting.task import Task
from cscnn.forecasting.training.config import DataConfig, ModelConfig, TrainConfig, TrainerConfig

NETWORKS = {
    "cs_resnet": {"width": 2, "blocks": 1, "kernel": {"name": "implicit", "hidden_dim": 4}},
    "resnet": {"width": 4, "blocks": 1},
}


def fluid():
    return Task.from_header(create("navier_stokes").header(), name="navier_stokes")


def line():
    return Task.from_header(create("sine_gordon", "small").header(), name="solitons", frames_in=8)


def charges():
    return Task.from_header(create("maxwell_spacetime").header(), name="charges", frames_in=8)


TASKS = {"fluid": fluid, "line": line, "charges": charges}


def make_run(folder, task, network="cs_resnet", *, quality=1.0, points=24, steps=8, seed=0):
    """A run folder with made-up numbers; the smaller ``quality``, the smaller the errors."""
    folder.mkdir(parents=True)
    config = TrainConfig(
        folder.name,
        seed,
        DataConfig("data/train.h5", test="t.h5"),
        ModelConfig(network),
        trainer=TrainerConfig(epochs=20),
    )
    write_json(folder / "config.json", config)
    forecaster = Forecaster.build(network, task, **NETWORKS[network])
    forecaster.save(folder / "model.safetensors")
    rng = np.random.default_rng(seed)
    with (folder / "metrics.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("epoch", "step", "train_loss", "valid_loss", "lr", "seconds"))
        for i in range(20):
            loss = quality * (0.02 + np.exp(-i / 4)) * (1 + 0.1 * rng.random())
            rows.writerow((i + 1, 64 * (i + 1), 0.9 * loss, loss, 1e-3, 12.5))
    make_evaluation(forecaster, folder.name, quality, steps).save(folder / "evaluation.json")
    make_samples(task, quality, points, steps, seed).save(folder / "samples.npz")
    return folder


def make_evaluation(forecaster, run, quality, steps):
    """Networks other than ours have larger errors where symmetry counts."""
    task, name, parameters = forecaster.task, forecaster.name, forecaster.n_parameters()
    equivariant = name.startswith("cs")
    errors = _errors(quality)
    return Evaluation(
        run,
        ModelInfo(name, parameters, NETWORKS[name]),
        task,
        DataInfo("data/test.h5", "test", trajectories=16, windows=160, rollouts=16),
        OneStepErrors(
            errors, 0.1 * quality, {field.name: errors for field in task.fields}, _errors(14.0)
        ),
        _rollout(task, equivariant, quality, steps),
        _symmetry(task, equivariant, quality),
        Cost(120.0 / quality, batch=8, peak_bytes=350_000_000, parameters=parameters),
        {"cpu": "a processor", "torch": "2.6"},
    )


def _errors(scale):
    return {
        "mse": 1e-3 * scale**2,
        "relative_l2": 0.02 * scale,
        "vrmse": 0.03 * scale,
        "correlation": 1 - 0.02 * scale,
        "spectrum_error": 0.01 * scale,
    }


def _rollout(task, equivariant, quality, steps):
    growth = np.linspace(1, 4, steps)
    curves = {
        "mse": 1e-3 * quality * growth**2,
        "relative_l2": 0.02 * quality * growth,
        "correlation": 1 - 0.02 * quality * growth,
        "persistence": 0.15 * growth,
    }
    lost = None if equivariant else 5.5
    errors = {
        **{name: curve.tolist() for name, curve in curves.items()},
        "spread": {n: Spread((0.9 * c).tolist(), (1.1 * c).tolist()) for n, c in curves.items()},
        "correlation_frames": lost,
        "persistence_frames": None,
        "lifetimes": {"correlation": [lost] * 16, "persistence": [None] * 16},
    }
    return RolloutErrors(
        **errors,
        steps=list(range(1, steps + 1)),
        times=[task.frame_spacing * (i + 1) for i in range(steps)],
        correlation_time=lost and lost * task.frame_spacing,
        stable_steps=steps,
        stable=[steps] * 16,
        fields={field.name: ErrorCurves(**errors) for field in task.fields},
        laws={
            "law": LawResidual("no divergence", "∇⌟v = 0", 0.1, 1e-7, _curves(growth / 40, 1e-7))
        },
        quantities={
            "energy": PhysicalQuantity(
                "kinetic energy per mass", "½⟨v²⟩", "(m/s)²", 2.0, _curves(1 + growth, 2.0)
            )
        },
    )


def _curves(prediction, target):
    target = np.full_like(prediction, target)
    return Curves(
        *(Curve(c.tolist(), (0.8 * c).tolist(), (1.2 * c).tolist()) for c in (prediction, target))
    )


def _symmetry(task, equivariant, quality):
    spacetime = task.time_axis is not None
    angles, rapidities = [15.0 * i for i in range(7)], [0.0, 0.2, 0.4, 0.6, 0.8]
    interpolation = [abs(float(np.sin(2 * np.deg2rad(a)))) for a in angles]
    rotation = MotionErrors(
        angles,
        [
            (0.02 if equivariant else 0.5) * x + (1e-6 if equivariant else 0.3)
            for x in interpolation
        ],
        [0.015 * x + 1e-6 for x in interpolation],
    )
    boost = MotionErrors(
        rapidities,
        [0.5 * r * (0.05 if equivariant else 1) + 1e-6 for r in rapidities],
        [0.02 * r + 1e-6 for r in rapidities],
    )
    observers = rapidities if spacetime else ["(x, y)", "(-x, -y)", "(-y, x)", "(y, x)"]
    growth = [1 if equivariant else 1 + 3 * i for i in range(len(observers))]
    return SymmetryErrors(
        receptive_field=[9] * task.dim,
        interior=True,
        group="O" if equivariant else "",
        translation=3e-7,
        point_group=4e-7 if equivariant else 0.4,
        rotation=None if spacetime and task.dim == 2 else rotation,
        boost=boost if spacetime else None,
        observers=ObserverErrors(
            "boosted" if spacetime else "rotated",
            observers,
            [quality**2 * 1e-3 * g for g in growth],
            [quality * 0.02 * g for g in growth],
            windows=32,
        ),
    )


def make_samples(task, quality, points, steps, seed):
    """Bumps that move; forecasts drift away from them."""
    space = task.dim - (task.time_axis is not None)
    axes = np.meshgrid(*[np.linspace(0, 1, points)] * space, indexing="ij")
    rng = np.random.default_rng(7)
    noise = np.random.default_rng(seed)
    known, target, prediction = {}, {}, {}
    for field in task.fields:
        size = task.algebra.size(field.grade)
        truth = np.zeros((steps, *(points,) * space, size))
        forecast = np.zeros_like(truth)
        for c in range(size):
            for _ in range(3):
                centre, speed = rng.uniform(0.3, 0.7, space), rng.uniform(-0.4, 0.4, space)
                sign = 1 if field.grade == 0 else rng.choice([-1, 1])
                shift = 0.03 * quality * noise.normal(size=space)
                for s in range(steps):
                    for values, drift in ((truth, 0.0), (forecast, shift * s)):
                        at = centre + speed * s / steps + drift
                        r = sum((a - b) ** 2 for a, b in zip(axes, at, strict=True))
                        values[s, ..., c] += sign * np.exp(-r / 0.02)
        if field.grade == "symmetric":
            truth, forecast = symmetric_part(truth), symmetric_part(forecast)
        target[field.name] = truth.astype(np.float32)
        prediction[field.name] = forecast.astype(np.float32)
        known[field.name] = truth[:1].astype(np.float32)
    return Samples(known, target, prediction, np.arange(1, steps + 1) * task.frame_spacing)


def change_evaluation(folder, **changes):
    """Replace parts of an evaluation, or with a dict attributes of a part."""
    path = folder / "evaluation.json"
    evaluation = Evaluation.load(path)
    for name, change in changes.items():
        part = getattr(evaluation, name)
        if dataclasses.is_dataclass(part) and isinstance(change, dict):
            change = dataclasses.replace(part, **change)
        evaluation = dataclasses.replace(evaluation, **{name: change})
    evaluation.save(path)


def change_samples(folder, change):
    """Change the arrays by a function."""
    path = folder / "samples.npz"
    samples = dict(np.load(path))
    change(samples)
    np.savez(path, **samples)
