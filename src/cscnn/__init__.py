"""Convolutional networks on multivector fields, equivariant to the isometries of R^{p,q}."""

from importlib import import_module
from typing import Any

from cscnn import kernels, nn
from cscnn.algebra import CliffordAlgebra
from cscnn.conv import CliffordSteerableConv

__version__ = "0.1.0"

__all__ = ["CliffordAlgebra", "CliffordSteerableConv", "__version__", "kernels", "nn"]

#: Rooms that are imported when first used.
_ROOMS = (
    "calculus", "data", "forecasting", "geometry", "interop", "networks", "testing", "viz",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    """``cscnn.networks``, ``cscnn.forecasting``, ..."""
    if name in _ROOMS:
        return import_module(f"cscnn.{name}")
    raise AttributeError(f"module 'cscnn' has no attribute {name!r}")
