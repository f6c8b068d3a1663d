"""Transforms of windows: symmetries of the grid acting on named fields, and noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor

from cscnn.algebra.grids import grid_symmetries, move_grid
from cscnn.data.fields import Quantity
from cscnn.forecasting.packing import symmetric_part
from cscnn.forecasting.task import Task
from cscnn.forecasting.units import Units
from cscnn.forecasting.windows import Transform, Window


@cache
def task_symmetries(task: Task, grid: tuple[int, ...], group: str = "O") -> tuple[Tensor, ...]:
    """Signed permutations (dim, dim) that preserve metric, spacing, boundary and size of a grid.

    The identity comes first.
    """
    return tuple(grid_symmetries(task.algebra, grid, task.grid_spacing, group, task.padding_mode))


def transform_fields(task: Task, g: Tensor, fields: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """[g.f](y) = ρ(g) f(g^-1 y) about the centre of the grid, for a signed permutation g.

    Args:
        task: whose fields they are.
        g: (dim, dim), from `task_symmetries`.
        fields: field name -> (..., frames, *space, components).
    """
    actions, result = _actions(task, g, task.fields), {}
    for quantity in task.fields:
        x = fields[quantity.name]
        moved = move_grid(g, x, x.dim() - 1 - task.dim)
        result[quantity.name] = moved @ actions[quantity.grade].mT.to(x)
    return result


def transform_given(task: Task, g: Tensor, given: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same for what is given: forcing and static fields move, constants are rotated.

    Args:
        task: what is given to it.
        g: (dim, dim), from `task_symmetries`.
        given: name -> (..., *space, components), or (..., components) for a constant.
    """
    actions, result = _actions(task, g, task.given), {}
    for quantity in task.given:
        x = given[quantity.name]
        if quantity.kind != "constant":
            x = move_grid(g, x, x.dim() - 1 - task.dim)
        result[quantity.name] = x @ actions[quantity.grade].mT.to(x)
    return result


def _actions(task: Task, g: Tensor, quantities: Sequence[Quantity]) -> dict[int | str, Tensor]:
    """ρ(g) on the components of each grade; those of blades are blocks of one matrix."""
    algebra = task.algebra
    actions: dict[int | str, Tensor] = {}
    whole = algebra.action(g)
    for grade in {q.grade for q in quantities}:
        if isinstance(grade, int):
            span = algebra.grade_slice(grade)
            actions[grade] = whole[span, span]
        else:
            actions[grade] = algebra.action(g, grade)
    return actions


class RandomSymmetry:
    """A transform of windows: rotates and reflects them by a random symmetry of their grid.

    Fields, constants and what is given are transformed together. Other rotations and boosts do not
    map a grid to itself; for boosted data give the simulators of spacetime a ``rapidity``.

    With time as an axis of the grid a reversal of time puts new frames first. Losses look for them
    at the end of the output, so time is only reversed in windows whose whole output is new.

    Args:
        task: whose metric, spacing and boundary count.
        group: ``"O"``, ``"SO"``, ``"O+"`` or ``"SO+"``.
    """

    def __init__(self, task: Task, group: str = "O"):
        self.task = task
        self.group = group

    def elements(self, grid: Sequence[int]) -> tuple[Tensor, ...]:
        """The symmetries of a grid."""
        return task_symmetries(self.task, tuple(grid), self.group)

    def __call__(self, window: Window, rng: np.random.Generator) -> Window:
        elements, axis = self.elements(grid_of(self.task, window.known)), self.task.time_axis
        if axis is not None and not self._reversible(window):
            elements = tuple(g for g in elements if g[axis, axis] > 0)
        g = elements[int(rng.integers(len(elements)))]
        constants = window.constants
        if len(constants):
            constants = self.task.algebra.transform(g.to(constants), constants)
        return Window(
            transform_fields(self.task, g, window.known),
            transform_fields(self.task, g, window.target),
            constants,
            transform_given(self.task, g, window.given),
        )

    def _reversible(self, window: Window) -> bool:
        """Whether the target is all of one output."""
        frames = {len(x) for x in window.target.values()}
        return frames == {self.task.frames_in} == {self.task.frames_out}


class RandomNoise:
    """A transform of windows: Gaussian noise on what is known, none on the target.

    A forecaster that learns from it learns to correct small errors, as they arise in rollouts. All
    components of a field get noise of the same variance, in units of that field. So its law is
    invariant under rotations and reflections. If the metric is indefinite, no Gaussian of finite
    variance is invariant under boosts: its law is invariant under the maximal compact subgroup
    O(p) × O(q) only, and singles out the frame of the grid. Training with it asks the network to
    correct errors of equal size in space and time as this frame sees them. The network itself
    stays equivariant.

    The noise of a symmetric tensor is symmetric: the components of an orthonormal basis of such
    tensors have one variance, so T^xy has half that of T^xx.

    Args:
        task: whose fields they are.
        units: scales of the fields.
        deviation: standard deviation of the noise, in these units.
    """

    def __init__(self, task: Task, units: Units, deviation: float):
        self.task = task
        self.scale: dict[str, float] = dict(units.scale)
        self.deviation = deviation

    def __call__(self, window: Window, rng: np.random.Generator) -> Window:
        known = {}
        for field in self.task.fields:
            x = window.known[field.name]
            noise = symmetric_part(field, torch.as_tensor(rng.standard_normal(x.shape)).to(x))
            known[field.name] = x + self.deviation * self.scale[field.name] * noise
        return window._replace(known=known)


@dataclass(frozen=True)
class InTurn:
    """Several transforms of windows as one; each goes on with the random numbers of the last."""

    transforms: tuple[Transform, ...]

    def __call__(self, window: Window, rng: np.random.Generator) -> Window:
        for transform in self.transforms:
            window = transform(window, rng)
        return window


def grid_of(task: Task, fields: Mapping[str, Tensor]) -> tuple[int, ...]:
    """The grid of named fields (..., frames, *space, components)."""
    shape = next(iter(fields.values())).shape[:-1]
    return tuple(shape[-task.dim :])
