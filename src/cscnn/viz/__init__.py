"""Pictures of kernels and fields. Needs the extra ``viz``."""

from cscnn.viz.comparison import plot_comparison
from cscnn.viz.fields import plot_fields
from cscnn.viz.films import animate
from cscnn.viz.kernel_story import draw_kernel_story
from cscnn.viz.kernels import plot_kernel, plot_kernels
from cscnn.viz.rollouts import plot_rollouts

__all__ = [
    "animate",
    "draw_kernel_story",
    "plot_comparison",
    "plot_fields",
    "plot_kernel",
    "plot_kernels",
    "plot_rollouts",
]
