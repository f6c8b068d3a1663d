"""The kernel network on two or three numbers per channel.

Fed with a scalar and a vector v, a Clifford group equivariant network can only produce f0 + f1 v:
its output is fixed by the stabiliser of v, which leaves no other multivector alone. With symmetric
traceless tensors it leaves one more, S = (v⊗v)_0. So span{1, v}, or span{1, v, S}, is closed under
every layer, and the network runs on the factors f with the same weights::

    (a + b v)(a' + b' v) = (a a' + η b b') + (a b' + a' b) v

Few grade paths are alive, and only the value of η = η(v, v) matters, not the point. Functions here
are the layers of `cscnn.nn` restricted to that span. Its elements are an array (parts, M,
channels), f0 first; all parts go through every operation together, since at this size the number of
calls is the cost.

The functions take arrays of torch or of numpy, see `Tables`: what is named and called alike in
both. `cscnn.kernels.passes` has their derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor

from cscnn.kernels.span import Span, Tables
from cscnn.nn import CGENN, GeometricProductLayer, GradeNorm
from cscnn.nn.functional import GELU_CUBE, GELU_SCALE

#: What a normalisation that does nothing divides by.
FLOOR = 1 + 1e-6
#: Smallest norm, as in `smooth_norm`.
SMALLEST = 0.1
#: Smallest 2σ² of a shell. A sharper one differs from that of σ = 0 only for |η| below 1e-14.
MIN_WIDTH_SQUARED = 1e-16
#: Added to the learnt widths of the shells that mask the output.
LEAST_WIDTH = 0.4


def weights_of(network: CGENN) -> tuple[Tensor, ...]:
    """The weights, five of each layer, then those of the norms between layers."""
    weights: list[Tensor] = []
    for layer in network.products:
        assert isinstance(layer, GeometricProductLayer)
        assert layer.linear is not None
        assert layer.linear.bias is not None
        weights += [layer.weight, layer.linear.weight, layer.linear.bias]
        weights += [layer.right.weight, layer.norm.factor]
    return *weights, *(norm.factor for norm in network.norms if isinstance(norm, GradeNorm))


class Layer(NamedTuple):
    """Weights of one layer on the parts that are alive.

    Attributes:
        products: of the terms and of the parts themselves, (parts, (terms + 1) c_in, c_out).
        right: of the right factors, (parts, c_in, c_in).
        strength: degrees of normalisation of the right factors, (parts, 1, c_in).
        bias: (parts, 1, c_out), zero but for f0.
        before: degrees of normalisation before the layer, (parts, 1, c_in); None for the first.
    """

    products: Any
    right: Any
    strength: Any
    bias: Any
    before: Any | None


def layers_of(tables: Tables, weights: Sequence[Any]) -> list[Layer]:
    """The layers. Weights are selected by products with zeros and ones.

    That is faster than by indices, and so is its gradient.
    """
    count = n_layers(weights)
    befores = weights[5 * count :]
    result = []
    for i in range(count):
        products, linear, bias, right, factor = weights[5 * i : 5 * i + 5]
        c_out, c_in = products.shape[:2]
        columns = tables.xp.concatenate(
            [products.reshape(c_out * c_in, -1), linear.reshape(c_out * c_in, -1)], -1
        )
        alive = (tables.alive @ columns.T).reshape(len(tables.first), -1, c_out, c_in)
        result.append(
            Layer(
                alive.swapaxes(-1, -2).reshape(len(tables.first), -1, c_out),
                (right @ tables.select).swapaxes(0, 2),
                degrees(tables, factor),
                (tables.first * bias)[:, None],
                degrees(tables, befores[i - 1]) if i else None,
            )
        )
    return result


def n_layers(weights: Sequence[Any]) -> int:
    """How many layers have these weights: five each, and one between two of them."""
    return (len(weights) + 1) // 6


def degrees(tables: Tables, factor: Any) -> Any:
    """Degrees of normalisation of the parts, (parts, 1, channels)."""
    return tables.sigmoid(factor @ tables.select).T[:, None]


def run(
    eta: Any,
    parts: Span,
    position_width: Any,
    mask_width: Any | None,
    weights: Sequence[Any],
) -> Any:
    """The masked network as f0 + f1 v (+ f2 S) at M values of η: (c_out, c_in, parts, M).

    By operations that torch can differentiate: the reference, and for all that `passes` cannot do.

    Args:
        eta: (M,).
        parts: of the network's algebra.
        position_width: (1,), of the shell that the network sees beside v.
        mask_width: (c_out, c_in, grades), of the shells that mask the output; None for no mask,
            the output is (1, c_out · c_in, parts, M) then.
        weights: see `weights_of`, of a network with one input channel.
    """
    tables = parts.tables(eta)
    factors, sizes = tables.at(eta)
    x = inputs_of(tables, shell(tables, eta, position_width))
    for layer in layers_of(tables, weights):
        if layer.before is not None:
            x = x / divisor(tables, x, layer.before, sizes)
            x = x * tables.sigmoid(cdf_argument(x[:1]))
        right = x @ layer.right
        right = right / divisor(tables, right, layer.strength, sizes)
        x = terms_of(tables, x, right, factors) @ layer.products + layer.bias
    y = outputs_of(x, mask_width)
    return y if mask_width is None else y * shell(tables, eta, mask_widths(tables, mask_width))


def shell(tables: Tables, eta: Any, width: Any) -> Any:
    """sgn(η) exp(-|η| / 2σ²), with sgn(0) = +1 (paper, Algorithm 3).

    For σ = 0 its limit, 1 at η = 0 and else 0, with finite gradients.
    """
    xp = tables.xp
    sign = xp.sign(xp.sign(eta) + 0.5)
    return sign * xp.exp(-abs(eta) / tables.at_least(2 * width * width, MIN_WIDTH_SQUARED))


def mask_widths(tables: Tables, width: Any) -> Any:
    """Widths of the shells that mask the parts, (c_out, c_in, parts, 1)."""
    return (width @ tables.select + LEAST_WIDTH)[..., None]


def inputs_of(tables: Tables, scalar: Any) -> Any:
    """scalar + v: (parts, M, 1)."""
    one = tables.xp.ones_like(scalar)
    return tables.xp.stack([scalar, one, 0 * one][: len(tables.first)])[..., None]


def outputs_of(x: Any, like: Any | None) -> Any:
    """(parts, M, c_out · c_in) -> (c_out, c_in, parts, M), channels like those of a mask."""
    y = x.swapaxes(1, 2).swapaxes(0, 1)
    return y.reshape(*((1, len(y)) if like is None else like.shape[:2]), *y.shape[1:])


def divisor(tables: Tables, x: Any, strength: Any, sizes: Any) -> Any:
    """strength (|x| - 1) + 1 + 1e-6 for each part, where |x| ≥ 0.1 as in `smooth_norm`."""
    return strength * (tables.at_least(abs(x * sizes), SMALLEST) - 1) + FLOOR


def cdf_argument(x: Any) -> Any:
    """What `normal_cdf` takes the sigmoid of."""
    return x * (x * x * GELU_CUBE + GELU_SCALE)


def spread(table: Any, x: Any) -> Any:
    """Parts (parts, M, channels) -> those of each term, (terms, M, channels), or back."""
    flat = x.reshape(len(x), x.shape[1] * x.shape[2])
    return (table @ flat).reshape(len(table), *x.shape[1:])


def terms_of(tables: Tables, x: Any, right: Any, factors: Any) -> Any:
    """Terms of all products, and behind them the parts: (parts, M, (terms + 1) channels)."""
    products = spread(tables.left, x) * (spread(tables.right, right) * factors)
    parts, points, channels = x.shape
    products = products.reshape(parts, len(products) // parts, points, channels)
    terms = tables.xp.concatenate([products, x[:, None]], 1).swapaxes(1, 2)
    return terms.reshape(parts, points, terms.shape[2] * channels)
