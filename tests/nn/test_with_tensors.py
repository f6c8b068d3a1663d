"""Layers of multivectors with symmetric tensors pass the conformance kit."""

import pytest
import torch

from cscnn import CliffordAlgebra
from cscnn.nn import CGENN, MVGELU, GeometricProductLayer, GradeNorm, MVLayerNorm, MVLinear
from cscnn.nn.fused import can_fuse, plain_product_gate, product_gate
from cscnn.testing import conformance, relative_error
from cscnn.testing.conformance.suite import METRICS

ALGEBRAS = [CliffordAlgebra(metric, symmetric=True) for metric in METRICS]
EVERY = {"channels": 3, "metrics": ALGEBRAS, "tol": 1e-10, "rapidity": 2.0}

TestLinear = conformance.layer(lambda a: MVLinear(a, 3, 4), **EVERY, compiles=False)
TestProduct = conformance.layer(lambda a: GeometricProductLayer(a, 3, 4), **EVERY)
TestGradeNorm = conformance.layer(lambda a: GradeNorm(a, 3), **EVERY, compiles=False)
TestLayerNorm = conformance.layer(lambda a: MVLayerNorm(a, absolute=True), **EVERY, compiles=False)
TestGate = conformance.layer(MVGELU, **EVERY, compiles=False)
TestCGENN = conformance.layer(
    lambda a: CGENN(a, 3, 2, hidden_dim=5, num_layers=3), **EVERY, compiles=False
)


@pytest.mark.parametrize("algebra", ALGEBRAS, ids=str)
def test_product_layer_is_the_sum_over_its_paths(algebra):
    layer = GeometricProductLayer(algebra, 2, 3, first_order=False).double()
    x = torch.randn(4, 2, algebra.n_blades, dtype=torch.float64)
    right = layer.norm(layer.right(x))
    spans = [algebra.grade_slice(k) for k in range(algebra.n_grades)]
    expected = x.new_zeros(4, 3, algebra.n_blades)
    for number, (m, k, n) in enumerate(layer.paths):
        left, other = torch.zeros_like(x), torch.zeros_like(x)
        left[..., spans[m]], other[..., spans[n]] = x[..., spans[m]], right[..., spans[n]]
        part = algebra.geometric_product(left, other)[..., spans[k]]
        assert part.abs().max() > 1e-3  # every path is alive
        expected[..., spans[k]] += torch.einsum("oi,bic->boc", layer.weight[..., number], part)
    assert relative_error(layer(x), expected) < 1e-13


@pytest.mark.parametrize("algebra", ALGEBRAS, ids=str)
def test_fused_gate(algebra):
    """Values and gradients to second order are those of the plain form."""
    generator = torch.Generator().manual_seed(0)

    def noise(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()

    x = noise(2, 3, 4, 5, algebra.n_blades)
    mix, weight = noise(3, 3, algebra.n_grades), noise(3, algebra.n_grades)
    assert can_fuse(x, mix)
    results = []
    for gate in (product_gate, plain_product_gate):
        y = gate(x, mix, weight, algebra)
        first = torch.autograd.grad(y.square().sum(), (x, mix, weight), create_graph=True)
        second = torch.autograd.grad(sum(g.square().sum() for g in first), (x, mix, weight))
        results.append([y, *first, *second])
    for fused, plain in zip(*results, strict=True):
        assert relative_error(fused, plain) < 1e-12
