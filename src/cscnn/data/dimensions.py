"""Names and coordinates of the axes of stored arrays, and how HDF5 files tell them.

Datasets have dimension scales, as netCDF has them. So other programs know which axis is which:
``xarray.open_datatree(file, engine="h5netcdf")``. Readers of this library need none of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cscnn.data.fields import grade_folder
from cscnn.data.header import Header
from cscnn.data.source import hdf5

#: Names that are taken in files, or by other axes.
TAKEN = re.compile(
    "trajectory|time|point|points|positions|weights|byte|index|checksum|static|forcing|constant|"
    r"backgrounds|symmetric|component_symmetric|(axis|component|grade)\d*"
)
#: How netCDF marks a dimension whose scale holds no coordinates.
NO_VALUES = "This is a netCDF dimension but not a netCDF variable."


@dataclass(frozen=True)
class Coordinate:
    """Values along an axis: times, positions, or names of components."""

    values: np.ndarray
    units: str = ""


def time_name(header: Header) -> str:
    """The name of the axis of frames."""
    return "time" if header.time_axis is None else _axis_names(header)[0]


def space_names(header: Header) -> tuple[str, ...]:
    """The names of the axes of space: of the grid, or of positions."""
    names = _axis_names(header)
    return names if header.time_axis is None else names[1:]


def _axis_names(header: Header) -> tuple[str, ...]:
    """Those of the header; another one where a name is taken, or would be no name elsewhere."""
    first = 0 if header.time_axis is None else 1
    return tuple(
        name
        if name.isidentifier() and (number < first or not TAKEN.fullmatch(name))
        else f"axis{number}"
        for number, name in enumerate(header.axes)
    )


def component_name(grade: int | str) -> str:
    """The name of the axis of components of a grade."""
    return f"component_{grade}" if isinstance(grade, str) else f"component{grade}"


def dimensions(header: Header, name: str) -> tuple[str, ...]:
    """The axes of a stored array, e.g. ``("trajectory", "time", "x", "y", "component1")``.

    On points, the points of all trajectories follow each other along the axis ``point``.
    """
    if name in header.place:
        return ("point", "axis") if name == "positions" else ("point",)
    time, space = header.axes_of(name)
    frames = (time_name(header),) if time else ()
    components = component_name(header.grade(name))
    if header.cloud is None:
        return ("trajectory", *frames, *(space_names(header) if space else ()), components)
    return (*frames, *(("point",) if space else ("trajectory",)), components)


def frame_times(header: Header) -> np.ndarray:
    """The time of each frame; lengths c t if time is an axis of the grid."""
    step = header.frame_spacing if header.time_axis is None else header.spacing[header.time_axis]
    return step * (header.start_time / header.frame_spacing + np.arange(header.frames))


def coordinates(header: Header, indices: Sequence[int]) -> dict[str, Coordinate]:
    """The coordinates of the axes, by name; of points, the names of the axes of space.

    Times begin at the header's ``start_time``. Points of a grid are centres of cells: the first is
    half a spacing from the border, as in pictures, so that coarse and fine grids fit together.
    """
    length, time = header.units.get("length", ""), header.units.get("time", "")
    found = {"trajectory": Coordinate(np.asarray(indices, np.int64))}
    if header.time_axis is None:
        found["time"] = Coordinate(frame_times(header), time)
    sizes = header.grid if header.time_axis is None else (header.frames, *header.grid)
    if header.cloud is None:
        for name, size, step in zip(_axis_names(header), sizes, header.spacing, strict=True):
            found[name] = Coordinate(step * (np.arange(size) + 0.5), length)
        if header.time_axis is not None:
            found[time_name(header)] = Coordinate(frame_times(header), length)
    else:
        found["axis"] = Coordinate(np.array(space_names(header)))
    for grade in sorted({q.grade for q in (*header.quantities, *header.backgrounds)}, key=str):
        found[component_name(grade)] = Coordinate(np.array(header.components(grade)))
    return found


def label_axes(file: Any, header: Header, indices: Sequence[int], datasets: dict[str, Any]) -> None:
    """Give all datasets of a finished HDF5 file names and coordinates of their axes.

    Args:
        file: open for writing.
        header: of the data.
        indices: of the trajectories.
        datasets: those of the arrays, by name.
    """
    scales = {}
    for name, coordinate in coordinates(header, indices).items():
        data = coordinate.values
        if data.dtype.kind == "U":
            data = data.astype(hdf5().string_dtype())
        scales[name] = file.create_dataset(name, data=data)
        scales[name].make_scale(name)
        if coordinate.units:
            scales[name].attrs["units"] = coordinate.units
    sizes = {"byte": 16}
    if header.cloud is not None:
        sizes["point"] = len(datasets["positions"])
    for name, size in sizes.items():
        scales[name] = file.create_dataset(name, (size,), "u1")
        scales[name].make_scale(f"{NO_VALUES}{size:10d}")
    for dataset, axes in _all_axes(file, header, datasets):
        for number, axis in enumerate(axes):
            dataset.dims[number].attach_scale(scales[axis])


def _all_axes(
    file: Any, header: Header, datasets: dict[str, Any]
) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Every dataset that is no scale, and its axes."""
    for name, dataset in datasets.items():
        yield dataset, dimensions(header, name)
    yield file["index"], ("trajectory",)
    yield file["checksum"], ("trajectory", "byte")
    if "points" in file:
        yield file["points"], ("trajectory",)
    for background in header.backgrounds:
        stored = file[f"backgrounds/{grade_folder(background.grade)}/{background.name}"]
        yield stored, (component_name(background.grade),)
