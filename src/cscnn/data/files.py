"""One self-describing HDF5 file for each split: how it is written and read.

docs/data_format.md describes the layout. A file is written under another name and renamed when it
is complete, so a file that has its name is whole.
"""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from cscnn._util.checks import check_choice
from cscnn._util.files import replacing
from cscnn._util.resources import check_disk
from cscnn.data.header import Header
from cscnn.data.source import FieldSource, Trajectory, hdf5

FORMAT = "cscnn fields"
FORMAT_VERSION = 1
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
    text = json.dumps([header.to_dict(), [int(i) for i in indices]], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def dataset_name(header: Header, name: str) -> str:
    """The dataset of a field, e.g. ``grade1/velocity``."""
    return f"grade{header.grade(name)}/{name}"


def write(
    path: Path,
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
        trajectories: one for each index, in this order.
        indices: numbers of the trajectories within their split.
        dtype: of the stored numbers, float32 or float64.
        compression: none, lzf (fast) or gzip (small).
    """
    check_choice("dtype", dtype, DTYPES)
    check_choice("compression", compression, COMPRESSIONS)
    if not len(indices):
        raise ValueError(f"there are no trajectories to write into {path}")
    if compression == "none":
        check_disk(path.parent, len(indices) * trajectory_bytes(header, dtype), str(path))
    with replacing(path) as temporary, _new_file(temporary) as file:
        with _disk_errors():
            datasets = _create(file, header, indices, dtype, compression)
        _fill(file, header, trajectories, indices, dtype, datasets)


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


def trajectory_bytes(header: Header, dtype: str) -> int:
    """Size of one trajectory in a file without compression."""
    numbers = sum(int(np.prod(header.shape(f.name))) for f in header.fields)
    return numbers * np.dtype(dtype).itemsize


def _create(
    file: Any, header: Header, indices: Sequence[int], dtype: str, compression: str
) -> dict[str, Any]:
    """Everything but the numbers of a file; field name -> dataset."""
    file.attrs["format"] = FORMAT
    file.attrs["format_version"] = FORMAT_VERSION
    for name, value in header.to_dict().items():
        if name in ("fields", "backgrounds", "frames", "grid"):
            continue  # written as datasets, or as their shapes
        if name in ("units", "parameters"):
            value = json.dumps(value, sort_keys=True)
        elif name == "time_axis":
            value = -1 if value is None else value
        file.attrs[name] = value
    file.attrs["fields"] = [f.name for f in header.fields]
    if header.backgrounds:
        file.attrs["backgrounds"] = [b.name for b in header.backgrounds]
    file.create_dataset("index", data=np.asarray(indices, np.int64))
    file.create_dataset("checksum", (len(indices), 16), np.uint8)
    for background in header.backgrounds:
        name = f"backgrounds/grade{background.grade}/{background.name}"
        file.create_dataset(name, data=np.asarray(background.components, np.float64))
    options: dict[str, Any] = {}
    if compression != "none":
        options = {"compression": compression, "shuffle": True}
    datasets = {}
    for field in header.fields:
        shape = header.shape(field.name)
        datasets[field.name] = file.create_dataset(
            dataset_name(header, field.name),
            (len(indices), *shape),
            dtype,
            chunks=(1, 1, *shape[1:]),  # one frame: a window of frames touches nothing else
            **options,
        )
        datasets[field.name].attrs["components"] = _blades(header, field.grade)
        datasets[field.name].attrs["units"] = field.units
    file.attrs["header_checksum"] = header_checksum(_read_header(file), indices)
    return datasets


def _fill(
    file: Any,
    header: Header,
    trajectories: Iterable[Trajectory],
    indices: Sequence[int],
    dtype: str,
    datasets: dict[str, Any],
) -> None:
    """The numbers of a file; errors of whoever makes the trajectories stay as they are."""
    count = 0
    for trajectory in trajectories:
        _check_real(trajectory, int(indices[count]))
        stored = {name: np.ascontiguousarray(a, dtype) for name, a in trajectory.items()}
        _check_trajectory(header, stored, int(indices[count]))
        with _disk_errors():
            for name, array in stored.items():
                datasets[name][count] = array
            file["checksum"][count] = checksum(stored)
        count += 1
    if count != len(indices):
        raise ValueError(f"expected {len(indices)} trajectories, got {count}")


def _blades(header: Header, grade: int) -> list[str]:
    """Names of the components of a grade."""
    return list(header.algebra.blade_names[header.algebra.grade_slice(grade)])


def _check_real(trajectory: Trajectory, index: int) -> None:
    """Raise unless arrays hold real numbers: an imaginary part would be dropped."""
    for name, array in trajectory.items():
        if np.asarray(array).dtype.kind not in "fiub":
            raise ValueError(
                f"trajectory {index}, field {name} must hold real numbers, got "
                f"{np.asarray(array).dtype}: store real and imaginary parts as two fields"
            )


def _check_trajectory(header: Header, trajectory: Trajectory, index: int) -> None:
    """Raise unless a trajectory has the fields and shapes of the header and finite numbers."""
    expected = {f.name for f in header.fields}
    if set(trajectory) != expected:
        raise ValueError(
            f"trajectory {index} has fields {sorted(trajectory)}, expected {sorted(expected)}"
        )
    for name, array in trajectory.items():
        if array.shape != header.shape(name):
            raise ValueError(
                f"trajectory {index}, field {name}: shape {array.shape}, expected "
                f"{header.shape(name)}"
            )
        if not np.isfinite(array).all():
            bad = int((~np.isfinite(array)).sum())
            raise ValueError(
                f"trajectory {index}, field {name}: {bad} of {array.size} numbers are NaN or "
                f"infinite as {array.dtype}"
            )


class FieldFile(FieldSource):
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
        if version != FORMAT_VERSION:
            raise ValueError(
                f"this has format version {version}, this cscnn reads {FORMAT_VERSION}"
            )
        self.header = _read_header(file)
        self.indices = tuple(int(i) for i in file["index"][:])
        if not self.indices:
            raise ValueError("it holds no trajectories")
        first = file[dataset_name(self.header, self.header.fields[0].name)]
        self.dtype = str(first.dtype)
        self.compression = first.compression or "none"
        self._check_datasets(file)

    def _check_datasets(self, file: Any) -> None:
        """Raise unless shapes, components and numbers are those that the header tells."""
        check_choice("the type of numbers", self.dtype, DTYPES)
        for field in self.header.fields:
            shape = (len(self.indices), *self.header.shape(field.name))
            stored = file[dataset_name(self.header, field.name)]
            if stored.shape != shape:
                raise ValueError(f"field {field.name} has shape {stored.shape}, expected {shape}")
            if str(stored.dtype) != self.dtype:
                raise ValueError(f"field {field.name} holds {stored.dtype}, others {self.dtype}")
            components = [str(name) for name in stored.attrs.get("components", ())]
            if components != (blades := _blades(self.header, field.grade)):
                raise ValueError(
                    f"field {field.name} has components {components}, but grade {field.grade} of "
                    f"metric {self.header.metric} has {blades}"
                )
        if file["checksum"].shape != (len(self.indices), 16):
            raise ValueError(f"checksum has shape {file['checksum'].shape}")

    def __len__(self) -> int:
        return len(self.indices)

    def _load_frames(self, number: int, start: int, stop: int) -> Trajectory:
        return {
            name: self._load(
                dataset_name(self.header, name), number, np.s_[number, start:stop], name
            )
            for name in (field.name for field in self.header.fields)
        }

    def checksum(self, number: int) -> np.ndarray:
        """The stored checksum of a trajectory."""
        return self._open()["checksum"][number]

    def header_checksum(self) -> str | None:
        """The stored checksum of the header; None in a file that has none."""
        stored = self._open().attrs.get("header_checksum")
        return None if stored is None else str(stored)


def _read_header(file: Any) -> Header:
    values: dict[str, Any] = {}
    for name in Header.__dataclass_fields__:
        if name in ("fields", "backgrounds", "frames", "grid"):
            continue
        if name not in file.attrs:
            raise ValueError(f"attribute {name} is missing")
        value = file.attrs[name]
        if name in ("units", "parameters"):
            value = json.loads(value)
        elif isinstance(value, np.ndarray):
            value = value.tolist()
        elif isinstance(value, np.generic):
            value = value.item()
        values[name] = value
    values["time_axis"] = None if values["time_axis"] < 0 else values["time_axis"]
    grades = range(len(values["metric"]) + 1)
    listed = [
        (name, grade, dataset)
        for grade in grades
        for name, dataset in file.get(f"grade{grade}", {}).items()
    ]
    stored = {name: (grade, dataset) for name, grade, dataset in listed}
    names = [str(name) for name in file.attrs.get("fields", ())]
    if not names or sorted(names) != sorted(name for name, *_ in listed):
        there = [f"grade{grade}/{name}" for name, grade, _ in listed]
        raise ValueError(f"attribute fields lists {names}, but the file holds {there}")
    values["fields"] = [
        {"name": n, "grade": stored[n][0], "units": stored[n][1].attrs["units"]} for n in names
    ]
    shape = stored[names[0]][1].shape
    values["frames"], values["grid"] = shape[1], shape[2:-1]
    known = {
        name: {"name": name, "grade": grade, "components": dataset[:].tolist()}
        for grade in grades
        for name, dataset in file.get(f"backgrounds/grade{grade}", {}).items()
    }
    order = [str(name) for name in file.attrs.get("backgrounds", ())]
    if set(order) != set(known):
        raise ValueError(f"attribute backgrounds lists {order}, the file holds {sorted(known)}")
    values["backgrounds"] = [known[name] for name in order]
    return Header.from_dict(values)


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
                trajectory = file.read(number)
                _check_trajectory(file.header, trajectory, index)
            except (OSError, ValueError) as error:
                yield f"{path}: {error}"
                continue
            if not np.array_equal(checksum(trajectory), file.checksum(number)):
                yield f"{path}: trajectory {index} is damaged: its checksum is not the stored one"
        progress(path.name, len(file), len(file))
