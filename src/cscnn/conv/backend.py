"""How convolutions are computed, for all of a network at once."""

from __future__ import annotations

from torch import nn

from cscnn.conv.grid import CliffordSteerableConv
from cscnn.conv.options import check_backend


def use_backend(module: nn.Module, backend: str) -> None:
    """Set the backend of all convolutions on grids inside a module, in place.

    Args:
        module: a network; without convolutions it stays as it is.
        backend: ``"auto"``, ``"direct"``, ``"spectral"`` or ``"derivatives"``, see
            `CliffordSteerableConv`.

    Example:
        >>> from cscnn import CliffordAlgebra
        >>> conv = CliffordSteerableConv(CliffordAlgebra((1, 1)), 1, 1, kernel_size=3)
        >>> use_backend(conv, "direct")
        >>> conv.backend
        'direct'
    """
    check_backend(backend)
    for part in module.modules():
        if isinstance(part, CliffordSteerableConv):
            part.backend = backend
