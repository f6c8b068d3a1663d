"""Pictures of fields on a line: diagrams of space and time, and curves that move."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cscnn.data import Header
from cscnn.viz.figures import add_colour_bar, label_plane, new_figure, set_title
from cscnn.viz.panels import Panel, frame_title, scale, with_unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIDE = 2.4  #: inches of the longer side of a diagram
SLENDER = 4.0  #: sides may differ by this factor before a diagram is stretched


def draw_diagrams(header: Header, shown: Sequence[Panel], title: str) -> Figure:
    """A diagram for each quantity: space to the right, time up, all frames in one picture.

    If time is an axis of the grid, both axes have one scale, and thin lines at 45° are the paths of
    light from the middle of the first frame.
    """
    width, height = diagram_size(header)
    rows, columns = panel_table(len(shown))
    figure = new_figure((width + 0.9) * columns + 0.3, (height + 0.12) * rows + 0.6)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for number, (ax, panel) in enumerate(zip(axes, shown, strict=False)):
        draw_diagram(ax, header, panel, panel.image)
        label_diagram(ax, header, bottom=number + columns >= len(shown), left=number % columns == 0)
        add_colour_bar(figure, [ax], panel)
    for ax in axes[len(shown) :]:
        ax.remove()
    set_title(figure, title)
    return figure


def diagram_size(header: Header) -> tuple[float, float]:
    """Inches of a diagram."""
    x, t, _, _ = _extent(header)
    longest = max(x, t)
    return (SIDE * x / longest, SIDE * t / longest) if _equal(header) else (SIDE, SIDE)


def draw_diagram(ax: Any, header: Header, panel: Panel, values: np.ndarray) -> None:
    """One diagram of values (frames, x), with the colours of a panel."""
    x, t, _, _ = _extent(header)
    start = t * header.start_time / (header.frames * header.frame_spacing)
    ax.imshow(
        values,
        origin="lower",
        extent=(0, x, start, start + t),
        aspect="equal" if _equal(header) else "auto",
        cmap=panel.colours,
        vmin=panel.limits[0],
        vmax=panel.limits[1],
        interpolation="nearest",
    )
    if header.time_axis is not None:
        dark = panel.signed or panel.error
        _light_cone(ax, x, (start, start + t), "0.25" if dark else "white")


def label_diagram(ax: Any, header: Header, bottom: bool, left: bool) -> None:
    """Ticks, and names and units of the axes where they are wanted."""
    _, _, space, time = _extent(header)
    label_plane(ax, space, time, bottom, left)


def draw_curves(
    header: Header, shown: Sequence[Panel], trajectory: int
) -> tuple[Figure, Callable[[int], None]]:
    """A figure with a curve for each quantity, and what sets it to a frame."""
    x, _, space, _ = _extent(header)
    points = (np.arange(header.grid[0]) + 0.5) * x / header.grid[0]
    figure = new_figure(5.0, 1.3 * len(shown) + 0.8, "constrained")
    axes = figure.subplots(len(shown), 1, squeeze=False, sharex=True).ravel()
    lines = []
    for ax, panel in zip(axes, shown, strict=True):
        finite = panel.image[np.isfinite(panel.image)]
        low, high = float(finite.min(initial=0.0)), float(finite.max(initial=0.0))
        margin = 0.05 * (high - low) or 1.0
        ax.axhline(0, color="0.85", linewidth=0.8)
        lines += ax.plot(points, panel.image[0], color="C0", linewidth=1.5)
        ax.set(xlim=(0, x), ylim=(low - margin, high + margin))
        ax.set_ylabel(panel.label, fontsize=8)
        ax.tick_params(labelsize=7, length=2.5)
        ax.locator_params(axis="y", nbins=4)
    axes[-1].set_xlabel(space, fontsize=8)
    set_title(figure, frame_title(header, trajectory, 0))
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # axes stay where they are

    def update(number: int) -> None:
        set_title(figure, frame_title(header, trajectory, number))
        for line, panel in zip(lines, shown, strict=True):
            line.set_ydata(panel.image[number])

    return figure, update


def panel_table(count: int) -> tuple[int, int]:
    """Rows and columns for a number of panels."""
    columns = count if count < 4 else math.ceil(count / 2)
    return math.ceil(count / columns), columns


def _equal(header: Header) -> bool:
    """Whether both axes have one scale."""
    x, t, _, _ = _extent(header)
    return header.time_axis is not None and 1 / SLENDER <= x / t <= SLENDER


def _extent(header: Header) -> tuple[float, float, str, str]:
    """Length, duration, and the labels of both axes."""
    spacing = header.spacing[-1] * header.grid[0]
    axis = header.time_axis
    step = header.frame_spacing if axis is None else header.spacing[axis]
    length_unit = header.units.get("length", "")
    factor, space = scale(spacing, length_unit)
    duration = header.frames * step
    if axis is None:
        time_factor, time = scale(duration, header.units.get("time", ""))
        name = "t"
    else:  # one unit for both, so that light runs at 45°
        time_factor, time, name = factor, space, header.axes[axis]
    return (
        spacing * factor,
        duration * time_factor,
        with_unit(header.axes[-1], space),
        with_unit(name, time),
    )


def _light_cone(ax: Any, x: float, times: tuple[float, float], colour: str) -> None:
    """Both paths of light from the middle of the bottom."""
    reach = times[1] - times[0]
    for side in (1, -1):
        ax.plot((x / 2, x / 2 + side * reach), times, color=colour, linewidth=0.7, alpha=0.5)
    ax.set(xlim=(0, x), ylim=times)
