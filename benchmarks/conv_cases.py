"""Convolution on grids: our backends beside torch's convolution and the other libraries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn

from benchmarks.competitors import other_libraries, torch_conv
from benchmarks.registry import Case, Work, benchmark
from benchmarks.work import forward_backward
from cscnn.algebra import CliffordAlgebra
from cscnn.conv import CliffordSteerableConv, use_backend
from cscnn.kernels import Complete, Implicit, KernelChoice
from cscnn.networks import CSBlock
from cscnn.nn import MVGELU

BACKENDS = ("auto", "spectral", "direct")


@dataclass(frozen=True)
class Setup:
    """Sizes of a convolution.

    Attributes:
        time_ratio: the largest time relative to ``nn.ConvNd`` that is accepted.
        symmetric: whether the field has symmetric tensors.
    """

    metric: tuple[int, ...]
    batch: int
    channels: int
    grid: tuple[int, ...]
    kernel_size: int
    time_ratio: float | None = None
    symmetric: bool = False

    @property
    def algebra(self) -> CliffordAlgebra:
        """Of the field."""
        return CliffordAlgebra(self.metric, self.symmetric)

    @property
    def dim(self) -> int:
        """Number of axes of the grid."""
        return len(self.metric)

    @property
    def label(self) -> str:
        """Signature, batch, channels, grid, kernel size."""
        p, q = self.metric.count(1), self.metric.count(-1)
        cube = len(set(self.grid)) == 1
        size = f"{self.grid[0]}^{self.dim}" if cube else "x".join(map(str, self.grid))
        return f"R({p},{q}) {self.batch}x{self.channels}x{size} k{self.kernel_size}"

    def conv(
        self, backend: str = "auto", kernel: KernelChoice = Implicit()
    ) -> CliffordSteerableConv:
        """Our convolution; of the same weights for all backends."""
        torch.manual_seed(0)
        channels = self.channels
        conv = CliffordSteerableConv(
            self.algebra, channels, channels, self.kernel_size, kernel=kernel
        )
        return use_backend(conv, backend)

    def torch_conv(self) -> nn.Module:
        """The convolution of torch that ours replaces."""
        return torch_conv(self.dim, self.channels, self.kernel_size)

    def field(self) -> Tensor:
        """A field as convolutions make them: blades beside channels in memory."""
        torch.manual_seed(1)
        shape = (self.batch, self.channels, self.algebra.n_blades, *self.grid)
        return torch.randn(shape).movedim(2, -1)


SETUPS = (
    Setup((1, 1), 2, 16, (64, 64), 7, 1.05),
    Setup((1, 1), 8, 48, (64, 64), 7, 0.5),
    Setup((1, 1, 1), 1, 6, (32, 32, 32), 7, 0.45),
    Setup((1, 1, 1), 4, 6, (32, 32, 32), 7, 0.35),
    Setup((1, 1, 1), 1, 12, (32, 32, 32), 7, 0.35),
    Setup((1, -1, -1), 1, 6, (16, 32, 32), 7, 0.45),
)
DIFFERENTIAL = (  # the largest time is relative to direct convolution with the same taps
    Setup((1, 1), 2, 16, (64, 64), 5),
    Setup((1, 1, 1), 1, 12, (32, 32, 32), 5, 0.3),
    Setup((1, -1, -1, -1), 1, 2, (12, 12, 12, 12), 5),
)
FOUR_DIMENSIONS = Setup((1, -1, -1, -1), 1, 2, (12, 12, 12, 12), 5)
SMALL_KERNELS = (
    Setup((1, 1), 4, 8, (64, 64), 3),
    Setup((1, 1, 1), 1, 4, (16, 16, 16), 3),
)

LARGE_GRIDS = (
    Setup((1, 1), 1, 16, (512, 512), 7),
    Setup((1, 1, 1), 1, 2, (128, 128, 128), 7),
)


def training_step(module: nn.Module, x: Tensor) -> Work:
    """Forward and backward, with gradients of field and parameters."""
    inputs = [x.detach().requires_grad_(), *module.parameters()]
    return forward_backward(lambda x, *_: module(x), inputs)


def infer(module: nn.Module, x: Tensor) -> list[Tensor]:
    """Forward, without what gradients need."""
    with torch.inference_mode():
        return [module(x)]


@benchmark(
    "conv",
    "One convolution and its kernel, forward + backward, beside torch and others",
    "Ratios are relative to torch's convolution of the flattened channels, which makes no kernel; "
    "in four dimensions, where torch has none, to our direct backend.",
    packages=("cliffordlayers", "escnn"),
)
def training() -> Iterator[Case]:
    for setup in (*SETUPS, FOUR_DIMENSIONS):
        x = setup.field()
        variants = {name: training_step(setup.conv(name), x) for name in BACKENDS}
        if setup is not FOUR_DIMENSIONS:
            variants["nn.ConvNd"] = training_step(setup.torch_conv(), x)
            variants |= other_libraries(setup.metric, setup.channels, setup.kernel_size, x)
        yield Case(
            label=setup.label,
            variants=variants,
            reference="direct" if setup is FOUR_DIMENSIONS else "nn.ConvNd",
            truth=training_step(setup.conv("direct").double(), x.double()),
            compare=BACKENDS,
            speedup=None if setup.time_ratio is None else 1 / setup.time_ratio,
        )


@benchmark(
    "small",
    "One convolution of few taps and channels, forward + backward, beside torch's",
    "Ratios are relative to torch's convolution of the flattened channels, which makes no kernel.",
)
def small() -> Iterator[Case]:
    kernels = {"implicit": Implicit(), "complete": Complete(), "free": Complete(radial="free")}
    for setup in SMALL_KERNELS:
        x = setup.field()
        variants = {
            name: training_step(setup.conv(kernel=kernel), x) for name, kernel in kernels.items()
        }
        variants["nn.ConvNd"] = training_step(setup.torch_conv(), x)
        yield Case(
            label=setup.label,
            variants=variants,
            reference="nn.ConvNd",
            judged=tuple(kernels),
            speedup=1 / 1.1,
        )


@benchmark(
    "tensors",
    "One convolution and its kernel, forward + backward, with symmetric tensors and without",
    "Ratios are relative to the same convolution without tensors, and may grow with the number of "
    "components squared.",
)
def with_tensors() -> Iterator[Case]:
    for setup in (SETUPS[0], SETUPS[2]):
        wide = replace(setup, symmetric=True)
        yield Case(
            label=setup.label,
            variants={
                "with tensors": training_step(wide.conv(), wide.field()),
                "without": training_step(setup.conv(), setup.field()),
            },
            reference="without",
            compare=(),
            speedup=(setup.algebra.n_blades / wide.algebra.n_blades) ** 2,
        )


def differential_conv(setup: Setup, backend: str) -> CliffordSteerableConv:
    """A convolution with a differential kernel; of the same weights for all backends."""
    torch.manual_seed(0)
    algebra, channels = CliffordAlgebra(setup.metric), setup.channels
    conv = CliffordSteerableConv(
        algebra, channels, channels, setup.kernel_size, kernel="differential"
    )
    use_backend(conv, backend)
    return conv


@benchmark(
    "differential",
    "One differential kernel, forward + backward, beside dense taps",
    "Ratios are relative to torch's convolution with the taps of the same kernel.",
)
def differential() -> Iterator[Case]:
    for setup in DIFFERENTIAL:
        x = setup.field()
        backends = ("derivatives", *BACKENDS)
        variants = {name: training_step(differential_conv(setup, name), x) for name in backends}
        if setup.dim < 4:
            variants["nn.ConvNd"] = training_step(setup.torch_conv(), x)
        yield Case(
            label=setup.label,
            variants=variants,
            reference="direct",
            truth=training_step(differential_conv(setup, "direct").double(), x.double()),
            compare=backends,
            speedup=None if setup.time_ratio is None else 1 / setup.time_ratio,
        )


@benchmark(
    "conv_inference",
    "One convolution with its kernel cached, beside its export",
    "A ratio above 1 means that inference is faster after export to a plain convolution.",
)
def inference() -> Iterator[Case]:
    for setup in (*SETUPS, *SMALL_KERNELS):
        x = setup.field()
        conv = setup.conv().eval()
        flat = x.movedim(-1, 2).flatten(1, 2)
        yield Case(
            label=setup.label,
            variants={
                "auto": partial(infer, conv, x),
                "exported nn.ConvNd": partial(infer, conv.export(), flat),
            },
            reference="exported nn.ConvNd",
            speedup=1 / 1.02,
        )


def residual_blocks(setup: Setup, equivariant: bool) -> nn.Module:
    """Eight residual blocks of our convolutions or of torch's."""
    algebra = CliffordAlgebra(setup.metric)
    conv = setup.conv if equivariant else setup.torch_conv
    gate = MVGELU(algebra)
    return nn.Sequential(
        *(CSBlock(algebra, (conv(), conv()), True, (gate, gate)) for _ in range(8))
    )


@benchmark(
    "network",
    "Training step of 8 residual blocks (16 convolutions), memory and time",
    "Ratios are relative to the same blocks with torch's convolutions in place of ours.",
)
def network() -> Iterator[Case]:
    for setup in (SETUPS[0], SETUPS[2]):
        x = setup.field()
        yield Case(
            label=setup.label,
            variants={
                "equivariant": training_step(residual_blocks(setup, equivariant=True), x),
                "with nn.ConvNd": training_step(residual_blocks(setup, equivariant=False), x),
            },
            reference="with nn.ConvNd",
            memory=1.1,
        )


@benchmark(
    "large",
    "Training step of 8 residual blocks (16 convolutions) on large grids, memory and time",
    "Nothing is computed twice to save memory, but for kernels.",
)
def large() -> Iterator[Case]:
    for setup in LARGE_GRIDS:
        x = setup.field()
        step = training_step(residual_blocks(setup, equivariant=True), x)
        yield Case(setup.label, {"equivariant": step}, "equivariant", gigabytes=24)


@benchmark(
    "conv_growth",
    "How the time of a training step grows, as slopes on logarithmic axes",
    "A slope of 1 is growth in proportion; the last rows have the slopes, the others the times.",
)
def growth() -> Iterator[Case]:
    metric = (1, 1, 1)
    series = {
        "grid points": [(Setup(metric, 1, 4, (n,) * 3, 7), n**3) for n in (16, 24, 32, 48)],
        "batch": [(Setup(metric, b, 4, (24,) * 3, 7), b) for b in (1, 2, 4, 8)],
        "channels": [(Setup(metric, 1, c, (24,) * 3, 7), c) for c in (2, 4, 8, 16)],
        "kernel size": [(Setup(metric, 1, 4, (24,) * 3, k), k) for k in (3, 5, 7, 9)],
    }
    for name, sizes in series.items():
        for setup, size in sizes:
            x = setup.field()
            yield Case(
                label=setup.label,
                variants={
                    "auto": training_step(setup.conv(), x),
                    "nn.ConvNd": training_step(setup.torch_conv(), x),
                },
                reference="nn.ConvNd",
                series=(name, size),
                slope=1.1 if name in ("grid points", "batch") else None,
            )
