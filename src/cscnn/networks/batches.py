"""Empty batches, for networks whose layers do not take any."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def compute_nonempty(compute: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """``compute(x)``; of an empty batch x (0, ...), by way of a sample of zeros."""
    if x.shape[0]:
        return compute(x)
    return compute(torch.cat([x, x.new_zeros(1, *x.shape[1:])]))[:0]
