"""The suite of spaces: what convolution on a geometry relies on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor

from cscnn.algebra import CliffordAlgebra
from cscnn.geometry import Edges
from cscnn.testing.conformance.suite import (
    Suite,
    check,
    check_close,
    check_control,
    noise,
    specialise,
)
from cscnn.testing.errors import relative_error

#: A map of points (N, D) to points that keeps all lengths; torch operations on each row alone.
Isometry = Callable[[Tensor], Tensor]


class Space(Protocol):
    """What the suite asks of a space. Points are rows (N, D) of coordinates.

    Attributes:
        metric: signs of an orthonormal frame.
    """

    @property
    def metric(self) -> tuple[int, ...]: ...

    def form(self, x: Tensor, /) -> Tensor:
        """The form that frames are orthonormal in, (D, D) or (N, D, D)."""

    def frames(self, x: Tensor, /) -> Tensor:
        """An orthonormal frame at each point (N, D, d), vectors as columns."""

    def exp(self, x: Tensor, u: Tensor, /) -> Tensor:
        """Where the geodesics from x with velocities u (N, D) end after unit time."""

    def log(self, x: Tensor, y: Tensor, /) -> tuple[Tensor, Tensor]:
        """Velocities (N, D) of the geodesics from x to y, and whether there are any (N,)."""

    def edges(self, points: Tensor, /, *args: Any, **options: Any) -> Edges:
        """Edges between the points; ``frames=`` gives the frames that they refer to."""


class SpaceSuite(Suite):
    """Tests of a space by its edges, which are all that convolutions see of it."""

    build: Callable[[], Space]
    points: Tensor
    make_edges: Callable[[Space, Tensor, Tensor], Edges]
    isometries: Mapping[str, Isometry]
    tol: float

    def edges(self, points: Tensor, frames: Tensor | None = None) -> Edges:
        """Edges between points, in their own frames or in others."""
        space = self.build()
        return self.make_edges(space, points, space.frames(points) if frames is None else frames)

    def signs(self) -> Tensor:
        """The form in orthonormal frames, (d, d)."""
        return torch.diag(torch.tensor(self.build().metric, dtype=torch.float64))

    def test_frames_are_orthonormal(self) -> None:
        """E^T G E = diag(metric)."""
        space = self.build()
        frames = space.frames(self.points)
        gram = frames.mT @ space.form(self.points) @ frames
        check_close(gram, self.signs().expand_as(gram), self.tol, "frames are not orthonormal")

    def test_log_inverts_exp(self) -> None:
        """log(x, exp(x, u)) = u for short u, and exp(x, log(x, y)) = y."""
        space, x = self.build(), self.points
        frames = space.frames(x)
        u = (frames @ (0.1 * noise(len(x), frames.shape[-1], 1))).squeeze(-1)
        back, joined = space.log(x, space.exp(x, u))
        check(bool(joined.all()), "log finds no geodesic to where exp has just led")
        check_close(back, u, self.tol, "log(x, exp(x, u)) is not u")
        edges = self.edges(x)
        start, end = x[edges.receiver], x[edges.sender]
        v, joined = space.log(start, end)
        check(bool(joined.all()), "there are edges between points that log does not join")
        miss, joined = space.log(end, space.exp(start, v))
        check(bool(joined.all()), "exp(x, log(x, y)) is far from y")
        error = float(miss.abs().max() / v.abs().max())
        check(error <= self.tol, f"exp(x, log(x, y)) misses y by {error:.1e} of the distance")

    def test_positions_are_logarithms(self) -> None:
        """The receiver sees the sender at log(receiver, sender), in its frame."""
        edges, space = self.edges(self.points), self.build()
        frames = space.frames(self.points)[edges.receiver]
        seen = (frames @ edges.position.unsqueeze(-1)).squeeze(-1)
        v, _ = space.log(self.points[edges.receiver], self.points[edges.sender])
        check_close(seen, v, self.tol, "positions of edges are not logarithms in the frames")

    def test_transport_is_an_isometry(self) -> None:
        """T^T η T = η: inner products are kept."""
        transport, signs = _transport(self.edges(self.points)), self.signs()
        gram = transport.mT @ signs @ transport
        check_close(gram, signs.expand_as(gram), self.tol, "transport changes inner products")

    def test_transport_back_is_the_inverse(self) -> None:
        """Along the reversed geodesic everything comes back, and velocities change their sign."""
        edges = self.edges(self.points)
        place = {pair: index for index, pair in enumerate(_pairs(edges))}
        lonely = [pair for pair in place if pair[::-1] not in place]
        check(not lonely, f"edges without one in the other direction: {lonely[:3]}")
        back = torch.tensor([place[pair[::-1]] for pair in place])
        transport = _transport(edges)
        eye = torch.eye(edges.dim, dtype=torch.float64).expand_as(transport)
        there_and_back = transport @ transport[back]
        check_close(there_and_back, eye, self.tol, "transport there and back is not the identity")
        velocity = (transport @ edges.position[back].unsqueeze(-1)).squeeze(-1)
        check_close(-velocity, edges.position, self.tol, "a geodesic does not carry its velocity")

    def test_frames_can_be_chosen(self) -> None:
        """Edges in other frames are those of `Edges.change_frames`."""
        frames, algebra = self.build().frames(self.points), CliffordAlgebra(self.build().metric)
        generator = torch.Generator().manual_seed(1)
        h = algebra.random_orthogonal(
            "any", batch=len(frames), generator=generator, dtype=torch.float64
        )
        changed = self.edges(self.points, frames @ torch.linalg.inv(h))
        check_edges(changed, self.edges(self.points).change_frames(h), self.tol, "other frames")

    def test_isometry(self, isometry: str) -> None:
        """Edges of moved points, in frames that move along, are the same."""
        frames = self.build().frames(self.points)
        points, pushed = push(self.isometries[isometry], self.points, frames)
        expected = self.edges(self.points, frames)
        check_edges(self.edges(points, pushed), expected, self.tol, f"the {isometry}")

    def test_control(self) -> None:
        """Edges do change if one point moves alone."""
        space, moved = self.build(), self.points.clone()
        moved[:1] = space.exp(moved[:1], 0.1 * space.frames(moved[:1])[..., 0])
        here, there = self.edges(self.points), self.edges(moved)
        same = _pairs(here) == _pairs(there)
        error = relative_error(there.position, here.position) if same else float("inf")
        check_control({"a single point that moves": error}, self.tol)

    def test_dtype(self) -> None:
        """Points in single precision have edges in single precision, nearly the same."""
        frames = self.build().frames(self.points)
        edges = self.edges(self.points.float(), frames.float())
        dtypes = {edges.position.dtype, _transport(edges).dtype}
        check(dtypes == {torch.float32}, f"edges of float32 points are {dtypes}")
        wide = replace(edges.to(torch.float64))
        check_edges(wide, self.edges(self.points, frames), 1e-3, "single precision")

    def test_no_points(self) -> None:
        """Without points there are no edges."""
        count = len(self.edges(self.points[:0]))
        check(count == 0, f"there are {count} edges between no points")


def _pairs(edges: Edges) -> list[tuple[int, int]]:
    return list(zip(edges.receiver.tolist(), edges.sender.tolist(), strict=True))


def _transport(edges: Edges) -> Tensor:
    """Its matrices, (E, d, d), also in flat space."""
    if edges.transport is not None:
        return edges.transport
    return torch.eye(edges.dim).to(edges.position).expand(len(edges), -1, -1)


def check_edges(actual: Edges, expected: Edges, tol: float, claim: str) -> None:
    """Raise ``AssertionError`` unless edges join the same points in the same way."""
    check(_pairs(actual) == _pairs(expected), f"with {claim} other points are joined")
    check_close(actual.position, expected.position, tol, f"with {claim} positions differ")
    transports = _transport(actual), _transport(expected)
    check_close(*transports, tol, f"with {claim} transport differs")


def push(isometry: Isometry, points: Tensor, frames: Tensor) -> tuple[Tensor, Tensor]:
    """Points (N, D) and frames (N, D, d) moved by a map and its derivative."""
    columns = [torch.func.jvp(isometry, (points,), (v,)) for v in frames.unbind(-1)]
    return columns[0][0], torch.stack([column[1] for column in columns], -1)


def linear_isometries(signs: tuple[int, ...], rapidity: float = 1.0) -> dict[str, Isometry]:
    """A map of every kind in O(p, q) for spaces that lie in a flat one with these signs."""
    algebra, generator = CliffordAlgebra(signs), torch.Generator().manual_seed(0)
    maps: dict[str, Isometry] = {}
    for kind in algebra.kinds():
        g = algebra.random_orthogonal(
            kind, rapidity=rapidity, generator=generator, dtype=torch.float64
        )
        maps[kind] = partial(_move, g)
    return maps


def _move(g: Tensor, points: Tensor) -> Tensor:
    return points @ g.mT.to(points)


def space(
    build: Callable[[], Space],
    *,
    points: Tensor,
    isometries: Mapping[str, Isometry] | None = None,
    edges: Callable[[Any, Tensor, Tensor], Edges] = lambda space, points, frames: space.edges(
        points, frames=frames
    ),
    tol: float = 1e-9,
) -> type[SpaceSuite]:
    """The tests of a space, as a class for pytest.

    Orthonormal frames, log as the inverse of exp, positions, transport that keeps inner products
    and is inverted along the reversed geodesic, free choice of frames, isometries, a control,
    single precision, no points.

    Args:
        build: makes the space, see `Space`.
        points: (N, D), some points of it, near enough to be joined.
        isometries: name -> a map of points; see `linear_isometries`. Frames are moved along by its
            derivative.
        edges: ``edges(space, points, frames)``, if ``space.edges`` needs more arguments.
        tol: largest relative error, in float64.

    Example:
        >>> from cscnn.geometry import fibonacci_sphere, sphere
        >>> from cscnn.testing import conformance
        >>> points, _ = fibonacci_sphere(8)
        >>> turns = conformance.linear_isometries((1, 1, 1))
        >>> TestSphere = conformance.space(lambda: sphere(2), points=points, isometries=turns)
        >>> conformance.failures(TestSphere)
        {}
    """
    if points.dim() != 2 or len(points) < 3 or not points.is_floating_point():
        raise ValueError(
            f"points must be a floating tensor (at least 3, D), got {points.dtype} of shape "
            f"{tuple(points.shape)}"
        )
    isometries = dict(isometries or {})
    return specialise(
        SpaceSuite,
        build=build,
        points=points.double(),
        make_edges=edges,
        isometries=isometries,
        tol=tol,
        cases={"isometry": list(isometries)},
    )
