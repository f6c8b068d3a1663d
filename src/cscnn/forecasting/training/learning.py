"""The group ``training`` of a configuration: what is minimised, and over how many steps."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from cscnn._util.checks import check_int
from cscnn.forecasting.losses import get_loss
from cscnn.forecasting.unroll import Unroll


@dataclass
class LearningConfig:
    """What is minimised: the loss, and training for rollouts.

    Args:
        loss: what is minimised, a name of `cscnn.forecasting.losses`.
        weights: field name -> weight of that field in the loss, e.g. {smoke: 2}; others have 1.
        unroll: steps of its own forecast that the model is trained on. With 1 it only ever sees
            true inputs; with more it learns to go on from its own errors. The loss is the mean over
            the steps, and a training step takes as many times longer.
        grow: epochs over which the number of unrolled steps rises from 1 to unroll, in equal parts;
            0 for all of them from the beginning.
        pushforward: each batch draws how many steps it unrolls, from 1 to unroll, and only the last
            of them has a loss and gradients. The steps before it make the kind of input that a
            rollout will see, at the price of a forward pass each.
        noise: standard deviation of Gaussian noise on the inputs, as a fraction of the size of each
            field, e.g. 0.01: the model learns to correct small errors. It costs no time.
        recompute_steps: compute unrolled steps again in the backward pass: the memory of one step
            instead of all, for about half more time.
    """

    loss: str = "mse"
    weights: dict[str, float] = field(default_factory=dict)
    unroll: int = 1
    grow: int = 0
    pushforward: bool = False
    noise: float = 0.0
    recompute_steps: bool = False

    def check(self, epochs: int) -> None:
        """Raise for options that are impossible in a run of this number of epochs."""
        get_loss(self.loss)
        check_int("training.unroll", self.unroll, low=1)
        check_int("training.grow", self.grow, low=0)
        for name in ("grow", "pushforward", "recompute_steps"):
            if getattr(self, name) and self.unroll == 1:
                raise ValueError(
                    f"training.{name}={getattr(self, name)} is about unrolled steps: it needs "
                    "training.unroll of at least 2, got 1"
                )
        if self.grow > epochs:
            raise ValueError(
                f"training.grow={self.grow} epochs are more than trainer.epochs={epochs}: the "
                f"run would end before it unrolls {self.unroll} steps"
            )
        if self.pushforward and self.recompute_steps:
            raise ValueError(
                "training.recompute_steps saves nothing with training.pushforward, which keeps "
                "one step only: leave one of them out"
            )
        if not 0 <= self.noise < math.inf:
            raise ValueError(f"training.noise must be at least 0 and finite, got {self.noise}")

    def unrolled(self, epoch: int, batch: int | None = None) -> Unroll:
        """How a batch is unrolled: a function of these numbers only, so that resuming is exact.

        With pushforward the number of steps is drawn for each batch. If it were the same for all,
        nothing would ask for a good first step: a network would learn a cycle of K steps.

        Args:
            epoch: its number.
            batch: its number in the epoch; None for the longest of the epoch.
        """
        steps = self.unroll
        if epoch < self.grow:
            steps = min(steps, 1 + steps * epoch // self.grow)
        if self.pushforward and batch is not None:
            steps = int(np.random.default_rng((epoch, batch)).integers(1, steps + 1))
        return Unroll(steps, self.pushforward, self.recompute_steps)
