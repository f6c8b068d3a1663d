"""What is written while a model trains, and the average of its weights."""

from __future__ import annotations

import csv
import io
import math
import sys
import time
from pathlib import Path
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import Callback, Checkpoint, RichProgressBar
from lightning.pytorch.callbacks.progress.rich_progress import RichProgressBarTheme
from lightning.pytorch.plugins.io import TorchCheckpointIO
from torch import Tensor
from torch.optim.swa_utils import get_ema_multi_avg_fn

from cscnn._util.files import write_bytes, write_text
from cscnn._util.jsonform import to_json
from cscnn._util.progress import duration
from cscnn.forecasting.training.identity import DataIdentity
from cscnn.forecasting.training.loggers import Version, versions_of
from cscnn.forecasting.training.module import NonFiniteLoss, TrainingModule
from cscnn.forecasting.training.sharding import gathered, sharded_like
from cscnn.networks.weights import plain_weights

COLUMNS = ("epoch", "step", "unroll", "train_loss", "valid_loss", "lr", "seconds")
FORMAT = 1  #: of the state; raised when its entries change their meaning. Older states have none.


class AtomicCheckpoint(TorchCheckpointIO):
    """States are written beside their predecessor, then take its name."""

    def save_checkpoint(self, checkpoint: Any, path: Any, storage_options: Any = None) -> None:
        content = io.BytesIO()
        torch.save(checkpoint, content)
        write_bytes(Path(path), content.getvalue())


class RunFolder(Checkpoint):  # so that it is told after the metrics are known
    """After each epoch: a row of metrics, the best weights, and the state to resume from.

    Everything is written under another name and then renamed. The state comes last, so that a run
    that was killed in between repeats the epoch with the same result. While the number of unrolled
    steps grows, the best weights are those of the present number, and patience does not run out.

    Args:
        folder: of the run.
        data: what the run learns from, kept in the state.
        patience: number of epochs without improvement after which training stops.
    """

    def __init__(self, folder: Path, data: DataIdentity, patience: int | None = None):
        self.folder, self.patience = folder, patience
        self.data = to_json(data)
        self.rows: list[dict[str, float]] = []
        self.best = math.inf
        self.waited = 0  #: epochs since the best
        self.units: dict[str, Any] = {}  #: in which the network computes, as JSON
        self.loggers: list[Version] = []  #: names of the logs to go on in

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self.units = to_json(pl_module.forecaster.units)
        self.loggers = versions_of(trainer.loggers)
        if self.patience is not None and self.waited >= self.patience:  # it had ended
            trainer.should_stop = True

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self._start = time.monotonic()
        before = pl_module.learning.unrolled(max(0, trainer.current_epoch - 1))
        if before != pl_module.unrolled:  # these weights shall win over those of fewer steps
            self.best = math.inf

    def on_train_epoch_end(self, trainer: lightning.Trainer, pl_module: Any) -> None:
        measured = trainer.callback_metrics
        row = {
            "step": float(trainer.global_step),
            "unroll": float(pl_module.unrolled.steps),
            "train_loss": float(measured["train_loss"]),
            "lr": trainer.optimizers[0].param_groups[0]["lr"],
            "seconds": time.monotonic() - self._start,
        }
        if "valid_loss" in measured:
            row["valid_loss"] = float(measured["valid_loss"])
        self.rows.append(row)
        judged = row.get("valid_loss", row["train_loss"])
        improved = judged < self.best
        growing = pl_module.unrolled.steps < pl_module.learning.unroll
        self.best = min(self.best, judged)
        self.waited = 0 if improved or growing else self.waited + 1
        if self.patience is not None and self.waited >= self.patience:
            trainer.should_stop = True
        if improved:
            self._save_best(trainer, pl_module)
        if trainer.is_global_zero:
            self._save_metrics()
        trainer.save_checkpoint(self.folder / "state.ckpt")

    def _save_best(self, trainer: Any, pl_module: Any) -> None:
        average = next((c for c in trainer.callbacks if isinstance(c, WeightAverage)), None)
        if average is not None:
            average.swap(pl_module)
        self._save_weights(trainer, pl_module, "model.safetensors")
        if average is not None:
            average.swap(pl_module)

    def _save_weights(self, trainer: Any, pl_module: Any, name: str) -> None:
        """On all devices, which may have to gather them."""
        weights = {name: gathered(t) for name, t in plain_weights(pl_module.network).items()}
        if trainer.is_global_zero:
            pl_module.forecaster.save(self.folder / name, weights)

    def _save_metrics(self) -> None:
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, COLUMNS)
        writer.writeheader()
        writer.writerows({**row, "epoch": n} for n, row in enumerate(self.rows, start=1))
        write_text(self.folder / "metrics.csv", text.getvalue())

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Keep what is needed to find out why the loss is not a number."""
        if isinstance(exception, NonFiniteLoss):
            self._save_weights(trainer, pl_module, "diagnosis.safetensors")

    def state_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "rows": self.rows,
            "best": self.best,
            "waited": self.waited,
            "units": self.units,
            "data": self.data,
            "loggers": self.loggers,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.rows, self.best = state_dict["rows"], state_dict["best"]
        self.waited = state_dict["waited"]


class WeightAverage(Callback):
    """An exponential moving average of the weights, used to validate and to save.

    Args:
        decay: how much of the average stays at each step.
    """

    def __init__(self, decay: float):
        self.decay = decay
        self.average: dict[
            str, Tensor
        ] = {}  #: gathered before training starts, then like the model
        self._update: Any = get_ema_multi_avg_fn(decay)
        self.step = 0

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        for name, p in pl_module.network.named_parameters():
            kept = self.average.get(name)
            self.average[name] = p.detach().clone() if kept is None else sharded_like(kept, p)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        if trainer.global_step == self.step:  # gradients are being accumulated
            return
        self.step = trainer.global_step
        now = dict(pl_module.network.named_parameters())
        self._update([self.average[name] for name in now], list(now.values()), self.step)

    def swap(self, module: TrainingModule) -> None:
        """Exchange the weights and their average."""
        with torch.no_grad():
            for name, p in module.network.named_parameters():
                kept = p.detach().clone()
                p.copy_(self.average[name])
                self.average[name] = kept

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        self.swap(pl_module)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        self.swap(pl_module)

    def state_dict(self) -> dict[str, Any]:
        average = {name: gathered(tensor) for name, tensor in self.average.items()}
        return {"average": average, "step": self.step}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.average, self.step = dict(state_dict["average"]), state_dict["step"]


class EpochLines(Callback):
    """A line for an epoch where there is no terminal, at most one in ten seconds."""

    def __init__(self) -> None:
        self._shown = -math.inf

    def on_train_epoch_end(self, trainer: lightning.Trainer, pl_module: Any) -> None:
        done, epochs = trainer.current_epoch + 1, trainer.max_epochs or 0
        last = done == epochs or trainer.should_stop
        if not trainer.is_global_zero or (time.monotonic() - self._shown < 10 and not last):
            return
        self._shown = time.monotonic()
        measured = trainer.callback_metrics
        names = [name for name in ("train_loss", "valid_loss") if name in measured]
        losses = ", ".join(f"{name} {float(measured[name]):.4g}" for name in names)
        print(f"epoch {done}/{epochs}: {losses}", file=sys.stderr, flush=True)


class TrainingBar(RichProgressBar):
    """Batches of the epoch, their speed, losses, and how long the rest of the run will take."""

    def __init__(self) -> None:
        super().__init__(refresh_rate=5, theme=RichProgressBarTheme(metrics_format=".4g"))

    def _get_train_description(self, current_epoch: int) -> str:
        trainer: Any = self.trainer
        epochs = trainer.max_epochs
        text = f"epoch {current_epoch + 1}/{epochs}"
        folder = next((c for c in trainer.callbacks if isinstance(c, RunFolder)), None)
        if folder is not None and folder.rows:
            seconds = folder.rows[-1]["seconds"] * (epochs - current_epoch)
            text += f", {duration(seconds)} left"
        return text
