"""Rollouts, batch by batch, as curves by step with their spread over trajectories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from cscnn.data import Header
from cscnn.forecasting.evaluation import metrics
from cscnn.forecasting.evaluation.lifetimes import (
    correlation_frames,
    persistence_frames,
    time_of,
)
from cscnn.forecasting.evaluation.quantities import DataQuantity, quantities_of
from cscnn.forecasting.evaluation.residuals import ForecastResiduals
from cscnn.forecasting.evaluation.results import (
    Curves,
    ErrorCurves,
    PhysicalQuantity,
    RolloutErrors,
)
from cscnn.forecasting.evaluation.rollout import Rollout, persistence
from cscnn.forecasting.evaluation.scoring import scoring
from cscnn.forecasting.evaluation.spread import curve, mean_curve, spread
from cscnn.forecasting.forecaster import Frames
from cscnn.forecasting.task import Task

#: Metrics that a rollout has by step, see `ErrorCurves`.
CURVES = ("mse", "relative_l2", "correlation")

Scores = Mapping[str, Tensor]  #: metric -> (trajectories, frames)


class RolloutCurves:
    """All numbers of rollouts.

    Args:
        task: of the forecasts.
        header: of the data, on the grid of the forecasts.
    """

    def __init__(self, task: Task, header: Header):
        self.task, self.header = task, header
        self.scoring = scoring(task, header)
        self.components = {f.name: header.algebra.size(f.grade) for f in header.fields}
        self.stable: list[int] = []
        self._residuals = ForecastResiduals(header)
        self._quantities: dict[DataQuantity, list[Tensor]] = {
            quantity: [] for quantity in quantities_of(header)
        }
        self._total: list[Scores] = []
        self._fields: dict[str, list[Scores]] = {name: [] for name in self.components}

    def add(self, known: Frames, forecast: Rollout) -> None:
        """Measure forecasts from the known frames on."""
        steps, points = next(iter(forecast.target.values())).shape[1], forecast.points
        prediction, target = forecast.prediction, forecast.target
        scores = self.scoring.scores(prediction, target, points, CURVES)
        still = persistence(known, steps)
        reference = self.scoring.scores(still, target, points, ("relative_l2",))
        for name, parts in self._fields.items():
            parts.append({**scores[name], "persistence": reference[name]["relative_l2"]})
        total = metrics.total(scores, self.components)
        total["persistence"] = metrics.total(reference, self.components)["relative_l2"]
        self._total.append(total)
        self.stable += forecast.stable.tolist()
        self._residuals.add(known, forecast)
        for quantity, means in self._quantities.items():
            means.append(self._means(quantity, known, forecast))

    def _means(self, quantity: DataQuantity, known: Frames, forecast: Rollout) -> Tensor:
        """Means over space of the last known frame and truth, and of the same and forecast.

        Returns:
            (2, trajectories, 1 + frames)
        """
        beginning = {name: x[:, -1:] for name, x in known.items()}
        means = []
        for frames in (forecast.target, forecast.prediction):
            joined = {name: torch.cat([beginning[name], x], 1) for name, x in frames.items()}
            rows = []
            for number in range(len(forecast.stable)):  # less memory than all at once
                one = {name: x[number : number + 1] for name, x in joined.items()}
                rows.append(self.scoring.mean(quantity.density(one), forecast.points, number))
            means.append(torch.cat(rows).cpu().double())
        return torch.stack(means)

    def results(self) -> RolloutErrors:
        """The curves, up to the step at which the first trajectory was given up."""
        total = self._curves(self._total)
        frames, spacing = total["correlation_frames"], self.header.frame_spacing
        steps = range(1, 1 + len(total["persistence"]))
        times = [spacing * (self.task.gap + step) for step in steps]
        return RolloutErrors(
            **total,
            steps=list(steps),
            times=times,
            correlation_time=None if frames is None else time_of(frames, times),
            stable_steps=min(self.stable),
            stable=self.stable,
            fields={
                name: ErrorCurves(**self._curves(parts)) for name, parts in self._fields.items()
            },
            laws=self._residuals.results(len(steps), min(self.stable)),
            quantities={
                quantity.name: self._quantity(quantity, torch.cat(parts, 1))
                for quantity, parts in self._quantities.items()
            },
        )

    def _quantity(self, quantity: DataQuantity, means: Tensor) -> PhysicalQuantity:
        """From means (2, trajectories, 1 + frames)."""
        target, prediction = means[:, :, 1:]
        return PhysicalQuantity(
            quantity.title,
            quantity.formula,
            quantity.units,
            float(means[0, :, 0].mean()),
            Curves(curve(prediction, min(self.stable)), curve(target)),
        )

    def _curves(self, parts: list[Scores]) -> dict[str, Any]:
        """Attributes of `ErrorCurves`."""
        scores = {name: torch.cat([part[name] for part in parts]).cpu() for name in parts[0]}
        horizon = min(self.stable)
        ends = {name: None if name == "persistence" else horizon for name in scores}
        means = {name: mean_curve(values, ends[name]) for name, values in scores.items()}
        correlation, error, still = (
            scores[name].tolist() for name in ("correlation", "relative_l2", "persistence")
        )
        return {
            **means,
            "spread": {name: spread(values, ends[name]) for name, values in scores.items()},
            "correlation_frames": correlation_frames(means["correlation"], horizon),
            "persistence_frames": persistence_frames(
                means["relative_l2"], means["persistence"], horizon
            ),
            "lifetimes": {
                "correlation": list(map(correlation_frames, correlation, self.stable)),
                "persistence": list(map(persistence_frames, error, still, self.stable)),
            },
        }
