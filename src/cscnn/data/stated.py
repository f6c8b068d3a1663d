"""Views of data whose backgrounds are told with each trajectory, as other data need it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Self

import numpy as np

from cscnn.data.coarse import OpenSource, S
from cscnn.data.fields import Given
from cscnn.data.header import Header
from cscnn.data.source import Source, Trajectory


class Stated:
    """A source whose backgrounds of some names are given constants of each trajectory.

    Files with one value of a constant have it as a background, files with several as what is given.
    So that both can be used together, the first are seen like the second.

    Args:
        source: the original data. It is closed with its view.
        names: of the backgrounds.
    """

    def __init__(self, source: OpenSource, names: Collection[str]):
        self.source = source
        self.header: Header = stated_header(source.header, names)
        self._values = values(source, names)

    @property
    def path(self) -> Path:
        """The file of the original data."""
        return self.source.path

    def __len__(self) -> int:
        return len(self.source)

    def read(self, number: int, start: int = 0, stop: int | None = None) -> Trajectory:
        """Frames from start to stop, and what is given."""
        return {**self.source.read(number, start, stop), **self._values}

    def close(self) -> None:
        """Close the original data."""
        self.source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def stated(source: S, given: Collection[Given]) -> S | Stated:
    """The source with the backgrounds that shall be given; itself if there are none."""
    constants = {(g.name, g.grade) for g in given if g.kind == "constant"}
    names = [b.name for b in source.header.backgrounds if (b.name, b.grade) in constants]
    return Stated(source, names) if names else source


def stated_header(header: Header, names: Collection[str]) -> Header:
    """The header with backgrounds of these names as given constants."""
    told = [b for b in header.backgrounds if b.name in names]
    return header.replace(
        backgrounds=tuple(b for b in header.backgrounds if b.name not in names),
        given=(*header.given, *(Given(b.name, b.grade, "constant") for b in told)),
    )


def values(source: Source, names: Collection[str]) -> Trajectory:
    """The numbers of backgrounds."""
    backgrounds = source.header.backgrounds
    return {b.name: np.array(b.components, np.float64) for b in backgrounds if b.name in names}
