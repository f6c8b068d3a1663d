"""Units of work that benchmarks time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

#: Where the networks of benchmarks compute, see ``--device``.
device = torch.device("cpu")


def forward_backward(
    function: Callable[..., Tensor], inputs: Sequence[Tensor]
) -> Callable[[], list[Tensor]]:
    """Work that evaluates the function and all gradients of a fixed random projection of it."""
    weights: list[Tensor] = []

    def work() -> list[Tensor]:
        y = function(*inputs)
        if not weights:
            generator = torch.Generator().manual_seed(1)
            random = torch.randn(y.shape, generator=generator, dtype=torch.float32)
            weights.append(torch.empty_like(y).copy_(random))  # in the memory order of y
        return [y, *torch.autograd.grad(y, inputs, weights[0], materialize_grads=True)]

    return work
