"""Small constant tensors from Python tuples, made once per device and dtype."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from cscnn._util.torch_private import dispatch_mode_active

_cache: dict[tuple[int, torch.dtype, torch.device], tuple[Any, Tensor]] = {}


def constant(values: tuple[Any, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """``torch.tensor(values)``, cached by the identity of ``values``: pass shared tuples only.

    Tracers get a fresh tensor, which becomes a constant of their graph; a tensor of a tracing mode
    must never be handed to later eager code.
    """
    if torch.compiler.is_compiling() or dispatch_mode_active():
        return torch.tensor(values, dtype=dtype, device=device)
    key = (id(values), dtype, device)
    hit = _cache.get(key)
    if hit is not None:
        return hit[1]
    with torch.inference_mode(False):
        tensor = torch.tensor(values, dtype=dtype, device=device)
    _cache[key] = (values, tensor)  # holding ``values`` keeps its id taken
    return tensor
