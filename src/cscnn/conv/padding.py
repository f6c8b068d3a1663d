"""Padding of one axis at a time: each with its own mode, in any number of dimensions."""

from __future__ import annotations

import torch
from torch import Tensor

from cscnn._util.torch_private import constant_for_compilers
from cscnn.kernels import stencils

MODES = ("zeros", "circular", "reflect", "replicate", "symmetric", "extrapolate")

extrapolation_weights = constant_for_compilers(stencils.extrapolation_weights)


def pad_axis(x: Tensor, axis: int, amount: int, mode: str, degree: int | None = None) -> Tensor:
    """Extend one axis by ``amount`` on both sides.

    ``reflect`` mirrors about the centre of the last cell (it is not repeated), ``symmetric`` about
    its outer face (it is repeated), as in numpy. ``extrapolate`` continues the polynomial of a
    degree, by default ``amount``, through the last points: central differences become one-sided.
    """
    size = x.shape[axis]
    if amount == 0:
        return x
    degree = amount if degree is None else degree
    check_amount(size, axis - 2, amount, mode, degree)
    if mode == "zeros":
        shape = list(x.shape)
        shape[axis] = amount
        left = right = x.new_zeros(shape)
    elif mode == "circular":
        left, right = x.narrow(axis, size - amount, amount), x.narrow(axis, 0, amount)
    elif mode == "replicate":
        shape = list(x.shape)
        shape[axis] = amount
        left, right = (x.narrow(axis, end, 1).expand(shape) for end in (0, size - 1))
    elif mode == "extrapolate":
        first, last = (x.narrow(axis, at, degree + 1) for at in (0, size - degree - 1))
        left = _extrapolated(first, axis, amount)
        right = _extrapolated(last.flip(axis), axis, amount).flip(axis)
    else:
        skip = 1 if mode == "reflect" else 0
        left = x.narrow(axis, skip, amount).flip(axis)
        right = x.narrow(axis, size - amount - skip, amount).flip(axis)
    return torch.cat([left, x, right], axis)


def _extrapolated(first: Tensor, axis: int, amount: int) -> Tensor:
    """The ``amount`` points before the first ones, on the polynomial through them."""
    weights = extrapolation_weights(amount, first.shape[axis] - 1)[::-1]  # the farthest first
    return (first.movedim(axis, -1) @ first.new_tensor(weights).T).movedim(-1, axis)


def check_amount(size: int, axis: int, amount: int, mode: str, degree: int | None = None) -> None:
    """Raise unless a grid axis of this size has enough points to pad from."""
    least = {"reflect": amount + 1, "extrapolate": (degree or amount) + 1}.get(mode, amount)
    if mode not in ("zeros", "replicate") and size < least:
        raise ValueError(
            f"{mode} padding by {amount} needs at least {least} points, grid axis {axis} has {size}"
        )


def pad(x: Tensor, amounts: tuple[int, ...], modes: tuple[str, ...]) -> Tensor:
    """Extend the grid axes of x (batch, channels, *grid)."""
    for axis, (amount, mode) in enumerate(zip(amounts, modes, strict=True)):
        x = pad_axis(x, axis + 2, amount, mode)
    return x
