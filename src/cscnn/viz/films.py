"""Films of stored fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cscnn._util.files import replacing
from cscnn.data import Header, Source
from cscnn.viz.fields import arrow_components, choose, draw, label_axes, panel_size
from cscnn.viz.figures import add_colour_bar, matplotlib, new_figure, set_title
from cscnn.viz.panels import Panel, frame_title, panels
from cscnn.viz.raster import on_pixels
from cscnn.viz.spacetime import draw_curves, panel_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".gif", ".mp4")


def animate(
    source: Source,
    path: str | Path,
    trajectory: int = 0,
    fields: str | Sequence[str] | None = None,
    fps: float = 8,
    *,
    dpi: int = 100,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Path:
    """Write a film of a trajectory with the panels of `plot_fields`.

    On a line it shows curves that move. An interrupted call leaves no file.

    Args:
        source: anything with ``header`` and ``read(number, start, stop)``.
        path: a file ``.gif``, or ``.mp4`` if the program ffmpeg is installed.
        trajectory: its position in the source.
        fields: names of the fields; all by default.
        fps: frames per second.
        dpi: pixels per inch; a panel is about two inches wide.
        progress: called with the number of frames that are done, and that of all.

    Returns:
        the path.
    """
    source = on_pixels(source, trajectory)
    header, path = source.header, Path(path)
    chosen, writer = choose(header, fields), _writer(path, fps)
    shown = panels(source, trajectory, range(header.frames), chosen)
    film = _film if len(header.grid) > 1 else draw_curves
    figure, update = film(header, shown, trajectory)
    with replacing(path) as temporary, writer.saving(figure, str(temporary), dpi):
        for number in range(header.frames):
            update(number)
            writer.grab_frame()
            progress(number + 1, header.frames)
    return path


def _writer(path: Path, fps: float) -> Any:
    if not fps > 0:
        raise ValueError(f"fps must be positive, got {fps}")
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"a film ends in {' or '.join(SUFFIXES)}, got {path.name!r}")
    animation = matplotlib("animation")
    if path.suffix.lower() == ".gif":
        return animation.PillowWriter(fps=fps)
    if not animation.FFMpegWriter.isAvailable():
        raise ValueError(
            f"{path.name} needs the program ffmpeg, which is not installed: install it, or write "
            f"{path.stem}.gif"
        )
    return animation.FFMpegWriter(fps=fps)


def _film(
    header: Header, shown: Sequence[Panel], trajectory: int
) -> tuple[Figure, Callable[[int], None]]:
    """A figure of all panels, and what sets it to a frame."""
    rows, columns = panel_table(len(shown))
    width, height = (1.6 * side for side in panel_size(header))
    figure = new_figure((width + 0.8) * columns + 0.3, (height + 0.4) * rows + 0.5)
    engine = figure.get_layout_engine()
    assert engine is not None
    engine.set(w_pad=0.1)  # type: ignore[call-arg]
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    drawn = []
    for i, (ax, panel) in enumerate(zip(axes, shown, strict=False)):
        drawn.append(draw(ax, header, panel, 0))
        label_axes(ax, header, bottom=i + columns >= len(shown), left=i % columns == 0)
        add_colour_bar(figure, [ax], panel)
    for ax in axes[len(shown) :]:
        ax.remove()
    set_title(figure, frame_title(header, trajectory, 0))
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # panels stay where they are

    def update(number: int) -> None:
        set_title(figure, frame_title(header, trajectory, number))
        for panel, (image, arrows) in zip(shown, drawn, strict=True):
            image.set_data(panel.image[number].T)
            if arrows is not None:
                arrows.set_UVC(*arrow_components(panel, number))

    return figure, update
