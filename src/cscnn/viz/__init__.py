"""Pictures of kernels and fields. Needs the extra ``viz``."""

from cscnn.viz.fields import plot_fields
from cscnn.viz.films import animate
from cscnn.viz.kernels import plot_kernel

__all__ = ["animate", "plot_fields", "plot_kernel"]
