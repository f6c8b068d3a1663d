"""Readers of trajectories: files of this library, of PDEArena and of The Well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cscnn.data.files import FieldFile
from cscnn.data.joined import JoinedFiles
from cscnn.data.paths import Paths, list_files, spelled
from cscnn.data.readers.checks import SPLITS
from cscnn.data.readers.pdearena import MaxwellFile, NavierStokesFile
from cscnn.data.readers.the_well import WellFile
from cscnn.data.source import FieldSource, HDF5Source, open_hdf5

#: Readers and the options that they know.
OPTIONS: dict[type[HDF5Source], tuple[str, ...]] = {
    FieldFile: (),
    NavierStokesFile: ("centre",),
    MaxwellFile: ("centre",),
    WellFile: ("fields", "grades", "forcing"),
}


def open_fields(
    path: Paths,
    *,
    centre: bool | None = None,
    fields: Sequence[str] | None = None,
    grades: Mapping[str, int | str] | None = None,
    forcing: Sequence[str] | None = None,
) -> FieldSource:
    """Open trajectories: a file, recognised by its content, or several files as one.

    Args:
        path: an HDF5 file of this library, of PDEArena or of The Well; or a folder, a pattern or a
            list of files, see `cscnn.data.paths.list_files`.
        centre: PDEArena: average components to cell centres (the default) or leave them staggered.
        fields: The Well: names of the fields and scalars to read; by default all.
        grades: The Well: grades of fields that are axial, e.g. ``{"magnetic_field": 2}``, and of
            tensors whose symmetry the file does not tell, e.g. ``{"strain": "symmetric"}``.
        forcing: The Well: names of fields that change in time but are given, not predicted.

    Example:
        >>> open_fields("nothing.h5")
        Traceback (most recent call last):
        FileNotFoundError: there is no file nothing.h5
    """
    options = {"centre": centre, "fields": fields, "grades": grades, "forcing": forcing}
    given = {name: value for name, value in options.items() if value is not None}
    files = list_files(path)
    if len(files) == 1:
        return _open_file(files[0], given)
    return JoinedFiles(spelled(path), (_open_file(file, given) for file in files))


def _open_file(path: Path, given: Mapping[str, Any]) -> FieldSource:
    with open_hdf5(path) as file:
        reader = _recognise(file, path)
    if unknown := sorted(set(given) - set(OPTIONS[reader])):
        raise ValueError(f"{path} is a {reader.__name__}, which has no option {', '.join(unknown)}")
    return reader(path, **given)


def _recognise(file: Any, path: Path) -> type[HDF5Source]:
    if "format" in file.attrs:
        return FieldFile
    if {"dataset_name", "n_spatial_dims"} <= set(file.attrs) or "t0_fields" in file:
        return WellFile
    groups = [file, *(file[name] for name in SPLITS if name in file)]
    names = {name for group in groups if hasattr(group, "keys") for name in group}
    if "pres" in names:
        raise ValueError(
            f"{path} looks like shallow water of PDEArena, which is not supported: its grid of "
            "longitudes and latitudes covers a sphere, not flat space"
        )
    if names & {"d_field", "h_field"}:
        return MaxwellFile
    if names & {"u", "vx", "vy"} and names & set(SPLITS):
        return NavierStokesFile
    raise ValueError(
        f"{path} is of no known kind. Expected an attribute format (cscnn), a group train, valid "
        "or test with u, vx, vy or d_field, h_field (PDEArena), or attributes dataset_name, "
        f"n_spatial_dims and a group t0_fields (The Well); got attributes {sorted(file.attrs)} and "
        f"{sorted(file)}"
    )


__all__ = ["FieldSource", "MaxwellFile", "NavierStokesFile", "WellFile", "open_fields"]
