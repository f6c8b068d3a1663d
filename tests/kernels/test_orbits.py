"""Orbits of points, and kernels that respect them."""

import pytest
import torch

from cscnn import CliffordAlgebra, CliffordSteerableConv
from cscnn.algebra.group import GROUPS
from cscnn.kernels import (
    Complete,
    CompleteKernel,
    Implicit,
    ImplicitKernel,
    find_orbits,
    invariants,
)
from cscnn.testing import relative_error
from tests.kernels.samples import grid


@pytest.mark.parametrize(
    ("metric", "size", "count"),
    [
        ((1, 1), 7, 10),
        ((1, 1, 1), 7, 19),
        ((1, -1), 3, 4),  # origin, light cone, time-like, space-like
        ((-1,), 5, 3),
    ],
)
def test_number_of_orbits(metric, size, count):
    assert len(find_orbits(grid(size, len(metric)), CliffordAlgebra(metric))) == count


def test_past_and_future():
    algebra = CliffordAlgebra((1, -1, -1))
    merged = find_orbits(grid(5, 3), algebra)
    split = find_orbits(grid(5, 3), algebra, "O+")
    timelike = (merged.invariants.eta >= 0) & (merged.invariants.origin == 0)
    assert len(split) == len(merged) + int(timelike.sum())
    assert set(split.invariants.side[split.invariants.eta < 0].tolist()) == {0.0}


@pytest.mark.parametrize("spacing", [1.0, 0.1, 1 / 3, 1e-9, 1e9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_orbits_are_robust_to_rounding(spacing, dtype):
    """The same orbits whatever the unit of length; a boosted set has the orbits of the original."""
    algebra = CliffordAlgebra((1, -1, -1))
    points = torch.cartesian_prod(*[torch.arange(-3, 4, dtype=dtype)] * 3) * spacing
    orbits = find_orbits(points, algebra)
    exact = find_orbits(torch.cartesian_prod(*[torch.arange(-3.0, 4.0)] * 3), algebra)
    assert torch.equal(orbits.index, exact.index)
    assert torch.equal(
        orbits.invariants.eta[orbits.index] == 0, exact.invariants.eta[exact.index] == 0
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_keeps_orbits_apart(dtype):
    algebra = CliffordAlgebra((1, -1))
    points = torch.tensor([[0.0, 0], [1, 0], [0.5, 0.5], [-1, 1], [0, 0.5]])
    low = invariants(points.to(dtype), algebra)
    assert low.origin.tolist() == [1, 0, 0, 0, 0]
    assert low.eta.tolist() == [0, 1, 0, 0, -0.25]


def test_a_point_does_not_depend_on_its_company():
    """Also where it is small beside the others: only zero is the origin."""
    kernel = CompleteKernel(CliffordAlgebra((1, -1)), 1, 1)
    points = torch.tensor([[1e-4, 0.0], [1.0, 0.0]])
    assert relative_error(kernel(points)[:1], kernel(points[:1])) < 1e-6


def test_left_and_right_are_different_only_for_the_smallest_group_of_the_plane():
    points = torch.tensor([[0.0, 1.0], [0.0, -1.0]])
    counts = {g: len(find_orbits(points, CliffordAlgebra((1, -1)), g)) for g in GROUPS}
    assert counts == {"O": 1, "SO": 1, "O+": 1, "SO+": 2}


@pytest.mark.parametrize("radial", ["network", "rings", "free"])
def test_the_origin_is_not_on_the_light_cone(radial):
    algebra = CliffordAlgebra((1, -1))
    kernel = CompleteKernel(algebra, 1, 1, Complete(radial=radial), points=grid(3, 2))
    values = kernel.coefficients(find_orbits(grid(3, 2), algebra).invariants.to(torch.ones(())))
    orbits = find_orbits(grid(3, 2), algebra).invariants
    origin, cone = (((orbits.eta == 0) & (orbits.origin == o)).nonzero().item() for o in (1, 0))
    assert (values[..., :3, origin] - values[..., :3, cone]).abs().min() > 1e-4


def test_basis_kernels_start_with_equal_sizes():
    """v∧ and v∧v⌟ are small near the origin; without balance they would start with no effect."""
    algebra = CliffordAlgebra((1, -1, -1))
    kernel = CompleteKernel(algebra, 1, 1, points=grid(5, 3))
    sizes = torch.zeros(len(kernel.basis))
    for j in range(len(sizes)):
        values = torch.zeros(1, 1, len(sizes), 125)
        values[:, :, j] = kernel.element_scale[j]
        sizes[j] = kernel.basis.assemble(values, grid(5, 3).float()).square().sum()
    outputs = torch.tensor(kernel.basis.output_grades)
    for grade in range(algebra.n_grades):  # of the same output: others have scales of their own
        same_output = sizes[outputs == grade]
        assert torch.allclose(same_output, same_output.mean(), rtol=1e-4)


@pytest.mark.parametrize("radial", ["network", "free", "rings"])
def test_weights_are_small_and_kernels_are_not(radial):
    """Constants make up for it, so that kernels learn as fast as plain convolutions do."""
    points = grid(5, 2)
    kernel = CompleteKernel(CliffordAlgebra((1, 1)), 8, 8, Complete(radial=radial), points=points)
    inputs = kernel.radial.weight[0].numel()
    for _ in range(2):
        size = kernel.radial.weight.square().mean().sqrt().item()
        assert size == pytest.approx((3 * inputs) ** -0.5, rel=0.1)
        kernel_size = kernel.expand(points.float()).square().sum((2, 3, 4)).mean().item()
        assert kernel_size == pytest.approx(1, rel=1e-3)
        kernel.scale_output_(torch.full((3,), 5.0))
        kernel.reset_parameters()


def test_the_size_of_a_fixed_head_is_saved():
    a, b = (
        ImplicitKernel(CliffordAlgebra((1, 1)), 1, 1, Implicit(learn_head=False), points=grid(3, 2))
        for _ in range(2)
    )
    b.load_state_dict(a.state_dict())
    assert torch.equal(a(grid(3, 2).float()), b(grid(3, 2).float()))


def test_free_values_tell_close_orbits_apart():
    conv = CliffordSteerableConv(
        CliffordAlgebra((1, -1)), 1, 1, 3, kernel=Complete(radial="free"),
        spacing=(1, 1.00008),
    )  # fmt: skip
    assert conv(torch.randn(1, 1, 5, 5, 4)).isfinite().all()
    kernel = CompleteKernel(conv.algebra, 1, 1, Complete(radial="free"), points=grid(3, 2)).double()
    assert torch.vmap(kernel)(grid(3, 2)[None]).shape == (1, 9, 1, 4, 1, 4)


def test_orbits_of_nothing_and_of_the_origin():
    algebra = CliffordAlgebra((1, -1))
    assert len(find_orbits(torch.zeros(0, 2), algebra)) == 0
    assert find_orbits(torch.zeros(1, 2), algebra).invariants.origin.tolist() == [1.0]


@pytest.mark.parametrize(
    ("metric", "group", "causal"),
    [((1, 1), "O", False), ((1, 1), "SO", False), ((1, -1), "SO+", True), ((-1, 1, 1), "O", False)],
)
def test_free_values_on_their_grid_are_one_matrix_product(metric, group, causal):
    """By the table and by basis kernels one by one: the same values and derivatives."""
    algebra, points = CliffordAlgebra(metric), grid(3, len(metric)).double()
    choice = Complete(group=group, radial="free", causal=causal)
    kernel = CompleteKernel(algebra, 2, 3, choice, points=points).double()
    assert kernel.free_table is not None
    orbits = find_orbits(points, algebra, group)
    fast = kernel.expand(points, orbits)
    derivative = torch.randn_like(fast)
    (mine,) = torch.autograd.grad(fast, kernel.radial.weight, derivative)
    kernel.free_table = None
    slow = kernel.expand(points, orbits)
    (other,) = torch.autograd.grad(slow, kernel.radial.weight, derivative)
    assert fast.shape == slow.shape
    assert relative_error(fast, slow) < 1e-13
    assert relative_error(mine, other) < 1e-13


def test_the_table_of_free_values_moves_with_its_kernel():
    kernel = CompleteKernel(
        CliffordAlgebra((1, 1)), 1, 1, Complete(radial="free"), points=grid(3, 2)
    )
    assert "free_table" not in kernel.state_dict()
    assert kernel.free_table.dtype == torch.float32
    exact = kernel.double().free_table
    assert torch.equal(exact, kernel.float().double().free_table)  # nothing was lost on the way
    large = CompleteKernel(
        CliffordAlgebra((1, 1, 1)), 1, 1, Complete(radial="free"), points=grid(5, 3)
    )
    assert large.free_table is None


def test_free_values_of_another_grid_do_not_use_the_table():
    """Two grids with as many orbits: after the weights of one, the table of the other is wrong."""
    algebra, choice = CliffordAlgebra((1, 1)), Complete(radial="free")
    points, wider = grid(3, 2), grid(3, 2) / 2
    mine = CompleteKernel(algebra, 1, 1, choice, points=points)
    other = CompleteKernel(algebra, 1, 1, choice, points=wider)
    mine.load_state_dict(other.state_dict())
    assert mine.free_table is None
    with pytest.raises(ValueError, match="only on the 3 orbits of their grid"):
        mine(points)
    assert torch.allclose(mine(wider), other(wider))
    mine.load_state_dict(CompleteKernel(algebra, 1, 1, choice, points=points).state_dict())
    assert mine.free_table is not None
    with_table = mine(points)
    mine.free_table = None
    assert torch.allclose(with_table, mine(points), atol=1e-6)
