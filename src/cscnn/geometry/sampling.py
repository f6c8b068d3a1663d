"""Points on curved spaces, with the share of the volume that each stands for."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

Points = tuple[Tensor, Tensor]


def fibonacci_sphere(count: int) -> Points:
    """Nearly uniform points (count, 3) on S² along a spiral, and their equal weights (4π in all).

    Example:
        >>> points, weights = fibonacci_sphere(100)
        >>> points.shape, round(float(weights.sum() / math.pi), 6)
        (torch.Size([100, 3]), 4.0)
    """
    _at_least("count", count, 1)
    index = torch.arange(count, dtype=torch.float64)
    height = 1 - (2 * index + 1) / count
    angle = math.pi * (3 - math.sqrt(5)) * index
    ring = (1 - height.square()).sqrt()
    points = torch.stack([ring * angle.cos(), ring * angle.sin(), height], -1)
    return points, torch.full((count,), 4 * math.pi / count, dtype=torch.float64)


def latlon_sphere(latitudes: int, longitudes: int) -> Points:
    """Points (latitudes · longitudes, 3) on S² at Gauss-Legendre latitudes, without the poles.

    The weights integrate polynomials of degree below 2 latitudes and longitudes exactly.
    """
    _at_least("latitudes", latitudes, 1)
    _at_least("longitudes", longitudes, 1)
    nodes, shares = np.polynomial.legendre.leggauss(latitudes)
    height = torch.from_numpy(nodes).flip(0).repeat_interleave(longitudes)
    angle = (2 * math.pi / longitudes * torch.arange(longitudes).double()).repeat(latitudes)
    ring = (1 - height.square()).sqrt()
    points = torch.stack([ring * angle.cos(), ring * angle.sin(), height], -1)
    weights = torch.from_numpy(shares).flip(0).repeat_interleave(longitudes)
    return points, weights * (2 * math.pi / longitudes)


def hyperbolic_disc(count: int, radius: float) -> Points:
    """Nearly uniform points (count, 3) on the sheet x_0 > 0 of H², within a distance of its origin.

    Each weighs the same; the sum is the disc's area 2π (cosh(radius) - 1).
    """
    _at_least("count", count, 1)
    if not radius > 0:
        raise ValueError(f"radius must be positive, got {radius}")
    index = torch.arange(count, dtype=torch.float64)
    height = 1 + (math.cosh(radius) - 1) * (index + 0.5) / count
    angle = math.pi * (3 - math.sqrt(5)) * index
    ring = (height.square() - 1).sqrt()
    points = torch.stack([height, ring * angle.cos(), ring * angle.sin()], -1)
    area = 2 * math.pi * (math.cosh(radius) - 1)
    return points, torch.full((count,), area / count, dtype=torch.float64)


def de_sitter_grid(times: int, places: int, duration: float) -> Points:
    """Points (times · places, 3) of dS₂ at cosmic times |t| < duration / 2, around the circle.

    The ambient coordinates are (sinh t, cosh t cos φ, cosh t sin φ); weights cosh t dt dφ.
    """
    _at_least("times", times, 1)
    _at_least("places", places, 1)
    if not duration > 0:
        raise ValueError(f"duration must be positive, got {duration}")
    step = duration / times
    time = ((torch.arange(times).double() + 0.5) * step - duration / 2).repeat_interleave(places)
    angle = (2 * math.pi / places * torch.arange(places).double()).repeat(times)
    points = torch.stack([time.sinh(), time.cosh() * angle.cos(), time.cosh() * angle.sin()], -1)
    return points, time.cosh() * step * (2 * math.pi / places)


def _at_least(name: str, value: int, low: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise ValueError(f"{name} must be an integer of at least {low}, got {value!r}")
