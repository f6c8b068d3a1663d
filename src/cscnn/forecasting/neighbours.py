"""Points of trajectories with their edges, and how their neighbours are found."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from cscnn.data.edges import EdgeStore
from cscnn.data.source import FieldSource, Source
from cscnn.data.strided import Strides
from cscnn.forecasting.points import Points
from cscnn.forecasting.task import Task
from cscnn.geometry.search import NeighbourSearch

#: Trajectories on which a search for neighbours is measured.
MEASURED = 8


def find_neighbours(
    source: Source, *, radius: float | None = None, neighbours: int | None = None
) -> NeighbourSearch:
    """How neighbours of the points of a source are found, measured on a few trajectories.

    Args:
        source: data on points.
        radius: of neighbourhoods.
        neighbours: nearest ones of each point instead. With neither, the radius is such that a
            point has about 24 neighbours.
    """
    cloud = source.header.cloud
    if cloud is None:
        raise ValueError(
            "radius and neighbours are for data on points, but these are on a grid of "
            f"{source.header.grid}"
        )
    chosen = np.unique(np.linspace(0, len(source) - 1, MEASURED).astype(int)).tolist()
    opened = _with_points(source)
    clouds = [torch.from_numpy(opened.place(number)["positions"]) for number in chosen]
    return NeighbourSearch.fit(
        clouds, radius=radius, neighbours=neighbours, period=cloud.period, weighted=cloud.weights
    )


def default_task(source: Source, strides: Strides) -> Task:
    """The task of forecasting a source, with neighbours as they are found by default."""
    search = None if source.header.cloud is None else find_neighbours(source)
    return Task.from_header(strides.seen(source.header), points=search)


def edge_store(source: Source, task: Task) -> EdgeStore | None:
    """Edges of the points of a source; None for data on a grid."""
    return None if task.points is None else EdgeStore(_with_points(source), task.points)


def points_of(store: EdgeStore, number: int) -> Points:
    """The points of a trajectory, in float64."""
    place = store.source.place(number)
    positions = torch.from_numpy(place["positions"])
    weights = torch.from_numpy(place["weights"]) if "weights" in place else None
    return Points(positions, store.edges(number), weights=weights)


def _with_points(source: Source) -> FieldSource:
    """The files behind a source, which may be a view of them with the same trajectories."""
    stored: Any = source
    while not isinstance(stored, FieldSource) and hasattr(stored, "source"):
        stored = stored.source
    if not isinstance(stored, FieldSource):
        raise TypeError(
            f"data on points come from files, see cscnn.data.open_fields; got {type(source)}"
        )
    return stored
