"""The asserts assert: they pass on equivariant modules and fail on all kinds of others."""

import pytest
import torch
from torch import nn

from cscnn import CliffordAlgebra
from cscnn.nn import CGENN, MVLinear
from cscnn.testing import assert_equivariant, equivariance_errors, relative_error

ALGEBRA = CliffordAlgebra((1, -1, -1))


def test_ordinary_layers_fail_for_every_kind():
    class Flat(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(8, 8)

        def forward(self, x):
            return self.linear(x)

    errors = equivariance_errors(Flat(), ALGEBRA, shape=(5, 2))
    assert set(errors) == {"rotation", "boost", "reflection", "any"}
    assert min(errors.values()) > 0.1
    with pytest.raises(AssertionError, match=r"does not commute with rotation, boost, reflection"):
        assert_equivariant(Flat(), ALGEBRA, shape=(5, 2))


def test_the_wrong_signature_fails_but_for_rotations():
    layer = MVLinear(ALGEBRA, 2, 2)
    euclidean = CliffordAlgebra((1, 1, 1))

    def norm_of_the_wrong_metric(x):
        return layer.double()(x) * euclidean.norm_squared(x).unsqueeze(-1)

    errors = equivariance_errors(norm_of_the_wrong_metric, ALGEBRA, shape=(5, 2))
    assert errors["rotation"] < 1e-12
    assert min(errors["boost"], errors["reflection"], errors["any"]) > 1e-3


def test_wrong_gradients_are_seen():
    class Detached(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad * torch.arange(8.0, dtype=grad.dtype)

    assert equivariance_errors(Detached.apply, ALGEBRA, (3,), gradients=False)["boost"] < 1e-12
    assert equivariance_errors(Detached.apply, ALGEBRA, (3,), gradients=True)["boost"] > 0.1


def test_wrong_parameter_gradients_are_seen():
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(()))

        def forward(self, x):
            # Same values as 1 * x, but the gradient of the parameter sees the components of x.
            leak = self.scale * x.sum()
            return x + leak - leak.detach()

    assert equivariance_errors(Scale(), ALGEBRA, (3,), gradients=False)["boost"] < 1e-12
    assert equivariance_errors(Scale(), ALGEBRA, (3,))["boost"] > 1e-3


def test_correct_networks_pass_for_every_seed():
    net = CGENN(CliffordAlgebra((1, -1, -1, -1)), 2, 1)
    for seed in range(30):
        torch.manual_seed(seed)
        net.reset_parameters()
        # Products of products amplify rounding: one seed in thirty comes close to 1e-9.
        assert_equivariant(net, net.algebra, shape=(4, 2), samples=1, seed=seed, tol=1e-8)


def test_single_precision_has_its_own_tolerance():
    assert_equivariant(MVLinear(ALGEBRA, 2, 2), ALGEBRA, (3, 2), dtype=torch.float32)


def test_asserts_that_would_test_nothing_are_errors():
    for options in ({"samples": 0}, {"kinds": ()}, {"kinds": "spin"}):
        with pytest.raises(ValueError, match=r"samples must be|kinds must|kind must be one of"):
            assert_equivariant(torch.relu, ALGEBRA, (3, 2), **options)
    for shape in ((0, 2), 5, (5.0, 1)):
        with pytest.raises(ValueError, match="shape must be a sequence of positive integers"):
            assert_equivariant(torch.relu, ALGEBRA, shape)
    assert assert_equivariant(lambda x: 2 * x, ALGEBRA, (3,), kinds="boost").keys() == {"boost"}


def test_outputs_that_are_not_multivectors_are_errors():
    for function, got in (
        (ALGEBRA.norm_squared, r"shape \(3,\)"),
        (lambda x: (x, x), "tuple"),
        (lambda x: None, "NoneType"),
    ):
        with pytest.raises(ValueError, match=f"must return multivectors.*got {got}"):
            equivariance_errors(function, ALGEBRA, (3,))
    with pytest.raises(ValueError, match="pass gradients=False"):
        equivariance_errors(lambda x: x.detach(), ALGEBRA, (3,))
    with pytest.raises(TypeError, match="expected a CliffordAlgebra"):
        equivariance_errors(ALGEBRA.reverse, (1, 1), (3,))


def test_nan_counts_as_failure():
    with pytest.raises(AssertionError):
        assert_equivariant(lambda x: x * float("nan"), ALGEBRA, (3,))
    assert relative_error(torch.zeros(2), torch.zeros(3)) == float("inf")


def test_the_module_is_left_alone():
    layer = MVLinear(ALGEBRA, 2, 2)
    assert_equivariant(layer, ALGEBRA, shape=(3, 2))
    assert layer.weight.dtype == torch.float32
    assert layer.weight.grad is None
