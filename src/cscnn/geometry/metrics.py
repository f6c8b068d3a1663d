"""Charts that are ready to use."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from cscnn.geometry.charts import Chart


def torus_of_revolution(major: float = 2.0, minor: float = 1.0) -> Chart:
    """The surface of a ring: angles around the tube and around the axis."""
    if not 0 < minor < major:
        raise ValueError(f"a ring needs 0 < minor < major, got major={major}, minor={minor}")

    def metric(x: Tensor) -> Tensor:
        around = major + minor * x[0].cos()
        return torch.diag(torch.stack([torch.full_like(around, minor**2), around**2]))

    return Chart(metric, (1, 1), periods=(2 * math.pi, 2 * math.pi))


def schwarzschild(dim: int = 3, mass: float = 1.0) -> Chart:
    """Outside a black hole: coordinates (t, r) or (t, r, φ), with signs (+, -) or (+, -, -)."""
    if dim not in (2, 3):
        raise ValueError(f"dim must be 2 or 3, got {dim}")
    if not mass > 0:
        raise ValueError(f"mass must be positive, got {mass}")

    def metric(x: Tensor) -> Tensor:
        f = 1 - 2 * mass / x[1]
        return torch.diag(torch.stack([f, -1 / f, -(x[1] ** 2)][:dim]))

    return Chart(
        metric,
        (1, -1, -1)[:dim],
        periods=(None, None, 2 * math.pi)[:dim],
        domain=lambda x: x[:, 1] > 2 * mass * (1 + 1e-6),
    )
