"""What every forecast obeys, whatever the network predicts: no divergence, no charges, same mean.

A constraint is a linear projection of the predicted state. Fields are scaled by one number each, so
that it holds in scaled units, where it is applied, and in physical ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from cscnn._util.checks import check_choice
from cscnn._util.jsonform import from_json
from cscnn._util.suggest import did_you_mean
from cscnn.calculus import Differences, Projection, Spectral, with_mean
from cscnn.calculus.walls import even_components
from cscnn.conv.padding import WALLS
from cscnn.data.fields import Field
from cscnn.forecasting.packing import grades_of
from cscnn.forecasting.task import Task

#: By name: grades that it says something of, from the grade of the pseudoscalar.
PROJECTIONS = {
    "divergence_free": lambda dim: range(1, dim + 1),
    "coclosed": lambda dim: range(1, dim + 1),
    "curl_free": lambda dim: range(dim),
    "closed": lambda dim: range(dim),
}
KINDS = (*PROJECTIONS, "keep_mean")
SCHEMES = ("staggered", "differences", "spectral")


@dataclass(frozen=True)
class Constraint:
    """What one field obeys.

    Args:
        field: name of the field.
        kind: ``"divergence_free"`` or ``"coclosed"`` (∇⌟f = 0), ``"curl_free"`` or ``"closed"``
            (∇∧f = 0: of a magnetic bivector, no magnetic charge), or ``"keep_mean"`` (the mean over
            space is that of the last known frame; of components that a wall does not negate).
        scheme: the discretisation in which it holds, which should be that of the data.
            ``"staggered"``: data of solvers with numbers on faces of cells, averaged to the centres
            (all simulators here, PhiFlow). ``"spectral"``: data of spectral solvers.
            ``"differences"``: central differences of points.
        accuracy: of ``"differences"``.
        wall: what walls are to this field: ``"wall"`` (no flow through it) or ``"conductor"`` (no
            tangential electric, no normal magnetic field), see `cscnn.calculus.mirror`.
    """

    field: str
    kind: str
    scheme: str = "staggered"
    accuracy: int = 2
    wall: str = "wall"

    def __post_init__(self) -> None:
        name = f"constraint of {self.field}: "
        check_choice(f"{name}kind", self.kind, KINDS)
        check_choice(f"{name}scheme", self.scheme, SCHEMES)
        check_choice(f"{name}wall", self.wall, WALLS)
        if self.accuracy != 2 and self.scheme != "differences":
            raise ValueError(
                f"{name}accuracy={self.accuracy} is for scheme differences, got scheme "
                f"{self.scheme!r}"
            )


def read_constraints(given: Mapping[str, Any]) -> tuple[Constraint, ...]:
    """Constraints from a configuration.

    Args:
        given: field name -> kind, or a mapping of `Constraint`'s arguments, or a list of these.

    Example:
        >>> read_constraints({"smoke": "keep_mean"})[0].kind
        'keep_mean'
        >>> flow = {"kind": "divergence_free", "scheme": "spectral"}
        >>> read_constraints({"velocity": flow})[0].scheme
        'spectral'
    """
    constraints = []
    for field, value in given.items():
        for each in value if isinstance(value, list | tuple) else (value,):
            entries = {"kind": each} if isinstance(each, str) else each
            if not isinstance(entries, Mapping):
                raise TypeError(
                    f"constraints.{field} must be one of {', '.join(KINDS)}, or a mapping with "
                    f"kind and scheme, got {each!r}"
                )
            told = {"field": field, **entries}
            constraints.append(from_json(Constraint, told, f"constraints.{field}"))
    return tuple(constraints)


def _check_together(constraints: Sequence[Constraint]) -> None:
    """Raise if constraints of one field are the same, or undo each other.

    Projections commute in one discretisation only: of two, the first would not hold.
    """
    for name in dict.fromkeys(c.field for c in constraints):
        own = [c for c in constraints if c.field == name]
        kinds = [c.kind for c in own]
        if twice := [kind for kind in kinds if kinds.count(kind) > 1]:
            raise ValueError(f"field {name} has the constraint {twice[0]} twice: {own}")
        projections = [c for c in own if c.kind in PROJECTIONS]
        for what, values in (
            ("scheme", [f"{c.scheme} (accuracy {c.accuracy})" for c in projections]),
            ("wall", [c.wall for c in own]),
        ):
            if len(set(values)) > 1:
                raise ValueError(
                    f"the constraints {', '.join(kinds)} of field {name} need one {what}, got "
                    f"{' and '.join(values)}: each would undo the other"
                )


class Rule(NamedTuple):
    """What a constraint does to multivectors.

    Attributes:
        channel: of the field in a frame: fields of different grades share one, see `Task.pack`.
        grades: of the field.
        boundary: of each axis, in terms of `cscnn.calculus`.
        layer: the projection; None to keep the mean.
    """

    channel: int
    grades: tuple[int, ...]
    boundary: tuple[str, ...]
    layer: Projection | None = None


#: What a forecaster is told: constraints, or field name -> kind, see `read_constraints`.
ConstraintsLike = Mapping[str, Any] | Sequence[Constraint]


class Constraints(nn.Module):
    """Projects predicted states on what obeys all constraints of a task.

    Args:
        task: what is forecast; its axes of space must be periodic or have walls.
        given: what its fields obey, as `Constraint`s or as in `read_constraints`. Projections come
            first, then means.
    """

    def __init__(self, task: Task, given: ConstraintsLike = ()):
        super().__init__()
        self.task = task
        constraints = read_constraints(given) if isinstance(given, Mapping) else tuple(given)
        if constraints and task.points is not None:
            raise ValueError(
                f"constraints are for grids, task {task.name} is on points: got {constraints[0]}"
            )
        _check_together(constraints)
        means = [c for c in constraints if c.kind == "keep_mean"]
        self.constraints: tuple[Constraint, ...] = (
            *(c for c in constraints if c not in means),
            *means,
        )
        self._rules = [self._rule(constraint) for constraint in self.constraints]

    @property
    def _space(self) -> tuple[int, ...]:
        return tuple(axis for axis in range(self.task.dim) if axis != self.task.time_axis)

    def _rule(self, constraint: Constraint) -> Rule:
        """What a constraint does, or an error about it."""
        task, kind = self.task, constraint.kind
        fields = {field.name: field for field in task.fields}
        if constraint.field not in fields:
            raise ValueError(
                f"there is no field {constraint.field!r} to constrain, task {task.name} has "
                f"{', '.join(fields)}" + did_you_mean(constraint.field, fields, otherwise="")
            )
        grade = fields[constraint.field].grade
        grades = grades_of(fields[constraint.field], task.algebra)
        channel = task.field_channels[[*fields].index(constraint.field)]
        boundary = self._boundary(constraint)
        if kind == "keep_mean":
            self._check_mean(fields[constraint.field], boundary)
            return Rule(channel, grades, boundary)
        useful = PROJECTIONS[kind](len(self._space))
        if grade not in useful:
            raise ValueError(
                f"{kind} says nothing of field {constraint.field} of grade {grade}: it is for "
                f"grades {useful.start} to {useful.stop - 1}"
            )
        scheme: Spectral | Differences = Spectral(task.grid_spacing, boundary)
        if constraint.scheme != "spectral":
            staggered = constraint.scheme == "staggered"
            accuracy = 2 if staggered else constraint.accuracy
            scheme = Differences(task.grid_spacing, accuracy, boundary, staggered)
        layer = Projection(task.algebra, kind, scheme, grades=grades, axes=self._space)
        return Rule(channel, grades, boundary, layer)

    def _check_mean(self, field: Field, boundary: tuple[str, ...]) -> None:
        """Raise if walls negate all components of a field: then no constant can be added."""
        algebra = self.task.algebra
        even = even_components(algebra, {axis: boundary[axis] for axis in self._space})
        own = [algebra.grade_slice(grade) for grade in grades_of(field, algebra)]
        if not any(any(even[span]) for span in own):
            raise ValueError(
                f"keep_mean says nothing of field {field.name} of grade {field.grade}: boundaries "
                f"{boundary} negate all of its components, so that it has no constant part"
            )

    def _boundary(self, constraint: Constraint) -> tuple[str, ...]:
        """The boundary of each axis in terms of `cscnn.calculus`; time is not looked at."""
        modes = {"periodic": "circular", "wall": constraint.wall, "open": "zeros"}
        boundaries = self.task.boundaries
        if opened := [axis for axis in self._space if boundaries[axis] == "open"]:
            raise ValueError(
                f"{constraint.field} cannot be {constraint.kind}: axis {opened[0]} of task "
                f"{self.task.name} is open, and what lies beyond it is not known. Constraints are "
                "for periodic axes and walls"
            )
        return tuple(modes[boundary] for boundary in boundaries)

    def forward(self, state: Tensor, known: Tensor) -> Tensor:
        """The constrained state.

        Args:
            state: predicted, (batch, channels of task.output_type, *grid, blades).
            known: what it was predicted from, (batch, task.in_channels, *grid, blades).
        """
        per_frame = self.task.frame_type.channels
        for rule in self._rules:
            frames = state.unflatten(1, (-1, per_frame))
            field = frames[:, :, rule.channel]
            if rule.layer is None:
                last = known[:, known.shape[1] - per_frame + rule.channel].unsqueeze(1)
                new = self._with_mean(field, last, rule)
            else:
                new = rule.layer(field)
            state = frames.select_scatter(new, 2, rule.channel).flatten(1, 2)
        return state

    def _with_mean(self, field: Tensor, last: Tensor, rule: Rule) -> Tensor:
        """A field (batch, frames, *grid, blades) with the mean of the last known frame."""
        task = self.task
        if task.time_axis is not None:
            place = 2 + task.time_axis
            last = last.narrow(place, last.shape[place] - 1, 1)
        options = {"grades": rule.grades, "axes": self._space}
        return with_mean(field, last.to(field), task.algebra, rule.boundary, **options)

    @torch.no_grad()
    def floor(self, state: Tensor, known: Tensor) -> dict[str, float]:
        """By how much constraints change a state, relative to its size: field name -> ratio.

        Of true states it is the error that constraints impose on the best of networks.
        """
        before, after = (self.task.unpack(y) for y in (state, self(state, known)))
        return {
            name: float((after[name] - x).norm() / x.norm().clamp(min=1e-30))
            for name, x in before.items()
            if name in {c.field for c in self.constraints}
        }

    def effect(self, known: Tensor, state: Tensor) -> str:
        """The `floor` in words."""
        changes = self.floor(state, known).items()
        return ", ".join(f"change {name} of the data by {x:.1e}" for name, x in changes) or "none"
