"""Direct convolution in any number of dimensions, on top of torch's one to three."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import conv1d, conv2d, conv3d

from cscnn._util.torch_private import exporting, tracing

#: Torch convolves single samples of at most this size (channels times the first two axes) by
#: another algorithm in three dimensions, three to six times slower.
SMALL_SAMPLE = 20480


def conv_nd(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    groups: int = 1,
) -> Tensor:
    """Zero-padded cross-correlation of x (batch, c_in, *grid) with weight (c_out, c_in, *kernel).

    Beyond three grid axes the first one becomes a sum over its kernel taps, each a convolution of
    one dimension less with the remaining slices as its batch. With groups of channels, as torch has
    them, the weight is (c_out, c_in / groups, *kernel).
    """
    d = weight.dim() - 2
    if d <= 3:
        if groups == 1 and _slow_alone(x, weight, stride):
            return _in_two(x, weight, bias, padding)
        conv = (conv1d, conv2d, conv3d)[d - 1]
        return conv(x, weight, bias, stride, padding, groups=groups)
    batch, size, taps = x.shape[0], x.shape[2], weight.shape[2]
    out_size = (size + 2 * padding[0] - taps) // stride[0] + 1
    slices = torch.nn.functional.pad(x.movedim(2, 1), (*[0] * (2 * d), padding[0], padding[0]))
    total: Tensor | None = None
    for tap in range(taps):
        chosen = slices[:, tap : tap + (out_size - 1) * stride[0] + 1 : stride[0]]
        taken = chosen.flatten(0, 1)
        part = conv_nd(taken, weight[:, :, tap], None, stride[1:], padding[1:], groups)
        total = part if total is None else total + part
    assert total is not None
    y = total.unflatten(0, (batch, out_size)).movedim(1, 2)
    return y if bias is None else y + bias.to(y.dtype).reshape(-1, *(1,) * d)


def _slow_alone(x: Tensor, weight: Tensor, stride: tuple[int, ...]) -> bool:
    """Whether torch is slow because the batch is one small sample, see `SMALL_SAMPLE`."""
    return (
        weight.dim() == 5
        and not (tracing() or exporting())
        and x.is_cpu
        and x.dtype == torch.float32
        and x.shape[0] == 1
        and math.prod(x.shape[1:4]) <= SMALL_SAMPLE
        and 1 < weight.shape[2] < x.shape[2]
        and min(weight.shape[3:]) <= 3
        and set(stride) == {1}
    )


def _in_two(x: Tensor, weight: Tensor, bias: Tensor | None, padding: tuple[int, ...]) -> Tensor:
    """`conv_nd` of one sample as a batch of two overlapping halves of its first axis."""
    first, *others = padding
    x = torch.nn.functional.pad(x, (0, 0, 0, 0, first, first))
    out = x.shape[2] - weight.shape[2] + 1
    half = (out + 1) // 2
    length = half + weight.shape[2] - 1
    halves = torch.cat([x[:, :, :length], x[:, :, out - half :]])
    y = conv3d(halves, weight, bias, 1, (0, *others))
    return torch.cat([y[:1], y[1:, :, 2 * half - out :]], 2)


def conv_per_sample(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
) -> Tensor:
    """`conv_nd` of each sample with a weight of its own: one convolution in groups of channels.

    Args:
        x: (batch, c_in, *grid).
        weight: (batch, c_out, c_in, *kernel).
        bias: (c_out,), the same for all samples, or None.
        stride, padding: as for `conv_nd`.
    """
    batch = x.shape[0]
    if batch == 0:  # torch knows no convolution in no groups
        return conv_nd(x, weight.new_zeros(weight.shape[1:]), bias, stride, padding)
    every = None if bias is None else bias.repeat(batch)
    joined = x.flatten(0, 1).unsqueeze(0)
    y = conv_nd(joined, weight.flatten(0, 1), every, stride, padding, groups=batch)
    return y.unflatten(1, (batch, -1)).squeeze(0)
