"""Whether the parts of a forecaster fit each other."""

from __future__ import annotations

from torch import Tensor

from cscnn._util.checks import check_int
from cscnn.forecasting.points import Points
from cscnn.forecasting.task import Task
from cscnn.forecasting.units import Units
from cscnn.networks import Grid, Recipe
from cscnn.networks.registry import entry


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


def check_interface(name: str, task: Task) -> None:
    """Raise unless a network serves what a task is about: a grid, or points."""
    for_points = entry(name).interface == "points"
    if for_points and task.points is None:
        raise ValueError(
            f"{name} serves point sets and curved spaces, not grids like that of task "
            f"{task.name}: build cscnn.networks.CSPointNet for CliffordAlgebra({task.metric})"
        )
    if not for_points and task.points is not None:
        raise ValueError(
            f"{name} serves grids, but task {task.name} is on points: take a network along edges, "
            "such as cs_pointnet"
        )


def check_input(x: Tensor, known: Tensor, task: Task, points: Points | None) -> None:
    """Raise unless fields, constants and points are what the network of a task takes.

    Args:
        x: (batch, task.in_channels, *grid, blades).
        known: (constants, blades) or (batch, constants, blades).
        task: of the network.
        points: of the fields, if they are on points.
    """
    count, blades = len(task.constants), task.algebra.n_blades
    if x.dim() != task.grid_axes + 3 or x.shape[1] != task.in_channels:
        expected = f"(batch, {task.in_channels}, {'*, ' * task.grid_axes}{blades})"
        raise ValueError(
            f"task {task.name} takes fields of shape {expected}, got {tuple(x.shape)}"
            + (f": frames, then {', '.join(g.name for g in task.given)}" if task.given else "")
        )
    if tuple(known.shape[-2:]) != (count, blades) or known.dim() > 3:
        raise ValueError(
            f"task {task.name} has {count} constants, i.e. a tensor ({count}, {blades}), got "
            f"{tuple(known.shape)}"
        )
    if (points is None) != (task.points is None):
        raise ValueError(
            f"task {task.name} is on {'a grid' if task.points is None else 'points'}: "
            + ("it takes no points" if task.points is None else "pass points=positions")
            + f", got points={points}"
        )


def check_steps(task: Task, steps: int) -> None:
    """Raise unless a forecast can have this many frames; after a gap it cannot be fed back."""
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
    if recipe.space is not None and isinstance(recipe.space, Grid) != (task.points is None):
        raise ValueError(
            f"{recipe.name} was made for {recipe.space}, task {task.name} is on "
            f"{'a grid' if task.points is None else 'points'}: build the network for this task"
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
