"""Convolution by derivatives as an operator of torch: differentiable, opaque to compilers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from cscnn.conv.derivatives.axes import LONGEST
from cscnn.conv.derivatives.engine import convolve, gradients
from cscnn.conv.derivatives.plan import Differences
from cscnn.conv.direct import conv_nd
from cscnn.conv.gradients import register_gradients
from cscnn.conv.padding import MODES, WALLS, pad
from cscnn.conv.precision import full_precision
from cscnn.kernels.differential import DifferentialKernel


def derivative_conv(
    x: Tensor,
    kernel: DifferentialKernel,
    bias: Tensor | None,
    padding: tuple[int, ...],
    padding_mode: tuple[str, ...],
) -> Tensor:
    """Convolution with a differential kernel, differentiable in field, weights and bias.

    Args:
        x: (batch, c_in·n, *grid), flattened channels and blades.
        kernel: the kernel.
        bias: (c_out·n,) or None.
        padding, padding_mode: of `CliffordSteerableConv`, for each axis.

    Returns:
        (batch, c_out·n, *grid)
    """
    axes = zip(padding, padding_mode, x.shape[2:], strict=True)
    # one matrix serves all components, which differ at walls
    outside = tuple(p if mode in WALLS or size > LONGEST else 0 for p, mode, size in axes)
    with full_precision(x.device.type):
        weights = kernel.operator_weights()
    return operator(
        pad(x, outside, padding_mode, kernel.algebra.n_blades),
        weights,
        bias,
        kernel.algebra.metric,
        kernel.algebra.symmetric,
        kernel.group,
        kernel.order,
        kernel.kernel_size,
        kernel.steps,
        [p - o for p, o in zip(padding, outside, strict=True)],
        [MODES.index(mode) for mode in padding_mode],
    )


def _differences(
    metric: Sequence[int],
    symmetric: bool,
    group: str,
    order: int,
    kernel_size: Sequence[int],
    steps: Sequence[float],
    padding: Sequence[int],
    modes: Sequence[int],
) -> Differences:
    """The options of the operator, which are lists."""
    sizes = (tuple(v) for v in (kernel_size, steps, padding, modes))
    return Differences(tuple(metric), symmetric, group, order, *sizes)  # type: ignore[arg-type]


@torch.library.custom_op("cscnn::derivative_conv", mutates_args=())
def operator(
    x: Tensor,
    weights: Tensor,
    bias: Tensor | None,
    metric: Sequence[int],
    symmetric: bool,
    group: str,
    order: int,
    kernel_size: Sequence[int],
    steps: Sequence[float],
    padding: Sequence[int],
    modes: Sequence[int],
) -> Tensor:
    options = (metric, symmetric, group, order, kernel_size, steps, padding, modes)
    return convolve(x, weights, bias, _differences(*options))


@torch.library.custom_op("cscnn::derivative_conv_backward", mutates_args=())
def _operator_backward(
    g: Tensor,
    x: Tensor,
    weights: Tensor,
    metric: Sequence[int],
    symmetric: bool,
    group: str,
    order: int,
    kernel_size: Sequence[int],
    steps: Sequence[float],
    padding: Sequence[int],
    modes: Sequence[int],
    needs_x: bool,
    needs_weights: bool,
) -> tuple[Tensor, Tensor]:
    options = (metric, symmetric, group, order, kernel_size, steps, padding, modes)
    return gradients(g, x, weights, _differences(*options), needs_x, needs_weights)


@operator.register_fake
def _(x, weights, bias, metric, symmetric, group, order, kernel_size, steps, padding, modes):  # type: ignore[no-untyped-def]
    sizes = zip(x.shape[2:], kernel_size, padding, strict=True)
    grid = [n + 2 * (p - k // 2) for n, k, p in sizes]
    channels = x.shape[1] // weights.shape[1] * weights.shape[0]
    return x.new_empty(x.shape[0], channels, *grid)


def _reference(x: Tensor, weights: Tensor, *options: Any) -> Tensor:
    """The same by direct convolution, for gradients of gradients."""
    differences = _differences(*options)
    blades = x.shape[1] // weights.shape[1]
    x = pad(x, differences.padding, tuple(MODES[m] for m in differences.modes), blades)
    d = len(differences.metric)
    return conv_nd(x, differences.taps(weights).to(x.dtype), None, (1,) * d, (0,) * d)


register_gradients(operator, _operator_backward, _reference)
