"""What a set of trajectories is: space, fields, units, borders, and how it was made."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from cscnn._util.checks import check_int, check_positive, check_type
from cscnn._util.jsonform import from_json, to_json
from cscnn._util.suggest import did_you_mean
from cscnn.algebra import CliffordAlgebra
from cscnn.data.fields import (
    KINDS,
    PLACE,
    Background,
    Cloud,
    Field,
    Given,
    algebra_of,
    check_axes,
    check_boundary,
    check_fields,
    matrix_names,
)


@dataclass(frozen=True)
class Header:
    """The description that travels with the numbers.

    Trajectories are stored as (trajectory, time, *space, components), one array per field. Time
    is an axis of the grid if ``time_axis`` is 0; then it has a sign in the metric, a spacing and a
    boundary. If it is None, the grid is space and times are frames. Data on points have no grid and
    no spacing, see `of_points`.

    Attributes:
        metric: one sign per axis of the grid.
        axes: a name per axis of the grid.
        spacing: distance of grid points along each axis.
        boundary: what happens at the ends of each axis, see `cscnn.data.fields.BOUNDARIES`.
        fields: the stored quantities that are to be predicted.
        frames: times per trajectory.
        grid: points per axis of space.
        frame_spacing: time between frames.
        time_axis: 0 or None.
        units: of length (and of time, if it is no axis), e.g. ``{"length": "m", "time": "s"}``.
        backgrounds: known constants that are the same in all trajectories.
        given: what is known of each trajectory and not predicted, see `Given`. With time as an axis
            of the grid it must be constants.
        generator: name of what made the data.
        generator_version: changes when the same parameters give other numbers.
        parameters: everything that the generator was told.
        seed: of the random numbers.
        split: train, valid or test.
        cloud: of data on points; None for those on a grid.
        start_time: of the first frame. Forecasts begin where their input ends.

    Example:
        >>> swirl = Header((1, 1), ("x", "y"), (0.5, 0.5), ("wall", "wall"),
        ...                (Field("dye", 0), Field("velocity", 1)), frames=20, grid=(64, 32))
        >>> swirl.shape("velocity")
        (20, 64, 32, 2)
        >>> swirl.replace(given=(Given("mask", 0, "static"),)).shape("mask")
        (64, 32, 1)
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
    given: tuple[Given, ...] = ()
    generator: str = ""
    generator_version: int = 0
    parameters: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    split: str = ""
    cloud: Cloud | None = None
    start_time: float = 0.0

    def __post_init__(self) -> None:
        check_fields("a header", self.metric, self.fields, self.backgrounds, self.given)
        dim = self.algebra.dim
        check_axes("boundary", self.boundary, dim)
        check_boundary(self.boundary)
        check_positive(spacing=self.spacing, frame_spacing=self.frame_spacing)
        self._check_types()
        self._check_texts()
        if len(self.axes) != dim or len(set(self.axes)) != dim:
            raise ValueError(f"axes must name each of {dim} axes, got {self.axes}")
        if self.time_axis not in (None, 0):
            raise ValueError(f"time must be axis 0 of the grid or none, got {self.time_axis}")
        check_given(self.given, self.time_axis)
        if self.cloud is not None:
            self._check_cloud(self.cloud)
            return
        check_axes("spacing", self.spacing, dim)
        space = dim - (self.time_axis is not None)
        if len(self.grid) != space or any(n < 1 for n in (*self.grid, self.frames)):
            raise ValueError(
                f"metric {self.metric} needs a grid of {space} positive sizes and at least one "
                f"frame, got {self.grid} and {self.frames}"
            )

    def _check_cloud(self, cloud: Cloud) -> None:
        """Raise unless the rest goes with data on points."""
        cloud.check(self.algebra.dim, [q.name for q in self.quantities])
        if self.frames < 1:
            raise ValueError(f"data need at least one frame, got {self.frames}")
        for name, value, expected in (
            ("time_axis", self.time_axis, None),
            ("grid", tuple(self.grid), ()),
            ("spacing", tuple(self.spacing), ()),
            ("boundary", tuple(self.boundary), cloud.boundary),
        ):
            if value != expected:
                raise ValueError(
                    f"data on points with period {cloud.period} have {name} {expected}, got {value}"
                )

    @classmethod
    def of_points(
        cls,
        metric: Sequence[int],
        fields: Sequence[Field],
        frames: int,
        *,
        period: Sequence[float | None] | None = None,
        weights: bool = False,
        axes: Sequence[str] | None = None,
        **others: Any,
    ) -> Header:
        """The header of data on points: their number may differ between trajectories.

        A trajectory has an array ``positions`` (points, dim) beside its fields, which are (frames,
        points, components), and with ``weights`` an array of that name, (points,). Positions do not
        change in time.

        Args:
            metric, fields, frames: as above.
            period: for each axis its period, or None where it has none; by default none has.
            weights: whether trajectories have weights: shares of the volume, as of quadrature.
            axes: names of the axes; by default x, y, z, w.
            others: further attributes, e.g. ``frame_spacing`` or ``given``.

        Example:
            >>> sound = Header.of_points((1, 1), [Field("velocity", 1)], 20, period=(1.0, None))
            >>> sound.boundary, sound.shape("velocity", points=300)
            (('periodic', 'open'), (20, 300, 2))
        """
        names = "xyzw" if len(metric) <= 4 else [f"x{i}" for i in range(len(metric))]
        cloud = Cloud(tuple(period or (None,) * len(metric)), weights)
        check_axes("period", cloud.period, len(metric))
        return cls(
            tuple(metric), tuple(axes or names[: len(metric)]), (), cloud.boundary, tuple(fields),
            frames, (), cloud=cloud, **others,
        )  # fmt: skip

    def _check_types(self) -> None:
        """Raise for numbers and mappings that are none."""
        for name in ("units", "parameters"):
            if not isinstance(value := getattr(self, name), Mapping):
                raise TypeError(f"{name} of a header must be a mapping, got {value!r}")
        if not isinstance(self.grid, Sequence):
            raise TypeError(f"grid must list the points per axis of space, got {self.grid!r}")
        for name, value in (("frames", self.frames), *(("grid", n) for n in self.grid)):
            check_int(f"{name} of a header", value, low=0)
        if self.cloud is not None:
            check_type("cloud", self.cloud, Cloud)
        if not isinstance(self.start_time, int | float) or not math.isfinite(self.start_time):
            raise ValueError(f"start_time must be a finite number, got {self.start_time!r}")

    def _check_texts(self) -> None:
        """Raise if a text has control characters, which a terminal would obey."""
        units = [q.units for q in self.quantities]
        for text in (*self.axes, *self.units.values(), *units, self.generator, self.split):
            if not isinstance(text, str) or not text.isprintable():
                raise ValueError(f"texts of a header must be printable, got {text!r}")

    @cached_property
    def algebra(self) -> CliffordAlgebra:
        """The Clifford algebra of the metric, with symmetric tensors if a quantity is one."""
        return algebra_of(self.metric, (*self.quantities, *self.backgrounds))

    @property
    def time_unit(self) -> str:
        """The unit of all times, which is that of length if time is an axis; empty if not known."""
        return self.units.get("time" if self.time_axis is None else "length", "")

    @property
    def quantities(self) -> tuple[Field | Given, ...]:
        """All that a trajectory has: fields, and what is given."""
        return (*self.fields, *self.given)

    def quantity(self, name: str) -> Field | Given:
        """A field, or what is given, by its name."""
        known = {q.name: q for q in self.quantities}
        if name not in known:
            hint = did_you_mean(name, known, otherwise="")
            raise ValueError(f"there is no field {name!r}, only {', '.join(known)}{hint}")
        return known[name]

    def axes_of(self, name: str) -> tuple[bool, bool]:
        """Whether a quantity has an axis of time, and axes of space."""
        quantity = self.quantity(name)
        return KINDS[quantity.kind] if isinstance(quantity, Given) else (True, True)

    @property
    def place(self) -> tuple[str, ...]:
        """Arrays of a trajectory that say where its points are; none on a grid."""
        if self.cloud is None:
            return ()
        return PLACE if self.cloud.weights else PLACE[:1]

    def shape(self, name: str, points: int = 1) -> tuple[int, ...]:
        """(frames, *grid, components) of a field; given quantities may lack frames or grid.

        Args:
            name: of a quantity, or of the `place` of points.
            points: of the trajectory, if the data are on points: these are the grid.
        """
        if name in self.place:
            return (points, self.algebra.dim) if name == PLACE[0] else (points,)
        time, space = self.axes_of(name)
        grid = self.grid if self.cloud is None else (points,)
        components = self.algebra.size(self.grade(name))
        return (*((self.frames,) if time else ()), *(grid if space else ()), components)

    def grade(self, name: str) -> int | str:
        """Grade of a field or given quantity."""
        return self.quantity(name).grade

    def components(self, grade: int | str) -> tuple[str, ...]:
        """Names of the components of a grade: blades, or of a symmetric tensor xx, xy, ..."""
        if isinstance(grade, str):
            return matrix_names(self.axes)
        return self.algebra.blade_names[self.algebra.grade_slice(grade)]

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


def check_given(given: Sequence[Given], time_axis: int | None) -> None:
    """Raise if time is an axis of the grid and something else than constants is given.

    What is static for one observer is not for another, and a reversal of time would exchange the
    forcing at the times of input and output.
    """
    fields = [f"{g.name} ({g.kind})" for g in given if g.kind != "constant"]
    if time_axis is not None and fields:
        raise ValueError(
            f"with time as an axis of the grid only constants can be given, got {fields[0]}: make "
            "it a field that is predicted too"
        )
