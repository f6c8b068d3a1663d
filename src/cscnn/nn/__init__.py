"""Equivariant layers on multivectors: the toolkit of Clifford group equivariant networks.

Every layer maps fields (batch, channels, *space, blades) to fields, with any number of space axes,
and commutes with the action ρ(g) of O(p, q) on the blades. Layers with an option ``group`` can have
more weights, and then commute with SO(p, q) only.
"""

from cscnn.nn.activation import MVGELU
from cscnn.nn.cgenn import CGENN
from cscnn.nn.linear import MVLinear
from cscnn.nn.norm import GradeNorm, MVLayerNorm
from cscnn.nn.product import GeometricProductLayer

__all__ = ["CGENN", "MVGELU", "GeometricProductLayer", "GradeNorm", "MVLayerNorm", "MVLinear"]
