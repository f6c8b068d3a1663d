"""Direct convolution in any number of dimensions, on top of torch's one to three."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import conv1d, conv2d, conv3d


def conv_nd(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
) -> Tensor:
    """Zero-padded cross-correlation of x (batch, c_in, *grid) with weight (c_out, c_in, *kernel).

    Beyond three grid axes the first one becomes a sum over its kernel taps, each a convolution of
    one dimension less with the remaining slices as its batch.
    """
    d = weight.dim() - 2
    if d <= 3:
        return (conv1d, conv2d, conv3d)[d - 1](x, weight, bias, stride, padding)
    batch, size, taps = x.shape[0], x.shape[2], weight.shape[2]
    out_size = (size + 2 * padding[0] - taps) // stride[0] + 1
    slices = torch.nn.functional.pad(x.movedim(2, 1), (*[0] * (2 * d), padding[0], padding[0]))
    total: Tensor | None = None
    for tap in range(taps):
        chosen = slices[:, tap : tap + (out_size - 1) * stride[0] + 1 : stride[0]]
        part = conv_nd(chosen.flatten(0, 1), weight[:, :, tap], None, stride[1:], padding[1:])
        total = part if total is None else total + part
    assert total is not None
    y = total.unflatten(0, (batch, out_size)).movedim(1, 2)
    return y if bias is None else y + bias.to(y.dtype).reshape(-1, *(1,) * d)
