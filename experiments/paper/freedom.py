"""How many independent numbers the kernels of a network can choose.

Models are matched by parameters, but a kernel network has more of them than the kernels that it
makes have degrees of freedom, while an ordinary convolution has as many.
"""

from __future__ import annotations

import copy

import torch
from torch import nn

from cscnn.conv import CliffordSteerableConv


def degrees_of_freedom(network: nn.Module) -> int:
    """Dimension of the space of steerable kernels, plus the number of other parameters.

    For a steerable convolution it is the dimension for one pair of channels times the number of
    pairs, or the number of parameters if that is less.
    """
    total, of_kernels = 0, set()
    dimensions: dict[tuple[int, ...], int] = {}  # of convolutions of the same sizes
    for module in network.modules():
        if isinstance(module, CliffordSteerableConv):
            parameters = list(module.kernel.parameters())
            of_kernels |= {id(p) for p in parameters}
            count = sum(p.numel() for p in parameters)
            sizes = (count, module.c_in, module.c_out, *module.kernel_size)
            if sizes not in dimensions:
                dimensions[sizes] = kernel_dimension(module)
            total += min(count, module.c_in * module.c_out * dimensions[sizes])
    return total + sum(p.numel() for p in network.parameters() if id(p) not in of_kernels)


def kernel_dimension(conv: CliffordSteerableConv) -> int:
    """Independent numbers in the kernel of one pair of channels, on the kernel's grid.

    The rank of the derivative of the kernel by its parameters, seen through random projections.

    Example:
        >>> from cscnn import CliffordAlgebra
        >>> plane = CliffordAlgebra((1, 1))
        >>> complete = CliffordSteerableConv(plane, 1, 1, 3, kernel="complete")
        >>> kernel_dimension(complete)  # 3 at the origin, 8 on each of the two circles
        19
    """
    conv = copy.deepcopy(conv).double()
    parameters = list(conv.kernel.parameters())
    n = conv.algebra.n_blades
    kernel = conv.expanded_kernel()[:n, :n].flatten()
    most = len(conv.kernel.basis) * len(conv.orbit_eta)
    generator = torch.Generator().manual_seed(0)
    rows = []
    for _ in range(most):
        weights = torch.randn(kernel.shape, generator=generator, dtype=kernel.dtype).to(kernel)
        gradients = torch.autograd.grad(
            kernel, parameters, weights, retain_graph=True, materialize_grads=True
        )
        rows.append(torch.cat([g.flatten() for g in gradients]))
    return int(torch.linalg.matrix_rank(torch.stack(rows).cpu(), rtol=1e-9))
