"""Which networks commute with which symmetries, untrained and briefly trained."""

import pytest
import torch

from cscnn.testing import grid_equivariance_errors, relative_error
from tests.networks.tiny import COMPLETE, PERIODIC, briefly_trained, sample, tiny


def symmetry_errors(network, on, shape):
    """Violations on noise in the components that carry data, in float64."""
    mask = on.input_type.mask.reshape(on.input_type.channels, *(1,) * len(shape), -1)
    size = (1, on.input_type.channels, *shape)
    return grid_equivariance_errors(lambda x: network(x * mask), on.algebra, size)


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize(
    ("name", "where", "options"),
    [
        ("cs_resnet", "plane", {}),
        ("cs_resnet", "plane", {"kernel": COMPLETE}),
        ("cs_resnet", "plane", {"activation": "product"}),
        ("cs_resnet", "space", {}),
        ("cs_resnet", "space", {"kernel": COMPLETE}),
        ("cs_resnet", "spacetime", {}),
        ("cs_resnet", "spacetime", {"kernel": COMPLETE}),
        ("cs_resnet", "spacetime4d", {"blocks": 1, "width": 1}),
        ("steerable_resnet", "plane", {}),
        ("steerable_resnet", "space", {}),
    ],
)
def test_equivariant_networks(name, where, options, trained):
    on = PERIODIC[where]
    network = tiny(name, on, **options).double()
    if trained:
        briefly_trained(network, on, on.shape)
    errors = symmetry_errors(network, on, on.shape)
    assert errors["translation"] < 1e-9
    assert errors["point group"] < 1e-9


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize("where", ["plane", "space", "spacetime"])
def test_unet_commutes_with_the_point_group_and_coarse_translations(where, trained):
    on = PERIODIC[where]
    network = tiny("cs_unet", on, levels=1).double()
    shape = (8,) * on.algebra.dim
    if trained:
        briefly_trained(network, on, shape)
    assert symmetry_errors(network, on, shape)["point group"] < 1e-9
    x = sample(on, dtype=torch.float64, shape=shape)
    axes = tuple(range(2, 2 + len(shape)))
    shifts = (2, 4, 6)[: len(shape)]
    assert relative_error(network(x.roll(shifts, axes)), network(x).roll(shifts, axes)) < 1e-9
    odd = relative_error(network(x.roll(1, 2)), network(x).roll(1, 2))
    assert odd > 1e-6  # the control


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize("where", ["plane", "space", "spacetime"])
@pytest.mark.parametrize("name", ["resnet", "clifford_resnet", "fno", "gfno"])
def test_baselines_commute_with_translations_only(name, where, trained):
    """The last one because of its ends; see test_gfno for what lies between them."""
    on = PERIODIC[where]
    network = tiny(name, on, width=4 if name != "gfno" else 1).double()
    if trained:
        briefly_trained(network, on, on.shape)
    errors = symmetry_errors(network, on, on.shape)
    assert errors["translation"] < (1e-7 if name == "fno" else 1e-9)  # its spectra are float32
    assert errors["point group"] > 0.1
