"""The kernel network on two numbers per channel.

Fed with a scalar and a vector v, a Clifford group equivariant network can only produce f0 + f1 v:
its output is fixed by the stabiliser of v, which leaves no other multivector alone. So span{1, v},
the commutative algebra with v² = η, is closed under every layer, and the network runs on pairs
(f0, f1) with the same weights:

    (a + b v)(a' + b' v) = (a a' + η b b') + (a b' + a' b) v

Only four grade paths are alive, and only the value of η matters, not the point. Functions here are
the layers of `cscnn.nn` restricted to that plane. A pair is a tensor (2, M, channels), f0 first;
both go through every operation together, since at this size the number of calls is the cost.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from cscnn.algebra.blades import MAX_DIM, admissible_paths
from cscnn.algebra.constants import constant
from cscnn.nn import CGENN, GeometricProductLayer, GradeNorm
from cscnn.nn.functional import normal_cdf, smooth_norm


def _alive(dim: int) -> tuple[tuple[float, ...], ...]:
    alive = ((0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0))
    paths = admissible_paths((1,) * dim)  # the same for every signature
    return tuple(tuple(float(path == a) for a in alive) for path in paths)


#: (paths, 4), by dimension: selects the four grade paths (left, out, right) that are alive.
ALIVE = {dim: _alive(dim) for dim in range(1, MAX_DIM + 1)}


def run_collapsed(network: CGENN, scalar: Tensor, eta: Tensor) -> Tensor:
    """network(scalar + v) as f0 + f1 v, at M values of η.

    Args:
        network: with one input channel.
        scalar: (M,), the scalar part of the input; its vector part is v itself.
        eta: (M,), η(v, v).

    Returns:
        (2, M, c_out): f0 and f1.
    """
    one = torch.ones_like(eta)
    form = torch.stack([one, eta]).unsqueeze(-1)  # squares of 1 and v
    x = torch.stack([scalar, one]).unsqueeze(-1)
    for product, norm in zip(network.products[:-1], network.norms, strict=True):
        assert isinstance(product, GeometricProductLayer)
        assert isinstance(norm, GradeNorm)
        x = _norm(norm, _product(product, x, form), form)
        x = x * normal_cdf(x[:1])
    last = network.products[-1]
    assert isinstance(last, GeometricProductLayer)
    return _product(last, x, form)


def _product(layer: GeometricProductLayer, x: Tensor, form: Tensor) -> Tensor:
    right = _norm(layer.norm, torch.bmm(x, _per_grade(layer.right.weight)), form)
    # f0 = a a' + η b b' and f1 = a b' + b a', as two terms with a path (left, out, right) each.
    terms = [x[:1] * right, x[1:] * (right * form).flip(0)]
    alive = constant(ALIVE[layer.algebra.dim], x.dtype, x.device)
    weights = list((layer.weight @ alive).split(2, -1))
    if layer.linear is not None:
        terms.append(x)
        weights.append(layer.linear.weight[..., :2])
    factors, weight = torch.cat(terms, -1), _per_grade(torch.cat(weights, 1))
    if layer.linear is None:
        return torch.bmm(factors, weight)
    half = math.sqrt(0.5)
    if layer.linear.bias is None:
        return torch.bmm(factors, weight) * half
    bias = _on_scalars(layer.linear.bias)
    return torch.baddbmm(bias, factors, weight, beta=half, alpha=half)


def _on_scalars(bias: Tensor) -> Tensor:
    """(channels,) -> (2, 1, channels): added to f0 only."""
    return torch.nn.functional.pad(bias[None, None], (0, 0, 0, 0, 0, 1))


def _per_grade(weight: Tensor) -> Tensor:
    """(c_out, c_in, grades) -> (2, c_in, c_out) for grades 0 and 1."""
    return weight[..., :2].permute(2, 1, 0)


def _norm(layer: GradeNorm, x: Tensor, form: Tensor) -> Tensor:
    strength = layer.factor[:, :2].sigmoid().T.unsqueeze(1)
    sizes = smooth_norm(x.square() * form)
    return x / torch.addcmul((1 + 1e-6) - strength, strength, sizes)
