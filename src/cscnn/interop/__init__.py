"""Bridges to other libraries."""

from cscnn.interop.flax import load_flax_params
from cscnn.interop.irreps import from_irreps, multivector_irreps, to_irreps
from cscnn.interop.pyg import from_pyg, to_pyg

__all__ = [
    "from_irreps",
    "from_pyg",
    "load_flax_params",
    "multivector_irreps",
    "to_irreps",
    "to_pyg",
]
