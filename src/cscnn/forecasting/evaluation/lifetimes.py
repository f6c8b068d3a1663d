"""How long forecasts last: frames until they have lost the truth, or are worse than persistence."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

#: Correlation below which a forecast counts as lost.
THRESHOLD = 0.8


def crossing(excess: Sequence[float], start: float) -> float | None:
    """Frames until a curve first rises above zero, by linear interpolation; None if it does not.

    Args:
        excess: after 1, 2, … frames. NaN is left out; infinity is reached at once.
        start: the number before, at most 0.

    Example:
        >>> crossing([-0.1, 0.3], start=-0.2)
        1.25
    """
    frame, before = 0, start
    for number, value in enumerate(excess, start=1):
        if value > 0:
            return frame - (number - frame) * before / (value - before)
        if not math.isnan(value):
            frame, before = number, value
    return None


def correlation_frames(
    correlation: Sequence[float], stable: int, threshold: float = THRESHOLD
) -> float | None:
    """Frames until the correlation falls below a threshold; None if it does not.

    Args:
        correlation: after 1, 2, … frames; it is 1 before. NaN, where the truth is constant in
            space, is left out.
        stable: frames before the forecast was given up; it has no correlation then.
        threshold: 0.8 by custom.

    Example:
        >>> correlation_frames([0.9, 0.5], stable=2)
        1.25
    """
    kept = [*correlation[:stable], *[0.0] * (len(correlation) - stable)]
    return crossing([threshold - value for value in kept], start=threshold - 1)


def time_of(frames: float, times: Sequence[float]) -> float:
    """The time after a number of predicted frames, by linear interpolation.

    Args:
        frames: from 0 on.
        times: of the predicted frames; the newest known one is at 0.

    Example:
        >>> time_of(1.5, [2.0, 3.0])
        2.5
    """
    return float(np.interp(frames, range(len(times) + 1), [0.0, *times]))


def persistence_frames(
    error: Sequence[float], persistence: Sequence[float], stable: int
) -> float | None:
    """Frames until the error is larger than that of the persistence forecast; None if never.

    Zero for a forecast that is worse from its first frame on, as both begin with no error.

    Args:
        error: after 1, 2, … frames.
        persistence: error of the persistence forecast of the same frames.
        stable: frames before the forecast was given up; its error is infinite then.

    Example:
        >>> persistence_frames([1.0, 3.0], [2.0, 2.0], stable=2)
        1.5
    """
    pairs = zip(error, persistence, strict=True)
    excess = [e - p if frame < stable else math.inf for frame, (e, p) in enumerate(pairs)]
    return crossing(excess, start=0.0)


def quantile(lifetimes: Sequence[float | None], share: float) -> float | None:
    """The lifetime that a share of forecasts does not exceed; None if it is longer than known.

    All rollouts have the same length, so those that outlast it have the longest lifetimes.

    Args:
        lifetimes: at least one; None for longer than the rollout.
        share: above 0 and at most 1.

    Example:
        >>> quantile([3.0, None, 1.0, 2.0], 0.5), quantile([3.0, None], 0.9)
        (2.0, None)
    """
    ranked = sorted(math.inf if value is None else value for value in lifetimes)
    value = ranked[math.ceil(share * len(ranked)) - 1]
    return None if math.isinf(value) else value
