"""What is computed once from a module's tensors and kept while none of them changes."""

from __future__ import annotations

from typing import Any, Protocol

from torch import Tensor, nn

from cscnn.conv.spectral import Geometry, Matrices, kernel_matrices

#: Shapes of fields whose tiles are remembered, for kernels that meet several.
MAX_GEOMETRIES = 4


class ExpandsKernel(Protocol):
    """Anything with an expanded kernel."""

    def expanded_kernel(self) -> Tensor:
        """The kernel as weights of a plain convolution."""
        ...


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
        self._versions = self._now()
        # Aliases keep the memory taken, so that an address stays that of one tensor.
        self._aliases = [t.detach() for t in self.tensors]

    def _now(self) -> list[tuple[int, int]]:
        return [(t.data_ptr(), t._version) for t in self.tensors]

    def unchanged(self) -> bool:
        """Whether all tensors are what and where they were."""
        return (
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
        self._matrices: dict[Geometry, Matrices] = {}

    def matrices(self, geometry: Geometry) -> Matrices:
        """The kernel's spectrum for a tiling."""
        if geometry not in self._matrices:
            if len(self._matrices) >= MAX_GEOMETRIES:
                self._matrices.pop(next(iter(self._matrices)))
            self._matrices[geometry] = kernel_matrices(self.kernel, geometry)
        return self._matrices[geometry]


class SharedKernel:
    """A kernel that several passes share; its gradient is collected, then passed on once."""

    def __init__(self) -> None:
        self._expanded: Tensor | None = None
        self._leaf: Tensor | None = None

    def kernel(self, module: ExpandsKernel) -> Tensor:
        """The expanded kernel as a leaf that collects gradients."""
        if self._leaf is None:
            self._expanded = module.expanded_kernel()
            self._leaf = self._expanded.detach().requires_grad_(self._expanded.requires_grad)
        return self._leaf

    def backward(self) -> None:
        """Pass the collected gradient on to the kernel's parameters."""
        if self._leaf is not None and self._leaf.grad is not None:
            assert self._expanded is not None
            self._expanded.backward(self._leaf.grad)
