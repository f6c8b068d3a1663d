"""How the errors of several forecasters grow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cscnn.viz.figures import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Curve = tuple[Sequence[float], Sequence[float | None]]
MARKERS = "osD^vP*X"


def plot_rollouts(
    curves: Mapping[str, Curve],
    *,
    persistence: Curve | None = None,
    x_label: str = "time",
    y_label: str = "relative error",
    title: str | None = None,
) -> Figure:
    """Errors of several forecasters by time, on a logarithmic axis.

    Args:
        curves: label of a forecaster -> (times, errors). Errors that are None, not finite or not
            positive are left out; a rollout that was given up has a line that ends.
        persistence: (times, errors) of the persistence forecast: a dashed line.
        x_label, y_label: of the axes.
        title: above the lines.

    Returns:
        a matplotlib figure.
    """
    figure = new_figure(5.6, 3.6, "constrained")
    ax = figure.subplots()
    for number, (label, curve) in enumerate(curves.items()):
        times, errors = _points(label, curve)
        every = max(1, len(times) // 8)
        ax.plot(
            times, errors, marker=MARKERS[number % len(MARKERS)], markersize=4, markevery=every,
            linewidth=1.5, label=label,
        )  # fmt: skip
    if persistence is not None:
        ax.plot(*_points("persistence", persistence), "--", color="0.45", label="persistence")
    ax.set_yscale("log")
    ax.grid(which="major", color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.set_xlabel(x_label, fontsize=9)
    ax.set_ylabel(y_label, fontsize=9)
    ax.tick_params(labelsize=8)
    if ax.lines:
        ax.legend(fontsize=8)
    if title:
        ax.set_title(title, fontsize=10)
    return figure


def _points(label: str, curve: Curve) -> tuple[np.ndarray, np.ndarray]:
    """Times and errors as arrays, NaN for what a logarithmic axis does not have."""
    times, errors = np.asarray(curve[0], np.float64), np.asarray(curve[1], np.float64)
    if times.ndim != 1 or times.shape != errors.shape:
        raise ValueError(
            f"{label!r} must have as many errors as times, got {errors.shape} and {times.shape}"
        )
    return times, np.where(np.isfinite(errors) & (errors > 0), errors, np.nan)
