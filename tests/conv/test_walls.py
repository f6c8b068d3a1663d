"""Walls of convolutions: mirrors of multivectors, exactly."""

import pytest
import torch

from cscnn import CliffordAlgebra, CliffordSteerableConv
from cscnn.calculus import mirror
from cscnn.conv import upsample
from cscnn.conv.padding import WALLS, pad_axis
from cscnn.kernels import Complete, Differential, Implicit
from cscnn.networks import CSResNet, CSUNet, Grid
from cscnn.networks.baselines import ResNet
from cscnn.testing import relative_error
from tests.conftest import metric_name

METRICS = [(1,), (1, 1), (1, -1), (1, 1, 1), (1, -1, -1)]
F64 = torch.float64


def first_half(y, grid):
    """A mirrored field has twice the points; the first ones are the field itself."""
    for axis, size in enumerate(grid, 2):
        y = y.narrow(axis, 0, size)
    return y


def field(metric, channels=2):
    grid = (6, 8, 7)[: len(metric)]
    return torch.randn(1, channels, *grid, 2 ** len(metric), dtype=F64), grid


@pytest.mark.parametrize("backend", ["direct", "spectral", "derivatives"])
@pytest.mark.parametrize("mode", WALLS)
@pytest.mark.parametrize("metric", METRICS, ids=metric_name)
def test_a_wall_is_half_of_a_periodic_field(metric, mode, backend):
    """Convolving in front of walls is convolving the field and its images, without walls."""
    algebra = CliffordAlgebra(metric)
    kernel = Differential(order=2) if backend == "derivatives" else Complete(hidden_dim=4)
    x, grid = field(metric)

    def conv(padding_mode):
        torch.manual_seed(0)
        layer = CliffordSteerableConv(
            algebra, 2, 3, 5, kernel=kernel, padding_mode=padding_mode, bias=mode == "wall"
        ).double()
        layer.backend = backend
        return layer

    y = conv(mode)(x)
    periodic = conv("circular")(mirror(x, algebra, mode))
    assert relative_error(first_half(periodic, grid), y) < 1e-12
    assert relative_error(periodic, mirror(y, algebra, mode)) < 1e-12  # the result has walls too
    # the control: repeating all components is no mirror of multivectors
    assert relative_error(first_half(periodic, grid), conv("symmetric")(x)) > 1e-3


@pytest.mark.parametrize("metric", [(1, 1), (1, 1, 1)], ids=metric_name)
@pytest.mark.parametrize("kind", [CSResNet, CSUNet])
def test_networks_keep_walls(kind, metric):
    """Also on coarse grids, if cells do not cross a wall."""
    algebra = CliffordAlgebra(metric)
    sizes = {"blocks": 1, "kernel_size": 3, "activation": "product"}
    x = torch.randn(1, 2, *(8,) * len(metric), 2 ** len(metric), dtype=F64)

    def network(padding_mode):
        torch.manual_seed(0)
        grid = Grid(padding_mode=padding_mode)
        return kind(algebra, 2, 1, width=2, grid=grid, kernel="complete", **sizes).double()

    y = network("wall")(x)
    periodic = network("circular")(mirror(x, algebra, "wall"))
    assert relative_error(first_half(periodic, x.shape[2:-1]), y) < 1e-11
    repeated = network("symmetric")(x)
    assert relative_error(first_half(periodic, x.shape[2:-1]), repeated) > 1e-3


def test_signs_of_a_plane():
    """At walls of the first axis, e1 and e12 are odd, 1 and e2 even; conductors are opposite."""
    x = torch.ones(1, 4, 2, 3)
    before = pad_axis(x, 2, 1, "wall")[0, :, 0, 0]
    assert before.tolist() == [1, -1, 1, -1]
    assert pad_axis(x, 3, 1, "conductor")[0, :, 0, 0].tolist() == [-1, -1, 1, 1]


def test_interpolation_at_walls():
    algebra = CliffordAlgebra((1, 1))
    x = torch.randn(1, 1, 4, 4, 4, dtype=F64)
    wide = upsample(mirror(x, algebra, "wall"), (16, 16), "circular")
    assert relative_error(wide[:, :, :8, :8], upsample(x, (8, 8), "wall")) < 1e-14


def test_walls_are_for_multivectors():
    with pytest.raises(ValueError, match=r"'wall' is for multivectors of 4 components .* got 3"):
        pad_axis(torch.zeros(1, 3, 4, 4), 2, 1, "wall")


def test_baselines_repeat_at_walls():
    """Their channels do not know how they transform."""
    x = torch.randn(1, 2, 6, 6)
    outputs = []
    for mode in ("wall", "symmetric"):
        torch.manual_seed(0)
        net = ResNet(2, 2, 1, width=3, blocks=1, kernel_size=3, grid=Grid(padding_mode=mode))
        outputs.append(net(x))
    assert torch.equal(*outputs)


def test_implicit_kernels_keep_walls_in_export():
    algebra = CliffordAlgebra((1, 1))
    conv = CliffordSteerableConv(algebra, 1, 2, 3, kernel=Implicit(), padding_mode="wall")
    x = torch.randn(2, 1, 5, 6, 4)
    y = conv.export()(x.movedim(-1, 2).flatten(1, 2))
    assert relative_error(y.unflatten(1, (2, 4)).movedim(2, -1), conv(x)) < 1e-5
