"""Test errors of forecasts for other observers."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from cscnn.data.coarse import coarse_header
from cscnn.data.simulators import (
    MaxwellSpacetime,
    MaxwellSpacetime4D,
    NavierStokes,
    SineGordon,
    exact_simulator,
)
from cscnn.data.strided import strided_header
from cscnn.forecasting import Forecaster, Task, Units, Window
from cscnn.forecasting.evaluation.observers import (
    Observer,
    boosted_errors,
    observer_errors,
    rotated_errors,
)
from cscnn.forecasting.evaluation.symmetry import random_boost
from tests.forecasting.evaluation.stubs import forecaster, plane, stub

UNITS = Units({"smoke": 2.0, "wind": 0.5}, {"smoke": 1.0})
SINE_GORDON = SineGordon(frames=24, grid=(24,))
IDENTITY = torch.eye(2, dtype=torch.float64)


def batch(generator, grid=(8, 8)):
    known = {
        "smoke": torch.randn(2, 2, *grid, 1, generator=generator, dtype=torch.float64),
        "wind": torch.randn(2, 2, *grid, 2, generator=generator, dtype=torch.float64),
    }
    target = {name: x[:, :1] for name, x in known.items()}
    return Window(known, target, plane().constant_multivectors().double())


def test_rotated_windows(generator):
    window = batch(generator)
    equivariant = rotated_errors(forecaster("cs_resnet", plane(), UNITS), window)
    assert equivariant.kind == "rotated"
    assert equivariant.observers[0] == "(x, y)"
    assert sorted(equivariant.observers) == sorted(
        f"({a}{p}, {b}{q})" for p, q in ("xy", "yx") for a in ("", "-") for b in ("", "-")
    )
    assert max(equivariant.mse) - min(equivariant.mse) < 1e-12 * max(equivariant.mse)
    control = rotated_errors(forecaster("resnet", plane(), UNITS), window)
    assert max(control.relative_l2) > 1.001 * min(control.relative_l2)
    assert control.worst == max(control.mse)
    assert control.mean == pytest.approx(sum(control.mse) / 8)
    few = rotated_errors(forecaster("resnet", plane(), UNITS), window, limit=3)
    assert few.observers[0] == "(x, y)"
    assert len(set(few.observers)) == 3


def test_error_is_the_mean_over_components(generator):
    """A persistence forecast, against a target that is off by one in the scalar."""
    window = batch(generator)
    window.target["smoke"] = window.target["smoke"] + 1
    repeat = stub(plane(), lambda x: x[:, :1], UNITS)
    errors = rotated_errors(repeat, window)
    assert errors.mse == pytest.approx([1 / 3] * 8)


@pytest.mark.parametrize("told", [True, False])
def test_observers_see_one_solution(told):
    """At rest, input and target are consecutive frames of the trajectory's middle."""
    header = SINE_GORDON.describe(0, "test")
    task = Task.from_header(header, frames_in=4, constants=told)
    observer = Observer(SINE_GORDON, forecaster("resnet", task))
    (solution,) = observer.draw(header, 1, 0.5)
    known, target, constants, *_ = observer.window(solution, IDENTITY)
    assert len(constants) == told
    for name, x in SINE_GORDON.observe(solution).items():
        torch.testing.assert_close(known[name][0], x[8:12])
        torch.testing.assert_close(target[name][0], x[12:16])
    g = random_boost(header.algebra, 0.5)
    moved = observer.window(solution, g)
    # the first event of the target: displaced from that of the input by the boosted displacement
    start = torch.tensor([0.0, -23 / 2 * 0.4], dtype=torch.float64)  # of the grid
    step = torch.tensor([1.6, 0.0], dtype=torch.float64)
    centre = torch.tensor([4.8, 0.0], dtype=torch.float64)
    inverse = torch.linalg.inv(g)
    for fields, event in (
        (moved.known, start - step),
        (moved.target, start - step + (g @ step if told else step)),
    ):
        phase, _ = solution.field((inverse @ event + centre)[None])
        torch.testing.assert_close(fields["sine"][0, 0, 0], phase.sin())
    if told:
        torch.testing.assert_close(moved.constants[0, 1:3].double(), g[:, 0])


class Taylor(nn.Module):
    """φ(x + Δ) ≈ φ(x) + Δ·∂φ, with Δ the displacement, or one along time whatever it is told."""

    def __init__(self, task, told=True):
        super().__init__()
        self.told, self.duration = told, task.frames_in * task.frame_spacing

    def forward(self, x):
        sine, cosine, gradient = x[:, 0, ..., 0], 1 - x[:, 1, ..., 0], x[:, 0, ..., 1:3]
        step = x[:, 2, ..., 1:3] if self.told else torch.tensor([1.0, 0.0])
        step = step * self.duration
        change = gradient[..., 0] * step[..., 0] - gradient[..., 1] * step[..., 1]
        y = x[:, :2].clone()
        y[:, 0, ..., 0] = sine * change.cos() + cosine * change.sin()
        y[:, 1, ..., 0] = 1 - cosine * change.cos() + sine * change.sin()
        return y


def test_covariant_networks_do_equally_well_in_boosted_frames():
    simulator = SineGordon(frames=24, grid=(24,), spacing=0.1)
    header = simulator.describe(0, "test")
    task = Task.from_header(header, frames_in=2)
    good, bad = (
        boosted_errors(
            Forecaster(Taylor(task, told), task).double(), header, rapidities=(0.0, 0.5, 1.0)
        )
        for told in (True, False)
    )
    assert good.mse[0] == pytest.approx(bad.mse[0])
    assert max(good.relative_l2) < 2 * good.relative_l2[0]
    assert bad.relative_l2[2] > 2.5 * max(good.relative_l2)


def test_boosted_observers():
    """The forecast of zeros has the relative error 1; solutions do not depend on chance."""
    header = SINE_GORDON.describe(0, "test")
    zero = stub(Task.from_header(header, frames_in=4), torch.zeros_like)
    errors, again = (boosted_errors(zero, header, count=2, rapidities=(0.0, 0.5)) for _ in range(2))
    assert errors.kind == "boosted"
    assert errors.observers == [0.0, 0.5]
    assert errors.relative_l2 == pytest.approx([1.0, 1.0])
    assert errors == again
    other = boosted_errors(zero, header.replace(seed=1), count=2, rapidities=(0.0, 0.5))
    assert other.mse != errors.mse


@pytest.mark.parametrize(
    ("simulator", "name"),
    [
        (MaxwellSpacetime(frames=8, grid=(8, 8), distance=1.0, normalise="log"), "resnet"),
        (MaxwellSpacetime4D(frames=4, grid=(4, 4, 4), distance=1.0), "cs_resnet"),
    ],
)
def test_charges_in_boosted_frames(simulator, name):
    header = simulator.describe(0, "test")
    model = forecaster(name, Task.from_header(header, frames_in=2), kernel_size=1)
    errors = boosted_errors(model, header, count=2, rapidities=(0.0, 0.3))
    assert len(errors.mse) == 2
    assert all(math.isfinite(e) for e in errors.mse)


@pytest.mark.parametrize("coarsen", [1, 2])
def test_observers_see_cells(coarsen):
    """The header of a coarse view leads to the same simulator; fields are means over cells."""
    fine = SINE_GORDON.describe(0, "test")
    header = coarse_header(fine, coarsen)
    task = Task.from_header(header, frames_in=4)
    zero = stub(task, torch.zeros_like, coarsen=coarsen)
    observer = Observer(exact_simulator(header), zero)
    (solution,) = observer.draw(header, 1, 0.0)
    window = observer.window(solution, IDENTITY)
    frames = SINE_GORDON.observe(solution)["gradient"].numpy()
    start = 12 - 4 * coarsen
    means = [
        frames[start + t * coarsen :][:coarsen, x * coarsen :][:, :coarsen].mean((0, 1))
        for t in range(4)
        for x in range(24 // coarsen)
    ]
    expected = np.reshape(means, (1, 4, 24 // coarsen, 2))
    np.testing.assert_allclose(window.known["gradient"], expected, atol=1e-12)
    errors = boosted_errors(zero, header, count=1, rapidities=(0.0,))
    assert errors.relative_l2 == pytest.approx([1.0])


@pytest.mark.parametrize("coarsen", [1, 2])
def test_observers_see_strides(coarsen):
    """Every other frame, or every other cell, before the middle of the trajectory."""
    header = strided_header(coarse_header(SINE_GORDON.describe(0, "test"), coarsen), 2)
    task = Task.from_header(header, frames_in=2)
    zero = stub(task, torch.zeros_like, coarsen=coarsen)
    observer = Observer(exact_simulator(header), zero)
    (solution,) = observer.draw(header, 1, 0.0)
    window = observer.window(solution, IDENTITY)
    frames = SINE_GORDON.observe(solution)["gradient"].numpy()
    cells = frames.reshape(24 // coarsen, coarsen, 24 // coarsen, coarsen, 2).mean((1, 3))
    middle = 12 // coarsen
    known, target = cells[middle - 4 : middle : 2], cells[middle : middle + 4 : 2]
    np.testing.assert_allclose(window.known["gradient"][0], known, atol=1e-12)
    np.testing.assert_allclose(window.target["gradient"][0], target, atol=1e-12)


def test_unknown_solutions(generator):
    header = SINE_GORDON.describe(0, "test").replace(generator="somebody")
    model = forecaster("resnet", Task.from_header(header, frames_in=4))
    window = batch(generator)
    old = SINE_GORDON.describe(0, "test").replace(generator_version=99)
    for unknown in (header, old):
        assert observer_errors(model, unknown, window) is None
    with pytest.raises(ValueError, match="these data come from 'somebody'"):
        boosted_errors(model, header)
    fluid = NavierStokes(grid=(8, 8)).describe(0, "test")
    rotated = observer_errors(forecaster("resnet", plane()), fluid, window)
    assert rotated.kind == "rotated"


def test_solutions_that_cannot_be_seen():
    """No field is as weak as this."""
    simulator = MaxwellSpacetime4D(frames=4, grid=(4, 4, 4), distance=1.0, max_std=1e-9)
    header = simulator.describe(0, "test")
    model = forecaster("cs_resnet", Task.from_header(header, frames_in=2), kernel_size=1)
    with pytest.raises(ValueError, match="only 0 of 100 solutions"):
        boosted_errors(model, header, count=1, rapidities=(0.0,))
