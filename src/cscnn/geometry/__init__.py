"""Flat and curved spaces of any signature, as edges between points.

Whatever the space, a convolution needs of it only `Edges`: where the receiver sees the sender, how
the sender's frame is carried to the receiver's, and how much the sender counts.
"""

from cscnn.geometry.charts import Chart
from cscnn.geometry.clouds import (
    all_pairs,
    interval_edges,
    joining_edges,
    nearest_edges,
    radius_edges,
)
from cscnn.geometry.curvature import (
    ConstantCurvature,
    anti_de_sitter,
    de_sitter,
    hyperbolic,
    sphere,
)
from cscnn.geometry.edges import Edges
from cscnn.geometry.metrics import schwarzschild, torus_of_revolution
from cscnn.geometry.orthonormal import orthonormal_frames
from cscnn.geometry.sampling import (
    de_sitter_grid,
    fibonacci_sphere,
    hyperbolic_disc,
    latlon_sphere,
)
from cscnn.geometry.search import NeighbourSearch

__all__ = [
    "Chart",
    "ConstantCurvature",
    "Edges",
    "NeighbourSearch",
    "all_pairs",
    "anti_de_sitter",
    "de_sitter",
    "de_sitter_grid",
    "fibonacci_sphere",
    "hyperbolic",
    "hyperbolic_disc",
    "interval_edges",
    "joining_edges",
    "latlon_sphere",
    "nearest_edges",
    "orthonormal_frames",
    "radius_edges",
    "schwarzschild",
    "sphere",
    "torus_of_revolution",
]
