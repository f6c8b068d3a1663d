"""`Points`: where the points of a batch are, for fields that live on points instead of a grid.

Named fields are (batch, frames, points, components), packed ones (batch, channels, points, blades),
as on a grid with one axis. Samples with fewer points than the largest one are padded by copies of
their first point, so that padding never holds a number that no point has. The network sees points
alone, (points of all samples, channels, blades), and means over space count them alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import torch
from torch import Tensor, nn

from cscnn.geometry.edges import Edges
from cscnn.geometry.search import NeighbourSearch


class Points:
    """The points of one or several samples.

    Args:
        positions: (points of all samples, dim), sample after sample.
        edges: among them; samples do not see each other.
        sizes: points of each sample; by default there is one sample.
        weights: (points of all samples,), shares of the volume; None if all points count alike.

    Example:
        >>> search = NeighbourSearch(radius=0.3, neighbours=8)
        >>> points = Points.at([torch.rand(30, 2), torch.rand(50, 2)], search)
        >>> points.padded(torch.randn(80, 3, 4)).shape
        torch.Size([2, 3, 50, 4])
    """

    def __init__(
        self,
        positions: Tensor,
        edges: Edges,
        sizes: Sequence[int] | None = None,
        weights: Tensor | None = None,
    ):
        self.positions = positions
        self.edges = edges
        self.weights = weights
        self.sizes: tuple[int, ...] = (len(positions),) if sizes is None else tuple(sizes)
        if not sum(self.sizes) == len(positions) == edges.n_receivers == edges.n_senders:
            raise ValueError(
                f"samples of {self.sizes} points need as many positions and edges among them, got "
                f"{len(positions)} positions and {edges}"
            )

    @classmethod
    def at(
        cls,
        positions: Tensor | Sequence[Tensor],
        search: NeighbourSearch,
        weights: Tensor | Sequence[Tensor] | None = None,
    ) -> Points:
        """Points at these positions, with edges by a search.

        Args:
            positions: (points, dim) of one sample, or one tensor for each.
            search: how neighbours are found.
            weights: (points,) in the same form.
        """
        each = [positions] if isinstance(positions, Tensor) else list(positions)
        if not each:
            raise ValueError("expected the positions of at least one sample, got none")
        if search.weighted and weights is None:
            raise ValueError(
                "these points have weights: pass Points.at(positions, search, weights)"
            )
        shares: list[Tensor | None] = [None] * len(each)
        if weights is not None and search.weighted:
            shares = [weights] if isinstance(weights, Tensor) else list(weights)
        return cls.cat(
            [cls(x, search.edges(x, w), weights=w) for x, w in zip(each, shares, strict=True)]
        )

    @staticmethod
    def cat(parts: Sequence[Points]) -> Points:
        """Several batches as one."""
        weights = [part.weights for part in parts if part.weights is not None]
        return Points(
            torch.cat([part.positions for part in parts]),
            Edges.cat([part.edges for part in parts]) if len(parts) > 1 else parts[0].edges,
            [size for part in parts for size in part.sizes],
            torch.cat(weights) if len(weights) == len(parts) else None,
        )

    def __len__(self) -> int:
        """Samples."""
        return len(self.sizes)

    def __repr__(self) -> str:
        return f"Points({len(self)} samples of {', '.join(map(str, self.sizes))}; {self.edges})"

    @property
    def most(self) -> int:
        """Points of the largest sample."""
        return max(self.sizes)

    @cached_property
    def _index(self) -> Tensor:
        """(batch, most): place among all points; padding stands for the first of its sample."""
        sizes = torch.tensor(self.sizes)
        place = torch.arange(self.most)
        first = (sizes.cumsum(0) - sizes)[:, None]
        return (first + torch.where(place < sizes[:, None], place, 0)).to(self.positions.device)

    @cached_property
    def _inside(self) -> Tensor:
        """(points of all samples,): place among the entries of (batch, most)."""
        return torch.cat(
            [torch.arange(size) + row * self.most for row, size in enumerate(self.sizes)]
        ).to(self.positions.device)

    @cached_property
    def share(self) -> Tensor:
        """(batch, most): part of each point in means over space; 0 for padding."""
        weights = torch.ones_like(self.positions[:, 0]) if self.weights is None else self.weights
        rows = weights.new_zeros(len(self) * self.most).index_copy(0, self._inside, weights)
        rows = rows.reshape(len(self), self.most)
        return rows / rows.sum(1, keepdim=True)

    def apply(self, network: nn.Module, x: Tensor) -> Tensor:
        """A network along edges on packed fields (batch, channels, points, blades)."""
        y = network(self.flat(x), self.edges)
        assert isinstance(y, Tensor)
        return self.padded(y)

    def flat(self, x: Tensor) -> Tensor:
        """(batch, channels, most, blades) -> (points of all samples, channels, blades)."""
        if tuple(x.shape[i] for i in (0, 2)) != (len(self), self.most):
            raise ValueError(
                f"expected fields of {len(self)} samples with {self.most} points, the number of "
                f"the largest, got shape {tuple(x.shape)}"
            )
        return x.movedim(2, 1).flatten(0, 1).index_select(0, self._inside)

    def padded(self, y: Tensor) -> Tensor:
        """Inverse of `flat`."""
        return y[self._index].movedim(2, 1)

    def counted(self, x: Tensor) -> Tensor:
        """Packed fields whose mean squares over all entries are those over points.

        Every point is multiplied by the root of its share: sum share x² = mean of the squares.
        """
        root = (self.share * self.most).sqrt().to(x)
        return x * root[:, None, :, None]

    def samples(self) -> Iterator[tuple[int, Tensor | None]]:
        """Points and weights of each sample, for numbers that are taken one by one."""
        start = 0
        for size in self.sizes:
            yield size, None if self.weights is None else self.weights[start : start + size]
            start += size

    def to(self, like: Tensor | torch.device | torch.dtype | str) -> Points:
        """The same on another device or in another floating dtype."""
        edges = self.edges.to(like)
        if edges is self.edges:
            return self
        positions, weights = self.positions.to(edges.position), self.weights
        weights = None if weights is None else weights.to(edges.position)
        return Points(positions, edges, self.sizes, weights)

    def changed(self, positions: Tensor, edges: Edges) -> Points:
        """The same samples with their points elsewhere."""
        return Points(positions, edges, self.sizes, self.weights)


def stack_points(tensors: Sequence[Tensor], points: Points | None) -> Tensor:
    """Tensors of several samples as one with a first axis; on points they are padded.

    Args:
        tensors: (..., points, components), or (components,) of constants.
        points: of these samples; None on a grid.
    """
    if points is not None and tensors[0].dim() > 1:
        tensors = [pad_points(x, points.most) for x in tensors]
    return torch.stack(list(tensors))


def pad_points(x: Tensor, most: int) -> Tensor:
    """(..., points, components) -> (..., most, components): padding repeats the first point."""
    missing = most - x.shape[-2]
    return torch.cat([x, x[..., :1, :].expand(*x.shape[:-2], missing, -1)], -2) if missing else x


#: What forecasts take: points, or positions (points, dim), as one tensor for all samples or a list.
PointsLike = Points | Tensor | Sequence[Tensor]


def as_points(
    points: PointsLike | None, search: NeighbourSearch | None, batch: int, like: Tensor
) -> Points | None:
    """Points with their edges, on the device and in the dtype of a tensor; None on a grid.

    Args:
        points: with edges, or positions.
        search: how neighbours are found; None on a grid.
        batch: samples.
        like: has the device and the dtype.
    """
    if points is None or isinstance(points, Points):
        return None if points is None else points.to(like)
    if search is None:
        raise ValueError(f"the fields are on a grid, which takes no points: got {type(points)}")
    return Points.at([points] * batch if isinstance(points, Tensor) else points, search).to(like)
