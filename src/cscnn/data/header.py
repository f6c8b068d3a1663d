"""What a set of trajectories is: space, fields, units, borders, and how it was made."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from cscnn.algebra import CliffordAlgebra
from cscnn.models.tasks import BOUNDARIES, Background, Field, Task


@dataclass(frozen=True)
class Header:
    """The description that travels with the numbers.

    Trajectories are stored as (trajectory, time, *space, components), one array per field. Time
    is an axis of the grid if ``time_axis`` is 0; then it has a sign in the metric, a spacing and a
    boundary. If it is None, the grid is space and times are frames.

    Attributes:
        metric: one sign per axis of the grid.
        axes: a name per axis of the grid.
        spacing: distance of grid points along each axis.
        boundary: what happens at the ends of each axis, see `BOUNDARIES`.
        fields: the stored quantities.
        frames: times per trajectory.
        grid: points per axis of space.
        frame_spacing: time between frames.
        time_axis: 0 or None.
        units: of length (and of time, if it is no axis), e.g. ``{"length": "m", "time": "s"}``.
        backgrounds: known constants that break symmetries.
        generator: name of what made the data.
        generator_version: changes when the same parameters give other numbers.
        parameters: everything that the generator was told.
        seed: of the random numbers.
        split: train, valid or test.
    """

    metric: tuple[int, ...]
    axes: tuple[str, ...]
    spacing: tuple[float, ...]
    boundary: tuple[str, ...]
    fields: tuple[Field, ...]
    frames: int
    grid: tuple[int, ...]
    frame_spacing: float = 1.0
    time_axis: int | None = None
    units: Mapping[str, str] = field(default_factory=dict)
    backgrounds: tuple[Background, ...] = ()
    generator: str = ""
    generator_version: int = 0
    parameters: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    split: str = ""

    def __post_init__(self) -> None:
        self.task()  # checks metric, fields, backgrounds, boundary and spacing
        dim = len(self.metric)
        if len(self.axes) != dim or len(set(self.axes)) != dim:
            raise ValueError(f"axes must name each of {dim} axes, got {self.axes}")
        if any(not 0 < h < math.inf for h in (*self.spacing, self.frame_spacing)):
            raise ValueError(
                f"spacings must be positive, got {self.spacing} and frames {self.frame_spacing}"
            )
        if self.time_axis not in (None, 0):
            raise ValueError(f"time must be axis 0 of the grid or none, got {self.time_axis}")
        space = dim - (self.time_axis is not None)
        if len(self.grid) != space or any(n < 1 for n in (*self.grid, self.frames)):
            raise ValueError(
                f"metric {self.metric} needs a grid of {space} positive sizes and at least one "
                f"frame, got {self.grid} and {self.frames}"
            )

    @property
    def algebra(self) -> CliffordAlgebra:
        """The Clifford algebra of the metric."""
        return CliffordAlgebra(self.metric)

    def shape(self, name: str) -> tuple[int, ...]:
        """(frames, *grid, components) of a field."""
        grade = next(f.grade for f in self.fields if f.name == name)
        return (self.frames, *self.grid, self.algebra.grade_sizes[grade])

    def task(self, name: str = "", **changes: Any) -> Task:
        """A forecasting task on these data, e.g. ``header.task(frames_in=4, frames_out=1)``.

        Backgrounds that belong to the forecast, not to the data, are added here: with time as an
        axis, the displacement between input and output, in units of the input's length.
        """
        backgrounds = self.backgrounds
        values: dict[str, Any] = {}
        if self.time_axis is not None:
            shift = [0.0] * len(self.metric)
            shift[self.time_axis] = 1.0
            backgrounds = (*backgrounds, Background("displacement", 1, tuple(shift)))
            frames = changes.get("frames_in", max(1, min(16, self.frames // 2)))
            values = {"frames_in": frames, "frames_out": frames}
        values |= {
            "metric": self.metric,
            "fields": self.fields,
            "time_axis": self.time_axis,
            "boundary": self.boundary,
            "spacing": self.spacing,
            "frame_spacing": self.frame_spacing,
            "backgrounds": backgrounds,
        }
        title = name or self.generator or "data"
        return Task(title, **{**values, **changes})

    def replace(self, **changes: Any) -> Header:
        """The same with some attributes changed."""
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return json.loads(json.dumps(asdict(self)))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Header:
        """Inverse of `to_dict`; unknown and missing names are errors."""
        known = {f.name for f in fields(cls)}
        if unknown := sorted(set(data) - known):
            raise ValueError(f"unknown entries {', '.join(unknown)}")
        values = dict(data)
        for name in ("metric", "axes", "spacing", "boundary", "grid"):
            if name not in values:
                raise ValueError(f"there is no entry {name}")
            values[name] = tuple(values[name])
        values["fields"] = tuple(Field(**f) for f in values["fields"])
        values["backgrounds"] = tuple(
            Background(b["name"], b["grade"], tuple(b["components"]))
            for b in values.get("backgrounds", ())
        )
        return cls(**values)

    def differences(self, other: Header) -> list[str]:
        """Names of what differs, the number of trajectories aside."""
        mine, theirs = self.to_dict(), other.to_dict()
        return [name for name in mine if mine[name] != theirs[name]]


__all__ = ["BOUNDARIES", "Header"]
