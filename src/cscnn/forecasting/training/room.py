"""Whether a run is possible: cheap lower bounds of memory and disk, before it starts."""

from __future__ import annotations

import copy
import math

import torch
from torch import nn

from cscnn._util.resources import available_memory, check_disk, size
from cscnn.forecasting.forecaster import Forecaster
from cscnn.forecasting.training.config import TrainConfig
from cscnn.forecasting.training.loader import WindowData
from cscnn.forecasting.windows import collate

#: Bytes of a weight, for precisions other than those with 32 bits.
BYTES = {"64": 8, "64-true": 8, "bf16-true": 2}


def training_copies(config: TrainConfig) -> int:
    """Numbers per weight while a model trains: itself, gradient, two moments, average."""
    return 4 + bool(config.optimizer.ema)


def check_budget(config: TrainConfig) -> None:
    """Raise if a network of this number of parameters cannot be trained, before it is built."""
    if config.model.params is not None:
        weight = BYTES.get(config.trainer.precision, 4)
        _check_memory(config, f"model.params={config.model.params}", config.model.params * weight)


def check_room(config: TrainConfig, network: nn.Module, data: WindowData) -> None:
    """Raise if a network cannot be trained on these data for want of memory or disk."""
    weight = BYTES.get(config.trainer.precision, 4)
    weights = sum(p.numel() * (2 if p.is_complex() else 1) for p in network.parameters()) * weight
    windows = data.train_windows()
    share = min(config.data.batch, len(windows)) / _world(config)
    header = windows.source.header
    points = max(data.source.sizes, default=1)
    numbers = sum(math.prod(header.shape(f.name, points)) for f in header.fields) / header.frames
    batch = math.ceil(share * windows.length * numbers * weight)
    _check_memory(
        config, f"{config.model.name} with data.batch={config.data.batch}", weights, batch
    )
    _check_disk(config, weights)


def check_precision(config: TrainConfig, forecaster: Forecaster, data: WindowData) -> None:
    """Raise if a network has operations that do not know weights of 16 bits."""
    if config.trainer.precision != "bf16-true":
        return
    try:
        half = copy.deepcopy(forecaster).to(torch.bfloat16)
        with torch.no_grad():
            half.loss(collate([data.train_windows()[0]]))
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(
            f"{config.model.name} cannot have trainer.precision=bf16-true, try bf16-mixed: {reason}"
        ) from error


def _world(config: TrainConfig) -> int:
    return config.trainer.devices * config.trainer.nodes


def _check_memory(config: TrainConfig, name: str, weights: int, batch: int = 0) -> None:
    shared = _world(config) if config.trainer.strategy == "fsdp" else 1
    need = training_copies(config) * weights // shared + batch
    limit = device_memory(config)
    if limit is not None and need > limit:
        held = "weights, gradients and moments" + (" and a batch" if batch else "")
        raise ValueError(
            f"{name} needs at least {size(need)} per device for {held}, {size(limit)} "
            f"are available: choose a smaller model or batch, or split the model over more "
            "devices with --strategy fsdp"
        )


def device_memory(config: TrainConfig) -> int | None:
    """Bytes for each device; those of a CPU share its memory. None if it is not known."""
    if config.trainer.accelerator != "cpu" and torch.cuda.is_available():
        return int(torch.cuda.get_device_properties(0).total_memory)
    limit = available_memory()
    return None if limit is None else limit // config.trainer.devices


def _check_disk(config: TrainConfig, weights: int) -> None:
    """States hold weights, two moments and the average, and are written beside the one before."""
    state = (training_copies(config) - 1) * weights
    resumed = (config.folder / "state.ckpt").exists()
    need = state if resumed else 2 * state + weights
    check_disk(config.folder, need, "the folder of weights and states")
