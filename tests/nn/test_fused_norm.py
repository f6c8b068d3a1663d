"""The fused layer norm against the plain one: values, derivatives, memory order, huge numbers."""

import pytest
import torch

from cscnn import CliffordAlgebra
from cscnn.nn.functional import LARGE, layer_norm
from cscnn.nn.fused import can_fuse, fused_layer_norm
from cscnn.testing import assert_equivariant, relative_error

PLANE, SPACE, MINKOWSKI = CliffordAlgebra((1, 1)), CliffordAlgebra((1, 1, 1)), (1, -1, -1)
ALGEBRAS = [
    PLANE,
    SPACE,
    CliffordAlgebra((1,)),
    CliffordAlgebra(MINKOWSKI),
    CliffordAlgebra(MINKOWSKI, symmetric=True),
    CliffordAlgebra((1, 1), symmetric=True),
]


def field(algebra, layout="planes", dtype=torch.float64):
    """Random numbers; in the first sample norms are below their bound."""
    torch.manual_seed(0)
    shape = (2, 3, algebra.n_blades, *(5,) * algebra.dim)
    x = torch.randn(shape if layout != "flat" else (7, 3, algebra.n_blades), dtype=dtype)
    if layout != "flat":
        x = x.movedim(2, -1)
    x[0] *= 1e-3
    return (x.contiguous() if layout == "blades" else x).requires_grad_()


@pytest.mark.parametrize("algebra", ALGEBRAS, ids=str)
@pytest.mark.parametrize("layout", ["planes", "blades", "flat"])
def test_values_and_derivatives_are_those_of_the_plain_form(algebra, layout):
    x = field(algebra, layout)
    mine, plain = (f(x, algebra, absolute=True) for f in (fused_layer_norm, layer_norm))
    assert can_fuse(x)
    assert relative_error(mine, plain) < 1e-15
    assert mine.stride(-1) == plain.stride(-1)
    grad = torch.randn_like(mine)
    first, second = (torch.autograd.grad(y, x, grad)[0] for y in (mine, plain))
    assert relative_error(first, second) < 1e-14


@pytest.mark.parametrize("algebra", ALGEBRAS, ids=str)
def test_it_is_twice_differentiable(algebra):
    x = field(algebra)

    def second(function):
        y = function(x, algebra, absolute=True)
        (first,) = torch.autograd.grad(y.pow(3).sum(), x, create_graph=True)
        return torch.autograd.grad(first.square().sum(), x)[0]

    assert relative_error(second(fused_layer_norm), second(layer_norm)) < 1e-12


def test_derivatives_by_finite_differences():
    x = field(PLANE)[:, :, :2, :2].detach().requires_grad_()
    assert torch.autograd.gradcheck(lambda t: fused_layer_norm(10 * t, PLANE), x)


def test_signed_norms_of_spacetime_take_the_plain_form():
    algebra = CliffordAlgebra(MINKOWSKI)
    x = field(algebra)
    assert torch.equal(fused_layer_norm(x, algebra), layer_norm(x, algebra))
    assert not torch.equal(fused_layer_norm(x, algebra), fused_layer_norm(x, algebra, True))


def test_huge_numbers_and_transforms_take_the_plain_form():
    x = field(PLANE, dtype=torch.float32).detach()
    huge = x * LARGE * 1e8
    assert can_fuse(x)
    assert not can_fuse(huge)
    assert relative_error(fused_layer_norm(huge, PLANE), fused_layer_norm(x * 1e9, PLANE)) < 1e-5
    each = torch.vmap(lambda x: fused_layer_norm(x[None], PLANE)[0])(x)
    assert relative_error(each, fused_layer_norm(x, PLANE)) < 1e-6
    _, tangent = torch.func.jvp(lambda x: fused_layer_norm(x, PLANE), (x,), (x,))
    assert tangent.isfinite().all()
    assert fused_layer_norm(x[:0], PLANE).shape == x[:0].shape


@pytest.mark.parametrize("algebra", ALGEBRAS, ids=str)
def test_it_commutes_with_the_group(algebra):
    assert_equivariant(
        lambda x: fused_layer_norm(x, algebra, absolute=True), algebra, shape=(2, 3, 4)
    )
