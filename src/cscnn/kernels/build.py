"""The kernel of a convolution, by name."""

from __future__ import annotations

import inspect
import math
from typing import Any

from torch import Tensor

from cscnn.algebra import CliffordAlgebra
from cscnn.kernels.base import SteerableKernel
from cscnn.kernels.complete import CompleteKernel
from cscnn.kernels.implicit import ImplicitKernel

KERNELS: dict[str, type[SteerableKernel]] = {
    "implicit": ImplicitKernel,
    "complete": CompleteKernel,
}


def build_kernel(
    kernel: str | SteerableKernel,
    signature: tuple[CliffordAlgebra, int, int],
    points: Tensor,
    options: dict[str, Any],
    defaults: dict[str, Any],
) -> SteerableKernel:
    """A kernel by name; or the given one, if it fits.

    Args:
        kernel: a name in `KERNELS`, or a kernel.
        signature: algebra, input channels, output channels.
        points: where it will be sampled, (N, dim).
        options: keyword arguments that go with a name.
        defaults: those that were not given.
    """
    if isinstance(kernel, SteerableKernel):
        if options:
            raise ValueError(f"kernel_options {options} go with a kernel's name, not an object")
        if (kernel.algebra, kernel.c_in, kernel.c_out) != signature:
            raise ValueError(
                f"the kernel is for {kernel.extra_repr()}, the convolution for {signature}"
            )
        return kernel
    if not isinstance(kernel, str) or kernel not in KERNELS:
        raise ValueError(
            f"kernel must be 'implicit', 'complete' or a SteerableKernel, got {kernel!r}"
        )
    kind = KERNELS[kernel]
    valid = list(inspect.signature(vars(kind)["__init__"]).parameters)[4:]
    if unknown := [name for name in options if name not in valid]:
        hint = "; kernel='complete' knows groups" if "group" in unknown else ""
        raise TypeError(
            f"kernel_options of the {kernel} kernel are {', '.join(valid)}; got {unknown}{hint}"
        )
    return kind(*signature, **{"points": points, **defaults, **options})


def grid_defaults(kernel: Any, kernel_size: tuple[int, ...]) -> dict[str, Any]:
    """Options that depend on the number of points of a grid along each axis."""
    if kernel == "implicit":  # the published scale
        size = math.prod(kernel_size) ** (1 / len(kernel_size))
        return {"scale": 20 / size ** (len(kernel_size) - 1)}
    if kernel == "complete":
        return {"ring_spacing": 1 / max(*(size // 2 for size in kernel_size), 1)}
    return {}
