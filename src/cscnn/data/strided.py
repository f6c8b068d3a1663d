"""Views of trajectories with more time between frames: every n-th of the stored ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from cscnn._util.checks import check_int
from cscnn.data.coarse import OpenSource, S
from cscnn.data.fields import FRAME_SPACING, Given
from cscnn.data.header import Header
from cscnn.data.source import Source, Trajectory, check_range


@dataclass(frozen=True)
class Strides:
    """How far apart the frames of a window are, in stored frames: one number, or a range.

    Args:
        low, high: the smallest and the largest stride. If they differ, each window has its own.

    Example:
        >>> Strides.read([1, 4]).span(5)  # frames 0, 4, 8, 12 and 16
        17
    """

    low: int = 1
    high: int = 1

    @classmethod
    def read(cls, value: StrideLike, name: str = "stride") -> Strides:
        """From a number or a range [low, high]; an error calls it by a name."""
        if isinstance(value, Strides):
            return value
        ends: list[Any] = list(value) if isinstance(value, list | tuple) else [value, value]
        if len(ends) == 2 and all(isinstance(n, int) and not isinstance(n, bool) for n in ends):
            low, high = ends
            if 1 <= low <= high:
                return cls(low, high)
        raise ValueError(
            f"{name} must be a number of frames of at least 1, or a range of them from small to "
            f"large such as [1, 4], got {value!r}"
        )

    @property
    def varies(self) -> bool:
        """Whether windows differ in the time between their frames."""
        return self.low < self.high

    @property
    def values(self) -> range:
        """All of them."""
        return range(self.low, self.high + 1)

    def span(self, frames: int) -> int:
        """Stored frames that a window of this number of frames reaches over, at most."""
        return 1 + (frames - 1) * self.high

    def seen(self, header: Header) -> Header:
        """The header of data that are seen with the smallest stride; in a range it is given."""
        if self.varies and header.time_axis is not None:
            raise ValueError(
                "with time as an axis of the grid the time between frames is a spacing of the "
                f"grid: stride must be one number, got the range [{self.low}, {self.high}]"
            )
        return strided_header(header, self.low, self.varies)

    def choose(self, stride: int | None) -> int:
        """One stride: the smallest unless told otherwise, and none outside a range."""
        if stride is None:
            return self.low
        check_int("stride", stride, low=1)
        if self.varies and stride not in self.values:
            raise ValueError(
                f"stride must be from {self.low} to {self.high}, as in training, got {stride}"
            )
        return stride


StrideLike = int | Sequence[int] | Strides  #: what `Strides.read` takes


class Strided:
    """Every ``stride``-th frame of a source, from its first on.

    The header has fewer frames and more time between them. Forcing is cut like the fields. If time
    is an axis of the grid, its spacing grows too. The header says how the original data were made.

    Args:
        source: the original data. It is closed with its view.
        stride: stored frames from one frame to the next.
        told: make the time between frames a constant that is given with each trajectory. Data with
            such a constant keep it, multiplied by the stride.

    Example::

        with Strided(open_fields("data/train.h5"), 3) as source:  # 14 frames
            source.header.frames, source.read(0)["smoke"].shape  # 5, (5, 64, 64, 1)
    """

    def __init__(self, source: OpenSource, stride: int, told: bool = False):
        self.source = source
        self.told = told
        self.stride: int = check_int("stride", stride, low=1)
        self.header: Header = strided_header(source.header, stride, told)

    @property
    def path(self) -> Path:
        """The file of the original data."""
        return self.source.path

    def __len__(self) -> int:
        return len(self.source)

    def read(self, number: int, start: int = 0, stop: int | None = None) -> Trajectory:
        """Frames from start to stop, counted as this view has them, and what is given."""
        start, stop = check_range(self, self.path, number, start, stop)
        return read_strided(
            self.source, number, start * self.stride, stop - start, self.stride, self.told
        )

    def close(self) -> None:
        """Close the original data."""
        self.source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def strided(source: S, stride: int, told: bool = False) -> S | Strided:
    """The source itself if nothing changes, else a `Strided` view of it."""
    return source if stride == 1 and not told else Strided(source, stride, told)


def strided_header(header: Header, stride: int, told: bool = False) -> Header:
    """The header of every ``stride``-th frame.

    Args:
        header: of the stored data.
        stride: stored frames from one frame to the next.
        told: whether the time between frames becomes a given constant.
    """
    changes: dict[str, Any] = {}
    if header.time_axis is not None:
        changes["spacing"] = (stride * header.spacing[0], *header.spacing[1:])
    if told and not has_spacings(header):
        spacing = Given(FRAME_SPACING, 0, "constant", header.units.get("time", ""))
        changes["given"] = (*header.given, spacing)
    return header.replace(
        frames=1 + (header.frames - 1) // stride,
        frame_spacing=stride * header.frame_spacing,
        **changes,
    )


def has_spacings(header: Header) -> bool:
    """Whether every trajectory has a time between frames of its own."""
    return any(given.name == FRAME_SPACING for given in header.given)


def read_strided(
    source: Source, number: int, start: int, count: int, stride: int, told: bool
) -> Trajectory:
    """``count`` frames of a trajectory from a stored frame on, and what is given.

    The frames between them are read as well, in one piece, and left out.
    """
    header = source.header
    arrays = source.read(number, start, start + 1 + (count - 1) * stride)
    frames = {n: a[::stride] if header.axes_of(n)[0] else a for n, a in arrays.items()}
    if told or has_spacings(header):
        (frames[FRAME_SPACING],) = spacings(header, arrays, (stride,))
    return frames


def spacings(header: Header, arrays: Trajectory, strides: Sequence[int]) -> np.ndarray:
    """The time between frames of a trajectory for each of some strides, (strides, 1)."""
    stored = arrays.get(FRAME_SPACING, np.array([header.frame_spacing]))
    return np.stack([stride * stored for stride in strides])
