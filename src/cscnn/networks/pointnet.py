"""A Clifford-steerable residual network on point sets and curved spaces."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from cscnn._util.checks import check_choice, check_int
from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.clifford import check_algebra
from cscnn.algebra.group import check_group
from cscnn.conv import CliffordSteerablePointConv
from cscnn.geometry.edges import Edges
from cscnn.kernels import Complete, kernel_choice
from cscnn.networks.blocks import ACTIVATIONS, CSBlock, activation_layer, split_width
from cscnn.networks.entries import register
from cscnn.networks.steerable import SIZES, Kernel
from cscnn.nn import MVLinear
from cscnn.nn.linear import constant_blades


@dataclass(frozen=True)
class Neighbourhood:
    """What a network along edges knows of them.

    Args:
        radius: the length that kernels see as 1: the longest edges, or their typical length.
        neighbours: typical number of edges per point, for the initial size of kernels.
        aggregation, window: see `CliffordSteerablePointConv`.
    """

    radius: float = 1.0
    neighbours: int = 32
    aggregation: str = "mean"
    window: bool = False


@register("cs_pointnet", interface="points", sizes=SIZES)
class CSPointNet(nn.Module):
    """Two pointwise embeddings, residual blocks of convolutions along edges, two output layers.

    The CS-ResNet of the paper with `CliffordSteerablePointConv`. On clouds it commutes with the
    isometries E(p, q) that keep the set of edges; on curved spaces with their isometries and with
    arbitrary changes of the frames: f(ρ(h) x, edges in frames h) = ρ(h) f(x, edges).

    Args:
        algebra: the Clifford algebra.
        c_in, c_out: channels.
        width: channels between, or a pair: these, and those between the two convolutions of a
            block.
        blocks: number of residual blocks.
        neighbourhood: lengths and number of the edges, and how messages are added up.
        kernel: ``Complete()``, ``Complete(group="O+")`` for the arrow of time, or ``Implicit()``
            (the paper's, slower on edges).
        activation: ``"gate"`` (the paper's) or ``"product"``, see `ProductGate`.
        norm: normalise after each convolution of a block, in spacetime by absolute squares.
        group: of linear layers, products and biases, by default that of the kernel. ``"SO"`` and
            ``"SO+"`` give them terms with the pseudoscalar, see `MVLinear`. The network commutes
            with what this group and that of the kernel have in common.

    Shape:
        (points, c_in, blades) and edges -> (points, c_out, blades)

    Example:
        >>> import torch
        >>> from cscnn.geometry import radius_edges
        >>> near = Neighbourhood(radius=0.3)
        >>> net = CSPointNet(CliffordAlgebra((1, 1, 1)), 2, 1, 4, blocks=1, neighbourhood=near)
        >>> net(torch.randn(50, 2, 8), radius_edges(torch.rand(50, 3), radius=0.3)).shape
        torch.Size([50, 1, 8])
    """

    def __init__(
        self,
        algebra: CliffordAlgebra,
        c_in: int,
        c_out: int,
        width: int | Sequence[int] = 16,
        blocks: int = 4,
        *,
        neighbourhood: Neighbourhood = Neighbourhood(),
        kernel: Kernel = Complete(),
        activation: str = "gate",
        norm: bool = True,
        group: str | None = None,
    ):
        super().__init__()
        self.algebra: CliffordAlgebra = check_algebra(algebra)
        self.c_in: int = check_int("c_in", c_in, low=1)
        self.c_out: int = check_int("c_out", c_out, low=1)
        self.neighbourhood = neighbourhood
        check_int("blocks", blocks, low=1)
        check_choice("activation", activation, ACTIVATIONS)
        outer, within = split_width(width)
        choice = kernel_choice(kernel)
        self.group: str = check_group(algebra, choice.group if group is None else group)

        def act(channels: int) -> nn.Module:
            return activation_layer(activation, algebra, channels, self.group)

        def linear(a: int, b: int) -> MVLinear:
            return MVLinear(algebra, a, b, constant_blades(algebra, self.group), self.group)

        def conv(a: int, b: int) -> CliffordSteerablePointConv:
            return CliffordSteerablePointConv(
                algebra, a, b, neighbourhood.radius, kernel=choice,
                aggregation=neighbourhood.aggregation, window=neighbourhood.window,
                neighbours=neighbourhood.neighbours,
                bias=constant_blades(algebra, self.group, choice.group),
            )  # fmt: skip

        def block() -> CSBlock:
            convs = (conv(outer, within), conv(within, outer))
            return CSBlock(algebra, convs, norm, (act(within), act(outer)))

        self.embedding = nn.Sequential(
            linear(c_in, outer), act(outer), linear(outer, outer), act(outer)
        )
        self.blocks = nn.ModuleList(block() for _ in range(blocks))
        self.output = nn.Sequential(linear(outer, outer), act(outer), linear(outer, c_out))

    def entries(self) -> list[nn.Module]:
        """The layer whose outputs enter the chain of residual blocks, see `calibrate_`."""
        return [self.embedding[2]]

    def last(self) -> nn.Module:
        """The layer that makes the output."""
        return self.output[-1]

    def forward(self, x: Tensor, edges: Edges) -> Tensor:
        """Apply the network.

        Args:
            x: (points, c_in, blades), in the frames that the edges know. A batch of sets of points
                is one set without edges between them, see `Edges.cat`.
            edges: among these points, from `cscnn.geometry`.
        """
        if edges.n_senders != edges.n_receivers:
            raise ValueError(f"the edges must join the points of one set, got {edges}")
        expected = (edges.n_senders, self.c_in, self.algebra.n_blades)
        if tuple(x.shape) != expected or edges.dim != self.algebra.dim:
            raise ValueError(
                f"expected features {expected} for {edges}, got {tuple(x.shape)} in {self.algebra}"
            )
        x = self.embedding(x)
        for block in self.blocks:
            x = block(x, edges)
        y = self.output(x)
        assert isinstance(y, Tensor)
        return y


def noise_edges(dim: int, count: int, neighbourhood: Neighbourhood) -> Edges:
    """Edges for `calibrate_`: each of ``count`` points is joined to itself and to random others.

    Their positions fill the ball, and their weights add up to its volume. They need not be those of
    any real points, so no search for neighbours is needed.
    """
    generator = torch.Generator().manual_seed(0)
    neighbours, radius = neighbourhood.neighbours, neighbourhood.radius
    direction = torch.randn(count, neighbours, dim, generator=generator)
    distance = torch.rand(count, neighbours, 1, generator=generator) ** (1 / dim)
    position = radius * distance * nn.functional.normalize(direction, dim=-1)
    position[:, 0] = 0
    sender = torch.randint(count, (count, neighbours), generator=generator)
    sender[:, 0] = torch.arange(count)
    volume = math.pi ** (dim / 2) / math.gamma(dim / 2 + 1) * radius**dim
    return Edges(
        receiver=torch.arange(count).repeat_interleave(neighbours),
        sender=sender.flatten(),
        position=position.flatten(0, 1),
        weight=torch.full((count * neighbours,), volume / neighbours),
        n_receivers=count,
        n_senders=count,
    )
