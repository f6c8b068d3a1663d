"""Training for rollouts: what the options do to a run, and every one of them with every network."""

import math
from pathlib import Path

import pytest
import torch

from cscnn.forecasting import Run, Windows, collate
from cscnn.forecasting.losses import LOSSES
from cscnn.forecasting.training import LearningConfig
from cscnn.forecasting.training.callbacks import RunFolder
from cscnn.forecasting.training.command import parse
from cscnn.forecasting.training.plan import plan
from cscnn.forecasting.training.train import train
from cscnn.forecasting.unroll import Unroll
from tests.forecasting.training.runs import QUIET, config, make_data
from tests.forecasting.training.test_pairs import OPTIONS
from tests.networks.tiny import need

pytestmark = QUIET


@pytest.fixture(scope="module")
def fluid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("fluid"), "navier_stokes")


def test_options_come_from_files_and_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("training: {loss: h1, unroll: 3, grow: 6, weights: {smoke: 2}}\n")
    options, _ = parse(["--config", str(path), "--training.pushforward", "true",
                        "--training.noise=0.01", "--model.predict", "change"])  # fmt: skip
    assert options.training == LearningConfig("h1", {"smoke": 2.0}, 3, 6, True, 0.01)
    assert options.model.predict == "change"


def test_steps_grow_in_equal_parts() -> None:
    def steps(unroll: int, grow: int) -> list[int]:
        return [LearningConfig(unroll=unroll, grow=grow).unrolled(e).steps for e in range(8)]

    assert steps(3, 6) == [1, 1, 2, 2, 3, 3, 3, 3]
    assert steps(4, 2) == [1, 3, 4, 4, 4, 4, 4, 4]
    assert steps(2, 0) == [2] * 8


def test_pushforward_draws_the_number_of_steps_of_each_batch() -> None:
    """A first step must be asked for too, or networks learn cycles that start with any state."""
    drawn = LearningConfig(unroll=3, grow=2, pushforward=True)
    steps = [[drawn.unrolled(e, b).steps for b in range(300)] for e in range(4)]
    assert [{*row} for row in steps] == [{1}, {1, 2}, {1, 2, 3}, {1, 2, 3}]
    assert min(steps[2].count(k) for k in (1, 2, 3)) > 70
    assert steps[2] != steps[3]
    assert steps[2] == [drawn.unrolled(2, b).steps for b in range(300)]  # as after resuming
    assert drawn.unrolled(2).steps == 3
    through = LearningConfig(unroll=3)  # the control: with all gradients there is nothing to draw
    assert {through.unrolled(0, b).steps for b in range(20)} == {3}


def test_best_weights_are_of_the_last_number_of_steps(
    fluid: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of fewer steps may be better at one step, which is what validation sees."""
    losses = iter([0.1, 0.3, 0.2, 0.4])
    options = config(fluid, tmp_path / "run", "navier_stokes", trainer__epochs=4,
                     training__unroll=2, training__grow=2, trainer__patience=2,
                     data__per_trajectory=1, optimizer__schedule="constant")  # fmt: skip
    end, saved = RunFolder.on_train_epoch_end, []

    def told(self: RunFolder, trainer: object, module: object) -> None:
        trainer.callback_metrics["valid_loss"] = torch.tensor(next(losses))
        end(self, trainer, module)

    monkeypatch.setattr(RunFolder, "on_train_epoch_end", told)
    monkeypatch.setattr(
        RunFolder, "_save_best", lambda self, trainer, module: saved.append(trainer.current_epoch)
    )
    train(options)
    assert saved == [0, 1, 2]  # not 0 alone
    assert [row["unroll"] for row in Run(options.folder).metrics()] == [1, 2, 2, 2]


def test_validation_forecasts_as_many_steps_as_training(fluid: Path, tmp_path: Path) -> None:
    options = config(fluid, tmp_path / "run", "navier_stokes", trainer__epochs=1,
                     training__unroll=2, training__noise=0.5, model__predict="change",
                     training__weights={"smoke": 3.0}, training__loss="relative")  # fmt: skip
    run = train(options)
    forecaster = run.forecaster()
    assert forecaster.predicts == "change"
    with run.source("valid") as source, torch.no_grad():
        windows = collate(list(Windows(source, forecaster.task, mode="all", unroll=2)))
        options = ("relative", {"smoke": 3.0})
        loss, single = (forecaster.loss(windows, *options, Unroll(n)).item() for n in (2, 1))
    assert run.metrics()[0]["valid_loss"] == pytest.approx(loss, rel=1e-5)
    assert abs(loss - single) > 1e-3 * loss  # the control


def test_noise_is_on_training_inputs(fluid: Path, tmp_path: Path) -> None:
    quiet, loud = (
        config(fluid, tmp_path / name, "navier_stokes", trainer__epochs=1, training__noise=sigma)
        for name, sigma in (("quiet", 0.0), ("loud", 10.0))
    )
    before, after = (train(options).metrics()[0]["train_loss"] for options in (quiet, loud))
    assert after > 10 * before


def test_plans_know_of_unrolled_steps(fluid: Path, tmp_path: Path) -> None:
    one, two = (
        plan(config(fluid, tmp_path / "run", "navier_stokes", training__unroll=k)) for k in (1, 2)
    )
    assert two["memory per device"] > one["memory per device"]
    assert two["windows"] <= one["windows"]


#: Every option, what is predicted and the loss, in turn, so that each network meets each value.
LEVERS = [
    {"training__unroll": 2, "training__grow": 1, "training__noise": 0.1, "training__loss": "mse",
     "data__stride": [1, 2], "data__frames_in": 1},
    {"training__unroll": 2, "training__pushforward": True, "training__loss": "h1",
     "model__constraints": {"velocity": "divergence_free", "smoke": "keep_mean"}},
    {"training__unroll": 2, "training__recompute_steps": True, "training__loss": "relative",
     "training__weights": {"smoke": 2.0}, "data__wall_padding": "symmetric", "data__augment": True,
     "optimizer__ema": 0.9},
]  # fmt: skip


# On so few cells the solver keeps the mean of smoke to a few per cent only.
@pytest.mark.filterwarnings("ignore:the constraint keep_mean of smoke:UserWarning")
@pytest.mark.parametrize("name", OPTIONS)
def test_every_network_with_every_option(name: str, fluid: Path, tmp_path: Path) -> None:
    need(name)
    assert {lever["training__loss"] for lever in LEVERS} == set(LOSSES)
    for number, lever in enumerate(LEVERS):
        for predict in ("state", "change"):
            run = train(config(
                fluid, tmp_path / f"{number}-{predict}", "navier_stokes", model__name=name,
                model__width=2, model__options=OPTIONS[name], model__predict=predict,
                trainer__epochs=1, trainer__steps=1, data__valid_windows=1, **lever,
            ))  # fmt: skip
            (row,) = run.metrics()
            assert math.isfinite(row["train_loss"] + row["valid_loss"])
            assert run.forecaster().predicts == predict
