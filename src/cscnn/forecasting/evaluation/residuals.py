"""How well forecasts obey the equations behind the data, beside the truth."""

from __future__ import annotations

import torch
from torch import Tensor

from cscnn.data import Header
from cscnn.data.laws import Law, Sums, frame_sums, total
from cscnn.data.simulators import laws_of
from cscnn.forecasting.evaluation.results import Curves, LawResidual
from cscnn.forecasting.evaluation.rollout import Rollout
from cscnn.forecasting.evaluation.spread import curve
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
        self._known = 0  # frames
        self._parts: dict[Law, list[tuple[Sums, Sums]]] = {law: [] for law in laws_of(header)}

    def add(self, known: Frames, forecast: Rollout) -> None:
        """Measure forecasts and truth from the known frames on."""
        self._known = next(iter(known.values())).shape[1]
        for law, parts in self._parts.items():
            for number, steps in enumerate(forecast.stable.tolist()):
                given = {n: x[number : number + 1] for n, x in forecast.given.items()}
                prediction, target = (
                    self._sums(law, known, frames, given, number, steps)
                    for frames in (forecast.prediction, forecast.target)
                )
                if prediction is not None and target is not None:
                    parts.append((prediction, target))

    def _sums(
        self, law: Law, known: Frames, frames: Frames, given: Frames, number: int, steps: int
    ) -> Sums | None:
        """Of one trajectory, (1, frames)."""
        if not steps:
            return None
        one = {name: x[number : number + 1, :steps] for name, x in frames.items()}
        if self.header.time_axis is not None:
            one = {
                name: torch.cat([known[name][number : number + 1, -law.radius :], x], 1)
                for name, x in one.items()
            }
        return frame_sums(law, {**given, **one}, self.header)

    def results(self, steps: int, horizon: int) -> dict[str, LawResidual]:
        """Of every law that could be measured, by name.

        Args:
            steps: of the rollouts.
            horizon: steps before the first of them was given up.
        """
        results = {}
        for law, pairs in self._parts.items():
            if not pairs:
                continue
            prediction, target = (total(pair[i].residual(law) for pair in pairs) for i in range(2))
            assert prediction is not None
            assert target is not None
            curves = (
                curve(torch.cat([self._steps(law, pair[i], steps) for pair in pairs]), horizon)
                for i in range(2)
            )
            results[law.name] = LawResidual(
                law.meaning, law.equation, prediction.relative, target.relative, Curves(*curves)
            )
        return results

    def _steps(self, law: Law, sums: Sums, steps: int) -> Tensor:
        """The relative residual (1, steps), NaN where there is none."""
        values, first = sums.relative.cpu().double(), 0
        if self.header.time_axis is not None:  # differences in time reach known frames
            missing = 0 if self.header.boundary[self.header.time_axis] == "periodic" else law.radius
            first = missing - min(law.radius, self._known)
        ends = (first, steps - first - values.shape[1])
        return torch.nn.functional.pad(values, ends, value=torch.nan)
