"""Coarser views of trajectories: means over cells of several grid points."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from cscnn._util.checks import check_int
from cscnn.algebra.grids import cell_means
from cscnn.data.header import Header
from cscnn.data.source import Source, Trajectory, check_range


class OpenSource(Source, Protocol):
    """A source that has a path and can be closed, such as `FieldSource`."""

    @property
    def path(self) -> Path:
        """The file."""

    def close(self) -> None:
        """Give back what is open."""


S = TypeVar("S", bound=OpenSource)


class Coarse:
    """A source seen on a coarser grid: every value is the mean over a cell of grid points.

    Where time is an axis of the grid, cells join frames as well, and `read` counts coarse frames.
    Frames at the end that do not fill a cell are left out. The header says how the original data
    were made: its generator and parameters are those of the fine grid.

    Args:
        source: the fine data. It is closed with its view.
        coarsen: points per axis that are joined to a cell.

    Example::

        with Coarse(open_fields("data/train.h5"), 2) as source:  # 64 × 64 points
            source.header.grid, source.read(0)["smoke"].shape  # (32, 32), (frames, 32, 32, 1)
    """

    def __init__(self, source: OpenSource, coarsen: int):
        self.source = source
        self.coarsen: int = check_int("coarsen", coarsen, low=1)
        self.header: Header = coarse_header(source.header, coarsen)
        self._joins_time = source.header.time_axis is not None

    @property
    def path(self) -> Path:
        """The file of the fine data."""
        return self.source.path

    def __len__(self) -> int:
        return len(self.source)

    def read(self, number: int, start: int = 0, stop: int | None = None) -> Trajectory:
        """Coarse frames from start to stop, field name -> (frames, *coarse grid, components).

        Static fields are means over cells too; constants stay what they are.
        """
        start, stop = check_range(self, self.path, number, start, stop)
        step = self.coarsen if self._joins_time else 1
        arrays = self.source.read(number, start * step, stop * step)
        return {name: self._coarse(name, array) for name, array in arrays.items()}

    def _coarse(self, name: str, array: np.ndarray) -> np.ndarray:
        time, space = self.header.axes_of(name)
        if not space:
            return array
        joined = self._joins_time or not time  # without an axis of time all axes are space
        return average_cells(torch.as_tensor(array), self.coarsen, joined).numpy()

    def close(self) -> None:
        """Close the fine data."""
        self.source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def coarse(source: S, coarsen: int) -> S | Coarse:
    """The source itself for cells of one point, else a `Coarse` view of it."""
    return source if coarsen == 1 else Coarse(source, coarsen)


def coarse_header(header: Header, coarsen: int) -> Header:
    """The header of the same data with cells of ``coarsen`` points per axis."""
    if header.cloud is not None:
        raise ValueError(f"coarsen={coarsen} joins points of a grid, but the data are on points")
    if any(n % coarsen for n in header.grid):
        raise ValueError(f"coarsen={coarsen} does not divide the grid {header.grid}")
    changes: dict[str, Any] = {}
    if header.time_axis is not None:
        if header.frames < coarsen:
            raise ValueError(f"coarsen={coarsen} needs as many frames, got {header.frames}")
        changes = {
            "frames": header.frames // coarsen,
            "frame_spacing": header.frame_spacing * coarsen,
        }
    return header.replace(
        grid=tuple(n // coarsen for n in header.grid),
        spacing=tuple(h * coarsen for h in header.spacing),
        **changes,
    )


def average_cells(x: Tensor, coarsen: int, time: bool) -> Tensor:
    """Means over cells of ``coarsen`` points per axis of (frames, *space, components).

    Args:
        time: whether the first axis is one of the grid too: time, or space if there are no frames.
    """
    if not x.is_floating_point():
        x = x.float()
    return cell_means(x, coarsen, range(0 if time else 1, x.dim() - 1))
