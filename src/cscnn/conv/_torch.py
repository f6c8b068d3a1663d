"""Private parts of torch that convolutions rely on, all in one place."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import torch
from torch.autograd import forward_ad
from torch.utils._python_dispatch import _get_current_dispatch_mode

F = TypeVar("F", bound=Callable[..., Any])


def dispatch_mode_active() -> bool:
    """Whether operations are intercepted, e.g. by fake tensors, and results must not be kept."""
    return _get_current_dispatch_mode() is not None


def forward_derivatives_active() -> bool:
    """Whether inside ``torch.autograd.forward_ad.dual_level``."""
    return forward_ad._current_level >= 0


def exporting() -> bool:
    """Whether the graph will run elsewhere: ``torch.export``, ONNX, ``torch.jit.trace``."""
    return torch.compiler.is_exporting() or torch._C._get_tracing_state() is not None


def constant_for_compilers(function: F) -> F:
    """What torch.compiler.assume_constant_result does, without a second of imports."""

    @wraps(function)
    def run(*args: Any) -> Any:  # the compiler does not accept the mark on a cached function
        return function(*args)

    run._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return run  # type: ignore[return-value]
