"""What is forecast: a header of data, and how windows are cut from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from cscnn._util.checks import check_choice, check_int
from cscnn._util.jsonform import from_json, to_json
from cscnn.algebra import CliffordAlgebra
from cscnn.conv.padding import MODES
from cscnn.data.fields import (
    BOUNDARIES,
    Background,
    Field,
    Given,
    algebra_of,
    check_axes,
    check_boundary,
    check_fields,
)
from cscnn.data.header import Header, check_given
from cscnn.data.strided import Strides
from cscnn.forecasting.packing import embed, grades_of, pack, place_fields, unpack
from cscnn.forecasting.spaces import check_search, check_space, check_spacing, neighbourhood
from cscnn.geometry.search import NeighbourSearch
from cscnn.networks import FieldType, Grid
from cscnn.networks.pointnet import Neighbourhood

#: Frames that are seen, unless told otherwise.
FRAMES_IN = 4
#: With time as an axis of the grid: largest number of frames, or half a trajectory.
SPACETIME_FRAMES = 16
ONE_BY_ONE = Strides()  #: consecutive frames


@dataclass(frozen=True)
class Task:
    """Predict fields on a grid, or on points, from earlier ones.

    Args:
        name: what it is called.
        metric: one sign per axis of the grid.
        fields: the quantities of one frame.
        frames_in, frames_out: frames seen and predicted. If time is an axis of the grid, the output
            is the field on the grid of the input, later by ``frames_out`` frames: at most
            ``frames_in``. Its last ``frames_out`` frames are new, and only these count.
        time_axis: the axis of the grid that is time, or None if frames are channels.
        boundary: ``"periodic"``, ``"wall"`` or ``"open"``, one for each axis or one for all.
        open_padding: what networks see beyond open borders, e.g. ``"zeros"`` or ``"extrapolate"``,
            which differential kernels need.
        wall_padding: what they see beyond walls: ``"wall"``, the mirror image of multivectors, or
            another mode, e.g. ``"conductor"``, or ``"symmetric"``, which repeats all components.
        margin: points at open borders of space that losses and metrics leave out, on each side.
        spacing: distance of grid points, for each axis.
        frame_spacing: time between frames.
        backgrounds: known constants that the network is told.
        given: what it is told of each trajectory: static fields, constants, and forcing, of which
            it sees all frames from the first of the input to the last of the output.
        displacement: with time as an axis, tell the network by how much the forecast is later: a
            vector, in units of the input's length. Without it a network that commutes with the
            reversal of time cannot know where the future is.
        gap: frames between the newest that is seen and the first that is predicted. Such forecasts
            do not join their input, so they cannot be fed back.
        points: how neighbours are found, for fields on points; None for those on a grid.

    Example:
        >>> swirl = Task("swirl", (1, 1), (Field("dye", 0), Field("velocity", 1)), frames_in=2)
        >>> swirl.input_type.channels, swirl.input_type.components
        (2, 6)
    """

    name: str
    metric: tuple[int, ...]
    fields: tuple[Field, ...]
    frames_in: int = FRAMES_IN
    frames_out: int = 1
    time_axis: int | None = None
    boundary: tuple[str, ...] | str = "open"
    spacing: tuple[float, ...] | None = None
    frame_spacing: float = 1.0
    backgrounds: tuple[Background, ...] = ()
    displacement: bool = True
    open_padding: str = "zeros"
    margin: int = 0
    given: tuple[Given, ...] = ()
    wall_padding: str = BOUNDARIES["wall"]
    gap: int = 0
    points: NeighbourSearch | None = None

    def __post_init__(self) -> None:
        check_fields("a task", self.metric, self.fields, self.backgrounds, self.given)
        dim = self.algebra.dim
        check_int("frames_in", self.frames_in, low=1)
        check_int("frames_out", self.frames_out, low=1)
        check_given(self.given, self.time_axis)
        if self.time_axis is not None and not 0 <= self.time_axis < dim:
            raise ValueError(f"time_axis must be one of the {dim} axes, got {self.time_axis}")
        if self.time_axis is not None and self.frames_in < self.frames_out:
            raise ValueError(
                "with time as a grid axis a forecast is at most frames_in frames later: got "
                f"{self.frames_in} frames in and {self.frames_out} out"
            )
        if check_int("gap", self.gap, low=0) and self.time_axis is not None:
            raise ValueError(
                "with time as a grid axis a forecast is on the grid of the input, frames_out "
                f"frames later: change frames_out, and leave out gap={self.gap}"
            )
        check_choice("open_padding", self.open_padding, MODES)
        check_choice("wall_padding", self.wall_padding, MODES)
        check_int("margin", self.margin, low=0)
        for name in ("boundary", "spacing"):
            value = getattr(self, name)
            if isinstance(value, tuple):
                check_axes(name, value, dim)
        check_boundary(self.boundaries)

    @classmethod
    def from_header(
        cls,
        header: Header,
        *,
        name: str = "",
        frames_in: int | None = None,
        frames_out: int | None = None,
        constants: bool = True,
        open_padding: str = "zeros",
        margin: int = 0,
        wall_padding: str = BOUNDARIES["wall"],
        gap: int = 0,
        points: NeighbourSearch | None = None,
    ) -> Task:
        """The task of forecasting data.

        Args:
            header: of the data, as the network shall see them (see `cscnn.data.Coarse` and
                `cscnn.data.Strided`).
            name: by default that of the generator.
            frames_in: see `default_frames` for the default.
            frames_out: by default 1, and with time as an axis ``frames_in``.
            constants: tell the network what is known: backgrounds, displacement, what is given.
            open_padding, margin, wall_padding, gap: as above.
            points: as above; data on points need it, see `cscnn.forecasting.find_neighbours`.
        """
        check_search(points, header)
        frames_in = default_frames(header) if frames_in is None else frames_in
        if frames_out is None:
            frames_out = 1 if header.time_axis is None else frames_in
        return cls(
            name or header.generator or "data",
            header.metric,
            header.fields,
            frames_in=frames_in,
            frames_out=frames_out,
            time_axis=header.time_axis,
            boundary=header.boundary,
            spacing=header.spacing or None,
            frame_spacing=header.frame_spacing,
            backgrounds=header.backgrounds if constants else (),
            given=header.given if constants else (),
            displacement=constants,
            open_padding=open_padding,
            margin=margin,
            wall_padding=wall_padding,
            gap=gap,
            points=points,
        )

    # --- space ------------------------------------------------------------------------------------

    @cached_property
    def algebra(self) -> CliffordAlgebra:
        """The Clifford algebra of the metric, with symmetric tensors if a quantity is one."""
        return algebra_of(self.metric, (*self.quantities, *self.backgrounds))

    @property
    def dim(self) -> int:
        """Number of axes of the grid."""
        return len(self.metric)

    @property
    def boundaries(self) -> tuple[str, ...]:
        """What happens at the ends of each axis."""
        return (self.boundary,) * self.dim if isinstance(self.boundary, str) else self.boundary

    @property
    def padding_mode(self) -> tuple[str, ...]:
        """Padding mode of each axis."""
        modes = {**BOUNDARIES, "open": self.open_padding, "wall": self.wall_padding}
        return tuple(modes[boundary] for boundary in self.boundaries)

    @property
    def grid_spacing(self) -> tuple[float, ...]:
        """Distance of grid points, for each axis."""
        return self.spacing or (1.0,) * self.dim

    @property
    def grid(self) -> Grid:
        """What a network has to know of the grid."""
        return Grid(self.grid_spacing, self.padding_mode)

    @property
    def space(self) -> Grid | Neighbourhood:
        """What a network has to know of the grid, or of the edges between points."""
        return self.grid if self.points is None else neighbourhood(self.points)

    @property
    def grid_axes(self) -> int:
        """Axes of packed fields between channels and blades: the grid's, or one of points."""
        return self.dim if self.points is None else 1

    @property
    def margins(self) -> tuple[int, ...]:
        """Points that do not count at either end of each axis of the grid; none of time."""
        return tuple(
            self.margin if boundary == "open" and axis != self.time_axis else 0
            for axis, boundary in enumerate(self.boundaries)
        )

    def inside(self, fields: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """What counts of fields (batch, frames, *space, components): all but the margins."""
        first = 2 if self.time_axis is None else 1
        return {name: self._inside(x, first) for name, x in fields.items()}

    def inside_grid(self, x: Tensor) -> Tensor:
        """What counts of multivectors (batch, channels, *grid, blades): all but the margins."""
        return self._inside(x, 2)

    def _inside(self, x: Tensor, first: int) -> Tensor:
        for axis, margin in enumerate(self.margins, start=first):
            size = x.shape[axis] - 2 * margin
            if size < 1:
                raise ValueError(
                    f"task {self.name} leaves out margins of {margin} points, but the grid has "
                    f"{x.shape[axis]}: nothing is left to compare"
                )
            x = x.narrow(axis, margin, size) if margin else x
        return x

    @property
    def displacements(self) -> tuple[int, ...]:
        """By how many frames outputs are later than the newest input, or the input beneath them."""
        later = self.gap + self.frames_out
        return (later,) if self.time_axis is not None else tuple(range(self.gap + 1, later + 1))

    @property
    def span(self) -> int:
        """Frames from the first of the input to the last of the output."""
        return self.frames_in + self.gap + self.frames_out

    @property
    def quantities(self) -> tuple[Field | Given, ...]:
        """All that the data need: fields, and what is given."""
        return (*self.fields, *self.given)

    # --- channels ---------------------------------------------------------------------------------

    @cached_property
    def field_channels(self) -> tuple[int, ...]:
        """Of each field, its channel within a frame."""
        return place_fields(self.fields, self.algebra)

    @cached_property
    def frame_type(self) -> FieldType:
        """The multivectors of one frame: fields of different grades share one."""
        grades: list[set[int]] = [set() for _ in range(max(self.field_channels) + 1)]
        for field, channel in zip(self.fields, self.field_channels, strict=True):
            grades[channel] |= {*grades_of(field, self.algebra)}
        return FieldType(self.algebra, tuple(tuple(sorted(channel)) for channel in grades))

    @cached_property
    def constants(self) -> tuple[Background, ...]:
        """What the network is told in every trajectory alike: backgrounds and displacement."""
        if self.time_axis is None or not self.displacement:
            return self.backgrounds
        unit = tuple(float(axis == self.time_axis) for axis in range(self.dim))
        return (*self.backgrounds, Background("displacement", 1, unit))

    def told(self) -> list[str]:
        """What the network knows beside the frames, e.g. ``["mask (static)"]``."""
        given = [f"{g.name} ({g.kind})" for g in self.given]
        return given + [f"{c.name} (background)" for c in self.constants]

    @property
    def frame_channels(self) -> int:
        """Channels of the frames that are seen."""
        return self._blocks(self.frames_in) * self.frame_type.channels

    @property
    def in_channels(self) -> int:
        """Channels of the frames that are seen and of what is given, without `constants`."""
        return self.input_type.channels - len(self.constants)

    @cached_property
    def input_type(self) -> FieldType:
        """What the network sees: frames, what is given, constants."""
        frames = self.frame_type.grades * self._blocks(self.frames_in)
        given = [
            grades_of(g, self.algebra)
            for g in self.given
            for _ in range(self.span if g.kind == "forcing" else 1)
        ]
        constants = (grades_of(b, self.algebra) for b in self.constants)
        return FieldType(self.algebra, (*frames, *given, *constants))

    @cached_property
    def output_type(self) -> FieldType:
        """What the network predicts."""
        frames = self.frame_type.grades * self._blocks(self.frames_out)
        return FieldType(self.algebra, frames)

    def _blocks(self, frames: int) -> int:
        """Frames that are channels."""
        return 1 if self.time_axis is not None else frames

    def pack(self, fields: Mapping[str, Tensor]) -> Tensor:
        """Named components (batch, frames, *space, components) as a field of multivectors.

        Returns:
            (batch, channels, *grid, blades), where frames are channels, or the time axis.
        """
        return pack(self, fields)

    def unpack(self, x: Tensor) -> dict[str, Tensor]:
        """Inverse of `pack`."""
        return unpack(self, x)

    def constant_multivectors(self) -> Tensor:
        """The constants as multivectors (number of constants, blades)."""
        rows = [
            embed(b, self.algebra, torch.tensor(b.components, dtype=torch.float64))
            for b in self.constants
        ]
        return (torch.stack(rows) if rows else torch.empty(0, self.algebra.n_blades)).float()

    # --- data -------------------------------------------------------------------------------------

    def check_data(self, header: Header, stride: Strides = ONE_BY_ONE) -> None:
        """Raise unless the task is about these data, cut with a stride or a range of them."""
        check_space(self, header)
        seen = stride.seen(header)
        own = Task.from_header(seen, points=self.points)
        for name, mine, theirs in (
            ("metric", self.metric, header.metric),
            ("time_axis", self.time_axis, header.time_axis),
            ("fields", _signature(self), _signature(own)),
            ("boundary", self.boundaries, own.boundaries),
            # A network need not be told the constants, but it must not be told other ones.
            ("backgrounds", self.backgrounds, own.backgrounds if self.backgrounds else ()),
        ):
            if mine != theirs:
                raise ValueError(f"task {self.name} has {name} {mine}, the data have {theirs}")
        known = {(g.name, g.grade, g.kind) for g in seen.given}
        if missing := [g for g in self.given if (g.name, g.grade, g.kind) not in known]:
            raise ValueError(f"task {self.name} is given {missing[0]}, the data have {seen.given}")
        check_spacing(self, header, stride)
        if self.points is not None:
            return
        ratios = [a / b for a, b in zip(self.grid_spacing, seen.spacing, strict=True)]
        if max(ratios) > 1.001 * min(ratios):
            raise ValueError(
                f"task {self.name} has spacing {self.grid_spacing}, the data have "
                f"{seen.spacing}: their ratios differ"
            )

    def replace(self, **changes: Any) -> Task:
        """The same task with some attributes changed."""
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return dict(to_json(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Task:
        """Inverse of `to_dict`, also after a trip through JSON."""
        return from_json(cls, data, "task")


def default_frames(header: Header) -> int:
    """Frames that are seen unless told otherwise: 4.

    With time as an axis of the grid half a trajectory, at most 16, so that as many can follow.
    """
    if header.time_axis is None:
        return FRAMES_IN
    return max(1, min(SPACETIME_FRAMES, header.frames // 2))


def _signature(task: Task) -> list[tuple[str, int | str]]:
    return [(f.name, f.grade) for f in task.fields]
