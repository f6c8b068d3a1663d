"""Clifford algebras Cl(p, q) on torch tensors, and the group O(p, q) that acts on them."""

from cscnn.algebra.clifford import CliffordAlgebra

__all__ = ["CliffordAlgebra"]
