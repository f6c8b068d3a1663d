"""What a training run would do, without doing it."""

from __future__ import annotations

import contextlib
from typing import Any

import torch

from cscnn._util.machine import peak_memory
from cscnn._util.progress import Bar
from cscnn.data.fields import grade_text
from cscnn.forecasting.forecaster import Forecaster
from cscnn.forecasting.frames import block
from cscnn.forecasting.training import doubts
from cscnn.forecasting.training.config import TrainConfig
from cscnn.forecasting.training.loader import WindowData
from cscnn.forecasting.training.room import check_precision, check_room, training_copies
from cscnn.forecasting.training.train import build_forecaster, open_data, optimizer_steps
from cscnn.forecasting.windows import collate


def plan(config: TrainConfig) -> dict[str, Any]:
    """What a run would do: fields, what is given, devices, batches, steps, parameters, memory."""
    config.check()
    data = open_data(config)
    with contextlib.closing(data):
        forecaster = build_forecaster(config, data, data.fit_units(Bar("trajectories")))
        data.check_splits()
        check_precision(config, forecaster, data)
        check_room(config, forecaster.network, data)
        doubts.warn(forecaster, data)
        return _measure(config, forecaster, data)


def _neighbours(data: WindowData) -> dict[str, str]:
    """Of data on points: how they are found."""
    if (search := data.task.points) is None:
        return {}
    if search.by == "nearest":
        return {"neighbours": f"the {search.neighbours} nearest, up to about {search.radius:g}"}
    return {"neighbours": f"within {search.radius:g}, about {search.neighbours} of a point"}


def _measure(config: TrainConfig, forecaster: Forecaster, data: WindowData) -> dict[str, Any]:
    batch = collate([data.train_windows()[0]])
    parameters = list(forecaster.network.parameters())
    world = config.trainer.devices * config.trainer.nodes
    learning, unroll = config.training, config.training.unrolled(config.trainer.epochs)

    def step() -> list[torch.Tensor]:
        loss = forecaster.loss(batch, learning.loss, learning.weights, unroll)
        return list(torch.autograd.grad(loss, parameters, allow_unused=True))[:1]

    step()
    first = block(forecaster.task, forecaster.pack(batch.target), 0)
    per_device = config.data.batch // world
    weights = sum(p.numel() * p.element_size() for p in parameters)
    shared = world if config.trainer.strategy == "fsdp" else 1
    return {
        "model": f"{config.model.name}, {forecaster.n_parameters():,} parameters",
        "task": data.task.name,
        "fields": ", ".join(f"{f.name} ({grade_text(f.grade)})" for f in data.task.fields),
        "given": ", ".join(data.task.told()) or "nothing",
        **_neighbours(data),
        "margin": forecaster.task.margin,
        "constraints": forecaster.constrain.effect(forecaster.pack(batch.known), first),
        "windows": len(data.train_windows()),
        "devices": f"{config.trainer.nodes} × {config.trainer.devices} "
        f"({config.trainer.accelerator}, strategy {config.trainer.strategy})",
        "batch per device": per_device,
        "batches per epoch": data.steps_per_epoch(),
        "steps in all": optimizer_steps(config, data),
        "memory per device": training_copies(config) * weights // shared
        + per_device * peak_memory(step),
    }
