"""`Writer`: a format of another tool."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

from cscnn.data.fields import FRAME_SPACING
from cscnn.data.files import Progress
from cscnn.data.source import FieldSource


class Writer(ABC):
    """Writes trajectories as another tool reads them.

    A subclass has a ``name``, by which the command line knows it, and a docstring whose first line
    tells what it is.
    """

    name: ClassVar[str]

    def check(self, source: FieldSource) -> None:  # noqa: B027
        """Raise if the format cannot hold these data."""

    @abstractmethod
    def outputs(self, source: FieldSource, out: Path, numbers: Sequence[int]) -> list[Path]:
        """The files that the other tool opens; they are replaced only if that is asked for.

        Args:
            source: open files.
            out: what the user calls the output.
            numbers: places of trajectories in the source.
        """

    @abstractmethod
    def write(
        self, source: FieldSource, paths: list[Path], numbers: Sequence[int], progress: Progress
    ) -> None:
        """Write the files that `outputs` lists, in folders that are there."""


def frame_spacing(source: FieldSource, number: int) -> float:
    """The time between frames of a trajectory."""
    if any(given.name == FRAME_SPACING for given in source.header.given):
        return float(source.read(number, 0, 1)[FRAME_SPACING].item())
    return source.header.frame_spacing


def axial(bivectors: np.ndarray) -> np.ndarray:
    """Bivectors of space on e12, e13, e23 as axial vectors x, y, z: (..., 3) -> (..., 3)."""
    return np.stack([bivectors[..., 2], -bivectors[..., 1], bivectors[..., 0]], -1)
