"""Training steps of networks, beside the ResNet of the same flattened width."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from benchmarks.registry import Case, Work, benchmark
from benchmarks.tasks import simulator_task
from benchmarks.work import forward_backward
from cscnn.networks import build

# (task, batch, channels, grid, largest time relative to the ResNet's)
SETUPS = (
    ("navier_stokes", 2, 16, (64, 64), 1.15),
    ("maxwell3d", 1, 6, (32, 32, 32), 0.6),
)


def training_step(network: nn.Module, x: Tensor) -> Work:
    """Forward and backward, with gradients of the parameters."""
    return forward_backward(lambda *_: network(x), list(network.parameters()))


@benchmark(
    "model",
    "Training step of the 8-block CS-ResNet beside a ResNet of c·2^d channels",
    "Ratios are relative to a ResNet as wide as our flattened multivectors, not of equal size.",
)
def steps() -> Iterator[Case]:
    for name, batch, channels, grid, time_ratio in SETUPS:
        task = simulator_task(name)
        signature = (task.input_type, task.output_type, task.grid)
        blades = task.algebra.n_blades
        steerable = build("cs_resnet", *signature, width=channels)
        ordinary = build("resnet", *signature, width=channels * blades)
        x = torch.randn(batch, task.input_type.channels, blades, *grid).movedim(2, -1)
        yield Case(
            label=f"{name} {batch}x{channels}x{grid[0]}^{len(grid)}",
            variants={
                "cs_resnet": training_step(steerable, x),
                "resnet": training_step(ordinary, x),
            },
            reference="resnet",
            speedup=1 / time_ratio,
        )
