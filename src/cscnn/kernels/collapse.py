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
from cscnn.nn.functional import normal_cdf


def _alive(dim: int) -> tuple[tuple[float, ...], ...]:
    paths = admissible_paths((1,) * dim)  # the same for every signature
    names = [*paths, *range(dim + 1)]  # of the columns of both weights
    alive = ((0, 0, 0), (1, 0, 1), 0, (0, 1, 1), (1, 1, 0), 1)
    return tuple(tuple(math.sqrt(0.5) * (name == a) for name in names) for a in alive)


#: (6, paths + grades), by dimension: the four grade paths (left, out, right) and the two grades
#: that are alive, ordered by output (f0, f1) and then as the factors in `_product`.
ALIVE = {dim: _alive(dim) for dim in range(1, MAX_DIM + 1)}
#: (2, 1, 1): places a bias on f0 alone.
SCALAR = (((math.sqrt(0.5),),), ((0.0,),))
#: What a normalisation that does nothing divides by.
FLOOR = (1 + 1e-6,)


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
    sizes = form.clamp(min=1e-30).sqrt()  # their norms; bounded below for the sake of gradients
    x = torch.stack([scalar, one]).unsqueeze(-1)
    strengths = _strengths(network)
    in_products, between = strengths[: len(network.products)], strengths[len(network.products) :]
    for i, product in enumerate(network.products):
        assert isinstance(product, GeometricProductLayer)
        if i:
            x = _norm(x, between[i - 1], sizes)
            x = x * normal_cdf(x[:1])
        x = _product(product, x, in_products[i], form, sizes)
    return x


def _strengths(network: CGENN) -> tuple[Tensor, ...]:
    """Degrees of normalisation inside the products, then between them: (2, 1, channels) each."""
    inside = [p.norm for p in network.products if isinstance(p, GeometricProductLayer)]
    norms = [*inside, *(norm for norm in network.norms if isinstance(norm, GradeNorm))]
    factors = torch.cat([norm.factor for norm in norms])[:, :2]
    return factors.sigmoid().T.unsqueeze(1).split([norm.channels for norm in norms], -1)


def _product(
    layer: GeometricProductLayer, x: Tensor, strength: Tensor, form: Tensor, sizes: Tensor
) -> Tensor:
    assert layer.linear is not None
    assert layer.linear.bias is not None
    right = _norm(torch.bmm(x, layer.right.weight[..., :2].permute(2, 1, 0)), strength, sizes)
    # f0 = a a' + η b b' and f1 = a b' + b a', as two terms with a path (left, out, right) each.
    a, b = x.split(1)
    factors = torch.cat([a * right, b * (right * form).flip(0), x], -1)
    weights = torch.cat([layer.weight, layer.linear.weight], -1)
    alive = constant(ALIVE[layer.algebra.dim], x.dtype, x.device)
    weight = (alive @ weights.flatten(0, 1).T).view(2, 3, layer.c_out, layer.c_in)
    bias = layer.linear.bias * constant(SCALAR, x.dtype, x.device)
    return torch.baddbmm(bias, factors, weight.transpose(-1, -2).flatten(1, 2))


def _norm(x: Tensor, strength: Tensor, sizes: Tensor) -> Tensor:
    """x / (strength (|x| - 1) + 1 + 1e-6) for each part, where |x| ≥ 0.1 as in `smooth_norm`."""
    excess = (x * sizes).abs().clamp(min=0.1) - 1
    return x / torch.addcmul(constant(FLOOR, x.dtype, x.device), strength, excess)
