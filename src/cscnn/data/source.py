"""Where trajectories come from: what all files of fields have in common, whatever their layout."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from cscnn.data.backend import h5py
from cscnn.data.header import Header

Trajectory = dict[str, np.ndarray]  #: field name -> (frames, *grid, components)
Source = TypeVar("Source", bound="FieldSource")


class FieldSource(ABC):
    """Trajectories in an HDF5 file, open for reading in any number of processes.

    A kind of file defines `_describe`, `__len__` and `_window`. Each process opens the file by
    itself when it first reads, so a source can be pickled and survives a fork.

    Attributes:
        path: the file.
        header: what it holds.
        dtype: of the numbers that are read.
        staggering: how points and times of different components are shifted; empty if not.
    """

    header: Header
    dtype: str
    staggering: str = ""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._file: Any = None
        self._pid = 0
        file = self._open()
        try:
            self._describe(file)
        except (KeyError, ValueError, TypeError, AttributeError, OSError) as error:
            self.close()
            raise ValueError(f"{self.path}: {plain(error)}") from error

    @abstractmethod
    def _describe(self, file: Any) -> None:
        """Set header, dtype and staggering, or raise an error, which is told with the path."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def _window(self, number: int, start: int, stop: int) -> Trajectory:
        """Frames that exist."""

    def read(self, number: int, start: int = 0, stop: int | None = None) -> Trajectory:
        """Frames from start to stop of the trajectory at a position in the file."""
        if not 0 <= number < len(self):
            raise IndexError(f"{self.path} has {len(self)} trajectories, got {number}")
        stop = self.header.frames if stop is None else stop
        if not 0 <= start < stop <= self.header.frames:
            raise IndexError(
                f"{self.path} has frames 0 to {self.header.frames}, got {start} to {stop}"
            )
        return self._window(number, start, stop)

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
                f"{self.path}: cannot read field {field} of trajectory {number}: {plain(error)}"
            ) from error

    def close(self) -> None:
        """Close the handle of this process."""
        if self._file is not None and self._pid == os.getpid():
            self._file.close()
        self._file = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_file": None, "_pid": 0, "_datasets": {}}

    def __enter__(self: Source) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_hdf5(path: Path) -> Any:
    """An HDF5 file for reading, or an error that names it."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        return h5py().File(path, "r")
    except OSError as error:
        kind = "is truncated" if "truncated" in str(error) else "is no HDF5 file or is damaged"
        raise ValueError(f"{path} {kind}: {plain(error)}") from error


def plain(error: BaseException) -> str:
    """The message of an error without the quotes of a KeyError."""
    return str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
