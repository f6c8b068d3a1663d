"""The Lightning module: one loss and one optimiser for all models."""

from __future__ import annotations

import math
import time
from typing import Any

import lightning
import torch
from torch import Tensor
from torch.distributed.fsdp import FSDPModule
from torchmetrics import MeanMetric

from cscnn.data import Window
from cscnn.models import FieldModel
from cscnn.training.config import OptimizerConfig
from cscnn.training.sharding import shard_

#: Seconds between the losses that a progress bar is told.
SHOW = 0.2


class NonFiniteLoss(ArithmeticError):
    """The loss is NaN or infinite."""


class Forecast(lightning.LightningModule):
    """Learns to predict the target of a window from its input.

    The loss is the mean squared error of the physical components, i.e. of the blades that the
    task's fields occupy, in scaled units.

    Args:
        model: from `cscnn.models.build`.
        optimizer: how it learns.
        total_steps: length of the cosine schedule.
        compile: compile the model.

    Example::

        module = Forecast(models.build("cs_resnet", task, width=16))
        lightning.Trainer(max_epochs=10).fit(module, DataLoader(windows, batch_size=8))
    """

    def __init__(
        self,
        model: FieldModel,
        optimizer: OptimizerConfig | None = None,
        total_steps: int = 0,
        compile: bool = False,
    ):
        super().__init__()
        self.model = model
        self.options = optimizer or OptimizerConfig()
        self.total_steps = total_steps
        self.blades = list(model.task.blades)
        if compile:
            model.compile()
        self.train_mean, self.valid_mean = MeanMetric(), MeanMetric()
        self._shown = -math.inf  # when a loss was shown

    def configure_model(self) -> None:
        """Called by Lightning on each device, before there is an optimiser."""
        if self.device_mesh is not None and not isinstance(self.model, FSDPModule):
            shard_(self.model, self.device_mesh["data_parallel"])

    def forward(self, x: Tensor, background: Tensor | None = None) -> Tensor:
        y = self.model(x, background)
        assert isinstance(y, Tensor)
        return y

    def loss(self, batch: Window) -> Tensor:
        """Mean squared error of a batch of windows."""
        x, y, background = batch
        return (self(x, background) - y)[..., self.blades].square().mean()

    def training_step(self, batch: Window, batch_idx: int) -> Tensor:
        loss = self.loss(batch)
        value = float(self.trainer.strategy.reduce(loss.detach().clone(), reduce_op="mean"))
        if not math.isfinite(value):  # the mean over all devices, so that all of them stop
            raise NonFiniteLoss(
                f"the loss is {value} at epoch {self.current_epoch}, batch {batch_idx}"
            )
        self.train_mean.update(loss.detach(), weight=len(batch[0]))
        if time.monotonic() - self._shown > SHOW:  # logging takes a while, nobody sees more
            self.log("loss", value, prog_bar=True, logger=False)
            self._shown = time.monotonic()
        return loss

    def on_train_epoch_end(self) -> None:
        self.log("train_loss", self.train_mean.compute(), rank_zero_only=True)
        self.train_mean.reset()

    def validation_step(self, batch: Window, batch_idx: int) -> None:
        self.valid_mean.update(self.loss(batch), weight=len(batch[0]))

    def on_validation_epoch_end(self) -> None:
        self.log("valid_loss", self.valid_mean.compute(), prog_bar=True, rank_zero_only=True)
        self.valid_mean.reset()

    def configure_optimizers(self) -> Any:
        options = self.options
        parameters = list(self.model.parameters())
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
