"""Spaces of constant curvature in closed form: spheres, hyperbolic, de Sitter, anti-de Sitter.

All of them are quadrics {x : <x, x> = c R²} in a flat space R^{a,b}, with c = ±1, and one set of
formulas serves every signature. For points x and y let t = 1 - <x, y> / (c R²). A geodesic joins
them iff t < 2: an ellipse for t > 0, a straight null line for t = 0, a hyperbola for t < 0.
Parallel transport along it is the reflection of the ambient space that takes x to -y.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from cscnn.geometry.clouds import BLOCK, largest, radius_edges, square_limit
from cscnn.geometry.edges import Edges
from cscnn.geometry.orthonormal import (
    check_frames,
    components,
    flip,
    orthonormal_frames,
    time_index,
)

#: Half an angle whose hyperbolic functions are beyond all coordinates, also in float32.
LONGEST = 40.0


class ConstantCurvature:
    """The quadric <x, x> = sign · radius² in R^{a,b}.

    Args:
        ambient: signs of the flat space around it.
        sign: +1 or -1.
        radius: its radius of curvature.

    Attributes:
        metric: signs of the space itself, in the order of the ambient ones.

    Example:
        >>> import torch
        >>> space = sphere(2)
        >>> x, y = torch.eye(3, dtype=torch.float64)[:2].unsqueeze(1)
        >>> v, joined = space.log(x, y)
        >>> v.norm() / math.pi, joined.all()
        (tensor(0.5000, dtype=torch.float64), tensor(True))
    """

    def __init__(self, ambient: Sequence[int], sign: int, radius: float = 1.0):
        self.ambient: tuple[int, ...] = tuple(ambient)
        if any(s not in (1, -1) for s in self.ambient) or len(self.ambient) < 2:
            raise ValueError(f"ambient must consist of at least two signs ±1, got {ambient}")
        if sign not in (1, -1) or sign not in self.ambient:
            raise ValueError(
                f"sign must be one of the ambient signs {self.ambient}, got {sign}: there is no "
                "such quadric"
            )
        if not 0 < radius < math.inf:
            raise ValueError(f"radius must be positive, got {radius}")
        self.sign, self.radius = sign, float(radius)
        axis = self.ambient.index(sign)
        self.metric: tuple[int, ...] = self.ambient[:axis] + self.ambient[axis + 1 :]
        self.dim: int = len(self.metric)

    def __repr__(self) -> str:
        return f"ConstantCurvature({self.ambient}, {self.sign:+d}, radius={self.radius:g})"

    @property
    def compact(self) -> bool:
        """Whether it is a sphere."""
        return len(set(self.ambient)) == 1

    def form(self, like: Tensor) -> Tensor:
        """The ambient form, (D, D)."""
        return torch.diag(torch.tensor(self.ambient, dtype=like.dtype, device=like.device))

    def inner(self, x: Tensor, y: Tensor) -> Tensor:
        """<x, y> in the ambient space."""
        return (x * y * torch.tensor(self.ambient, dtype=x.dtype, device=x.device)).sum(-1)

    def check(self, x: Tensor) -> Tensor:
        """Raise unless points (N, D) lie on the quadric."""
        if x.dim() != 2 or x.shape[1] != len(self.ambient) or not x.is_floating_point():
            raise ValueError(
                f"points must be a floating tensor (number, {len(self.ambient)}), got {x.dtype} of "
                f"shape {tuple(x.shape)}"
            )
        square = self.inner(x, x)
        scale = x.square().sum(-1).clamp(min=self.radius**2)
        off = ~((square - self.sign * self.radius**2).abs() <= 1e-4 * scale)
        if off.any():
            index = int(off.nonzero()[0, 0])
            raise ValueError(
                f"point {index}, {x[index].tolist()}, has <x, x> = {float(square[index]):g}, not "
                f"{self.sign * self.radius**2:g}: it is not on {self}"
            )
        return x

    def project(self, x: Tensor) -> Tensor:
        """Points (N, D) scaled onto the quadric. Those of the other sign or null have no image."""
        square = self.sign * self.inner(x, x)
        if not (square > 0).all():
            index = int((~(square > 0)).nonzero()[0, 0])
            raise ValueError(f"no multiple of point {index}, {x[index].tolist()}, is on {self}")
        return x * (self.radius / square.sqrt()).unsqueeze(-1)

    def _t(self, x: Tensor, y: Tensor) -> Tensor:
        """1 - <x, y> / (c R²), from the difference, so that near points keep their digits."""
        return self.inner(y - x, y - x) / (2 * self.sign * self.radius**2)

    def exp(self, x: Tensor, u: Tensor) -> Tensor:
        """Where the geodesic from x in direction u is after unit time. Both (N, D)."""
        kappa = self.inner(u, u) / (self.sign * self.radius**2)
        small = kappa.abs() < 1e-8
        angle = torch.where(small, torch.ones_like(kappa), kappa).abs().sqrt()
        bounded = torch.where(kappa < 0, angle, torch.zeros_like(angle))  # cosh must not overflow
        cosine = torch.where(kappa < 0, bounded.cosh(), angle.cos())
        sine = torch.where(kappa < 0, bounded.sinh(), angle.sin()) / angle
        cosine = torch.where(small, 1 - kappa / 2, cosine)
        sine = torch.where(small, 1 - kappa / 6, sine)
        return cosine.unsqueeze(-1) * x + sine.unsqueeze(-1) * u

    def _joined(self, t: Tensor) -> Tensor:
        """Whether a geodesic joins points. Next to antipodes its direction is rounding error."""
        return t < 2 - math.sqrt(torch.finfo(t.dtype).eps)

    def log(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Initial velocity of the geodesic from x to y, and whether there is one. Both (N, D).

        Zero where there is none: at antipodes, where there are many, and beyond them.
        """
        t = self._t(x, y)
        joined = self._joined(t)
        # With r² = |t| / 2 the ratio of arc and chord is arcsin(r) / (r (1 - r²)^½), or for t < 0
        # arsinh(r) / (r (1 + r²)^½).
        half = torch.where(joined, t, torch.zeros_like(t)) / 2
        small = half.abs() < 1e-5
        safe = torch.where(small, torch.full_like(half, 0.25), half)
        r = safe.abs().sqrt()
        inside = torch.where(safe > 0, r, torch.full_like(r, 0.5))
        ratio = torch.where(safe > 0, inside.asin(), r.asinh()) / (r * (1 - safe).sqrt())
        series = 1 + half * (2 / 3 + half * (8 / 15 + half * (16 / 35)))
        ratio = torch.where(small, series, ratio)
        u = ratio.unsqueeze(-1) * (y - x + t.unsqueeze(-1) * x)
        return torch.where(joined.unsqueeze(-1), u, torch.zeros_like(u)), joined

    def transport(self, x: Tensor, y: Tensor, w: Tensor) -> Tensor:
        """Parallel transport of vectors w (N, ..., D) at x to y along their geodesic.

        Zero where there is none.
        """
        shape = (len(x), *(1,) * (w.dim() - 2), x.shape[-1])
        joined = self._joined(self._t(x, y)).view(*shape[:-1], 1)
        mirror = (x + y).view(shape)
        square = self.inner(mirror, mirror).unsqueeze(-1)  # 2 c R² (2 - t)
        square = torch.where(joined, square, torch.ones_like(square))
        moved = w - 2 * self.inner(mirror, w).unsqueeze(-1) / square * mirror
        return torch.where(joined, moved, torch.zeros_like(moved))

    def frames(self, x: Tensor) -> Tensor:
        """Some orthonormal frame at each point (N, D): (N, D, d), vectors as columns.

        All have one orientation, and where there is a time axis its vector points to the future, so
        that kernels of the groups SO, O+ and SO+ mean the same everywhere.
        """
        form = self.form(x)
        c = self.sign * self.radius**2
        axes = torch.eye(len(self.ambient), dtype=x.dtype, device=x.device)
        tangent = axes - (x @ form)[:, :, None] * x[:, None, :] / c
        frames = orthonormal_frames(tangent, form, self.metric)
        time = time_index(self.metric)
        if time is not None:
            frames = flip(frames, time, self._future(x, frames[:, :, time]) < 0)
        space = self.dim - 1 if time != self.dim - 1 else 0
        if self.dim > 1 or time is None:
            orientation = torch.linalg.det(torch.cat([x.unsqueeze(-1), frames], -1))
            frames = flip(frames, space, orientation < 0)
        return frames

    def _future(self, x: Tensor, w: Tensor) -> Tensor:
        """Positive for time-like vectors w at x that point to the future."""
        sign = self.metric[time_index(self.metric) or 0]
        first, *others = (axis for axis, s in enumerate(self.ambient) if s == sign)
        if not others:
            return w[:, first]
        return x[:, first] * w[:, others[0]] - x[:, others[0]] * w[:, first]  # time is an angle

    def edges(
        self,
        points: Tensor,
        radius: float | None = None,
        *,
        frames: Tensor | None = None,
        receivers: Tensor | None = None,
        receiver_frames: Tensor | None = None,
        pairs: tuple[Tensor, Tensor] | None = None,
        weights: Tensor | None = None,
        ambient_radius: float | None = None,
    ) -> Edges:
        """Edges along geodesics.

        Points that no geodesic joins, antipodes among them, have no edge.

        Args:
            points: (N, D), the senders.
            radius: largest length |η(v, v)|^(1/2) of an edge; by default there is no bound.
            frames: (N, D, d), orthonormal; by default those of `frames`. The features are given in
                these frames.
            receivers, receiver_frames: by default the senders and their frames.
            pairs: receivers and senders of the edges, instead of all pairs.
            weights: (N,) share of each sender in an integral.
            ambient_radius: largest distance in the ambient space, which boosts do not keep: for
                spacetimes, whose neighbourhoods run along light cones without end.
        """
        frames = self._checked_frames(points, frames)
        if receivers is not None:
            receiver_frames = self._checked_frames(receivers, receiver_frames)
        elif receiver_frames is not None:
            raise ValueError("receiver_frames goes with receivers")
        else:
            receivers, receiver_frames = points, frames
        if radius is not None and not radius > 0:
            raise ValueError(f"radius must be positive, got {radius}")
        n, m = (
            pairs if pairs is not None else self._pairs(points, receivers, radius, ambient_radius)
        )
        velocity, joined = self.log(receivers[n], points[m])
        if pairs is not None:
            joined = joined & self._near(receivers[n], points[m], radius, ambient_radius)
        n, m, velocity = n[joined], m[joined], velocity[joined]
        moved = self.transport(points[m], receivers[n], frames[m].mT)  # rows are frame vectors
        here, form = receiver_frames[n], self.form(points)
        edges = Edges(
            receiver=n,
            sender=m,
            position=components(here, velocity, form, self.metric),
            transport=components(here, moved, form, self.metric).mT,
            n_receivers=len(receivers),
            n_senders=len(points),
        )
        return edges if weights is None else edges.weighted(weights)

    def _checked_frames(self, x: Tensor, frames: Tensor | None) -> Tensor:
        """The frames at points of the quadric, by default those of `frames`."""
        self.check(x)
        frames = self.frames(x) if frames is None else frames
        check_frames(frames, self.form(x), self.metric, len(x))
        return frames

    def _near(
        self, x: Tensor, y: Tensor, radius: float | None, ambient_radius: float | None
    ) -> Tensor:
        """Which of the pairs an edge may join."""
        t, size = self._t(x, y), largest(x, y)
        near = self._joined(t)
        if radius is not None:
            half = radius / (2 * self.radius)
            square = 2 * self.radius**2 * t  # of the chord, which is shorter or longer than the arc
            shorter = 2 * self.radius * math.sin(min(half, math.pi / 2))
            near = near & (square <= square_limit(shorter, y - x, size))
            if half < LONGEST:
                longer = 2 * self.radius * math.sinh(half)
                near = near & (-square <= square_limit(longer, y - x, size))
        if ambient_radius is not None:
            near = near & ((y - x).square().sum(-1) <= square_limit(ambient_radius, y - x, size))
        return near

    def _pairs(
        self, points: Tensor, receivers: Tensor, radius: float | None, ambient_radius: float | None
    ) -> tuple[Tensor, Tensor]:
        """Receivers and senders that are near: by a k-d tree, or in blocks; never all at once."""
        chord = ambient_radius
        if self.compact and radius is not None and radius < math.pi * self.radius:
            chord = 2 * self.radius * math.sin(radius / (2 * self.radius))
            chord = chord if ambient_radius is None else min(chord, ambient_radius)
        if chord is not None:
            near_edges = radius_edges(points.detach(), chord, receivers=receivers.detach())
            n, m = near_edges.receiver, near_edges.sender
            near = self._near(receivers.detach()[n], points.detach()[m], radius, ambient_radius)
            return n[near], m[near]
        rows: list[Any] = []
        step = max(1, BLOCK // max(1, len(points)))
        for start in range(0, len(receivers), step):
            block = receivers.detach()[start : start + step, None]
            near = self._near(block, points.detach()[None], radius, ambient_radius)
            n, m = near.nonzero(as_tuple=True)
            rows.append((n + start, m))
        empty = torch.zeros(0, dtype=torch.int64, device=points.device)
        return tuple(torch.cat([empty, *(row[i] for row in rows)]) for i in (0, 1))  # type: ignore[return-value]


def sphere(dim: int, radius: float = 1.0) -> ConstantCurvature:
    """S^dim in R^{dim+1}: signs (+, ..., +)."""
    return ConstantCurvature((1,) * (dim + 1), 1, radius)


def hyperbolic(dim: int, radius: float = 1.0) -> ConstantCurvature:
    """Hyperbolic space H^dim, both sheets of <x, x> = -radius² in R^{1,dim}: signs (+, ..., +)."""
    return ConstantCurvature((-1, *(1,) * dim), -1, radius)


def de_sitter(dim: int, radius: float = 1.0) -> ConstantCurvature:
    """De Sitter space, time first: signs (+, -, ..., -)."""
    return ConstantCurvature((1, *(-1,) * dim), -1, radius)


def anti_de_sitter(dim: int, radius: float = 1.0) -> ConstantCurvature:
    """Anti-de Sitter space, time first: signs (+, -, ..., -). Its time is a circle."""
    return ConstantCurvature((1, 1, *(-1,) * (dim - 1)), 1, radius)
