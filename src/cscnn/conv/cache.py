"""What is computed once from a module's tensors and kept while none of them changes."""

from __future__ import annotations

import threading
from itertools import chain
from operator import attrgetter, is_
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

from cscnn._util.torch_private import forward_hooks, global_hooks, members
from cscnn.conv.spectral.engine import Matrices, kernel_matrices
from cscnn.conv.spectral.overlap import Tiling

#: Shapes of fields whose tiles are remembered, for kernels that meet several.
MAX_TILINGS = 4
#: Bytes of a tensor that is compared alone.
LARGE = 1 << 14


class ModuleState:
    """The tensors of a module as they are now, to notice later whether one of them changed.

    Their bits are compared with a copy. The versions that torch counts are not enough: fused
    optimisers do not raise them, nor do edits through ``.data``, numpy or dlpack.

    Args:
        module: in eval mode. Gradients must be off.

    Attributes:
        watchable: whether what the module computes depends on these tensors alone, and they have
            bits to compare. Hooks of submodules and parametrisations can read anything.
    """

    def __init__(self, module: nn.Module):
        self._modules = list(module.modules())
        self._entries = [d for child in self._modules for d in members(child)]
        self._hooks = [d for child in self._modules[1:] for d in forward_hooks(child)]
        self._values = self._current_values()
        self._tensors = [t for t in dict.fromkeys(self._values) if isinstance(t, Tensor)]
        self._aliases = [t.detach() for t in self._tensors]  # of the memory of now
        memory = [m for m in map(_memory, self._aliases) if m is not None]
        self.watchable = (
            self._depends_on_tensors_alone()
            and not any(map(is_parametrized, self._modules))
            and len({t.device for t in self._tensors}) == 1
            and len(memory) == len(self._tensors)
        )
        self._small, self._large = _pieces(memory) if self.watchable else ([], [])
        self._copies = [piece.clone() for piece in self._bits()] if self.watchable else []

    def _current_values(self) -> list[Any]:
        """Parameters, buffers and submodules."""
        return list(chain.from_iterable(map(dict.values, self._entries)))

    def _depends_on_tensors_alone(self) -> bool:
        """Without hooks, and in eval mode in all parts."""
        training = any(map(attrgetter("training"), self._modules))
        return not (training or any(self._hooks) or global_hooks())

    def _bits(self) -> list[Tensor]:
        return [torch.cat(self._small).view(torch.int64), *self._large]

    def unchanged(self) -> bool:
        """Whether all tensors are what they were, to the last bit."""
        if not (self.watchable and self._depends_on_tensors_alone()):
            return False
        values = self._current_values()
        return (
            len(values) == len(self._values)
            and all(map(is_, values, self._values))
            and all(map(Tensor.is_set_to, self._tensors, self._aliases))
            and all(map(torch.equal, self._bits(), self._copies))
        )


def _memory(t: Tensor) -> Tensor | None:
    """The bytes of a tensor in the order of their addresses, a view; None if that has gaps.

    Sharded, fake and other types of tensors, and those on the device "meta", have none either.
    """
    if type(t) is not Tensor or t.is_meta or t.layout != torch.strided:
        return None
    dense = t.permute(sorted(range(t.dim()), key=t.stride, reverse=True))
    return dense.view(-1).view(torch.uint8) if dense.is_contiguous() else None


def _pieces(memory: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """Pieces of memory to be joined and compared at once, and those that are compared alone.

    Joining saves calls and copies memory. On accelerators each comparison waits for the device.
    """
    large = [
        m
        for m in memory
        if m.is_cpu and m.numel() > LARGE and m.numel() % 8 == m.storage_offset() % 8 == 0
    ]
    small = [m for m in memory if not any(m is piece for piece in large)]
    filler = -sum(m.numel() for m in small) % 8  # never none, which would slow down torch.cat
    return [*small, memory[0].new_zeros(filler or 8)], [m.view(torch.int64) for m in large]


class KernelCache:
    """An expanded kernel, its bias and its spectra. Threads may share it."""

    def __init__(self, state: ModuleState, kernel: Tensor, bias: Tensor | None):
        self.state, self.kernel, self.bias = state, kernel, bias
        self._matrices: dict[Tiling, Matrices] = {}
        self._lock = threading.Lock()

    def matrices(self, tiling: Tiling) -> Matrices:
        """The kernel's spectrum for a tiling."""
        with self._lock:
            matrices = self._matrices.get(tiling)
        if matrices is not None:
            return matrices
        matrices = kernel_matrices(self.kernel, tiling)
        with self._lock:
            while len(self._matrices) >= MAX_TILINGS:
                self._matrices.pop(next(iter(self._matrices)))
            self._matrices[tiling] = matrices
        return matrices


class SharedKernel:
    """A kernel that several passes share; its gradient is collected, then passed on once.

    Args:
        expanded: the kernel, with its graph.
    """

    def __init__(self, expanded: Tensor):
        self._expanded = expanded
        self._closed = False
        self.kernel = expanded.detach().requires_grad_(expanded.requires_grad)
        if self.kernel.requires_grad:
            self.kernel.register_hook(self._check)

    def _check(self, gradient: Tensor) -> None:
        if self._closed:
            raise RuntimeError(
                "backward() after the end of reuse_kernels: the kernel's parameters would get no "
                "gradients; call it inside the block"
            )

    def close(self, *, backward: bool) -> None:
        """Pass the collected gradient on to the kernel's parameters, once."""
        self._closed = True
        if backward and self.kernel.grad is not None:
            self._expanded.backward(self.kernel.grad)
