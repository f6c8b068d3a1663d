"""`Edges`: senders and receivers, their relative positions, and changes of frames.

Convolution on point clouds and on curved spaces is one sum over edges,

    y_n = sum_m  w_nm  K(v_nm)  ρ(g_nm) f_m,

with v_nm the sender as seen from the receiver, in the receiver's orthonormal frame, g_nm in O(p, q)
what carries the sender's frame to the receiver's, and w_nm a weight. Everything that a space has to
say about a convolution is in these numbers.
"""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor

#: Neighbourhoods shorter than this part of the longest one of their group go to the next group.
SHORTEST = 0.75
#: What edges know from their receivers alone.
PAIRS_ONLY = {"degree", "_similar"}


class Group(NamedTuple):
    """Some receivers and their edges, padded to equal numbers.

    Attributes:
        receivers: (n,)
        edges: (n, k), indices of edges; padding repeats some edge of the receiver.
        present: (n, k), False where padded; None if nothing is.
    """

    receivers: Tensor
    edges: Tensor
    present: Tensor | None


@dataclass(frozen=True, eq=False)
class Edges:
    """Directed edges from senders to receivers, which may be different sets of points.

    Attributes:
        receiver, sender: (E,) indices.
        position: (E, d), where the receiver sees the sender, in the receiver's frame.
        transport: (E, d, d), takes components of a vector in the sender's frame to components in
            the receiver's frame. None in flat space, where all frames are the same.
        weight: (E,), the share of the sender in an integral; None for ones.
        n_receivers, n_senders: sizes of the two sets.
    """

    receiver: Tensor
    sender: Tensor
    position: Tensor
    transport: Tensor | None = None
    weight: Tensor | None = None
    n_receivers: int = 0
    n_senders: int = 0

    def __post_init__(self) -> None:
        for name, count in (("receiver", self.n_receivers), ("sender", self.n_senders)):
            _check_indices(getattr(self, name), name, count)
        count, dim = len(self.receiver), self.position.shape[-1]
        shapes = {"sender": (count,), "position": (count, dim)}
        shapes |= {"transport": (count, dim, dim), "weight": (count,)}
        for name, shape in shapes.items():
            value = getattr(self, name)
            if value is None:
                continue
            if tuple(value.shape) != shape:
                raise ValueError(f"{name} must have shape {shape}, got {tuple(value.shape)}")
            if value.is_floating_point() and not value.isfinite().all():
                bad = int((~value.isfinite()).flatten(1 - value.dim()).nonzero()[0, 0])
                raise ValueError(f"{name} of edge {bad} is not finite: {value[bad].tolist()}")

    def __len__(self) -> int:
        return len(self.receiver)

    @property
    def dim(self) -> int:
        """Dimension of the space."""
        return self.position.shape[-1]

    def __repr__(self) -> str:
        flat = "flat" if self.transport is None else "with transport"
        return (
            f"Edges({len(self)}: {self.n_senders} senders -> {self.n_receivers} receivers, "
            f"{self.dim}D, {flat})"
        )

    @classmethod
    def from_edge_index(
        cls,
        edge_index: Tensor,
        points: Tensor,
        *,
        receivers: Tensor | None = None,
        shift: Tensor | None = None,
        weights: Tensor | None = None,
    ) -> Edges:
        """Edges of a graph as other libraries write it: row 0 sends, row 1 receives.

        The order of edges is kept. Batches of clouds are graphs without edges between them.

        Args:
            edge_index: (2, E) of int64, sources and targets, as of PyTorch Geometric.
            points: (N, d), positions in flat space.
            receivers: (M, d), positions of the targets, if they are other points.
            shift: (E, d), for periodic cells: an edge leads from ``points[source]`` to
                ``points[target] + shift``, a copy of the target, as in ASE.
            weights: (N,) share of each sender in an integral.

        Example:
            >>> points = torch.tensor([[0.0, 0.0], [1.0, 0.0], [1.0, 2.0]])
            >>> edges = Edges.from_edge_index(torch.tensor([[0, 1], [1, 2]]), points)
            >>> edges.position[1]  # 2 sees 1 below
            tensor([ 0., -2.])
        """
        if edge_index.dim() != 2 or edge_index.shape[0] != 2:
            raise ValueError(f"edge_index must have shape (2, E), got {tuple(edge_index.shape)}")
        receivers = points if receivers is None else receivers
        for name, x in (("points", points), ("receivers", receivers)):
            if x.dim() != 2 or x.shape[1] != points.shape[-1] or not x.is_floating_point():
                raise ValueError(
                    f"{name} must be a floating tensor (number, dimension), got {x.dtype} of shape "
                    f"{tuple(x.shape)}"
                )
        sender, receiver = edge_index
        _check_indices(receiver, "receiver", len(receivers))
        _check_indices(sender, "sender", len(points))
        position = points[sender] - receivers[receiver]
        if shift is not None:
            if shift.shape != position.shape:
                raise ValueError(
                    f"shift must have shape {tuple(position.shape)}, got {tuple(shift.shape)}"
                )
            position = position - shift.to(position)
        edges = cls(receiver, sender, position, n_receivers=len(receivers), n_senders=len(points))
        return edges if weights is None else edges.weighted(weights)

    @property
    def edge_index(self) -> Tensor:
        """(2, E), senders and receivers: the inverse of `from_edge_index`."""
        return torch.stack([self.sender, self.receiver])

    def to(self, like: Tensor | torch.device | torch.dtype | str) -> Edges:
        """The same on another device or in another floating dtype."""
        if not isinstance(like, Tensor):
            like = self.position[:0].to(like)
        if (like.device, like.dtype) == (self.position.device, self.position.dtype):
            return self
        other = object.__new__(Edges)  # nothing is checked again, nothing sorted again
        for name in self.__dict__:
            object.__setattr__(other, name, _like(getattr(self, name), like))
        return other

    def _changed(self, **changes: Any) -> Edges:
        """The same pairs with other values; what was computed from the pairs is kept."""
        other = replace(self, **changes)
        other.__dict__.update({k: self.__dict__[k] for k in PAIRS_ONLY & self.__dict__.keys()})
        return other

    def weighted(self, weights: Tensor | None) -> Edges:
        """With the weight of each sender (n_senders,), e.g. its share of the volume."""
        if weights is None:
            return self._changed(weight=None)
        if tuple(weights.shape) != (self.n_senders,):
            raise ValueError(
                f"weights must have one entry for each of the {self.n_senders} senders, got shape "
                f"{tuple(weights.shape)}"
            )
        return self._changed(weight=weights.to(self.position)[self.sender])

    def change_frames(self, receivers: Tensor, senders: Tensor | None = None) -> Edges:
        """Edges seen from other frames.

        Args:
            receivers: (n_receivers, d, d) in O(p, q): components in the new frame of the receivers
                are h times the old ones.
            senders: the same for the senders; by default equal to ``receivers``, which are then
                the same points.
        """
        senders = receivers if senders is None else senders
        there, here = receivers[self.receiver], torch.linalg.inv(senders)[self.sender]
        old = torch.eye(self.dim).to(self.position) if self.transport is None else self.transport
        return self._changed(
            position=(there @ self.position.unsqueeze(-1)).squeeze(-1),
            transport=there @ old @ here,
        )

    def select(self, mask: Tensor) -> Edges:
        """Some of the edges, by a boolean mask or by indices."""
        return replace(
            self,
            receiver=self.receiver[mask],
            sender=self.sender[mask],
            position=self.position[mask],
            transport=None if self.transport is None else self.transport[mask],
            weight=None if self.weight is None else self.weight[mask],
        )

    @staticmethod
    def cat(parts: Sequence[Edges]) -> Edges:
        """Several sets of points as one set without edges between them: a batch."""
        if not parts:
            raise ValueError("cat needs at least one set of edges")
        curved = any(part.transport is not None for part in parts)
        weighted = any(part.weight is not None for part in parts)
        receivers, senders, shifted = 0, 0, []
        for part in parts:
            eye = torch.eye(part.dim).to(part.position).expand(len(part), -1, -1)
            shifted.append(
                replace(
                    part,
                    receiver=part.receiver + receivers,
                    sender=part.sender + senders,
                    transport=(eye if part.transport is None else part.transport),
                    weight=part.position.new_ones(len(part))
                    if part.weight is None
                    else part.weight,
                    n_receivers=receivers + part.n_receivers,
                    n_senders=senders + part.n_senders,
                )
            )
            receivers, senders = receivers + part.n_receivers, senders + part.n_senders
        return Edges(
            receiver=torch.cat([part.receiver for part in shifted]),
            sender=torch.cat([part.sender for part in shifted]),
            position=torch.cat([part.position for part in shifted]),
            transport=torch.cat([_required(p.transport) for p in shifted]) if curved else None,
            weight=torch.cat([_required(p.weight) for p in shifted]) if weighted else None,
            n_receivers=receivers,
            n_senders=senders,
        )

    def repeat(self, times: int) -> Edges:
        """The same edges for a batch of fields on the same points."""
        return Edges.cat([self] * times)

    @cached_property
    def degree(self) -> Tensor:
        """(n_receivers,), edges that arrive at each receiver."""
        return torch.bincount(self.receiver, minlength=self.n_receivers)

    @cached_property
    def _similar(self) -> tuple[Group, ...]:
        """Receivers of similar degree in one group, those with most edges first."""
        by_receiver = torch.argsort(self.receiver, stable=True)
        receivers = torch.argsort(self.degree, descending=True, stable=True)
        first = (self.degree.cumsum(0) - self.degree)[receivers]
        degrees = self.degree[receivers].tolist()
        groups: list[Group] = []
        start = 0
        while start < len(degrees) and degrees[start] > 0:
            longest = degrees[start]
            stop = bisect_right(degrees, -max(1, SHORTEST * longest), key=operator.neg)
            members = receivers[start:stop]
            place = torch.arange(longest, device=self.receiver.device)
            present = place < self.degree[members, None]
            inside = torch.minimum(place, self.degree[members, None] - 1)
            index = by_receiver[first[start:stop, None] + inside]
            groups.append(Group(members, index, present if degrees[stop - 1] < longest else None))
            start = stop
        return tuple(groups)

    def prepared(self) -> Edges:
        """These edges, sorted for convolution now instead of when the first convolution sees them.

        ``torch.compile(fullgraph=True)`` and ``torch.export`` need it, as sorting depends on data.
        """
        _ = self.degree, self._similar
        return self

    def groups(self, limit: int) -> Iterator[Group]:
        """Receivers of similar degree in one group, at most about ``limit`` edges at a time.

        Receivers without edges are in no group.
        """
        for receivers, edges, present in self._similar:
            step = max(1, limit // edges.shape[1])
            for start in range(0, len(receivers), step):
                rows = slice(start, start + step)
                yield Group(
                    receivers[rows], edges[rows], None if present is None else present[rows]
                )


def _check_indices(index: Tensor, name: str, count: int) -> None:
    """Raise unless a vector of indices names senders or receivers that exist."""
    if index.dtype != torch.int64 or index.dim() != 1:
        raise ValueError(
            f"{name} must be a vector of int64 indices, got {index.dtype} of shape "
            f"{tuple(index.shape)}"
        )
    if len(index) and not 0 <= int(index.min()) <= int(index.max()) < count:
        raise ValueError(
            f"{name} has indices from {int(index.min())} to {int(index.max())}, but there "
            f"are {count} {name}s"
        )


def _like(value: Any, like: Tensor) -> Any:
    """On the device of a tensor, and in its dtype if it is floating; tuples entry by entry."""
    if isinstance(value, Group):
        return Group(*(_like(x, like) for x in value))
    if isinstance(value, tuple):
        return tuple(_like(x, like) for x in value)
    if isinstance(value, Tensor):
        return value.to(like) if value.is_floating_point() else value.to(like.device)
    return value


def _required(value: Tensor | None) -> Tensor:
    assert value is not None
    return value
