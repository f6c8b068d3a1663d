"""Kernel generation: through the collapse, beside the full network and beside its convolution."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from cscnn.algebra import CliffordAlgebra
from cscnn.bench.algebra_cases import dense_layer
from cscnn.bench.registry import Case, benchmark
from cscnn.bench.work import forward_backward
from cscnn.conv import CliffordSteerableConv
from cscnn.kernels import ImplicitKernel
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


def _conv(kernel: str, **options: object) -> CliffordSteerableConv:
    torch.manual_seed(0)
    algebra = CliffordAlgebra((1, 1, 1))
    return CliffordSteerableConv(algebra, 16, 16, 7, kernel=kernel, kernel_options=options)


def _parameters(conv: CliffordSteerableConv) -> list[Tensor]:
    return list(conv.kernel.parameters())


@benchmark("kernel", "Kernel of 16 -> 16 channels on 7 x 7 x 7 points, forward + backward")
def kernel_generation() -> Iterator[Case]:
    full, dense = _conv("implicit", collapse=False), _conv("implicit", collapse=False)
    assert isinstance(dense.kernel, ImplicitKernel)
    network = _DenseCGENN(dense.algebra, 1, 256)
    network.load_state_dict(dense.kernel.network.state_dict())
    dense.kernel.network = network
    double = _conv("implicit", collapse=False).double()
    convolutions = {
        "implicit, collapsed": _conv("implicit"),
        "complete, network": _conv("complete", radial="network"),
        "complete, free values": _conv("complete", radial="free"),
        "complete, rings": _conv("complete", radial="rings"),
        "implicit, full CGENN": full,
        "implicit, dense CGENN": dense,
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
        repeats=7,
    )


@benchmark("kernel_share", "The same kernel beside the 7 x 7 x 7 convolution it feeds, 2 x 32^3")
def kernel_share() -> Iterator[Case]:
    conv = _conv("implicit")
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
        repeats=3,
    )
