"""Losses against loops over numbers; their symmetry; how training takes them by name."""

import math

import numpy as np
import pytest
import torch

from cscnn.algebra.grids import grid_symmetries, transform_on_grid
from cscnn.data import Field
from cscnn.data.simulators import create
from cscnn.forecasting import Forecaster, Task, Window, collate, losses

FLOW = Task("flow", (1, 1), (Field("dye", 0), Field("heat", 0), Field("wind", 1)), frames_out=2)
LIGHT = Task.from_header(create("maxwell_spacetime").header(), frames_in=3)


def fields(task, batch=3):
    """Noise in the components with data, and below it in those without, which must not count."""
    grid = (4,) * task.dim
    x = task.output_type.noise((batch, *grid)).double()
    return x + 50 * torch.randn_like(x) * ~task.output_type.mask[:, *(None,) * task.dim]


@pytest.fixture(params=[FLOW, LIGHT], ids=["flow", "light"])
def task(request):
    return request.param


def by_name(task, x):
    return {name: part.numpy() for name, part in task.unpack(x).items()}


def test_mse_is_the_mean_square_of_all_components(task):
    prediction, target = fields(task), fields(task)
    p, t = by_name(task, prediction), by_name(task, target)
    errors = np.concatenate([(p[name] - t[name]).ravel() for name in t])
    expected = sum(e**2 for e in errors) / len(errors)
    assert losses.mse(prediction, target, task).item() == pytest.approx(expected, rel=1e-12)


def test_relative_counts_samples_and_fields_alike(task):
    prediction, target = fields(task), fields(task)
    target[1] *= 100  # one large sample, and one field that is nearly absent from a sample
    target[2, 0, ..., 0] *= 1e-6
    p, t = by_name(task, prediction), by_name(task, target)
    ratios = []
    for name in t:
        for sample in range(3):
            error = math.sqrt(np.mean((p[name][sample] - t[name][sample]) ** 2))
            size = math.sqrt(np.mean(t[name][sample] ** 2))
            ratios.append(error / max(size, losses.SMALLEST))
    found = losses.relative(prediction, target, task)
    assert found.item() == pytest.approx(sum(ratios) / len(ratios), rel=1e-12)
    parts = [losses.relative(prediction[i : i + 1], target[i : i + 1], task) for i in range(3)]
    torch.testing.assert_close(torch.stack(parts).mean(), found)


@pytest.mark.parametrize("name", losses.LOSSES)
def test_losses_are_invariant(name, task):
    """Under the symmetries of the grid; a loss that favours a component is the control."""
    first = task.algebra.grade_slice(task.fields[-1].grade).start
    favour = torch.ones(task.algebra.n_blades).double()
    favour[first] = 3.0
    prediction, target = fields(task), fields(task) * favour  # long along one axis

    def change(loss):
        values = []
        for g in grid_symmetries(task.algebra, (4,) * task.dim):
            moved = (transform_on_grid(task.algebra, g, x) for x in (prediction, target))
            values.append(loss(*moved, task).item())
        return max(values) / min(values) - 1

    assert change(losses.LOSSES[name]) < 1e-12
    assert change(lambda p, t, task: losses.LOSSES[name](p * favour, t * favour, task)) > 1e-3


@pytest.mark.parametrize("name", losses.LOSSES)
def test_the_truth_has_no_loss_and_a_finite_gradient(name, task):
    target = fields(task)
    prediction = target.clone().requires_grad_()
    loss = losses.LOSSES[name](prediction, target, task)
    loss.backward()
    assert loss == 0
    assert prediction.grad.isfinite().all()


@pytest.mark.parametrize("name", losses.LOSSES)
def test_forecasters_learn_by_any_of_them(name):
    forecaster = Forecaster.build("cs_resnet", FLOW, width=2, blocks=1, kernel_size=3)
    noise = {f.name: torch.randn(6, 8, 8, FLOW.algebra.grade_sizes[f.grade]) for f in FLOW.fields}
    known, target = ({n: x[part] for n, x in noise.items()} for part in (slice(4), slice(4, 6)))
    window = collate([Window(known, target, FLOW.constant_multivectors())])
    optimiser = torch.optim.Adam(forecaster.parameters(), lr=1e-2)
    before = forecaster.loss(window, name).item()
    for _ in range(10):
        optimiser.zero_grad()
        forecaster.loss(window, name).backward()
        optimiser.step()
    assert forecaster.loss(window, name) < 0.98 * before
    with pytest.raises(ValueError, match="loss must be one of mse, relative, got 'l7'"):
        forecaster.loss(window, "l7")


def test_names_of_losses_are_given_once():
    def mse(prediction, target, task):
        return prediction.square().mean()

    with pytest.raises(ValueError, match=r"a loss named 'mse' already, cscnn\..*\.mse"):
        losses.loss(mse)
    assert losses.get_loss("mse") is losses.mse
