"""Files of The Well and others in its format: cartesian grids in two or three dimensions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cscnn._util.suggest import did_you_mean
from cscnn.algebra.clifford import SYMMETRIC
from cscnn.data.fields import Field, Given
from cscnn.data.header import Header
from cscnn.data.readers.checks import (
    SPLITS,
    UNEVEN,
    check_finite,
    check_shape,
    dataset,
    even_step,
)
from cscnn.data.source import HDF5Source, Trajectory
from cscnn.data.trajectories import ROUNDING, check_symmetric, symmetric_part

#: Groups of what is in a file, and the order of its tensors.
GROUPS = {"t0_fields": 0, "t1_fields": 1, "t2_fields": 2, "scalars": 0}
SAME = 1e-5  #: spacings closer than this, relative, are one: coordinates are rounded to float32
PRECEDENCE = ("periodic", "open", "wall")  #: of boundary conditions on one side of the grid
GENERAL = "general"  #: a tensor that has a symmetric and an antisymmetric part
SECOND = "_antisymmetric"  #: what the name of the field of the second part ends with
LOOKED_AT = 3  #: trajectories, and frames of each, that tell whether a tensor has two parts


@dataclass(frozen=True)
class StoredField:
    """Where a field is, and along which axes it varies; along the others it is stored once.

    Attributes:
        part: whether it is one part of a general tensor; else the tensor has no other.
    """

    dataset: str
    order: int
    grade: int | str
    by_sample: bool
    by_time: bool
    by_axis: tuple[bool, ...]
    part: bool = False

    @property
    def kind(self) -> str:
        """Which kind of `Given` it is, if it is one."""
        if self.by_time:
            return "forcing"
        return "static" if any(self.by_axis) else "constant"


class WellFile(HDF5Source):
    """Scalars, vectors and tensors of a file of The Well.

    Tensors of rank 2 are symmetric or antisymmetric if their attributes say so, else as far as some
    of their frames tell. A general one is two fields: its symmetric part, and a bivector whose name
    ends with ``_antisymmetric``.

    What does not change in time is given, not predicted: static fields such as masks, and the group
    ``scalars``, which holds constants of each trajectory. Scalars that do change are a forcing.
    Files that `cscnn.data.writers` wrote tell grades, units and forcing by attributes.

    Args:
        path: the file.
        fields: names of the fields and scalars to read; by default all.
        grades: for fields that are not what their group says: grade 2 makes an axial vector of
            space, such as a magnetic field, a bivector; the dimension makes a value a pseudoscalar.
            Of tensors: ``"symmetric"``, 2 (antisymmetric) or ``"general"``.
        forcing: names of fields that change in time but are given, such as a heat source.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        fields: Sequence[str] | None = None,
        grades: Mapping[str, int | str] | None = None,
        forcing: Sequence[str] = (),
    ):
        self._wanted = None if fields is None else list(fields)
        self._grades, self._forcing = dict(grades or {}), tuple(forcing)
        super().__init__(path)

    def _describe(self, file: Any) -> None:
        grid_type = str(attribute(file, "grid_type"))
        if grid_type != "cartesian":
            raise ValueError(
                f"grid_type is {grid_type!r}, expected 'cartesian': on curvilinear coordinates a "
                "shift of the grid is no isometry of space, so no convolution is equivariant"
            )
        dim = int(attribute(file, "n_spatial_dims"))
        self._length = int(attribute(file, "n_trajectories"))
        if dim not in (2, 3) or self._length < 1:
            raise ValueError(
                f"expected 2 or 3 n_spatial_dims and at least one of n_trajectories, got {dim} and "
                f"{self._length}"
            )
        axes = texts(attribute(group_of(file, "dimensions"), "spatial_dims"))
        if len(axes) != dim:
            raise ValueError(f"n_spatial_dims is {dim}, but spatial_dims is {axes}")
        frames, frame_spacing, start_time = _times(file["dimensions"])
        grid, spacing = _coordinates(file["dimensions"], axes)
        self._stored = self._fields(file, (self._length, frames, *grid))
        types = [file[s.dataset].dtype for s in self._stored.values() if any(s.by_axis)]
        self.dtype = str(np.result_type(np.float32, *types).newbyteorder("="))
        folder = self.path.resolve().parent.name
        listed = texts(file.attrs.get("simulation_parameters", ()))
        given = [
            name
            for name, s in self._stored.items()
            if not (s.by_time and any(s.by_axis))
            or name.removesuffix(SECOND) in self._forcing
            or name in self._forcing
            or file[s.dataset].attrs.get("given", False)
        ]
        self.header = Header(
            metric=(1,) * dim,
            axes=tuple(axes),
            spacing=spacing,
            boundary=tuple(boundary(file, axis) for axis in axes),
            fields=tuple(
                Field(n, s.grade, units(file[s.dataset]))
                for n, s in self._stored.items()
                if n not in given
            ),
            frames=frames,
            grid=grid,
            frame_spacing=frame_spacing,
            start_time=start_time,
            given=tuple(
                Given(n, s.grade, s.kind, units(file[s.dataset]))
                for n, s in self._stored.items()
                if n in given
            ),
            units=_units_of_axes(file["dimensions"], axes),
            generator=str(attribute(file, "dataset_name")),
            parameters={n: np.asarray(file.attrs[n]).tolist() for n in listed if n in file.attrs},
            split=folder if folder in SPLITS else "",
        )

    def _choose(self, file: Any) -> list[tuple[str, int]]:
        """Dataset and tensor order of the wanted fields."""
        known: dict[str, tuple[str, int]] = {}
        for folder, order in GROUPS.items():
            group = file.get(folder)
            for name in texts(() if group is None else attribute(group, "field_names")):
                if name in known:
                    raise ValueError(f"field {name} is in both {known[name][0]} and {group.name}")
                known[name] = (f"{folder}/{name}", order)
        wanted = list(known) if self._wanted is None else self._wanted
        for name in (*wanted, *self._grades, *self._forcing):
            if name not in known:
                hint = did_you_mean(name, known, otherwise="")
                raise ValueError(f"there is no field {name!r}, only {', '.join(known)}{hint}")
        if not wanted:
            raise ValueError(f"there are no fields to read, only {', '.join(known) or 'nothing'}")
        return [known[name] for name in wanted]

    def _fields(self, file: Any, sizes: tuple[int, ...]) -> dict[str, StoredField]:
        """The wanted fields by name; a general tensor is two."""
        fields: dict[str, StoredField] = {}
        for path, order in self._choose(file):
            stored, name = self._check_field(file, path, order, sizes), path.split("/")[1]
            parts = {name: stored}
            if stored.grade == GENERAL:
                grades: dict[str, int | str] = {name: SYMMETRIC, name + SECOND: 2}
                parts = {n: replace(stored, grade=g, part=True) for n, g in grades.items()}
            for own, part in parts.items():
                if own in fields:
                    raise ValueError(f"{path} and {fields[own].dataset} are both {own}")
                fields[own] = part
        return fields

    def _check_field(self, file: Any, path: str, order: int, sizes: tuple[int, ...]) -> StoredField:
        data, (folder, name) = dataset(file, path), path.split("/")
        dim = len(sizes) - 2
        by_axis = (False,) * dim
        if folder != "scalars":
            by_axis = tuple(bool(b) for b in np.atleast_1d(attribute(data, "dim_varying")))
        if len(by_axis) != dim:
            raise ValueError(f"{data.name}: dim_varying must have {dim} values, got {by_axis}")
        by_sample = bool(attribute(data, "sample_varying"))
        by_time = bool(attribute(data, "time_varying"))
        varying = (by_sample, by_time, *by_axis)
        shape = tuple(n for n, varies in zip(sizes, varying, strict=True) if varies)
        if data.shape != (1,) or any(varying):  # one number may be an array of one
            check_shape(data, shape + (dim,) * order)
        grade = self._grades[name] if name in self._grades else _grade(data, order)
        allowed = {0: (0, dim), 1: (1, dim - 1), 2: (2, SYMMETRIC, GENERAL)}[order]
        if grade not in allowed:
            choices = " or ".join(str(grade) for grade in dict.fromkeys(allowed))
            raise ValueError(f"field {name} ({path}) has grade {choices}, got {grade}")
        return StoredField(path, order, grade, by_sample, by_time, by_axis)

    def __len__(self) -> int:
        return self._length

    def _load_frames(self, number: int, start: int, stop: int) -> Trajectory:
        result = {}
        for name, stored in self._stored.items():
            index = ((number,) if stored.by_sample else ()) + (
                (slice(start, stop),) if stored.by_time else ()
            )
            array = np.asarray(self._load(stored.dataset, number, index, name))
            if stored.kind == "constant" and not stored.order:
                array = array.reshape(())
            missing = [0] if not stored.by_time else []
            missing += [axis for axis, varies in enumerate(stored.by_axis, 1) if not varies]
            array = np.expand_dims(array, missing)
            check_finite(self.path, name, number, start, array)
            shape = self.header.shape(name)
            try:
                values = _components(array, stored, start if stored.by_time else None)
            except ValueError as error:
                raise ValueError(
                    f"{self.path}: trajectory {number}, field {name}: {error}. If it is general, "
                    f"pass grades={{{name!r}: {GENERAL!r}}}"
                ) from error
            if stored.by_time:
                shape = (stop - start, *shape[1:])
            elif stored.kind == "static":
                values = values[0]
            else:
                values = values.reshape(shape)
            dtype = "float64" if stored.kind == "constant" else self.dtype
            result[name] = np.array(np.broadcast_to(values, shape), dtype)
        return result


def _grade(data: Any, order: int) -> int | str:
    """What a file tells of a field; what it does not tell of a tensor, some of its frames do."""
    if order < 2:
        return int(data.attrs.get("grade", order))
    if data.attrs.get("symmetric", False):
        return SYMMETRIC
    if data.attrs.get("antisymmetric", False):
        return 2
    for index in _sample(data):
        tensors = np.asarray(data[index])
        if not np.allclose(tensors, tensors.swapaxes(-1, -2), 0, ROUNDING * np.abs(tensors).max()):
            return GENERAL
    return SYMMETRIC


def _sample(data: Any) -> Iterator[tuple[int, ...]]:
    """Where some frames of some trajectories are: the first, the last, and one between them."""
    axes = [data.attrs[name] for name in ("sample_varying", "time_varying")]
    sizes = data.shape[: sum(map(bool, axes))]
    yield from itertools.product(
        *(sorted({round(i) for i in np.linspace(0, n - 1, LOOKED_AT)}) for n in sizes)
    )


def _components(array: np.ndarray, stored: StoredField, first: int | None) -> np.ndarray:
    """Tensors (..., dim, dim), vectors (..., dim) or values (...), as components of a grade.

    Args:
        array: as it is stored.
        stored: what it is.
        first: number of the first frame, if the first axis is time.
    """
    if stored.order == 0:
        return array[..., None]
    if stored.grade == SYMMETRIC:
        tensors = array.reshape(*array.shape[:-2], -1)
        if not stored.part:
            check_symmetric(tensors, first, ROUNDING)
        return symmetric_part(tensors)
    if stored.order == 2:
        rows, columns = np.triu_indices(array.shape[-1], 1)
        upper, lower = array[..., rows, columns], array[..., columns, rows]
        return (upper - lower) / 2 if stored.part else upper
    if stored.grade == 1:
        return array
    return np.stack([array[..., 2], -array[..., 1], array[..., 0]], -1)  # on e12, e13, e23


def _units_of_axes(dimensions: Any, axes: Sequence[str]) -> dict[str, str]:
    """Units of length and time, as far as they are told."""
    told = {"length": units(dimensions[axes[0]]), "time": units(dimensions["time"])}
    return {name: unit for name, unit in told.items() if unit}


def _times(dimensions: Any) -> tuple[int, float, float]:
    """Number of frames, time between them, and time of the first; 0 if trajectories differ."""
    times = dataset(dimensions, "time")
    rows = np.atleast_2d(times[()])
    start = float(rows[0, 0]) if rows.size and (rows[:, 0] == rows[0, 0]).all() else 0.0
    if rows.shape[-1] == 1:
        return 1, 1.0, start
    steps = [even_step(row, times.name) for row in rows]
    if max(steps) - min(steps) > UNEVEN * max(steps):
        raise ValueError(
            f"dataset {times.name} must have one step for all trajectories, got {min(steps)} to "
            f"{max(steps)}"
        )
    return rows.shape[-1], steps[0], start


def _coordinates(dimensions: Any, axes: Sequence[str]) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Points and their distance along each axis; distances that differ by rounding are one."""
    grid: list[int] = []
    steps: list[float] = []
    for axis in axes:
        points = dataset(dimensions, axis)
        rows = np.atleast_2d(points[()])
        if (
            points.attrs.get("time_varying", False)
            or rows.ndim > 2
            or (rows[1:] != rows[:-1]).any()
        ):
            raise ValueError(
                f"coordinates {points.name} must be one row for all trajectories and times, got "
                f"shape {points.shape}"
            )
        step = even_step(rows[0], points.name)
        grid.append(rows.shape[-1])
        steps.append(next((s for s in steps if abs(s - step) < SAME * step), step))
    return tuple(grid), tuple(steps)


def boundary(file: Any, axis: str) -> str:
    """Boundary of an axis: that of its two ends, open if they differ or nothing is said."""
    low, high = (
        next((condition for condition in PRECEDENCE if condition in conditions), "open")
        for conditions in (set(_conditions(file, axis, end)) for end in (0, -1))
    )
    return low if low == high else "open"


def _conditions(file: Any, axis: str, end: int) -> Iterator[str]:
    """Boundary conditions at one end of an axis; a wall counts only if it covers the whole end."""
    for group in file.get("boundary_conditions", {}).values():
        condition = str(attribute(group, "bc_type")).lower()
        if condition not in PRECEDENCE:
            raise ValueError(
                f"{group.name}: bc_type must be one of {PRECEDENCE}, got {condition!r}"
            )
        dims = texts(attribute(group, "associated_dims"))
        if axis in dims:
            mask = np.asarray(dataset(group, "mask")[()], bool)
            if mask.ndim < len(dims):
                raise ValueError(f"{group.name}/mask has {mask.ndim} axes, expected {len(dims)}")
            side = mask.take(end, mask.ndim - len(dims) + dims.index(axis))
            if side.all() if condition == "wall" else side.any():
                yield condition


def group_of(file: Any, name: str) -> Any:
    """A group of the file, or an error that names it."""
    if name not in file:
        raise ValueError(f"group {name} is missing")
    return file[name]


def attribute(item: Any, name: str) -> Any:
    """An attribute of a file, group or dataset, or an error that names it."""
    if name not in item.attrs:
        raise ValueError(f"{item.name} has no attribute {name}")
    value = item.attrs[name]
    return value.decode() if isinstance(value, bytes) else value


def units(item: Any) -> str:
    """The units of a dataset, which files of this library tell; empty if they are not told."""
    return texts(item.attrs.get("units", ""))[0]


def texts(value: Any) -> list[str]:
    """A list of names, which HDF5 may hold as one string, as bytes, or as an empty array."""
    return [v.decode() if isinstance(v, bytes) else str(v) for v in np.atleast_1d(value)]
