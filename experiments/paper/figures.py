"""The curves of a study."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cscnn.forecasting.evaluation.results import MotionErrors, ObserverErrors
from cscnn.viz.figures import new_figure
from experiments.paper.outcomes import Outcome, Score, scores, step_seconds

#: Colours of the models, the same in all figures; variants of ours are grey.
COLOURS = {
    "resnet": "#4c6a92", "clifford_resnet": "#8d6bb0", "steerable_resnet": "#3f9c8f",
    "fno": "#a3a3a3", "gfno": "#6f6f6f", "unet": "#5fa8d3", "convnext_unet": "#7a9a3a",
    "cs_resnet": "#e0912f", "cs_complete": "#c4572e", "ours": "#b3123f",
    "differential2": "#7fb069", "differential4": "#2f6b3a",
}  # fmt: skip

ByTask = Mapping[str, Sequence[Outcome]]  #: task -> outcomes


def labels(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """Contender -> name for people, in order."""
    return {o.key: o.label for o in outcomes}


def _colour(key: str) -> str:
    return COLOURS.get(key, "#999999")


def _axes(count: int, height: float = 3.4) -> tuple[Any, list[Any]]:
    figure = new_figure(3.6 * count + 0.4, height, "constrained")
    axes = figure.subplots(1, count, squeeze=False)
    return figure, list(axes[0])


def _legend(figure: Any, axes: Sequence[Any]) -> None:
    """One legend for all, below."""
    entries: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    for columns in range(min(4, 2 * len(axes)), 0, -1):
        legend = figure.legend(
            list(entries.values()),
            list(entries),
            loc="outside lower center",
            ncols=columns,
            fontsize=8,
        )
        if columns == 1 or legend.get_window_extent().width <= figure.bbox.width:
            return
        legend.remove()  # it would be cut off


def plot_scaling(tasks: ByTask) -> Any:
    """Test error against the number of training simulations, one panel for each task."""
    figure, axes = _axes(len(tasks))
    for ax, (task, outcomes) in zip(axes, tasks.items(), strict=True):
        names = labels(outcomes)
        for key, by_size in scores(outcomes).items():
            finite = {n: score for n, score in by_size.items() if math.isfinite(score.mean)}
            if finite:
                _draw_scaling(ax, key, names[key], finite)
        if ax.lines:
            ax.set(xscale="log", yscale="log")
        ax.set(title=task, xlabel="training simulations")
        ax.set_xticks(sorted({o.trajectories for o in outcomes}))
        ax.get_xaxis().set_major_formatter("{x:.0f}")
        ax.minorticks_off()
        ax.grid(alpha=0.25)
    axes[0].set_ylabel("test error of one step (scaled MSE)")
    _legend(figure, axes)
    return figure


def _draw_scaling(ax: Any, key: str, label: str, by_size: Mapping[int, Score]) -> None:
    """Means with bars from the best to the worst seed, and crosses if seeds diverged."""
    sizes = list(by_size)
    mean = np.array([by_size[n].mean for n in sizes])
    low, high = (np.array([f(by_size[n].finite) for n in sizes]) for f in (min, max))
    ax.errorbar(
        sizes, mean, np.stack([mean - low, high - mean]), marker="o", ms=4, capsize=2,
        color=_colour(key), label=label, lw=2 if key in ("cs_resnet", "ours") else 1.2,
    )  # fmt: skip
    lossy = [n for n in sizes if by_size[n].diverged]
    ax.plot(lossy, [by_size[n].mean for n in lossy], "x", ms=9, color="black")


def plot_convergence(outcomes: Sequence[Outcome]) -> Any:
    """Validation error by step and by time, of the largest training size."""
    figure, axes = _axes(2)
    size = max(o.trajectories for o in outcomes)
    largest = [o for o in outcomes if o.trajectories == size and o.seconds_per_step is not None]
    seconds = step_seconds(largest)
    for key, label in labels(largest).items():
        curves = [o.record.curve for o in largest if o.key == key and o.record.curve]
        steps = np.array(curves[0].step)
        valid = np.mean(np.array([curve.valid for curve in curves]), 0)
        for ax, x in zip(axes, (steps, steps * seconds[key]), strict=True):
            ax.plot(x, valid, color=_colour(key), label=label)
    axes[0].set(xlabel="steps", ylabel="validation error (scaled MSE)", yscale="log")
    axes[1].set(xlabel="seconds of computing", yscale="log", xscale="log")
    for ax in axes:
        ax.grid(alpha=0.25)
    _legend(figure, axes)
    return figure


def motions(outcome: Outcome, kind: str) -> MotionErrors | None:
    """Violations under ``"rotation"`` or ``"boost"``, if they were measured."""
    measured = outcome.record.measured
    errors = getattr(measured.symmetry, kind) if measured and measured.symmetry else None
    assert errors is None or isinstance(errors, MotionErrors)
    return errors


def plot_equivariance(tasks: ByTask) -> Any | None:
    """Relative equivariance error of trained models under rotations and boosts."""
    panels = []
    for task, outcomes in tasks.items():
        for kind, unit in (("rotation", "degrees"), ("boost", "rapidity")):
            curves = [(o, e) for o in outcomes if (e := motions(o, kind)) is not None]
            if curves:
                panels.append((task, f"{kind} ({unit})", curves))
    if not panels:
        return None
    figure, axes = _axes(len(panels))
    for ax, (task, label, curves) in zip(axes, panels, strict=True):
        for outcome, errors in curves:
            ax.plot(
                errors.values, errors.errors, marker="o", ms=3, color=_colour(outcome.key),
                label=outcome.label,
            )  # fmt: skip
        first = curves[0][1]
        ax.plot(first.values, first.floors, "k:", lw=1, label="interpolation alone")
        ax.set(title=task, xlabel=label, yscale="log")
        ax.grid(alpha=0.25)
    axes[0].set_ylabel("relative equivariance error")
    _legend(figure, axes)
    return figure


def _observers(outcome: Outcome) -> ObserverErrors | None:
    measured = outcome.record.measured
    return measured.symmetry.observers if measured and measured.symmetry else None


def plot_observers(tasks: ByTask) -> Any | None:
    """Test error of the same events for boosted or rotated observers, relative to the target."""
    panels = {
        task: curves
        for task, outcomes in tasks.items()
        if (curves := [(o, e) for o in outcomes if (e := _observers(o)) is not None])
    }
    if not panels:
        return None
    figure, axes = _axes(len(panels))
    for ax, (task, curves) in zip(axes, panels.items(), strict=True):
        boosted = curves[0][1].kind == "boosted"
        for place, (outcome, errors) in enumerate(curves):
            style = {"marker": "o", "color": _colour(outcome.key), "label": outcome.label}
            if boosted:
                ax.plot(errors.observers, errors.relative_l2, ms=3, **style)
            else:
                first, *others = errors.relative_l2
                ax.plot([place], [first], **style)
                ax.vlines(place, min(others), max(others), color=style["color"], lw=3, alpha=0.5)
        if boosted:
            ax.set_xlabel("rapidity of the observer")
        else:
            ax.set_xticks([])
            ax.set_xlabel("dot: as trained, line: rotated and reflected")
        ax.set(title=task)
        ax.grid(alpha=0.25)
    axes[0].set_ylabel("relative test error")
    _legend(figure, axes)
    return figure


def plot_ablations(tasks: ByTask) -> Any | None:
    """Errors of networks that lack one ingredient, each seed a dot."""
    if not tasks:
        return None
    figure, axes = _axes(len(tasks), 4.2)
    for ax, (task, outcomes) in zip(axes, tasks.items(), strict=True):
        names, by_key = labels(outcomes), scores(outcomes)
        for row, (key, label) in enumerate(reversed(names.items())):
            (score,) = by_key[key].values()
            finite = math.isfinite(score.mean)
            name = label if finite else f"{label}: diverged"
            ax.text(0, row + 0.36, f" {name}", va="center", fontsize=7)  # above the bar and dots
            if finite:
                ax.barh(row, score.mean, height=0.4, color=_colour(key), alpha=0.6)
                ax.plot(score.values, [row] * len(score.values), "o", ms=3, color="black")
        ax.set(title=task, yticks=[], xlabel="test error of one step (scaled MSE)")
        ax.set_ylim(-0.4, len(names) - 0.4)
    return figure
