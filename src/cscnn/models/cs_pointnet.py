"""A Clifford-steerable residual network on point sets and curved spaces."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.blades import check_int
from cscnn.conv import CliffordSteerablePointConv
from cscnn.geometry.edges import Edges
from cscnn.models.base import PointModel
from cscnn.models.blocks import CSBlock, activation_layer, apply_block, calibrate_, check_activation
from cscnn.nn import MVLinear


class CSPointNet(PointModel):
    """Two pointwise embeddings, residual blocks of convolutions along edges, two output layers.

    The CS-ResNet of the paper with `CliffordSteerablePointConv`. On clouds it commutes with the
    isometries E(p, q) that keep the set of edges; on curved spaces with their isometries and with
    arbitrary changes of the frames: f(ρ(h) x, edges in frames h) = ρ(h) f(x, edges).

    Args:
        algebra: the Clifford algebra.
        c_in, c_out: channels.
        width: channels between.
        inner: channels between the two convolutions of a block; by default ``width``.
        blocks: number of residual blocks.
        radius: the length that kernels see as 1: the reach of the edges, or their typical length.
        kernel: ``"complete"`` or ``"implicit"`` (the paper's, slower on edges).
        kernel_options: options of the kernel, e.g. ``{"group": "O+"}`` for the arrow of time.
        activation: ``"gate"`` (the paper's) or ``"product"``, see `ProductGate`.
        norm: normalise after each convolution of a block, in spacetime by absolute squares.
        aggregation, window: see `CliffordSteerablePointConv`.
        neighbours: typical number of edges per point, for the initial size of kernels.
        checkpointing: recompute blocks in the backward pass, for less memory.
        calibrate: set initial scales by a pass of noise, see `cscnn.models.blocks.calibrate_`.

    Shape:
        (points, c_in, blades) and edges -> (points, c_out, blades)

    Example:
        >>> import torch
        >>> from cscnn.geometry import radius_edges
        >>> net = CSPointNet(CliffordAlgebra((1, 1, 1)), 2, 1, width=4, blocks=1, radius=0.3)
        >>> net(torch.randn(50, 2, 8), radius_edges(torch.rand(50, 3), radius=0.3)).shape
        torch.Size([50, 1, 8])
    """

    @classmethod
    def quick(cls, options: dict[str, Any]) -> dict[str, Any]:
        return {**options, "calibrate": False}

    def __init__(
        self,
        algebra: CliffordAlgebra,
        c_in: int,
        c_out: int,
        width: int = 16,
        inner: int | None = None,
        blocks: int = 4,
        *,
        radius: float = 1.0,
        kernel: str = "complete",
        kernel_options: Mapping[str, Any] | None = None,
        activation: str = "gate",
        norm: bool = True,
        aggregation: str = "mean",
        window: bool = False,
        neighbours: int = 32,
        checkpointing: bool = False,
        calibrate: bool = True,
    ):
        super().__init__(algebra, c_in, c_out)
        check_int("width", width, low=1)
        check_int("blocks", blocks, low=1)
        check_activation(activation)
        if not isinstance(kernel, str):
            raise TypeError(f"a network takes its kernels by name, got {type(kernel).__name__}")
        self.checkpointing = checkpointing
        inner = inner or width

        def linear(a: int, b: int) -> MVLinear:
            return MVLinear(algebra, a, b)

        def act(channels: int) -> nn.Module:
            return activation_layer(activation, algebra, channels)

        def conv(a: int, b: int) -> CliffordSteerablePointConv:
            return CliffordSteerablePointConv(
                algebra, a, b, radius, kernel=kernel, kernel_options=kernel_options,
                aggregation=aggregation, window=window, neighbours=neighbours,
            )  # fmt: skip

        def block() -> CSBlock:
            convs = (conv(width, inner), conv(inner, width))
            return CSBlock(algebra, convs, norm, (act(inner), act(width)))

        self.embedding = nn.Sequential(
            linear(c_in, width), act(width), linear(width, width), act(width)
        )
        self.blocks = nn.ModuleList(block() for _ in range(blocks))
        self.output = nn.Sequential(linear(width, width), act(width), linear(width, c_out))
        if calibrate:
            edges = noise_edges(algebra.dim, 256, neighbours, radius)
            calibrate_(
                self,
                (edges.n_senders, c_in, algebra.n_blades),
                edges,
                blades=range(algebra.n_blades),
                layers=[  # all but those within activations, which have no bias
                    m
                    for m in self.modules()
                    if isinstance(m, MVLinear | CliffordSteerablePointConv) and m.bias is not None
                ],
                entries=[self.embedding[2]],
                last=self.output[-1],
            )

    def compute(self, x: Tensor, edges: Edges) -> Tensor:
        x = self.embedding(x)
        for block in self.blocks:
            x = apply_block(block, x, edges, frugal=self.checkpointing)
        y = self.output(x)
        assert isinstance(y, Tensor)
        return y


def noise_edges(dim: int, count: int, neighbours: int, radius: float) -> Edges:
    """Edges for a pass of noise: each of ``count`` points hears itself and random others.

    Their positions fill the ball, and their weights add up to its volume. They need not be those of
    any real points, so no search for neighbours is needed.
    """
    generator = torch.Generator().manual_seed(0)
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
