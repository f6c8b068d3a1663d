"""The figure of errors against rapidity and resolution, and the film of a collision."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cscnn._util.files import replacing
from cscnn.algebra.group import boost
from cscnn.data.simulators.sine_gordon import SineGordon, Solitons
from cscnn.viz.figures import matplotlib, new_figure
from experiments.boosts.records import Record

#: Of the models, the same in all panels.
COLOURS = {
    "resnet": "#4c6a92",
    "unet": "#3a8f6f",
    "implicit": "#e0912f",
    "complete": "#c4572e",
    "differential": "#b3123f",
}

MOVING = 0.5  #: rapidity of the observer in the second panel and in the film


def plot_errors(
    models: Sequence[Record], grids: Sequence[Record], labels: Mapping[str, str]
) -> Any:
    """Error against rapidity of each model; and the excess in a moving frame against resolution.

    Args:
        models: records of all models on one grid.
        grids: records of some of them on several grids.
        labels: key of a model -> name for people.
    """
    figure = new_figure(8.2, 3.8, "constrained")
    left, right = figure.subplots(1, 2)
    for key, label in labels.items():
        own = [r for r in models if r.model == key and r.errors]
        if own:
            _band(left, own[0].rapidities, [r.errors for r in own], COLOURS[key], label)
        _draw_excess(right, [r for r in grids if r.model == key and r.errors], key)
    if finished := [r for r in models if r.errors]:
        first = finished[0]
        left.plot(first.rapidities, first.persistence, ":", color="0.4", lw=1, label="persistence")
        left.set_yscale("log")
    left.set(
        xlabel="rapidity of the observer", ylabel="relative error of new events",
        title="trained at rest, seen in motion",
    )  # fmt: skip
    right.set(
        xlabel="distance of grid points h",
        ylabel=f"error at rapidity {MOVING:g} − error at rest",
        title="what is left is resolution",
    )
    for ax in (left, right):
        ax.grid(alpha=0.25)
    handles, names = left.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3, fontsize=8)
    return figure


def _band(
    ax: Any, x: Sequence[float], rows: Sequence[Sequence[float]], colour: str, label: str
) -> None:
    """The mean of several seeds, and the range from the best to the worst."""
    values = np.array(rows)
    ax.fill_between(x, values.min(0), values.max(0), color=colour, alpha=0.2, lw=0)
    ax.plot(x, values.mean(0), marker="o", ms=4, color=colour, label=label)


def _draw_excess(ax: Any, records: Sequence[Record], key: str) -> None:
    """How much larger the error is in the moving frame, by grid, each seed a dot."""
    by_grid: dict[float, list[float]] = {}
    for record in records:
        excess = record.error(MOVING) - record.error(0.0)
        by_grid.setdefault(record.spacing, []).append(excess)
    grids = sorted(by_grid)
    for h in grids:
        ax.plot([h] * len(by_grid[h]), by_grid[h], "o", ms=3, color=COLOURS[key], alpha=0.6)
    means = [sum(by_grid[h]) / len(by_grid[h]) for h in grids]
    ax.plot(grids, means, color=COLOURS[key])
    if grids:
        ax.set_xscale("log", base=2)
        ax.set_xticks(sorted({*ax.get_xticks(), *grids} & {*grids}), [f"{h:g}" for h in grids])
        ax.axhline(0, color="0.6", lw=0.8)


# --- film -----------------------------------------------------------------------------------------


def collision() -> Solitons:
    """A kink and an antikink that pass through each other at the origin."""
    theta = math.atanh(0.5)
    poles = torch.tensor([math.exp(-theta), math.exp(theta)], dtype=torch.complex128)
    # at x = 0, t = 0 both exponents are log coth of the rapidity: they meet there
    meeting = math.log(1 / math.tanh(theta))
    phases = torch.tensor([meeting, meeting + 1j * math.pi], dtype=torch.complex128)
    return Solitons(poles, phases)


def animate_collision(path: Path, frames: int = 45, fps: float = 10) -> Path:
    """A film of a collision in two frames: a diagram of spacetime, and the curve of the present.

    Args:
        path: a file ``.gif``.
        frames: how many.
        fps: per second.
    """
    window = SineGordon(frames=120, grid=(160,), spacing=0.15)
    height, width = window.frames * window.spacing, window.grid[0] * window.spacing
    algebra = window.header().algebra
    middle = torch.tensor([height / 2, 0.0], dtype=torch.float64)
    views = []
    for title, rapidity in (("at rest", 0.0), (f"rapidity {MOVING:g}", MOVING)):
        seen = collision().transformed(boost(algebra, rapidity, [1.0])).translated(middle)
        views.append((title, window.observe(seen)["cosine"][..., 0] / 2))
    figure = new_figure(6.4, 3.4, "constrained")
    axes = figure.subplots(2, 2, height_ratios=(3, 1.3), sharex=True)
    extent = (-width / 2, width / 2, 0, height)
    drawn = []
    for column, (title, field) in enumerate(views):
        drawn.append(_draw_view(axes[:, column], title, field, extent))
    axes[0, 0].set_ylabel("time")
    axes[1, 0].set_ylabel("sin²(φ / 2)")
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    writer = matplotlib("animation").PillowWriter(fps=fps)
    with replacing(path) as temporary, writer.saving(figure, str(temporary), 80):
        for number in np.linspace(0, window.frames - 1, frames).astype(int).tolist():
            for line, now, field in drawn:
                line.set_ydata(field[number].numpy())
                now.set_ydata([number * window.spacing] * 2)
            writer.grab_frame()
    return path


def _draw_view(
    axes: Sequence[Any], title: str, field: Tensor, extent: tuple[float, float, float, float]
) -> tuple[Any, Any, Tensor]:
    """A diagram of spacetime with the present as a line, and below it the field at present."""
    diagram, curve = axes
    diagram.imshow(
        field.numpy(), origin="lower", extent=extent, aspect="auto", cmap="magma", vmin=0, vmax=1
    )
    now = diagram.axhline(0, color="white", lw=1)
    diagram.set_title(title, fontsize=10)
    x = np.linspace(extent[0], extent[1], field.shape[1])
    (line,) = curve.plot(x, field[0].numpy(), color="#b3123f")
    curve.set(ylim=(-0.05, 1.05), xlabel="place")
    return line, now, field
