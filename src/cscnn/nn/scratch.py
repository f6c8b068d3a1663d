"""Room for intermediate results that stays where it is from call to call, and so in the cache."""

from __future__ import annotations

import math
import threading

import torch
from torch import Tensor


class Scratch(threading.local):
    """A stack of tensors in memory that is kept, one for each thread.

    New memory costs more than a pass over it: each page is fetched and cleared on first use.
    """

    def __init__(self) -> None:
        self._memory: dict[torch.dtype, Tensor] = {}
        self._used = 0

    def clear(self) -> None:
        """All tensors given out may be overwritten from now on."""
        self._used = 0

    def empty(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """An uninitialised contiguous tensor on the CPU, valid until the next `clear`."""
        size = math.prod(shape)
        start, self._used = self._used, self._used + -(-size // 64) * 64
        memory = self._memory.get(dtype)
        if memory is None or memory.numel() < self._used:
            with torch.inference_mode(False):  # of use outside of that mode, too
                memory = torch.empty(2 * self._used, dtype=dtype)
            self._memory[dtype] = memory  # tensors given out keep the memory before
        return memory[start : start + size].view(shape)


scratch = Scratch()


def empty_like(x: Tensor) -> Tensor:
    """Scratch of the shape of x, contiguous."""
    return scratch.empty(tuple(x.shape), x.dtype)
