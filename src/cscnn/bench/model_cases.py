"""Training steps of whole models, beside the plain ResNet of the same flattened width."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from cscnn.bench.registry import Case, benchmark
from cscnn.bench.work import forward_backward
from cscnn.models import build

# (task, batch, channels, grid, at most this part of the ResNet's time)
CASES = (
    ("navier_stokes", 2, 16, (64, 64), 1.15),
    ("maxwell3d", 1, 6, (32, 32, 32), 0.6),
)


@benchmark("model", "Training step of the 8-block CS-ResNet beside a ResNet of c·2^d channels")
def steps() -> Iterator[Case]:
    for task, batch, channels, grid, part in CASES:
        ours = build("cs_resnet", task, width=channels)
        plain = build("resnet", task, width=channels * ours.algebra.n_blades)
        x = torch.randn(batch, ours.task.in_channels, ours.algebra.n_blades, *grid).movedim(2, -1)
        yield Case(
            label=f"{task} {batch}x{channels}x{grid[0]}^{len(grid)}",
            variants={
                name: forward_backward(
                    lambda *_, model=model, x=x: model(x), list(model.parameters())
                )
                for name, model in (("cs_resnet", ours), ("resnet", plain))
            },
            reference="resnet",
            speedup=1 / part,
            repeats=3,
        )
