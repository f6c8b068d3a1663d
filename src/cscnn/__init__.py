"""Convolutional networks on multivector fields, equivariant to the isometries of R^{p,q}."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cscnn import algebra as algebra
    from cscnn import calculus as calculus
    from cscnn import conv as conv
    from cscnn import data as data
    from cscnn import forecasting as forecasting
    from cscnn import geometry as geometry
    from cscnn import interop as interop
    from cscnn import kernels as kernels
    from cscnn import networks as networks
    from cscnn import nn as nn
    from cscnn import testing as testing
    from cscnn import viz as viz
    from cscnn.algebra import CliffordAlgebra
    from cscnn.conv import CliffordSteerableConv

__version__ = "0.2.0"

__all__ = ["CliffordAlgebra", "CliffordSteerableConv", "__version__", "kernels", "nn"]

#: Rooms that are imported when first used.
_ROOMS = (
    "algebra", "calculus", "conv", "data", "forecasting", "geometry", "interop", "kernels",
    "networks", "nn", "testing", "viz",
)  # fmt: skip

_CLASSES = {"CliffordAlgebra": "algebra", "CliffordSteerableConv": "conv"}  #: and their rooms


if not TYPE_CHECKING:  # to type checkers a module with __getattr__ has every name

    def __getattr__(name):
        """``cscnn.networks``, ``cscnn.CliffordAlgebra``, ..., imported when first used.

        So the command line, which is in this package, can handle Ctrl-C before torch is imported.
        """
        if name in _ROOMS:
            return import_module(f"cscnn.{name}")
        if name in _CLASSES:
            return getattr(import_module(f"cscnn.{_CLASSES[name]}"), name)
        raise AttributeError(f"module 'cscnn' has no attribute {name!r}")
