"""Where trajectories come from: what all files of fields have in common, whatever their layout."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

from cscnn._util.optional import require
from cscnn.data.header import Header

#: Fields and given quantities by name, of the shapes that `Header.shape` tells; (frames, *grid,
#: components) for fields.
Trajectory = dict[str, np.ndarray]


class Source(Protocol):
    """Trajectories that can be read: files of any layout, views of them, or arrays in memory."""

    @property
    def header(self) -> Header:
        """What the trajectories are."""

    def __len__(self) -> int: ...

    def read(self, number: int, start: int = 0, stop: int | None = None) -> Trajectory:
        """Frames of a trajectory, field name -> (frames, *grid, components), and what is given."""


class FieldSource(ABC):
    """Trajectories in files, open for reading in any number of processes.

    Attributes:
        path: of the file, or what stands for several.
        header: what the trajectories are.
        dtype: of the numbers that are read.
        staggering: how points and times of different components are shifted; empty if not.
    """

    path: Path
    header: Header
    dtype: str
    staggering: str = ""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def _load_frames(self, number: int, start: int, stop: int) -> Trajectory:
        """Frames that exist."""

    def read(self, number: int, start: int = 0, stop: int | None = None) -> Trajectory:
        """Frames from start to stop of the trajectory at a position in the source."""
        return self._load_frames(number, *check_range(self, self.path, number, start, stop))

    def read_quantity(
        self, name: str, number: int, start: int = 0, stop: int | None = None
    ) -> np.ndarray:
        """What `read` has under a name, without reading the other quantities if that is possible.

        Args:
            name: of a field, or of what is given.
            number: position of the trajectory in the source.
            start, stop: frames; what does not depend on time is read whole.
        """
        start, stop = check_range(self, self.path, number, start, stop)
        return self._load_quantity(self.header.quantity(name).name, number, start, stop)

    def _load_quantity(self, name: str, number: int, start: int, stop: int) -> np.ndarray:
        """Frames that exist of one quantity."""
        return self._load_frames(number, start, stop)[name]

    def place(self, number: int) -> Trajectory:
        """Where the points of a trajectory are: ``positions`` (points, dim), maybe ``weights``.

        Nothing for data on a grid.
        """
        return {}

    @property
    def sizes(self) -> tuple[int, ...]:
        """Points of each trajectory; nothing for data on a grid."""
        return ()

    @property
    def indices(self) -> Sequence[int]:
        """Numbers of the trajectories within their split; here their places in the source."""
        return range(len(self))

    def to_xarray(self, trajectories: Sequence[int] | None = None) -> Any:
        """The trajectories as an ``xarray.Dataset``. Needs ``cscnn[xarray]``.

        Variables are the fields, what is given, and backgrounds. They have the dimensions
        ``trajectory``, ``time``, those of space, and ``component0``, ``component1``, ... for the
        components of each grade, whose coordinates are names of blades. Numbers are read from the
        file when they are used, so it must stay.

        On points, those of all trajectories follow each other along ``point``; the coordinates
        ``x``, ``y``, ... and ``trajectory_of_point`` say where they are. All numbers are read.

        Args:
            trajectories: places in the source; by default all.

        Example::

            data = open_fields("train.h5").to_xarray()
            data.velocity.sel(component1="e1").isel(trajectory=0, time=-1).plot()
        """
        from cscnn.data.labelled import labelled

        return labelled(self, trajectories)

    def locate(self, number: int) -> tuple[FieldSource, int]:
        """The file of a trajectory, and its number there."""
        return self, number

    @property
    def files(self) -> Sequence[FieldSource]:
        """The files, one by one."""
        return (self,)

    @abstractmethod
    def close(self) -> None:
        """Close what this process has opened; reading opens it again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class HDF5Source(FieldSource):
    """Trajectories in one HDF5 file.

    A subclass for a layout defines `_describe`, `__len__` and `_load_frames`. Each process opens
    the file by itself when it first reads, so a source can be pickled and survives a fork.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._file: Any = None
        self._pid = 0
        file = self._open()
        try:
            self._describe(file)
        except (KeyError, ValueError, TypeError, AttributeError, OSError) as error:
            self.close()
            raise ValueError(f"{self.path}: {message(error)}") from error

    @abstractmethod
    def _describe(self, file: Any) -> None:
        """Set header, dtype and staggering, or raise an error, which is told with the path."""

    def _open(self) -> Any:
        """The handle of this process."""
        if self._file is None or self._pid != os.getpid():
            self._file = open_hdf5(self.path)
            self._pid = os.getpid()
            self._datasets: dict[str, Any] = {}
        return self._file

    def _load(self, name: str, number: int, index: Any, field: str) -> np.ndarray:
        """Part of a dataset; an error names the field and the trajectory that it was for."""
        file = self._open()
        try:
            if name not in self._datasets:
                self._datasets[name] = file[name]
            return self._datasets[name][index]
        except (KeyError, OSError) as error:
            raise OSError(
                f"{self.path}: cannot read field {field} of trajectory {number}: {message(error)}"
            ) from error

    def close(self) -> None:
        if self._file is not None and self._pid == os.getpid():
            self._file.close()
        self._file = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_file": None, "_pid": 0, "_datasets": {}}


def check_range(
    source: Source, path: Path, number: int, start: int, stop: int | None
) -> tuple[int, int]:
    """First and last frame to read, or an error if there is no such trajectory or frame."""
    if not 0 <= number < len(source):
        raise IndexError(f"{path} has {len(source)} trajectories, got {number}")
    frames = source.header.frames
    stop = frames if stop is None else stop
    if not 0 <= start < stop <= frames:
        raise IndexError(f"{path} has frames 0 to {frames}, got {start} to {stop}")
    return start, stop


def hdf5() -> Any:
    """The package h5py, or an error that says what to install."""
    return require("h5py", "reading and writing data", "data")


def open_hdf5(path: Path) -> Any:
    """An HDF5 file for reading, or an error that names it."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, expected a file: name one of those in it")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    if not os.access(path, os.R_OK):
        raise PermissionError(f"there is no right to read {path}")
    if not path.stat().st_size:
        raise ValueError(f"{path} is an empty file, expected one of HDF5")
    try:
        file = hdf5().File(path, "r")
    except OSError as error:
        defect = "is truncated" if "truncated" in str(error) else "is no HDF5 file or is damaged"
        raise ValueError(f"{path} {defect}: {message(error)}") from error
    if (elsewhere := _data_elsewhere(file)) is not None:
        file.close()
        raise ValueError(f"{path}: {elsewhere}")
    return file


def _data_elsewhere(file: Any) -> str | None:
    """What of an HDF5 file is in other files, if anything.

    The file of a stranger could name any file of its reader, and a copy of it would lack its data.
    """
    h5py = hdf5()

    def look(name: str, link: Any) -> str | None:
        if isinstance(link, h5py.ExternalLink):
            return f"{name} is a link to another file, {link.filename}: copy its data"
        item = file[name] if isinstance(link, h5py.HardLink) else None
        if isinstance(item, h5py.Dataset) and (item.is_virtual or item.external):
            return f"the data of {name} are in other files: copy them into this one"
        return None

    found: str | None = file.visititems_links(look)
    return found


def message(error: BaseException) -> str:
    """The message of an error without the quotes of a KeyError."""
    return str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
