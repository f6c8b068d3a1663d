"""Orbits of O(p, q) and its subgroups on sampling points.

A steerable kernel is free to choose its radial functions on each orbit and nothing else, so it is
evaluated once per orbit. Two points are equivalent iff η(v, v) agrees, with these refinements:

- in mixed signature the origin and the light cone share η = 0 and are different orbits;
- the orthochronous groups ``O+`` and ``SO+`` (one time axis) keep the future of the origin apart
  from its past, on time-like and on null vectors;
- ``SO+`` of R^{1,1} also keeps left and right apart on space-like vectors.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.constants import constant
from cscnn.algebra.group import time_axis
from cscnn.nn.functional import widened


@dataclass(frozen=True)
class Invariants:
    """What tells orbits apart, one entry per point or per orbit.

    Attributes:
        eta: η(v, v).
        origin: whether v = 0, as 0 or 1.
        side: +1 in the future, -1 in the past, 0 where the group does not distinguish them.
        given: (features,) or (batch, features), invariants of the multivectors that a kernel is
            given beside the points, the same for all points; None if there are none.
    """

    eta: Tensor
    origin: Tensor
    side: Tensor
    given: Tensor | None = None

    def to(self, like: Tensor) -> Invariants:
        """The same on the device and in the dtype of ``like``."""
        given = None if self.given is None else self.given.to(like)
        return Invariants(self.eta.to(like), self.origin.to(like), self.side.to(like), given)


@dataclass(frozen=True)
class Orbits:
    """The distinct orbits among some points.

    Attributes:
        invariants: one entry per orbit, sorted by (η, origin, side).
        members: (orbits, points), 1 where the point is in the orbit, else 0.
        table: the basis kernels on each orbit alone, see `SteerableBasis.table`; None if they are
            too many.
    """

    invariants: Invariants
    members: Tensor
    table: Tensor | None = None

    def __len__(self) -> int:
        return self.invariants.eta.shape[0]

    @property
    def index(self) -> Tensor:
        """(points,), the orbit of each point."""
        return self.members.argmax(0)

    def spread(self, values: Tensor) -> Tensor:
        """Values per orbit (..., orbits) -> values per point (..., points).

        A matrix product with zeros and ones is faster than gathering along the last axis.
        """
        return values @ self.members

    def to(self, like: Tensor) -> Orbits:
        """The same on the device and in the dtype of ``like``."""
        table = None if self.table is None else self.table.to(like)
        return Orbits(self.invariants.to(like), self.members.to(like), table)


def invariants(points: Tensor, algebra: CliffordAlgebra, group: str = "O") -> Invariants:
    """Invariants of points (N, dim) under the group, each (N,). Differentiable in η."""
    check_points(points, algebra)
    dtype, points = points.dtype, widened(points)
    signs = constant(algebra.metric, points.dtype, points.device)
    scale = points.detach().square().sum(-1)
    tolerance = 1e3 * torch.finfo(points.dtype).eps
    eta = (points.square() * signs).sum(-1)
    # Below rounding it is zero: radial functions may jump at the light cone, and must not jump
    # between two points of it.
    eta = torch.where(eta.detach().abs() <= tolerance * scale, torch.zeros_like(eta), eta)
    origin = scale == 0
    side = torch.zeros_like(eta)
    if group.endswith("+"):
        axis = time_axis(algebra)
        spacelike = eta.detach() * algebra.metric[axis] < -tolerance * scale
        side = points.detach()[:, axis].sign()
        other = torch.zeros_like(side)
        if group == "SO+" and algebra.dim == 2:
            other = points.detach()[:, 1 - axis].sign()
        side = torch.where(spacelike, other, side)
        side = torch.where(origin, torch.zeros_like(side), side)
    return Invariants(eta.to(dtype), origin.to(dtype), side.to(dtype))


def find_orbits(points: Tensor, algebra: CliffordAlgebra, group: str = "O") -> Orbits:
    """Distinct orbits of points (N, dim), equal up to rounding of their coordinates.

    Example:
        >>> import torch
        >>> grid = torch.cartesian_prod(*[torch.arange(-3.0, 4.0)] * 3)
        >>> len(find_orbits(grid, CliffordAlgebra((1, 1, 1))))
        19
    """
    check_points(points, algebra)
    points = widened(points)
    sizes = points.square().sum(-1, keepdim=True)
    scale = sizes.max() if sizes.numel() else sizes.sum()
    eps = 1e3 * torch.finfo(points.dtype).eps
    points = torch.where(sizes <= eps**2 * scale, torch.zeros_like(points), points)
    of_points = invariants(points, algebra, group)
    order = of_points.eta.argsort()
    gaps = of_points.eta[order].diff(prepend=of_points.eta[order][:1]) > eps * scale
    level = torch.empty_like(order)
    level[order] = gaps.cumsum(0)
    keys = torch.stack([level, of_points.origin.long(), of_points.side.long()], -1)
    distinct, index = torch.unique(keys, dim=0, return_inverse=True)
    first = torch.full((len(distinct),), len(points), dtype=torch.long, device=points.device)
    first = first.scatter_reduce(0, index, torch.arange(len(points), device=points.device), "amin")
    values = Invariants(of_points.eta[first], of_points.origin[first], of_points.side[first])
    members = index == torch.arange(len(distinct), device=points.device)[:, None]
    return Orbits(values, members.to(points.dtype))


def check_points(points: Tensor, algebra: CliffordAlgebra) -> None:
    """Raise unless points is a real floating tensor (N, dim)."""
    if not isinstance(points, Tensor) or not points.is_floating_point():
        what = points.dtype if isinstance(points, Tensor) else type(points).__name__
        raise TypeError(f"points must be a real floating tensor (N, {algebra.dim}), got {what}")
    if points.dim() != 2 or points.shape[1] != algebra.dim:
        raise ValueError(
            f"points of {algebra} must have shape (N, {algebra.dim}), got {tuple(points.shape)}"
        )
