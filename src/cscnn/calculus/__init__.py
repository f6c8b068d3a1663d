"""∇ on grids: derivatives of multivector fields, of every signature."""

from cscnn.calculus.operators import (
    curl,
    dalembertian,
    directional_derivative,
    divergence,
    exterior_derivative,
    gradient,
    interior_derivative,
    laplacian,
    partial_derivative,
    vector_derivative,
)
from cscnn.calculus.schemes import Differences, Scheme, Spectral

__all__ = [
    "Differences",
    "Scheme",
    "Spectral",
    "curl",
    "dalembertian",
    "directional_derivative",
    "divergence",
    "exterior_derivative",
    "gradient",
    "interior_derivative",
    "laplacian",
    "partial_derivative",
    "vector_derivative",
]
