"""Folders of runs that nobody has trained, with everything that a report reads."""

import csv
import json

import numpy as np

from cscnn import models
from cscnn.data.simulators import create

MODELS = {"cs_resnet": {"width": 2, "blocks": 1, "kernel_options": {"hidden_dim": 4}},
          "resnet": {"width": 4, "blocks": 1}}  # fmt: skip


def fluid():
    return models.TASKS["navier_stokes"]


def line():
    return create("sine_gordon", "small").header().task(frames_in=8)


def charges():
    return models.TASKS["maxwell_spacetime"].replace(frames_in=8, frames_out=8)


TASKS = {"fluid": fluid, "line": line, "charges": charges}


def make_run(folder, task, model="cs_resnet", *, quality=1.0, points=24, steps=8, seed=0):
    """A run folder with made-up numbers; the smaller ``quality``, the smaller the errors."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    config = {"out": folder.name, "seed": seed, "data": {"train": "data/train.h5", "test": "t.h5"},
              "model": {"name": model}, "trainer": {"epochs": 20}}  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    net = models.build(model, task, **MODELS[model])
    models.save(net, folder / "model.safetensors")
    with (folder / "metrics.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("epoch", "step", "train_loss", "valid_loss", "lr", "seconds"))
        for i in range(20):
            loss = quality * (0.02 + np.exp(-i / 4)) * (1 + 0.1 * rng.random())
            rows.writerow((i, 64 * (i + 1), 0.9 * loss, loss, 1e-3, 12.5))
    evaluation = make_evaluation(task, folder.name, model, net.n_parameters(), quality, steps)
    (folder / "evaluation.json").write_text(json.dumps(evaluation))
    np.savez(folder / "samples.npz", **make_samples(task, quality, points, steps, seed))
    return folder


def make_evaluation(task, name, model, parameters, quality, steps):
    def four(scale):
        return {"mse": 1e-3 * scale**2, "relative_l2": 0.02 * scale, "vrmse": 0.03 * scale,
                "spectrum_error": 0.01 * scale}  # fmt: skip

    spacetime = task.time_axis is not None
    equivariant = model.startswith("cs")
    growth = np.linspace(1, 4, steps)
    angles, rapidities = list(range(0, 91, 15)), [0.0, 0.2, 0.4, 0.6, 0.8]
    broken = 1e-6 if equivariant else 0.3
    where = rapidities if spacetime else ["(x, y)", "(-x, -y)", "(-y, x)", "(y, x)"]
    worse = [quality**2 * 1e-3 * (1 if equivariant else 1 + 3 * i) for i in range(len(where))]
    return {
        "format": 1,
        "run": name,
        "model": {"name": model, "parameters": parameters, "options": MODELS[model]},
        "task": task.to_dict(),
        "data": {"path": "data/test.h5", "split": "test", "trajectories": 16, "windows": 160},
        "one_step": {
            **four(quality),
            "fields": {field.name: four(quality) for field in task.fields},
            "persistence": four(14.0),
        },
        "rollout": {
            "steps": list(range(1, steps + 1)),
            "times": [task.frame_spacing * (i + 1) for i in range(steps)],
            "relative_l2": list(0.02 * quality * growth),
            "mse": list(1e-3 * quality * growth**2),
            "correlation": list(1 - 0.02 * quality * growth),
            "correlation_time": None if equivariant else 5.5,
            "stable_steps": steps,
            "persistence": {"relative_l2": list(0.15 * growth)},
        },
        "symmetry": {
            "translation": 3e-7,
            "point group": 4e-7 if equivariant else 0.4,
            "rotation": None if spacetime and task.dim == 2 else {
                "angles": angles,
                "errors": [(0.02 if equivariant else 0.5) * abs(np.sin(2 * np.deg2rad(a))) + broken
                           for a in angles],
                "floor": [0.015 * abs(np.sin(2 * np.deg2rad(a))) + 1e-6 for a in angles],
            },
            "boost": {
                "rapidities": rapidities,
                "errors": [0.5 * r * (0.05 if equivariant else 1) + 1e-6 for r in rapidities],
                "floor": [0.02 * r + 1e-6 for r in rapidities],
            } if spacetime else None,
            "frames": {
                "kind": "boosted" if spacetime else "rotated",
                "values": where,
                "mse": worse,
                "worst": max(worse),
                "mean": float(np.mean(worse)),
            },
        },
        "cost": {"windows_per_second": 120.0 / quality, "peak_bytes": 350_000_000,
                 "parameters": parameters},
        "machine": {"cpu": "a processor", "torch": "2.6"},
    }  # fmt: skip


def make_samples(task, quality, points, steps, seed):
    """Bumps that move; forecasts drift away from them."""
    space = task.dim - (task.time_axis is not None)
    axes = np.meshgrid(*[np.linspace(0, 1, points)] * space, indexing="ij")
    rng = np.random.default_rng(7)
    noise = np.random.default_rng(seed)
    arrays = {"times": np.arange(1, steps + 1) * task.frame_spacing}
    for field in task.fields:
        size = task.algebra.grade_sizes[field.grade]
        values = np.zeros((steps, *(points,) * space, size))
        wrong = np.zeros_like(values)
        for c in range(size):
            for _ in range(3):
                centre, speed = rng.uniform(0.3, 0.7, space), rng.uniform(-0.4, 0.4, space)
                sign = 1 if field.grade == 0 else rng.choice([-1, 1])
                shift = 0.03 * quality * noise.normal(size=space)
                for s in range(steps):
                    for out, drift in ((values, 0.0), (wrong, shift * s)):
                        at = centre + speed * s / steps + drift
                        r = sum((a - b) ** 2 for a, b in zip(axes, at, strict=True))
                        out[s, ..., c] += sign * np.exp(-r / 0.02)
        arrays[f"target/{field.name}"] = values.astype(np.float32)
        arrays[f"prediction/{field.name}"] = wrong.astype(np.float32)
        arrays[f"input/{field.name}"] = values[:1].astype(np.float32)
    return arrays
