"""Where the numbers of a trajectory are in a file: on a grid, or on points.

On a grid all trajectories have one size, and a dataset has an axis of trajectories. On points they
have their own sizes, and the points of all trajectories follow each other along one axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, ClassVar, Protocol

import numpy as np

from cscnn.data.fields import Given, grade_folder
from cscnn.data.header import Header
from cscnn.data.source import Trajectory

CHUNK = 1024  #: points that are stored together
SIZES = "points"  #: the dataset with the points of each trajectory


def dataset_name(header: Header, name: str) -> str:
    """The dataset of an array, e.g. ``grade1/velocity``, ``static/grade0/mask``, ``positions``."""
    if name in header.place:
        return name
    quantity = header.quantity(name)
    folder = f"{quantity.kind}/" if isinstance(quantity, Given) else ""
    return f"{folder}{grade_folder(quantity.grade)}/{name}"


class Layout(Protocol):
    """How arrays are stored."""

    version: ClassVar[int]  #: of the format of files

    def dataset(self, name: str) -> dict[str, Any]:
        """Shape and chunks of an empty dataset, as h5py takes them."""

    def shape(self, name: str) -> tuple[int, ...]:
        """Of the full dataset."""

    def store(self, datasets: dict[str, Any], number: int, arrays: Trajectory) -> None:
        """Write a trajectory; they come in order."""

    def where(self, name: str, number: int, start: int, stop: int) -> Any:
        """The index of frames of a trajectory."""

    def finish(self, file: Any) -> None:
        """Write what is known after the last trajectory."""


class GridLayout:
    """(trajectory, time, *space, components).

    Args:
        header: of the data.
        count: trajectories.
    """

    version: ClassVar[int] = 1

    def __init__(self, header: Header, count: int):
        self.header, self.count = header, count

    def dataset(self, name: str) -> dict[str, Any]:
        shape, (time, space) = self.header.shape(name), self.header.axes_of(name)
        # one frame is one chunk: a window of frames touches nothing else
        chunks = ((1, 1, *shape[1:]) if time else (1, *shape)) if space else None
        return {"shape": (self.count, *shape), "chunks": chunks}

    def shape(self, name: str) -> tuple[int, ...]:
        return (self.count, *self.header.shape(name))

    def store(self, datasets: dict[str, Any], number: int, arrays: Trajectory) -> None:
        for name, array in arrays.items():
            datasets[name][number] = array

    def where(self, name: str, number: int, start: int, stop: int) -> Any:
        time, _ = self.header.axes_of(name)
        return np.s_[number, start:stop] if time else np.s_[number]

    def finish(self, file: Any) -> None:
        """Nothing is left to write."""


class PointLayout:
    """(time, points of all trajectories, components); positions (points of all, dim).

    Args:
        header: of the data.
        count: trajectories.
        sizes: points of each, as far as they are known.
    """

    version: ClassVar[int] = 2

    def __init__(self, header: Header, count: int, sizes: Sequence[int] = ()):
        self.header, self.count = header, count
        self.sizes = [int(size) for size in sizes]
        self.ends = [0, *accumulate(self.sizes)]

    def _axes(self, name: str) -> tuple[bool, bool]:
        return (False, True) if name in self.header.place else self.header.axes_of(name)

    def dataset(self, name: str) -> dict[str, Any]:
        time, space = self._axes(name)
        if not space:
            return {"shape": (self.count, *self.header.shape(name)), "chunks": None}
        longest: list[int | None] = [*self.header.shape(name)]
        longest[int(time)] = None
        chunks = (1, *self.header.shape(name, CHUNK)[1:]) if time else None
        return {
            "shape": self.header.shape(name, 0),
            "maxshape": tuple(longest),
            "chunks": chunks or self.header.shape(name, CHUNK),
        }

    def shape(self, name: str) -> tuple[int, ...]:
        if not self._axes(name)[1]:
            return (self.count, *self.header.shape(name))
        return self.header.shape(name, self.ends[-1])

    def store(self, datasets: dict[str, Any], number: int, arrays: Trajectory) -> None:
        self.sizes.append(len(arrays["positions"]))
        self.ends.append(self.ends[-1] + self.sizes[-1])
        for name, array in arrays.items():
            time, space = self._axes(name)
            if space:
                datasets[name].resize(self.ends[-1], axis=int(time))
            datasets[name][self.where(name, number, 0, self.header.frames)] = array

    def where(self, name: str, number: int, start: int, stop: int) -> Any:
        time, space = self._axes(name)
        if not space:
            return np.s_[number]
        points = slice(self.ends[number], self.ends[number + 1])
        return np.s_[start:stop, points] if time else np.s_[points]

    def finish(self, file: Any) -> None:
        file.create_dataset(SIZES, data=np.asarray(self.sizes, np.int64))


def new_layout(header: Header, count: int) -> Layout:
    """That of a file to write."""
    return GridLayout(header, count) if header.cloud is None else PointLayout(header, count)


def stored_layout(header: Header, count: int, file: Any) -> Layout:
    """That of a file to read."""
    if header.cloud is None:
        return GridLayout(header, count)
    sizes = file[SIZES][:]
    if sizes.shape != (count,) or sizes.dtype.kind != "i" or min(sizes) < 1:
        raise ValueError(
            f"{SIZES} must have a positive number for each of {count} trajectories, got "
            f"{sizes.tolist()[:5]}"
        )
    return PointLayout(header, count, sizes)
