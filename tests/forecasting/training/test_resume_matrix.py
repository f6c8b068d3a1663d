"""A run that was interrupted between two epochs ends with the same weights, whatever its options.

Every pair of values of the options occurs together in one of six runs, not in all 1024 of them.
All of them unroll two steps and draw strides; tests/forecasting/training/test_resume.py has those
that do not.
"""

import itertools
from pathlib import Path

import pytest

from cscnn.forecasting import Run
from cscnn.forecasting.training import TrainConfig
from cscnn.forecasting.training.callbacks import RunFolder
from cscnn.forecasting.training.train import train
from tests.forecasting.training.runs import QUIET, config, make_data, same, workers
from tests.forks import needs_fork

pytestmark = QUIET

CHANGES = {
    "data__workers": 1,
    "data__augment": True,
    "optimizer__ema": 0.9,
    "optimizer__schedule": "cosine",
    "trainer__accumulate": 3,
    "trainer__devices": 2,
    "training__grow": 2,
    "training__pushforward": True,
    "training__noise": 0.1,
    "model__predict": "change",
}

#: Which changes are made together: of five runs each has three, no two of them in the same ones.
ROWS = [
    (),
    ("data__workers", "data__augment", "trainer__devices",
     "training__grow", "training__pushforward", "training__noise"),
    ("data__workers", "optimizer__ema", "optimizer__schedule", "trainer__devices",
     "training__grow", "model__predict"),
    ("data__augment", "optimizer__ema", "trainer__accumulate", "trainer__devices",
     "training__pushforward", "model__predict"),
    ("data__workers", "optimizer__ema", "optimizer__schedule", "trainer__accumulate",
     "training__pushforward", "training__noise"),
    ("data__augment", "optimizer__schedule", "trainer__accumulate",
     "training__grow", "training__noise", "model__predict"),
]  # fmt: skip


@pytest.fixture(scope="module")
def fluid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("fluid"), "navier_stokes")


def test_every_pair_of_values_is_there() -> None:
    for first, second in itertools.combinations(CHANGES, 2):
        pairs = {(first in row, second in row) for row in ROWS}
        assert len(pairs) == 4, (first, second)


class Interrupted(Exception):
    pass


def interrupted(options: TrainConfig) -> None:
    """Train until the first epoch is written."""
    end = RunFolder.on_train_epoch_end

    def raise_after(self: RunFolder, trainer: object, module: object) -> None:
        end(self, trainer, module)
        raise Interrupted

    RunFolder.on_train_epoch_end = raise_after
    try:
        train(options)
    except Interrupted:
        pass
    finally:
        RunFolder.on_train_epoch_end = end


@needs_fork
@pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join(n.split("__")[1] for n in row))
def test_resumed_runs_are_the_same(row: tuple[str, ...], fluid: Path, tmp_path: Path) -> None:
    def options(name: str) -> TrainConfig:
        changes = {change: CHANGES[change] for change in row}
        tiny = {"model__width": 1, "model__options": {"blocks": 1, "kernel_size": 3}}
        tiny |= {"training__unroll": 2, "data__stride": [1, 2], "data__frames_in": 1}
        short = {"trainer__epochs": 2, "optimizer__schedule": "constant", "data__valid_windows": 2}
        return config(fluid, tmp_path / name, "navier_stokes", **{**tiny, **short, **changes})

    for step in (
        lambda: train(options("whole")),
        lambda: interrupted(options("resumed")),
        lambda: train(options("resumed")),
    ):
        if "trainer__devices" in row:
            workers(2, step, tmp_path / "errors")
        else:
            step()
    assert same(Run(options("whole").folder), Run(options("resumed").folder))
