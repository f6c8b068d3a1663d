"""Rollouts against hand-written loops."""

import pytest
import torch

from cscnn.data import Field
from cscnn.forecasting import Task, Units
from cscnn.forecasting.evaluation.rollout import persistence, rollout
from tests.forecasting.evaluation.stubs import forecaster, plane, stub

UNITS = Units({"smoke": 2.0, "wind": 0.5}, {"smoke": 1.0})


def frames(generator, count=7, batch=3, grid=(6, 5)):
    shape = (batch, count, *grid)
    return {
        "smoke": torch.randn(*shape, 1, generator=generator, dtype=torch.float64),
        "wind": torch.randn(*shape, 2, generator=generator, dtype=torch.float64),
    }


@pytest.mark.parametrize(("frames_in", "frames_out"), [(2, 1), (3, 2), (1, 3)])
def test_frames_as_channels(frames_in, frames_out, generator):
    model = forecaster("resnet", plane(frames_in=frames_in, frames_out=frames_out), UNITS)
    data = frames(generator)
    made = rollout(model, data, steps=4, bound=1e6)
    assert made.stable.tolist() == [4, 4, 4]
    for b in range(3):
        known = [{name: x[b, i] for name, x in data.items()} for i in range(frames_in)]
        while len(known) < frames_in + 4:
            last = known[-frames_in:]
            scaled = {
                "smoke": (torch.stack([f["smoke"] for f in last]) - 1) / 2,
                "wind": torch.stack([f["wind"] for f in last]) / 0.5,
            }
            x = model.task.pack({name: f[None] for name, f in scaled.items()})
            with torch.no_grad():
                new = model.task.unpack(model.predict(x))
            for i in range(frames_out):
                known.append({"smoke": new["smoke"][0, i] * 2 + 1, "wind": new["wind"][0, i] / 2})
        for name in data:
            expected = torch.stack([f[name] for f in known[frames_in : frames_in + 4]])
            torch.testing.assert_close(made.prediction[name][b], expected)
            assert torch.equal(made.target[name][b], data[name][b, frames_in : frames_in + 4])


def test_time_as_an_axis(generator):
    """Eight frames in blocks of three, the last of which is cut."""
    task = Task("line", (1, -1), (Field("wave", 0),), frames_in=3, frames_out=3, time_axis=0)
    model = forecaster("resnet", task)
    data = {"wave": torch.randn(2, 11, 8, 1, generator=generator, dtype=torch.float64)}
    made = rollout(model, data, bound=1e6)
    block, blocks = data["wave"][:, :3], []
    with torch.no_grad():
        for _ in range(3):
            x = torch.zeros(2, 1, 3, 8, 4, dtype=torch.float64)
            x[:, 0, ..., :1] = block
            block = model.predict(x)[:, 0, ..., :1]
            blocks.append(block)
    expected = torch.cat(blocks, 1)[:, :8]
    torch.testing.assert_close(made.prediction["wave"], expected)
    assert made.target["wave"].shape == expected.shape


def test_perfect_forecasts_have_no_error(generator):
    task = plane(frames_in=2, frames_out=2)
    still = {name: x[:, :1].expand_as(x) for name, x in frames(generator).items()}
    made = rollout(stub(task, lambda x: x, UNITS), still)
    for name in still:
        torch.testing.assert_close(made.prediction[name], made.target[name])
        assert torch.equal(persistence(still, 5)[name], made.target[name])


def test_unstable_forecasts_are_given_up(generator):
    """Each frame is ten times the one before: out of the tenfold range in the third at most."""
    calls = []

    def grow(x):
        calls.append(len(x))
        return x * 10

    task = plane(frames_in=1, frames_out=1)
    data = frames(generator, count=60)
    for x in data.values():
        x.clamp_(-1, 1)
        x[0] = 0
    for x in data.values():
        x[1:, 0] = 1.0
    made = rollout(stub(task, grow), data)
    # range 2 about 0: values up to 20 are allowed, 1 -> 10 -> 100
    assert made.stable.tolist() == [59, 1, 1]
    for x in made.prediction.values():
        assert x[0].isfinite().all()
        assert (x[1:, 0] == 10).all()
        assert x[1:, 1:].isnan().all()
    alone = {name: x[1:] for name, x in data.items()}
    calls.clear()
    made = rollout(stub(task, grow), alone)
    assert len(calls) == 2  # it stops when none is left
    assert made.prediction["wind"].shape == made.target["wind"].shape
    made = rollout(stub(task, lambda x: x * float("nan")), alone)
    assert made.stable.tolist() == [0, 0]


def test_a_lost_trajectory_goes_on_from_zero(generator):
    """A network that mixes the batch would spread what is not a number."""
    task = plane(frames_in=1, frames_out=1)
    data = frames(generator, count=4, batch=2)
    seen = []

    def break_first(x):
        seen.append(x.clone())
        y = x.clone()
        y[0] = torch.nan
        return y

    made = rollout(stub(task, break_first), data)
    assert made.stable.tolist() == [0, 3]
    assert len(seen) == 3
    assert not seen[1][0].any()
    assert torch.equal(seen[1][1], seen[0][1])


@pytest.mark.parametrize("steps", [0, 6])
def test_steps_must_be_there(steps, generator):
    with pytest.raises(ValueError, match=f"7 frames allow 1 to 5, got {steps}"):
        rollout(stub(plane(), lambda x: x[:, :1]), frames(generator), steps=steps)
