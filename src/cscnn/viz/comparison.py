"""Forecasts of several forecasters beside the truth."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cscnn.data import Field, Header
from cscnn.data.coarse import coarse_header
from cscnn.forecasting.evaluation.results import Samples
from cscnn.viz.fields import choose, draw, label_axes, panel_size
from cscnn.viz.figures import add_colour_bar, matplotlib, new_figure, set_title
from cscnn.viz.numbers import percent
from cscnn.viz.panels import (
    Panel,
    colour_limits,
    cut,
    plane,
    relative_size,
    split,
    time_label,
)
from cscnn.viz.raster import header_on_pixels, nearest_points, samples_on_pixels
from cscnn.viz.spacetime import diagram_size, draw_diagram, label_diagram

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PERSISTENCE = "persistence"


def plot_comparison(
    samples: Mapping[str, Samples],
    header: Header,
    frame: int = 0,
    title: str | None = None,
    fields: str | Sequence[str] | None = None,
) -> Figure:
    """Target, predictions and errors of several forecasters for one trajectory.

    A column for the target and one for each forecaster. For each quantity (see `plot_fields`) a row
    of fields and below it their errors, with the size of the error relative to the target in per
    cent. Below the target is the error of the persistence forecast. The colours of a row of fields
    are those of the target: a forecast beyond them has the last colour. The errors of a row share
    theirs. The error of a vector is the length of the difference.

    On a line each panel is a diagram of all frames, with space to the right and time up. Of data on
    points each pixel shows the nearest one.

    Args:
        samples: label of a forecaster -> its rollout. All must be of the same trajectory.
        header: of the data. The samples may be coarser by a factor.
        frame: of the forecast, from 0; from the end if negative. Without effect on a line.
        title: above the panels.
        fields: names of the fields; all by default.

    Returns:
        a matplotlib figure.
    """
    matplotlib()  # an error now, not after the work
    if header.cloud is not None:
        samples, header = _on_pixels(samples, header, header.cloud.period)
    chosen = choose(header, fields)
    header = _check(samples, header, chosen)
    if not -header.frames <= frame < header.frames:
        last = header.frames - 1
        raise ValueError(f"frame must be from {-header.frames} to {last}, got {frame}")
    frame %= header.frames
    rows = [pair for f in chosen for pair in _rows(samples, header, f, frame)]
    line = len(header.grid) == 1
    width, height = (0.7 * side for side in diagram_size(header)) if line else panel_size(header)
    columns = 1 + len(samples)
    figure = new_figure(width * columns + 1.9, 2 * (height + 0.12) * len(rows) + 0.9)
    axes = figure.subplots(2 * len(rows), columns, squeeze=False, sharex=True, sharey=True)
    for ax, name in zip(axes[0], ("target", *samples), strict=True):
        ax.set_title(name, fontsize=9)
    for number, (shown, errors) in enumerate(rows):
        last = number == len(rows) - 1
        _draw_rows(figure, axes[2 * number : 2 * number + 2], header, shown, errors, last)
    set_title(figure, _title(header, frame) if title is None else title)
    return figure


def _draw_rows(
    figure: Figure, axes: np.ndarray, header: Header, shown: Panel, errors: Panel, last: bool
) -> None:
    """Fields in the upper row of axes, errors in the lower one."""
    for column, (upper, lower) in enumerate(axes.T):
        _draw(upper, header, shown, column)
        _label(upper, header, bottom=False, left=column == 0)
        _draw(lower, header, errors, column)
        _label(lower, header, bottom=last, left=column == 0)
        size = relative_size(errors.image[column], shown.image[0])
        _note(lower, percent(size), 0.96, 0.04, "right", "bottom")
    lower = axes[1, 0]
    if np.isnan(errors.image[0]).all():  # there was no known frame to compare with
        lower.remove()
    else:
        _note(lower, PERSISTENCE, 0.04, 0.96, "left", "top")
    add_colour_bar(figure, list(axes[0]), shown)
    add_colour_bar(figure, [ax for ax in axes[1] if ax.figure is not None], errors)


def _on_pixels(
    samples: Mapping[str, Samples], header: Header, period: Sequence[float | None]
) -> tuple[dict[str, Samples], Header]:
    """Samples on points as images, with their header."""
    positions = next((s.positions for s in samples.values() if s.positions is not None), None)
    if positions is None:
        raise ValueError(f"samples of data on points need positions, got {', '.join(samples)}")
    images = {label: samples_on_pixels(part, period) for label, part in samples.items()}
    return images, header_on_pixels(header, nearest_points(positions, period))


def _check(samples: Mapping[str, Samples], header: Header, fields: Sequence[Field]) -> Header:
    """The header of the samples, which may be coarser than the data; raise if they do not fit."""
    if not samples:
        raise ValueError("a comparison needs the samples of at least one forecaster, got none")
    first = next(iter(samples.values()))
    grids = set()
    for field in fields:
        _check_field(samples, field.name)
        frames, *grid, components = first.target[field.name].shape
        coarsen = header.grid[0] // max(1, *grid[:1])
        if (
            not coarsen
            or tuple(coarsen * n for n in grid) != header.grid
            or components != header.shape(field.name)[-1]
        ):
            raise ValueError(
                f"{field.name} must be {('frames', *header.shape(field.name)[1:])} or on a "
                f"coarser grid, got {first.target[field.name].shape}"
            )
        grids.add((frames, coarsen))
    if len(grids) > 1:
        raise ValueError(f"all fields must have the same frames and grid, got {sorted(grids)}")
    ((frames, coarsen),) = grids
    return coarse_header(header.replace(frames=frames * coarsen), coarsen).replace(frames=frames)


def _check_field(samples: Mapping[str, Samples], name: str) -> None:
    """Raise unless all forecasters have forecast the same trajectory of a field."""
    first_label, first = next(iter(samples.items()))
    for label, sample in samples.items():
        for part, arrays in (("target", sample.target), ("prediction", sample.prediction)):
            if name not in arrays:
                known = ", ".join(sorted(arrays)) or "none"
                raise ValueError(f"{label!r} has no {part} of {name}, only of {known}")
        wanted = first.target[name]
        target, prediction = sample.target[name], sample.prediction[name]
        if target.shape != wanted.shape or prediction.shape != wanted.shape:
            raise ValueError(
                f"{name} of all forecasters must be {wanted.shape}, as the target of "
                f"{first_label!r}; {label!r} has target {target.shape} and prediction "
                f"{prediction.shape}"
            )
        if not np.allclose(wanted, target, rtol=1e-4, equal_nan=True):
            raise ValueError(
                f"forecasts must be of the same trajectory: {name} of {first_label!r} and of "
                f"{label!r} have different targets"
            )


def _rows(
    samples: Mapping[str, Samples], header: Header, field: Field, frame: int
) -> list[tuple[Panel, Panel]]:
    """For each quantity of a field: target and predictions, and all errors.

    Images are (1 + forecasters, x, y), or (1 + forecasters, frames, x) on a line.
    """
    line = len(header.grid) == 1

    def at_frame(values: np.ndarray) -> np.ndarray:
        """A plane (x, y, components), or the diagram (frames, x, components) of a line."""
        return plane(values if line else values[frame])

    first = next(iter(samples.values()))
    target = at_frame(first.target[field.name])
    predictions = [at_frame(sample.prediction[field.name]) for sample in samples.values()]
    known = first.known.get(field.name)
    persistence = np.full_like(target, np.nan) if known is None else plane(known[-1])
    truth = list(split(header, field, target[None]))
    fields = split(header, field, np.stack([target, *predictions]))
    with np.errstate(all="ignore"):  # forecasts may have blown up
        differences = np.stack([persistence + 0 * target, *predictions]) - target
        errors = split(header, field, differences)
        return [
            (_clipped(shown, true), _error(error, true))
            for shown, error, true in zip(fields, errors, truth, strict=True)
        ]


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
    if position := cut(header):
        parts.append(f"plane {position}")
    return ", ".join(parts)
