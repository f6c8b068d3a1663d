"""Weights that are made again in the backward pass instead of being stored between the passes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

from cscnn._util.torch_private import (
    dispatch_mode_active,
    exporting,
    forward_hooks,
    saved_tensors_hooked,
    tracing,
)

#: Weights of at least this part of the field's size are worth the time of making them again.
LEAST_PART = 1 / 8


def not_stored(
    weight: Tensor, x: Tensor, kernel: nn.Module, make: Callable[[], Tensor] | None
) -> AbstractContextManager[Any]:
    """A context whose operations store how to make the weight in place of the weight itself.

    A kernel on 7 x 7 x 7 points is as large as half a field, and one is stored for every
    convolution of a network.

    Args:
        weight: of a convolution.
        x: its field.
        kernel: what the weight is made of. Kernels with hooks or parametrisations, which may do
            something else the second time, are stored.
        make: makes the weight again; None for weights that are held anyway.
    """
    if (
        make is None
        or tracing()
        or not torch.is_grad_enabled()
        or weight.numel() < LEAST_PART * x.numel()
        or exporting()
        or dispatch_mode_active()
        or saved_tensors_hooked()  # only the innermost hooks of torch are asked
        or any(is_parametrized(m) or any(forward_hooks(m)) for m in kernel.modules())
    ):
        return nullcontext()
    place, shape = weight.data_ptr(), weight.shape  # not the weight, which would be held
    tensors = list(kernel.parameters())
    versions = [t._version for t in tensors]

    def pack(t: Tensor) -> Any:
        return make if t.data_ptr() == place and t.shape == shape else t

    def unpack(stored: Any) -> Tensor:
        if isinstance(stored, Tensor):
            return stored
        if versions != [t._version for t in tensors]:
            raise RuntimeError(
                "the parameters of a kernel were modified in place between the forward and the "
                "backward pass of its convolution: call backward() before the optimiser's step"
            )
        with torch.no_grad():
            made: Tensor = stored()
            return made

    return torch.autograd.graph.saved_tensors_hooks(pack, unpack)
