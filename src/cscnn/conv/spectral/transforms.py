"""Discrete Fourier transforms of tiles as products with small matrices, axis by axis.

A matrix also does, at no cost, whatever is linear: it leaves positions out, multiplies by i, and
normalises. Each step finds its data where the last one left it::

    [p1, .., pd, N]  ->  [f1, .., fd, re/im, N]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from cscnn.conv.spectral.overlap import AxisTiles

# Rows (real, imaginary) that a transform ends with, as combinations of real and imaginary part.
Rows = tuple[tuple[int, int], ...]
COMPLEX: Rows = ((1, 0), (0, 1))
TIMES_I: Rows = ((0, -1), (1, 0))


@lru_cache(maxsize=512)
def _matrix(
    tile: int, positions: range, half_spectrum: bool, rows: Rows, dtype: torch.dtype, device: str
) -> tuple[Tensor, Tensor]:
    """The transform of values at some positions of a tile, and its inverse on those positions.

    With ``half_spectrum`` the values are real and only non-negative frequencies are computed;
    otherwise they are complex. Shape (frequencies · rows, [re/im ·] positions).
    """
    f = torch.arange(tile // 2 + 1 if half_spectrum else tile, device="cpu")
    p = torch.tensor(positions, device="cpu")
    angle = torch.outer(f, p).remainder(tile).double() * (2 * math.pi / tile)
    cos, sin = angle.cos(), angle.sin()
    if half_spectrum:
        full = torch.stack([cos, -sin], 1)
        twice = 2.0 - ((f == 0) | (2 * f == tile)).double()  # f stands for -f too
    else:
        full = torch.stack([torch.cat([cos, sin], 1), torch.cat([-sin, cos], 1)], 1)
        twice = torch.ones_like(f, dtype=torch.float64)
    forward = torch.einsum("rs,fsp->frp", torch.tensor(rows, device="cpu").double(), full)
    inverse = forward * (twice / tile)[:, None, None]
    return tuple(  # type: ignore[return-value]
        m.flatten(0, 1).to(dtype).to(device).contiguous() for m in (forward, inverse)
    )


class Transform:
    """Discrete Fourier transform of values at some positions of tiles, on all axes.

    Args:
        axes: the tiles along each axis.
        positions: for each axis, the positions that hold values.
        rows: what to make of real and imaginary part in the end.
        like: a tensor of the wanted dtype and device.
        band: which frequencies of the first axis; all by default. Inverses are sums over bands.
    """

    def __init__(
        self,
        axes: Sequence[AxisTiles],
        positions: Sequence[range],
        rows: Rows,
        like: Tensor,
        band: range | None = None,
    ):
        last = len(axes) - 1
        device = str(like.device)
        self.matrices, self.leads = [], [1]
        for i, (axis, places) in enumerate(zip(axes, positions, strict=True)):
            end = rows if i == last else COMPLEX
            matrices = _matrix(axis.tile, places, i == 0, end, like.dtype, device)
            count = axis.tile
            if i == 0:
                band = range(axis.frequencies) if band is None else band
                kept = slice(band.start * len(end), band.stop * len(end))
                matrices, count = (matrices[0][kept], matrices[1][kept]), len(band)
            self.matrices.append(matrices)
            self.leads.append(self.leads[-1] * count)
        self.n_positions = math.prod(len(places) for places in positions)

    def __call__(self, x: Tensor) -> Tensor:
        """[p1, .., pd, N] -> [frequencies, rows · N]"""
        for (matrix, _), lead in zip(self.matrices, self.leads, strict=False):
            x = _along(matrix, x, lead)
        return x.view(self.leads[-1], -1)

    def inverse(self, x: Tensor) -> Tensor:
        """[frequencies, rows · N] -> [p1 · .. · pd, N]. The adjoint, but for its normalisation."""
        for (_, matrix), lead in zip(self.matrices[::-1], self.leads[-2::-1], strict=True):
            x = _along(matrix.T, x, lead)
        return x.view(self.n_positions, -1)


def _along(matrix: Tensor, x: Tensor, lead: int) -> Tensor:
    """Apply a matrix to the second of three axes of x, of which the first has size ``lead``."""
    x = x.view(lead, matrix.shape[1], -1)
    return matrix.mm(x[0])[None] if lead == 1 else torch.bmm(matrix.expand(lead, -1, -1), x)
