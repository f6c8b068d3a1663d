"""`layer_norm` as one operation, for CPUs: see `cscnn.nn.fused`, whose conventions it shares.

With s_c = |x_c| of channel c (see `smooth_norm`), m their mean over C channels and
r = 1 / (m + 1e-6)

    y_c = r x_c,

and for the derivative g of a loss by y, with D = sum over channels of g_c·x_c,

    by x_c:  r g_c - r² D / (C s_c) x_c,

where x_c has the signs of its grades' squares in spacetime, and where the second term is absent if
the norm is bounded below.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from cscnn.algebra import CliffordAlgebra
from cscnn.nn.functional import SMALLEST_SQUARE, from_planes, layer_norm, to_planes
from cscnn.nn.fused import can_fuse, dot, gradients, subtract_slope_, sum_of_squares


def fused_layer_norm(x: Tensor, algebra: CliffordAlgebra, absolute: bool = False) -> Tensor:
    """The same as `layer_norm`, by hand-written passes where they apply, see `can_fuse`.

    In spacetime these are for ``absolute`` alone.
    """
    definite = min(algebra.metric) > 0
    if not ((definite or absolute) and can_fuse(x)):
        return layer_norm(x, algebra, absolute)
    y: Tensor = _LayerNorm.apply(to_planes(x), algebra)
    return from_planes(y, like=x)


class _LayerNorm(torch.autograd.Function):
    """`layer_norm` on planes (batch, channels, blades, points)."""

    @staticmethod
    def forward(ctx: Any, planes: Tensor, algebra: CliffordAlgebra) -> Tensor:
        ctx.save_for_backward(planes)
        ctx.algebra = algebra
        return planes * _sizes(planes, algebra)[-1].unsqueeze(2)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (planes,) = ctx.saved_tensors
        algebra = ctx.algebra
        if torch.is_grad_enabled():  # derivatives of derivatives
            y = layer_norm(planes.movedim(2, -1), algebra, absolute=True)
            return *gradients(y, (planes,), grad.movedim(2, -1)), None
        squares, size, share = _sizes(planes, algebra)
        result = grad * share.unsqueeze(2)
        x = planes.transpose(1, 2)
        by_share = dot(grad.transpose(1, 2), x).sum(1, keepdim=True)
        factor = by_share.mul_(share.square_()).div_(planes.shape[1]) / size
        factor.masked_fill_(squares[-1] <= SMALLEST_SQUARE, 0)
        subtract_slope_(result.transpose(1, 2), x, factor, squares, algebra)
        return result, None


def _sizes(planes: Tensor, algebra: CliffordAlgebra) -> tuple[list[Tensor], Tensor, Tensor]:
    """Squares as of `sum_of_squares`, norms |x| and 1 / (mean of norms + 1e-6)."""
    squares = sum_of_squares(planes.transpose(1, 2), algebra)
    size = squares[-1].clamp(SMALLEST_SQUARE).sqrt_()
    return squares, size, size.mean(1, keepdim=True).add_(1e-6).reciprocal_()
