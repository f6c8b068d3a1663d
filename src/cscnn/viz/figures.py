"""Figures of matplotlib, which is optional: making, labelling and writing them."""

from __future__ import annotations

import io
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cscnn._util.files import write_bytes
from cscnn._util.optional import require
from cscnn.viz.panels import Panel

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

STILLS = (".png", ".pdf", ".svg")  #: endings of pictures
LETTER = 0.62  #: mean width of a letter, in units of the font size; a little more than it is


def matplotlib(module: str = "") -> Any:
    """The package ``matplotlib`` or one of its modules, or an error that says what to install."""
    package = require("matplotlib", "drawing", "viz")
    return require(f"matplotlib.{module}", "drawing", "viz") if module else package


def new_figure(width: float, height: float, layout: str = "compressed") -> Figure:
    """An empty figure, with its size in inches; no window is opened for it."""
    figure: Figure = matplotlib("figure").Figure(figsize=(width, height), layout=layout)
    return figure


def fit_text(text: str, inches: float, points: float) -> str:
    """The text in lines that fit into a width, for a font size in points."""
    letters = max(1, int(72 * inches / (LETTER * points)))
    return "\n".join(
        textwrap.fill(line, letters, break_on_hyphens=False) for line in text.split("\n")
    )


def set_title(figure: Figure | SubFigure, text: str, points: float = 10) -> Any:
    """A title above all panels, in as many lines as it needs."""
    return figure.suptitle(fit_text(text, figure.bbox.width / figure.dpi, points), fontsize=points)


def add_colour_bar(figure: Figure, axes: list[Any], panel: Panel) -> None:
    """One colour bar for images that share their colours."""
    bar = figure.colorbar(axes[-1].images[0], ax=axes, extend=panel.extend, pad=0.015, aspect=16)
    bar.set_label(panel.label, fontsize=8)
    bar.ax.tick_params(labelsize=7, length=2.5)
    bar.locator = matplotlib("ticker").MaxNLocator(5)
    bar.update_ticks()


def label_plane(ax: Any, x: str, y: str, bottom: bool, left: bool) -> None:
    """Ticks, and the labels of the axes where they are wanted."""
    ax.locator_params(nbins=4)
    ax.tick_params(labelsize=7, length=2.5, labelbottom=bottom, labelleft=left)
    if bottom:
        ax.set_xlabel(x, fontsize=8)
    if left:
        ax.set_ylabel(y, fontsize=8)


def save(figure: Figure, path: Path, dpi: int = 150) -> None:
    """Write a figure whole or not at all; the same figure gives the same bytes."""
    if path.suffix not in STILLS:
        raise ValueError(f"a picture ends in {', '.join(STILLS)}, got {path.name!r}")
    same = {"metadata": {"Software": None}} if path.suffix == ".png" else {}
    content = io.BytesIO()  # written by us: Pillow's errors name no file
    figure.savefig(content, format=path.suffix[1:], dpi=dpi, **same)  # type: ignore[arg-type]
    write_bytes(path, content.getvalue())
