"""Fields on points as images: each pixel shows the nearest point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cscnn._util.optional import require
from cscnn.data import FieldSource, Header, Source
from cscnn.data.source import Trajectory
from cscnn.forecasting.evaluation.results import Samples

PIXELS = 96  #: along the longest side


@dataclass(frozen=True)
class Pixels:
    """Which point each pixel shows.

    Attributes:
        index: (*grid), numbers of points; axes after the second have one pixel, in the middle.
        spacing: of pixels, the same along all axes that have several.
    """

    index: np.ndarray
    spacing: tuple[float, ...]


def nearest_points(positions: np.ndarray, period: Sequence[float | None] | None) -> Pixels:
    """Pixels over the box of periods, or over the box that holds all points.

    Args:
        positions: (points, dim).
        period: for each axis its period, or None where it has none.
    """
    dim = positions.shape[1]
    periods = np.array([p or 0.0 for p in (period or (None,) * dim)])
    low = np.where(periods > 0, 0.0, positions.min(0))
    sides = np.where(periods > 0, periods, positions.max(0) - low)
    step = float(sides[:2].max()) / PIXELS or 1.0
    counts = [max(1, round(side / step)) if axis < 2 else 1 for axis, side in enumerate(sides)]
    steps = [step if axis < 2 else float(side) or step for axis, side in enumerate(sides)]
    axes = [x + h * (np.arange(n) + 0.5) for x, h, n in zip(low, steps, counts, strict=True)]
    centres = np.stack(np.meshgrid(*axes, indexing="ij"), -1)
    points = np.where(periods > 0, positions % np.where(periods > 0, periods, 1.0), positions)
    points = np.where((periods > 0) & (points >= periods), 0.0, points)
    spatial = require("scipy.spatial", "pictures of point sets", "geometry")
    tree = spatial.cKDTree(points, boxsize=periods if periods.any() else None)
    inside = np.where(periods > 0, centres % np.where(periods > 0, periods, 1.0), centres)
    _, index = tree.query(inside.reshape(-1, dim))
    return Pixels(index.reshape(counts), tuple(steps))


class RasterSource:
    """One trajectory on points as if it were on a grid, for pictures.

    Args:
        source: data on points.
        trajectory: which one; whatever number is read, it is this one.
    """

    def __init__(self, source: FieldSource, trajectory: int):
        self.source, self.trajectory = source, trajectory
        header = source.header
        assert header.cloud is not None
        positions = source.place(trajectory)["positions"]
        self.pixels = nearest_points(positions, header.cloud.period)
        self.header = header_on_pixels(header, self.pixels)

    def __len__(self) -> int:
        return len(self.source)

    def read(self, number: int, start: int = 0, stop: int | None = None) -> Trajectory:
        """Frames of the trajectory; of what is given, constants alone."""
        arrays = self.source.read(self.trajectory, start, stop)
        fields = {f.name for f in self.header.fields}
        return {
            q.name: arrays[q.name][:, self.pixels.index] if q.name in fields else arrays[q.name]
            for q in self.header.quantities
        }


def header_on_pixels(header: Header, pixels: Pixels) -> Header:
    """The header of images of fields on points; of what is given, constants alone."""
    return header.replace(
        cloud=None,
        grid=pixels.index.shape,
        spacing=pixels.spacing,
        given=tuple(given for given in header.given if given.kind == "constant"),
    )


def on_pixels(source: Source, trajectory: int) -> Source:
    """A source whose fields can be drawn: itself, or images of data on points."""
    if source.header.cloud is None or not isinstance(source, FieldSource):
        return source
    return RasterSource(source, trajectory)


def samples_on_pixels(samples: Samples, period: Sequence[float | None] | None) -> Samples:
    """Samples as if they were on a grid; those that are stay as they are."""
    if samples.positions is None:
        return samples
    index = nearest_points(samples.positions, period).index
    known, target, prediction = (
        {name: array[:, index] for name, array in part.items()}
        for part in (samples.known, samples.target, samples.prediction)
    )
    return replace(samples, known=known, target=target, prediction=prediction, positions=None)
