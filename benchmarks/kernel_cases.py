"""Kernel generation: through the collapse, beside the full network and beside its convolution."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from benchmarks.algebra_cases import dense_layer
from benchmarks.registry import Case, benchmark
from benchmarks.work import forward_backward
from cscnn.algebra import CliffordAlgebra
from cscnn.conv import CliffordSteerableConv
from cscnn.kernels import Complete, Implicit, ImplicitKernel, KernelChoice
from cscnn.nn import CGENN, GeometricProductLayer


class _DenseCGENN(CGENN):
    """The network as published: every product by the dense Cayley table."""

    def forward(self, x: Tensor) -> Tensor:
        for i, layer in enumerate(self.products):
            assert isinstance(layer, GeometricProductLayer)
            x = dense_layer(layer, x)
            if i < len(self.norms):
                x = self.gate(self.norms[i](x))
        return x


def _conv(kernel: KernelChoice) -> CliffordSteerableConv:
    torch.manual_seed(0)
    return CliffordSteerableConv(CliffordAlgebra((1, 1, 1)), 16, 16, 7, kernel=kernel)


def _full_conv() -> CliffordSteerableConv:
    """With the implicit kernel evaluated on full multivectors."""
    conv = _conv(Implicit())
    assert isinstance(conv.kernel, ImplicitKernel)
    conv.kernel.collapse = False
    return conv


def _dense_conv() -> CliffordSteerableConv:
    """With that kernel's network as published."""
    conv = _full_conv()
    assert isinstance(conv.kernel, ImplicitKernel)
    network = _DenseCGENN(conv.algebra, 1, 256)
    network.load_state_dict(conv.kernel.network.state_dict())
    conv.kernel.network = network
    return conv


def _parameters(conv: CliffordSteerableConv) -> list[Tensor]:
    return list(conv.kernel.parameters())


@benchmark(
    "kernel",
    "Kernel of 16 -> 16 channels on 7 x 7 x 7 points, forward + backward",
    "Ratios are relative to the paper's network on full multivectors; the collapsed one, of equal "
    "values, runs on two numbers per channel.",
)
def kernel_generation() -> Iterator[Case]:
    double = _full_conv().double()
    convolutions = {
        "implicit, collapsed": _conv(Implicit()),
        "complete, network": _conv(Complete(radial="network")),
        "complete, free values": _conv(Complete(radial="free")),
        "complete, rings": _conv(Complete(radial="rings")),
        "implicit, full CGENN": _full_conv(),
        "implicit, dense CGENN": _dense_conv(),
    }
    yield Case(
        label="Cl(3, 0)",
        variants={
            name: forward_backward(lambda *_, c=conv: c.expanded_kernel(), _parameters(conv))
            for name, conv in convolutions.items()
        },
        reference="implicit, full CGENN",
        truth=forward_backward(lambda *_: double.expanded_kernel(), _parameters(double)),
        compare=("implicit, collapsed", "implicit, full CGENN", "implicit, dense CGENN"),
        speedup=10.0,
    )


@benchmark(
    "kernel_share",
    "The same kernel beside the 7 x 7 x 7 convolution it feeds, 2 x 32^3",
    "The ratio is what making the kernel adds to a direct convolution with it.",
)
def kernel_share() -> Iterator[Case]:
    conv = _conv(Implicit())
    x = torch.randn(2, 16 * 8, 32, 32, 32, requires_grad=True)
    weight = conv.expanded_kernel().detach().requires_grad_()
    yield Case(
        label="Cl(3, 0)",
        variants={
            "kernel": forward_backward(lambda *_: conv.expanded_kernel(), _parameters(conv)),
            "convolution": forward_backward(
                lambda x, w: torch.nn.functional.conv3d(x, w, padding=3), [x, weight]
            ),
        },
        reference="convolution",
        speedup=20.0,
    )
