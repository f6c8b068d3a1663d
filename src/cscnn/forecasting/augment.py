"""Symmetries of the grid acting on named fields: exact, for training and for evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
from torch import Tensor

from cscnn.algebra.grids import grid_symmetries, move_grid
from cscnn.forecasting.task import Task
from cscnn.forecasting.windows import Window


@cache
def task_symmetries(task: Task, grid: tuple[int, ...], group: str = "O") -> tuple[Tensor, ...]:
    """Signed permutations (dim, dim) that preserve metric, spacing, boundary and size of a grid.

    The identity comes first.
    """
    modes = task.padding_mode
    return tuple(
        g
        for g in grid_symmetries(task.algebra, grid, task.grid_spacing, group)
        if all(modes[i] == modes[int(row.abs().argmax())] for i, row in enumerate(g))
    )


def transform_fields(task: Task, g: Tensor, fields: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """[g.f](y) = ρ(g) f(g^-1 y) about the centre of the grid, for a signed permutation g.

    Args:
        task: whose fields they are.
        g: (dim, dim), from `task_symmetries`.
        fields: field name -> (..., frames, *space, components).
    """
    action = task.algebra.action(g)
    result = {}
    for quantity in task.fields:
        x = fields[quantity.name]
        blades = task.algebra.grade_slice(quantity.grade)
        moved = move_grid(g, x, x.dim() - 1 - task.dim)
        result[quantity.name] = moved @ action[blades, blades].mT.to(x)
    return result


class RandomSymmetry:
    """A transform of windows: rotates and reflects them by a random symmetry of their grid.

    Fields and constants are transformed together. Other rotations and boosts do not map a grid to
    itself; for boosted data give the simulators of spacetime a ``rapidity``.

    Args:
        task: whose metric, spacing and boundary count.
        group: ``"O"``, ``"SO"``, ``"O+"`` or ``"SO+"``.
    """

    def __init__(self, task: Task, group: str = "O"):
        self.task, self.group = task, group

    def elements(self, grid: Sequence[int]) -> tuple[Tensor, ...]:
        """The symmetries of a grid."""
        return task_symmetries(self.task, tuple(grid), self.group)

    def __call__(self, window: Window, rng: np.random.Generator) -> Window:
        elements = self.elements(grid_of(self.task, window.known))
        g = elements[int(rng.integers(len(elements)))]
        constants = window.constants
        if len(constants):
            constants = self.task.algebra.transform(g.to(constants), constants)
        return Window(
            transform_fields(self.task, g, window.known),
            transform_fields(self.task, g, window.target),
            constants,
        )


def grid_of(task: Task, fields: Mapping[str, Tensor]) -> tuple[int, ...]:
    """The grid of named fields (..., frames, *space, components)."""
    shape = next(iter(fields.values())).shape[:-1]
    return tuple(shape[-task.dim :])
