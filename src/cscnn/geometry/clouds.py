"""Edges of point clouds in flat space R^{p,q}, and on flat tori and cylinders.

Neighbours are found with scipy's k-d tree, which needs memory for the edges only. Batches of clouds
of different sizes are one set of points with a vector of cloud numbers; clouds never see each
other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cscnn._util.optional import require
from cscnn.geometry.edges import Edges

#: Neighbours at exactly the radius belong to it, up to rounding: relative bounds on what that adds.
SLACK = (1e-9, 1e-2)
#: Pairs of points that are looked at together where no tree can find neighbours.
BLOCK = 1 << 20


def radius_edges(
    points: Tensor,
    radius: float | Sequence[float],
    *,
    receivers: Tensor | None = None,
    batch: Tensor | None = None,
    receiver_batch: Tensor | None = None,
    weights: Tensor | None = None,
    period: Sequence[float | None] | None = None,
    shape: str = "ball",
    loops: bool = True,
) -> Edges:
    """Edges from all senders within a radius, in the Euclidean distance of the coordinates.

    Args:
        points: (N, d), the senders.
        radius: one number, or for ``shape="box"`` one for each axis.
        receivers: (M, d) by default the senders themselves.
        batch: (N,) number of the cloud that each point belongs to.
        receiver_batch: (M,) the same for receivers, if those are given.
        weights: (N,) share of each sender in an integral.
        period: for each axis its period, or None where it has no end: a torus, a cylinder.
        shape: ``"ball"``, or ``"box"`` for the largest coordinate difference.
        loops: whether a point is its own neighbour.

    Example:
        >>> import torch
        >>> radius_edges(torch.rand(100, 3), 0.2)  # doctest: +ELLIPSIS
        Edges(... 100 senders -> 100 receivers, 3D, flat)
    """
    cloud = _Cloud(points, receivers, batch, receiver_batch, period)
    if shape not in ("ball", "box"):
        raise ValueError(f"shape must be 'ball' or 'box', got {shape!r}")
    each = [float(r) for r in radius] if isinstance(radius, Sequence) else [float(radius)]
    if len(each) not in (1, cloud.dim) or (len(each) > 1 and shape == "ball"):
        raise ValueError(
            f"radius must be one number, or one for each of {cloud.dim} axes with shape='box'; "
            f"got {radius} with shape={shape!r}"
        )
    if not all(0 < r < math.inf for r in each):
        raise ValueError(f"radius must be positive, got {radius}")
    each *= cloud.dim // len(each)
    slack = cloud.slack(each)
    for length, limit in zip(cloud.period, each, strict=True):
        if length is not None and 2 * limit >= length * (1 - slack):
            raise ValueError(
                f"radius {limit:g} reaches around an axis of period {length:g}: it must be less "
                "than half of it, so that a point is seen once"
            )
    senders, receivers_, box = cloud.for_tree(each)
    tree, other = cloud.tree(senders, box), cloud.tree(receivers_, box)
    near = other.sparse_distance_matrix(
        tree, 1 + slack, p=np.inf if shape == "box" else 2.0, output_type="ndarray"
    )
    return cloud.edges(near["i"], near["j"], weights, loops)


def nearest_edges(
    points: Tensor,
    neighbours: int,
    *,
    receivers: Tensor | None = None,
    batch: Tensor | None = None,
    receiver_batch: Tensor | None = None,
    weights: Tensor | None = None,
    period: Sequence[float | None] | None = None,
    loops: bool = True,
) -> Edges:
    """Edges from the nearest senders, in the Euclidean distance of the coordinates.

    Fewer in clouds that have fewer points. Boosts change who is near: use `all_pairs` or
    `interval_edges` where they matter. Arguments as for `radius_edges`; with ``loops`` a point
    counts among its own neighbours.
    """
    if neighbours < 1:
        raise ValueError(f"neighbours must be at least 1, got {neighbours}")
    cloud = _Cloud(points, receivers, batch, receiver_batch, period)
    extra = int(not loops and cloud.receivers is points)
    senders, receivers_, box = cloud.for_tree([1.0] * cloud.dim)
    count = min(neighbours + extra, len(points))
    if not count or not len(receivers_):
        return cloud.edges(np.zeros(0, np.int64), np.zeros(0, np.int64), weights, loops)
    _, index = cloud.tree(senders, box).query(receivers_, k=count, workers=-1)
    index = index.reshape(len(receivers_), count)
    if extra:  # the point itself goes last and is dropped; if a twin hides it, the farthest is
        own = index == np.arange(len(points))[:, None]
        index = np.take_along_axis(index, np.argsort(own, axis=1, kind="stable"), axis=1)[:, :-1]
    i = np.repeat(np.arange(len(receivers_)), index.shape[1])
    j = index.reshape(-1)
    same = cloud.numbers[1][i] == cloud.numbers[0][j]
    i, j = i[same], j[same]
    return cloud.edges(i, j, weights, loops)


def joining_edges(
    points: Tensor,
    receiver: Tensor,
    sender: Tensor,
    *,
    weights: Tensor | None = None,
    period: Sequence[float | None] | None = None,
) -> Edges:
    """Edges between pairs of points that are known already, e.g. from a file.

    Args:
        points: (N, d).
        receiver, sender: (E,) indices of the points of each pair.
        weights, period: as for `radius_edges`.
    """
    cloud = _Cloud(points, None, None, None, period)
    for name, index in (("receiver", receiver), ("sender", sender)):
        if len(index) and not 0 <= int(index.min()) <= int(index.max()) < len(points):
            raise ValueError(
                f"{name} must be indices of {len(points)} points, got {int(index.min())} to "
                f"{int(index.max())}"
            )
    return cloud.edges(receiver.cpu().numpy(), sender.cpu().numpy(), weights, loops=True)


def all_pairs(
    points: Tensor,
    *,
    receivers: Tensor | None = None,
    batch: Tensor | None = None,
    receiver_batch: Tensor | None = None,
    weights: Tensor | None = None,
    loops: bool = True,
) -> Edges:
    """Every sender to every receiver of the same cloud: what all isometries, boosts too, keep.

    Arguments as for `radius_edges`.
    """
    cloud = _Cloud(points, receivers, batch, receiver_batch, None)
    i, j = cloud.pairs()
    return cloud.edges(i, j, weights, loops)


def interval_edges(
    points: Tensor,
    metric: Sequence[int],
    interval: float,
    *,
    euclidean_radius: float | None = None,
    receivers: Tensor | None = None,
    batch: Tensor | None = None,
    receiver_batch: Tensor | None = None,
    weights: Tensor | None = None,
    period: Sequence[float | None] | None = None,
    loops: bool = True,
) -> Edges:
    """Edges with |η(v, v)|^(1/2) at most ``interval``: a neighbourhood that all isometries keep.

    In mixed signature it runs along the light cone without end, and all pairs of points have to be
    looked at, in blocks. ``euclidean_radius``, a bound on the Euclidean distance, ends it, at the
    price of exact symmetry under boosts; then the neighbours are found by a tree.

    Args:
        metric: one sign for each axis.
        interval: largest proper time or distance.
        euclidean_radius: largest Euclidean distance of the coordinates, for large clouds.
        period: as for `radius_edges`; needs ``euclidean_radius``.
        points, receivers, batch, receiver_batch, weights, loops: as for `radius_edges`.
    """
    if not interval > 0:
        raise ValueError(f"interval must be positive, got {interval}")
    signs = torch.as_tensor(tuple(metric), dtype=points.dtype, device=points.device)
    if signs.shape != points.shape[1:] or not (signs.abs() == 1).all():
        raise ValueError(
            f"metric must have a sign for each of {points.shape[-1]} axes, got {tuple(metric)}"
        )
    size = largest(points, points if receivers is None else receivers)

    def near(v: Tensor) -> Tensor:
        return (v.square() @ signs).abs() <= square_limit(interval, v, size)

    if euclidean_radius is not None:
        edges = radius_edges(
            points, euclidean_radius, receivers=receivers, batch=batch,
            receiver_batch=receiver_batch, weights=weights, period=period, loops=loops,
        )  # fmt: skip
        return edges.select(near(edges.position.detach()))
    if period is not None:
        raise ValueError(
            f"period {tuple(period)} needs a euclidean_radius, so that a point is seen once"
        )
    cloud = _Cloud(points, receivers, batch, receiver_batch, None)
    i, j = cloud.blocks(near)
    return cloud.edges(i, j, weights, loops)


def largest(*points: Tensor) -> float:
    """The largest coordinate, in absolute value."""
    return max((float(x.detach().abs().max()) for x in points if x.numel()), default=0.0)


def square_limit(length: float, v: Tensor, size: float | Tensor) -> Tensor:
    """What |η(v, v)| may be if v, a difference of points, is at most of a length.

    Coordinates of some size are rounded, and so is v, by up to about 2 eps size.

    Args:
        length: the length.
        v: (..., d)
        size: of the coordinates that v is the difference of; a number or (...).
    """
    rounding = 8 * torch.finfo(v.dtype).eps * size * v.norm(dim=-1)
    return length**2 * (1 + (rounding / length**2).clamp(*SLACK))


class _Cloud:
    """Checked input of the functions above."""

    def __init__(
        self,
        points: Tensor,
        receivers: Tensor | None,
        batch: Tensor | None,
        receiver_batch: Tensor | None,
        period: Sequence[float | None] | None,
    ):
        if receivers is None:
            if receiver_batch is not None:
                raise ValueError("receiver_batch goes with receivers")
            receivers, receiver_batch = points, batch
        elif (batch is None) != (receiver_batch is None):
            raise ValueError("batch and receiver_batch go together")
        self.points, self.receivers = points, receivers
        self.dim = points.shape[-1] if points.dim() == 2 else 0
        for name, x in (("points", points), ("receivers", receivers)):
            if x.dim() != 2 or x.shape[1] != self.dim or not x.is_floating_point():
                raise ValueError(
                    f"{name} must be a floating tensor (number, dimension), got {x.dtype} of shape "
                    f"{tuple(x.shape)}"
                )
            if not x.isfinite().all():
                bad = int((~x.isfinite()).any(-1).nonzero()[0, 0])
                raise ValueError(f"{name} must be finite; number {bad} is {x[bad].tolist()}")
        if period is not None and len(period) != self.dim:
            raise ValueError(f"period needs a value for each of {self.dim} axes, got {period}")
        self.period = list(period) if period is not None else [None] * self.dim
        if any(length is not None and not 0 < length < math.inf for length in self.period):
            raise ValueError(f"periods must be positive, or None, got {period}")
        self.numbers = [
            np.zeros(len(x), np.int64) if b is None else _check_batch(b, x).cpu().numpy()
            for x, b in ((points, batch), (receivers, receiver_batch))
        ]

    def for_tree(self, unit: list[float]) -> tuple[Any, Any, Any]:
        """Senders and receivers for a k-d tree, in units of a length per axis, and its box.

        A last coordinate keeps clouds further apart than any two points of one.
        """
        scale = np.asarray(unit)
        senders, receivers = (
            x.detach().cpu().double().numpy() / scale for x in (self.points, self.receivers)
        )
        box = np.array([0.0 if p is None else p for p in self.period]) / scale
        for x in (senders, receivers):
            x[:, box > 0] %= box[box > 0]
            x[:, box > 0] = np.where(x >= np.where(box > 0, box, np.inf), 0.0, x)[:, box > 0]
        if any(numbers.any() for numbers in self.numbers):
            both = np.concatenate([senders, receivers])
            width = 3 + 2 * float(np.linalg.norm(np.ptp(both, axis=0))) if len(both) else 1.0
            senders, receivers = (
                np.c_[x, width * numbers]
                for x, numbers in zip((senders, receivers), self.numbers, strict=True)
            )
            box = np.r_[box, 0.0]
        return senders, receivers, box

    def slack(self, unit: list[float]) -> float:
        """How far beyond a length per axis rounding may carry a neighbour, relative to it."""
        rounding = [
            4 * torch.finfo(x.dtype).eps * largest(x / x.new_tensor(unit))
            for x in (self.points, self.receivers)
        ]
        return min(max(*rounding, SLACK[0]), SLACK[1])

    @staticmethod
    def tree(x: Any, box: Any) -> Any:
        spatial = require("scipy.spatial", "neighbour search", "geometry")
        return spatial.cKDTree(x, boxsize=box if box.any() else None)

    def pairs(self) -> tuple[Any, Any]:
        """All pairs (receiver, sender) of the same cloud."""
        senders, receivers = self.numbers
        order = np.argsort(senders, kind="stable")
        clouds, first, count = np.unique(senders[order], return_index=True, return_counts=True)
        place = np.searchsorted(clouds, receivers)
        inside = np.minimum(place, max(len(clouds) - 1, 0))
        known = (place < len(clouds)) & (clouds[inside] == receivers) if len(clouds) else place < 0
        rows = np.flatnonzero(known)
        lengths = count[inside[rows]]
        i = np.repeat(rows, lengths)
        within = np.arange(len(i)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return i, order[np.repeat(first[inside[rows]], lengths) + within]

    def blocks(self, near: Callable[[Tensor], Tensor]) -> tuple[Any, Any]:
        """Pairs (receiver, sender) of the same cloud whose difference is near."""
        senders, receivers = (x.detach() for x in (self.points, self.receivers))
        clouds = [torch.from_numpy(numbers).to(senders.device) for numbers in self.numbers]
        pairs = [np.zeros((2, 0), np.int64)]
        step = max(1, BLOCK // max(1, len(senders)))
        for start in range(0, len(receivers), step):
            block = slice(start, start + step)
            mask = near(senders - receivers[block, None]) & (clouds[0] == clouds[1][block, None])
            i, j = mask.nonzero(as_tuple=True)
            pairs.append(torch.stack([i + start, j]).cpu().numpy())
        both = np.concatenate(pairs, 1)
        return both[0], both[1]

    def edges(self, i: Any, j: Any, weights: Tensor | None, loops: bool) -> Edges:
        """Edges from senders j to receivers i, in the order of receivers and senders."""
        if not loops:
            if self.receivers is not self.points:
                raise ValueError("loops=False goes with receivers that are the senders")
            i, j = i[i != j], j[i != j]
        order = np.lexsort((j, i))
        receiver, sender = (
            torch.from_numpy(np.ascontiguousarray(x[order], np.int64)).to(self.points.device)
            for x in (i, j)
        )
        position = self.points[sender] - self.receivers[receiver]
        for axis, length in enumerate(self.period):
            if length is not None:
                turns = torch.zeros_like(position)
                turns[:, axis] = length * (position[:, axis].detach() / length).round()
                position = position - turns
        edges = Edges(
            receiver, sender, position, n_receivers=len(self.receivers), n_senders=len(self.points)
        )
        return edges if weights is None else edges.weighted(weights)


def _check_batch(batch: Tensor, points: Tensor) -> Tensor:
    if batch.shape != points.shape[:1] or batch.is_floating_point():
        raise ValueError(
            f"batch must hold an integer for each of {len(points)} points, got {batch.dtype} of "
            f"shape {tuple(batch.shape)}"
        )
    if len(batch) and int(batch.min()) < 0:
        raise ValueError(f"batch numbers must not be negative, got {int(batch.min())}")
    return batch
