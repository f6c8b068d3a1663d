"""The kernel network on two numbers per channel.

Fed with a scalar and a vector v, a Clifford group equivariant network can only produce f0 + f1 v:
its output is fixed by the stabiliser of v, which leaves no other multivector alone. So span{1, v},
the commutative algebra with v² = η, is closed under every layer, and the network runs on pairs
(f0, f1) with the same weights:

    (a + b v)(a' + b' v) = (a a' + η b b') + (a b' + a' b) v

Only four grade paths are alive, and only the value of η matters, not the point. Functions here are
the layers of `cscnn.nn` restricted to that plane; pairs have shape (M, channels) each.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from cscnn.nn import CGENN, GeometricProductLayer, GradeNorm
from cscnn.nn.functional import normal_cdf, smooth_norm

Pair = tuple[Tensor, Tensor]


def run(network: CGENN, scalar: Tensor, eta: Tensor) -> Pair:
    """network(scalar + v) as f0 + f1 v, at M values of η.

    Args:
        network: with one input channel.
        scalar: (M,), the scalar part of the input; its vector part is v itself.
        eta: (M,), η(v, v).

    Returns:
        f0, f1: (M, c_out) each.
    """
    eta = eta[:, None]
    x = (scalar[:, None], torch.ones_like(eta))
    for product, norm in zip(network.products[:-1], network.norms, strict=True):
        assert isinstance(product, GeometricProductLayer)
        assert isinstance(norm, GradeNorm)
        x = _gate(_norm(norm, _product(product, x, eta), eta))
    last = network.products[-1]
    assert isinstance(last, GeometricProductLayer)
    return _product(last, x, eta)


def _product(layer: GeometricProductLayer, x: Pair, eta: Tensor) -> Pair:
    right = layer.right.weight
    a, b = x
    ra, rb = _norm(layer.norm, (a @ right[..., 0].T, b @ right[..., 1].T), eta)

    def weight(*paths: tuple[int, int, int]) -> Tensor:
        return torch.cat([layer.weight[..., layer.paths.index(path)] for path in paths], -1)

    # Paths are (left grade, output grade, right grade).
    y0 = torch.cat([a * ra, eta * b * rb], -1) @ weight((0, 0, 0), (1, 0, 1)).T
    y1 = torch.cat([a * rb, b * ra], -1) @ weight((0, 1, 1), (1, 1, 0)).T
    if layer.linear is None:
        return y0, y1
    y0 = y0 + a @ layer.linear.weight[..., 0].T
    y1 = y1 + b @ layer.linear.weight[..., 1].T
    if layer.linear.bias is not None:
        y0 = y0 + layer.linear.bias
    return y0 / math.sqrt(2), y1 / math.sqrt(2)


def _norm(layer: GradeNorm, x: Pair, eta: Tensor) -> Pair:
    a, b = x
    strength = layer.factor[:, :2].sigmoid()
    a = a / (strength[:, 0] * (smooth_norm(a.square()) - 1) + (1 + 1e-6))
    b = b / (strength[:, 1] * (smooth_norm(b.square() * eta) - 1) + (1 + 1e-6))
    return a, b


def _gate(x: Pair) -> Pair:
    a, b = x
    gate = normal_cdf(a)
    return a * gate, b * gate
