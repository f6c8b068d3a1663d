"""Forecasts and the equations behind the data."""

import numpy as np
import pytest
import torch

from cscnn.data.laws import measure
from cscnn.data.simulators import NavierStokes, SineGordon
from cscnn.forecasting.evaluation.residuals import ForecastResiduals
from cscnn.forecasting.evaluation.rollout import Rollout

SMOKE = NavierStokes(grid=(16, 12), frames=6, warmup=1, every=1)
WAVES = SineGordon(frames=20, grid=(32,))


def forecast(simulator, start, spoil=lambda x: x):
    """The known frames, and a forecast that is the truth of two trajectories, spoilt."""
    rngs = [np.random.default_rng(seed) for seed in range(2)]
    fields = {name: x.float() for name, x in simulator.simulate(rngs).items()}
    known = {name: x[:, :start] for name, x in fields.items()}
    target = {name: x[:, start:] for name, x in fields.items()}
    steps = simulator.frames - start
    prediction = {name: spoil(x.clone()) for name, x in target.items()}
    return known, Rollout(prediction, target, torch.full((2,), steps))


def results(simulator, *forecasts):
    residuals = ForecastResiduals(simulator.describe(0, "test"))
    for known, rollout in forecasts:
        residuals.add(known, rollout)
    stable = torch.cat([rollout.stable for _, rollout in forecasts])
    steps = next(iter(forecasts[0][1].target.values())).shape[1]
    return residuals.results(steps, int(stable.min()))


def noisy(x):
    return x + 0.1 * x.std() * torch.randn_like(x)


@pytest.mark.parametrize(("simulator", "start"), [(SMOKE, 2), (WAVES, 8)])
def test_perfect_forecasts_have_the_residuals_of_the_truth(simulator, start):
    perfect = results(simulator, forecast(simulator, start))
    assert set(perfect) == {law.name for law in simulator.laws}
    spoilt = results(simulator, forecast(simulator, start, noisy))
    for name, law in perfect.items():
        assert law.prediction == law.target < 0.1
        assert spoilt[name].target == law.target
        assert spoilt[name].prediction > 2 * law.target


def test_frames_before_the_forecast_count_where_time_is_an_axis():
    """From the second known frame on, as the differences reach two frames far."""
    header = WAVES.describe(0, "test")
    for start in (8, 16):  # four predicted frames alone would be too few
        known, rollout = forecast(WAVES, start, noisy)
        law = WAVES.laws[0]
        joined = {n: torch.cat([known[n][:, -2:], x], 1) for n, x in rollout.prediction.items()}
        expected = measure(law, joined, header).relative
        assert results(WAVES, (known, rollout))[law.name].prediction == pytest.approx(expected)


def test_residuals_by_step():
    """Of each frame by itself, or with its neighbours where time is an axis of the grid."""
    header, law = SMOKE.describe(0, "test"), SMOKE.laws[0]
    known, rollout = forecast(SMOKE, 2, noisy)
    curves = results(SMOKE, (known, rollout))[law.name].curves
    for curve, fields in ((curves.prediction, rollout.prediction), (curves.target, rollout.target)):
        values = np.array(
            [
                [
                    measure(law, {n: x[[b], [t]][None] for n, x in fields.items()}, header).relative
                    for t in range(4)
                ]
                for b in range(2)
            ]
        )
        np.testing.assert_allclose(curve.mean, values.mean(0), rtol=1e-5)
        low, high = np.quantile(values, [0.1, 0.9], axis=0)
        np.testing.assert_allclose([curve.low, curve.high], [low, high], rtol=1e-5)
    known, rollout = forecast(WAVES, 8, noisy)
    joined = {n: torch.cat([known[n], x], 1) for n, x in rollout.prediction.items()}
    header, law = WAVES.describe(0, "test"), WAVES.laws[0]
    mean = results(WAVES, (known, rollout))[law.name].curves.prediction.mean
    assert np.isfinite(mean).tolist() == [True] * 10 + [False] * 2  # differences reach two frames
    for step in (1, 10):
        frames = slice(8 + step - 3, 8 + step + 2)
        near = [{n: x[[b], frames] for n, x in joined.items()} for b in range(2)]
        expected = np.mean([measure(law, fields, header).relative for fields in near])
        assert mean[step - 1] == pytest.approx(expected, rel=1e-4)
    short = {n: x[:, -1:] for n, x in known.items()}  # a frame less than the differences need
    mean = results(WAVES, (short, rollout))[law.name].curves.prediction.mean
    assert np.isfinite(mean).tolist() == [False] + [True] * 9 + [False] * 2


def test_what_was_given_up_does_not_count():
    known, rollout = forecast(SMOKE, 2)
    for x in rollout.prediction.values():
        x[1, 2:] = torch.nan
    lost = Rollout(rollout.prediction, rollout.target, torch.tensor([4, 2]))
    law = results(SMOKE, (known, lost))["incompressible"]
    assert law.prediction == law.target
    nothing = Rollout(rollout.prediction, rollout.target, torch.tensor([0, 0]))
    assert results(SMOKE, (known, nothing)) == {}
    assert results(WAVES, forecast(WAVES, 18)) == {}  # two known frames and two more are too few
