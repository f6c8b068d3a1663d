"""Join files of one data set, such as shards that were made on several machines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from cscnn.data.files import FieldFile, Progress, checksum, silent, write
from cscnn.data.header import Header
from cscnn.data.source import Trajectory


def merge(
    paths: Sequence[Path],
    out: Path,
    *,
    indices: Sequence[int] | None = None,
    compression: str | None = None,
    progress: Progress = silent,
) -> int:
    """Join files of one data set, e.g. shards, in the order of their indices.

    Args:
        paths: files whose headers agree and whose indices do not overlap.
        out: the file to write.
        indices: of the result; by default all from 0 to the largest.
        compression: of the result; by default that of the first file.
        progress: told how many trajectories are joined.

    Returns:
        The number of trajectories.
    """
    if not paths:
        raise ValueError("there are no files to merge")
    if any(out.exists() and path.exists() and out.samefile(path) for path in paths):
        raise ValueError(f"{out} is one of the files to merge: choose another output")
    _check_shards(paths)
    with FieldFile(paths[0]) as first:
        header, dtype = first.header, first.dtype
        compression = compression or first.compression
    places = _places(paths, header, dtype)
    wanted = range(max(places) + 1) if indices is None else indices
    if missing := [i for i in wanted if i not in places]:
        raise ValueError(
            f"{len(missing)} of {len(wanted)} trajectories are missing, the first is {missing[0]}: "
            "add the file that holds it"
        )
    trajectories = _collect(places, wanted, progress)
    write(out, header, trajectories, wanted, dtype=dtype, compression=compression)
    return len(wanted)


def _places(paths: Sequence[Path], header: Header, dtype: str) -> dict[int, tuple[Path, int]]:
    """The file and the position in it of each index; raise if files do not belong together."""
    places: dict[int, tuple[Path, int]] = {}
    for path in paths:  # one after another: there may be more than a process can hold open
        with FieldFile(path) as file:
            if differences := header.differences(file.header):
                raise ValueError(
                    f"{path} and {paths[0]} are of different data: they differ in "
                    f"{', '.join(differences)}"
                )
            if file.dtype != dtype:
                raise ValueError(f"{path} holds {file.dtype}, {paths[0]} holds {dtype}")
            for number, index in enumerate(file.indices):
                if index in places:
                    raise ValueError(f"trajectory {index} is in both {places[index][0]} and {path}")
                places[index] = (path, number)
    return places


def _collect(
    places: dict[int, tuple[Path, int]], indices: Sequence[int], progress: Progress
) -> Iterator[Trajectory]:
    """The trajectories of these indices, with one file open at a time."""
    file: FieldFile | None = None
    try:
        for done, index in enumerate(indices):
            progress("joining", done, len(indices))
            path, number = places[index]
            if file is None or file.path != path:
                if file is not None:
                    file.close()
                file = FieldFile(path)
            trajectory = file.everything(number)
            if not np.array_equal(checksum(trajectory), file.checksum(number)):
                raise ValueError(f"{path}: trajectory {index} is damaged")
            yield trajectory
        progress("joining", len(indices), len(indices))
    finally:
        if file is not None:
            file.close()


def _check_shards(paths: Sequence[Path]) -> None:
    """Raise if the names tell that shards are missing."""
    labels = [re.search(r"shard-(\d+)-of-(\d+)", path.name) for path in paths]
    numbers = {int(label.group(1)) for label in labels if label}
    for label in labels:
        total = int(label.group(2)) if label else 0
        if missing := sorted(set(range(total)) - numbers):
            raise ValueError(
                f"{len(missing)} of {total} shards are missing, the first is number {missing[0]}"
            )
