"""What a convolution commutes with, and at which rate."""

import numpy as np
import pytest
import torch

from cscnn import CliffordAlgebra, CliffordSteerableConv
from cscnn.kernels import Complete, Implicit
from cscnn.networks import Grid
from cscnn.testing import grid_equivariance_errors, relative_error
from tests.conv.builders import build

SYMMETRIC = [
    ((1,), (7,)),
    ((1, 1), (6, 6)),
    ((1, 1), (5, 7)),
    ((1, -1), (6, 6)),
    ((1, 1, 1), (4, 4, 4)),
    ((1, -1, -1), (3, 5, 5)),
    ((1, -1, -1, -1), (3, 4, 4, 3)),
]


@pytest.mark.parametrize(("metric", "grid"), SYMMETRIC, ids=str)
@pytest.mark.parametrize("kernel", ["implicit", "complete", "differential"])
@pytest.mark.parametrize("mode", ["circular", "zeros", "symmetric", "wall", "conductor"])
def test_commutes_with_the_symmetries_of_the_grid(metric, grid, kernel, mode):
    conv = build(metric, kernel=kernel, padding_mode=mode)
    errors = grid_equivariance_errors(conv, conv.algebra, (1, 2, *grid))
    assert errors["point group"] < 1e-12
    if mode == "circular":
        assert errors["translation"] < 1e-12
    else:  # the control: walls are not invariant
        assert errors["translation"] > 1e-3


@pytest.mark.parametrize("wall", ["wall", "conductor", "zeros"])
def test_a_channel_between_walls(wall):
    """What is a symmetry of the borders holds; their axes cannot be exchanged."""
    conv = build((1, 1, 1), padding_mode=(wall, "circular", "circular"))
    shape = (1, 2, 5, 5, 5)
    errors = grid_equivariance_errors(conv, conv.algebra, shape)
    assert max(errors.values()) < 1e-12
    same = (wall, "circular", "circular")
    errors = grid_equivariance_errors(lambda x: conv.double()(x), conv.algebra, shape,
                                      padding_mode=same)  # fmt: skip
    assert max(errors.values()) < 1e-12
    errors = grid_equivariance_errors(conv, conv.algebra, shape, padding_mode="circular")
    assert min(errors.values()) > 1e-3  # the control
    with pytest.raises(ValueError, match=r"padding_mode must be one of .*, got 'periodic'"):
        grid_equivariance_errors(conv, conv.algebra, shape, padding_mode="periodic")


@pytest.mark.parametrize("mode", ["periodic", ("wall", "mirror")])
def test_unknown_paddings_are_refused_with_the_list(mode):
    with pytest.raises(ValueError, match=r"one of zeros, .*, conductor, got '\w+': circular"):
        Grid(padding_mode=mode)
    with pytest.raises(ValueError, match=r"one of zeros, .*, conductor, got '\w+': circular"):
        build((1, 1), padding_mode=mode)


def test_what_cannot_be_checked_is_refused():
    conv = build((1, 1), stride=2)
    with pytest.raises(ValueError, match=r"must keep the grid, it maps \(6, 6\) to \(3, 3\)"):
        grid_equivariance_errors(conv, conv.algebra, (1, 2, 6, 6))
    with pytest.raises(ValueError, match=r"shape must be \(batch, channels, \*, \*\)"):
        grid_equivariance_errors(conv, conv.algebra, (1, 2, 6))


def test_plain_convolutions_do_not():
    class Plain(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(8, 8, 3, padding=1, padding_mode="circular")

        def forward(self, x):
            y = self.conv(x.movedim(-1, 2).flatten(1, 2))
            return y.unflatten(1, (2, 4)).movedim(2, -1)

    errors = grid_equivariance_errors(Plain(), CliffordAlgebra((1, 1)), (1, 2, 6, 6))
    assert errors["translation"] < 1e-12
    assert errors["point group"] > 0.1


@pytest.mark.parametrize("group", ["SO", "O+", "SO+"])
def test_smaller_groups_keep_only_their_symmetries(group):
    conv = build((1, -1, -1), kernel=Complete(group=group, hidden_dim=4)).double()
    algebra = conv.algebra
    x = torch.randn(1, 2, 3, 4, 4, 8, dtype=torch.float64)
    from cscnn.algebra.grids import grid_symmetries, transform_on_grid

    errors = grid_equivariance_errors(conv, algebra, (1, 2, 3, 4, 4), group=group)
    assert errors["point group"] < 1e-12
    for g in grid_symmetries(algebra, (3, 4, 4)):
        inside = (torch.linalg.det(g) > 0 or "S" not in group) and (g[0, 0] > 0 or "+" not in group)
        moved = conv(transform_on_grid(algebra, g, x))
        error = relative_error(moved, transform_on_grid(algebra, g, conv(x)))
        assert (error < 1e-12) if inside else (error > 1e-3)


def test_causal_convolutions_do_not_see_the_future():
    causal = Complete(group="O+", causal=True, hidden_dim=4)
    conv = build((1, -1), kernel=causal, kernel_size=5).double()
    x = torch.randn(1, 2, 8, 8, 4, dtype=torch.float64)
    changed = x.clone()
    changed[:, :, 5:] = torch.randn_like(changed[:, :, 5:])
    y, z = conv(x), conv(changed)
    with pytest.raises(ValueError, match=r"time axis 0 .* padding_mode=\('zeros', 'circular'\)"):
        build((1, -1), kernel=causal, padding_mode="circular")
    assert torch.equal(y[:, :, :5], z[:, :, :5])
    assert not torch.allclose(y[:, :, 5:], z[:, :, 5:])


def test_spacing_makes_anisotropic_grids_one_space():
    """A kernel on a finer time axis, restricted to every second point, is the coarse kernel."""
    published = Implicit(num_layers=2, hidden_dim=4, unit_variance=False)
    torch.manual_seed(3)
    coarse = build((1, -1), kernel_size=3, kernel=published)
    torch.manual_seed(3)
    fine = build((1, -1), kernel_size=(5, 3), spacing=(0.5, 1.0), kernel=published)
    fine.kernel.scale = coarse.kernel.scale
    a, b = coarse.double().expanded_kernel(), fine.double().expanded_kernel()
    assert relative_error(b[:, :, ::2], a) < 1e-12


def smooth_field(generator, width, modes=3):
    """A random field on the plane that dies out smoothly, as a function of points (..., 2)."""
    k = torch.arange(-modes, modes + 1, dtype=torch.float64)
    coefficients = torch.randn(2, 4, len(k), len(k), generator=generator, dtype=torch.complex128)

    def evaluate(points):  # (..., 2) -> (2, ..., 4)
        phases = [torch.exp(2j * torch.pi * points[..., i, None] * k) for i in range(2)]
        values = torch.einsum("cbxy,...x,...y->c...b", coefficients, *phases).real
        return values * torch.exp(-(points**2).sum(-1) / (2 * width**2))[..., None]

    return evaluate


@pytest.mark.parametrize(
    ("metric", "kernel", "rate", "limit"),
    [
        ((1, 1), "implicit", 4.0, 1e-6),  # smooth kernel and field: faster than any power
        ((1, -1), "complete", 1.8, 1e-3),  # continuous at the light cone: second order
        ((1, -1), "implicit", 0.9, 2e-2),  # the shell jumps at the light cone: first order
    ],
)
def test_rotations_and_boosts_hold_up_to_resolution(metric, kernel, rate, limit, generator):
    """For a kernel of fixed physical size the error falls with the grid spacing, at these rates.

    f seen from another frame must give, at the origin, the output seen from that frame. The square
    support of a kernel grid is not invariant, so f dies out before its edge.
    """
    algebra = CliffordAlgebra(metric)
    extent, angle = 0.12, 0.35
    f = smooth_field(generator, width=extent / 5)
    c, s = (np.cosh, np.sinh) if -1 in metric else (np.cos, np.sin)
    g = torch.tensor([[c(angle), -metric[1] * s(angle)], [s(angle), c(angle)]])
    assert algebra.is_orthogonal(g)
    torch.manual_seed(1)
    kernel = build(metric, 2, 2, kernel=kernel).kernel.double()
    errors = []
    for half in (8, 16):
        axis = torch.arange(-half, half + 1, dtype=torch.float64) / half * extent
        points = torch.stack(torch.meshgrid(axis, axis, indexing="ij"), -1)
        conv = CliffordSteerableConv(
            algebra, 2, 2, 2 * half + 1, kernel=kernel, padding=0, bias=False
        )
        here, there = (
            conv(field[None]).detach().reshape(2, 4) / half**2
            for field in (f(points), algebra.transform(g, f(points @ torch.linalg.inv(g).T)))
        )
        errors.append(relative_error(there, algebra.transform(g, here)))
    assert errors[1] < limit
    assert np.log2(errors[0] / errors[1]) > rate
    wrong = algebra.transform(torch.linalg.inv(g), here)  # the control
    assert relative_error(there, wrong) > 0.1
