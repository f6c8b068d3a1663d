"""Unrolled steps against rollouts; gradients of pushforward; memory for time; noise on inputs."""

import numpy as np
import pytest
import torch
from torch import nn

from cscnn.algebra.group import boost
from cscnn.data import Field
from cscnn.data.simulators import create
from cscnn.forecasting import (
    Forecaster,
    RandomNoise,
    RandomSymmetry,
    Task,
    Units,
    Window,
    Windows,
    collate,
)
from cscnn.forecasting.augment import InTurn
from cscnn.forecasting.unroll import Unroll
from tests.forecasting.test_forecaster import frames, tiny
from tests.forecasting.test_windows import HEADER, Memory

FLUID = Task.from_header(create("navier_stokes").header())
LIGHT = Task.from_header(create("maxwell_spacetime").header(), frames_in=4)
TASKS = {
    "frame by frame": FLUID,
    "more out than in": FLUID.replace(frames_in=1, frames_out=2),
    "spacetime": LIGHT,
    "short steps": LIGHT.replace(frames_out=2),
}
UNITS = {
    "fluid": Units(
        {"smoke": 0.5, "velocity": 3.0}, {"smoke": 1.0}, {"smoke": 0.2, "velocity": 0.7}
    ),
    "light": Units({"faraday": 2.0}, change={"faraday": 0.5}),
}


def units(task):
    return UNITS["fluid" if task.time_axis is None else "light"]


def window(task, steps, batch=2):
    """Noise to go on from, and as many frames as that many forecasts have."""
    fields = {n: x.double() for n, x in frames(task, batch=batch).items()}
    target = {n: x.double() for n, x in frames(task, steps * task.frames_out, batch).items()}
    constants = task.constant_multivectors().double().expand(batch, -1, -1)
    return Window(fields, target, constants)


@pytest.mark.parametrize("predicts", ["state", "change"])
@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_unrolled_steps_are_a_rollout(task, predicts):
    """In packed multivectors all the way, which must not carry components without data along."""
    forecaster = tiny(task=task, units=units(task), predicts=predicts).double()
    batch = window(task, 3)
    made = forecaster.units.scaled(forecaster(batch.known, steps=3 * task.frames_out))
    truth = forecaster.units.scaled(batch.target)

    def mean_square(start, stop):
        part = slice(start * task.frames_out, stop * task.frames_out)
        errors = [(made[n] - x)[:, part].flatten() for n, x in truth.items()]
        return torch.cat(errors).square().mean()

    torch.testing.assert_close(forecaster.loss(batch, unroll=Unroll(3)), mean_square(0, 3))
    torch.testing.assert_close(forecaster.loss(batch, unroll=Unroll(2)), mean_square(0, 2))
    torch.testing.assert_close(forecaster.loss(batch, unroll=Unroll(3, True)), mean_square(2, 3))
    torch.testing.assert_close(forecaster.loss(batch), mean_square(0, 1))
    with pytest.raises(ValueError, match="step 4 has no target: it ends after 3 forecasts"):
        forecaster.loss(batch, unroll=Unroll(4))


def gradients(forecaster, loss):
    return torch.autograd.grad(loss, list(forecaster.network.parameters()), allow_unused=True)


def equal(first, second):
    return all(
        (a is None and b is None) or torch.allclose(a, b, rtol=1e-9, atol=1e-12)
        for a, b in zip(first, second, strict=True)
    )


def test_pushforward_is_one_step_from_its_own_forecast():
    forecaster = tiny(units=UNITS["fluid"]).double()
    batch = window(FLUID, 2)
    with torch.no_grad():
        first = forecaster(batch.known)
    known = {n: torch.cat([x, first[n]], 1)[:, -4:] for n, x in batch.known.items()}
    second = Window(known, {n: x[:, 1:] for n, x in batch.target.items()}, batch.constants)
    expected = gradients(forecaster, forecaster.loss(second))
    pushed = gradients(forecaster, forecaster.loss(batch, unroll=Unroll(2, pushforward=True)))
    assert equal(pushed, expected)
    # the control: gradients through both steps are others
    assert not equal(gradients(forecaster, forecaster.loss(batch, unroll=Unroll(2))), expected)


def test_mixed_precision_keeps_the_gradients_of_pushforward():
    """Older torch uses copies of weights again that steps without gradients have left behind."""
    forecaster = Forecaster.build("resnet", FLUID, width=2, blocks=1, kernel_size=3)
    batch = Window(*({n: x.float() for n, x in part.items()} for part in window(FLUID, 2)[:2]),
                   FLUID.constant_multivectors().expand(2, -1, -1))  # fmt: skip
    with torch.autocast("cpu", torch.bfloat16):
        loss = forecaster.loss(batch, unroll=Unroll(2, pushforward=True))
    assert all(g is not None and g.abs().sum() > 0 for g in gradients(forecaster, loss))


class Counted(nn.Module):
    """A network that counts how often it is asked."""

    def __init__(self, network):
        super().__init__()
        self.network, self.calls = network, 0

    def forward(self, x):
        self.calls += 1
        return self.network(x)


def test_steps_that_are_computed_again_have_the_same_gradients():
    forecaster = tiny(units=UNITS["fluid"]).double()
    counted = Forecaster(Counted(forecaster.network), FLUID, UNITS["fluid"])
    batch = window(FLUID, 3)
    kept, again = (
        gradients(counted, counted.loss(batch, unroll=Unroll(3, recompute=flag)))
        for flag in (False, True)
    )
    assert equal(kept, again)
    assert counted.network.calls == 3 + 2 * 3
    with torch.no_grad():
        counted.loss(batch, unroll=Unroll(3, recompute=True))
    assert counted.network.calls == 3 + 2 * 3 + 3


def test_windows_have_a_target_for_every_step():
    source = Memory()
    task = Task.from_header(HEADER, frames_in=3, frames_out=2)
    windows = Windows(source, task, mode="all", unroll=3, dtype=torch.float64)
    assert len(windows) == 6 * 1
    known, target, *_ = windows[2]
    stored = source.read(2)["velocity"]
    assert torch.equal(known["velocity"], torch.as_tensor(stored[:3]))
    assert torch.equal(target["velocity"], torch.as_tensor(stored[3:9]))
    with pytest.raises(ValueError, match="needs 11 frames, the trajectories have 9: unroll fewer"):
        Windows(source, task, unroll=4)
    with pytest.raises(ValueError, match="unroll must be at least 1, got 0"):
        Windows(source, task, unroll=0)


# --- noise ----------------------------------------------------------------------------------------


def noisy(seed=0, epoch=0, deviation=0.1):
    task = Task.from_header(HEADER)
    noise = RandomNoise(task, Units({"smoke": 2.0, "velocity": 30.0}), deviation)
    transforms = InTurn((RandomSymmetry(task), noise))
    windows = Windows(Memory(), task, seed=seed, transform=transforms, dtype=torch.float64)
    windows.set_epoch(epoch)
    return windows


def test_noise_is_a_function_of_seed_epoch_and_index():
    first, again = noisy(), noisy()
    batch = collate([first[i] for i in (3, 1)])
    for row, index in enumerate((3, 1)):  # in another order, as another device would
        assert torch.equal(again[index].known["smoke"], batch.known["smoke"][row])
    for other in (noisy(seed=1), noisy(epoch=1)):
        assert not torch.equal(other[3].known["smoke"], first[3].known["smoke"])
    silent = noisy(deviation=0.0)
    assert torch.equal(silent[3].target["smoke"], first[3].target["smoke"])  # targets have none
    sizes = {
        name: torch.stack([first[i].known[name] - silent[i].known[name] for i in range(30)]).std()
        for name in ("smoke", "velocity")
    }
    assert sizes["smoke"].item() == pytest.approx(0.2, rel=0.1)
    assert sizes["velocity"].item() == pytest.approx(3.0, rel=0.1)


def test_what_noise_does_not_tell_apart():
    """Its covariance is that of rotated noise; boosts change it, as the docstring says."""
    task = Task("light", (1, -1, -1), (Field("faraday", 2),), 1, time_axis=0)
    empty = {"faraday": torch.zeros(1, 200, 200, 3, dtype=torch.float64)}
    noise = RandomNoise(task, Units({"faraday": 2.0}), 0.5)
    window = noise(Window(empty, empty, torch.empty(0, 8)), np.random.default_rng(0))
    x = window.known["faraday"].flatten(0, 2)
    blades = task.algebra.grade_slice(2)

    def covariance(g):
        moved = x @ task.algebra.action(g)[blades, blades].mT
        return moved.mT @ moved / len(x)

    identity = torch.eye(3, dtype=torch.float64)
    rotation = task.algebra.random_orthogonal("rotation", dtype=torch.float64)
    assert torch.allclose(covariance(identity), identity, atol=0.03)
    assert torch.allclose(covariance(rotation), identity, atol=0.03)
    assert (covariance(boost(task.algebra, 0.7, (1.0, 0.0))) - identity).abs().max() > 0.2
