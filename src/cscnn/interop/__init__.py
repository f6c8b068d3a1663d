"""Bridges to other libraries."""

from cscnn.interop.flax import load_flax_params

__all__ = ["load_flax_params"]
