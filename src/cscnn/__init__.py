"""Convolutional networks on multivector fields, equivariant to the isometries of R^{p,q}."""

from cscnn import nn
from cscnn.algebra import CliffordAlgebra

__version__ = "0.1.0"

__all__ = ["CliffordAlgebra", "__version__", "nn"]
