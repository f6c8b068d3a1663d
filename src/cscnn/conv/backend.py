"""How convolutions are computed, for all of a network at once."""

from __future__ import annotations

from typing import TypeVar

from torch import nn

from cscnn._util.checks import check_choice
from cscnn.conv.grid import CliffordSteerableConv

BACKENDS = ("auto", "direct", "spectral", "derivatives")

Module = TypeVar("Module", bound=nn.Module)


def use_backend(module: Module, backend: str) -> Module:
    """Set the backend of all convolutions on grids inside a module, in place.

    Strided and exported convolutions are direct whatever their backend.

    Args:
        module: a network; without convolutions it stays as it is.
        backend: ``"direct"`` (torch's convolution), ``"spectral"`` (`cscnn.conv.spectral`, several
            times faster for large kernels), ``"derivatives"`` (`cscnn.conv.derivatives`, for
            differential kernels; others choose as with ``"auto"``) or ``"auto"``: what is predicted
            to be fastest for the shapes at hand.

    Returns:
        the module.

    Example:
        >>> from cscnn import CliffordAlgebra
        >>> conv = CliffordSteerableConv(CliffordAlgebra((1, 1)), 1, 1, kernel_size=3)
        >>> use_backend(conv, "direct").backend
        'direct'
    """
    check_choice("backend", backend, BACKENDS)
    for part in module.modules():
        if isinstance(part, CliffordSteerableConv):
            part.backend = backend
    return module
