"""Equivariant convolution on grids, point clouds and curved spaces."""

from cscnn.conv.backend import use_backend
from cscnn.conv.grid import CliffordSteerableConv
from cscnn.conv.points import CliffordSteerablePointConv
from cscnn.conv.reuse import reuse_kernels

__all__ = [
    "CliffordSteerableConv",
    "CliffordSteerablePointConv",
    "reuse_kernels",
    "use_backend",
]
