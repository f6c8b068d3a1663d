"""Numbers of many trajectories as curves by step: their mean, and how far they spread."""

from __future__ import annotations

import math

from torch import Tensor

from cscnn.forecasting.evaluation.results import Curve, Spread

QUANTILES = (0.1, 0.9)  #: over trajectories, see `Spread`


def mean_curve(values: Tensor, end: int | None = None) -> list[float]:
    """Means (frames,) over trajectories of values (trajectories, frames), without NaN.

    Args:
        end: steps after which there are no numbers: a mean over the trajectories that were not
            given up would look better the more are lost.
    """
    return _until(values.nanmean(0), end)


def spread(values: Tensor, end: int | None = None) -> Spread:
    """Quantiles over trajectories of values (trajectories, frames); as `mean_curve`."""
    low, high = values.nanquantile(values.new_tensor(QUANTILES), dim=0)
    return Spread(_until(low, end), _until(high, end))


def curve(values: Tensor, end: int | None = None) -> Curve:
    """Mean and spread together."""
    quantiles = spread(values, end)
    return Curve(mean_curve(values, end), quantiles.low, quantiles.high)


def _until(values: Tensor, end: int | None) -> list[float]:
    numbers: list[float] = values.tolist()
    end = len(numbers) if end is None else end
    return numbers[:end] + [math.nan] * (len(numbers) - end)
