"""Target, prediction and error with a slider for time: which planes of which fields are shown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from cscnn.algebra.grids import cell_means
from cscnn.data.fields import matrix_names
from cscnn.forecasting.evaluation.results import Samples
from cscnn.forecasting.task import Task
from cscnn.viz.raster import samples_on_pixels
from cscnn.viz.report.contents import Contents
from cscnn.viz.report.encode import Quantity, encode
from cscnn.viz.report.section import Section

BUDGET = 2_400_000  #: bytes of all fields of a page
FRAMES = 48  #: at most


@dataclass(frozen=True)
class Viewer:
    """Runs whose fields are shown side by side.

    Attributes:
        runs: their positions on the page.
        quantities: what can be chosen.
        steps, times: of the frames; a diagram of space and time has only one, without either.
        unit: of the times; empty if it is not known.
        aspect: width by height of a plane.
        notes: what was left out.
        diagram: whether the planes are diagrams of space and time.
    """

    runs: list[int]
    quantities: list[Quantity]
    steps: list[int]
    times: list[float]
    unit: str
    aspect: float
    notes: list[str]
    diagram: bool

    @property
    def caption(self) -> str:
        """How the planes are to be read."""
        up = "time" if self.diagram else "the y axis"
        parts = [f"The x axis points right, {up} up", *self.notes, "all runs share the colours"]
        return "; ".join(parts) + "."

    @cached_property
    def data(self) -> dict[str, Any]:
        """What the script reads."""
        return {
            "steps": self.steps,
            "times": self.times,
            "unit": self.unit,
            **encode(self.quantities),
        }


def forecasts(runs: Sequence[Contents]) -> Section:
    """Fields with a slider: a viewer for each group of runs."""
    groups = group(runs)
    viewers = [make_viewer(runs, chosen, BUDGET // len(groups)) for chosen in groups]
    return Section("forecasts", "Forecasts beside the truth", "forecasts.html", viewers)


def group(runs: Sequence[Contents]) -> list[list[int]]:
    """Positions of runs with samples, those together that forecast the same fields."""
    groups: dict[str, list[int]] = defaultdict(list)
    for i, run in enumerate(runs):
        if run.samples is not None:
            shapes = {name: a.shape for name, a in run.samples.target.items()}
            groups[repr((run.task, shapes))].append(i)
    return list(groups.values())


def make_viewer(runs: Sequence[Contents], chosen: list[int], budget: int = BUDGET) -> Viewer:
    """Cut planes from the samples, as many as the budget allows."""
    task = runs[chosen[0]].task
    assert task is not None
    period = None if task.points is None else task.points.period
    samples = [samples_on_pixels(s, period) for i in chosen if (s := runs[i].samples) is not None]
    diagram = samples[0].space == 1
    quantities = [
        Quantity(
            label,
            [_plane(s.target[name][..., i], diagram) for s in samples],
            [_plane(s.prediction[name][..., i], diagram) for s in samples],
        )
        for name, i, label in components(task)
    ]
    steps, coarsen, kept = _reduction(quantities, budget)
    notes = [_cut(samples[0])] if samples[0].space > 2 else []
    if task.points is not None:
        notes.append("each pixel shows the nearest point")
    if len(steps) < len(quantities[0].targets[0]):
        notes.append(f"{len(steps)} of {len(quantities[0].targets[0])} steps are shown")
    if coarsen > 1:
        notes.append(f"cells of {coarsen} × {coarsen} points are averaged")
    if kept < len(quantities):
        notes.append(f"the first {kept} of {len(quantities)} components are shown")
    shown = [
        Quantity(
            q.label,
            [_coarse(a[steps], coarsen) for a in q.targets],
            [_coarse(a[steps], coarsen) for a in q.predictions],
        )
        for q in quantities[:kept]
    ]
    aspect = _aspect(task, quantities[0].targets[0], diagram)
    times = [] if diagram else [float(samples[0].times[i]) for i in steps]
    numbers = [] if diagram else [int(i) + 1 for i in steps]
    unit = runs[chosen[0]].time_unit
    return Viewer(chosen, shown, numbers, times, unit, aspect, notes, diagram)


def _aspect(task: Task, planes: np.ndarray, diagram: bool) -> float:
    """Width by height of planes (frames, x, y), or of diagrams (1, x, time)."""
    width, height = planes.shape[1:]
    spacing = task.grid_spacing
    space = spacing[1:] if task.time_axis is not None else spacing
    if not diagram:
        aspect = width * space[0] / (height * space[1])
    elif task.time_axis is not None:  # light runs at 45°
        aspect = width * spacing[-1] / (height * spacing[0])
    else:
        aspect = 1.0
    return float(np.clip(aspect, 0.25, 4))


def components(task: Task) -> list[tuple[str, int, str]]:
    """Field, position and label of each component, e.g. ("velocity", 1, "velocity y")."""
    axes = ("t", "x", "y", "z") if task.time_axis == 0 else ("x", "y", "z", "w")
    labels = []
    for field in task.fields:
        for i, part in _component_names(task, field.grade, axes[: task.dim]):
            labels.append((field.name, i, f"{field.name} {part}".strip()))
    return labels


def _component_names(
    task: Task, grade: int | str, axes: Sequence[str]
) -> Iterator[tuple[int, str]]:
    """Position and name of the components of a grade; of a symmetric tensor each once."""
    if isinstance(grade, str):
        for i, name in enumerate(matrix_names(axes)):
            if i % task.dim >= i // task.dim:
                yield i, name
        return
    for i, blade in enumerate(task.algebra.blade_names[task.algebra.grade_slice(grade)]):
        yield i, "∧".join(axes[int(k) - 1] for k in blade[1:]) if grade else ""


def _plane(values: np.ndarray, diagram: bool) -> np.ndarray:
    """(frames, x, y): a slice through the middle, or (1, x, time) of a line."""
    values = np.asarray(values, np.float64)
    if diagram:
        return values.T[None]
    while values.ndim > 3:
        values = values[:, :, :, values.shape[3] // 2]
    return values


def _cut(samples: Samples) -> str:
    shape = next(iter(samples.target.values())).shape[3:-1]
    axes = ("z", "w")[: len(shape)]
    plane = ", ".join(f"{a} = point {n // 2 + 1} of {n}" for a, n in zip(axes, shape, strict=True))
    return f"the plane {plane} is shown"


def _reduction(quantities: Sequence[Quantity], budget: int) -> tuple[np.ndarray, int, int]:
    """Frames, averaged points per axis and components that fit."""
    frames, width, height = quantities[0].targets[0].shape
    targets = quantities[0].targets
    same = all(np.array_equal(targets[0], target, equal_nan=True) for target in targets)
    planes = 2 * len(targets) + (1 if same else len(targets))  # equal ones are stored once
    count, coarsen, kept = min(frames, FRAMES), 1, len(quantities)

    def total() -> int:
        return kept * planes * count * (width // coarsen) * (height // coarsen)

    while total() > budget:
        if min(width, height) // coarsen >= 96:
            coarsen *= 2
        elif count > 16:
            count = max(16, count * 3 // 4)
        elif min(width, height) // coarsen >= 32:
            coarsen *= 2
        elif kept > 1:
            kept -= 1
        elif count > 1:
            count //= 2
        elif min(width, height) // coarsen > 1:
            coarsen *= 2
        else:
            break
    return np.unique(np.linspace(0, frames - 1, count).round().astype(int)), coarsen, kept


def _coarse(planes: np.ndarray, coarsen: int) -> np.ndarray:
    """Means over cells of planes (frames, x, y); points that fill no cell are left out."""
    width, height = (n - n % coarsen for n in planes.shape[1:])
    cut = torch.from_numpy(planes[:, :width, :height])
    return cell_means(cut, coarsen, axes=(1, 2)).numpy()
