"""Spectral convolution as an operator of torch: differentiable, and opaque to ``torch.compile``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from cscnn.conv.direct import conv_nd
from cscnn.conv.gradients import register_gradients
from cscnn.conv.padding import pad
from cscnn.conv.sizes import ConvSizes
from cscnn.conv.spectral.cost import plan_tiles
from cscnn.conv.spectral.engine import convolve, gradients, kernel_matrices
from cscnn.conv.spectral.overlap import Tiling, make_tiling


@torch.library.custom_op("cscnn::spectral_conv", mutates_args=())
def spectral_conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    shift: Sequence[int],
    circular: Sequence[bool],
    counts: Sequence[int],
    grades: Sequence[int],
    parity: bool,
) -> Tensor:
    """y[o] = bias + sum_v K(v) x[o + shift + v], differentiable in x, weight and bias.

    Args:
        x: (batch, c_in·n, *grid), flattened channels and blades.
        weight: (c_out·n, c_in·n, *kernel), odd kernel sizes.
        bias: (c_out·n,) or None.
        shift: half the kernel minus the zero padding, for each axis.
        circular: whether the axis is periodic instead.
        counts: number of tiles along each axis; empty to plan them for the shapes at hand.
        grades: number of blades of each grade, n in all.
        parity: whether K(-v)[C, B] = (-1)^(|C| + |B|) K(v)[C, B], so that the matrices are real.
    """
    tiling = _tiling(x, weight, shift, circular, counts, grades, parity)
    return convolve(x, kernel_matrices(weight, tiling), bias, tiling)


@torch.library.custom_op("cscnn::spectral_conv_backward", mutates_args=())
def _spectral_conv_backward(
    g: Tensor,
    x: Tensor,
    weight: Tensor,
    shift: Sequence[int],
    circular: Sequence[bool],
    counts: Sequence[int],
    grades: Sequence[int],
    parity: bool,
    needs_x: bool,
    needs_weight: bool,
) -> tuple[Tensor, Tensor]:
    tiling = _tiling(x, weight, shift, circular, counts, grades, parity)
    return gradients(g, x, weight, tiling, needs_x, needs_weight)


@spectral_conv.register_fake
def _(x, weight, bias, shift, circular, counts, grades, parity):  # type: ignore[no-untyped-def]
    grid = [n if c else n - 2 * s for n, s, c in zip(x.shape[2:], shift, circular, strict=True)]
    return x.new_empty(x.shape[0], weight.shape[0], *grid)


def _tiling(
    x: Tensor,
    weight: Tensor,
    shift: Sequence[int],
    circular: Sequence[bool],
    counts: Sequence[int],
    grades: Sequence[int],
    parity: bool,
) -> Tiling:
    grid, kernel = tuple(x.shape[2:]), tuple(weight.shape[2:])
    if not counts:
        sizes = ConvSizes(
            grid,
            kernel,
            tuple(shift),
            tuple(circular),
            batch=x.shape[0],
            c_in=x.shape[1],
            c_out=weight.shape[0],
            parity=parity,
            itemsize=max(4, x.element_size()),
            device=x.device.type,
        )
        planned = plan_tiles(sizes, "spectral")
        assert planned is not None
        counts = planned
    return make_tiling(grid, kernel, shift, circular, counts, grades, parity)


def _reference(
    x: Tensor, weight: Tensor, shift: Sequence[int], circular: Sequence[bool], *_options: Any
) -> Tensor:
    """The same by direct convolution, for gradients of gradients."""
    halves = [k // 2 for k in weight.shape[2:]]
    wrapped = tuple(h if c else 0 for h, c in zip(halves, circular, strict=True))
    zeros = tuple(0 if c else h - s for h, c, s in zip(halves, circular, shift, strict=True))
    x = pad(x, wrapped, ("circular",) * len(wrapped))
    return conv_nd(x, weight.to(x.dtype), None, (1,) * len(zeros), zeros)


register_gradients(spectral_conv, _spectral_conv_backward, _reference)
