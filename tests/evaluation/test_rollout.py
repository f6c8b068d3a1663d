"""Rollouts against hand-written loops."""

import pytest
import torch
from stubs import Stub, network, plane

from cscnn.data import Scaling
from cscnn.evaluation.rollout import forecast, persistence, rollout
from cscnn.models import Field, Task

SCALING = Scaling({"smoke": 2.0, "wind": 0.5}, {"smoke": 1.0})


def frames(generator, count=7, batch=3, grid=(6, 5)):
    shape = (batch, count, *grid)
    return {
        "smoke": torch.randn(*shape, 1, generator=generator, dtype=torch.float64),
        "wind": torch.randn(*shape, 2, generator=generator, dtype=torch.float64),
    }


@pytest.mark.parametrize(("frames_in", "frames_out"), [(2, 1), (3, 2), (1, 3)])
def test_frames_as_channels(frames_in, frames_out, generator):
    model = network("resnet", plane(frames_in=frames_in, frames_out=frames_out))
    data = frames(generator)
    made = rollout(model, data, SCALING, steps=4, bound=1e6)
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
                new = model.task.unpack(model(x))
            for i in range(frames_out):
                known.append({"smoke": new["smoke"][0, i] * 2 + 1, "wind": new["wind"][0, i] / 2})
        for name in data:
            expected = torch.stack([f[name] for f in known[frames_in : frames_in + 4]])
            torch.testing.assert_close(made.prediction[name][b], expected)
            assert torch.equal(made.target[name][b], data[name][b, frames_in : frames_in + 4])


def test_time_as_an_axis(generator):
    task = Task("line", (1, -1), (Field("wave", 0),), frames_in=3, frames_out=3, time_axis=0)
    model = network("resnet", task)
    data = {"wave": torch.randn(2, 11, 8, 1, generator=generator, dtype=torch.float64)}
    made = rollout(model, data, None, bound=1e6)
    block, blocks = data["wave"][:, :3], []
    with torch.no_grad():
        for _ in range(3):
            x = torch.zeros(2, 1, 3, 8, 4, dtype=torch.float64)
            x[:, 0, ..., :1] = block
            block = model(x)[:, 0, ..., :1]
            blocks.append(block)
    expected = torch.cat(blocks, 1)[:, :8]
    torch.testing.assert_close(made.prediction["wave"], expected)
    assert made.target["wave"].shape == expected.shape


def test_perfect_model_has_no_error(generator):
    task = plane(frames_in=2, frames_out=2)
    still = {name: x[:, :1].expand_as(x) for name, x in frames(generator).items()}
    made = rollout(Stub(task, lambda x: x).double(), still, SCALING)
    for name in still:
        torch.testing.assert_close(made.prediction[name], made.target[name])
        assert torch.equal(persistence(still, 5)[name], made.target[name])


def test_unstable_models_are_stopped(generator):
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
    made = rollout(Stub(task, grow).double(), data)
    # range 2 about 0: values up to 20 are allowed, 1 -> 10 -> 100
    assert made.stable.tolist() == [59, 1, 1]
    for x in made.prediction.values():
        assert x[0].isfinite().all()
        assert (x[1:, 0] == 10).all()
        assert x[1:, 1:].isnan().all()
    alone = {name: x[1:] for name, x in data.items()}
    calls.clear()
    made = rollout(Stub(task, grow).double(), alone)
    assert len(calls) == 2  # it stops when none is left
    assert made.prediction["wind"].shape == made.target["wind"].shape
    made = rollout(Stub(task, lambda x: x * float("nan")).double(), alone)
    assert made.stable.tolist() == [0, 0]


def test_forecast_tells_the_background(generator):
    model = network("cs_resnet", plane())
    known = {name: x[:, :2] for name, x in frames(generator).items()}
    here = forecast(model, known, SCALING)
    there = forecast(model, known, SCALING, -model.background)
    assert not torch.allclose(here["wind"], there["wind"])


@pytest.mark.parametrize("steps", [0, 6])
def test_steps_must_be_there(steps, generator):
    with pytest.raises(ValueError, match=f"7 frames allow 1 to 5, got {steps}"):
        rollout(Stub(plane(), lambda x: x[:, :1]), frames(generator), steps=steps)
