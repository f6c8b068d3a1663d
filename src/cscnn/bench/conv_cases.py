"""Convolution on grids: our backends beside torch's convolution and the other libraries."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn

from cscnn.algebra import CliffordAlgebra
from cscnn.bench.competitors import other_libraries, plain_conv
from cscnn.bench.registry import Case, Work, benchmark
from cscnn.bench.work import forward_backward
from cscnn.conv import CliffordSteerableConv
from cscnn.models.blocks import CSBlock
from cscnn.nn import MVGELU

# (metric, batch, channels, grid, kernel size, at most this part of the time of nn.ConvNd)
CASES = (
    ((1, 1), 2, 16, (64, 64), 7, 1.05),
    ((1, 1), 8, 48, (64, 64), 7, 0.5),
    ((1, 1, 1), 1, 6, (32, 32, 32), 7, 0.45),
    ((1, 1, 1), 4, 6, (32, 32, 32), 7, 0.35),
    ((1, 1, 1), 1, 12, (32, 32, 32), 7, 0.35),
    ((1, -1, -1), 1, 6, (16, 32, 32), 7, 0.45),
    ((1, -1, -1, -1), 1, 2, (12, 12, 12, 12), 5, None),
)


def _label(
    metric: tuple[int, ...], batch: int, channels: int, grid: tuple[int, ...], kernel_size: int
) -> str:
    p, q = metric.count(1), metric.count(-1)
    size = "x".join(map(str, grid)) if len(set(grid)) > 1 else f"{grid[0]}^{len(grid)}"
    return f"R({p},{q}) {batch}x{channels}x{size} k{kernel_size}"


def _conv(
    metric: tuple[int, ...], channels: int, kernel_size: int, backend: str
) -> CliffordSteerableConv:
    torch.manual_seed(0)
    return CliffordSteerableConv(
        CliffordAlgebra(metric), channels, channels, kernel_size, backend=backend
    )


def _field(metric: tuple[int, ...], batch: int, channels: int, grid: tuple[int, ...]) -> Tensor:
    """A field as convolutions make them: blades beside channels in memory."""
    torch.manual_seed(1)
    return torch.randn(batch, channels, 2 ** len(metric), *grid).movedim(2, -1)


def _step(module: nn.Module, x: Tensor) -> Work:
    inputs = [x.detach().requires_grad_(), *module.parameters()]
    return forward_backward(lambda x, *_: module(x), inputs)


@benchmark("conv", "One convolution and its kernel, forward + backward, beside torch and others")
def training() -> Iterator[Case]:
    for metric, batch, channels, grid, kernel_size, part in CASES:
        x = _field(metric, batch, channels, grid)
        ours = ("auto", "spectral", "direct")
        variants = {name: _step(_conv(metric, channels, kernel_size, name), x) for name in ours}
        if len(metric) <= 3:
            plain = plain_conv(len(metric), channels, kernel_size)
            variants["nn.ConvNd"] = _step(plain, x)
            variants |= other_libraries(metric, channels, kernel_size, x)
        yield Case(
            label=_label(metric, batch, channels, grid, kernel_size),
            variants=variants,
            reference="nn.ConvNd" if len(metric) <= 3 else "direct",
            truth=_step(_conv(metric, channels, kernel_size, "direct").double(), x.double()),
            compare=ours,
            speedup=None if part is None else 1 / part,
            repeats=5,
        )


def _infer(module: nn.Module, x: Tensor) -> list[Tensor]:
    with torch.inference_mode():
        return [module(x)]


@benchmark("conv_inference", "One convolution with its kernel cached, beside its export")
def inference() -> Iterator[Case]:
    small = (((1, 1), 4, 8, (64, 64), 3, None), ((1, 1, 1), 1, 4, (16, 16, 16), 3, None))
    for metric, batch, channels, grid, kernel_size, _ in (*CASES[:-1], *small):
        x = _field(metric, batch, channels, grid)
        flat = x.movedim(-1, 2).flatten(1, 2)
        conv = _conv(metric, channels, kernel_size, "auto").eval()
        exported = conv.export()
        yield Case(
            label=_label(metric, batch, channels, grid, kernel_size),
            variants={
                "auto": partial(_infer, conv, x),
                "exported nn.ConvNd": partial(_infer, exported, flat),
            },
            reference="exported nn.ConvNd",
            speedup=1 / 1.02,
            repeats=15,
        )


def _stack(metric: tuple[int, ...], channels: int, kernel_size: int, plain: bool) -> nn.Module:
    algebra = CliffordAlgebra(metric)

    def conv() -> nn.Module:
        if plain:
            return plain_conv(algebra.dim, channels, kernel_size)
        return _conv(metric, channels, kernel_size, "auto")

    gate = MVGELU(algebra)
    blocks = (CSBlock(algebra, (conv(), conv()), True, (gate, gate)) for _ in range(8))
    return nn.Sequential(*blocks)


@benchmark("network", "Training step of 8 residual blocks (16 convolutions), memory and time")
def network() -> Iterator[Case]:
    for metric, batch, channels, grid, kernel_size, _ in (CASES[0], CASES[2]):
        x = _field(metric, batch, channels, grid)
        plain, ours = (_stack(metric, channels, kernel_size, plain) for plain in (True, False))
        yield Case(
            label=_label(metric, batch, channels, grid, kernel_size),
            variants={
                "equivariant": _step(ours, x),
                "with nn.ConvNd": _step(plain, x),
            },
            reference="with nn.ConvNd",
            memory=1.3,
            repeats=3,
        )


@benchmark("conv_growth", "How the time of a training step grows, as slopes on logarithmic axes")
def growth() -> Iterator[Case]:
    metric = (1, 1, 1)
    series = {
        "grid points": [(1, 4, n, 7, n**3) for n in (16, 24, 32, 48)],
        "batch": [(b, 4, 24, 7, b) for b in (1, 2, 4, 8)],
        "channels": [(1, c, 24, 7, c) for c in (2, 4, 8, 16)],
        "kernel size": [(1, 4, 24, k, k) for k in (3, 5, 7, 9)],
    }
    for name, sizes in series.items():
        for batch, channels, n, kernel_size, size in sizes:
            grid = (n,) * 3
            x = _field(metric, batch, channels, grid)
            plain = plain_conv(3, channels, kernel_size)
            yield Case(
                label=_label(metric, batch, channels, grid, kernel_size),
                variants={
                    "auto": _step(_conv(metric, channels, kernel_size, "auto"), x),
                    "nn.ConvNd": _step(plain, x),
                },
                reference="nn.ConvNd",
                series=(name, size),
                slope=1.1 if name in ("grid points", "batch") else None,
                repeats=5,
            )
