"""Equivariant convolution on grids."""

from cscnn.conv.grid import CliffordSteerableConv

__all__ = ["CliffordSteerableConv"]
