"""Private and experimental parts of torch that the library relies on, all in one place."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn.modules import module as nn_module
from torch.utils._python_dispatch import _get_current_dispatch_mode

F = TypeVar("F", bound=Callable[..., Any])

# --- what torch is doing at the moment ------------------------------------------------------------


def dispatch_mode_active() -> bool:
    """Whether operations are intercepted, e.g. by fake tensors, and results must not be kept."""
    return _get_current_dispatch_mode() is not None


def transforming() -> bool:
    """Whether inside a transform of ``torch.func``."""
    return torch._C._are_functorch_transforms_active()


def tracing() -> bool:
    """Whether values cannot be looked at: inside ``torch.compile``, export or ``torch.func``."""
    return torch.compiler.is_compiling() or transforming()


def exporting() -> bool:
    """Whether the graph will run elsewhere: ``torch.export``, ONNX, ``torch.jit.trace``."""
    return torch.compiler.is_exporting() or torch._C._get_tracing_state() is not None


def forward_derivatives_active() -> bool:
    """Whether inside ``torch.autograd.forward_ad.dual_level``."""
    return forward_ad._current_level >= 0


def saved_tensors_hooked() -> bool:
    """Whether hooks decide how tensors are stored for backward passes, as in checkpoints."""
    return torch._C._autograd._top_saved_tensors_default_hooks(True) is not None


# --- the compiler ---------------------------------------------------------------------------------


def constant_for_compilers(function: F) -> F:
    """What torch.compiler.assume_constant_result does, without a second of imports."""

    @wraps(function)
    def run(*args: Any) -> Any:  # the compiler does not accept the mark on a cached function
        return function(*args)

    run._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return run  # type: ignore[return-value]


def known_to_the_compiler(size: int) -> bool:
    """Whether a size is a number, and not a symbol that stands for all sizes."""
    if not torch.compiler.is_compiling():
        return True
    return torch.fx.experimental.symbolic_shapes.has_static_value(size)


# --- modules and lists of tensors -----------------------------------------------------------------


def members(module: nn.Module) -> tuple[dict[str, Any], ...]:
    """The dictionaries that hold parameters, buffers and submodules of a module, not of these."""
    return module._parameters, module._buffers, module._modules


def on_parts(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """A map of real tensors as one of complex tensors too: of real and imaginary parts."""

    def apply(tensor: Tensor) -> Tensor:
        if not tensor.is_complex():
            return function(tensor)
        return torch.view_as_complex(function(torch.view_as_real(tensor)))

    return apply


def cast_(module: nn.Module, dtype: torch.dtype) -> None:
    """Change the precision of a module; complex numbers stay complex, unlike in `Module.to`."""
    module._apply(on_parts(lambda t: t.to(dtype) if t.is_floating_point() else t))


def forward_hooks(module: nn.Module) -> tuple[dict[int, Any], ...]:
    """The dictionaries that hold hooks of a module's forward pass."""
    return module._forward_hooks, module._forward_pre_hooks


def global_hooks() -> bool:
    """Whether there are hooks on all modules."""
    return bool(nn_module._has_any_global_hook())


def add_products_(
    totals: list[Tensor], xs: list[Tensor], ys: list[Tensor], factors: list[float]
) -> None:
    """totals[i] += factors[i] xs[i] ys[i], in place, in one call."""
    torch._foreach_addcmul_(totals, xs, ys, factors)


def sigmoid_slope_(grad: Tensor, sigmoid: Tensor) -> Tensor:
    """grad *= sigmoid (1 - sigmoid), in one pass."""
    result = torch.ops.aten.sigmoid_backward.grad_input(grad, sigmoid, grad_input=grad)
    assert isinstance(result, Tensor)
    return result
