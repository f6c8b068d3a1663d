"""Steerable kernels: points -> matrices between multivector channels.

K(gv) = ρ(g) K(v) ρ(g)^-1 for every g of the group, so that convolving with K is equivariant.
Convolutions and networks take a typed choice, `Implicit`, `Complete` or `Differential`, and build
the kernel.
"""

from cscnn.kernels.base import KernelChoice, SteerableKernel
from cscnn.kernels.basis import SteerableBasis
from cscnn.kernels.choices import kernel_choice
from cscnn.kernels.complete import Complete, CompleteKernel
from cscnn.kernels.conditions import multivector_invariants
from cscnn.kernels.differential import Differential, DifferentialKernel
from cscnn.kernels.implicit import Implicit, ImplicitKernel
from cscnn.kernels.orbits import Invariants, Orbits, find_orbits, invariants

__all__ = [
    "Complete",
    "CompleteKernel",
    "Differential",
    "DifferentialKernel",
    "Implicit",
    "ImplicitKernel",
    "Invariants",
    "KernelChoice",
    "Orbits",
    "SteerableBasis",
    "SteerableKernel",
    "find_orbits",
    "invariants",
    "kernel_choice",
    "multivector_invariants",
]
