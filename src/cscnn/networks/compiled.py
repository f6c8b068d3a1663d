"""`compile_blocks`: let ``torch.compile`` work on a network block by block."""

from __future__ import annotations

from typing import Any

from torch import nn

from cscnn._util.checks import check_type
from cscnn.networks.blocks import ResidualBlock


def compile_blocks(network: nn.Module, **options: Any) -> None:
    """Compile the residual blocks of a network, each when it is first called.

    Blocks of equal shapes share one compiled graph. So compilation takes as long for a deep network
    as for one block, instead of some time for each. A network without such blocks, for example a
    baseline, is compiled whole. Parameters, state and files stay as they are.

    Args:
        network: compiled in place.
        options: of ``torch.compile``, for example ``mode``.

    Example:
        >>> import torch
        >>> from cscnn import CliffordAlgebra
        >>> from cscnn.networks import CSResNet
        >>> net = CSResNet(CliffordAlgebra((1, 1)), 1, 1, width=2, blocks=2, kernel_size=3)
        >>> compile_blocks(net, backend="eager")  # without backend: the compiler that makes it fast
        >>> with torch.no_grad():
        ...     net(torch.randn(1, 1, 8, 8, 4)).shape
        torch.Size([1, 1, 8, 8, 4])
    """
    network = check_type("network", network, nn.Module)
    blocks = [module for module in network.modules() if isinstance(module, ResidualBlock)]
    modules: list[nn.Module] = [*blocks] or [network]
    for module in modules:
        module.compile(**options)
