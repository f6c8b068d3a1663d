"""Metrics against loops over numbers."""

import itertools
import math

import numpy as np
import pytest
import torch

from cscnn.forecasting.evaluation import metrics


@pytest.fixture
def pair(generator):
    target = torch.randn(2, 3, 4, 6, 2, generator=generator) + 2
    return target + 0.3 * torch.randn(target.shape, generator=generator), target


def by_loop(prediction, target, function):
    p, t = prediction.double().numpy(), target.double().numpy()
    return np.array([[function(p[b, f], t[b, f]) for f in range(3)] for b in range(2)])


def loop_mse(p, t):
    errors = [(p[i] - t[i]) ** 2 for i in np.ndindex(p.shape)]
    return sum(errors) / len(errors)


def loop_mean(x):
    return [np.mean([x[i, j, c] for i in range(4) for j in range(6)]) for c in range(2)]


def loop_variance(t):
    mean = loop_mean(t)
    return np.mean([(t[i] - mean[i[-1]]) ** 2 for i in np.ndindex(t.shape)])


def loop_correlation(p, t):
    a, b = loop_mean(p), loop_mean(t)
    both = sum((p[i] - a[i[-1]]) * (t[i] - b[i[-1]]) for i in np.ndindex(t.shape))
    return both / t.size / math.sqrt(loop_variance(p) * loop_variance(t))


LOOPS = {
    "mse": loop_mse,
    "relative_l2": lambda p, t: math.sqrt(
        sum((p[i] - t[i]) ** 2 for i in np.ndindex(p.shape))
        / sum(t[i] ** 2 for i in np.ndindex(p.shape))
    ),
    "vrmse": lambda p, t: math.sqrt(loop_mse(p, t) / loop_variance(t)),
    "correlation": loop_correlation,
}


@pytest.mark.parametrize("name", LOOPS)
def test_metrics_are_what_loops_give(name, pair):
    found = getattr(metrics, name)(*pair)
    np.testing.assert_allclose(found.numpy(), by_loop(*pair, LOOPS[name]), rtol=1e-12)


def loop_spectrum(x, spacing):
    """Power in shells by sums over points, wave number by wave number."""
    shape = x.shape[:-1]
    width = max(1 / (n * h) for n, h in zip(shape, spacing, strict=True))
    shells = int(min(0.5 / h for h in spacing) / width + 1e-9) + 1
    result = np.zeros(shells)
    signed = [range(-(n // 2), (n + 1) // 2) for n in shape]
    for k in itertools.product(*signed):
        wave = [m / (n * h) for m, n, h in zip(k, shape, spacing, strict=True)]
        shell = math.ceil(math.hypot(*wave) / width - 0.5 - 1e-9)  # halves go down
        if shell >= shells:
            continue
        for c in range(x.shape[-1]):
            amplitude = sum(
                x[(*i, c)]
                * np.exp(
                    -2j * math.pi * sum(m * j / n for m, j, n in zip(k, i, shape, strict=True))
                )
                for i in np.ndindex(shape)
            )
            result[shell] += abs(amplitude) ** 2
    return result


@pytest.mark.parametrize("spacing", [(1.0, 1.0), (0.5, 0.25)])
def test_spectra_are_what_loops_give(spacing, pair):
    found = metrics.spectrum_error(*pair, spacing)

    def relative(p, t):
        a, b = loop_spectrum(p, spacing), loop_spectrum(t, spacing)
        return np.mean(abs(a - b) / (a + b))

    np.testing.assert_allclose(found.numpy(), by_loop(*pair, relative), rtol=1e-9)


def test_a_wave_is_in_its_shell():
    x = torch.arange(16.0)[:, None] * (2 * math.pi / 16)
    field = (3 * x).sin().expand(16, 16)[None, None, ..., None]
    power = metrics.spectrum(field)[0, 0]
    assert power.argmax() == 3
    assert power[3] / power.sum() > 1 - 1e-12
    # an axis that is not periodic is faded out, so a jump at its ends does not fill all shells
    ramp = torch.linspace(-1, 1, 32)[None, None, :, None]
    jump, faded = (metrics.spectrum(ramp, periodic=(p,))[0, 0] for p in (True, False))
    assert faded[8:].sum() / faded.sum() < 0.01 * jump[8:].sum() / jump.sum()
    with pytest.raises(ValueError, match="each of 1 axes of space"):
        metrics.spectrum(ramp, spacing=(1.0, 1.0))


@pytest.mark.parametrize("name", ["mse", "relative_l2", "vrmse", "spectrum_error"])
def test_the_truth_has_no_error(name, pair):
    assert (getattr(metrics, name)(pair[1], pair[1]) == 0).all()
    assert (metrics.correlation(pair[1], pair[1]) > 1 - 1e-12).all()


def test_vrmse_of_components_is_that_of_the_well(pair):
    """And ours is their mean square with the variances as weights: docs/guides/evaluation.md."""
    p, t = (x.double() for x in pair)
    space = tuple(range(2, t.dim() - 1))
    variance = t.var(space, correction=0)
    theirs = ((p - t).square().mean(space) / (variance + 1e-7)).sqrt()
    components = range(t.shape[-1])
    ours = torch.stack([metrics.vrmse(p[..., [c]], t[..., [c]]) for c in components], -1)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=0)
    pooled = ((variance * ours.square()).sum(-1) / variance.sum(-1)).sqrt()
    torch.testing.assert_close(metrics.vrmse(p, t), pooled)


def test_forecast_by_the_mean_has_vrmse_one(pair):
    mean = pair[1].double().mean((2, 3), keepdim=True).expand(pair[1].shape)
    torch.testing.assert_close(metrics.vrmse(mean, pair[1].double()), torch.ones(2, 3).double())


def test_nothing_to_compare_with_is_left_out():
    target = torch.ones(2, 1, 4, 4, 1)
    target[0] = torch.randn(1, 4, 4, 1)
    still = torch.zeros_like(target)
    for metric in (metrics.vrmse, metrics.correlation):
        found = metric(still, target)
        assert found[1].isnan()
        assert not found[0].isnan()
        assert metrics.mean(found) == pytest.approx(float(found[0]))
    assert metrics.relative_l2(still, torch.zeros_like(target)).isnan().all()
    assert math.isnan(metrics.mean(torch.tensor([[math.nan]])))


def test_total_weighs_components(pair):
    kinds = {"mse": metrics.mse, "vrmse": metrics.vrmse}
    fields = {"a": pair[1], "b": pair[1][..., :1]}
    off = {"a": pair[0], "b": pair[0][..., :1]}
    found = metrics.scores(off, fields, kinds)
    total = metrics.total(found, {"a": 2, "b": 1})
    joined = metrics.mse(*(torch.cat([f["a"], f["b"]], -1) for f in (off, fields)))
    torch.testing.assert_close(total["mse"], joined)
    torch.testing.assert_close(total["vrmse"], (found["a"]["vrmse"] + found["b"]["vrmse"]) / 2)


def test_shapes_are_checked():
    with pytest.raises(ValueError, match=r"\(2, 3, 4, 1\) and \(2, 3, 5, 1\)"):
        metrics.mse(torch.zeros(2, 3, 4, 1), torch.zeros(2, 3, 5, 1))
