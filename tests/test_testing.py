"""The asserts assert: they pass on equivariant modules and fail on all kinds of others."""

import pytest
import torch
from torch import nn

from cscnn import CliffordAlgebra
from cscnn.nn import MVLinear
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


def test_the_wrong_signature_fails_for_boosts_only():
    layer = MVLinear(ALGEBRA, 2, 2)
    euclidean = CliffordAlgebra((1, 1, 1))

    def norm_of_the_wrong_metric(x):
        return layer.double()(x) * euclidean.norm_squared(x).unsqueeze(-1)

    errors = equivariance_errors(norm_of_the_wrong_metric, ALGEBRA, shape=(5, 2))
    assert errors["rotation"] < 1e-12
    assert errors["boost"] > 1e-3


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


def test_nan_counts_as_failure():
    with pytest.raises(AssertionError):
        assert_equivariant(lambda x: x * float("nan"), ALGEBRA, (3,))
    assert relative_error(torch.zeros(2), torch.zeros(3)) == float("inf")


def test_the_module_is_left_alone():
    layer = MVLinear(ALGEBRA, 2, 2)
    assert_equivariant(layer, ALGEBRA, shape=(3, 2))
    assert layer.weight.dtype == torch.float32
    assert layer.weight.grad is None
