"""The curves of a study."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cscnn.study.summary import Record, scores, step_seconds
from cscnn.viz.backend import pyplot

#: Colours of the models, the same in all figures; variants of ours are grey.
COLOURS = {
    "resnet": "#4c6a92", "clifford_resnet": "#8d6bb0", "steerable_resnet": "#3f9c8f",
    "fno": "#a3a3a3", "gfno": "#6f6f6f",
    "cs_resnet": "#e0912f", "cs_complete": "#c4572e", "ours": "#b3123f",
}  # fmt: skip

Records = Mapping[str, Sequence[Record]]


def labels(records: Sequence[Record]) -> dict[str, str]:
    """Contender -> name for people, in order."""
    return {r["contender"]: r["label"] for r in records}


def _axes(count: int, height: float = 3.4) -> tuple[Any, list[Any]]:
    figure, axes = pyplot().subplots(
        1, count, figsize=(3.6 * count + 0.4, height), squeeze=False, layout="constrained"
    )
    return figure, list(axes[0])


def _legend(figure: Any, axes: Sequence[Any]) -> None:
    """One legend for all, below."""
    entries: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    figure.legend(
        list(entries.values()),
        list(entries),
        loc="outside lower center",
        ncols=min(4, 2 * len(axes)),
        fontsize=8,
    )


def plot_scaling(records: Records) -> Any:
    """Test error against the number of training simulations, one panel for each task."""
    figure, axes = _axes(len(records))
    for ax, (task, found) in zip(axes, records.items(), strict=True):
        names = labels(found)
        for key, every in scores(found).items():
            by_size = {n: s for n, s in every.items() if math.isfinite(s.mean)}
            sizes = list(by_size)
            if not sizes:
                continue
            mean = np.array([by_size[n].mean for n in sizes])
            low, high = (np.array([f(by_size[n].finite) for n in sizes]) for f in (min, max))
            ax.errorbar(
                sizes, mean, np.stack([mean - low, high - mean]), marker="o", ms=4, capsize=2,
                color=COLOURS.get(key, "#999999"), label=names[key],
                lw=2 if key in ("cs_resnet", "ours") else 1.2,
            )  # fmt: skip
            some_lost = [n for n in sizes if by_size[n].diverged]
            means = [by_size[n].mean for n in some_lost]
            ax.plot(some_lost, means, "x", ms=9, color="black")  # some seeds diverged
        if ax.lines:
            ax.set(xscale="log", yscale="log")
        ax.set(title=task, xlabel="training simulations")
        ax.set_xticks(sorted({r["trajectories"] for r in found}))
        ax.get_xaxis().set_major_formatter("{x:.0f}")
        ax.minorticks_off()
        ax.grid(alpha=0.25)
    axes[0].set_ylabel("test error of one step (scaled MSE)")
    _legend(figure, axes)
    return figure


def plot_convergence(records: Sequence[Record]) -> Any:
    """Validation error by step and by time, of the largest training size."""
    figure, axes = _axes(2)
    size = max(r["trajectories"] for r in records)
    names = labels(records)
    for key, label in names.items():
        some = [
            r for r in records
            if r["contender"] == key and r["trajectories"] == size and "seconds_per_step" in r
        ]  # fmt: skip
        if not some:
            continue
        steps = np.array(some[0]["curve"]["step"])
        valid = np.mean(np.array([r["curve"]["valid"] for r in some], float), 0)  # None is NaN
        seconds = steps * step_seconds(some)[key]
        for ax, x in zip(axes, (steps, seconds), strict=True):
            ax.plot(x, valid, color=COLOURS.get(key, "#999999"), label=label)
    axes[0].set(xlabel="steps", ylabel="validation error (scaled MSE)", yscale="log")
    axes[1].set(xlabel="seconds of computing", yscale="log", xscale="log")
    for ax in axes:
        ax.grid(alpha=0.25)
    _legend(figure, axes)
    return figure


def plot_equivariance(records: Records) -> Any | None:
    """Relative equivariance error of trained models under turns and boosts."""
    panels = []
    for task, found in records.items():
        for kind, name, unit in (("rotation", "angles", "degrees"), ("boost", "rapidities", "")):
            some = [r for r in found if (r.get("symmetry") or {}).get(kind)]
            if some:
                panels.append((task, kind, name, unit, some))
    if not panels:
        return None
    figure, axes = _axes(len(panels))
    for ax, (task, kind, name, unit, some) in zip(axes, panels, strict=True):
        for record in some:
            curve = record["symmetry"][kind]
            key = record["contender"]
            colour = COLOURS.get(key, "#999999")
            ax.plot(
                curve[name], curve["errors"], marker="o", ms=3, color=colour, label=record["label"]
            )
        floor = some[0]["symmetry"][kind]
        ax.plot(floor[name], floor["floor"], "k:", lw=1, label="interpolation alone")
        what = "rotation" if kind == "rotation" else "boost"
        ax.set(title=task, xlabel=f"{what} ({unit or 'rapidity'})", yscale="log")
        ax.grid(alpha=0.25)
    axes[0].set_ylabel("relative equivariance error")
    _legend(figure, axes)
    return figure


def plot_frames(records: Records) -> Any | None:
    """Test error of the same events in boosted or turned frames, relative to the target."""
    panels = {
        task: some
        for task, found in records.items()
        if (some := [r for r in found if (r.get("symmetry") or {}).get("frames")])
    }
    if not panels:
        return None
    figure, axes = _axes(len(panels))
    for ax, (task, some) in zip(axes, panels.items(), strict=True):
        boosted = some[0]["symmetry"]["frames"]["kind"] == "boosted"
        for place, record in enumerate(some):
            frames = record["symmetry"]["frames"]
            colour = COLOURS.get(record["contender"], "#999999")
            if boosted:
                ax.plot(
                    frames["values"], frames["relative_l2"], marker="o", ms=3, color=colour,
                    label=record["label"],
                )  # fmt: skip
            else:
                first, *others = (np.nan if e is None else e for e in frames["relative_l2"])
                ax.plot([place], [first], marker="o", color=colour, label=record["label"])
                ax.vlines(place, min(others), max(others), color=colour, lw=3, alpha=0.5)
        if boosted:
            ax.set_xlabel("rapidity of the observer")
        else:
            ax.set_xticks([])
            ax.set_xlabel("dot: as trained, line: turned and mirrored")
        ax.set(title=task)
        ax.grid(alpha=0.25)
    axes[0].set_ylabel("relative test error")
    _legend(figure, axes)
    return figure


def plot_ablations(records: Records) -> Any | None:
    """Errors of networks that lack one ingredient, each seed a dot."""
    panels = {task: found for task, found in records.items() if found}
    if not panels:
        return None
    figure, axes = _axes(len(panels), 4.2)
    for ax, (task, found) in zip(axes, panels.items(), strict=True):
        names, results = labels(found), scores(found)
        for row, (key, label) in enumerate(reversed(names.items())):
            (score,) = results[key].values()
            if not math.isfinite(score.mean):
                ax.text(0, row, f" {label}: diverged", va="center", fontsize=7)
                continue
            colour = COLOURS.get(key, "#999999")
            ax.barh(row, score.mean, color=colour, alpha=0.6)
            ax.plot(score.values, [row] * len(score.values), "o", ms=3, color="black")
            ax.text(0, row, f" {label}", va="center", fontsize=7)
        ax.set(title=task, yticks=[], xlabel="test error of one step (scaled MSE)")
    return figure
