"""`cscnn.kernels.collapse` with its derivatives by hand.

The number of calls is the cost, and torch's own derivatives make several times as many. On CPUs the
calls are numpy's as long as the arrays are small: they cost a third of those of torch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cscnn._util.torch_private import (
    dispatch_mode_active,
    exporting,
    forward_derivatives_active,
    tracing,
)
from cscnn.kernels.collapse import (
    MIN_WIDTH_SQUARED,
    SMALLEST,
    cdf_argument,
    divisor,
    inputs_of,
    layers_of,
    mask_widths,
    outputs_of,
    run,
    shell,
    spread,
    terms_of,
)
from cscnn.kernels.span import Span, Tables
from cscnn.nn.functional import GELU_CUBE, GELU_SCALE
from cscnn.nn.fused import gradients

#: Multiplications by one part of a layer up to which numpy is faster than torch. Beyond, it would
#: also start threads beside those of torch.
LARGEST_FOR_NUMPY = 1 << 16


def collapsed(
    eta: Tensor,
    parts: Span,
    position_width: Tensor,
    mask_width: Tensor | None,
    weights: Sequence[Tensor],
) -> Tensor:
    """`run`, by hand where that applies."""
    if can_fuse(eta):
        result: Tensor = _Collapsed.apply(eta, parts, position_width, mask_width, *weights)
        return result
    result = run(eta, parts, position_width, mask_width, weights)
    return result


def can_fuse(eta: Tensor) -> bool:
    """Whether the hand-written derivatives apply: in full precision, without transforms."""
    if tracing() or exporting() or dispatch_mode_active() or forward_derivatives_active():
        return False
    if eta.is_meta or eta.requires_grad or eta.dtype not in (torch.float32, torch.float64):
        return False
    return not torch.is_autocast_enabled(eta.device.type)


class Passes:
    """Forward and backward pass on arrays of torch or of numpy; arguments as for `run`."""

    def __init__(
        self,
        eta: Any,
        parts: Span,
        position_width: Any,
        mask_width: Any | None,
        weights: Sequence[Any],
    ):
        self.eta, self.weights = eta, weights
        self.position_width, self.mask_width = position_width, mask_width
        self.tables = tables = parts.tables(eta)
        self.factors, self.sizes = tables.at(eta)
        self.layers = layers_of(tables, weights)
        #: Of each layer: x before the norm, its divisor, x after it, Φ, x, right factors before
        #: and after their norm, their divisor, terms. Not the result, whose graph holds this.
        self.kept: list[tuple[Any, ...]] = []
        self.shell = shell(tables, eta, position_width)

    def forward(self) -> Any:
        """The network, once; what `backward` needs is kept."""
        tables = self.tables
        x = inputs_of(tables, self.shell)
        for layer in self.layers:
            before: tuple[Any, ...] = (x, x, x, x)
            if layer.before is not None:
                below = divisor(tables, x, layer.before, self.sizes)
                normed = x / below
                phi = tables.sigmoid(cdf_argument(normed[:1]))
                before, x = (x, below, normed, phi), normed * phi
            raw = x @ layer.right
            below = divisor(tables, raw, layer.strength, self.sizes)
            right = raw / below
            terms = terms_of(tables, x, right, self.factors)
            self.kept.append((*before, x, raw, right, below, terms))
            x = terms @ layer.products + layer.bias
        outputs = outputs_of(x, self.mask_width)
        if self.mask_width is None:
            return outputs
        self.outputs = outputs
        self.widths = mask_widths(tables, self.mask_width)
        self.mask = shell(tables, self.eta, self.widths)
        return outputs * self.mask

    def backward(self, grad: Any) -> list[Any]:
        """Derivatives by both widths and all weights; None by a mask that there is not."""
        by_mask = None
        if self.mask_width is not None:
            slope = shell_slope(self.tables, self.eta, self.widths, self.mask)
            by_mask = (grad * self.outputs * slope).sum(-1) @ self.tables.select.T
            grad = grad * self.mask
        pairs = grad.shape[0] * grad.shape[1]
        grad = grad.reshape(pairs, *grad.shape[2:]).swapaxes(0, 1).swapaxes(1, 2)
        by_layers: list[list[Any]] = []
        by_befores: list[Any] = []
        for layer, kept, weights in zip(
            reversed(self.layers), reversed(self.kept), self._by_layer()[::-1], strict=True
        ):
            first, below_first, normed, phi, x, raw, right, below, terms = kept
            by_products, by_bias = terms.swapaxes(1, 2) @ grad, grad[0].sum(0)
            by_terms = grad @ layer.products.swapaxes(1, 2)
            by_left, by_part = self._by_terms(by_terms, x, right)
            by_raw, by_strength = self._norm(by_part, raw, right, below, layer.strength)
            by_right = x.swapaxes(1, 2) @ by_raw
            grad = by_left + by_raw @ layer.right.swapaxes(1, 2)
            by_layers.append(self._by_weights(weights, by_products, by_bias, by_right, by_strength))
            if layer.before is not None:  # x = Φ(y0) y
                by_scalar = (grad * normed).sum(0) * cdf_slope(normed[0], phi[0])
                grad = grad * phi
                grad[0] += by_scalar
                grad, by_before = self._norm(grad, first, normed, below_first, layer.before)
                by_befores.append(self._by_degrees(by_before))
        slope = shell_slope(self.tables, self.eta, self.position_width, self.shell)
        by_width = (grad[0, :, 0] * slope).sum(-1).reshape(1)
        by_weights = [g for layer in by_layers[::-1] for g in layer]
        return [by_width, by_mask, *by_weights, *by_befores[::-1]]

    def _by_layer(self) -> list[Sequence[Any]]:
        return [self.weights[5 * i : 5 * i + 5] for i in range(len(self.layers))]

    def _by_terms(self, grad: Any, x: Any, right: Any) -> tuple[Any, Any]:
        """Derivatives of `terms_of` by the parts and by the right factors."""
        tables, count = self.tables, len(self.factors)
        parts, points, channels = x.shape
        grad = grad.reshape(parts, points, count // parts + 1, channels).swapaxes(1, 2)
        by_products = grad[:, :-1].reshape(count, points, channels) * self.factors
        by_left = spread(tables.left.T, by_products * spread(tables.right, right))
        by_right = spread(tables.right.T, by_products * spread(tables.left, x))
        return by_left + grad[:, -1], by_right

    def _norm(self, grad: Any, x: Any, y: Any, below: Any, strength: Any) -> tuple[Any, Any]:
        """Derivatives of y = x / divisor, by x and by the argument of the strength's sigmoid."""
        grad = grad / below
        signed = x * self.sizes
        size = abs(signed)
        by_below = -(grad * y)
        excess = self.tables.at_least(size, SMALLEST) - 1
        by_strength = (by_below * excess).sum(1) * (strength * (1 - strength))[:, 0]
        inside = self.tables.xp.sign(signed) * (size >= SMALLEST)
        return grad + by_below * (strength * self.sizes) * inside, by_strength

    def _by_degrees(self, grad: Any) -> Any:
        """From the parts (parts, channels) to the factors of all grades, (channels, grades)."""
        return grad.T @ self.tables.select.T

    def _by_weights(
        self, weights: Sequence[Any], products: Any, bias: Any, right: Any, strength: Any
    ) -> list[Any]:
        """Derivatives by the weights of a layer, from those by what was selected."""
        tables, shape = self.tables, weights[0].shape
        rows = products.reshape(len(products), -1, shape[1], shape[0]).swapaxes(-1, -2)
        columns = rows.reshape(len(tables.alive), -1).T @ tables.alive
        both = columns.reshape(*shape[:2], -1)
        return [
            both[..., : shape[2]],
            both[..., shape[2] :],
            bias * tables.first[0],
            right.swapaxes(0, 2) @ tables.select.T,
            self._by_degrees(strength),
        ]


def shell_slope(tables: Tables, eta: Any, width: Any, value: Any) -> Any:
    """Derivative of `shell` by the width, where it is ``value``."""
    squared = 2 * width * width
    bounded = tables.at_least(squared, MIN_WIDTH_SQUARED)
    return value * abs(eta) * (4 * width * (squared >= MIN_WIDTH_SQUARED) / (bounded * bounded))


def cdf_slope(x: Any, phi: Any) -> Any:
    """Derivative of `normal_cdf` at x, where it is phi."""
    return (x * x * (3 * GELU_CUBE) + GELU_SCALE) * phi * (1 - phi)


class _Collapsed(torch.autograd.Function):
    """`run` with hand-written derivatives by the widths and all weights."""

    @staticmethod
    def forward(
        ctx: Any,
        eta: Tensor,
        parts: Span,
        position_width: Tensor,
        mask_width: Tensor | None,
        *weights: Tensor,
    ) -> Tensor:
        inputs = (position_width, mask_width, *weights)
        ctx.save_for_backward(eta, *inputs)
        ctx.parts = parts
        pairs = max(math.prod(w.shape[:2]) for w in weights if w.dim() == 3)
        ctx.numpy = eta.is_cpu and len(eta) * pairs <= LARGEST_FOR_NUMPY
        arrays = [_array(t) for t in (eta, *inputs)] if ctx.numpy else [eta, *inputs]
        with np.errstate(all="ignore"):  # weights may diverge: torch does not warn either
            ctx.passes = Passes(arrays[0], parts, arrays[1], arrays[2], arrays[3:])
            result = ctx.passes.forward()
        return torch.from_numpy(result) if ctx.numpy else result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        eta, *inputs = ctx.saved_tensors
        if torch.is_grad_enabled():  # derivatives of derivatives
            y = run(eta, ctx.parts, inputs[0], inputs[1], inputs[2:])
            given = tuple(t for t in inputs if t is not None)
            found = iter(gradients(y, given, grad))
            return None, None, *(None if t is None else next(found) for t in inputs)
        if not ctx.numpy:
            return None, None, *ctx.passes.backward(grad)
        with np.errstate(all="ignore"):
            arrays = ctx.passes.backward(_array(grad))
        return None, None, *(None if a is None else torch.from_numpy(a) for a in arrays)


def _array(t: Tensor | None) -> Any:
    return None if t is None else t.detach().numpy()
