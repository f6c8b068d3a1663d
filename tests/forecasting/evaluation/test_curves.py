"""Rollouts whose curves are known in closed form."""

import math

import numpy as np
import pytest

from cscnn.data import Field, FieldFile, Header
from cscnn.data.files import write
from cscnn.forecasting import Task
from cscnn.forecasting.evaluation import Evaluator
from tests.forecasting.evaluation.stubs import stub

POINTS, FRAMES = 64, 21


def header(points=POINTS, frames=FRAMES, **changes):
    values = {
        "metric": (1, 1), "axes": ("x", "y"), "spacing": (2 * math.pi / points, 0.5),
        "boundary": ("periodic", "periodic"), "fields": (Field("dye", 0), Field("velocity", 1)),
        "frames": frames, "grid": (points, 4), "frame_spacing": 0.25,
    }  # fmt: skip
    return Header(**{**values, **changes})


def waves(head, numbers=(1,), shift=0):
    """dye = sin(kx) and velocity = (0, cos(kx)), moved by some points a frame, for each k."""
    x = np.arange(head.grid[0]) * head.spacing[0]
    for number in numbers:
        phase = number * (x - shift * head.spacing[0] * np.arange(head.frames)[:, None])
        wave = np.broadcast_to(phase[..., None], (head.frames, *head.grid))
        yield {
            "dye": np.sin(wave)[..., None],
            "velocity": np.stack([np.zeros_like(wave), np.cos(wave)], -1),
        }


def evaluate(path, head, trajectories, function, **frames):
    """Rollouts of a network that is a function of one frame."""
    trajectories = list(trajectories)
    write(path / "data.h5", head, trajectories, range(len(trajectories)), dtype="float64")
    task = Task.from_header(head, **{"frames_in": 1, **frames})
    with FieldFile(path / "data.h5") as source:
        return Evaluator(stub(task, function), source, batch=2).rollouts(len(trajectories))[0]


def moved(points):
    return lambda x: x.roll(points, 2)


def test_a_wave_that_runs_ahead(tmp_path):
    """By one point of 64 a frame: the correlation is cos(nφ), the error 2 sin(nφ/2)."""
    head = header()
    rollout = evaluate(tmp_path, head, waves(head, shift=1), moved(2))
    phi = 2 * math.pi / POINTS
    n = np.arange(1, FRAMES)
    for errors in (rollout, *rollout.fields.values()):
        np.testing.assert_allclose(errors.correlation, np.cos(n * phi), atol=1e-6)
        np.testing.assert_allclose(errors.relative_l2, 2 * np.sin(n * phi / 2), atol=1e-6)
        np.testing.assert_allclose(errors.persistence, 2 * np.sin(n * phi / 2), atol=1e-6)
        exact = math.acos(0.8) / phi  # 6.56 frames
        assert errors.correlation_frames == pytest.approx(exact, abs=0.02)  # of interpolation
        between = np.interp(-0.8, -np.cos([6 * phi, 7 * phi]), [6, 7])
        assert errors.correlation_frames == pytest.approx(between, rel=1e-5)
        assert errors.lifetimes["correlation"] == pytest.approx([between], rel=1e-5)
    assert rollout.correlation_time == pytest.approx(0.25 * rollout.correlation_frames)
    assert rollout.steps == list(range(1, FRAMES))
    assert rollout.times == pytest.approx(0.25 * n)
    assert rollout.fields["dye"].mse == pytest.approx(2 * np.sin(n * phi / 2) ** 2, abs=1e-6)


def test_when_persistence_is_better(tmp_path):
    """The truth moves four points a frame, the forecast five: 64/5 frames later both have the same
    error, as the wave comes back to where it was."""
    head = header()
    rollout = evaluate(tmp_path, head, waves(head, shift=4), moved(5))
    assert rollout.persistence_frames == pytest.approx(64 / 5, abs=0.01)
    assert rollout.fields["velocity"].persistence_frames == pytest.approx(64 / 5, abs=0.01)
    assert rollout.lifetimes["persistence"] == pytest.approx([64 / 5], abs=0.01)
    still = evaluate(tmp_path, head, waves(head, shift=4), moved(4))
    assert (still.persistence_frames, still.correlation_frames) == (None, None)
    assert still.lifetimes == {"correlation": [None], "persistence": [None]}


def test_a_forecast_that_grows(tmp_path):
    """A factor: the correlation stays 1, the error is factor^n - 1; worse than persistence."""
    head = header(frames=8)
    rollout = evaluate(tmp_path, head, waves(head), lambda x: 1.1 * x)
    np.testing.assert_allclose(rollout.correlation, 1, atol=1e-6)
    np.testing.assert_allclose(rollout.relative_l2, 1.1 ** np.arange(1, 8) - 1, rtol=1e-5)
    assert rollout.correlation_frames is None
    assert rollout.persistence_frames == 0.0


def test_spread_over_trajectories(tmp_path):
    """The wave number k is late by a phase k times as large."""
    head, numbers = header(frames=10), (1, 2, 3, 4, 5)
    rollout = evaluate(tmp_path, head, waves(head, numbers, shift=1), moved(2))
    phase = np.outer(numbers, np.arange(1, 10)) * 2 * math.pi / POINTS
    for name, values in (
        ("correlation", np.cos(phase)),
        ("relative_l2", 2 * np.sin(phase / 2)),
        ("persistence", 2 * np.sin(phase / 2)),
    ):
        for errors in (rollout, rollout.fields["dye"]):
            low, high = np.quantile(values, [0.1, 0.9], axis=0)
            np.testing.assert_allclose(getattr(errors, name), values.mean(0), atol=1e-6)
            np.testing.assert_allclose(errors.spread[name].low, low, atol=1e-6)
            np.testing.assert_allclose(errors.spread[name].high, high, atol=1e-6)
    exact = math.acos(0.8) * POINTS / (2 * math.pi) / np.array(numbers)
    lost = rollout.lifetimes["correlation"]
    np.testing.assert_allclose(lost, exact, atol=0.1)  # of interpolation


def test_lost_trajectories_are_counted(tmp_path):
    """The second one blows up at its third frame: curves end there, and it has lost everything."""
    head = header(frames=7)

    def explode(x):
        x = x.clone()
        count = explode.calls = explode.calls + 1
        if len(x) == 2 and count == 3:
            x[1] = math.inf
        return x

    explode.calls = 0
    rollout = evaluate(tmp_path, head, waves(head, (1, 2, 3), shift=1), explode)
    assert rollout.stable == [6, 2, 6]
    assert (rollout.stable_steps, rollout.lost) == (2, 1)
    for values in (rollout.correlation, rollout.spread["correlation"].high):
        assert np.isfinite(values).tolist() == [True, True, False, False, False, False]
    assert np.isfinite(rollout.persistence).all()
    lost = rollout.lifetimes["correlation"]
    assert lost[0] is None
    assert 2 < lost[1] < 3
    assert rollout.persistence_frames == 2.0
    assert rollout.lifetimes["persistence"] == [None, 2.0, None]


def test_time_as_an_axis(tmp_path):
    """A block of four frames that is late by a point: the phase grows by a step with each block."""
    line = Header(
        (1, -1), ("t", "x"), (1.0, 1.0), ("open", "periodic"), (Field("wave", 0),),
        frames=20, grid=(POINTS,), time_axis=0,
    )  # fmt: skip
    x = 2 * math.pi / POINTS * np.arange(POINTS)
    truth = np.sin(x - 2 * math.pi / POINTS * np.arange(20)[:, None])[..., None]

    def later(block):
        return block.roll(4 + 1, 3)  # (batch, channels, time, x, blades)

    rollout = evaluate(tmp_path, line, [{"wave": truth}], later, frames_in=4, frames_out=4)
    blocks = 1 + np.arange(16) // 4
    np.testing.assert_allclose(
        rollout.correlation, np.cos(2 * math.pi / POINTS * blocks), atol=1e-6
    )
    assert rollout.correlation_frames is None
    assert rollout.steps == list(range(1, 17))
