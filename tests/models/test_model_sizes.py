"""Budgets of parameters, and the sizes of signals and gradients."""

import pytest
import torch
from tiny_models import SERVED, sample, tiny

from cscnn.models import build, match
from cscnn.models.registry import _entry

pytest.importorskip("cliffordlayers", reason="the extra 'baselines' is not installed")
pytest.importorskip("neuralop", reason="the extra 'baselines' is not installed")


@pytest.mark.parametrize("params", [100_000, 1_000_000, 7_000_000])
@pytest.mark.parametrize(("name", "task"), SERVED)
def test_budgets_are_met(name, task, params):
    chosen = match(name, task, params)
    if (name, task, params) == ("steerable_resnet", "maxwell3d", 7_000_000):
        return  # takes long to build; a wrong number would have been refused
    count = build(name, task, **_entry(name).kind.quick(chosen)).n_parameters()
    assert abs(count - params) <= 0.03 * params


def test_budgets_that_cannot_be_met():
    with pytest.raises(ValueError, match=r"cannot have 10 parameters .* the closest"):
        match("resnet", "navier_stokes", 10)


@pytest.mark.parametrize("name", ["cs_resnet", "cs_unet", "steerable_resnet"])
def test_what_is_quick_to_build_has_as_many_parameters(name):
    model = tiny(name, "navier_stokes")
    options = type(model).quick(model.config["options"])
    assert build(name, "navier_stokes", **options).n_parameters() == model.n_parameters()


@pytest.mark.parametrize("kernel", ["implicit", "complete"])
@pytest.mark.parametrize(
    ("task", "width"),
    [("navier_stokes", w) for w in (4, 12, 48)]
    + [(t, w) for t in ("maxwell3d", "maxwell_spacetime") for w in (4, 12)]
    + [("maxwell_spacetime4d", 4)],
)
def test_signals_and_gradients_keep_their_size(task, width, kernel):
    """The variance of the output is within [0.1, 10] of the input's, and so are gradients.

    Gradients are those with respect to the input of the first layer, in the components that carry
    data, for unit noise as the gradient of the output. Their squares are compared summed, not per
    component: that is how much unit noise on the input changes the output, whereas four frames
    that are used for one frame have a quarter of its gradient each.
    """
    grid = {2: (24, 24), 3: (12, 12, 12), 4: (6, 6, 6, 6)}
    model = build("cs_resnet", task, width=width, kernel=kernel)
    x = sample(model.task, batch=2, grid=grid[model.task.dim]).requires_grad_()
    blades = list(model.task.blades)
    y = model(x)[..., blades]
    assert 0.1 < y.var() < 10
    g = torch.randn_like(y)
    (grad,) = torch.autograd.grad(y, x, g)
    assert 0.1 < grad[..., blades].square().sum() / g.square().sum() < 10


def test_published_initialisation_is_left_alone():
    options = {"kernel_options": {"unit_variance": False}, "blocks": 2, "kernel_size": 3}
    states = []
    for calibrate in (False, True):
        torch.manual_seed(0)
        model = build("cs_resnet", "navier_stokes", width=2, calibrate=calibrate, **options)
        states.append(model.state_dict())
    assert all(torch.equal(value, states[1][name]) for name, value in states[0].items())
