"""The fused product gate against the plain one: values, derivatives, memory order, huge numbers."""

import pytest
import torch

from cscnn import CliffordAlgebra
from cscnn.nn import fused
from cscnn.nn.functional import LARGE
from cscnn.nn.fused import can_fuse, plain_product_gate, product_gate
from cscnn.testing import assert_equivariant, relative_error

METRICS = [(1,), (1, 1), (1, -1), (1, 1, 1), (1, -1, -1), (1, -1, -1, -1)]
CHANNELS = 3


def inputs(metric, *, space=True, planes=True, dtype=torch.float64, terms=1):
    """An algebra, a field with blades innermost in memory or not, and weights.

    With two terms they mix x I too.
    """
    algebra = CliffordAlgebra(metric)
    torch.manual_seed(0)
    n, k = algebra.n_blades, algebra.n_grades
    if space:
        x = torch.randn(2, CHANNELS, n, *(5,) * algebra.dim, dtype=dtype).movedim(2, -1)
        x = x if planes else x.contiguous()
    else:
        x = torch.randn(7, CHANNELS, n, dtype=dtype)
    x[0] *= 1e-3  # norms below their bound
    mix = torch.randn(CHANNELS, terms * CHANNELS, k, dtype=dtype)
    weight = torch.randn(CHANNELS, k, dtype=dtype)
    return algebra, [t.requires_grad_() for t in (x, mix, weight)]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    ("space", "planes", "terms"),
    [(True, True, 1), (True, False, 1), (False, False, 1), (True, True, 2), (False, False, 2)],
)
def test_values_and_derivatives_are_those_of_the_plain_form(metric, space, planes, terms):
    algebra, leaves = inputs(metric, space=space, planes=planes, terms=terms)
    assert can_fuse(leaves[0], leaves[1])
    results = [f(*leaves, algebra) for f in (product_gate, plain_product_gate)]
    assert relative_error(*results) < 1e-14
    assert results[0].stride(-1) == results[1].stride(-1)
    grad = torch.randn_like(results[0])
    both = [torch.autograd.grad(y, leaves, grad) for y in results]
    for mine, plain in zip(*both, strict=True):
        assert relative_error(mine, plain) < 1e-13


@pytest.mark.parametrize("terms", [1, 2])
@pytest.mark.parametrize("metric", [(1, 1), (1, -1)])
def test_it_is_twice_differentiable(metric, terms):
    algebra, leaves = inputs(metric, terms=terms)

    def second(function):
        y = function(*leaves, algebra)
        first = torch.autograd.grad(y.square().sum(), leaves, create_graph=True)
        return torch.autograd.grad(sum(t.square().sum() for t in first), leaves)

    for mine, plain in zip(second(product_gate), second(plain_product_gate), strict=True):
        assert relative_error(mine, plain) < 1e-12


def test_derivatives_by_finite_differences():
    algebra, leaves = inputs((1, -1), space=False)
    assert torch.autograd.gradcheck(lambda *t: product_gate(*t, algebra), leaves)


def test_only_what_is_asked_for_has_a_derivative():
    algebra, (x, mix, weight) = inputs((1, 1))
    y = product_gate(x.detach(), mix, weight.detach(), algebra)
    (only,) = torch.autograd.grad(y.sum(), [mix], create_graph=True)
    expected = plain_product_gate(x.detach(), mix, weight.detach(), algebra)
    assert relative_error(only, *torch.autograd.grad(expected.sum(), [mix])) < 1e-13


def test_huge_numbers_and_transforms_take_the_plain_form(monkeypatch):
    algebra, leaves = inputs((1, 1), dtype=torch.float32)
    x, mix, weight = (t.detach() for t in leaves)
    huge = x * (10 * LARGE)
    assert not can_fuse(huge, mix)
    assert not can_fuse(x * float("nan"), mix)
    assert product_gate(huge, mix, weight, algebra).isfinite().all()
    assert not can_fuse(x.bfloat16(), mix.bfloat16())
    with torch.autocast("cpu"):
        assert not can_fuse(x, mix)

    def refuse(*_):
        raise AssertionError("must not be called")

    monkeypatch.setattr(fused._Fused, "apply", refuse)
    tangent = torch.func.jvp(lambda t: product_gate(t, mix, weight, algebra), (x,), (x,))[1]
    assert tangent.shape == x.shape
    torch.func.vmap(lambda t: product_gate(t[None], mix, weight, algebra))(x)
    with pytest.raises(AssertionError, match="must not be called"):
        product_gate(x, mix, weight, algebra)


def test_fake_tensors_take_the_plain_form():
    from torch._subclasses.fake_tensor import FakeTensorMode

    algebra, leaves = inputs((1, 1))
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fake = [mode.from_tensor(t) for t in leaves]
        assert product_gate(*fake, algebra).shape == leaves[0].shape


def test_it_commutes_with_the_group():
    algebra = CliffordAlgebra((1, -1, -1))
    _, (_, mix, weight) = inputs((1, -1, -1))
    assert_equivariant(
        lambda x: product_gate(x, mix.to(x), weight.to(x), algebra), algebra, shape=(4, CHANNELS)
    )
