"""What makes the operators of two backends differentiable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def register_gradients(operator: Any, backward: Any, reference: Callable[..., Tensor]) -> None:
    """Make an operator of torch differentiable, also twice, and known to compilers.

    Args:
        operator: (x, weight, bias, *options) -> y, a convolution plus bias.
        backward: (g, x, weight, *options, needs_x, needs_weight) -> gradients of x and weight, an
            operator of torch. What is not needed may be empty.
        reference: (x, weight, *options) -> y without bias, by operations that torch knows. It
            serves gradients of gradients.
    """

    def setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, weight, _bias, *ctx.options = inputs
        ctx.save_for_backward(x, weight)

    def differentiate(ctx: Any, g: Tensor) -> tuple[Any, ...]:
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad[:3]
        grad_bias = g.sum((0, *range(2, g.dim()))).to(weight.dtype) if needs_bias else None
        grad_x = grad_weight = None
        if torch.is_grad_enabled() and not torch.compiler.is_compiling():  # gradients of gradients
            with torch.enable_grad():
                y = reference(x, weight, *ctx.options)
                wanted = [t for t, needed in ((x, needs_x), (weight, needs_weight)) if needed]
                made = list(torch.autograd.grad(y, wanted, g, create_graph=True)) if wanted else []
            grad_x = made.pop(0) if needs_x else None
            grad_weight = made.pop(0) if needs_weight else None
        elif needs_x or needs_weight:
            grad_x, grad_weight = backward(g, x, weight, *ctx.options, needs_x, needs_weight)
        return (
            grad_x if needs_x else None,
            grad_weight if needs_weight else None,
            grad_bias,
            *(None,) * len(ctx.options),
        )

    def empty(g: Tensor, x: Tensor, weight: Tensor, *options: Any) -> tuple[Tensor, Tensor]:
        """Gradients without values."""
        like, needed = (x, weight), options[-2:]
        grad_x, grad_weight = (
            torch.empty_like(t, memory_format=torch.contiguous_format) if need else x.new_empty(0)
            for t, need in zip(like, needed, strict=True)
        )
        return grad_x, grad_weight

    backward.register_fake(empty)
    operator.register_autograd(differentiate, setup_context=setup)
