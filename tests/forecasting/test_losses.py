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


RING = FLOW.replace(boundary=("periodic", "open"), spacing=(0.5, 2.0))


@pytest.mark.parametrize("task", [FLOW, LIGHT, RING], ids=["flow", "light", "ring"])
def test_h1_counts_differences_of_neighbours(task):
    """Against loops over points; they wrap around where the grid does."""
    prediction, target = fields(task), fields(task)
    p, t = by_name(task, prediction), by_name(task, target)
    first = 2 if task.time_axis is None else 1

    def slope(values):
        total = 0.0
        for axis, h in enumerate(task.grid_spacing):
            moved = np.moveaxis(values, first - 1 + axis, 0)
            steps = [moved[i + 1] - moved[i] for i in range(3)]
            if task.padding_mode[axis] == "circular":
                steps.append(moved[0] - moved[3])
            total += np.mean(np.square(steps)) / h**2
        return total

    longest = 4 * max(task.grid_spacing) / (2 * math.pi)
    total = count = 0.0
    for name in t:
        for sample in range(3):
            error, truth = p[name][sample] - t[name][sample], t[name][sample]
            length = min(np.mean(truth**2) / slope(truth), longest**2)
            components = truth.shape[-1]
            total += components * (np.mean(error**2) + length * slope(error))
            count += components
    found = losses.h1(prediction, target, task)
    assert found.item() == pytest.approx(total / count, rel=1e-12)


def test_h1_sees_how_rough_an_error_is():
    """A target of one wave: an error of the same shape counts twice, a constant one once."""
    ring = FLOW.replace(boundary="periodic", frames_out=1)
    angle = 2 * math.pi * torch.arange(32).double() / 32
    wave, sharp = (torch.cos(k * angle)[None, None, :, None, None] for k in (1, 8))
    target = wave * torch.ones(1, ring.output_type.channels, 32, 32, 4).double()

    def ratio(error):
        values = (loss(target + 0.1 * error, target, ring) for loss in (losses.h1, losses.mse))
        return (lambda a, b: (a / b).item())(*values)

    assert ratio(torch.ones_like(wave)) == pytest.approx(1.0)
    assert ratio(wave) == pytest.approx(2.0, rel=0.01)
    assert ratio(sharp) > 30
    constant = torch.ones_like(target)  # whose derivatives are zero, and give no length
    assert losses.h1(1.1 * constant, constant, ring).item() == pytest.approx(0.01)
    assert losses.h1(constant, 0 * constant, ring).isfinite()


@pytest.mark.parametrize("name", losses.LOSSES)
def test_weights_are_shares_of_fields(name):
    loss, prediction, target = losses.LOSSES[name], fields(FLOW), fields(FLOW)
    names = [f.name for f in FLOW.fields]
    alone = {
        chosen: loss(prediction, target, FLOW, {n: float(n == chosen) for n in names}).item()
        for chosen in names
    }
    components = {"dye": 1, "heat": 1, "wind": 1 if name == "relative" else 2}

    def mean(weights):
        shares = {n: weights.get(n, 1.0) * components[n] for n in names}
        return sum(shares[n] * alone[n] for n in names) / sum(shares.values())

    for weights in ({}, {"wind": 5.0}, {"dye": 0.5, "heat": 3.0, "wind": 0.0}):
        assert loss(prediction, target, FLOW, weights).item() == pytest.approx(mean(weights))
    assert loss(prediction, target, FLOW).item() == pytest.approx(mean({}))
    changed = prediction.clone()
    changed[:, 1, ..., 0] += 1  # heat, the second scalar of the first frame
    without = {"heat": 0.0}
    assert torch.equal(
        loss(changed, target, FLOW, without), loss(prediction, target, FLOW, without)
    )
    assert not torch.equal(loss(changed, target, FLOW), loss(prediction, target, FLOW))


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
            values.append(loss(*moved, task, {task.fields[-1].name: 2.0}).item())
        return max(values) / min(values) - 1

    assert change(losses.LOSSES[name]) < 1e-12
    assert change(lambda p, t, *more: losses.LOSSES[name](p * favour, t * favour, *more)) > 1e-3


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
    with pytest.raises(ValueError, match="loss must be one of mse, relative, h1, got 'l7'"):
        forecaster.loss(window, "l7")


def test_names_of_losses_are_given_once():
    def mse(prediction, target, task):
        return prediction.square().mean()

    with pytest.raises(ValueError, match=r"a loss named 'mse' already, cscnn\..*\.mse"):
        losses.loss(mse)
    assert losses.get_loss("mse") is losses.mse
