"""Trajectories as an ``xarray.Dataset``, with names and coordinates of all axes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from cscnn._util.optional import require
from cscnn.data.dimensions import component_name, coordinates, dimensions, space_names
from cscnn.data.fields import Given
from cscnn.data.header import Header
from cscnn.data.source import FieldSource


def labelled(source: FieldSource, trajectories: Sequence[int] | None = None) -> Any:
    """The trajectories of a source as an ``xarray.Dataset``, see `FieldSource.to_xarray`."""
    xarray = require("xarray", "to_xarray", "xarray")
    header = source.header
    numbers = list(range(len(source)) if trajectories is None else trajectories)
    known = coordinates(header, [source.indices[number] for number in numbers])
    _check_names(header, [*known, "point"])
    read = _lazy if header.cloud is None else _joined
    variables = {}
    for quantity in header.quantities:
        kind = quantity.kind if isinstance(quantity, Given) else "field"
        attributes = {"grade": quantity.grade, "kind": kind, "units": quantity.units}
        values = read(source, numbers, quantity.name)
        variables[quantity.name] = (dimensions(header, quantity.name), values, attributes)
    for background in header.backgrounds:
        axes = (component_name(background.grade),)
        attributes = {"grade": background.grade, "kind": "background"}
        variables[background.name] = (axes, np.array(background.components), attributes)
    labels: dict[str, Any] = {
        name: (name, c.values, {"units": c.units} if c.units else {})
        for name, c in known.items()
        if name != "axis"
    }
    if header.cloud is not None:
        labels |= _place(source, numbers)
    return xarray.Dataset(variables, labels, _attributes(header))


def _check_names(header: Header, axes: Sequence[str]) -> None:
    """Raise if two variables, or a variable and an axis, have one name."""
    place = space_names(header) if header.cloud is not None else ()
    taken = {*axes, *place, "weights", "trajectory_of_point"}
    for quantity in (*header.quantities, *header.backgrounds):
        if quantity.name in taken:
            raise ValueError(
                f"{quantity.name!r} is the name of two things, of which one may be an axis: xarray "
                "needs different names"
            )
        taken.add(quantity.name)


def _attributes(header: Header) -> dict[str, Any]:
    """The header, as far as axes and variables do not tell it, in forms that netCDF can hold."""
    told = header.to_dict()
    names = ("metric", "spacing", "boundary", "frame_spacing", "generator", "generator_version",
             "seed", "split")  # fmt: skip
    texts = {name: json.dumps(told[name], sort_keys=True) for name in ("units", "parameters")}
    found = {name: told[name] for name in names if told[name] not in ("", [])} | texts
    return found if told["cloud"] is None else {**found, "cloud": json.dumps(told["cloud"])}


def _place(source: FieldSource, numbers: Sequence[int]) -> dict[str, Any]:
    """Positions, weights and trajectories of points."""
    header = source.header
    places = [source.place(number) for number in numbers]
    positions = np.concatenate([place["positions"] for place in places])
    units = {"units": header.units["length"]} if "length" in header.units else {}
    found: dict[str, Any] = {
        name: ("point", positions[:, axis], units) for axis, name in enumerate(space_names(header))
    }
    indices = [source.indices[number] for number in numbers]
    sizes = [len(place["positions"]) for place in places]
    found["trajectory_of_point"] = ("point", np.repeat(np.asarray(indices, np.int64), sizes))
    if "weights" in header.place:
        found["weights"] = ("point", np.concatenate([place["weights"] for place in places]))
    return found


def _joined(source: FieldSource, numbers: Sequence[int], name: str) -> np.ndarray:
    """An array on the points of all trajectories."""
    time, space = source.header.axes_of(name)
    arrays = [source.read_quantity(name, number) for number in numbers]
    return np.concatenate(arrays, axis=int(time)) if space else np.stack(arrays)


def _lazy(source: FieldSource, numbers: Sequence[int], name: str) -> Any:
    """An array (trajectory, ...) of a grid, of which frames are read when they are used."""
    backends = require("xarray.backends", "to_xarray", "xarray")
    indexing = require("xarray.core.indexing", "to_xarray", "xarray")
    header = source.header
    by_time = header.axes_of(name)[0]
    stored = np.float64 if not any(header.axes_of(name)) else np.dtype(source.dtype)

    class Frames(backends.BackendArray):  # type: ignore[name-defined]
        """What xarray asks for indices."""

        shape = (len(numbers), *header.shape(name))
        dtype = np.dtype(stored)

        def __getitem__(self, key: Any) -> Any:
            support = indexing.IndexingSupport.BASIC
            return indexing.explicit_indexing_adapter(key, self.shape, support, self._values)

        def _values(self, key: tuple[Any, ...]) -> np.ndarray:
            empty: np.ndarray = np.broadcast_to(np.zeros((), self.dtype), self.shape)[key]
            if not empty.size:
                return empty.copy()
            which, *rest = key
            if not isinstance(which, slice):
                return self._read(numbers[int(which)], rest)
            return np.stack([self._read(number, rest) for number in numbers[which]])

        def _read(self, number: int, key: list[Any]) -> np.ndarray:
            if not by_time:
                return source.read_quantity(name, number, 0, 1)[tuple(key)]
            first, *rest = key
            if not isinstance(first, slice):
                frame = int(first)
                return source.read_quantity(name, number, frame, frame + 1)[(0, *rest)]
            frames = range(header.frames)[first]
            start = min(frames)
            block = source.read_quantity(name, number, start, max(frames) + 1)
            return block[([frame - start for frame in frames], *rest)]

    return indexing.LazilyIndexedArray(Frames())
