"""Convolutional networks on multivector fields, equivariant to the isometries of R^{p,q}."""

from cscnn import kernels, nn
from cscnn.algebra import CliffordAlgebra
from cscnn.conv import CliffordSteerableConv

__version__ = "0.1.0"

__all__ = ["CliffordAlgebra", "CliffordSteerableConv", "__version__", "kernels", "nn"]
