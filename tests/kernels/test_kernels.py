"""Steerability, the collapse, and the radial functions."""

import copy

import pytest
import torch

from cscnn import CliffordAlgebra, CliffordSteerableConv
from cscnn.kernels import (
    Complete,
    CompleteKernel,
    Implicit,
    ImplicitKernel,
    SteerableKernel,
    find_orbits,
)
from cscnn.kernels.implicit import scalar_shell
from cscnn.testing import assert_steerable, relative_error, steerability_errors
from tests.conftest import metric_name, metrics, signatures
from tests.kernels.samples import grid, groups

# --- steerability ---------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", metrics(4), ids=metric_name)
def test_steerable(metric):
    algebra = CliffordAlgebra(metric)
    assert_steerable(ImplicitKernel(algebra, 2, 2, Implicit(num_layers=3, hidden_dim=4)), samples=2)
    for group in groups(metric):
        for radial in ("network", "rings"):
            kernel = CompleteKernel(
                algebra, 2, 1, Complete(group=group, radial=radial, hidden_dim=4)
            )
            assert_steerable(kernel, samples=2)


@pytest.mark.parametrize("metric", [(1, 1), (1, -1, -1)], ids=metric_name)
def test_free_values_are_steerable_on_their_orbits(metric):
    algebra = CliffordAlgebra(metric)
    points = grid(5, algebra.dim)
    for group in groups(metric):
        kernel = CompleteKernel(algebra, 2, 1, Complete(group=group, radial="free"), points=points)
        assert_steerable(kernel, points=points, samples=2)


def test_must_fail_for_another_metric():
    """A kernel made for one signature is not steerable under the boosts of another."""
    for build in (ImplicitKernel, CompleteKernel):
        kernel = build(CliffordAlgebra((1, 1, 1)), 1, 1).double()
        algebra = CliffordAlgebra((1, -1, -1))
        g = algebra.random_orthogonal("boost", rapidity=2.0, dtype=torch.float64)
        points = torch.randn(5, 3, dtype=torch.float64)
        rho = algebra.action(g)
        expected = torch.einsum("xc,nocib,by->noxiy", rho, kernel(points), torch.linalg.inv(rho))
        assert relative_error(kernel(points @ g.T), expected) > 1e-2
        with pytest.raises(AssertionError, match="not steerable under"):
            assert_steerable(_Pretender(algebra, kernel))


class _Pretender(SteerableKernel):
    """Claims to be steerable for one algebra with the values of a kernel for another."""

    def __init__(self, algebra, kernel):
        super().__init__(algebra, kernel.c_in, kernel.c_out, kernel.basis, "O")
        self.kernel = kernel

    def forward(self, points, orbits=None, extra=None):
        return self.kernel(points)


def test_must_fail_outside_the_group():
    algebra = CliffordAlgebra((1, -1, -1))
    reversal = torch.diag(torch.tensor([-1.0, 1, 1])).double()
    points = torch.randn(8, 3, dtype=torch.float64)
    points = torch.cat([points, torch.tensor([[2.0, 0.1, 0.2]]).double()])

    def violation(kernel, g):
        rho = algebra.action(g)
        kernel = kernel.double()
        expected = torch.einsum("xc,nocib,by->noxiy", rho, kernel(points), torch.linalg.inv(rho))
        return relative_error(kernel(points @ g.T), expected)

    assert violation(CompleteKernel(algebra, 1, 1, Complete(group="O")), reversal) < 1e-12
    assert violation(CompleteKernel(algebra, 1, 1, Complete(group="O+")), reversal) > 1e-2
    mirror = torch.diag(torch.tensor([1.0, -1, 1])).double()
    assert violation(CompleteKernel(algebra, 1, 1, Complete(group="O+")), mirror) < 1e-12
    assert violation(CompleteKernel(algebra, 1, 1, Complete(group="SO+")), mirror) > 1e-2


def test_causal_kernels_vanish_outside_the_past():
    algebra = CliffordAlgebra((1, -1, -1))
    points = grid(5, 3)
    for radial in ("network", "rings", "free"):
        kernel = CompleteKernel(
            algebra, 1, 1, Complete(group="O+", radial=radial, causal=True), points=points
        ).double()
        size = kernel(points).abs().sum((1, 2, 3, 4))
        eta = points[:, 0] ** 2 - points[:, 1] ** 2 - points[:, 2] ** 2
        origin = points.abs().sum(-1) == 0
        past = origin | ((points[:, 0] < 0) & (eta > -1e-9))
        assert (size[~past] == 0).all()
        assert (size[past] > 0).all()
        assert_steerable(kernel, points=points, samples=1)


# --- collapse -------------------------------------------------------------------------------------


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("metric", metrics(4), ids=metric_name)
def test_collapsed_evaluation_is_the_full_one(metric, symmetric):
    if symmetric and len(metric) == 1:
        pytest.skip("on one axis there are no such tensors")
    algebra = CliffordAlgebra(metric, symmetric)
    kernel = ImplicitKernel(algebra, 2, 3, Implicit(num_layers=4, hidden_dim=5)).double()
    points = grid(3, algebra.dim)
    kernel.scale_output_(torch.linspace(0.5, 2, algebra.n_grades))
    full = kernel.expand_full(points)
    assert relative_error(kernel.expand(points), full) < 1e-12
    assert relative_error(kernel.expand(points, find_orbits(points, algebra)), full) < 1e-12
    slow = copy.deepcopy(kernel)
    slow.collapse = False
    gradients = []
    for k in (kernel, slow):
        loss = (k.expand(points) * torch.linspace(-1, 1, full.numel()).reshape(full.shape)).sum()
        gradients.append(torch.autograd.grad(loss, list(k.parameters())))
    scale = max(g.abs().max() for g in gradients[1])
    for a, b in zip(*gradients, strict=True):
        assert (a - b).abs().max() <= 1e-11 * scale


@pytest.mark.parametrize("options", [{"mask": False}, {"learn_head": False}, {"num_layers": 1}])
def test_options_of_the_implicit_kernel(options):
    kernel = ImplicitKernel(CliffordAlgebra((1, -1)), 2, 3, Implicit(**options)).double()
    points = torch.randn(6, 2, dtype=torch.float64)
    assert relative_error(kernel.expand(points), kernel.expand_full(points)) < 1e-12
    assert ("head" in dict(kernel.named_parameters())) == options.get("learn_head", True)
    assert ("mask_width" in dict(kernel.named_parameters())) == options.get("mask", True)
    assert_steerable(kernel)


@pytest.mark.parametrize("width", [0.0, 1e-12, 1e-30])
def test_shells_without_width(width):
    """Their limit: 1 at η = 0 and else 0, with finite gradients."""
    kernel = ImplicitKernel(CliffordAlgebra((1, -1)), 1, 1)
    with torch.no_grad():
        kernel.position_width.fill_(width)
    eta = torch.tensor([-2.0, 0.0, 1e-6, 1.0], requires_grad=True)
    shell = scalar_shell(eta, kernel.position_width)
    assert shell.tolist() == [0, 1, 0, 0]
    kernel(torch.randn(4, 2)).square().sum().backward()
    shell.sum().backward()
    assert eta.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in kernel.parameters())


def test_extra_inputs_transform_with_the_kernel():
    """K(gv; ρ(g) w) = ρ(g) K(v; w) ρ(g)^-1, and not if w stays behind."""
    algebra = CliffordAlgebra((1, -1, -1))
    kernel = ImplicitKernel(
        algebra, 2, 1, Implicit(extra_channels=2, hidden_dim=4, num_layers=3)
    ).double()
    points = torch.randn(6, 3, dtype=torch.float64)
    extra = torch.randn(2, 8, dtype=torch.float64)
    g = algebra.random_orthogonal("any", rapidity=1.0, dtype=torch.float64)
    rho = algebra.action(g)
    expected = torch.einsum(
        "xc,nocib,by->noxiy", rho, kernel(points, extra=extra), torch.linalg.inv(rho)
    )
    moved = kernel(points @ g.T, extra=algebra.transform(g, extra))
    assert relative_error(moved, expected) < 1e-10
    assert relative_error(kernel(points @ g.T, extra=extra), expected) > 1e-2
    with pytest.raises(ValueError, match=r"takes 2 extra multivectors.*\(2, 8\) or .*; got None"):
        kernel(points)
    with pytest.raises(ValueError, match=r"got \(3, 8\)"):
        kernel(points, extra=torch.zeros(3, 8).double())
    with pytest.raises(ValueError, match="takes 0 extra multivectors"):
        ImplicitKernel(algebra, 1, 1).double()(points, extra=extra)
    with pytest.raises(ValueError, match="this CompleteKernel takes 0 extra"):
        CompleteKernel(algebra, 1, 1).double()(points, extra=extra)
    assert_steerable(kernel, extra=extra, rapidity=1.0)


# --- parametrisations -----------------------------------------------------------------------------


@pytest.mark.parametrize("metric", [(1, 1), (1, -1), (1, 1, 1)], ids=metric_name)
def test_free_values_have_no_redundant_weight(metric):
    """4d weights per orbit and channel pair, d + 1 at the origin, each with its own effect."""
    algebra = CliffordAlgebra(metric)
    points = grid(3, algebra.dim)
    kernel = CompleteKernel(algebra, 1, 1, Complete(radial="free"), points=points).double()
    orbits = len(find_orbits(points, algebra))
    count = 4 * algebra.dim * (orbits - 1) + algebra.dim + 1
    assert kernel.radial.weight.numel() == count

    def values(weight):
        state = {"radial.weight": weight.reshape(1, 1, -1)}
        return torch.func.functional_call(kernel, state, (points,)).flatten()

    jacobian = torch.func.jacrev(values)(kernel.radial.weight.detach().flatten())
    assert torch.linalg.matrix_rank(jacobian) == count


def test_free_values_refuse_other_points():
    algebra = CliffordAlgebra((1, 1))
    kernel = CompleteKernel(algebra, 1, 1, Complete(radial="free"), points=grid(3, 2))
    with pytest.raises(ValueError, match=r"3 orbits of their grid; η = 0\.25 is none of them"):
        kernel(torch.tensor([[0.5, 0.0]]))


@pytest.mark.parametrize("metric", signatures(4), ids=metric_name)
@pytest.mark.parametrize("radial", ["network", "free", "rings", "implicit"])
def test_unit_variance(metric, radial):
    """White noise of variance 1 keeps it in every grade, for any signature, size and width."""
    algebra = CliffordAlgebra(metric)
    for size, c_in, c_out in ((1, 4, 4), (3, 2, 5), (5 if algebra.dim < 4 else 3, 5, 2)):
        points = grid(size, algebra.dim) if size > 1 else torch.zeros(1, algebra.dim).double()
        if radial == "implicit":
            kernel = ImplicitKernel(algebra, c_in, c_out, points=points)
        else:
            kernel = CompleteKernel(algebra, c_in, c_out, Complete(radial=radial), points=points)
        variance = kernel.double().expand(points).square().sum((2, 3, 4)).mean(0)
        by_grade = torch.stack([v.mean() for v in variance.split(algebra.grade_sizes)])
        assert torch.allclose(by_grade, torch.ones_like(by_grade), atol=1e-4)


def test_kernels_are_differentiable_in_the_points():
    algebra = CliffordAlgebra((1, -1))
    points = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    for kernel in (
        ImplicitKernel(algebra, 1, 1, Implicit(hidden_dim=3)),
        CompleteKernel(algebra, 1, 1),
    ):
        assert torch.autograd.gradcheck(kernel.double(), points)


def test_errors():
    algebra = CliffordAlgebra((1, 1))
    with pytest.raises(ValueError, match="O, SO, O\\+, SO\\+, got 'U'"):
        CompleteKernel(algebra, 1, 1, Complete(group="U"))
    with pytest.raises(ValueError, match=r"no group 'O\+' here: .* none in metric \(1, 1\)"):
        CompleteKernel(algebra, 1, 1, Complete(group="O+"))
    with pytest.raises(ValueError, match="network, free, rings, got 'fourier'"):
        CompleteKernel(algebra, 1, 1, Complete(radial="fourier"))
    with pytest.raises(ValueError, match="causal kernels need group 'O\\+' or 'SO\\+', got 'O'"):
        CompleteKernel(CliffordAlgebra((1, -1)), 1, 1, Complete(causal=True))
    with pytest.raises(ValueError, match="needs the sampling points"):
        CompleteKernel(algebra, 1, 1, Complete(radial="free"))
    with pytest.raises(ValueError, match=r"shape \(N, 2\), got \(5, 3\)"):
        CompleteKernel(algebra, 1, 1)(torch.zeros(5, 3))
    with pytest.raises(TypeError, match=r"torch\.int64"):
        ImplicitKernel(algebra, 1, 1)(torch.zeros(5, 2, dtype=torch.int64))
    with pytest.raises(ValueError, match="no reflection in the group SO"):
        assert_steerable(CompleteKernel(algebra, 1, 1, Complete(group="SO")), kinds="reflection")
    with pytest.raises(TypeError, match=r"e\.g\. conv\.kernel, got CliffordSteerableConv"):
        assert_steerable(CliffordSteerableConv(algebra, 1, 1, 3))
    assert_steerable(CompleteKernel(algebra, 1, 1, Complete(radial="free"), points=grid(3, 2)))
    assert steerability_errors(CompleteKernel(algebra, 1, 1, Complete(group="SO"))).keys() == {
        "rotation",
        "any",
    }
