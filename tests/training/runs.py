"""Small data and small runs for tests."""

from pathlib import Path

from cscnn.data.generate import generate, plans
from cscnn.data.simulators import create
from cscnn.training import (
    DataConfig,
    ModelConfig,
    OptimizerConfig,
    TrainConfig,
    TrainerConfig,
)

TINY = {
    "navier_stokes": {"grid": (8, 8), "frames": 6},
    "maxwell3d": {"cells": 22, "keep": 6, "warmup": 8, "every": 3, "frames": 6},
    "maxwell_spacetime": {"grid": (6, 6), "frames": 8, "distance": 1.0},
    "maxwell_spacetime4d": {"grid": (4, 4, 4), "frames": 6, "distance": 1.0},
    "sine_gordon": {"grid": (12,), "frames": 16},
}
FRAMES_IN = {"maxwell_spacetime": 4, "maxwell_spacetime4d": 2, "sine_gordon": 6}


def make_data(folder: Path, task: str = "sine_gordon") -> Path:
    """Four trajectories to train on, two for each other split."""
    splits = {"train": 4, "valid": 2, "test": 2}
    generate(plans(create(task, **TINY[task]), folder, splits))
    return folder


def config(data: Path, out: Path, task: str = "sine_gordon", **changes: object) -> TrainConfig:
    """A run of seconds; dotted names change it."""
    result = TrainConfig(
        out=str(out),
        data=DataConfig(
            *(str(data / f"{split}.h5") for split in ("train", "valid", "test")),
            frames_in=FRAMES_IN.get(task, 4),
            per_trajectory=4,
            batch=4,
        ),
        model=ModelConfig(width=2, options={"blocks": 1, "kernel_size": 3}),
        optimizer=OptimizerConfig(schedule="cosine"),
        trainer=TrainerConfig(epochs=3, progress=False, accelerator="cpu"),
    )
    for name, value in changes.items():
        owner, _, last = name.rpartition("__")
        setattr(getattr(result, owner) if owner else result, last, value)
    return result
