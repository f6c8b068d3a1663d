"""Convolution on point clouds, beside kernel matrices per edge and beside e3nn."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from benchmarks.e3nn_convs import FullyConnected, PerChannel, PerFeature
from benchmarks.registry import Case, Work, benchmark
from benchmarks.work import forward_backward
from cscnn.algebra import CliffordAlgebra
from cscnn.conv import CliffordSteerablePointConv
from cscnn.geometry import Edges, nearest_edges
from cscnn.kernels import Complete, Implicit, KernelChoice

CHANNELS, NEIGHBOURS = 8, 32
#: Points of a large cloud, and what it may take.
LARGE, GIGABYTES, SECONDS = 100_000, 4.0, 5.0
FEW = 500  #: points where a competitor is slow
#: Widths of radial networks, ours and e3nn's per channel, that give as many parameters.
EQUAL_WIDTHS = ((16, 106), (3, 14))


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


def _cloud(count: int) -> tuple[Edges, Tensor, float]:
    """Edges to the nearest points of the unit cube, features, and the length of the longest."""
    torch.manual_seed(0)
    edges = nearest_edges(torch.rand(count, 3), NEIGHBOURS)
    features = torch.randn(count, CHANNELS, 8)
    return edges, features, float(edges.position.norm(dim=-1).max())


def _conv(kernel: KernelChoice, radius: float) -> CliffordSteerablePointConv:
    torch.manual_seed(0)
    algebra = CliffordAlgebra((1, 1, 1))
    return CliffordSteerablePointConv(algebra, CHANNELS, CHANNELS, radius, kernel=kernel)


def _step(module: nn.Module, x: Tensor, edges: Edges) -> Work:
    inputs = [x.detach().requires_grad_(), *module.parameters()]
    return forward_backward(lambda x, *_: module(x, edges), inputs)


def _counted(name: str, module: nn.Module) -> str:
    return f"{name}, {sum(p.numel() for p in module.parameters()):,} parameters"


def _beside_e3nn() -> Iterator[Case]:
    """At equal expressiveness, then at equal numbers of parameters."""
    edges, x, radius = _cloud(FEW)
    forms: dict[str, nn.Module] = {
        "complete": _conv(Complete(), radius),
        "e3nn, fully connected": FullyConnected(CHANNELS, radius),
        "e3nn, uvu of each radial function then linear": PerFeature(CHANNELS, radius),
    }
    variants = {_counted(name, form): _step(form, x, edges) for name, form in forms.items()}
    yield Case(
        label=f"{FEW} points, equally expressive",
        variants=variants,
        reference=next(name for name in variants if name.startswith("e3nn, fully")),
        speedup=2.0,
    )
    edges, x, radius = _cloud(2_000)
    for ours, theirs in EQUAL_WIDTHS:
        complete = _conv(Complete(hidden_dim=ours), radius)
        per_channel = PerChannel(CHANNELS, radius, theirs)
        name = _counted("e3nn, uvu then linear", per_channel)
        yield Case(
            label=f"2,000 points, equal parameters, radial widths {ours} and {theirs}",
            variants={
                _counted("complete", complete): _step(complete, x, edges),
                name: _step(per_channel, x, edges),
            },
            reference=name,
            speedup=2.0,
        )


@benchmark(
    "points",
    "Convolution on point clouds in R^3, 32 neighbours, 8 -> 8 channels, forward + backward",
    "Ratios are relative to a kernel matrix per edge, or to the cheapest form of e3nn that is as "
    "expressive or has as many parameters.",
    packages=("e3nn",),
)
def points() -> Iterator[Case]:
    edges, x, radius = _cloud(2_000)
    complete = _conv(Complete(), radius)
    variants = {
        "complete": _step(complete, x, edges),
        "implicit": _step(_conv(Implicit(), radius), x, edges),
        "a matrix per edge": _step(MatrixPerEdge(complete), x, edges),
    }
    double = MatrixPerEdge(_conv(Complete(), radius).double())
    yield Case(
        label="2,000 points",
        variants=variants,
        reference="a matrix per edge",
        truth=_step(double, x.double(), edges.to(torch.float64)),
        compare=("complete", "a matrix per edge"),
        speedup=5.0,
    )
    if importlib.util.find_spec("e3nn") is not None:
        yield from _beside_e3nn()
    edges, x, radius = _cloud(LARGE)
    yield Case(
        label=f"{LARGE:,} points",
        variants={"complete": _step(_conv(Complete(), radius), x, edges)},
        reference="complete",
        gigabytes=GIGABYTES,
        seconds=SECONDS,
    )
