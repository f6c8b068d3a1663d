"""The kernel network on two or three numbers per channel.

Fed with a scalar and a vector v, a Clifford group equivariant network can only produce f0 + f1 v:
its output is fixed by the stabiliser of v, which leaves no other multivector alone. With symmetric
traceless tensors it leaves one more, S = (v⊗v)_0. So span{1, v}, or span{1, v, S}, is closed under
every layer, and the network runs on the factors f with the same weights::

    (a + b v)(a' + b' v) = (a a' + η b b') + (a b' + a' b) v

Few grade paths are alive, and only the value of η = η(v, v) matters, not the point. Functions here
are the layers of `cscnn.nn` restricted to that span. Its elements are a tensor (parts, M,
channels), f0 first; all parts go through every operation together, since at this size the number of
calls is the cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cscnn._util.torch_private import (
    dispatch_mode_active,
    exporting,
    forward_derivatives_active,
    tracing,
)
from cscnn.algebra.constants import constant
from cscnn.kernels.span import Span
from cscnn.nn import CGENN, GeometricProductLayer, GradeNorm
from cscnn.nn.functional import GELU_CUBE, GELU_SCALE, normal_cdf
from cscnn.nn.fused import gradients

#: What a normalisation that does nothing divides by.
FLOOR = (1 + 1e-6,)
#: Smallest norm, as in `smooth_norm`.
SMALLEST = 0.1


def run_collapsed(network: CGENN, scalar: Tensor, eta: Tensor, parts: Span) -> Tensor:
    """network(scalar + v) as f0 + f1 v (+ f2 S), at M values of η.

    Args:
        network: with one input channel.
        scalar: (M,), the scalar part of the input; its vector part is v itself.
        eta: (M,), η(v, v).
        parts: of the network's algebra.

    Returns:
        (parts, M, c_out)
    """
    layers = [layer for layer in network.products if isinstance(layer, GeometricProductLayer)]
    norms = [norm for norm in network.norms if isinstance(norm, GradeNorm)]
    weights: list[Tensor] = []
    for layer in layers:
        assert layer.linear is not None
        assert layer.linear.bias is not None
        weights += [layer.weight, layer.linear.weight, layer.linear.bias]
        weights += [layer.right.weight, layer.norm.factor]
    weights += [norm.factor for norm in norms]
    if can_fuse(eta):
        result: Tensor = _Collapsed.apply(scalar, eta, parts, len(layers), *weights)
        return result
    return run(scalar, eta, parts, len(layers), weights)


def can_fuse(eta: Tensor) -> bool:
    """Whether the hand-written derivatives apply: in full precision, without transforms."""
    if tracing() or exporting() or dispatch_mode_active() or forward_derivatives_active():
        return False
    if eta.dtype not in (torch.float32, torch.float64) or torch.is_autocast_enabled(
        eta.device.type
    ):
        return False
    return not eta.requires_grad


class Layer(NamedTuple):
    """Weights of one layer on the parts that are alive.

    Attributes:
        products: of the terms and of the parts themselves, (parts, (terms + 1) c_in, c_out).
        right: of the right factors, (parts, c_in, c_in).
        strength: degrees of normalisation of the right factors, (parts, 1, c_in).
        bias: (parts, 1, c_out), zero but for f0.
        before: degrees of normalisation before the layer, (parts, 1, c_in); None for the first.
    """

    products: Tensor
    right: Tensor
    strength: Tensor
    bias: Tensor
    before: Tensor | None


def layers_of(parts: Span, count: int, weights: Sequence[Tensor]) -> list[Layer]:
    """The layers; all of their weights are selected at once, since calls are what costs."""
    n = len(parts.grades)
    by_layer = [weights[5 * i : 5 * i + 5] for i in range(count)]
    columns = torch.cat(
        [torch.cat([layer[k].flatten(0, 1) for layer in by_layer]) for k in (0, 1)], -1
    )
    # A product with zeros and ones selects faster than indices do, and so does its gradient.
    alive = constant(parts.alive, columns.dtype, columns.device) @ columns.T
    products = alive.split([len(layer[0]) * layer[0].shape[1] for layer in by_layer], -1)
    norms = [*(layer[4] for layer in by_layer), *weights[5 * count :]]
    degrees = of_grades(torch.cat(norms), parts).sigmoid().T.unsqueeze(1)
    strengths = degrees.split([len(norm) for norm in norms], -1)
    biases = torch.cat([layer[2] for layer in by_layer])
    biases = biases * constant(parts.first, biases.dtype, biases.device)
    bias = biases.unsqueeze(1).split([len(layer[2]) for layer in by_layer], -1)
    result = []
    for i, layer in enumerate(by_layer):
        c_out, c_in = layer[0].shape[:2]
        result.append(
            Layer(
                products[i].reshape(n, -1, c_out, c_in).transpose(-1, -2).flatten(1, 2),
                of_grades(layer[3], parts).permute(2, 1, 0),
                strengths[i],
                bias[i],
                strengths[count + i - 1] if i else None,
            )
        )
    return result


def of_grades(x: Tensor, parts: Span) -> Tensor:
    """The columns (..., grades) of the grades that are alive."""
    columns = x[..., :2]
    return columns if len(parts.grades) == 2 else torch.cat([columns, x[..., -1:]], -1)


def run(scalar: Tensor, eta: Tensor, parts: Span, count: int, weights: Sequence[Tensor]) -> Tensor:
    """The network by operations that torch knows: the reference, and for all but training."""
    factors, sizes = parts.at(eta)
    x = inputs_of(scalar, parts)
    for layer in layers_of(parts, count, weights):
        if layer.before is not None:
            x = x / divisor(x, layer.before, sizes)
            x = x * normal_cdf(x[:1])
        right = torch.bmm(x, layer.right)
        right = right / divisor(right, layer.strength, sizes)
        x = torch.baddbmm(layer.bias, terms_of(x, right, parts, factors), layer.products)
    return x


def inputs_of(scalar: Tensor, parts: Span) -> Tensor:
    """scalar + v: (parts, M, 1)."""
    one = torch.ones_like(scalar)
    return torch.stack([scalar, one, torch.zeros_like(one)][: len(parts.grades)]).unsqueeze(-1)


def divisor(x: Tensor, strength: Tensor, sizes: Tensor) -> Tensor:
    """strength (|x| - 1) + 1 + 1e-6 for each part, where |x| ≥ 0.1 as in `smooth_norm`."""
    excess = (x * sizes).abs().clamp(min=SMALLEST) - 1
    return torch.addcmul(constant(FLOOR, x.dtype, x.device), strength, excess)


def terms_of(x: Tensor, right: Tensor, parts: Span, factors: Tensor) -> Tensor:
    """Terms of all products, and behind them the parts: (parts, M, (terms + 1) channels)."""
    left_of, right_of = (
        constant(which, torch.int64, x.device) for which in (parts.left, parts.right)
    )
    products = x[left_of] * (right[right_of] * factors)
    terms = torch.cat([products.unflatten(0, (len(x), -1)), x.unsqueeze(1)], 1)
    return terms.transpose(1, 2).flatten(2)


class _Passes:
    """`run` with its derivatives by hand: several times fewer calls than by torch's own."""

    def __init__(self, eta: Tensor, parts: Span, count: int, weights: Sequence[Tensor]):
        self.parts, self.count, self.weights = parts, count, weights
        self.factors, self.sizes = parts.at(eta)
        self.layers = layers_of(parts, count, weights)
        #: Of each layer: x before the norm, its divisor, x after it, Φ, x, right factors before
        #: and after their norm, their divisor, terms. Not the result, whose graph holds this.
        self.kept: list[tuple[Tensor, ...]] = []

    def forward(self, scalar: Tensor) -> Tensor:
        """The network, once; what `backward` needs is kept."""
        x = inputs_of(scalar, self.parts)
        for layer in self.layers:
            before: tuple[Tensor, ...] = (x, x, x, x)
            if layer.before is not None:
                below = divisor(x, layer.before, self.sizes)
                normed = x / below
                phi = normal_cdf(normed[:1])
                before, x = (x, below, normed, phi), normed * phi
            raw = torch.bmm(x, layer.right)
            below = divisor(raw, layer.strength, self.sizes)
            right = raw / below
            terms = terms_of(x, right, self.parts, self.factors)
            self.kept.append((*before, x, raw, right, below, terms))
            x = torch.baddbmm(layer.bias, terms, layer.products)
        return x

    def backward(self, grad: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Derivatives by the scalar part of the input, and by the weights."""
        left_of, right_of = (
            constant(which, torch.int64, grad.device)
            for which in (self.parts.left, self.parts.right)
        )
        terms_and_part = len(self.parts.left) // len(self.parts.grades) + 1
        by_products, by_bias, by_right = [], [], []
        by_strength, by_before = [], []
        for layer, kept in zip(reversed(self.layers), reversed(self.kept), strict=True):
            first, below_first, normed, phi, x, raw, right, below, terms = kept
            by_bias.append(grad[0].sum(0))
            by_products.append(torch.bmm(terms.mT, grad))
            by_terms = torch.bmm(grad, layer.products.mT).unflatten(-1, (terms_and_part, -1))
            by_x = by_terms[:, :, -1]
            by_term = by_terms[:, :, :-1].transpose(1, 2).reshape(len(self.factors), *x.shape[1:])
            by_factors = by_term * self.factors
            by_right_part = torch.zeros_like(right).index_add_(0, right_of, by_factors * x[left_of])
            by_x = by_x.index_add(0, left_of, by_factors.mul_(right[right_of]))
            by_raw, strength = self._norm(by_right_part, raw, right, below, layer.strength)
            by_strength.append(strength)
            by_right.append(torch.bmm(x.mT, by_raw))
            grad = by_x.baddbmm_(by_raw, layer.right.mT)
            if layer.before is not None:
                # x = Φ(y0) y
                by_scalar = (grad * normed).sum(0).mul_(slope(normed[0], phi[0]))
                grad = grad * phi
                grad[0] += by_scalar
                grad, strength = self._norm(grad, first, normed, below_first, layer.before)
                by_before.append(strength)
        strengths = torch.cat([*reversed(by_strength), *reversed(by_before)], -1)
        return grad[0, :, 0], self._by_weights(
            by_products[::-1], by_bias[::-1], by_right[::-1], strengths
        )

    def _norm(
        self, grad: Tensor, x: Tensor, y: Tensor, below: Tensor, strength: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Derivatives of y = x / divisor, by x and by the strength."""
        grad = grad / below
        signed = x * self.sizes
        size = signed.abs()
        by_below = (grad * y).neg_()
        by_strength = (by_below * (size.clamp(min=SMALLEST) - 1)).sum(1, keepdim=True)
        by_below.mul_(strength).mul_(self.sizes).mul_(signed.sign_())
        return grad.add_(by_below.masked_fill_(size < SMALLEST, 0)), by_strength

    def _by_weights(
        self, products: list[Tensor], bias: list[Tensor], right: list[Tensor], strengths: Tensor
    ) -> list[Tensor]:
        """Derivatives by the weights as they are given, from those by what was selected."""
        weights = self.weights
        by_layer = [weights[5 * i : 5 * i + 5] for i in range(self.count)]
        rows = []
        for layer, grad in zip(by_layer, products, strict=True):
            c_out, c_in = layer[0].shape[:2]
            grad = grad.unflatten(1, (-1, c_in)).transpose(-1, -2)
            rows.append(grad.reshape(-1, c_out * c_in))
        alive = constant(self.parts.alive, rows[0].dtype, rows[0].device)
        columns = (torch.cat(rows, -1).T @ alive).split([row.shape[1] for row in rows])
        degrees = torch.cat([layer.strength for layer in self.layers], -1)
        befores = [layer.before for layer in self.layers if layer.before is not None]
        degrees = torch.cat([degrees, *befores], -1)
        by_factor = (strengths * degrees * (1 - degrees)).squeeze(1).T
        norms = [*(layer[4] for layer in by_layer), *weights[5 * self.count :]]
        by_norm = self._all_grades(by_factor).split([len(norm) for norm in norms])
        root = self.parts.first[0][0]
        result: list[Tensor] = []
        for i, layer in enumerate(by_layer):
            paths = layer[0].shape[-1]
            both = columns[i].unflatten(0, layer[0].shape[:2])
            result += [both[..., :paths], both[..., paths:], bias[i] * root]
            result += [self._all_grades(right[i].permute(2, 1, 0)), by_norm[i]]
        return [*result, *by_norm[self.count :]]

    def _all_grades(self, x: Tensor) -> Tensor:
        """The adjoint of `of_grades`."""
        result = x.new_zeros(*x.shape[:-1], self.parts.algebra.n_grades)
        result[..., :2] = x[..., :2]
        if x.shape[-1] == 3:
            result[..., -1:] = x[..., 2:]
        return result


class _Collapsed(torch.autograd.Function):
    """`run` with hand-written derivatives by the scalar part and all weights."""

    @staticmethod
    def forward(
        ctx: Any, scalar: Tensor, eta: Tensor, parts: Span, count: int, *weights: Tensor
    ) -> Tensor:
        ctx.save_for_backward(scalar, eta, *weights)
        ctx.passes = _Passes(eta, parts, count, weights)
        result: Tensor = ctx.passes.forward(scalar)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        scalar, eta, *weights = ctx.saved_tensors
        parts, count = ctx.passes.parts, ctx.passes.count
        if torch.is_grad_enabled():  # derivatives of derivatives
            y = run(scalar, eta, parts, count, weights)
            inputs = gradients(y, (scalar, *weights), grad)
            return inputs[0], None, None, None, *inputs[1:]
        by_scalar, by_weights = ctx.passes.backward(grad)
        return by_scalar, None, None, None, *by_weights


def slope(x: Tensor, phi: Tensor) -> Tensor:
    """Derivative of `normal_cdf` at x, where it is phi."""
    return x.square().mul_(3 * GELU_CUBE).add_(GELU_SCALE).mul_(phi).mul_(1 - phi)
