"""Fields moved by transformations that do not map a grid to itself, by interpolation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from cscnn.algebra import CliffordAlgebra


def positions(grid: Sequence[int], spacing: Sequence[float]) -> Tensor:
    """Points of a grid relative to its centre, (*grid, dim), in float64."""
    axes = [
        (torch.arange(n, dtype=torch.float64) - (n - 1) / 2) * h
        for n, h in zip(grid, spacing, strict=True)
    ]
    return torch.stack(torch.meshgrid(*axes, indexing="ij"), -1)


def resample(x: Tensor, points: Tensor, taps: int | None = None) -> Tensor:
    """Values between the points of a grid, by polynomials through the nearest ``taps`` per axis.

    Args:
        x: (batch, channels, *grid, blades); zero outside of its grid.
        points: positions, in steps of the grid from its first point, (N, dim).
        taps: even; by default 6 in up to three dimensions, else 4.

    Returns:
        (batch, channels, N, blades)
    """
    grid = x.shape[2:-1]
    dim = len(grid)
    taps = taps or (6 if dim <= 3 else 4)
    if taps < 2 or taps % 2:
        raise ValueError(f"taps must be even and at least 2, got {taps}")
    points = points.to(x.device, torch.float64)
    first = points.floor() - (taps // 2 - 1)
    weights = _lagrange(points - first, taps).to(x.dtype)  # (N, dim, taps)
    first = first.long()
    sizes = torch.tensor(grid, device=x.device)
    strides = [math.prod(grid[axis + 1 :]) for axis in range(dim)]
    flat = x.flatten(2, -2)
    result = x.new_zeros(*x.shape[:2], len(points), x.shape[-1])
    for offset in itertools.product(range(taps), repeat=dim):
        corner = first + torch.tensor(offset, device=x.device)
        inside = ((corner >= 0) & (corner < sizes)).all(-1)
        weight = torch.stack([weights[:, a, o] for a, o in enumerate(offset)]).prod(0) * inside
        index = (corner * torch.tensor(strides, device=x.device)).sum(-1).where(inside, 0)
        result += flat.index_select(2, index) * weight[:, None]
    return result


def _lagrange(t: Tensor, taps: int) -> Tensor:
    """Weights of the points 0, 1, ..., taps - 1 at t: (..., taps)."""
    weights = []
    for j in range(taps):
        others = [m for m in range(taps) if m != j]
        weights.append(torch.stack([(t - m) / (j - m) for m in others]).prod(0))
    return torch.stack(weights, -1)


def move(algebra: CliffordAlgebra, g: Tensor, x: Tensor, spacing: Sequence[float]) -> Tensor:
    """[g.f](y) = ρ(g) f(g^-1 y) about the centre of the grid, for any g in O(p, q).

    Args:
        g: (dim, dim).
        x: field (batch, channels, *grid, blades); it counts as zero outside of the grid.
        spacing: distance of points, for each axis.
    """
    grid = x.shape[2:-1]
    steps = torch.tensor(spacing, dtype=torch.float64)
    centre = (torch.tensor(grid, dtype=torch.float64) - 1) / 2
    inverse = torch.linalg.inv(g.double().cpu())
    source = positions(grid, spacing).flatten(0, -2) @ inverse.mT
    values = resample(x, source / steps + centre).unflatten(2, grid)
    return algebra.transform(g.to(values), values)


def fade(grid: Sequence[int], spacing: Sequence[float], radius: float) -> Tensor:
    """1 within half a radius of the centre of a grid, 0 beyond the radius, smooth: (*grid,)."""
    distance = positions(grid, spacing).norm(dim=-1)
    way = ((distance / radius - 0.5) * 2).clamp(0, 1)
    return (math.pi / 2 * way).cos().square()
