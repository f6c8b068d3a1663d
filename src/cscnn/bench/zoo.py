"""What models cost: parameters, operations, memory and time of a training step."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch.utils.flop_counter import FlopCounterMode

from cscnn.conv import CliffordSteerableConv
from cscnn.measure import peak_memory
from cscnn.models.base import FieldModel
from cscnn.models.registry import build, names
from cscnn.models.tasks import TASKS, Task

#: Grids on which the tasks are measured.
GRIDS = {1: (256,), 2: (64, 64), 3: (16, 16, 16), 4: (8, 8, 8, 8)}


@dataclass(frozen=True)
class Cost:
    """A model on a task.

    Attributes:
        name, task: which.
        parameters: number of trainable numbers.
        multiply_adds: of one forward pass of one sample with direct convolutions.
        peak_bytes: largest memory of a training step beyond parameters and input.
        seconds: duration of a training step.
        why_not: instead of all that, why the model does not serve the task.
    """

    name: str
    task: str
    parameters: int = 0
    multiply_adds: int = 0
    peak_bytes: int = 0
    seconds: float = 0.0
    why_not: str = ""


def measure(params: int, chosen: tuple[str, ...] = ()) -> Iterator[Cost]:
    """Costs of all models at a budget of parameters, on all tasks or on those named."""
    for task in TASKS.values():
        if chosen and task.name not in chosen:
            continue
        for name in names():
            try:
                model = build(name, task, params=params)
            except (ValueError, ImportError) as error:
                yield Cost(name, task.name, why_not=str(error))
                continue
            yield _cost(name, task, model)


def _cost(name: str, task: Task, model: FieldModel) -> Cost:
    x = torch.randn(1, task.in_channels, *GRIDS[task.dim], model.algebra.n_blades)

    def step() -> list[torch.Tensor]:
        loss = model(x).square().mean()
        return list(torch.autograd.grad(loss, list(model.parameters()), allow_unused=True))[:1]

    convolutions = [m for m in model.modules() if isinstance(m, CliffordSteerableConv)]
    backends = [m.backend for m in convolutions]
    for conv in convolutions:
        conv.backend = "direct"
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(x)
    for conv, backend in zip(convolutions, backends, strict=True):
        conv.backend = backend
    step()
    times = []
    for _ in range(3):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return Cost(
        name,
        task.name,
        model.n_parameters(),
        counter.get_total_flops() // 2,
        peak_memory(step),
        sorted(times)[1],
    )
