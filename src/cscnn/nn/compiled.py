"""Layer norm, gate and product in the shapes of which compilers make fast loops.

A compiler stores what it does not fuse in the order of the axes that it sees. With the blades last
their loops would run over a few numbers, each time from another place. Here blades come before
channels and points: all loops run over points, which are side by side in memory.
"""

from __future__ import annotations

import torch
from torch import Tensor

from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.bilinear import unrolled_planes
from cscnn.algebra.constants import constant
from cscnn.nn.functional import normal_cdf, scale_of, smooth_root, widened


def normed_gate_by_planes(
    x: Tensor,
    shortcut: Tensor | None,
    mix: Tensor | None,
    weight: Tensor | None,
    algebra: CliffordAlgebra,
    norm: bool,
) -> Tensor:
    """`cscnn.nn.fused.plain`, of fields (batch, channels, *space, blades) with gates.

    Args:
        x, shortcut, mix, weight, algebra: see `cscnn.nn.fused.normed_gate`.
        norm: normalise first.
    """
    dtype, u = x.dtype, _to_planes(x)
    if norm:
        size = _size(u, algebra).mean(1, keepdim=True)  # (batch, 1, points)
        u = (u / (size + 1e-6).unsqueeze(1)).to(dtype)
    if shortcut is not None:
        u = _to_planes(shortcut) + u
    y = u * normal_cdf(widened(u[:, :1])).to(dtype)
    if mix is not None and weight is not None:
        grades = list(algebra.grades)
        mixed = u
        if mix.shape[1] > mix.shape[0]:
            mixed = torch.cat([u, algebra.undual(u.movedim(1, -1)).movedim(-1, 1)], 2)
        m = mix[..., grades].permute(2, 0, 1) @ mixed
        m = (m / (1 + _size(m, algebra)).unsqueeze(1)).to(dtype)
        y = y + weight[:, grades].T.unsqueeze(-1) * _product(u, m, algebra)
    y = y.transpose(1, 2).contiguous()  # the order that convolutions take
    # A copy that costs nothing once it is fused: views have guards on what they are views of.
    return y.unflatten(3, x.shape[2:-1]).movedim(2, -1).clone()


def _to_planes(x: Tensor) -> Tensor:
    """(batch, channels, *space, blades) -> (batch, blades, channels, points)"""
    return x.movedim(-1, 1).flatten(3)


def _size(x: Tensor, algebra: CliffordAlgebra) -> Tensor:
    """|x|, see `smooth_norm`: (batch, blades, channels, points) -> (batch, channels, points)."""
    x = widened(x)
    scale = scale_of(x)
    form = constant(algebra.form, x.dtype, x.device)[:, None, None]
    squares = x * (scale.square() * form) * x
    if min(algebra.metric) > 0:
        return smooth_root(squares.sum(1), scale)
    parts = [grade.sum(1).abs() for grade in squares.split(algebra.grade_sizes, 1)]
    return smooth_root(torch.stack(parts).sum(0), scale)


def _product(x: Tensor, y: Tensor, algebra: CliffordAlgebra) -> Tensor:
    """The geometric product of fields (batch, blades, channels, points)."""
    table = algebra.tables["geometric"]
    return torch.stack(unrolled_planes(x.unbind(1), y.unbind(1), table, (0, 1, 2)), 1)
