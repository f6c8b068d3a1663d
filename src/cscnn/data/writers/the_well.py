"""The format of The Well, an HDF5 file that its own package reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from cscnn._util.files import replacing
from cscnn.algebra.clifford import SYMMETRIC
from cscnn.data.dimensions import frame_times
from cscnn.data.fields import Given
from cscnn.data.files import Progress
from cscnn.data.header import Header
from cscnn.data.readers.checks import SPLITS
from cscnn.data.source import FieldSource, hdf5
from cscnn.data.writers.base import Writer, axial


class TheWell(Writer):
    """An HDF5 file of The Well: OUT/data/SPLIT/NAME.hdf5.

    Grids of two or three dimensions of space. A bivector of space is written as its axial vector,
    and a pseudoscalar as a value; their attribute ``grade`` tells `open_fields` what they are.
    Constants, of trajectories or of all, are scalars, or vectors and tensors that vary along no
    axis.
    """

    name: ClassVar[str] = "the_well"

    def check(self, source: FieldSource) -> None:
        header = source.header
        if header.cloud is not None:
            raise ValueError(f"{source.path} holds points, but The Well has grids")
        if (
            header.time_axis is not None
            or set(header.metric) != {1}
            or len(header.grid) not in (2, 3)
        ):
            raise ValueError(
                "The Well has two or three dimensions of space with times as frames, got metric "
                f"{header.metric} on axes {', '.join(header.axes)}"
            )
        names = [q.name for q in (*header.quantities, *header.backgrounds)]
        if len(set(names)) < len(names) or "time" in header.axes:
            raise ValueError(
                "The Well needs different names for all quantities, and no axis of space called "
                f"time, got {names} on {header.axes}"
            )
        if min((*header.grid, header.frames)) < 2:
            raise ValueError(
                "The Well needs two frames and two points along each axis, got "
                f"{header.frames} frames of {header.grid}"
            )

    def outputs(self, source: FieldSource, out: Path, numbers: Sequence[int]) -> list[Path]:
        split = source.header.split if source.header.split in SPLITS else "train"
        name = source.path.stem if len(source.files) == 1 else split
        return [out / "data" / split / f"{name}.hdf5"]

    def write(
        self, source: FieldSource, paths: list[Path], numbers: Sequence[int], progress: Progress
    ) -> None:
        header = source.header
        with replacing(paths[0]) as temporary, hdf5().File(temporary, "w") as file:
            _write_space(file, header, len(numbers))
            datasets = _create(file, source, len(numbers))
            for place, number in enumerate(numbers):
                progress(paths[0].name, place, len(numbers))
                for name, array in source.read(number).items():
                    datasets[name][place] = _tensors(header, header.grade(name), array)
            progress(paths[0].name, len(numbers), len(numbers))


def _write_space(file: Any, header: Header, count: int) -> None:
    """What the file is, its axes and boundaries."""
    names = list(header.parameters)
    plain = {n: v for n, v in header.parameters.items() if isinstance(v, int | float | str)}
    file.attrs.update(plain)
    file.attrs.update(
        dataset_name=header.generator or "cscnn",
        grid_type="cartesian",
        n_spatial_dims=len(header.grid),
        n_trajectories=count,
        simulation_parameters=_texts([name for name in names if name in plain]),
    )
    dimensions = file.create_group("dimensions")
    dimensions.attrs["spatial_dims"] = _texts(header.axes)
    positions = [s * (np.arange(n) + 0.5) for s, n in zip(header.spacing, header.grid, strict=True)]
    values = (frame_times(header), *positions)
    for name, along in zip(("time", *header.axes), values, strict=True):
        dimensions[name] = along
        dimensions[name].attrs.update(sample_varying=False, time_varying=False)
        dimensions[name].attrs["units"] = header.units.get(
            "time" if name == "time" else "length", ""
        )
    conditions = file.create_group("boundary_conditions")
    for name, size, kind in zip(header.axes, header.grid, header.boundary, strict=True):
        group = conditions.create_group(f"{name}_{kind}")
        group.attrs.update(
            associated_dims=_texts([name]),
            associated_fields=_texts([]),
            bc_type=kind.upper(),
            sample_varying=False,
            time_varying=False,
        )
        group["mask"] = np.isin(np.arange(size), (0, size - 1))


def _create(file: Any, source: FieldSource, count: int) -> dict[str, Any]:
    """Datasets of all quantities, those of backgrounds filled; name -> dataset of trajectories."""
    header = source.header
    groups = {name: file.create_group(name) for name in (*_FOLDERS, "scalars")}
    listed: dict[str, list[str]] = {name: [] for name in groups}
    datasets = {}
    for quantity in header.quantities:
        time, space = header.axes_of(quantity.name)
        shape = (*header.shape(quantity.name)[:-1], *_tensor_shape(header, quantity.grade))
        folder = _folder(header, quantity.grade, space)
        listed[folder].append(quantity.name)
        data = groups[folder].create_dataset(
            quantity.name,
            (count, *shape),
            source.dtype if space else "float64",
            chunks=((1, 1, *shape[1:]) if time else (1, *shape)) if space else None,
        )
        given = isinstance(quantity, Given) and quantity.kind == "forcing"
        _describe(data, header, quantity.grade, sample=True, time=time, space=space)
        data.attrs.update(units=quantity.units, **({"given": True} if given else {}))
        datasets[quantity.name] = data
    for background in header.backgrounds:
        folder = _folder(header, background.grade, space=False)
        listed[folder].append(background.name)
        values = _tensors(header, background.grade, np.array(background.components))
        data = groups[folder].create_dataset(background.name, data=values)
        _describe(data, header, background.grade, sample=False, time=False, space=False)
    for name, names in listed.items():
        groups[name].attrs["field_names"] = _texts(names)
    return datasets


_FOLDERS = ("t0_fields", "t1_fields", "t2_fields")  #: scalars, vectors, tensors


def _folder(header: Header, grade: int | str, space: bool) -> str:
    """The group of a quantity."""
    order = len(_tensor_shape(header, grade))
    return _FOLDERS[order] if order or space else "scalars"


def _describe(
    data: Any, header: Header, grade: int | str, *, sample: bool, time: bool, space: bool
) -> None:
    if len(_tensor_shape(header, grade)) == 2:
        data.attrs.update(symmetric=True, antisymmetric=False)
    data.attrs.update(
        dim_varying=np.full(len(header.grid), space),
        sample_varying=sample,
        time_varying=time,
        grade=grade,
    )


def _tensor_shape(header: Header, grade: int | str) -> tuple[int, ...]:
    """Axes of components: none of values, one of vectors, two of tensors."""
    dim = header.algebra.dim
    if grade == SYMMETRIC:
        return (dim, dim)
    return (dim,) if header.algebra.size(grade) > 1 else ()


def _tensors(header: Header, grade: int | str, array: np.ndarray) -> np.ndarray:
    """Components of a grade (..., size) as values, vectors or tensors."""
    values = axial(array) if grade == 2 and header.algebra.dim == 3 else array
    return values.reshape((*array.shape[:-1], *_tensor_shape(header, grade)))


def _texts(names: Sequence[str]) -> np.ndarray:
    return np.array(list(names), hdf5().string_dtype())
