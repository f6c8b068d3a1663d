"""Forecasts of several models beside the truth, and how their errors grow."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cscnn.data.header import Header
from cscnn.models.tasks import Field
from cscnn.viz.backend import add_colour_bar, matplotlib
from cscnn.viz.fields import choose, draw, label_axes, panel_size
from cscnn.viz.panels import (
    Panel,
    colour_limits,
    cut,
    plane,
    relative_size,
    split,
    time_label,
)
from cscnn.viz.report.numbers import percent
from cscnn.viz.spacetime import diagram_size, draw_diagram, label_diagram

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Arrays = Mapping[str, np.ndarray]
Curve = tuple[Sequence[float], Sequence[float | None]]
MARKERS = "osD^vP*X"
STILL = "if nothing changed"


def plot_comparison(
    samples: Mapping[str, Arrays],
    header: Header,
    frame: int = 0,
    title: str | None = None,
    fields: str | Sequence[str] | None = None,
) -> Figure:
    """Target, predictions and errors of several models for one forecast.

    A column for the target and one for each model; for each quantity (see `plot_fields`) a row of
    fields and below it their errors, with the size of the error relative to the target in per cent.
    Below the target is the error of the forecast that nothing changes. The colours of a row of
    fields are those of the target, so that a forecast that left them is seen to have; the errors
    of a row share theirs. The error of a vector is the length of the difference.

    On a line each panel is a diagram of all frames, with space to the right and time up.

    Args:
        samples: label of a model -> the arrays of its ``samples.npz``: ``target/NAME``,
            ``prediction/NAME`` and, if there, ``input/NAME``, all (frames, *space, components).
            The models must have forecast the same trajectory.
        header: of the data. The arrays may be coarser by a factor.
        frame: of the forecast, from 0; from the end if negative. Without effect on a line.
        title: above the panels.
        fields: names of the fields; all by default.

    Returns:
        a matplotlib figure.
    """
    matplotlib()
    from matplotlib.figure import Figure

    chosen = choose(header, fields)
    header = _check(samples, header, chosen)
    line = len(header.grid) == 1
    if not -header.frames <= frame < header.frames:
        last = header.frames - 1
        raise ValueError(f"frame must be from {-header.frames} to {last}, got {frame}")
    frame %= header.frames
    rows = [pair for f in chosen for pair in _rows(samples, header, f, frame)]
    columns = 1 + len(samples)
    width, height = (0.7 * side for side in diagram_size(header)) if line else panel_size(header)
    figure = Figure(
        figsize=(width * columns + 1.9, 2 * (height + 0.12) * len(rows) + 0.9), layout="compressed"
    )
    axes = figure.subplots(2 * len(rows), columns, squeeze=False, sharex=True, sharey=True)
    for number, (shown, errors) in enumerate(rows):
        upper, lower = axes[2 * number], axes[2 * number + 1]
        last = number == len(rows) - 1
        for column, name in enumerate(("target", *samples)):
            _draw(upper[column], header, shown, column)
            _label(upper[column], header, bottom=False, left=column == 0)
            if number == 0:
                upper[column].set_title(name, fontsize=9)
            _draw(lower[column], header, errors, column)
            _label(lower[column], header, bottom=last, left=column == 0)
            size = relative_size(errors.image[column], shown.image[0])
            _note(lower[column], percent(size), 0.96, 0.04, "right", "bottom")
        if np.isnan(errors.image[0]).all():  # there was no input to compare with
            lower[0].remove()
        else:
            _note(lower[0], STILL, 0.04, 0.96, "left", "top")
        add_colour_bar(figure, list(upper), shown)
        add_colour_bar(figure, [ax for ax in lower if ax.figure is not None], errors)
    figure.suptitle(_title(header, frame) if title is None else title, fontsize=10)
    return figure


def _check(samples: Mapping[str, Arrays], header: Header, fields: Sequence[Field]) -> Header:
    """The header of the samples, which may be coarser than the data; raise if they do not fit."""
    if not samples:
        raise ValueError("a comparison needs the samples of at least one model, got none")
    first_label, first = next(iter(samples.items()))
    grids = set()
    for field in fields:
        for label, arrays in samples.items():
            names = [f"{kind}/{field.name}" for kind in ("target", "prediction")]
            if missing := [name for name in names if name not in arrays]:
                known = ", ".join(sorted(arrays))
                raise ValueError(f"{label!r} has no array {missing[0]}, only {known}")
            target, prediction = (arrays[name].shape for name in names)
            wanted = first[f"target/{field.name}"]
            if target != wanted.shape or prediction != wanted.shape:
                raise ValueError(
                    f"{field.name} of all models must be {wanted.shape}, as the target of "
                    f"{first_label!r}; {label!r} has target {target} and prediction {prediction}"
                )
            if not np.allclose(wanted, arrays[names[0]], rtol=1e-4, equal_nan=True):
                raise ValueError(
                    f"models must have forecast the same trajectory: {field.name} of "
                    f"{first_label!r} and of {label!r} have different targets"
                )
        frames, *grid, components = wanted.shape
        factor = header.grid[0] // max(1, *grid[:1])
        if (
            not factor
            or tuple(grid) != tuple(n // factor for n in header.grid)
            or components != header.shape(field.name)[-1]
        ):
            raise ValueError(
                f"{field.name} must be {('frames', *header.shape(field.name)[1:])} or on a "
                f"coarser grid, got {wanted.shape}"
            )
        grids.add((frames, tuple(grid), factor))
    if len(grids) > 1:
        raise ValueError(f"all fields must have the same frames and grid, got {sorted(grids)}")
    ((frames, space, factor),) = grids
    return header.replace(
        grid=space,
        frames=frames,
        spacing=tuple(h * factor for h in header.spacing),
        frame_spacing=header.frame_spacing * (1 if header.time_axis is None else factor),
    )


def _rows(
    samples: Mapping[str, Arrays], header: Header, field: Field, frame: int
) -> list[tuple[Panel, Panel]]:
    """For each quantity of a field: target and predictions, and all errors.

    Images are (1 + models, x, y), or (1 + models, frames, x) on a line.
    """
    first = next(iter(samples.values()))
    target = _shown(first, "target", header, field, frame)
    predictions = [_shown(s, "prediction", header, field, frame) for s in samples.values()]
    known = first.get(f"input/{field.name}")
    still = np.full_like(target, np.nan) if known is None else plane(known[-1])
    truth = list(split(header, field, target[None]))
    fields = split(header, field, np.stack([target, *predictions]))
    with np.errstate(all="ignore"):  # forecasts may have blown up
        differences = np.stack([still + 0 * target, *predictions]) - target
        errors = split(header, field, differences)
        return [
            (_clipped(shown, true), _error(error, true))
            for shown, error, true in zip(fields, errors, truth, strict=True)
        ]


def _shown(arrays: Arrays, kind: str, header: Header, field: Field, frame: int) -> np.ndarray:
    """A plane (x, y, components), or the diagram (frames, x, components) of a line."""
    values = arrays[f"{kind}/{field.name}"]
    return plane(values if len(header.grid) == 1 else values[frame])


def _clipped(panel: Panel, truth: Panel) -> Panel:
    """The panel with the colours of the truth."""
    extend = _extend(panel.image, truth.limits)
    return dataclasses.replace(panel, label=truth.label, limits=truth.limits, extend=extend)


def _error(panel: Panel, truth: Panel) -> Panel:
    """The panel as an error, with colours that reach no further than those of the truth."""
    signed = truth.arrows is None
    (_, top), _ = colour_limits(panel.image[1:], signed)
    top = min(top, truth.limits[1] - truth.limits[0])
    limits = (-top if signed else 0.0, top)
    label = f"error of\n{truth.label}" if signed else f"|error of\n{truth.label[1:]}"
    return Panel(label, panel.image, None, limits, _extend(panel.image, limits), error=True)


def _extend(image: np.ndarray, limits: tuple[float, float]) -> str:
    """Which ends of the colours stand for more than they say."""
    below, above = bool((image < limits[0]).any()), bool((image > limits[1]).any())
    return {(0, 0): "neither", (0, 1): "max", (1, 0): "min", (1, 1): "both"}[below, above]


def _draw(ax: Any, header: Header, panel: Panel, number: int) -> None:
    ax.set_facecolor("0.8")  # behind what is not a number
    if len(header.grid) == 1:
        draw_diagram(ax, header, panel, panel.image[number])
    else:
        draw(ax, header, panel, number)


def _label(ax: Any, header: Header, bottom: bool, left: bool) -> None:
    label = label_diagram if len(header.grid) == 1 else label_axes
    label(ax, header, bottom=bottom, left=left)


def _note(ax: Any, text: str, x: float, y: float, ha: str, va: str) -> None:
    box = {"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 1}
    ax.text(x, y, text, transform=ax.transAxes, ha=ha, va=va, fontsize=6.5, bbox=box)


def _title(header: Header, frame: int) -> str:
    parts = [header.generator or "data"]
    if len(header.grid) == 1:
        parts.append(f"forecasts of {header.frames} frames")
    else:
        parts.append(f"forecasts at {time_label(header, frame + 1)} after the last input")
    if where := cut(header):
        parts.append(f"plane {where}")
    return ", ".join(parts)


def plot_rollouts(
    curves: Mapping[str, Curve],
    *,
    persistence: Curve | None = None,
    x_label: str = "time",
    y_label: str = "relative error",
    title: str | None = None,
) -> Figure:
    """Errors of several models by time, on a logarithmic axis.

    Args:
        curves: label of a model -> (times, errors). Errors that are None, not finite or not
            positive are left out; a model that was given up has a line that ends.
        persistence: (times, errors) of the forecast that nothing changes: a dashed line.
        x_label, y_label: of the axes.
        title: above the lines.

    Returns:
        a matplotlib figure.
    """
    matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 3.6), layout="constrained")
    ax = figure.subplots()
    for number, (label, curve) in enumerate(curves.items()):
        times, errors = _points(label, curve)
        every = max(1, len(times) // 8)
        ax.plot(
            times, errors, marker=MARKERS[number % len(MARKERS)], markersize=4, markevery=every,
            linewidth=1.5, label=label,
        )  # fmt: skip
    if persistence is not None:
        ax.plot(*_points("persistence", persistence), "--", color="0.45", label="nothing changes")
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
