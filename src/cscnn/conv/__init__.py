"""Equivariant convolution on grids."""

from cscnn.conv.grid import CliffordSteerableConv, reuse_kernels

__all__ = ["CliffordSteerableConv", "reuse_kernels"]
