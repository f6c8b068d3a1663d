"""Small data and small runs for tests."""

import contextlib
import json
import os
import socket
import sys
import traceback
import warnings
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from cscnn.data.generate import generate, plans
from cscnn.data.simulators import create
from cscnn.forecasting import Run
from cscnn.forecasting.training import (
    DataConfig,
    ModelConfig,
    OptimizerConfig,
    TrainConfig,
    TrainerConfig,
)
from cscnn.forecasting.training.identity import DataIdentity
from cscnn.forecasting.training.loader import WindowData
from tests.forks import fork

QUIET = [
    pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec.*:UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:lightning.*"),
]

TINY = {
    "navier_stokes": {"grid": (8, 8), "frames": 6},
    "maxwell3d": {"cells": 22, "keep": 6, "warmup": 8, "every": 3, "frames": 6},
    "maxwell_spacetime": {"grid": (6, 6), "frames": 8, "distance": 1.0},
    "maxwell_spacetime4d": {"grid": (4, 4, 4), "frames": 6, "distance": 1.0},
    "sine_gordon": {"grid": (12,), "frames": 16},
    "elastodynamics": {"cells": 10, "frames": 6, "smoothness": 0.2},
    "viscoelastic": {"cells": 10, "frames": 6, "warmup": 2, "every": 1, "smoothness": 0.2},
    "acoustic_points": {"points": (20, 40), "frames": 8, "waves": 3, "shortest": 1.0},
}
FRAMES_IN = {
    "acoustic_points": 2,
    "maxwell_spacetime": 4,
    "maxwell_spacetime4d": 2,
    "sine_gordon": 6,
}


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


def identity(options: TrainConfig) -> DataIdentity:
    """Of the data of a run."""
    with contextlib.closing(WindowData(options.data)) as data:
        return data.identity()


def same(a: Run, b: Run) -> bool:
    """Whether weights and losses of two runs are the same to the last bit."""
    first, second = (load_file(run.file("model.safetensors")) for run in (a, b))
    losses = [
        [{k: v for k, v in row.items() if k != "seconds"} for row in run.metrics()]
        for run in (a, b)
    ]
    return losses[0] == losses[1] and all(torch.equal(first[k], second[k]) for k in first)


def command(options, folder: Path, *more: str) -> list[str]:
    path = folder / "config.yaml"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(options.to_dict()))  # JSON is YAML
    return ["train", "--config", str(path), *more]


def free_port() -> int:
    """For processes to meet."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_workers(count: int, function, errors: Path) -> list[int]:
    """Start processes as torchrun would, without importing all again; return their ids.

    What process i writes to stderr goes to the file ``i`` of a folder.
    """
    from lightning.pytorch.utilities import rank_zero_only

    port = free_port()
    errors.mkdir(parents=True, exist_ok=True)

    def work(rank: int) -> None:
        environment = {"LOCAL_RANK": rank, "RANK": rank, "NODE_RANK": 0, "WORLD_SIZE": count}
        os.environ.update({name: str(value) for name, value in environment.items()})
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        rank_zero_only.rank = rank
        warnings.simplefilter("ignore")
        with (errors / str(rank)).open("w", buffering=1) as sys.stderr:
            try:
                function()
            except Exception:
                traceback.print_exc()
                raise

    return [fork(lambda rank=rank: work(rank)) for rank in range(count)]


def workers(count: int, function, errors: Path) -> None:
    """Run a function in several processes, which must succeed."""
    codes = [os.waitpid(pid, 0)[1] for pid in start_workers(count, function, errors)]
    assert codes == [0] * count, "\n".join(p.read_text() for p in errors.iterdir())
