"""`NeighbourSearch`: which points hear which, as a few numbers that a file can keep."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from cscnn._util.checks import check_choice, check_int
from cscnn.geometry.clouds import joining_edges, nearest_edges, radius_edges
from cscnn.geometry.edges import Edges

NEIGHBOURS = 24  #: that a point shall have unless told otherwise, itself included
WAYS = ("radius", "nearest")


@dataclass(frozen=True)
class NeighbourSearch:
    """How neighbours of points in flat space are found, in the Euclidean distance.

    Args:
        radius: with ``by="radius"`` the longest edges; else their typical length.
        neighbours: with ``by="nearest"`` of each point, itself included; else their typical number.
        by: ``"radius"`` or ``"nearest"``.
        period: for each axis its period, or None where it has none.
        weighted: whether points have weights, shares of the volume.

    Example:
        >>> search = NeighbourSearch.fit([torch.rand(500, 2)], period=(1.0, 1.0))
        >>> search.by, 20 < search.neighbours < 28
        ('radius', True)
        >>> search.edges(torch.rand(100, 2))  # doctest: +ELLIPSIS
        Edges(... 100 senders -> 100 receivers, 2D, flat)
    """

    radius: float
    neighbours: int
    by: str = "radius"
    period: tuple[float | None, ...] | None = None
    weighted: bool = False

    def __post_init__(self) -> None:
        check_choice("by", self.by, WAYS)
        check_int("neighbours", self.neighbours, low=1)
        if not 0 < self.radius < math.inf:
            raise ValueError(f"radius must be positive, got {self.radius}")

    @classmethod
    def fit(
        cls,
        clouds: Sequence[Tensor],
        *,
        radius: float | None = None,
        neighbours: int | None = None,
        period: Sequence[float | None] | None = None,
        weighted: bool = False,
    ) -> NeighbourSearch:
        """A search with the numbers that are not given measured on some point clouds.

        Args:
            clouds: positions (points, d) of some of them.
            radius: of the neighbourhoods.
            neighbours: nearest ones of each point instead. With neither, the radius is such that a
                point has about 24 neighbours.
            period, weighted: as above.
        """
        if radius is not None and neighbours is not None:
            raise ValueError(f"give radius or neighbours, not both: got {radius} and {neighbours}")
        period = None if period is None else tuple(period)
        if radius is None:
            count = NEIGHBOURS if neighbours is None else check_int("neighbours", neighbours, low=1)
            typical = _typical_radius(clouds, count, period)
            if neighbours is not None:
                return cls(typical, count, "nearest", period, weighted)
            shortest = min((p for p in period or () if p is not None), default=math.inf)
            radius = min(typical, 0.49 * shortest)
        degrees = [radius_edges(x, radius, period=period).degree for x in clouds]
        mean = float(torch.cat(degrees).double().mean())
        return cls(radius, max(1, round(mean)), "radius", period, weighted)

    def edges(self, points: Tensor, weights: Tensor | None = None) -> Edges:
        """Edges among points (N, d) with weights (N,)."""
        if self.by == "radius":
            return radius_edges(points, self.radius, weights=weights, period=self.period)
        return nearest_edges(points, self.neighbours, weights=weights, period=self.period)

    def joining(
        self, points: Tensor, receiver: Tensor, sender: Tensor, weights: Tensor | None = None
    ) -> Edges:
        """The same edges, if receivers and senders are known already: (E,) indices."""
        return joining_edges(points, receiver, sender, weights=weights, period=self.period)


def _typical_radius(
    clouds: Sequence[Tensor], count: int, period: Sequence[float | None] | None
) -> float:
    """The mean distance of the farthest of a number of neighbours, to three digits."""
    farthest = []
    for points in clouds:
        edges = nearest_edges(points, count, period=period)
        lengths = edges.position.double().norm(dim=-1).reshape(len(points), -1)
        farthest.append(lengths.amax(1))
    mean = float(torch.cat(farthest).mean())
    if not mean > 0:
        raise ValueError(
            f"the neighbours of points are at a distance of {mean}: clouds need several points at "
            "different positions, or give radius"
        )
    return float(f"{mean:.3g}")
