"""What is computed once from a module's tensors and kept while none of them changes."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from cscnn.conv.spectral.engine import Matrices, kernel_matrices
from cscnn.conv.spectral.overlap import Tiling

#: Shapes of fields whose tiles are remembered, for kernels that meet several.
MAX_TILINGS = 4


class ModuleState:
    """The tensors of a module as they are now, to notice later whether one of them changed.

    Notices replaced parameters, buffers and submodules, and everything that is written into a
    tensor in place, except through its ``.data``, which torch does not record.
    """

    def __init__(self, module: nn.Module):
        self._entries: list[tuple[dict[str, Any], dict[str, Any]]] = []
        tensors: dict[int, Tensor] = {}
        for child in module.modules():
            for entries in (child._parameters, child._buffers, child._modules):
                self._entries.append((entries, dict(entries)))
                tensors.update({id(t): t for t in entries.values() if isinstance(t, Tensor)})
        self.tensors = list(tensors.values())
        #: Whether changes can be noticed: tensors made in inference mode do not record them.
        self.watchable = not any(t.is_inference() for t in self.tensors)
        self._versions = self._now() if self.watchable else []
        # Aliases keep the memory taken, so that an address stays that of one tensor.
        self._aliases = [t.detach() for t in self.tensors]

    def _now(self) -> list[tuple[int, int]]:
        return [(t.data_ptr(), t._version) for t in self.tensors]

    def unchanged(self) -> bool:
        """Whether all tensors are what and where they were."""
        return self.watchable and (
            all(
                len(entries) == len(before)
                and all(entries.get(name) is value for name, value in before.items())
                for entries, before in self._entries
            )
            and self._now() == self._versions
        )


class KernelCache:
    """An expanded kernel, its bias and its spectra."""

    def __init__(self, state: ModuleState, kernel: Tensor, bias: Tensor | None):
        self.state, self.kernel, self.bias = state, kernel, bias
        self._matrices: dict[Tiling, Matrices] = {}

    def matrices(self, tiling: Tiling) -> Matrices:
        """The kernel's spectrum for a tiling."""
        if tiling not in self._matrices:
            if len(self._matrices) >= MAX_TILINGS:
                self._matrices.pop(next(iter(self._matrices)))
            self._matrices[tiling] = kernel_matrices(self.kernel, tiling)
        return self._matrices[tiling]


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
