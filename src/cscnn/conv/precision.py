"""Autocast, and parts that must run without it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor


def full_precision(device: str) -> AbstractContextManager[object]:
    """No autocast inside, on a type of device."""
    if torch.amp.is_autocast_available(device):
        return torch.autocast(device, enabled=False)
    return nullcontext()


def autocasted(x: Tensor) -> Tensor:
    """x as autocast would hand it to a convolution."""
    device = x.device.type
    if (
        x.dtype == torch.float64
        or not torch.amp.is_autocast_available(device)
        or not torch.is_autocast_enabled(device)
    ):
        return x
    return x.to(torch.get_autocast_dtype(device))
