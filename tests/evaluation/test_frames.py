"""Test errors seen from other frames."""

import math

import numpy as np
import pytest
import torch
from stubs import Stub, network, plane

from cscnn.data import Scaling
from cscnn.data.simulators import MaxwellSpacetime, MaxwellSpacetime4D, NavierStokes, SineGordon
from cscnn.data.simulators.sine_gordon import Solitons
from cscnn.evaluation.frames import (
    _Observer,
    boosted_error,
    frames_error,
    knows_frames,
    rotated_error,
)
from cscnn.evaluation.symmetry import boost
from cscnn.models import FieldModel

SCALING = Scaling({"smoke": 2.0, "wind": 0.5}, {"smoke": 1.0})
WAVES = Scaling({"sine": 1.0, "cosine": 1.0, "gradient": 1.0})
SINE_GORDON = SineGordon(frames=24, grid=(24,))


def windows(generator, grid=(8, 8)):
    known = {
        "smoke": torch.randn(2, 2, *grid, 1, generator=generator, dtype=torch.float64),
        "wind": torch.randn(2, 2, *grid, 2, generator=generator, dtype=torch.float64),
    }
    return known, {name: x[:, :1] for name, x in known.items()}


def test_turned_windows(generator):
    known, target = windows(generator)
    found = rotated_error(network("cs_resnet", plane()), SCALING, known, target)
    assert found.values[0] == "(x, y)"
    assert sorted(found.values) == sorted(
        f"({a}{p}, {b}{q})" for p, q in ("xy", "yx") for a in ("", "-") for b in ("", "-")
    )
    assert max(found.mse) - min(found.mse) < 1e-12 * max(found.mse)
    control = rotated_error(network("resnet", plane()), SCALING, known, target)
    assert max(control.relative_l2) > 1.001 * min(control.relative_l2)
    data = control.to_dict()
    assert data["worst"] == max(control.mse)
    assert data["mean"] == pytest.approx(sum(control.mse) / 8)
    few = rotated_error(network("resnet", plane()), SCALING, known, target, limit=3)
    assert few.values[0] == "(x, y)"
    assert len(set(few.values)) == 3


def test_error_is_the_mean_over_components(generator):
    """A model that repeats its input, against a target that is off by one in the scalar."""
    known, target = windows(generator)
    target["smoke"] = known["smoke"][:, :1] + 1
    repeat = Stub(plane(), lambda x: x[:, :1]).double()
    found = rotated_error(repeat, SCALING, known, target)
    assert found.mse == pytest.approx([1 / 3] * 8)


def test_solutions_are_displaced():
    solitons = SINE_GORDON.draw(np.random.default_rng(0))
    shift = torch.tensor([0.7, -1.1], dtype=torch.float64)
    points = torch.randn(20, 2, dtype=torch.float64)
    here, there = solitons.field(points), solitons.translated(shift).field(points + shift)
    assert isinstance(solitons.translated(shift), Solitons)
    for a, b in zip(here, there, strict=True):
        torch.testing.assert_close(torch.exp(1j * a), torch.exp(1j * b))


@pytest.mark.parametrize("told", [True, False])
def test_views_are_of_one_solution(told):
    """At rest, input and target are consecutive frames of the trajectory's middle."""
    header = SINE_GORDON.describe(0, "test")
    changes = {"frames_in": 4} if told else {"frames_in": 4, "backgrounds": ()}
    observer = _Observer(SINE_GORDON, network("resnet", header.task(**changes)), 1)
    (solution,) = observer.solutions(header, 1, 0.5)
    known, target = observer.views(solution, torch.eye(2, dtype=torch.float64))
    whole = SINE_GORDON.observe(solution)
    for name, x in whole.items():
        torch.testing.assert_close(known[name], x[8:12])
        torch.testing.assert_close(target[name], x[12:16])
    g = boost(header.algebra, 0.5)
    moved = observer.views(solution, g)
    # the first event of the target: displaced from that of the input by the boosted displacement
    start = torch.tensor([0.0, -23 / 2 * 0.4], dtype=torch.float64)  # of the grid
    step = torch.tensor([1.6, 0.0], dtype=torch.float64)
    centre = torch.tensor([4.8, 0.0], dtype=torch.float64)
    inverse = torch.linalg.inv(g)
    for view, event in (
        (moved[0], start - step),
        (moved[1], start - step + (g @ step * told) + step * (not told)),
    ):
        phase, _ = solution.field((inverse @ event + centre)[None])
        torch.testing.assert_close(view["sine"][0, 0], phase.sin())


class Taylor(FieldModel):
    """φ(x + Δ) ≈ φ(x) + Δ·∂φ, with Δ the background, or one along time whatever it is told."""

    def __init__(self, task, told=True):
        super().__init__(task)
        self.told = told

    def compute(self, x):
        sine, cosine, gradient = x[:, 0, ..., 0], 1 - x[:, 1, ..., 0], x[:, 0, ..., 1:3]
        step = x[:, 2, ..., 1:3] if self.told else torch.tensor([1.0, 0.0])
        step = step * self.task.frames_in * self.task.frame_spacing
        change = gradient[..., 0] * step[..., 0] - gradient[..., 1] * step[..., 1]
        y = x[:, :2].clone()
        y[:, 0, ..., 0] = sine * change.cos() + cosine * change.sin()
        y[:, 1, ..., 0] = 1 - cosine * change.cos() + sine * change.sin()
        return y


def test_covariant_models_do_equally_well_in_boosted_frames():
    simulator = SineGordon(frames=24, grid=(24,), spacing=0.1)
    header = simulator.describe(0, "test")
    task = header.task(frames_in=2)
    good, bad = (
        boosted_error(Taylor(task, told).double(), header, WAVES, rapidities=(0.0, 0.5, 1.0))
        for told in (True, False)
    )
    assert good.mse[0] == pytest.approx(bad.mse[0])
    assert max(good.relative_l2) < 2 * good.relative_l2[0]
    assert bad.relative_l2[2] > 2.5 * max(good.relative_l2)


def test_frames_of_boosts():
    header = SINE_GORDON.describe(0, "test")
    task = header.task(frames_in=4)
    zero = Stub(task, torch.zeros_like).double()
    found = boosted_error(zero, header, WAVES, count=2, rapidities=(0.0, 0.5))
    assert found.kind == "boosted"
    assert found.values == [0.0, 0.5]
    assert found.relative_l2 == pytest.approx([1.0, 1.0])
    assert found == boosted_error(zero, header, WAVES, count=2, rapidities=(0.0, 0.5))


@pytest.mark.parametrize(
    ("simulator", "model"),
    [
        (MaxwellSpacetime(frames=8, grid=(8, 8), distance=1.0, normalise="log"), "resnet"),
        (MaxwellSpacetime4D(frames=4, grid=(4, 4, 4), distance=1.0), "cs_resnet"),
    ],
)
def test_charges_in_boosted_frames(simulator, model):
    header = simulator.describe(0, "test")
    task = header.task(frames_in=2)
    scaling = Scaling({"faraday": 1.0})
    model = network(model, task, kernel_size=1)
    found = boosted_error(model, header, scaling, count=2, rapidities=(0.0, 0.3))
    assert len(found.mse) == 2
    assert all(math.isfinite(e) for e in found.mse)


def test_coarse_grids():
    header = SINE_GORDON.describe(0, "test")
    task = header.task(frames_in=4, spacing=(0.8, 0.8))
    zero = Stub(task, torch.zeros_like).double()
    found = boosted_error(zero, header, WAVES, count=1, rapidities=(0.0,), coarsen=2)
    assert found.relative_l2 == pytest.approx([1.0])


def test_where_frames_are_unknown(generator):
    header = SINE_GORDON.describe(0, "test").replace(generator="somebody")
    model = network("resnet", header.task(frames_in=4))
    assert not knows_frames(header)
    assert frames_error(model, header, WAVES, windows(generator)) is None
    assert not knows_frames(SINE_GORDON.describe(0, "test").replace(generator_version=99))
    assert not knows_frames(NavierStokes(grid=(8, 8)).describe(0, "test"))
    with pytest.raises(ValueError, match="the data come from 'somebody'"):
        boosted_error(model, header, WAVES)
