"""Several steps of a forecast in a row, and which of them learn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from cscnn._util.checks import check_int


@dataclass(frozen=True)
class Unroll:
    """How far a forecast is fed back while it is trained.

    Args:
        steps: applications of the network.
        pushforward: only the last of them has a loss and gradients (Brandstetter, Worrall and
            Welling, Message passing neural PDE solvers, 2022). The steps before it run without.
        recompute: keep only the input of each step, and compute it again in the backward pass.
    """

    steps: int = 1
    pushforward: bool = False
    recompute: bool = False

    def __post_init__(self) -> None:
        check_int("steps", self.steps, low=1)

    def predictions(
        self,
        step: Callable[[Tensor, int], Tensor],
        append: Callable[[Tensor, Tensor], Tensor],
        x: Tensor,
    ) -> Iterator[tuple[int, Tensor]]:
        """Numbers and outputs of the steps that have a loss.

        Args:
            step: (input, number of the step) -> output.
            append: (input, output) -> input of the next step.
            x: the first input.
        """
        for number in range(self.steps):
            learns = number == self.steps - 1 or not self.pushforward
            if not learns:
                y = _without_gradients(step, x, number)
            elif self.recompute and torch.is_grad_enabled():
                y = checkpoint(step, x, number, use_reentrant=False)
            else:
                y = step(x, number)
            if number < self.steps - 1:
                x = append(x, y)
            if learns:
                yield number, y


def _without_gradients(step: Callable[[Tensor, int], Tensor], x: Tensor, number: int) -> Tensor:
    with torch.no_grad():
        y = step(x, number)
    # Autocast in older torch keeps its copies of weights for later steps, without gradients.
    torch.clear_autocast_cache()
    return y
