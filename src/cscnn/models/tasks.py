"""What a model has to know about a data set: space, fields, frames, borders and backgrounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor

from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.blades import check_int

#: Kinds of boundary and the padding mode that suits them.
BOUNDARIES = {"periodic": "circular", "wall": "symmetric", "open": "zeros"}


@dataclass(frozen=True)
class Field:
    """One stored quantity: a scalar has grade 0, a vector 1, a magnetic field (bivector) 2."""

    name: str
    grade: int
    units: str = ""


@dataclass(frozen=True)
class Background:
    """A known constant multivector that breaks a symmetry: gravity, a wall normal, a time step.

    Given to the model as an input channel it transforms with the data, and the map is equivariant
    again.
    """

    name: str
    grade: int
    components: tuple[float, ...]


@dataclass(frozen=True)
class Task:
    """Predict fields on a grid from earlier ones.

    Args:
        name: what it is called.
        metric: one sign per axis of the grid.
        fields: the quantities of one frame.
        frames_in, frames_out: frames seen and predicted. If time is an axis of the grid, its sizes.
        time_axis: the axis of the grid that is time, or None if frames are channels.
        boundary: ``"periodic"``, ``"wall"`` or ``"open"``, one for each axis or one for all.
        spacing: distance of grid points, for each axis.
        frame_spacing: time between frames.
        backgrounds: known constants that the model is given.

    Example:
        >>> swirl = Task("swirl", (1, 1), (Field("dye", 0), Field("velocity", 1)), frames_in=2)
        >>> swirl.in_channels, swirl.blades
        (2, (0, 1, 2))
    """

    name: str
    metric: tuple[int, ...]
    fields: tuple[Field, ...]
    frames_in: int = 4
    frames_out: int = 1
    time_axis: int | None = None
    boundary: tuple[str, ...] | str = "open"
    spacing: tuple[float, ...] | None = None
    frame_spacing: float = 1.0
    backgrounds: tuple[Background, ...] = ()

    def __post_init__(self) -> None:
        dim = self.algebra.dim
        check_int("frames_in", self.frames_in, low=1)
        check_int("frames_out", self.frames_out, low=1)
        names = [f.name for f in self.fields]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"a task needs fields of different names, got {names}")
        grades = [(f.name, f.grade) for f in self.fields]
        grades += [(b.name, b.grade) for b in self.backgrounds]
        for name, grade in grades:
            if not 0 <= grade <= dim:
                raise ValueError(f"{name} has grade {grade}, {self.algebra} has 0..{dim}")
        for item in self.backgrounds:
            size = self.algebra.grade_sizes[item.grade]
            if len(item.components) != size:
                raise ValueError(
                    f"background {item.name} of grade {item.grade} has {size} components, got "
                    f"{item.components}"
                )
        if self.time_axis is not None and not 0 <= self.time_axis < dim:
            raise ValueError(f"time_axis must be one of the {dim} axes, got {self.time_axis}")
        if self.time_axis is not None and self.frames_in != self.frames_out:
            raise ValueError(
                "with time as a grid axis input and output are grids of one size: got "
                f"{self.frames_in} frames in and {self.frames_out} out"
            )
        for name in ("boundary", "spacing"):
            value = getattr(self, name)
            if isinstance(value, tuple) and len(value) != dim:
                raise ValueError(f"{name} needs one value per axis, {dim} in all, got {value}")
        for kind in self._boundaries:
            if kind not in BOUNDARIES:
                raise ValueError(f"boundary must be one of {', '.join(BOUNDARIES)}, got {kind!r}")

    @property
    def algebra(self) -> CliffordAlgebra:
        """The Clifford algebra of the metric."""
        return CliffordAlgebra(self.metric)

    @property
    def dim(self) -> int:
        """Number of axes of the grid."""
        return len(self.metric)

    @property
    def _boundaries(self) -> tuple[str, ...]:
        kinds = self.boundary
        return (kinds,) * self.dim if isinstance(kinds, str) else kinds

    @property
    def padding_mode(self) -> tuple[str, ...]:
        """Padding mode of each axis."""
        return tuple(BOUNDARIES[kind] for kind in self._boundaries)

    @property
    def grid_spacing(self) -> tuple[float, ...]:
        """Distance of grid points, for each axis."""
        return self.spacing or (1.0,) * self.dim

    @property
    def multivectors(self) -> int:
        """Multivectors per frame: fields of different grades share one."""
        return max(Counter(f.grade for f in self.fields).values())

    @property
    def in_channels(self) -> int:
        """Channels of the input, without the backgrounds."""
        return self.multivectors * (1 if self.time_axis is not None else self.frames_in)

    @property
    def out_channels(self) -> int:
        """Channels of the output."""
        return self.multivectors * (1 if self.time_axis is not None else self.frames_out)

    @property
    def blades(self) -> tuple[int, ...]:
        """Indices of the blades that carry data in some channel."""
        grades = {f.grade for f in self.fields}
        return tuple(i for i, k in enumerate(self.algebra.grades) if k in grades)

    def pack(self, fields: Mapping[str, Tensor]) -> Tensor:
        """Named components (batch, frames, *grid, components) as a field of multivectors.

        With time as an axis of the grid there is no axis of frames.
        """
        if set(fields) != {f.name for f in self.fields}:
            raise ValueError(f"expected {[f.name for f in self.fields]}, got {sorted(fields)}")
        algebra = self.algebra
        values = [fields[f.name] for f in self.fields]
        if self.time_axis is not None:
            values = [x.unsqueeze(1) for x in values]
        shape = values[0].shape[:-1]
        packed = values[0].new_zeros(*shape[:2], self.multivectors, *shape[2:], algebra.n_blades)
        used: Counter[int] = Counter()
        for field, x in zip(self.fields, values, strict=True):
            expected = (*shape, algebra.grade_sizes[field.grade])
            if x.shape != expected:
                raise ValueError(
                    f"field {field.name} must have shape {expected}, got {tuple(x.shape)}"
                )
            blades = algebra.grade_slice(field.grade)
            packed[:, :, used[field.grade], ..., blades] = x
            used[field.grade] += 1
        return packed.flatten(1, 2)

    def unpack(self, x: Tensor) -> dict[str, Tensor]:
        """Inverse of `pack`."""
        frames = x.unflatten(1, (-1, self.multivectors))
        used: Counter[int] = Counter()
        fields = {}
        for field in self.fields:
            part = self.algebra.grade(frames[:, :, used[field.grade]], field.grade)
            used[field.grade] += 1
            fields[field.name] = part.squeeze(1) if self.time_axis is not None else part
        return fields

    def background(self, like: Tensor) -> Tensor:
        """The backgrounds as multivectors (number of backgrounds, blades)."""
        rows = [
            self.algebra.embed(torch.tensor(b.components, dtype=torch.float64), b.grade)
            for b in self.backgrounds
        ]
        empty = torch.empty(0, self.algebra.n_blades)
        return (torch.stack(rows) if rows else empty).to(like)

    def replace(self, **changes: Any) -> Task:
        """The same task with some attributes changed."""
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Task:
        """Inverse of `to_dict`, also after a trip through JSON."""
        values = dict(data)
        values["fields"] = tuple(Field(**f) for f in values["fields"])
        values["backgrounds"] = tuple(
            Background(b["name"], b["grade"], tuple(b["components"])) for b in values["backgrounds"]
        )
        for name in ("metric", "boundary", "spacing"):
            if isinstance(values.get(name), list):
                values[name] = tuple(values[name])
        return cls(**values)


#: The forecasting tasks of the paper, and electrodynamics in 3 + 1 dimensions.
TASKS = {
    task.name: task
    for task in (
        Task(
            "navier_stokes",
            (1, 1),
            (Field("smoke", 0), Field("velocity", 1)),
            boundary="wall",
            spacing=(0.5, 0.5),
            frame_spacing=6.0,
            backgrounds=(Background("buoyancy", 1, (0.0, 0.5)),),
        ),
        Task("maxwell3d", (1, 1, 1), (Field("electric", 1), Field("magnetic", 2))),
        Task(
            "maxwell_spacetime",
            (1, -1, -1),
            (Field("faraday", 2),),
            frames_in=16,
            frames_out=16,
            time_axis=0,
            backgrounds=(Background("displacement", 1, (1.0, 0.0, 0.0)),),
        ),
        Task(
            "maxwell_spacetime4d",
            (1, -1, -1, -1),
            (Field("faraday", 2),),
            frames_in=8,
            frames_out=8,
            time_axis=0,
            backgrounds=(Background("displacement", 1, (1.0, 0.0, 0.0, 0.0)),),
        ),
    )
}


def get_task(task: str | Task) -> Task:
    """A task by its name, or the task itself."""
    if isinstance(task, Task):
        return task
    if task not in TASKS:
        raise ValueError(f"unknown task {task!r}: choose from {', '.join(TASKS)}")
    return TASKS[task]
