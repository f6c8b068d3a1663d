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
    strain_rate,
    symmetric_derivative,
    vector_derivative,
)
from cscnn.calculus.projections import Projection, project, with_mean
from cscnn.calculus.schemes import Differences, Scheme, Spectral
from cscnn.calculus.walls import mirror

__all__ = [
    "Differences",
    "Projection",
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
    "mirror",
    "partial_derivative",
    "project",
    "strain_rate",
    "symmetric_derivative",
    "vector_derivative",
    "with_mean",
]
