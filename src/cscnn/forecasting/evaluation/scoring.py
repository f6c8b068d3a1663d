"""Means over space: on a grid without margins, or over the points of each sample.

Metrics and physical quantities are functions of fields (batch, frames, *space, components). Here
they meet the space that the fields are on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import torch
from torch import Tensor

from cscnn.data import Header
from cscnn.forecasting.evaluation import metrics
from cscnn.forecasting.forecaster import Frames
from cscnn.forecasting.points import Points
from cscnn.forecasting.task import Task

Scores = dict[str, dict[str, Tensor]]  #: field -> metric -> (batch, frames)


class Scoring(Protocol):
    """What evaluations ask of a space."""

    names: tuple[str, ...]  #: of the metrics that there are

    def scores(
        self,
        prediction: Frames,
        target: Frames,
        points: Points | None = None,
        names: tuple[str, ...] | None = None,
    ) -> Scores:
        """Metrics of all fields, by default all of them: field -> metric -> (batch, frames)."""

    def mean(self, density: Tensor, points: Points | None = None, number: int = 0) -> Tensor:
        """Mean over space (1, frames) of the numbers (1, frames, *space) of a sample.

        Args:
            density: of the sample.
            points: of the batch.
            number: of the sample in it.
        """


class GridScoring:
    """On a grid, without the margins of the task.

    Args:
        task: whose margins are left out.
        header: of the data.
    """

    def __init__(self, task: Task, header: Header):
        first = int(header.time_axis is not None)  # axis of space
        self.task = task
        self.functions = metrics.on_grid(
            spacing=header.spacing[first:],
            periodic=tuple(boundary == "periodic" for boundary in header.boundary)[first:],
        )
        self.names = tuple(self.functions)

    def scores(
        self,
        prediction: Frames,
        target: Frames,
        points: Points | None = None,
        names: tuple[str, ...] | None = None,
    ) -> Scores:
        chosen = {name: self.functions[name] for name in names or self.names}
        return metrics.scores(self.task.inside(prediction), self.task.inside(target), chosen)

    def mean(self, density: Tensor, points: Points | None = None, number: int = 0) -> Tensor:
        return self.task.inside({"": density.unsqueeze(-1)})[""].flatten(2).mean(2)


class PointScoring:
    """On points: every sample has its own, and maybe weights."""

    names = metrics.on_points_names()

    def scores(
        self,
        prediction: Frames,
        target: Frames,
        points: Points | None = None,
        names: tuple[str, ...] | None = None,
    ) -> Scores:
        parts = []
        for row, size, weights in _samples(points):
            functions = metrics.on_points(weights)
            one, truth = (
                {name: x[row : row + 1, :, :size] for name, x in fields.items()}
                for fields in (prediction, target)
            )
            chosen = {name: functions[name] for name in names or self.names}
            parts.append(metrics.scores(one, truth, chosen))
        return {
            field: {name: torch.cat([part[field][name] for part in parts]) for name in scores}
            for field, scores in parts[0].items()
        }

    def mean(self, density: Tensor, points: Points | None = None, number: int = 0) -> Tensor:
        _, size, weights = list(_samples(points))[number]
        return metrics.space_mean(density[:, :, :size, None], weights)


def _samples(points: Points | None) -> Iterator[tuple[int, int, Tensor | None]]:
    """Number, points and weights of each sample."""
    if points is None:
        raise ValueError("fields on points need points to be compared, got None")
    for row, (size, weights) in enumerate(points.samples()):
        yield row, size, weights


def scoring(task: Task, header: Header) -> Scoring:
    """That of the space of a task."""
    return GridScoring(task, header) if task.points is None else PointScoring()
