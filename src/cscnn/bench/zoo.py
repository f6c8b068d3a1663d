"""What models cost: parameters, operations, memory and time of a training step."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch.utils.flop_counter import FlopCounterMode

from cscnn.algebra import CliffordAlgebra
from cscnn.conv import CliffordSteerableConv
from cscnn.measure import peak_memory
from cscnn.models.base import FieldModel, Model, PointModel
from cscnn.models.cs_pointnet import noise_edges
from cscnn.models.registry import build, kind, names
from cscnn.models.tasks import TASKS, Task

#: Grids on which the tasks are measured.
GRIDS = {1: (256,), 2: (64, 64), 3: (16, 16, 16), 4: (8, 8, 8, 8)}
#: Point sets on which models of such are measured: metric, points, edges per point.
CLOUDS = {
    "points of R^2": ((1, 1), 2000, 32),
    "points of R^3": ((1, 1, 1), 1000, 32),
    "events of R^{1,3}": ((1, -1, -1, -1), 400, 32),
}


@dataclass(frozen=True)
class Cost:
    """A model on a task or on a point set.

    Attributes:
        name, task: which.
        size: the grid, or the number of points.
        parameters: number of trainable numbers.
        multiply_adds: of one forward pass of one sample with direct convolutions.
        peak_bytes: largest memory of a training step beyond parameters and input.
        seconds: duration of a training step.
        why_not: instead of all that, why the model does not serve the task.
    """

    name: str
    task: str
    size: str
    parameters: int = 0
    multiply_adds: int = 0
    peak_bytes: int = 0
    seconds: float = 0.0
    why_not: str = ""


def measure(params: int, chosen: tuple[str, ...] = ()) -> Iterator[Cost]:
    """Costs of all models at a budget of parameters, on all tasks or on those named.

    Unless tasks are named, models of point sets follow, on `CLOUDS`.
    """
    for task in TASKS.values():
        if chosen and task.name not in chosen:
            continue
        size = "×".join(map(str, GRIDS[task.dim]))
        for name in names():
            if not issubclass(kind(name), FieldModel):
                continue
            try:
                model = build(name, task, params=params)
            except (ValueError, ImportError) as error:
                yield Cost(name, task.name, size, why_not=str(error))
                continue
            yield _field_cost(name, task, size, model)
    for cloud in () if chosen else CLOUDS:
        for name in names():
            if issubclass(kind(name), PointModel):
                yield _point_cost(name, cloud, params)


def _field_cost(name: str, task: Task, size: str, model: FieldModel) -> Cost:
    x = torch.randn(1, task.in_channels, *GRIDS[task.dim], model.algebra.n_blades)
    convolutions = [m for m in model.modules() if isinstance(m, CliffordSteerableConv)]
    backends = [m.backend for m in convolutions]
    for conv in convolutions:
        conv.backend = "direct"
    count = _multiply_adds(lambda: model(x))
    for conv, backend in zip(convolutions, backends, strict=True):
        conv.backend = backend
    return _cost(Cost(name, task.name, size), model, lambda: model(x), count)


def _point_cost(name: str, cloud: str, params: int) -> Cost:
    metric, points, neighbours = CLOUDS[cloud]
    algebra = CliffordAlgebra(metric)
    model = build(name, algebra, params=params, c_in=1, c_out=1)
    edges = noise_edges(algebra.dim, points, neighbours, 1.0)
    x = torch.randn(points, 1, algebra.n_blades)
    cost = Cost(name, cloud, f"{points:,} × {neighbours} edges")
    return _cost(cost, model, lambda: model(x, edges), _multiply_adds(lambda: model(x, edges)))


def _multiply_adds(run: Callable[[], torch.Tensor]) -> int:
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        run()
    return counter.get_total_flops() // 2


def _cost(known: Cost, model: Model, run: Callable[[], torch.Tensor], multiply_adds: int) -> Cost:
    def step() -> list[torch.Tensor]:
        loss = run().square().mean()
        return list(torch.autograd.grad(loss, list(model.parameters()), allow_unused=True))[:1]

    step()
    times = []
    for _ in range(3):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return replace(
        known,
        parameters=model.n_parameters(),
        multiply_adds=multiply_adds,
        peak_bytes=peak_memory(step),
        seconds=sorted(times)[1],
    )
