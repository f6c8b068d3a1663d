"""What a set of trajectories is: space, fields, units, borders, and how it was made."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cscnn._util.checks import check_positive
from cscnn._util.jsonform import from_json, to_json
from cscnn.algebra import CliffordAlgebra
from cscnn.data.fields import Background, Field, check_axes, check_boundary, check_fields


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
        boundary: what happens at the ends of each axis, see `cscnn.data.fields.BOUNDARIES`.
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

    Example:
        >>> swirl = Header((1, 1), ("x", "y"), (0.5, 0.5), ("wall", "wall"),
        ...                (Field("dye", 0), Field("velocity", 1)), frames=20, grid=(64, 32))
        >>> swirl.shape("velocity")
        (20, 64, 32, 2)
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
        dim = self.algebra.dim
        check_fields("a header", self.algebra, self.fields, self.backgrounds)
        check_axes("boundary", self.boundary, dim)
        check_boundary(self.boundary)
        check_axes("spacing", self.spacing, dim)
        check_positive(spacing=self.spacing, frame_spacing=self.frame_spacing)
        self._check_texts()
        if len(self.axes) != dim or len(set(self.axes)) != dim:
            raise ValueError(f"axes must name each of {dim} axes, got {self.axes}")
        if self.time_axis not in (None, 0):
            raise ValueError(f"time must be axis 0 of the grid or none, got {self.time_axis}")
        space = dim - (self.time_axis is not None)
        if len(self.grid) != space or any(n < 1 for n in (*self.grid, self.frames)):
            raise ValueError(
                f"metric {self.metric} needs a grid of {space} positive sizes and at least one "
                f"frame, got {self.grid} and {self.frames}"
            )

    def _check_texts(self) -> None:
        """Raise if a text has control characters, which a terminal would obey."""
        units = [f.units for f in self.fields]
        for text in (*self.axes, *self.units.values(), *units, self.generator, self.split):
            if not isinstance(text, str) or not text.isprintable():
                raise ValueError(f"texts of a header must be printable, got {text!r}")

    @property
    def algebra(self) -> CliffordAlgebra:
        """The Clifford algebra of the metric."""
        return CliffordAlgebra(self.metric)

    def shape(self, name: str) -> tuple[int, ...]:
        """(frames, *grid, components) of a field."""
        return (self.frames, *self.grid, self.algebra.grade_sizes[self.grade(name)])

    def grade(self, name: str) -> int:
        """Grade of a field."""
        grades = {f.name: f.grade for f in self.fields}
        if name not in grades:
            raise ValueError(f"there is no field {name!r}, only {', '.join(grades)}")
        return grades[name]

    def replace(self, **changes: Any) -> Header:
        """The same with some attributes changed."""
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return dict(to_json(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Header:
        """Inverse of `to_dict`; unknown and missing names are errors."""
        return from_json(cls, data)

    def differences(self, other: Header) -> list[str]:
        """Names of the attributes that differ."""
        mine, theirs = self.to_dict(), other.to_dict()
        return [name for name in mine if mine[name] != theirs[name]]
