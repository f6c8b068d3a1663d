"""How well forecasts obey the equations behind the data, beside the truth."""

from __future__ import annotations

import torch
from torch import Tensor

from cscnn.data import Header
from cscnn.data.laws import Law, Residual, measure, total
from cscnn.data.simulators import laws_of
from cscnn.forecasting.evaluation.results import LawResidual
from cscnn.forecasting.evaluation.rollout import Rollout
from cscnn.forecasting.forecaster import Frames


class ForecastResiduals:
    """Residuals of the laws of a data set, over rollouts up to the frame where they were given up.

    Where time is an axis of the grid, derivatives of the first predicted frames are taken with the
    known ones before them.

    Args:
        header: of the data, on the grid of the forecasts.
    """

    def __init__(self, header: Header):
        self.header = header
        self._parts: dict[Law, list[tuple[Residual, Residual]]] = {
            law: [] for law in laws_of(header)
        }

    def add(self, known: Frames, forecast: Rollout) -> None:
        """Measure forecasts and truth from the known frames on."""
        for law, parts in self._parts.items():
            for number, steps in enumerate(forecast.stable.tolist()):
                prediction, target = (
                    measure(law, self._frames(law, known, frames, number, steps), self.header)
                    for frames in (forecast.prediction, forecast.target)
                )
                if steps and prediction is not None and target is not None:
                    parts.append((prediction, target))

    def _frames(
        self, law: Law, known: Frames, frames: Frames, number: int, steps: int
    ) -> dict[str, Tensor]:
        """One trajectory, (1, frames, *space, components)."""
        one = {name: x[number : number + 1, :steps] for name, x in frames.items()}
        if self.header.time_axis is None:
            return one
        return {
            name: torch.cat([known[name][number : number + 1, -law.radius :], x], 1)
            for name, x in one.items()
        }

    def results(self) -> dict[str, LawResidual]:
        """Of every law that could be measured, by name."""
        results = {}
        for law, parts in self._parts.items():
            prediction, target = (total(pair[i] for pair in parts) for i in range(2))
            if prediction is not None and target is not None:
                results[law.name] = LawResidual(
                    law.meaning, law.equation, prediction.relative, target.relative
                )
        return results
