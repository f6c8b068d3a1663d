"""The suite of networks on sets of points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from cscnn.algebra import CliffordAlgebra
from cscnn.geometry import ConstantCurvature, Edges, all_pairs
from cscnn.testing.conformance.modules import DTYPES, ModuleSuite, optional_tests
from cscnn.testing.conformance.suite import (
    METRICS,
    Metric,
    Setting,
    Symmetry,
    check,
    check_close,
    check_control,
    first_setting,
    noise,
    settings,
    specialise,
    symmetries,
)
from cscnn.testing.errors import random_element, relative_error

COUNT = 9


class PointNetworkSuite(ModuleSuite):
    """Tests of a network (points, c_in, blades), edges -> (points, c_out, blades)."""

    build: Callable[[CliffordAlgebra, int, int], nn.Module]
    edges: Callable[[Tensor], Edges]
    c_in: int
    c_out: int
    tol: float
    rapidity: float

    def make(self, algebra: CliffordAlgebra, **choice: Any) -> nn.Module:
        return self.build(algebra, self.c_in, self.c_out)

    def inputs(self, algebra: CliffordAlgebra, dtype: torch.dtype) -> tuple[Any, ...]:
        x, points = self.cloud(algebra)
        return x.to(dtype), self.edges(points.to(dtype)).prepared()

    def empty_inputs(self, algebra: CliffordAlgebra) -> tuple[tuple[Any, ...], int]:
        x, points = self.cloud(algebra)
        return (x[:0], self.edges(points[:0])), 0

    def cloud(self, algebra: CliffordAlgebra, count: int = COUNT) -> tuple[Tensor, Tensor]:
        """Features (count, c_in, blades) and points (count, dim)."""
        x = noise(count, self.c_in, algebra.n_blades)
        return x, 0.5 * noise(count, algebra.dim, seed=0)

    def moved(self, symmetry: Symmetry, points_too: bool) -> tuple[Tensor, Tensor]:
        """The output for a moved cloud, and the moved output.

        Args:
            symmetry: how it moves.
            points_too: also move the points, and not the features alone.
        """
        algebra = symmetry.algebra
        net, (x, points) = self.module(algebra), self.cloud(algebra)
        generator = torch.Generator().manual_seed(3)
        g = random_element(algebra, symmetry.group, symmetry.kind, self.rapidity, generator)
        shift = torch.arange(1.0, 1 + algebra.dim, dtype=torch.float64)
        there = points @ g.mT + shift if points_too else points
        y = net(x, self.edges(points))
        return net(algebra.transform(g, x), self.edges(there)), algebra.transform(g, y)

    def test_isometry(self, symmetry: Symmetry) -> None:
        """f(ρ(g) x, g·points + t) = ρ(g) f(x, points): translation with each kind of g."""
        actual, expected = self.moved(symmetry, points_too=True)
        check_close(actual, expected, self.tol, f"it does not commute with {symmetry}")

    def test_control(self, symmetry: Symmetry) -> None:
        """The same is not true if the points stay behind."""
        check_control({str(symmetry): relative_error(*self.moved(symmetry, False))}, self.tol)

    def test_permutation(self, setting: Setting) -> None:
        """Points in another order give the output in that order."""
        algebra = setting.algebra
        net, (x, points) = self.module(algebra), self.cloud(algebra)
        order = torch.randperm(COUNT, generator=torch.Generator().manual_seed(0))
        y = net(x, self.edges(points))
        expected = (COUNT, self.c_out, algebra.n_blades)
        check(y.shape == expected, f"the output has shape {tuple(y.shape)}, not {expected}")
        permuted = net(x[order], self.edges(points[order]))
        check_close(permuted, y[order], self.tol, "it depends on the order of the points")

    def test_gauge(self, setting: Setting) -> None:
        """f(ρ(h) x, edges in frames h) = ρ(h) f(x, edges) for arbitrary frames, in curved space.

        Without parallel transport that is false: the control.
        """
        algebra = setting.algebra
        net, (x, v) = self.module(algebra), self.cloud(algebra)
        edges = curved_edges(setting.algebra.metric, v)
        generator = torch.Generator().manual_seed(2)
        h = torch.stack(
            [random_element(algebra, setting.group, "any", 1.0, generator) for _ in range(len(x))]
        )
        rho, changed = algebra.action(h).mT, edges.change_frames(h)
        expected = net(x, edges) @ rho
        check_close(net(x @ rho, changed), expected, self.tol, "it depends on the frames")
        blind = (replace(e, transport=None) for e in (edges, changed))
        y, changed_y = (net(f, e) for f, e in zip((x, x @ rho), blind, strict=True))
        if algebra.dim > 1 or setting.group == "O":
            check_control({"changes of frames": relative_error(changed_y, y @ rho)}, self.tol)

    def test_batch(self) -> None:
        """Sets of points without edges between them do not see each other."""
        net = self.module(self.algebra)
        parts = [self.cloud(self.algebra, count) for count in (4, COUNT)]
        edges = [self.edges(points) for _, points in parts]
        alone = torch.cat([net(x, e) for (x, _), e in zip(parts, edges, strict=True)])
        together = net(torch.cat([x for x, _ in parts]), Edges.cat(edges))
        check_close(together, alone, self.tol, "a set of points depends on others of its batch")


def curved_edges(metric: Metric, v: Tensor) -> Edges:
    """Edges of a space of constant curvature with this metric, of points around one of them."""
    space = ConstantCurvature((1, *metric), 1)
    start = torch.zeros(len(v), len(metric) + 1, dtype=v.dtype)
    start[:, 0] = 1
    return space.edges(space.exp(start, (space.frames(start) @ v.unsqueeze(-1)).squeeze(-1)))


def point_network(
    build: Callable[[CliffordAlgebra, int, int], nn.Module],
    *,
    c_in: int = 2,
    c_out: int = 3,
    metrics: Sequence[Metric | CliffordAlgebra] = METRICS,
    kinds: Sequence[str] | None = None,
    group: str = "O",
    edges: Callable[[Tensor], Edges] = all_pairs,
    tol: float = 1e-9,
    rapidity: float = 1.0,
    compiles: bool = True,
    jitter: float = 0.1,
    idle: Sequence[str] = (),
) -> type[PointNetworkSuite]:
    """The tests of a network on sets of points, as a class for pytest.

    E(p, q) on clouds with boosts and reflections, a control, permutations of the points, changes of
    frames in curved space, batches and empty sets, gradients that reach every parameter, dtypes,
    autocast, ``torch.compile``, copies, pickles and files.

    Args:
        build: called as ``build(algebra, c_in, c_out)``; the network is called with features
            (points, c_in, blades) and `Edges`.
        c_in, c_out: channels.
        metrics: or algebras, to test with. What does not depend on the metric takes the first of
            several axes.
        kinds: of transformations; by default all that exist.
        group: ``"O"``, ``"SO"``, ``"O+"`` or ``"SO+"``.
        edges: of points (N, dim). All pairs by default, since boosts do not keep neighbourhoods.
        tol: largest relative error of a symmetry, in float64.
        rapidity: largest of boosts.
        compiles: test ``torch.compile(fullgraph=True)``.
        jitter: standard deviation of noise on the parameters.
        idle: parameters that may have no effect, e.g. ``"*.mask_width"``.

    Example:
        >>> from cscnn.conv import CliffordSteerablePointConv
        >>> from cscnn.testing import conformance
        >>> TestConv = conformance.point_network(CliffordSteerablePointConv, metrics=[(1, -1)])
        >>> conformance.failures(TestConv, "isometry")
        {}
    """
    cases = symmetries(metrics, kinds, (group,))
    return specialise(
        PointNetworkSuite,
        without=optional_tests(compiles),
        build=build,
        edges=edges,
        c_in=c_in,
        c_out=c_out,
        tol=tol,
        rapidity=rapidity,
        jitter=jitter,
        idle=tuple(idle),
        algebra=first_setting(cases).algebra,
        cases={"symmetry": cases, "setting": settings(cases), "dtype": DTYPES},
    )
