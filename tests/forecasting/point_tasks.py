"""Tiny tasks, batches and forecasters on points."""

import torch
from torch import Tensor

from cscnn.data import Field
from cscnn.forecasting import Forecaster, Points, Task, Units
from cscnn.forecasting.points import pad_points
from cscnn.geometry import NeighbourSearch

SEARCH = NeighbourSearch(0.35, 6)
FIELDS = (Field("dye", 0), Field("flow", 1), Field("ink", 0))


def task_of(search: NeighbourSearch = SEARCH, **changes) -> Task:
    options = {"frames_in": 2, "frames_out": 2, "points": search, **changes}
    return Task("swirl", (1, 1), FIELDS, **options)


def cloud(n: int, seed: int, dim: int = 2) -> Tensor:
    return torch.rand(n, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def batch_of(task: Task, sizes=(7, 12, 9), seed=0):
    """Frames (batch, 6, most, components), padded, and points of a batch."""
    generator = torch.Generator().manual_seed(seed)
    weights = None
    if task.points.weighted:
        weights = [cloud(n, 90 + n)[:, 0] + 0.1 for n in sizes]
    positions = [cloud(n, seed + n, task.dim) for n in sizes]
    points = Points.at(positions, task.points, weights)
    frames = {
        f.name: torch.stack(
            [
                pad_points(
                    torch.randn(
                        6, n, task.algebra.size(f.grade),
                        generator=generator, dtype=torch.float64,
                    ),
                    max(sizes),
                )
                for n in sizes
            ]
        )
        for f in task.fields
    }  # fmt: skip
    return frames, points


def forecaster_of(task: Task, **options) -> Forecaster:
    torch.manual_seed(0)
    scale = {q.name: 1.5 for q in task.quantities}
    units = Units(scale, {"dye": 0.3}, {f.name: 0.5 for f in task.fields})
    told = {"width": 3, "blocks": 1, "predicts": "change", **options}
    return Forecaster.build("cs_pointnet", task, units, **told).double().eval()
