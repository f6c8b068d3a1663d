"""Checks of tensors, with errors that say what to do."""

from __future__ import annotations

import torch
from torch import Tensor


def same_device(x: Tensor, y: Tensor, x_name: str, y_name: str) -> None:
    """Raise unless both tensors are on one device."""
    if x.device != y.device:
        raise ValueError(
            f"{x_name} and {y_name} must be on one device, got {x.device} and {y.device}"
        )


def check_dtype(x: Tensor, name: str) -> None:
    """Raise unless x is a dense real floating tensor."""
    if not isinstance(x, Tensor):
        hint = ": use torch.from_numpy" if type(x).__name__ == "ndarray" else ""
        raise TypeError(f"{name} must be a torch.Tensor, got {type(x).__name__}{hint}")
    if not x.is_floating_point():
        hint = ": use x.real and x.imag as two channels" if x.is_complex() else ""
        raise TypeError(
            f"{name} must have a real floating dtype such as float32, got {x.dtype}{hint}"
        )
    if x.layout != torch.strided:
        raise TypeError(f"{name} must be a dense tensor, got {x.layout}: use x.to_dense()")
