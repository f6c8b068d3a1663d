"""Whether the parts of a forecaster fit each other."""

from __future__ import annotations

from cscnn._util.checks import check_int
from cscnn.forecasting.task import Task
from cscnn.forecasting.units import Units
from cscnn.networks import Grid, Recipe


def check_units(units: Units, task: Task, change: bool) -> None:
    """Raise unless every field, and what is given, has its scales and only scalars are shifted.

    Args:
        units: of the forecaster.
        task: its task.
        change: whether changes are predicted, which have a size of their own.
    """
    for quantity in task.quantities:
        if quantity.name not in units.scale:
            known = ", ".join(units.scale)
            raise ValueError(f"no scale for field {quantity.name!r}: there are {known}")
        if quantity.grade and units.shift.get(quantity.name):
            raise ValueError(
                f"field {quantity.name} has grade {quantity.grade}, and units shift it by "
                f"{units.shift[quantity.name]}: only scalars can be shifted"
            )
        if change and quantity in task.fields and quantity.name not in units.change:
            raise ValueError(
                f"predicts='change' needs the size of the change of {quantity.name}, but the units "
                "have none: Units.fit measures it"
            )


def check_steps(task: Task, steps: int) -> None:
    """Raise unless a forecast can have so many frames; after a gap it cannot be fed back."""
    check_int("steps", steps, low=1)
    if task.gap and steps > task.frames_out:
        raise ValueError(
            f"a forecast after a gap of {task.gap} frames does not join its input, so it cannot be "
            f"fed back: it has 1 to {task.frames_out} steps, got {steps}. For rollouts in steps of "
            f"{task.gap + 1} frames train with data.stride {task.gap + 1} instead of data.gap"
        )


def check_network(recipe: Recipe | None, task: Task) -> None:
    """Raise if a network remembers that it was made for other channels or another grid."""
    if recipe is None:
        return
    for name in ("input_type", "output_type"):
        made, wanted = getattr(recipe, name), getattr(task, name)
        if made != wanted:
            raise ValueError(
                f"{recipe.name} was made for {name}={made}, task {task.name} has {wanted}: "
                "build the network for this task"
            )
    if isinstance(recipe.space, Grid):
        made, wanted = (
            Grid(grid.spacings(task.dim), grid.padding_modes(task.dim))
            for grid in (recipe.space, task.grid)
        )
        if made != wanted:
            raise ValueError(
                f"{recipe.name} was made for {made}, task {task.name} has {wanted}: build the "
                "network for this task"
            )
