"""What a forecast is told beside the frames: checked, cut to the times of a step, packed.

Quantities are named tensors in physical units, of the shapes that their kind has, see
`cscnn.data.Given`: a forcing is (batch, frames, *space, components), a static field (batch, *space,
components), a constant (batch, components).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from cscnn.forecasting.packing import embed
from cscnn.forecasting.task import Task

Quantities = Mapping[str, Tensor]  #: name of a given quantity -> tensor


def split(task: Task, arrays: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The fields of a task, and all else."""
    names = {f.name for f in task.fields}
    fields = {name: x for name, x in arrays.items() if name in names}
    return fields, {name: x for name, x in arrays.items() if name not in names}


def at_step(task: Task, given: Quantities, number: int, start: int = 0) -> dict[str, Tensor]:
    """What one application of the network is told: of a forcing the frames of input to output.

    Args:
        task: which quantities are given; others are left out.
        given: for a forcing, all times of a rollout.
        number: of the step, from 0.
        start: frame of the forcing that belongs to the first input frame of step 0.
    """
    first, length = start + number * task.frames_out, task.span
    cut = {}
    for quantity in task.given:
        x = given[quantity.name]
        if quantity.kind == "forcing":
            if x.shape[1] < first + length:
                raise ValueError(
                    f"the forcing {quantity.name} must be known at all times of the forecast: step "
                    f"{number + 1} needs {first + length} frames of it, "
                    f"{task.span - task.frames_in} later than its input, got {x.shape[1]}"
                )
            x = x[:, first : first + length]
        cut[quantity.name] = x
    return cut


def check_given(task: Task, given: Quantities | None) -> dict[str, Tensor]:
    """What the task is given, or an error that says what is missing; the rest is left out."""
    known = given or {}
    if missing := [g for g in task.given if g.name not in known]:
        expected = ", ".join(f"{g.name} ({g.kind})" for g in missing)
        raise ValueError(
            f"task {task.name} is given {expected} beside the frames, got "
            f"{sorted(known) or 'nothing'}: pass given={{{missing[0].name!r}: ...}}"
        )
    return {g.name: known[g.name] for g in task.given}


def pack(task: Task, given: Quantities, batch: int, grid: Sequence[int]) -> Tensor:
    """The channels that follow those of the frames: (batch, channels, *grid, blades).

    A forcing has a channel for each of its ``task.span`` frames.

    Args:
        task: which quantities are given, in this order.
        given: of one step, see `at_step`.
        batch, grid: of the frames.
    """
    channels = []
    for quantity in task.given:
        x = given[quantity.name]
        shape = {
            "forcing": (batch, task.span, *grid),
            "static": (batch, *grid),
            "constant": (batch,),
        }[quantity.kind]
        expected = (*shape, task.algebra.size(quantity.grade))
        if x.shape != expected:
            raise ValueError(
                f"what is given as {quantity.name} ({quantity.kind}) must have shape {expected}, "
                f"got {tuple(x.shape)}"
            )
        if quantity.kind == "constant":
            x = x.reshape(batch, *(1,) * len(grid), -1).expand(batch, *grid, -1)
        if quantity.kind != "forcing":
            x = x.unsqueeze(1)
        channels.append(embed(quantity, task.algebra, x))
    return torch.cat(channels, 1)
