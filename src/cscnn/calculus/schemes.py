"""How derivatives are taken on a grid: by finite differences or by Fourier series.

Each scheme turns ∂_i into a linear map along axis i alone (unless it is staggered). Maps along
different axes commute, to rounding: what follows from ∂_i ∂_j = ∂_j ∂_i, such as ∇∧(∇∧f) = 0, holds
on the grid whatever the boundaries.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from cscnn._util.checks import check_choice, check_int, check_positive
from cscnn._util.torch_private import constant_for_compilers
from cscnn.conv.options import per_axis
from cscnn.conv.padding import MODES, WALLS, check_amount, pad_axis
from cscnn.kernels import stencils
from cscnn.kernels.stencils import radius_for

central_weights = constant_for_compilers(stencils.central_weights)

#: Mean of a point and its neighbours: what averaging from faces to centres does, twice.
NEIGHBOURS = (0.25, 0.5, 0.25)


class Scheme(Protocol):
    """Partial derivatives of fields on a grid."""

    def partial(self, f: Tensor, axis: int, dim: int, order: int = 1) -> Tensor:
        """The derivative of an order along one axis of the grid, of the shape of f.

        Args:
            f: (..., *grid, components).
            axis: of the grid, from 0.
            dim: number of axes of the grid.
            order: at least 1.
        """


@dataclass(frozen=True)
class Differences:
    """Central differences; their error on smooth fields falls like spacing^accuracy.

    Args:
        spacing: distance of neighbouring points, one for all axes or one per axis.
        accuracy: even.
        boundary: how the field goes on beyond the grid, one for all axes or one per axis.
            ``"extrapolate"``: one-sided differences of the same accuracy. ``"circular"``: the axis
            is periodic. ``"zeros"``, ``"reflect"``, ``"replicate"``, ``"symmetric"``: as in
            convolutions; all components alike, the normal one of a vector is not negated.
            ``"wall"``, ``"conductor"``: as a mirror image, see `mirror`; for operators of
            multivectors, since it depends on the blade.
        staggered: also average over the neighbours along the other axes, (1, 2, 1)/4. For fields
            that were computed on faces or edges of cells (MAC, Yee) and stored as averages at the
            centres: where their divergence on the cells is zero, this one is zero to rounding,
            except beside a boundary that is neither circular nor a wall. There these differences
            do not commute either.

    Example:
        >>> import torch
        >>> x = torch.linspace(0, 1, 11, dtype=torch.float64)
        >>> square = x.square()[:, None]  # (points, components)
        >>> Differences(spacing=0.1).partial(square, axis=0, dim=1)[[0, 5, 10], 0]
        tensor([0.0000, 1.0000, 2.0000], dtype=torch.float64)
    """

    spacing: float | Sequence[float] = 1.0
    accuracy: int = 2
    boundary: str | Sequence[str] = "extrapolate"
    staggered: bool = False

    def __post_init__(self) -> None:
        check_positive(spacing=self.spacing)
        radius_for(1, self.accuracy)
        for mode in (self.boundary,) if isinstance(self.boundary, str) else self.boundary:
            check_choice("boundary", mode, MODES)

    @property
    def weights(self) -> tuple[float, ...]:
        """Of the neighbours at 1, 2, ... in the first derivative, for a spacing of one."""
        radius = radius_for(1, self.accuracy)
        return central_weights(1, radius)[radius + 1 :]

    def partial(self, f: Tensor, axis: int, dim: int, order: int = 1) -> Tensor:
        modes = _without_walls(self.boundary, dim)
        step = per_axis("spacing", self.spacing, dim)[axis]
        radius = radius_for(check_int("order", order, low=1), self.accuracy)
        weights = tuple(w / step**order for w in central_weights(order, radius))
        degree = self.accuracy + order - 1  # so that one-sided differences are as accurate
        first = grid_axis(f, 0, dim)
        y = _weighted(f, weights, first, axis, modes[axis], degree)
        for other in range(dim) if self.staggered else ():
            if other != axis:
                y = _weighted(y, NEIGHBOURS, first, other, modes[other], 1)
        return y


@dataclass(frozen=True)
class Spectral:
    """Derivatives of the Fourier series: for periodic axes, exact for resolved fields.

    The highest frequency of an even number of points, the Nyquist mode, has no odd derivative on
    the grid: it is set to zero. Even derivatives keep it.

    Args:
        spacing: distance of neighbouring points, one for all axes or one per axis. The period is
            spacing times the number of points.
        boundary: ``"circular"``, or ``"wall"``, ``"conductor"``: the series of the mirrored field,
            cosines and sines. One for all axes or one per axis.
    """

    spacing: float | Sequence[float] = 1.0
    boundary: str | Sequence[str] = "circular"

    def __post_init__(self) -> None:
        check_positive(spacing=self.spacing)
        for mode in (self.boundary,) if isinstance(self.boundary, str) else self.boundary:
            check_choice("boundary", mode, ("circular", *WALLS))

    def partial(self, f: Tensor, axis: int, dim: int, order: int = 1) -> Tensor:
        _without_walls(self.boundary, dim)
        step = per_axis("spacing", self.spacing, dim)[axis]
        place = grid_axis(f, axis, dim)
        size = f.shape[place]
        k = torch.fft.rfftfreq(size, step / (2 * math.pi), dtype=f.dtype, device=f.device)
        if check_int("order", order, low=1) % 2 and size % 2 == 0:
            k = torch.cat([k[:-1], k.new_zeros(1)])
        factor = k**order * (1, 1j, -1, -1j)[order % 4]
        factor = factor.reshape(-1, *(1,) * (f.dim() - 1 - place))
        return torch.fft.irfft(torch.fft.rfft(f, dim=place) * factor, n=size, dim=place)


def _without_walls(boundary: str | Sequence[str], dim: int) -> tuple[str, ...]:
    """The boundary of each axis, if components do not matter."""
    modes = per_axis("boundary", boundary, dim)
    if walls := [mode for mode in modes if mode in WALLS]:
        raise ValueError(
            f"at boundary={walls[0]!r} a derivative depends on the blade: use the operators of "
            "cscnn.calculus, or `mirror` the field and take boundary='circular'"
        )
    return modes


def grid_axis(f: Tensor, axis: int, dim: int) -> int:
    """The axis of f (..., *grid, components) that is axis ``axis`` of the grid."""
    return f.dim() - 1 - dim + axis


def _weighted(
    f: Tensor, weights: Sequence[float], first: int, axis: int, mode: str, degree: int
) -> Tensor:
    """Weighted sum of neighbours along a grid axis, the first of which is axis ``first`` of f."""
    place, radius = first + axis, len(weights) // 2
    size = f.shape[place]
    check_amount(size, axis, radius, mode, degree)
    wide = pad_axis(f, place, radius, mode, degree)
    (start, weight), *others = [(s, w) for s, w in enumerate(weights) if w]
    total = wide.narrow(place, start, size) * weight
    for start, weight in others:
        total.add_(wide.narrow(place, start, size), alpha=weight)
    return total
