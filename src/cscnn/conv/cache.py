"""What is computed once from a module's tensors and kept while none of them changes."""

from __future__ import annotations

import operator
import threading
from collections import defaultdict

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

from cscnn._util.torch_private import flatten_tensors, forward_hooks, global_hooks, members
from cscnn.conv.spectral.engine import Matrices, kernel_matrices
from cscnn.conv.spectral.overlap import Tiling

#: Shapes of fields whose tiles are remembered, for kernels that meet several.
MAX_TILINGS = 4


class ModuleState:
    """The tensors of a module as they are now, to notice later whether one of them changed.

    Their bits are compared with a copy. The versions that torch counts are not enough: fused
    optimisers do not raise them, nor do edits through ``.data``, numpy or dlpack.

    Args:
        module: in eval mode. Gradients must be off.

    Attributes:
        watchable: whether what the module computes depends on these tensors alone. Hooks and
            parametrisations of submodules can read anything, and other types of tensors (sharded,
            fake, on the device "meta") may have no bits to compare.
    """

    def __init__(self, module: nn.Module):
        self._modules = list(module.modules())
        below = self._modules[1:]
        self._entries = [d for child in self._modules for d in members(child)]
        self._entries += [d for child in below for d in forward_hooks(child)]
        self._values = self._current_values()
        tensors = {id(t): t for t in self._values if isinstance(t, Tensor)}.values()
        self.watchable = (
            not any(is_parametrized(child) or any(forward_hooks(child)) for child in below)
            and all(type(t) in (Tensor, nn.Parameter) and not t.is_meta for t in tensors)
            and self._in_order()
        )
        groups = defaultdict(list)
        if self.watchable:
            for t in tensors:
                groups[t.dtype, t.device].append(t)
        self._groups = [(*group, _filler(group)) for group in groups.values()]
        self._bits = self._current_bits()

    def _current_values(self) -> list[object]:
        return [value for entries in self._entries for value in entries.values()]

    def _in_order(self) -> bool:
        """Whether the module is in eval mode in all its parts, and nothing watches all modules."""
        return not (global_hooks() or any(map(operator.attrgetter("training"), self._modules)))

    def _current_bits(self) -> list[Tensor]:
        return [flatten_tensors(group).view(torch.int64) for group in self._groups]

    def unchanged(self) -> bool:
        """Whether all tensors are what they were, to the last bit."""
        if not (self.watchable and self._in_order()):
            return False
        values = self._current_values()
        return (
            len(values) == len(self._values)
            and all(map(operator.is_, values, self._values))
            and all(map(torch.equal, self._current_bits(), self._bits))
        )


def _filler(tensors: list[Tensor]) -> Tensor:
    """Zeros that complete tensors of one dtype to a multiple of eight bytes."""
    size = sum(t.numel() for t in tensors) * tensors[0].element_size()
    return tensors[0].new_zeros(-size % 8 // tensors[0].element_size())


class KernelCache:
    """An expanded kernel, its bias and its spectra. Threads may share it."""

    def __init__(self, state: ModuleState, kernel: Tensor, bias: Tensor | None):
        self.state, self.kernel, self.bias = state, kernel, bias
        self._matrices: dict[Tiling, Matrices] = {}
        self._lock = threading.Lock()

    def matrices(self, tiling: Tiling) -> Matrices:
        """The kernel's spectrum for a tiling."""
        with self._lock:
            known = self._matrices.get(tiling)
        if known is not None:
            return known
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
