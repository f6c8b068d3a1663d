# pyright: strict
"""A program of a user of the library half, with torch and numpy alone.

`tools/check_dist.py` runs it, and checks its types, where only the wheel is installed.
"""

import torch
from torch import Tensor, nn

import cscnn
from cscnn import CliffordAlgebra, CliffordSteerableConv
from cscnn.kernels import Complete, Differential, Implicit, KernelChoice
from cscnn.networks import CSResNet, Grid, count_parameters
from cscnn.nn import MVGELU, MVLayerNorm
from cscnn.testing import assert_equivariant, grid_equivariance_errors


def network(algebra: CliffordAlgebra, kernel: KernelChoice) -> nn.Sequential:
    """Two convolutions with a gate between them."""
    return nn.Sequential(
        CliffordSteerableConv(algebra, 1, 4, 3, kernel=kernel, padding_mode="circular"),
        MVLayerNorm(algebra),
        MVGELU(algebra),
        CliffordSteerableConv(algebra, 4, 1, 3, kernel=kernel, padding_mode="circular"),
    )


def main() -> None:
    """Networks of every kernel, and whether they are equivariant."""
    plane = CliffordAlgebra((1, 1))
    pressure, velocity = torch.randn(2, 1, 8, 8, 1), torch.randn(2, 1, 8, 8, 2)
    x: Tensor = plane.embed(pressure, grade=0) + plane.embed(velocity, grade=1)
    kernels: tuple[KernelChoice, ...] = (Implicit(), Complete(group="SO"), Differential(order=1))
    for kernel in kernels:
        net = network(plane, kernel)
        assert plane.grade(net(x), 1).shape == velocity.shape
        group = "SO" if isinstance(kernel, Complete) else "O"
        errors = grid_equivariance_errors(net, plane, shape=(1, 1, 8, 8), group=group)
        assert max(errors.values()) < 1e-9, errors
    resnet = CSResNet(plane, c_in=1, c_out=1, width=2, blocks=1, grid=Grid(padding_mode="circular"))
    assert resnet(x).shape == x.shape
    assert_equivariant(MVGELU(plane), plane, (2, 4))
    parameters: int = count_parameters(resnet)
    blades: int = plane.n_blades
    print(f"cscnn {cscnn.__version__}: {blades} blades, {parameters} parameters, equivariant")


if __name__ == "__main__":
    main()
