"""One expansion of each kernel for several passes, as in gradient accumulation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from cscnn.conv.cache import SharedKernel
from cscnn.conv.grid import CliffordSteerableConv


@contextmanager
def reuse_kernels(module: nn.Module) -> Iterator[None]:
    """Expand each kernel once for all forward and backward passes inside, e.g. micro-batches.

    Gradients of the kernels' parameters appear when the block ends; other gradients as usual. The
    parameters must not change inside, and ``backward`` has to be called inside. Blocks that end
    with an exception leave no gradients of kernels behind. Under DistributedDataParallel wrap all
    passes but the last into ``no_sync``.

    Args:
        module: holds the convolutions.

    Example:
        >>> import torch
        >>> from cscnn import CliffordAlgebra
        >>> conv = CliffordSteerableConv(CliffordAlgebra((1, 1)), 1, 1, kernel_size=3)
        >>> with reuse_kernels(conv):
        ...     for x in torch.randn(4, 1, 1, 8, 8, 4):
        ...         conv(x).square().mean().backward()
        >>> conv.kernel.head.grad is not None
        True
    """
    convolutions = [
        m for m in module.modules() if isinstance(m, CliffordSteerableConv) and m._shared is None
    ]
    shared = []
    finished = False
    try:
        for conv in convolutions:
            if not conv.kernel.extra_channels:  # those change with each call
                conv._shared = SharedKernel(conv.expanded_kernel())
                shared.append(conv._shared)
        yield
        finished = True
    finally:
        for conv in convolutions:
            conv._shared = None
        for kernel in shared:
            kernel.close(backward=finished)
