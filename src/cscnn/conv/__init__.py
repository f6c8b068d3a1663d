"""Equivariant convolution on grids, point clouds and curved spaces."""

from cscnn.conv.backend import use_backend
from cscnn.conv.grid import CliffordSteerableConv
from cscnn.conv.points import CliffordSteerablePointConv
from cscnn.conv.resample import Downsample, Upsample, downsample, upsample
from cscnn.conv.reuse import reuse_kernels

__all__ = [
    "CliffordSteerableConv",
    "CliffordSteerablePointConv",
    "Downsample",
    "Upsample",
    "downsample",
    "reuse_kernels",
    "upsample",
    "use_backend",
]
