"""Several files as one source of trajectories."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from cscnn._util.jsonform import to_json
from cscnn.data.files import FieldFile
from cscnn.data.header import Header
from cscnn.data.source import FieldSource, Trajectory
from cscnn.data.stated import stated_header, values

MOST_OPEN = 16  #: files that a process has open at a time

#: Attributes of headers that must be the same -> what to do if they are not.
SHARED = {
    "metric": "",
    "axes": "",
    "time_axis": "",
    "fields": "",
    "grid": "",
    "boundary": "",
    "cloud": "",
    "units": "",
    "frames": ": cut the trajectories to one length",
    "split": ": name the files of one split, e.g. by a pattern",
}
CLOSE = {"spacing": "", "frame_spacing": ""}  #: the same up to rounding
SAME = 1e-3  #: relative difference of spacings that counts as rounding, as in `Task.check_data`


class JoinedFiles(FieldSource):
    """The trajectories of several files, one file after the other.

    The headers of all files are read first. They must have the same fields on the same grid.
    Backgrounds that differ become constants that are given with each trajectory. After that a file
    is opened when one of its trajectories is read, and few are open at a time. Files may differ in
    how they were made: the header has the parameters that all share, and generator version 0 if
    there are others.

    Args:
        path: what stands for the files in messages.
        sources: the files. They are closed, and open themselves when they are read.

    Example::

        with open_fields("data/train/*.h5") as source:  # a JoinedFiles, if several files match
            len(source), len(source.files)
    """

    def __init__(self, path: str | Path, sources: Iterable[FieldSource]):
        self.path = Path(path)
        self._files: list[FieldSource] = []
        known: dict[bytes, Path] = {}  # checksum of a trajectory -> its file
        for source in sources:
            if self._files:
                _check_same(self._files[0], source)
            _check_new(source, known)
            source.close()
            self._files.append(source)
        if not self._files:
            raise ValueError(f"{path}: there are no files to join")
        self._stated = _varying([source.header for source in self._files])
        self._ends = list(accumulate(len(source) for source in self._files))
        headers = [stated_header(source.header, self._stated) for source in self._files]
        for source, header in zip(self._files, headers, strict=True):
            _check_given(self._files[0].path, headers[0], source.path, header)
        self.header = _common_header(headers)
        if _own_times(self.header):
            total = sum(len(source) * source.header.frame_spacing for source in self._files)
            self.header = self.header.replace(frame_spacing=total / len(self))
        self.dtype = str(np.result_type(*(source.dtype for source in self._files)))
        self.staggering: str = self._files[0].staggering
        self._recent: dict[int, None] = {}  # files that may be open, the latest last

    @property
    def files(self) -> Sequence[FieldSource]:
        return self._files

    def __len__(self) -> int:
        return self._ends[-1]

    def locate(self, number: int) -> tuple[FieldSource, int]:
        """The file of a trajectory, and its number there; at most `MOST_OPEN` stay open."""
        place = bisect_right(self._ends, number)
        self._recent.pop(place, None)
        self._recent[place] = None
        if len(self._recent) > MOST_OPEN:
            oldest = next(iter(self._recent))
            del self._recent[oldest]
            self._files[oldest].close()
        return self._files[place], number - (self._ends[place - 1] if place else 0)

    def _load_frames(self, number: int, start: int, stop: int) -> Trajectory:
        source, own = self.locate(number)
        return {**source.read(own, start, stop), **values(source, self._stated)}

    def _load_quantity(self, name: str, number: int, start: int, stop: int) -> np.ndarray:
        source, own = self.locate(number)
        if name in self._stated:
            return values(source, (name,))[name]
        return source.read_quantity(name, own, start, stop)

    def place(self, number: int) -> Trajectory:
        source, own = self.locate(number)
        return source.place(own)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(size for source in self._files for size in source.sizes)

    def close(self) -> None:
        for place in self._recent:
            self._files[place].close()
        self._recent = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_recent": {}}


def _check_new(source: FieldSource, known: dict[bytes, Path]) -> None:
    """Raise if a trajectory is in another file too, such as a shard beside the merged file."""
    if not isinstance(source, FieldFile):
        return
    for number, checksum in enumerate(source.checksums()):
        other = known.setdefault(checksum.tobytes(), source.path)
        if other != source.path:
            raise ValueError(
                f"{other} and {source.path} cannot be joined: trajectory {number} of the second is "
                "in the first as well and would count double"
            )


def _check_same(first: FieldSource, other: FieldSource) -> None:
    """Raise unless trajectories of two files can be in one batch."""
    for name, advice in {**SHARED, **CLOSE}.items():
        if name == "frame_spacing" and _own_times(first.header):
            continue
        mine, theirs = getattr(first.header, name), getattr(other.header, name)
        if mine != theirs and not (name in CLOSE and _close(mine, theirs)):
            raise ValueError(
                f"{first.path} and {other.path} cannot be joined: {name} is {to_json(mine)} in the "
                f"first, {to_json(theirs)} in the other{advice}"
            )
    if first.staggering != other.staggering:
        raise ValueError(
            f"{first.path} and {other.path} cannot be joined: their components are shifted by "
            f"{first.staggering or 'nothing'} and {other.staggering or 'nothing'}"
        )


def _varying(headers: Sequence[Header]) -> set[str]:
    """Names of backgrounds that not all files have with one value."""
    stated = [{b.name: b for b in header.backgrounds} for header in headers]
    names = {name for backgrounds in stated for name in backgrounds}
    return {name for name in names if len({own.get(name) for own in stated}) > 1}


def _check_given(first: Path, mine: Header, other: Path, theirs: Header) -> None:
    """Raise unless the trajectories of two files are given the same, in the same order or not."""
    sets = [{(g.name, g.grade, g.kind, g.units) for g in header.given} for header in (mine, theirs)]
    if sets[0] != sets[1]:
        raise ValueError(
            f"{first} and {other} cannot be joined: given is {to_json(mine.given)} in the first, "
            f"{to_json(theirs.given)} in the other: join files that are given the same quantities"
        )


def _close(mine: float | tuple[float, ...], theirs: float | tuple[float, ...]) -> bool:
    pairs = zip(np.atleast_1d(mine), np.atleast_1d(theirs), strict=True)
    return all(math.isclose(a, b, rel_tol=SAME) for a, b in pairs)


def _own_times(header: Header) -> bool:
    """Whether every trajectory has its own frame spacing; that of the header is a mean."""
    return any(given.name == "frame_spacing" for given in header.given)


def _common_header(headers: Sequence[Header]) -> Header:
    """The first, without what others say differently about how they were made, and when."""
    first = headers[0]
    generator = first.generator if all(h.generator == first.generator for h in headers) else ""
    absent = object()
    parameters = {
        name: value
        for name, value in first.parameters.items()
        if all(h.parameters.get(name, absent) == value for h in headers)
    }
    versions = {h.generator_version for h in headers}
    alike = len(versions) == 1 and all(h.parameters == parameters for h in headers)
    return first.replace(
        generator=generator,
        generator_version=first.generator_version if generator and alike else 0,
        parameters=parameters,
        start_time=first.start_time if len({h.start_time for h in headers}) == 1 else 0.0,
    )
