"""Forecasts in spacetime that are later by less than their window."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from cscnn.algebra.group import boost
from cscnn.conv import use_backend
from cscnn.data.simulators.sine_gordon import SineGordon
from cscnn.forecasting import Forecaster, RandomSymmetry, Task, Window, collate
from cscnn.forecasting.evaluation.observers import Observer
from cscnn.forecasting.receptive_field import default_margin, receptive_field
from cscnn.forecasting.unroll import Unroll
from cscnn.forecasting.windows import Windows
from cscnn.testing import relative_error

SIMULATOR = SineGordon(frames=16, grid=(24,), spacing=0.2, speed_limit=0.5)


class Memory:
    """A source of one trajectory."""

    path = "memory"

    def __init__(self):
        self.header = dataclasses.replace(SIMULATOR.header(), seed=0, split="train")
        self.solution = SIMULATOR.draw(np.random.default_rng(1))
        self.fields = {n: x.numpy() for n, x in SIMULATOR.observe(self.solution).items()}

    def __len__(self):
        return 1

    def read(self, number, start=0, stop=None):
        return {name: x[start:stop] for name, x in self.fields.items()}


def build(frames_out=3, margin=0, **options):
    task = Task.from_header(
        SIMULATOR.header(), frames_in=8, frames_out=frames_out, margin=margin,
        open_padding="extrapolate",
    )  # fmt: skip
    options = {"width": 2, "blocks": 1, "kernel_size": 5, "kernel": "differential", **options}
    return Forecaster.build("cs_resnet", task, **options).double().eval()


def window(forecaster):
    return collate([Windows(Memory(), forecaster.task, mode="all", dtype=torch.float64)[2]])


def test_windows_are_followed_by_the_new_frames():
    forecaster = build()
    batch = window(forecaster)
    assert batch.known["sine"].shape == (1, 8, 24, 1)
    assert batch.target["sine"].shape == (1, 3, 24, 1)
    assert torch.equal(batch.target["sine"][0], torch.as_tensor(Memory().fields["sine"])[10:13])


@pytest.mark.parametrize(("frames_out", "unroll"), [(3, 1), (2, 2), (8, 1)])
def test_augmented_windows_have_the_loss_of_the_window(frames_out, unroll):
    """A reversal of time would put the new frames first, where losses do not look for them."""
    forecaster = build(frames_out)
    augment, moved = RandomSymmetry(forecaster.task), 0
    known = Windows(Memory(), forecaster.task, mode="all", unroll=unroll, dtype=torch.float64)[0]
    steps = Unroll(unroll)
    with torch.no_grad():
        expected = forecaster.loss(collate([known]), unroll=steps)
        for seed in range(8):
            other = augment(known, np.random.default_rng(seed))
            moved += not torch.equal(other.known["sine"], known.known["sine"])
            loss = forecaster.loss(collate([other]), unroll=steps)
            assert torch.isclose(loss, expected, rtol=1e-9)
    assert moved


def test_forecasts_are_the_last_frames_of_the_output():
    """And rollouts append them: the next input has lost as many of the oldest."""
    forecaster = build()
    known = window(forecaster).known
    with torch.no_grad():
        first = forecaster(known)
        both = forecaster(known, steps=5)
        full = forecaster.unpack(forecaster.predict(forecaster.pack(known)))
        second = forecaster({n: torch.cat([x, first[n]], 1) for n, x in known.items()})
    for name, x in first.items():
        assert x.shape[1] == 3
        assert torch.equal(x, full[name][:, -3:])
        assert torch.equal(both[name], torch.cat([x, second[name][:, :2]], 1))


def test_margins_do_not_count():
    forecaster = build(margin=5)
    batch = window(forecaster)
    before = forecaster.loss(batch)
    for end in (slice(None, 5), slice(-5, None)):
        batch.target["gradient"][:, :, end] += 1e3
    assert torch.equal(forecaster.loss(batch), before)
    batch.target["gradient"][:, :, 5] += 1e3
    assert forecaster.loss(batch) > 10 * before
    with pytest.raises(ValueError, match="margins of 12 points, but the grid has 24: nothing is"):
        build(margin=12).loss(batch)


def test_rounding_of_spectral_convolutions_is_not_seen():
    forecaster = use_backend(build(kernel="complete").float(), "spectral")
    assert default_margin(forecaster, (32, 48)) == 4
    assert forecaster.dtype == torch.float32


def test_the_default_margin_is_what_the_network_sees(caplog):
    forecaster = build()
    assert receptive_field(forecaster, (32, 48)) == (4, 4)
    assert default_margin(forecaster, (32, 48)) == 4
    assert not caplog.records
    assert default_margin(forecaster, (32, 12)) == 3
    assert "sees 4 points to each side, the grid has (32, 12): only 3" in caplog.text
    smoke = Task("smoke", (1, 1), SIMULATOR.header().fields, boundary="open")
    assert default_margin(Forecaster.build("cs_resnet", smoke, width=1, blocks=1), (16, 16)) == 0


def test_observers_at_rest_see_the_data():
    """The same window as the data's, and the first new frame is where the frames agree."""
    forecaster = build()
    observer = Observer(SIMULATOR, forecaster)
    solution = Memory().solution
    seen = observer.window(solution, torch.eye(2, dtype=torch.float64))
    expected = Windows(Memory(), forecaster.task, mode="all", dtype=torch.float64)[0]
    assert isinstance(seen, Window)
    for name, x in expected.known.items():
        assert relative_error(seen.known[name][0], x) < 1e-12
        assert relative_error(seen.target[name][0], expected.target[name]) < 1e-12


def test_boosted_observers_ask_for_new_events():
    """The target lies beyond the last frame that is seen, displaced by the boosted vector."""
    forecaster, rapidity, h = build(), 0.5, SIMULATOR.spacing
    g = boost(SIMULATOR.header().algebra, rapidity, [1.0])
    solution = Memory().solution
    seen = Observer(SIMULATOR, forecaster).window(solution, g)
    # in coordinates of the observer, with the first new event at the origin
    moved = solution.translated(torch.tensor([-8 * h, 0.0], dtype=torch.float64)).transformed(g)
    times, places = h * torch.arange(-3, 0).double(), h * (torch.arange(24).double() - 11.5)
    later = 3 * h * torch.tensor([math.cosh(rapidity), math.sinh(rapidity)], dtype=torch.float64)
    events = torch.cartesian_prod(times, places) + later
    assert events[:, 0].min() > 0
    phase, _ = moved.field(events)
    assert relative_error(seen.target["sine"].flatten(), phase.sin()) < 1e-9
    assert torch.allclose(seen.constants[-1, 1:3].double(), g[:, 0], atol=1e-6)
