"""Pictures of stored fields."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cscnn._util.suggest import did_you_mean
from cscnn.data import Field, Header, Source
from cscnn.viz.figures import add_colour_bar, label_plane, matplotlib, new_figure, set_title
from cscnn.viz.panels import Panel, describe, panels, scale, time_label, with_unit
from cscnn.viz.raster import on_pixels
from cscnn.viz.spacetime import draw_diagrams

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STILLS = 4  #: frames of a picture
ARROWS = 12  #: along the longer side of a panel
#: Of arrows as matplotlib draws them: those that point, and those that are axes.
HEADS = {"width": 0.009, "headwidth": 3.5, "headlength": 4, "headaxislength": 3.5}
NO_HEADS = {"width": 0.013, "headwidth": 0, "headlength": 0, "headaxislength": 0, "pivot": "mid"}


def plot_fields(
    source: Source,
    trajectory: int = 0,
    frame: int | Sequence[int] | None = None,
    fields: str | Sequence[str] | None = None,
    *,
    title: str | None = None,
) -> Figure:
    """Stills of a trajectory: a row for each quantity, a column for each frame.

    A scalar is an image; a vector of space is its length and arrows. A symmetric tensor of space is
    its trace, and the size of its traceless part with lines along the principal axis of largest
    value. Anything else is one image for each component, named by its blade. The first axis of
    space points right and the second up. Of a third the middle slice is shown, and the title says
    where it is. If time is an axis of the grid, it is what the columns show. Of data on points each
    pixel shows the nearest one.

    On a line there is one diagram for each quantity with all frames: the axis of space points right
    and time up. If time is an axis of the grid, thin lines are the paths of light from a point.

    All images of a row share their colours, which are symmetric about 0 for components and for a
    scalar with negative numbers beyond a twentieth of its largest one. If the largest percent of
    the numbers would hide the rest, the colour bar ends in a triangle that stands for them.

    Args:
        source: anything with ``header`` and ``read(number, start, stop)``.
        trajectory: its position in the source.
        frame: one or several; by default four from the first to the last. None on a line.
        fields: names of the fields; all by default.
        title: above the panels.

    Returns:
        a matplotlib figure; ``figure.savefig("fields.png")`` writes it.
    """
    matplotlib()  # an error now, not after reading
    source = on_pixels(source, trajectory)
    header = source.header
    chosen = choose(header, fields)
    title = describe(header, trajectory) if title is None else title
    if len(header.grid) == 1:
        if frame is not None:
            raise ValueError(f"fields on a line are drawn with all frames, got frame {frame}")
        return draw_diagrams(
            header, panels(source, trajectory, range(header.frames), chosen), title
        )
    frames = _frames(header, frame)
    rows = panels(source, trajectory, frames, chosen)
    width, height = panel_size(header)
    figure = new_figure(width * len(frames) + 1.5, (height + 0.12) * len(rows) + 0.9)
    axes = figure.subplots(len(rows), len(frames), squeeze=False, sharex=True, sharey=True)
    for row, panel in enumerate(rows):
        for column, number in enumerate(frames):
            ax = axes[row, column]
            draw(ax, header, panel, column)
            if row == 0:
                ax.set_title(time_label(header, number), fontsize=9)
            label_axes(ax, header, bottom=row == len(rows) - 1, left=column == 0)
        add_colour_bar(figure, list(axes[row]), panel)
    set_title(figure, title)
    return figure


def choose(header: Header, names: str | Sequence[str] | None) -> list[Field]:
    """The fields of these names, all by default; raise if they have no picture."""
    known = {f.name: f for f in header.fields}
    chosen = [names] if isinstance(names, str) else list(known if names is None else names)
    if wrong := [name for name in chosen if name not in known] or [""] * (not chosen):
        hint = did_you_mean(wrong[0], known, otherwise="")
        raise ValueError(f"fields must be of {', '.join(known)}, got {names!r}{hint}")
    if not header.grid:
        raise ValueError(f"a picture needs an axis of space, got grid {header.grid}")
    return [known[name] for name in dict.fromkeys(chosen)]


def _frames(header: Header, frame: int | Sequence[int] | None) -> list[int]:
    if frame is None:
        count = min(STILLS, header.frames)
        return [round(i) for i in np.linspace(0, header.frames - 1, count)]
    frames = [frame] if isinstance(frame, (int, np.integer)) else list(frame)
    if not frames or any(not 0 <= i < header.frames for i in frames):
        raise ValueError(f"frames must be from 0 to {header.frames - 1}, got {frame}")
    return frames


def _lengths(header: Header) -> tuple[float, float, str]:
    """Sides of a panel and their unit."""
    first = len(header.axes) - len(header.grid)
    sides = [n * h for n, h in zip(header.grid, header.spacing[first:], strict=True)]
    factor, unit = scale(max(sides[:2]), header.units.get("length", ""))
    return sides[0] * factor, sides[1] * factor, unit


def panel_size(header: Header) -> tuple[float, float]:
    """Inches of a panel."""
    x, y, _ = _lengths(header)
    longest = max(x, y)
    return 1.6 * max(x / longest, 0.3), 1.6 * max(y / longest, 0.3)


def draw(ax: Any, header: Header, panel: Panel, number: int) -> tuple[Any, Any]:
    """The image of a panel and its arrows, if it has any."""
    x, y, _ = _lengths(header)
    image = ax.imshow(
        panel.image[number].T,
        origin="lower",
        extent=(0, x, 0, y),
        cmap=panel.colours,
        vmin=panel.limits[0],
        vmax=panel.limits[1],
        interpolation="nearest",
    )
    if panel.arrows is None:
        return image, None
    step = _step(panel)
    positions = [
        (np.arange(n)[step // 2 :: step] + 0.5) * side / n
        for n, side in zip(panel.image.shape[1:], (x, y), strict=True)
    ]
    arrows = ax.quiver(
        *np.meshgrid(*positions, indexing="ij"),
        *arrow_components(panel, number),
        angles="xy",
        scale_units="xy",
        scale=panel.limits[1] * panel.image.shape[1] / (1.6 * step * x),
        color="white",
        minlength=0.5,
        **(HEADS if panel.heads else NO_HEADS),
    )
    ax.set(xlim=(0, x), ylim=(0, y))
    return image, arrows


def _step(panel: Panel) -> int:
    return max(1, math.ceil(max(panel.image.shape[1:]) / ARROWS))


def arrow_components(panel: Panel, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Both components of the arrows that are drawn."""
    assert panel.arrows is not None
    step = _step(panel)
    arrows = panel.arrows[number, step // 2 :: step, step // 2 :: step]
    return arrows[..., 0], arrows[..., 1]


def label_axes(ax: Any, header: Header, bottom: bool, left: bool) -> None:
    """Ticks, and names and units of the axes where they are wanted."""
    unit = _lengths(header)[2]
    x, y = header.axes[-len(header.grid) :][:2]
    label_plane(ax, with_unit(x, unit), with_unit(y, unit), bottom, left)
