"""Fields for the page: target, prediction and error as bytes that a script colours."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cscnn.models.tasks import Task
from cscnn.viz.backend import matplotlib
from cscnn.viz.panels import MAPS, colour_limits, relative_size
from cscnn.viz.report.contents import Contents, Samples

BUDGET = 2_400_000  #: bytes of all fields of a page
FRAMES = 48  #: at most
LEVELS = 255  #: colours; the code above them stands for what is not a number


@dataclass(frozen=True)
class Quantity:
    """One component of a field in all runs: planes (frames, x, y)."""

    label: str
    targets: list[np.ndarray]
    predictions: list[np.ndarray]


@dataclass(frozen=True)
class Viewer:
    """Runs whose fields are shown side by side.

    Attributes:
        runs: their positions on the page.
        quantities: what can be chosen.
        steps, times: of the frames; a diagram of space and time has only one, without either.
        aspect: width by height of a plane.
        notes: what was left out.
        diagram: whether the planes are diagrams of space and time.
    """

    runs: list[int]
    quantities: list[Quantity]
    steps: list[int]
    times: list[float]
    aspect: float
    notes: list[str]
    diagram: bool


def group(runs: Sequence[Contents]) -> list[list[int]]:
    """Positions of runs with samples, those together that forecast the same fields."""
    groups: dict[str, list[int]] = {}
    for i, run in enumerate(runs):
        if run.samples is not None:
            shapes = {name: a.shape for name, a in run.samples.target.items()}
            groups.setdefault(repr((run.task, shapes)), []).append(i)
    return list(groups.values())


def make_viewer(runs: Sequence[Contents], chosen: list[int], budget: int = BUDGET) -> Viewer:
    """Cut planes from the samples, as many as the budget allows."""
    task = runs[chosen[0]].task
    samples = [s for i in chosen if (s := runs[i].samples) is not None]
    assert task is not None
    diagram = samples[0].space == 1
    quantities = [
        Quantity(
            label,
            [_plane(s.target[name][..., i], diagram) for s in samples],
            [_plane(s.prediction[name][..., i], diagram) for s in samples],
        )
        for name, i, label in components(task)
    ]
    steps, coarse, kept = _reduction(quantities, budget)
    notes = [_cut(samples[0])] if samples[0].space > 2 else []
    if len(steps) < len(quantities[0].targets[0]):
        notes.append(f"{len(steps)} of {len(quantities[0].targets[0])} steps are shown")
    if coarse > 1:
        notes.append(f"cells of {coarse} × {coarse} points are averaged")
    if kept < len(quantities):
        notes.append(f"the first {kept} of {len(quantities)} components are shown")
    shown = [
        Quantity(
            q.label,
            [_coarsen(a[steps], coarse) for a in q.targets],
            [_coarsen(a[steps], coarse) for a in q.predictions],
        )
        for q in quantities[:kept]
    ]
    width, height = quantities[0].targets[0].shape[1:]
    spacing = task.grid_spacing
    space = spacing[1:] if task.time_axis is not None else spacing
    if diagram:  # light runs at 45°, if time is an axis
        aspect = width * spacing[-1] / (height * spacing[0]) if task.time_axis is not None else 1.0
    else:
        aspect = width * space[0] / (height * space[1])
    times = [] if diagram else [float(samples[0].times[i]) for i in steps]
    numbers = [] if diagram else [int(i) + 1 for i in steps]
    return Viewer(chosen, shown, numbers, times, float(np.clip(aspect, 0.25, 4)), notes, diagram)


def components(task: Task) -> list[tuple[str, int, str]]:
    """Field, position and label of each component, e.g. ("velocity", 1, "velocity y")."""
    axes = ("t", "x", "y", "z") if task.time_axis == 0 else ("x", "y", "z", "w")
    names = task.algebra.blade_names
    found = []
    for field in task.fields:
        for i, blade in enumerate(names[task.algebra.grade_slice(field.grade)]):
            part = "∧".join(axes[int(k) - 1] for k in blade[1:]) if field.grade else ""
            found.append((field.name, i, f"{field.name} {part}".strip()))
    return found


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
    count, coarse, kept = min(frames, FRAMES), 1, len(quantities)

    def total() -> int:
        return kept * planes * count * (width // coarse) * (height // coarse)

    while total() > budget:
        if min(width, height) // coarse >= 96:
            coarse *= 2
        elif count > 16:
            count = max(16, count * 3 // 4)
        elif min(width, height) // coarse >= 32:
            coarse *= 2
        elif kept > 1:
            kept -= 1
        elif count > 1:
            count //= 2
        elif min(width, height) // coarse > 1:
            coarse *= 2
        else:
            break
    return np.unique(np.linspace(0, frames - 1, count).round().astype(int)), coarse, kept


def _coarsen(values: np.ndarray, by: int) -> np.ndarray:
    if by == 1:
        return values
    frames, width, height = values.shape[0], values.shape[1] // by, values.shape[2] // by
    cut = values[:, : width * by, : height * by]
    return cut.reshape(frames, width, by, height, by).mean((2, 4))


def encode(viewer: Viewer) -> dict[str, Any]:
    """What the script reads: sizes, limits, relative errors, and bytes in base64."""
    blobs: dict[str, int] = {}
    quantities = []
    for quantity in viewer.quantities:
        truth = np.concatenate(quantity.targets)
        signed = bool((truth < 0).any())
        (low, high), _ = colour_limits(truth, signed)
        with np.errstate(all="ignore"):  # forecasts may have blown up
            errors = [p - t for p, t in zip(quantity.predictions, quantity.targets, strict=True)]
            relative = [_relative(e, t) for e, t in zip(errors, quantity.targets, strict=True)]
        top = min(_typical(errors), high - low)
        entry: dict[str, Any] = {
            "label": quantity.label,
            "map": "signed" if signed else "positive",
            "limits": [low, high],
            "error": top,
            "width": truth.shape[1],
            "height": truth.shape[2],
            "runs": [],
        }
        rows = zip(quantity.targets, quantity.predictions, errors, relative, strict=True)
        for target, prediction, error, by_frame in rows:
            entry["runs"].append(
                {
                    "target": _blob(blobs, target, low, high),
                    "prediction": _blob(blobs, prediction, low, high),
                    "error": _blob(blobs, error, -top, top),
                    "relative": by_frame,
                }
            )
        quantities.append(entry)
    return {
        "steps": viewer.steps,
        "times": viewer.times,
        "quantities": quantities,
        "maps": {kind: _ascii(colours(kind)) for kind in MAPS},
        "blobs": list(blobs),
    }


def to_script(data: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def colours(kind: str) -> np.ndarray:
    """The colours of a map, (LEVELS, 3) bytes."""
    table = matplotlib().colormaps[MAPS[kind]](np.linspace(0, 1, LEVELS))[:, :3]
    return (255 * table).round().astype(np.uint8)


def _typical(errors: Sequence[np.ndarray]) -> float:
    """What almost all errors are below."""
    sizes = np.concatenate([np.abs(e[np.isfinite(e)]) for e in errors])
    return float(np.quantile(sizes, 0.99)) if sizes.any() else 1.0


def _relative(error: np.ndarray, target: np.ndarray) -> list[float | None]:
    found = [relative_size(e, t) for e, t in zip(error, target, strict=True)]
    return [None if ratio is None else float(f"{ratio:.4g}") for ratio in found]


def _blob(blobs: dict[str, int], values: np.ndarray, low: float, high: float) -> int:
    """The position of an array among the blobs; equal ones are stored once."""
    with np.errstate(all="ignore"):
        codes = np.clip((values - low) / (high - low), 0, 1) * (LEVELS - 1)
        codes = np.where(np.isnan(values), LEVELS, codes.round()).astype(np.uint8)
    rows = codes.transpose(0, 2, 1)[:, ::-1]  # from the top, as canvases are drawn
    return blobs.setdefault(_ascii(rows), len(blobs))


def _ascii(values: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")
