"""Budgets of parameters, and the sizes of signals and gradients."""

import pytest
import torch

from cscnn.kernels import Implicit
from cscnn.networks import build, calibrate_, count_parameters, fit_budget
from cscnn.networks.registry import entry
from tests.networks.tiny import SERVED, SPACES, need, sample

IMPLICIT = Implicit(unit_variance=False)  # as many parameters, drawn in less time

#: All steerable kernels of many channels on many taps.
LONG = (
    ("steerable_resnet", "space", 7_000_000),
    ("cs_unet", "spacetime", 7_000_000),
    ("cs_unet", "space", 7_000_000),
    ("cs_unet", "spacetime4d", 7_000_000),
    ("cs_unet", "spacetime4d", 1_000_000),
)


@pytest.mark.parametrize("params", [100_000, 1_000_000, 7_000_000])
@pytest.mark.parametrize(("name", "where"), [p for p in SERVED if p[1] != "line"])
def test_budgets_are_met(name, where, params):
    need(name)
    on = SPACES[where]
    signature = (name, on.input_type, on.output_type)
    options = fit_budget(*signature, params, on.grid)
    if (name, where, params) in LONG:
        return  # takes long to build; a wrong number would have been refused
    if name == "cs_resnet":
        options["kernel"] = {**options.get("kernel", IMPLICIT.to_dict()), "unit_variance": False}
    count = count_parameters(build(*signature, on.grid, **options))
    assert abs(count - params) <= 0.03 * params


def test_budgets_that_cannot_be_met():
    plane = SPACES["plane"]
    with pytest.raises(ValueError, match=r"cannot have 10 parameters .* the closest .* Ask for"):
        fit_budget("resnet", plane.input_type, plane.output_type, 10)
    with pytest.raises(ValueError, match="cannot have 10 parameters"):  # it has no hidden_dim
        fit_budget("cs_resnet", plane.input_type, plane.output_type, 10, kernel="differential")


@pytest.mark.parametrize("name", ["cs_resnet", "steerable_resnet", "resnet", "fno", "gfno"])
def test_given_options_stay(name):
    need(name)
    plane = SPACES["plane"]
    given = {"layers": 3} if name in ("fno", "gfno") else {"blocks": 3}
    if name == "cs_resnet":
        given["kernel"] = {"name": "complete", "hidden_dim": 5}
    options = fit_budget(name, plane.input_type, plane.output_type, 50_000, plane.grid, **given)
    assert {key: options[key] for key in given} == given
    assert "width" in options
    assert entry(name).network is not None


def test_kernel_options_do_not_switch_calibration():
    """A published initialisation stays as drawn until it is calibrated, like any other."""
    plane = SPACES["plane"]
    x = sample(plane, batch=2, shape=(16, 16))
    for kernel in (IMPLICIT, Implicit()):
        options = {"width": 2, "blocks": 1, "kernel_size": 3, "kernel": kernel}
        states = []
        for _ in range(2):
            torch.manual_seed(0)
            network = build("cs_resnet", plane.input_type, plane.output_type, plane.grid, **options)
            states.append({name: value.clone() for name, value in network.state_dict().items()})
        assert all(torch.equal(value, states[1][name]) for name, value in states[0].items())
        calibrate_(network, x, counted=plane.output_type.mask)
        assert 0.3 < plane.output_type.extract(network(x)).var() < 3
