"""Convolutional networks on multivector fields, equivariant to the isometries of R^{p,q}."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cscnn import kernels, nn
    from cscnn.algebra import CliffordAlgebra
    from cscnn.conv import CliffordSteerableConv

__version__ = "0.1.0"

__all__ = ["CliffordAlgebra", "CliffordSteerableConv", "__version__", "kernels", "nn"]

#: Rooms that are imported when first used.
_ROOMS = (
    "algebra", "calculus", "conv", "data", "forecasting", "geometry", "interop", "kernels",
    "networks", "nn", "testing", "viz",
)  # fmt: skip

_CLASSES = {"CliffordAlgebra": "algebra", "CliffordSteerableConv": "conv"}  #: and their rooms


def __getattr__(name: str) -> Any:
    """``cscnn.networks``, ``cscnn.CliffordAlgebra``, ..., imported when first used.

    So the command line, which is in this package, can handle Ctrl-C before torch is imported.
    """
    if name in _ROOMS:
        return import_module(f"cscnn.{name}")
    if name in _CLASSES:
        return getattr(import_module(f"cscnn.{_CLASSES[name]}"), name)
    raise AttributeError(f"module 'cscnn' has no attribute {name!r}")
