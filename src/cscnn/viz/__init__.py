"""Pictures of kernels. Needs the extra ``viz``."""

from cscnn.viz.kernels import plot_kernel

__all__ = ["plot_kernel"]
