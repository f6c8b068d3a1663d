"""What a task is on: a grid, or points with neighbours."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cscnn.data.fields import FRAME_SPACING
from cscnn.data.header import Header
from cscnn.data.joined import SAME
from cscnn.data.strided import Strides, has_spacings
from cscnn.geometry.search import NeighbourSearch
from cscnn.networks.pointnet import Neighbourhood

if TYPE_CHECKING:
    from cscnn.forecasting.task import Task

LIKE_MEANS = 0.5  #: relative difference of mean spacings that may be chance


def neighbourhood(search: NeighbourSearch) -> Neighbourhood:
    """What a network has to know of the edges that a search finds."""
    mean = "weighted mean" if search.weighted else "mean"
    return Neighbourhood(search.radius, search.neighbours, mean)


def check_search(search: NeighbourSearch | None, header: Header) -> None:
    """Raise if data are on points and nobody tells how neighbours are found."""
    if header.cloud is not None and search is None:
        raise ValueError(
            "the data are on points: tell how neighbours are found, "
            "Task.from_header(header, points=find_neighbours(source))"
        )


def check_space(task: Task, header: Header) -> None:
    """Raise unless task and data are both on a grid, or on points with the same periods."""
    where = ["a grid" if x is None else "points" for x in (task.points, header.cloud)]
    if where[0] != where[1]:
        raise ValueError(
            f"task {task.name} is about fields on {where[0]}, the data are on {where[1]}"
        )
    if task.points is not None and header.cloud is not None:
        for name, mine, theirs in (
            ("period", task.points.period or (None,) * task.dim, header.cloud.period),
            ("weights", task.points.weighted, header.cloud.weights),
        ):
            if mine != theirs:
                raise ValueError(f"task {task.name} has {name} {mine}, the data have {theirs}")


def check_spacing(task: Task, header: Header, stride: Strides) -> None:
    """Raise if the frames of data, seen with a stride, are not as far apart as those of a task.

    Trajectories may have a spacing of their own: see `check_own_spacings`.
    """
    if not has_spacings(header):
        _compare(task, stride.seen(header).frame_spacing, stride, SAME)


def check_own_spacings(task: Task, header: Header, stride: Strides) -> None:
    """The same for files whose trajectories have their own spacings.

    A network that is told the time between frames takes any. For one that is not, the mean in the
    header should be like that of training; it differs a little between splits.
    """
    told = any(given.name == FRAME_SPACING for given in task.given)
    if has_spacings(header) and not told:
        _compare(task, stride.seen(header).frame_spacing, stride, LIKE_MEANS)


def _compare(task: Task, spacing: float, stride: Strides, tolerance: float) -> None:
    if not math.isclose(task.frame_spacing, spacing, rel_tol=tolerance):
        raise ValueError(
            f"task {task.name} has frames {task.frame_spacing} apart, the data {spacing}"
            + (f" with stride {stride.low}" if stride.low > 1 else "")
        )
