"""Convolution on point clouds, beside kernel matrices per edge and beside e3nn."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from cscnn.algebra import CliffordAlgebra
from cscnn.bench.registry import Case, Work, benchmark
from cscnn.bench.work import forward_backward
from cscnn.conv import CliffordSteerablePointConv
from cscnn.geometry import Edges, nearest_edges

CHANNELS, NEIGHBOURS, HIDDEN = 8, 32, 16
GIGABYTES = 4.0


class MatrixPerEdge(nn.Module):
    """The same convolution as the formula reads: the matrix K(v) of every edge, then its product.

    Args:
        conv: whose kernel and bias to use.
    """

    def __init__(self, conv: CliffordSteerablePointConv):
        super().__init__()
        self.conv = conv

    def forward(self, x: Tensor, edges: Edges) -> Tensor:
        kernel = self.conv.kernel(edges.position / self.conv.radius)
        messages = torch.einsum("eoCiB,eiB->eoC", kernel, x[edges.sender])
        y = messages.new_zeros(edges.n_receivers, *messages.shape[1:])
        y = y.index_add(0, edges.receiver, messages)
        assert self.conv.bias is not None
        return y + nn.functional.pad(self.conv.bias[:, None], (0, y.shape[-1] - 1))


class E3nnConv(nn.Module):
    """e3nn's convolution between the same features, O(3) irreps of multivectors of R^3.

    A fully connected tensor product with spherical harmonics up to l = 2, whose weights a network
    of the same width makes from a radial embedding, edge by edge.

    Args:
        radius: where the radial embedding ends.
    """

    def __init__(self, radius: float):
        from e3nn import o3
        from e3nn.nn import FullyConnectedNet

        super().__init__()
        self.radius = radius
        irreps = o3.Irreps("+".join(f"{CHANNELS}x{name}" for name in ("0e", "1o", "1e", "0o")))
        self.harmonics = o3.Irreps.spherical_harmonics(2)
        self.product = o3.FullyConnectedTensorProduct(
            irreps, self.harmonics, irreps, shared_weights=False
        )
        self.radial = FullyConnectedNet(
            [HIDDEN, HIDDEN, self.product.weight_numel], torch.nn.functional.silu
        )

    def forward(self, x: Tensor, edges: Edges) -> Tensor:
        from e3nn import o3
        from e3nn.math import soft_one_hot_linspace

        length = edges.position.norm(dim=-1)
        rings = soft_one_hot_linspace(
            length, 0.0, self.radius, HIDDEN, basis="gaussian", cutoff=False
        )
        harmonics = o3.spherical_harmonics(
            self.harmonics, edges.position, normalize=True, normalization="component"
        )
        messages = self.product(x.flatten(1)[edges.sender], harmonics, self.radial(rings))
        y = messages.new_zeros(edges.n_receivers, messages.shape[1])
        y = y.index_add(0, edges.receiver, messages)
        return y.view_as(x)


def _cloud(count: int) -> tuple[Edges, Tensor, float]:
    torch.manual_seed(0)
    edges = nearest_edges(torch.rand(count, 3), NEIGHBOURS)
    features = torch.randn(count, CHANNELS, 8)
    return edges, features, float(edges.position.norm(dim=-1).max())


def _conv(kernel: str, radius: float) -> CliffordSteerablePointConv:
    torch.manual_seed(0)
    algebra = CliffordAlgebra((1, 1, 1))
    return CliffordSteerablePointConv(algebra, CHANNELS, CHANNELS, radius, kernel=kernel)


def _step(module: nn.Module, x: Tensor, edges: Edges) -> Work:
    inputs = [x.detach().requires_grad_(), *module.parameters()]
    return forward_backward(lambda x, *_: module(x, edges), inputs)


@benchmark(
    "points",
    "Point clouds in R^3, 32 neighbours, 8 -> 8 channels, forward + backward; the others need the "
    "smaller cloud for their memory",
)
def points() -> Iterator[Case]:
    edges, x, radius = _cloud(2_000)
    convs = {name: _conv(name, radius) for name in ("complete", "implicit")}
    variants = {name: _step(conv, x, edges) for name, conv in convs.items()}
    variants["a matrix per edge"] = _step(MatrixPerEdge(convs["complete"]), x, edges)
    if importlib.util.find_spec("e3nn") is not None:
        variants["e3nn"] = _step(E3nnConv(radius), x, edges)
    double = MatrixPerEdge(_conv("complete", radius).double())
    yield Case(
        label="2,000 points",
        variants=variants,
        reference="a matrix per edge",
        truth=_step(double, x.double(), edges.to(torch.float64)),
        compare=("complete", "a matrix per edge"),
        speedup=5.0,
        repeats=5,
    )
    edges, x, radius = _cloud(100_000)
    yield Case(
        label="100,000 points",
        variants={"complete": _step(_conv("complete", radius), x, edges)},
        reference="complete",
        gigabytes=GIGABYTES,
        repeats=1,
    )
