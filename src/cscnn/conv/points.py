"""`CliffordSteerablePointConv`: equivariant convolution on point clouds and curved spaces."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from cscnn._util.checks import check_int
from cscnn._util.torch_private import transforming
from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.clifford import check_algebra
from cscnn.conv.moments import Sums, each_group, masked, plain, rows_of_edges, summed
from cscnn.conv.precision import full_precision
from cscnn.geometry.edges import Edges, Group
from cscnn.kernels import Complete, Invariants, KernelChoice, SteerableKernel, invariants
from cscnn.kernels.choices import build_kernel
from cscnn.kernels.messages import message_table
from cscnn.nn.functional import check_field
from cscnn.nn.fused import by_hand
from cscnn.nn.linear import add_bias, bias_shape

AGGREGATIONS = ("sum", "mean", "weighted mean", "integral")
#: Numbers that all messages of a group of receivers may fill, more or less.
ROOM = 1 << 22
#: The same where the operation is written by hand, and messages are in the cache meanwhile.
ROOM_BY_HAND = 1 << 20
#: Numbers that the messages of all groups may fill before they are made again for gradients.
KEPT = 1 << 26
#: Edges whose radial features are computed together if they are made again.
CHUNK = 1 << 14


class CliffordSteerablePointConv(nn.Module):
    """Convolution along edges with a steerable kernel: exactly equivariant, on any space.

    ``y_n = sum_m w_nm K(v_nm / radius) ρ(g_nm) f_m`` over the edges m -> n, plus a bias on scalars.
    On flat clouds it commutes with all isometries E(p, q) that keep the set of edges; on curved
    spaces with isometries, and with arbitrary changes of the frames (gauge transformations).

    The kernels are those of `CliffordSteerableConv`. Their matrices are never built: an edge
    carries what the basis kernels make of the sender's feature, and channels are mixed after the
    sum over edges where the kernel allows it (``"complete"``).

    Args:
        algebra: the Clifford algebra.
        c_in, c_out: channels.
        radius: the length that the kernel sees as 1.
        kernel: a choice, e.g. ``Complete(group="O+")``; the name of one, for its default options;
            or a `SteerableKernel` of your own.
        aggregation: ``"sum"``; ``"mean"``, by the number of edges of the receiver; ``"weighted
            mean"``, by the sum of their weights; ``"integral"``, by radius^d: with weights that are
            shares of the volume it converges to an integral as the points get denser.
        window: let the kernel fade out smoothly towards |η(v, v)| = radius².
        neighbours: typical number of edges per receiver, for the initial size of kernels.
        bias: as for `CliffordSteerableConv`.

    Shape:
        (senders, c_in, blades) and edges -> (receivers, c_out, blades)

    Example:
        >>> import torch
        >>> from cscnn.geometry import radius_edges
        >>> alg = CliffordAlgebra((1, 1, 1))
        >>> edges = radius_edges(torch.rand(50, 3), radius=0.3)
        >>> conv = CliffordSteerablePointConv(alg, c_in=2, c_out=4, radius=0.3)
        >>> conv(torch.randn(50, 2, 8), edges).shape
        torch.Size([50, 4, 8])
    """

    def __init__(
        self,
        algebra: CliffordAlgebra,
        c_in: int,
        c_out: int,
        radius: float = 1.0,
        *,
        kernel: str | KernelChoice | SteerableKernel = Complete(),
        aggregation: str = "sum",
        window: bool = False,
        neighbours: int = 32,
        bias: bool | Sequence[int] = True,
    ):
        super().__init__()
        self.algebra: CliffordAlgebra = check_algebra(algebra)
        self.c_in: int = check_int("c_in", c_in, low=1)
        self.c_out: int = check_int("c_out", c_out, low=1)
        check_int("neighbours", neighbours, low=1)
        if not 0 < radius < math.inf:
            raise ValueError(f"radius must be positive, got {radius}")
        if aggregation not in AGGREGATIONS:
            raise ValueError(
                f"aggregation must be one of {', '.join(AGGREGATIONS)}, got {aggregation!r}"
            )
        self.radius = float(radius)
        self.aggregation = aggregation
        self.window = window
        points = _ball(algebra.dim, neighbours)
        self.kernel: SteerableKernel = build_kernel(kernel, algebra, self.c_in, self.c_out, points)
        if self.kernel.extra_channels:
            raise ValueError(
                "kernels that are given multivectors, by extra channels or a condition, are for "
                f"grids, not for edges; got {self.kernel.extra_channels} extra channels"
            )
        self.table = message_table(self.kernel.basis)
        self.neighbours: int | None = None if isinstance(kernel, SteerableKernel) else neighbours
        self._scale()
        shape = bias_shape(bias, self.c_out, algebra, self.kernel.group)
        self.bias: nn.Parameter | None = None if shape is None else nn.Parameter(torch.zeros(shape))

    def _scale(self) -> None:
        """Let kernels give unit noise from unit noise at first, however it is added up."""
        if self.neighbours is None or self.aggregation == "sum":
            return
        factor = float(self.neighbours)
        if self.aggregation == "integral":  # a neighbour stands for this part of the ball
            dim = self.algebra.dim
            factor *= math.gamma(dim / 2 + 1) / math.pi ** (dim / 2)
        with torch.no_grad():
            self.kernel.scale_output_(torch.full((self.algebra.n_grades,), factor))

    def reset_parameters(self) -> None:
        """Draw the kernel's weights anew and set the bias to zero."""
        self.kernel.reset_parameters()
        self._scale()
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor, edges: Edges) -> Tensor:
        """Convolve.

        Args:
            x: (senders, c_in, blades), in the frames that the edges know.
            edges: from `cscnn.geometry`.
        """
        check_field(x, self.algebra, self.c_in, next(self.kernel.parameters(), None))
        if x.dim() != 3 or len(x) != edges.n_senders or edges.dim != self.algebra.dim:
            raise ValueError(
                f"expected features ({edges.n_senders}, {self.c_in}, {self.algebra.n_blades}) for "
                f"{edges}, got {tuple(x.shape)} in {self.algebra}"
            )
        dtype = x.dtype
        with full_precision(x.device.type):
            if (like := next(self.kernel.parameters(), None)) is not None:
                x = x.to(like.dtype)
            y = self._convolve(x, edges.prepared().to(x))
            if self.bias is not None:
                y = add_bias(y, self.bias, self.algebra)
        return y.to(dtype)

    def _convolve(self, x: Tensor, edges: Edges) -> Tensor:
        if not len(edges):
            shape = (edges.n_receivers, self.c_out, self.algebra.n_blades)
            return x.new_zeros(shape) + 0 * x.sum()
        weight = self._weights(edges)
        points = edges.position / self.radius
        mixed = self.kernel.factors(self._invariants(points[:0]))
        table, hand_written = self.table, mixed is not None and by_hand(x)
        if hand_written:
            room, per_edge = ROOM_BY_HAND, table.count * self.c_in
        else:
            room, per_edge = ROOM, table.size * (self.algebra.n_blades + self.c_in)
            if mixed is None:
                per_edge += 4 * self.c_in * self.c_out
        again = len(edges) * per_edge > KEPT and torch.is_grad_enabled() and not transforming()
        groups = tuple(edges.groups(max(1, room // per_edge)))
        sums = Sums(table, edges.sender, groups, edges.n_receivers, again)
        if mixed is None:
            of_group = partial(self._by_profiles, points=points, weight=weight, edges=edges)
            return each_group(of_group, (x,), sums)
        features = self._features(points, weight, again)
        run = summed if hand_written else plain
        return run(x, features, mixed[0], points, edges.transport, sums)

    def _invariants(self, points: Tensor) -> Invariants:
        return invariants(points, self.algebra, self.kernel.group)

    def _features(self, points: Tensor, weight: Tensor, again: bool) -> Tensor:
        """What the radial functions are made of, times the weights of edges: (E, F)."""

        def of_edges(points: Tensor, weight: Tensor) -> Tensor:
            factors = self.kernel.factors(self._invariants(points))
            assert factors is not None
            return factors[1].T * weight.unsqueeze(-1)

        if not again:
            return of_edges(points, weight)
        parts = zip(points.split(CHUNK), weight.split(CHUNK), strict=True)
        return torch.cat(
            [
                checkpoint(of_edges, *part, use_reentrant=False, preserve_rng_state=False)
                for part in parts
            ]
        )

    def _weights(self, edges: Edges) -> Tensor:
        """(E,), with the normalisation of the sum in them."""
        weight = edges.weight
        if weight is None:
            weight = edges.position.new_ones(len(edges))
        if self.window:
            eta = invariants(edges.position / self.radius, self.algebra).eta
            weight = weight * (1 - eta.square()).clamp(min=0) ** 3
        if self.aggregation == "mean":
            return weight / edges.degree.to(weight)[edges.receiver]
        if self.aggregation == "weighted mean":
            total = weight.new_zeros(edges.n_receivers).index_add(0, edges.receiver, weight)
            total = total[edges.receiver]
            empty = total == 0  # gradients must not see a division by it
            mean = weight / torch.where(empty, torch.ones_like(total), total)
            return torch.where(empty, torch.zeros_like(mean), mean)
        if self.aggregation == "integral":
            return weight / self.radius**self.algebra.dim
        return weight

    def _by_profiles(
        self, x: Tensor, group: Group, points: Tensor, weight: Tensor, edges: Edges
    ) -> Tensor:
        """The sums of some receivers where each pair of channels has radial functions of its own.

        Args:
            x: (senders, c_in, blades).
            group: of receivers.
            points, weight: of all edges.
            edges: all.

        Returns:
            (n, c_out, blades)
        """
        table, (n, k) = self.table, group.edges.shape
        index = group.edges.flatten()
        points, f = points[index], x.index_select(0, edges.sender[index])
        transport = None if edges.transport is None else edges.transport[index]
        messages = table.components(rows_of_edges(f, points, transport, table))
        messages = messages.unflatten(0, (n, k))
        values, factors, terms = self.kernel.profiles(self._invariants(points))
        values = (values * masked(weight[group.edges], group).flatten()).unflatten(-1, (n, k))
        total = messages.new_zeros(n, self.c_out, self.algebra.n_blades)
        # radial: (n, c_in, c_out, k)
        for profile, radial in enumerate(values.permute(2, 3, 1, 0, 4)):
            term_of = {j: term for term, (p, j) in enumerate(terms) if p == profile}
            columns = [i for i, j in enumerate(table.elements) if j in term_of]
            sent = messages[:, :, columns].permute(0, 3, 1, 2)  # n, c_in, k, components
            moments = radial @ sent  # n, c_in, c_out, components
            if factors is None:
                mixed = moments.sum(1)
            else:
                chosen = [term_of[table.elements[i]] for i in columns]
                scale = factors[:, :, chosen].transpose(0, 1)
                mixed = (moments * scale).sum(1)
            blades = torch.tensor([table.blades[i] for i in columns], device=mixed.device)
            total = total.index_add(-1, blades, mixed)
        return total

    def extra_repr(self) -> str:
        return f"{self.algebra}, {self.c_in}, {self.c_out}, radius={self.radius:g}" + (
            f", aggregation={self.aggregation!r}" if self.aggregation != "sum" else ""
        )


def _ball(dim: int, count: int) -> Tensor:
    """Points (count, dim) that fill the unit ball evenly, the centre first; float64."""
    engine = torch.quasirandom.SobolEngine(dim, scramble=True, seed=0)
    points = torch.zeros(1, dim, dtype=torch.float64)
    while len(points) < count:
        more = 2 * engine.draw(4 * count, dtype=torch.float64) - 1
        points = torch.cat([points, more[more.square().sum(-1) <= 1]])
    return points[:count]
