"""Kernels between multivectors with symmetric tensors pass the conformance kit."""

import pytest
import torch

from cscnn import CliffordAlgebra
from cscnn.kernels import (
    Complete,
    CompleteKernel,
    Differential,
    DifferentialKernel,
    Implicit,
    ImplicitKernel,
)
from cscnn.testing import assert_steerable, conformance
from tests.conftest import metric_name, signatures
from tests.kernels.samples import grid, groups

PLANE, SPACETIME = (CliffordAlgebra(metric, symmetric=True) for metric in ((1, 1), (1, -1)))
SPACE = CliffordAlgebra((1, 1, 1), symmetric=True)


def complete(algebra, c_in, c_out, group="O"):
    return CompleteKernel(algebra, c_in, c_out, Complete(group=group, hidden_dim=4))


def implicit(algebra, c_in, c_out):
    return ImplicitKernel(algebra, c_in, c_out, Implicit(num_layers=2, hidden_dim=4))


TestComplete = conformance.kernel(
    complete, groups=("O", "SO"), metrics=(PLANE, SPACETIME, SPACE), compiles=False
)
TestOrthochronous = conformance.kernel(
    complete, groups=("O+", "SO+"), metrics=(SPACETIME,), compiles=False
)
TestImplicit = conformance.kernel(implicit, metrics=(PLANE, SPACETIME), compiles=False)


@pytest.mark.parametrize("metric", signatures(4, 2), ids=metric_name)
def test_steerable(metric):
    algebra = CliffordAlgebra(metric, symmetric=True)
    kernels = [implicit(algebra, 2, 1), *(complete(algebra, 1, 1, g) for g in groups(metric))]
    for kernel in kernels:
        assert_steerable(kernel, samples=2, rapidity=2.0, tol=1e-10)


def test_free_values_at_the_origin():
    """Projections survive there, those of tensors too."""
    kernel = CompleteKernel(SPACE, 1, 1, Complete(radial="free"), points=grid(3, 3))
    at_origin = kernel(torch.zeros(1, 3))[0, 0, :, 0]
    assert torch.count_nonzero(at_origin - torch.diag(at_origin.diagonal())) == 0
    assert len(at_origin.diagonal().unique()) == SPACE.n_grades


@pytest.mark.parametrize("algebra", [PLANE, SPACETIME, SPACE], ids=str)
@pytest.mark.parametrize("group", ["O", "SO"])
def test_symbols_of_differential_operators(algebra, group):
    """L(gv) = ρ(g) L(v) ρ(g)^-1 exactly, as polynomials."""
    points = grid(5, algebra.dim)
    choice = Differential(order=4, group=group)
    kernel = DifferentialKernel(algebra, 2, 2, points, (5,) * algebra.dim, choice).double()
    v = torch.randn(6, algebra.dim, dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    for kind in {*algebra.kinds()} - ({"reflection", "any"} if group == "SO" else set()):
        g = algebra.random_orthogonal(kind, generator=generator, dtype=torch.float64)
        rho = algebra.action(g)
        expected = torch.einsum("AB,noBic,cC->noAiC", rho, kernel.symbol(v), rho.inverse())
        actual = kernel.symbol(v @ g.mT)
        assert (actual - expected).abs().max() < 1e-12 * expected.abs().max() * rho.abs().max() ** 2


def test_divergence_and_strain_rate_are_kernels():
    """∇⌟T and ∇⊙v are among the operators: the first basis kernels of their grades."""
    choice = Differential(order=1)
    kernel = DifferentialKernel(SPACE, 1, 1, grid(3, 3), (3, 3, 3), choice).double()
    v = torch.randn(1, 3, dtype=torch.float64)
    symbol = kernel.symbol(v)[0, 0, :, 0]
    x = torch.randn(SPACE.n_blades, dtype=torch.float64)
    vector = SPACE.embed(v[0], 1)
    tensors, vectors = (torch.zeros_like(x) for _ in range(2))
    tensors[SPACE.grade_slice(4)] = x[SPACE.grade_slice(4)]
    vectors[SPACE.grade_slice(1)] = x[SPACE.grade_slice(1)]
    for source, product, grade in (
        (tensors, SPACE.left_contraction, 1),
        (vectors, SPACE.symmetric_product, 4),
    ):
        made = SPACE.grade(symbol @ source, grade)
        expected = SPACE.grade(product(vector, source), grade)
        ratio = made / expected
        assert torch.allclose(ratio, ratio[:1].expand_as(ratio), rtol=1e-10)
