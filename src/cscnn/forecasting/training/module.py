"""The Lightning module: one optimiser for all models."""

from __future__ import annotations

import math
import time
from typing import Any

import lightning
import torch
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule
from torchmetrics import MeanMetric

from cscnn.forecasting.forecaster import ONE_STEP, Forecaster
from cscnn.forecasting.training.config import OptimizerConfig
from cscnn.forecasting.training.learning import LearningConfig
from cscnn.forecasting.training.sharding import shard_
from cscnn.forecasting.unroll import Unroll
from cscnn.forecasting.windows import Window
from cscnn.networks import compile_blocks

#: Seconds between the losses that a progress bar is told.
SHOW = 0.2


class NonFiniteLoss(ArithmeticError):
    """The loss is NaN or infinite."""


class TrainingModule(lightning.LightningModule):
    """Lets a forecaster learn to predict the target of a window from what is known.

    Args:
        forecaster: what learns.
        optimizer: how it learns.
        total_steps: length of the cosine schedule.
        compile: compile the network, see `compile_blocks`.
        training: what is minimised. Windows must have been cut for as many unrolled steps; noise
            is added to them, not here, see `cscnn.forecasting.augment.RandomNoise`.

    Example::

        forecaster = Forecaster.build("cs_resnet", task, units, width=16)
        loader = DataLoader(windows, batch_size=8, collate_fn=collate)
        lightning.Trainer(max_epochs=10).fit(TrainingModule(forecaster), loader)
    """

    def __init__(
        self,
        forecaster: Forecaster,
        optimizer: OptimizerConfig | None = None,
        total_steps: int = 0,
        compile: bool = False,
        training: LearningConfig | None = None,
    ):
        super().__init__()
        self.forecaster = forecaster
        self.options = optimizer or OptimizerConfig()
        self.learning = training or LearningConfig()
        self.total_steps = total_steps
        if compile:
            compile_blocks(forecaster.network)
        # By default a mean leaves out what is not a number.
        self.train_mean, self.valid_mean = (MeanMetric(nan_strategy=math.nan) for _ in range(2))
        self._shown = -math.inf  # when a loss was shown

    @property
    def network(self) -> nn.Module:
        """What has the weights."""
        return self.forecaster.network

    def configure_model(self) -> None:
        """Called by Lightning on each device, before there is an optimiser."""
        if self.device_mesh is not None and not isinstance(self.network, FSDPModule):
            shard_(self.network, self.device_mesh["data_parallel"])

    @property
    def unrolled(self) -> Unroll:
        """How this epoch is unrolled, at most."""
        return self.learning.unrolled(self.current_epoch)

    def forward(self, window: Window, unroll: Unroll = ONE_STEP) -> Tensor:
        """The loss of a batch of windows; strategies hook into this call."""
        return self.forecaster.loss(window, self.learning.loss, self.learning.weights, unroll)

    def training_step(self, batch: Window, batch_idx: int) -> Tensor:
        loss: Tensor = self(batch, self.learning.unrolled(self.current_epoch, batch_idx))
        value = float(self.trainer.strategy.reduce(loss.detach().clone(), reduce_op="mean"))
        self._check_finite("loss", value, f", batch {batch_idx}")
        self.train_mean.update(loss.detach(), weight=len(batch.constants))
        if time.monotonic() - self._shown > SHOW:  # logging takes a while, nobody sees more
            self.log("loss", value, prog_bar=True, logger=False)
            self._shown = time.monotonic()
        return loss

    def _check_finite(self, name: str, value: Tensor | float, place: str = "") -> None:
        """Raise unless a mean over all devices is finite; so all of them stop."""
        if not math.isfinite(value):
            raise NonFiniteLoss(
                f"the {name} is {float(value)} at epoch {self.current_epoch + 1}{place}"
            )

    def on_train_epoch_end(self) -> None:
        mean = self.train_mean.compute()
        self._check_finite("mean loss", mean)
        self.log("train_loss", mean, rank_zero_only=True)
        self.train_mean.reset()

    def validation_step(self, batch: Window, batch_idx: int) -> None:
        steps = Unroll(self.learning.unroll)  # what is trained is what selects the best weights
        self.valid_mean.update(self(batch, steps), weight=len(batch.constants))

    def on_validation_epoch_end(self) -> None:
        mean = self.valid_mean.compute()
        self._check_finite("validation loss", mean)
        self.log("valid_loss", mean, prog_bar=True, rank_zero_only=True)
        self.valid_mean.reset()

    def configure_optimizers(self) -> Any:
        options = self.options
        parameters = list(self.network.parameters())
        optimizer = torch.optim.AdamW(
            parameters,
            lr=options.lr,
            weight_decay=options.weight_decay,
            foreach=all(p.is_cpu for p in parameters) or None,  # the same numbers in less time
        )
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, self._rate)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": scheduler, "interval": "step"},
        }

    def _rate(self, step: int) -> float:
        """Learning rate relative to the largest."""
        options = self.options
        if step < options.warmup:
            return (step + 1) / options.warmup
        if options.schedule == "constant" or self.total_steps <= options.warmup:
            return 1.0
        done = min(1.0, (step - options.warmup) / (self.total_steps - options.warmup))
        return options.final_lr + (1 - options.final_lr) * (1 + math.cos(math.pi * done)) / 2
