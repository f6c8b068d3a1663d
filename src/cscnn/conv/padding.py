"""Padding of one axis at a time: each with its own mode, in any number of dimensions.

Two modes are walls, at which a field of multivectors goes on as in a mirror. A mirror g with normal
e_i maps a field f to ρ(g) f(g^-1 x): it negates the blades that contain e_i.

    "wall"       f = +ρ(g) f∘g: n⌟f = 0 on the wall. No flow passes it. Blades with the normal are
                 odd, the others even.
    "conductor"  f = -ρ(g) f∘g: n∧f = 0 on the wall, as for the electric vector (no tangential
                 part) and the magnetic bivector (no normal field) at a perfect conductor. Blades
                 with the normal are even, the others odd.

The other modes treat all components alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import torch
from torch import Tensor

from cscnn._util.checks import check_choice
from cscnn._util.torch_private import constant_for_compilers
from cscnn.algebra.constants import constant
from cscnn.algebra.tables import reflection_signs
from cscnn.algebra.tensors import size_of
from cscnn.kernels import stencils

WALLS = ("wall", "conductor")
COMPONENT_MODES = ("zeros", "circular", "reflect", "replicate", "symmetric", "extrapolate")
MODES = (*COMPONENT_MODES, *WALLS)

extrapolation_weights = constant_for_compilers(stencils.extrapolation_weights)


def check_grid(
    grid: Sequence[int], kernel_size: Sequence[int], padding: Sequence[int], modes: Sequence[str]
) -> None:
    """Raise unless a grid can be padded and is large enough for a kernel."""
    small = []
    for axis, (size, taps, amount) in enumerate(zip(grid, kernel_size, padding, strict=True)):
        if amount:
            check_amount(size, axis, amount, modes[axis])
        if size + 2 * amount < taps:
            small.append(axis)
    if small:
        raise ValueError(
            f"grid {tuple(grid)} is smaller than the kernel {tuple(kernel_size)} along axes "
            f"{small} even after padding by {tuple(padding)}"
        )


def pad_axis(
    x: Tensor, axis: int, amount: int, mode: str, degree: int | None = None, blades: int = 0
) -> Tensor:
    """Extend one axis of (batch, channels, *grid) by ``amount`` on both sides.

    At walls the channels are those of multivectors, blade after blade: ``blades`` of them, by
    default 2^dim. ``reflect`` mirrors about
    the centre of the last cell (it is not repeated), ``symmetric`` about its outer face (it is
    repeated), as in numpy. ``extrapolate`` continues the polynomial of a degree, by default
    ``amount``, through the last points: central differences become one-sided.
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
    if mode in WALLS:
        left, right = (mirror_image(side, axis, mode, blades) for side in (left, right))
    return torch.cat([left, x, right], axis)


def _extrapolated(first: Tensor, axis: int, amount: int) -> Tensor:
    """The ``amount`` points before the first ones, on the polynomial through them."""
    weights = extrapolation_weights(amount, first.shape[axis] - 1)[::-1]  # the farthest first
    return (first.movedim(axis, -1) @ first.new_tensor(weights).T).movedim(-1, axis)


def mirror_image(x: Tensor, axis: int, mode: str, blades: int = 0) -> Tensor:
    """ρ of the mirror at a wall, of multivectors (batch, channels·blades, *grid)."""
    dim = x.dim() - 2
    blades = blades or 2**dim
    if x.shape[1] % blades:
        raise ValueError(
            f"padding mode {mode!r} is for multivectors of {blades} components per channel, got "
            f"{x.shape[1]} components in all"
        )
    signs = constant(mirror_signs(dim, axis - 2, mode, blades), x.dtype, x.device)
    signs = signs.reshape(-1, *(1,) * dim)
    return (x.unflatten(1, (-1, len(signs))) * signs).flatten(1, 2)


def is_odd(blade: tuple[int, ...], axis: int, mode: str) -> bool:
    """Whether the component of a blade is odd at the walls of an axis."""
    check_choice("a wall", mode, WALLS)
    return (axis in blade) == (mode == "wall")


@constant_for_compilers
@cache
def mirror_signs(dim: int, axis: int, mode: str, blades: int) -> tuple[int, ...]:
    """Of the mirror image of each blade, and of tensors if there are more of them than 2^dim."""
    check_choice("a wall", mode, WALLS)
    if blades not in (2**dim, 2**dim + size_of(dim)):
        raise ValueError(f"multivectors of {dim} dimensions have no {blades} components")
    factor = 1 if mode == "wall" else -1
    return tuple(factor * sign for sign in reflection_signs(dim, blades > 2**dim, axis))


def check_amount(size: int, axis: int, amount: int, mode: str, degree: int | None = None) -> None:
    """Raise unless a grid axis of this size has enough points to pad from."""
    least = {"reflect": amount + 1, "extrapolate": (degree or amount) + 1}.get(mode, amount)
    if mode not in ("zeros", "replicate") and size < least:
        raise ValueError(
            f"{mode} padding by {amount} needs at least {least} points, grid axis {axis} has {size}"
        )


def pad(x: Tensor, amounts: tuple[int, ...], modes: tuple[str, ...], blades: int = 0) -> Tensor:
    """Extend the grid axes of x (batch, channels, *grid), see `pad_axis`."""
    for axis, (amount, mode) in enumerate(zip(amounts, modes, strict=True)):
        x = pad_axis(x, axis + 2, amount, mode, blades=blades)
    return x
