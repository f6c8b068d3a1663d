"""Point convolutions to test, on small clouds, and the sum as it is written."""

import torch

from cscnn import CliffordAlgebra
from cscnn.conv import CliffordSteerablePointConv

METRICS = [(1, 1), (1, -1), (1, 1, 1), (1, -1, -1)]


def make(metric, c_in=2, c_out=3, radius=1.0, seed=0, **options):
    torch.manual_seed(seed)
    conv = CliffordSteerablePointConv(CliffordAlgebra(metric), c_in, c_out, radius, **options)
    torch.nn.init.normal_(conv.bias)
    return conv.double()


def features(edges, conv, seed=1):
    generator = torch.Generator().manual_seed(seed)
    shape = (edges.n_senders, conv.c_in, conv.algebra.n_blades)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def relative(a, b):
    a, b = a.detach(), b.detach()
    return float((a - b).abs().max() / b.abs().max())


def naive(conv, x, edges):
    """The sum as it is written, one edge after the other."""
    y = torch.zeros(edges.n_receivers, conv.c_out, conv.algebra.n_blades, dtype=x.dtype)
    for e in range(len(edges)):
        f = x[edges.sender[e]]
        if edges.transport is not None:
            f = f @ conv.algebra.action(edges.transport[e]).T
        kernel = conv.kernel(edges.position[e : e + 1] / conv.radius)[0]
        weight = 1.0 if edges.weight is None else edges.weight[e]
        y[edges.receiver[e]] += weight * torch.einsum("oCiB,iB->oC", kernel, f)
    y[..., 0] += conv.bias
    return y


def cloud(metric, count=9, seed=0, size=0.5):
    generator = torch.Generator().manual_seed(seed)
    return size * torch.randn(count, len(metric), generator=generator, dtype=torch.float64)


def action(algebra, g, x):
    return x @ algebra.action(g).mT


def bias_field(conv):
    return torch.nn.functional.pad(conv.bias[:, None], (0, conv.algebra.n_blades - 1)).detach()
