"""Equivariant convolution on grids."""

from cscnn.conv.grid import CliffordSteerableConv
from cscnn.conv.reuse import reuse_kernels

__all__ = ["CliffordSteerableConv", "reuse_kernels"]
