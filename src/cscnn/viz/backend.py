"""The optional plotting library, and what our pictures share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from cscnn.atomic import replacing
from cscnn.viz.panels import Panel

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def pyplot() -> Any:
    """``matplotlib.pyplot``, or an error that says what to install."""
    matplotlib()
    from matplotlib import pyplot as plt

    return plt


def matplotlib() -> Any:
    """The package ``matplotlib``, or an error that says what to install."""
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'cscnn[viz]'") from error
    return matplotlib


def add_colour_bar(figure: Figure, axes: list[Any], panel: Panel) -> None:
    """One colour bar for images that share their colours."""
    bar = figure.colorbar(axes[-1].images[0], ax=axes, extend=panel.extend, pad=0.015, aspect=16)
    bar.set_label(panel.label, fontsize=8)
    bar.ax.tick_params(labelsize=7, length=2.5)
    bar.locator = matplotlib().ticker.MaxNLocator(5)
    bar.update_ticks()


def save(figure: Figure, path: Path, dpi: int = 150) -> None:
    """Write a figure whole or not at all; the same figure gives the same bytes."""
    same = {"metadata": {"Software": None}} if path.suffix == ".png" else {}
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=dpi, **same)  # type: ignore[arg-type]
