"""The group-equivariant Fourier neural operator, on grids of any dimension and signature.

Its group is data: the signed permutations of the axes that preserve metric and spacing. That is D4
with 8 elements in the plane, the cube's 48 in space, and in spacetime those of space times the
reversal of time (16 in 1 + 2, 96 in 1 + 3 dimensions).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor, nn

from cscnn._util.checks import check_int
from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.grids import grid_symmetries, move_grid
from cscnn.conv.precision import full_precision
from cscnn.networks.batches import compute_nonempty
from cscnn.networks.entries import Sizes, register
from cscnn.networks.grid import Grid

#: Modes kept along each axis unless told otherwise, by the dimension of the grid.
MODES = {1: 16, 2: 8, 3: 4, 4: 2}

#: Channels in the middle of the projection, for each hidden channel, unless told otherwise.
HIDDEN = 16


class PointGroup(NamedTuple):
    """A finite group of signed permutations of axes.

    Attributes:
        elements: (order, dim, dim), as matrices.
        relative: (order, order), the index of h^-1 g at [h, g].
        source, sign: (order, dim), such that (h^-1 k)_i = sign[h, i] k[source[h, i]].
    """

    elements: Tensor
    relative: Tensor
    source: Tensor
    sign: Tensor


@cache
def point_group(metric: tuple[int, ...], spacing: tuple[float, ...], group: str) -> PointGroup:
    """The signed permutations in O, SO, O+ or SO+ that preserve metric and spacing.

    Example:
        >>> [len(point_group(m, (1.0, 1.0, 1.0), "O").elements) for m in ((1, 1, 1), (1, -1, -1))]
        [48, 16]
    """
    # Kept for all models: counting parameters builds some on the device "meta", and tensors made in
    # inference mode cannot serve those that are trained.
    with torch.device("cpu"), torch.inference_mode(False):
        alike = (1,) * len(metric)
        matrices = list(grid_symmetries(CliffordAlgebra(metric), alike, spacing, group))
        elements = torch.stack(matrices).long()
        digits = 3 ** torch.arange(elements[0].numel())  # a matrix of -1, 0, 1 as one number
        keys, order = ((elements.flatten(1) + 1) * digits).sum(-1).sort()
        products = (elements.mT[:, None, :, :, None] * elements[None, :, None]).sum(-2)
        product_keys = ((products.flatten(2) + 1) * digits).sum(-1)
        source = elements.abs().argmax(1)  # the row of the only entry of each column
        sign = elements.sum(1)
        return PointGroup(elements, order[torch.searchsorted(keys, product_keys)], source, sign)


def move_features(group: PointGroup, h: int, x: Tensor) -> Tensor:
    """Element h acting on functions of group and grid: [h.f](g, p) = f(h^-1 g, h^-1 p).

    Args:
        x: (batch, channels, order, *grid).
    """
    return move_grid(group.elements[h], x[:, :, group.relative[h]], 3)


class GroupSpectralConv(nn.Module):
    """Convolution over translations and a point group, by Fourier modes.

    Features are functions on group and grid, flattened: (batch, channels·order, points). One set of
    weights on the modes |k_i| ≤ modes is turned into all orientations::

        y[h](k) = sum_g W[h^-1 g](h^-1 k) x[g](k)

    plus the same without modes, on single points. W(-k) is the conjugate of W(k), else the result
    would not be real: both are made of the real numbers R(k), R(-k), none of which is redundant.
    Commutes with translations and `move_features`.

    Args:
        group: the point group.
        c_in, c_out: channels.
        modes: Fourier modes kept along each axis; small grids have fewer, |k_i| < points / 2.
    """

    relative: Tensor
    source: Tensor
    sign: Tensor

    def __init__(self, group: PointGroup, c_in: int, c_out: int, modes: int):
        super().__init__()
        self.modes = modes
        self.order, self.dim = group.source.shape
        for name in ("relative", "source", "sign"):
            self.register_buffer(name, getattr(group, name), persistent=False)
        scale = (c_in * self.order) ** -0.5
        cube = (2 * modes + 1,) * self.dim
        self.weight = nn.Parameter(torch.randn(c_out, c_in, self.order, *cube) * scale / 2)
        self.local = nn.Parameter(torch.randn(c_out, c_in, self.order) * scale)
        self.bias = nn.Parameter(torch.zeros(c_out))

    def forward(self, x: Tensor, grid: Sequence[int]) -> Tensor:
        """(batch, c_in·order, points) -> (batch, c_out·order, points)"""
        return self._nonlocal(x, grid) + self._expand(self.local) @ x + self._bias()

    def _bias(self) -> Tensor:
        return self.bias.repeat_interleave(self.order)[:, None]

    def _expand(self, weight: Tensor) -> Tensor:
        """Weights (c_out, c_in, order) of one orientation -> (c_out·order, c_in·order)."""
        all_of_them = weight[:, :, self.relative]  # (c_out, c_in, h, g)
        return all_of_them.transpose(1, 2).flatten(2, 3).flatten(0, 1)

    def _nonlocal(self, x: Tensor, grid: Sequence[int]) -> Tensor:
        half = (*grid[:-1], grid[-1] // 2 + 1)  # what rfftn keeps
        kept = self._kept_modes(grid)
        kept_index = _flat_index(kept, half)
        axes = tuple(range(-self.dim, 0))
        with full_precision(x.device.type):
            x = x.to(self.weight.dtype).unflatten(-1, tuple(grid))
            spectrum = torch.fft.rfftn(x, dim=axes).flatten(-self.dim)
            mixed = self._mix(spectrum.index_select(-1, kept_index), kept)
            full = mixed.new_zeros(*mixed.shape[:2], math.prod(half))
            full = full.index_copy(-1, kept_index, mixed).unflatten(-1, half)
            return torch.fft.irfftn(full, s=tuple(grid), dim=axes).flatten(2)

    def _mix(self, low: Tensor, kept: Tensor) -> Tensor:
        """W x, mode by mode: (batch, c_in·order, modes) -> (batch, c_out·order, modes), complex.

        Multiplied as real matrices: products of complex ones copy the weights to conjugate them.
        """
        numbers = torch.view_as_real(low).permute(2, 1, 3, 0)  # (modes, c_in·order, 2, batch)
        products = self._spectral_weights(kept) @ numbers.flatten(2)
        products = products.unflatten(-1, numbers.shape[2:]).unflatten(1, (2, -1))
        real, imaginary = products.unbind(1)
        mixed = torch.complex(
            real[:, :, 0] - imaginary[:, :, 1], real[:, :, 1] + imaginary[:, :, 0]
        )
        return mixed.permute(2, 1, 0)

    def _kept_modes(self, grid: Sequence[int]) -> Tensor:
        """Modes of this grid, without those that are conjugates of others: (dim, modes)."""
        limits = [min(self.modes, (n - 1) // 2) for n in grid]
        ranges = [
            torch.arange(-m if axis < self.dim - 1 else 0, m + 1, device=self.sign.device)
            for axis, m in enumerate(limits)
        ]
        return torch.stack([k.flatten() for k in torch.meshgrid(*ranges, indexing="ij")])

    def _spectral_weights(self, kept: Tensor) -> Tensor:
        """Real and imaginary part of W[h^-1 g](h^-1 k): (modes, 2·c_out·order, c_in·order)."""
        here = self.weight.flatten(3)  # (c_out, c_in, order, all modes)
        opposite = here.flip(-1)
        parts = torch.stack([here + opposite, here - opposite]).flatten(3) / 2
        side = 2 * self.modes + 1
        turned = kept[self.source] * self.sign[..., None]  # h^-1 k: (h, dim, modes)
        mode = _flat_index(turned + self.modes, (side,) * self.dim)  # (h, modes)
        index = self.relative * side**self.dim + mode.T[..., None]  # (modes, h, g)
        weights = parts.gather(-1, index.flatten().expand(*parts.shape[:3], -1))
        weights = weights.unflatten(-1, index.shape).permute(3, 0, 1, 4, 2, 5)
        return weights.flatten(4, 5).flatten(1, 3)


def _flat_index(positions: Tensor, shape: Sequence[int]) -> Tensor:
    """Positions (..., dim, n), counted from the end if negative, in the flattened tensor."""
    index = torch.zeros_like(positions[..., 0, :])
    for k, size in zip(positions.unbind(-2), shape, strict=True):
        index = index * size + k.remainder(size)
    return index


def _sizes() -> Sizes:
    """How it grows: with other numbers of modes, then of layers, if the widths are not enough."""
    modes: tuple[dict[str, int], ...] = tuple({"modes": m} for m in (4, 3, 5, 2, 6, 1, 7, 8))
    layers = ({"layers": n, **m} for n in (3, 5, 2, 6) for m in ({}, *modes))
    return Sizes(second="hidden", ratio=HIDDEN, fallbacks=(*modes, *layers))


@register("gfno", interface="metric components", sizes=_sizes(), on_meta=True)
class GFNO(nn.Module):
    """The group-equivariant Fourier neural operator, for the symmetries of the grid.

    Inside it commutes with them; lifting and projection are unconstrained, as in the paper, and do
    not know how components transform. Grids may have sides of different lengths: then it commutes
    with the elements that preserve these.

    Args:
        metric: one sign per axis of the grid, one to four.
        c_in, c_out: components of input and output.
        width: hidden channels, each a function on the group.
        hidden: channels in the middle of the projection; by default 16 times the width.
        modes: Fourier modes kept along each axis; by default fewer in higher dimensions, `MODES`.
        layers: number of Fourier layers.
        group: ``"O"`` for all signed permutations that preserve metric and spacing, ``"SO"`` for
            rotations; in spacetime also ``"O+"`` and ``"SO+"``, without the reversal of time.
        grid: distances of points.

    Shape:
        (batch, c_in, *grid) -> (batch, c_out, *grid)
    """

    def __init__(
        self,
        metric: Sequence[int],
        c_in: int,
        c_out: int,
        width: int = 8,
        hidden: int | None = None,
        *,
        modes: int | None = None,
        layers: int = 4,
        group: str = "O",
        grid: Grid = Grid(),
    ):
        super().__init__()
        dim = len(metric)
        if dim not in MODES:
            raise ValueError(f"GFNO is for grids of 1 to 4 dimensions, got {dim}")
        check_int("width", width, low=1)
        modes = check_int("modes", MODES[dim] if modes is None else modes, low=1)
        hidden = check_int("hidden", HIDDEN * width if hidden is None else hidden, low=1)
        self.group = point_group(tuple(metric), grid.spacings(dim), group)
        channels = len(self.group.elements) * width
        self.lifting = nn.Conv1d(c_in, channels, 1)
        self.layers = nn.ModuleList(
            GroupSpectralConv(self.group, width, width, modes) for _ in range(layers)
        )
        self.projection = nn.Sequential(
            nn.Conv1d(channels, hidden, 1), nn.GELU(), nn.Conv1d(hidden, c_out, 1)
        )

    def between(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        """The equivariant part, between lifting and projection: (batch, channels·order, points)."""
        for i, layer in enumerate(self.layers):
            x = layer(x if i == 0 else nn.functional.gelu(x), shape)
        return x

    def forward(self, x: Tensor) -> Tensor:
        return compute_nonempty(self._compute, x)

    def _compute(self, x: Tensor) -> Tensor:
        shape = tuple(x.shape[2:])
        y = self.projection(self.between(self.lifting(x.flatten(2)), shape))
        assert isinstance(y, Tensor)
        return y.unflatten(-1, shape)
