"""Steerable kernels: points -> matrices between multivector channels.

K(gv) = ρ(g) K(v) ρ(g)^-1 for every g of the group, so that convolving with K is equivariant.
"""

from cscnn.kernels.base import SteerableKernel
from cscnn.kernels.basis import SteerableBasis
from cscnn.kernels.complete import CompleteKernel
from cscnn.kernels.implicit import ImplicitKernel
from cscnn.kernels.orbits import Invariants, Orbits, find_orbits, invariants

__all__ = [
    "CompleteKernel",
    "ImplicitKernel",
    "Invariants",
    "Orbits",
    "SteerableBasis",
    "SteerableKernel",
    "find_orbits",
    "invariants",
]
