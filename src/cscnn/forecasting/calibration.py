"""Initial scales of the network of a task."""

from __future__ import annotations

import torch
from torch import nn

from cscnn.forecasting.task import Task
from cscnn.networks import FieldType, calibrate_
from cscnn.networks.pointnet import Neighbourhood, noise_edges

#: Points of the noise for networks along edges.
POINTS = 512


def calibrate_for(network: nn.Module, task: Task) -> None:
    """`calibrate_` with noise on the fields of a task and what is given, and its constants."""
    space = task.space
    if isinstance(space, Neighbourhood):
        _calibrate_on_points(network, task, space)
        return
    multiple = int(getattr(network, "grid_multiple", 2))
    size = multiple * max(1, {1: 64, 2: 32, 3: 12, 4: 6}[task.dim] // multiple)
    grid = (size,) * task.dim
    fields = FieldType(task.algebra, task.input_type.grades[: task.in_channels])
    generator = torch.Generator().manual_seed(0)
    x, other = (fields.noise((2, *grid), generator) for _ in range(2))
    constants = task.constant_multivectors().reshape(1, -1, *(1,) * task.dim, task.algebra.n_blades)
    told = constants.expand(2, -1, *grid, -1)
    noise, other = torch.cat([x, told], 1), torch.cat([other, torch.zeros_like(told)], 1)
    calibrate_(network, noise, other=other, counted=task.output_type.mask)


def _calibrate_on_points(network: nn.Module, task: Task, space: Neighbourhood) -> None:
    """The same for networks along edges, (points, channels, blades)."""
    fields = FieldType(task.algebra, task.input_type.grades[: task.in_channels])
    generator = torch.Generator().manual_seed(0)
    x, other = (fields.noise((POINTS,), generator) for _ in range(2))
    told = task.constant_multivectors().expand(POINTS, -1, -1)
    noise, other = torch.cat([x, told], 1), torch.cat([other, torch.zeros_like(told)], 1)
    edges = noise_edges(task.dim, POINTS, space)
    calibrate_(network, noise, edges, other=other, counted=task.output_type.mask)
