"""All measurements of one run together."""

from __future__ import annotations

import io
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cscnn.algebra.blades import check_int
from cscnn.atomic import write_bytes, write_text
from cscnn.data import open_fields
from cscnn.evaluation import metrics
from cscnn.evaluation.subject import Subject
from cscnn.progress import Bar
from cscnn.training.run import Run

FORMAT = 1  #: of the JSON file; raised when names in it change their meaning


@dataclass(frozen=True)
class Evaluation:
    """Everything that was measured.

    Attributes:
        result: as written to evaluation.json.
        samples: as written to samples.npz: target/NAME, prediction/NAME and input/NAME, (frames,
            *space, components), of one trajectory, and times of the predicted frames.
    """

    result: dict[str, Any]
    samples: dict[str, np.ndarray]

    def save(self, path: Path, samples: Path) -> None:
        """Write both files, each whole or not at all."""
        packed = io.BytesIO()
        arrays: dict[str, Any] = dict(self.samples)
        np.savez_compressed(packed, **arrays)
        write_bytes(samples, packed.getvalue())
        write_text(path, json.dumps(self.result, indent=2, allow_nan=False) + "\n")


def evaluate(
    run: Run | Path | str,
    *,
    split: str = "test",
    data: Path | str | None = None,
    windows: int = 256,
    steps: int | None = None,
    trajectories: int = 16,
    device: torch.device | str = "cpu",
    batch: int = 8,
    seed: int = 0,
    quiet: bool = True,
) -> Evaluation:
    """Measure a run: the same numbers each time, those of cost aside.

    Args:
        run: a folder written by training.
        split: which of its data to use.
        data: use this file instead.
        windows: number of windows for errors of one step, chosen at random; all if there are fewer.
        steps: frames of rollouts; by default as many as the trajectories have.
        trajectories: number of rollouts, the first of the file.
        device: where to compute.
        batch: windows that are computed together.
        seed: of random choices.
        quiet: show no progress.
    """
    run = run if isinstance(run, Run) else Run(Path(run))
    for name, value in (("windows", windows), ("trajectories", trajectories), ("batch", batch)):
        check_int(name, value, low=1)
    config, model, scaling = run.config(), run.model(device), run.scaling()
    source = open_fields(data) if data is not None else run.source(split)
    with source:
        coarsen = int(config["data"].get("coarsen", 1))
        subject = careful = Subject(model, scaling, source, coarsen, batch)
        if not metrics.has_float64(subject.device):  # in which symmetry is measured
            careful = Subject(run.model("cpu"), scaling, source, coarsen, batch)
        steps = subject.steps(steps)  # an error now, not after the long part
        chosen = subject.choose(windows, seed)
        count = min(trajectories, len(source))
        one_step = subject.one_step(chosen, Bar("windows", quiet=quiet))
        rolled, samples = subject.rollouts(count, steps, Bar("trajectories", quiet=quiet))
        result = {
            "format": FORMAT,
            "run": str(run.path),
            "model": {
                "name": model.config["name"],
                "parameters": model.n_parameters(),
                "options": model.config["options"],
            },
            "task": model.task.to_dict(),
            "data": {
                "path": str(source.path),
                "split": source.header.split or split,
                "trajectories": len(source),
                "windows": len(chosen),
            },
            "one_step": one_step,
            "rollout": rolled,
            "symmetry": careful.symmetry(chosen, seed, quiet),
            "cost": subject.cost(chosen),
            "machine": _machine(),
        }
    return Evaluation(plain(result), samples)


def _machine() -> dict[str, str]:
    from cscnn.measure import machine

    return machine()


def plain(value: Any) -> Any:
    """For JSON: tuples as lists, and null for what is not finite."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
