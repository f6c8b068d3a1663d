"""One self-describing HDF5 file for each split: how it is written and read.

docs/guides/data_format.md describes the layout. A file is written under another name and renamed
when it is complete, so a file that has its name is whole.
"""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from cscnn._util.checks import check_choice, check_int, check_type
from cscnn._util.files import replacing
from cscnn._util.resources import check_disk
from cscnn.data.attributes import read_header, write_header
from cscnn.data.dimensions import label_axes
from cscnn.data.fields import grade_folder, grade_text
from cscnn.data.header import Header
from cscnn.data.layouts import Layout, PointLayout, dataset_name, new_layout, stored_layout
from cscnn.data.source import HDF5Source, Trajectory, check_range, hdf5
from cscnn.data.trajectories import (
    ROUNDING,
    as_arrays,
    check_names,
    check_trajectory,
    symmetric_parts,
)

FORMAT = "cscnn fields"
FORMAT_VERSIONS = (1, 2)  #: on a grid, on points
COMPRESSIONS = ("none", "lzf", "gzip")
DTYPES = ("float32", "float64")

Progress = Callable[[str, int, int], None]  #: what is being done, how many are done, of how many


def silent(label: str, done: int, total: int) -> None:
    """Progress that nobody wants to hear of."""


def checksum(trajectory: Trajectory) -> np.ndarray:
    """16 bytes (uint8) that depend on every bit of a trajectory."""
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(trajectory):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(trajectory[name]).data)
    return np.frombuffer(digest.digest(), np.uint8)


def header_checksum(header: Header, indices: Sequence[int]) -> str:
    """Hexadecimal digits that depend on all of a header and on the indices of trajectories."""
    told = header.to_dict()
    for name in (
        "given",
        "cloud",
        "start_time",
    ):  # files without them were written before they existed
        if not told[name]:
            del told[name]
    text = json.dumps([told, [int(i) for i in indices]], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def stored_type(header: Header, name: str, dtype: str) -> str:
    """Of the numbers of an array: that of the file, but float64 for constants and positions."""
    return dtype if name not in header.place and any(header.axes_of(name)) else "float64"


def write(
    path: str | Path,
    header: Header,
    trajectories: Iterable[Trajectory],
    indices: Sequence[int],
    *,
    dtype: str = "float32",
    compression: str = "none",
) -> None:
    """Write a file whole or not at all, one trajectory in memory at a time.

    Args:
        path: the file to write.
        header: the description of the data.
        trajectories: one for each index, in this order: name -> array, see `Header.shape`; on
            points with ``positions``, and ``weights`` if the header has them.
        indices: numbers of the trajectories within their split.
        dtype: of the stored numbers, float32 or float64.
        compression: none, lzf (fast) or gzip (small).
    """
    check_choice("dtype", dtype, DTYPES)
    check_choice("compression", compression, COMPRESSIONS)
    check_type("header", header, Header)
    path, indices = Path(path), _numbers(indices)
    if isinstance(trajectories, Mapping):
        raise TypeError("trajectories must be a list of mappings name -> array, got one mapping")
    if not len(indices):
        raise ValueError(f"there are no trajectories to write into {path}")
    if compression == "none":
        check_disk(path.parent, len(indices) * trajectory_bytes(header, dtype), str(path))
    with replacing(path) as temporary, _new_file(temporary) as file:
        with _disk_errors():
            layout = new_layout(header, len(indices))
            datasets = _create(file, header, indices, dtype, compression, layout)
        _fill(file, header, trajectories, indices, dtype, datasets, layout)


@contextmanager
def _new_file(path: Path) -> Iterator[Any]:
    """An HDF5 file to write. If the writer fails, his error counts, not that of closing it."""
    with _disk_errors():
        file = hdf5().File(path, "w")
    try:
        yield file
    except BaseException:
        with suppress(OSError, RuntimeError):
            file.close()
        raise
    with _disk_errors():
        file.close()


@contextmanager
def _disk_errors() -> Iterator[None]:
    """A full disk, which h5py may report as RuntimeError, is an OSError."""
    try:
        yield
    except RuntimeError as error:
        raise OSError(errno.EIO, f"is the disk full? {error}") from error


def _numbers(indices: Sequence[int]) -> list[int]:
    """Indices of trajectories as integers, or an error that shows them."""
    if isinstance(indices, str) or not hasattr(indices, "__len__"):
        raise TypeError(f"indices must list the number of each trajectory, got {indices!r}")
    return [check_int("an index of a trajectory", index, low=0) for index in indices]


def trajectory_bytes(header: Header, dtype: str) -> int:
    """Size of one trajectory in a file without compression; on points, of a single point."""
    numbers = sum(int(np.prod(header.shape(q.name))) for q in header.quantities)
    return numbers * np.dtype(dtype).itemsize


def _create(
    file: Any,
    header: Header,
    indices: Sequence[int],
    dtype: str,
    compression: str,
    layout: Layout,
) -> dict[str, Any]:
    """Everything but the numbers of a file; name of an array -> dataset."""
    file.attrs["format"] = FORMAT
    file.attrs["format_version"] = layout.version
    write_header(file, header)
    file.create_dataset("index", data=np.asarray(indices, np.int64))
    file.create_dataset("checksum", (len(indices), 16), np.uint8)
    for background in header.backgrounds:
        name = f"backgrounds/{grade_folder(background.grade)}/{background.name}"
        file.create_dataset(name, data=np.asarray(background.components, np.float64))
    options: dict[str, Any] = {}
    if compression != "none":
        options = {"compression": compression, "shuffle": True}
    datasets = {}
    for name in (*header.place, *(q.name for q in header.quantities)):
        stored = layout.dataset(name)
        datasets[name] = file.create_dataset(
            dataset_name(header, name),
            dtype=stored_type(header, name, dtype),
            **stored,
            **(options if stored["chunks"] else {}),
        )
    for field in header.quantities:
        datasets[field.name].attrs["components"] = list(header.components(field.grade))
        datasets[field.name].attrs["units"] = field.units
    file.attrs["header_checksum"] = header_checksum(read_header(file), indices)
    return datasets


def _fill(
    file: Any,
    header: Header,
    trajectories: Iterable[Trajectory],
    indices: Sequence[int],
    dtype: str,
    datasets: dict[str, Any],
    layout: Layout,
) -> None:
    """The numbers of a file; errors of the iterator of trajectories are not changed."""
    count = 0
    for trajectory in trajectories:
        if count == len(indices):
            raise ValueError(f"expected {count} trajectories, one for each index, got more")
        index = indices[count]
        arrays = as_arrays(trajectory, index)
        check_names(header, arrays, index)
        stored = {
            name: np.ascontiguousarray(a, stored_type(header, name, dtype))
            for name, a in arrays.items()
        }
        check_trajectory(header, stored, index, rounding=ROUNDING)
        stored |= symmetric_parts(header, stored)
        with _disk_errors():
            layout.store(datasets, count, stored)
            file["checksum"][count] = checksum(stored)
        count += 1
    if count != len(indices):
        raise ValueError(f"expected {len(indices)} trajectories, got {count}")
    with _disk_errors():
        layout.finish(file)
        label_axes(file, header, indices, datasets)


class FieldFile(HDF5Source):
    """A file of trajectories in the format of this library.

    Attributes:
        path: the file.
        header: what it holds.
        indices: numbers of its trajectories within their split.
        dtype: of the stored numbers.
        compression: of the stored numbers.
        staggering: how points of different components are shifted; here never.

    Example:
        >>> FieldFile("nothing.h5")
        Traceback (most recent call last):
        FileNotFoundError: there is no file nothing.h5
    """

    def _describe(self, file: Any) -> None:
        version = file.attrs.get("format_version")
        if file.attrs.get("format") != FORMAT:
            raise ValueError("this is not a file of cscnn: it has no attribute format")
        if version not in FORMAT_VERSIONS:
            known = " and ".join(map(str, FORMAT_VERSIONS))
            raise ValueError(f"this has format version {version}, this cscnn reads {known}")
        self.header: Header = read_header(file)
        self._indices: tuple[int, ...] = tuple(int(i) for i in file["index"][:])
        if not self._indices:
            raise ValueError("it holds no trajectories")
        self._layout = stored_layout(self.header, len(self._indices), file)
        first = file[dataset_name(self.header, self.header.fields[0].name)]
        self.dtype = str(first.dtype)
        self.compression = first.compression or "none"
        self._check_datasets(file)

    def _check_datasets(self, file: Any) -> None:
        """Raise unless shapes, components and numbers are those that the header tells."""
        check_choice("the type of numbers", self.dtype, DTYPES)
        for name in (*self.header.place, *(q.name for q in self.header.quantities)):
            shape, dtype = self._layout.shape(name), stored_type(self.header, name, self.dtype)
            stored = file[dataset_name(self.header, name)]
            if stored.shape != shape:
                raise ValueError(f"field {name} has shape {stored.shape}, expected {shape}")
            if str(stored.dtype) != dtype:
                raise ValueError(f"field {name} holds {stored.dtype}, expected {dtype}")
        for field in self.header.quantities:
            stored = file[dataset_name(self.header, field.name)]
            components = [str(name) for name in stored.attrs.get("components", ())]
            if components != (names := list(self.header.components(field.grade))):
                raise ValueError(
                    f"field {field.name} has components {components}, but "
                    f"{grade_text(field.grade)} of metric {self.header.metric} has {names}"
                )
        if file["checksum"].shape != (len(self.indices), 16):
            raise ValueError(f"checksum has shape {file['checksum'].shape}")

    def __len__(self) -> int:
        return len(self._indices)

    @property
    def indices(self) -> tuple[int, ...]:
        return self._indices

    def _load_frames(self, number: int, start: int, stop: int) -> Trajectory:
        return {
            q.name: self._load_quantity(q.name, number, start, stop) for q in self.header.quantities
        }

    def _load_quantity(self, name: str, number: int, start: int, stop: int) -> np.ndarray:
        where = self._layout.where(name, number, start, stop)
        return self._load(dataset_name(self.header, name), number, where, name)

    def place(self, number: int) -> Trajectory:
        check_range(self, self.path, number, 0, None)
        return {name: self._load_quantity(name, number, 0, 1) for name in self.header.place}

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(self._layout.sizes) if isinstance(self._layout, PointLayout) else ()

    def everything(self, number: int) -> Trajectory:
        """All arrays of a trajectory, those that say where its points are too."""
        return {**self.place(number), **self.read(number)}

    def checksum(self, number: int) -> np.ndarray:
        """The stored checksum of a trajectory."""
        return self._open()["checksum"][number]

    def checksums(self) -> np.ndarray:
        """Those of all trajectories, (trajectories, 16)."""
        return self._open()["checksum"][:]

    def header_checksum(self) -> str | None:
        """The stored checksum of the header; None in a file that has none."""
        stored = self._open().attrs.get("header_checksum")
        return None if stored is None else str(stored)


def find_damage(path: Path, progress: Progress = silent) -> Iterator[str]:
    """Read every number and compare checksums: one message per defect, none for a good file."""
    try:
        file = FieldFile(path)
    except (OSError, ValueError) as error:
        yield str(error)
        return
    with file:
        if len(set(file.indices)) < len(file):
            yield f"{path}: an index is there more than once"
        told = file.header_checksum()
        if told is None:
            yield f"{path}: header_checksum is missing: an older cscnn wrote it; make it again"
        elif told != header_checksum(file.header, file.indices):
            yield f"{path}: attributes, units or indices were changed: their checksum is another"
        for number, index in enumerate(file.indices):
            progress(path.name, number, len(file))
            try:
                trajectory = file.everything(number)
                check_trajectory(file.header, trajectory, index)
            except (OSError, ValueError) as error:
                yield f"{path}: {error}"
                continue
            if not np.array_equal(checksum(trajectory), file.checksum(number)):
                yield f"{path}: trajectory {index} is damaged: its checksum is not the stored one"
        progress(path.name, len(file), len(file))
