"""An evaluation as text."""

from __future__ import annotations

import math

from cscnn.forecasting.evaluation.lifetimes import quantile
from cscnn.forecasting.evaluation.results import (
    Cost,
    Evaluation,
    ObserverErrors,
    OneStepErrors,
    RolloutErrors,
    SymmetryErrors,
)

EXACT = 1e-3  #: a symmetry error below which a symmetry holds up to rounding
SHOWN = 8  #: steps of a rollout in the table

Rows = list[tuple[str, ...]]


def table(evaluation: Evaluation) -> str:
    """The contents of evaluation.json as text."""
    return "\n\n".join(
        [
            _head(evaluation),
            verdict(evaluation),
            _one_step(evaluation.one_step),
            _rollout(evaluation.rollout, evaluation.data.time_unit),
            _lifetimes(evaluation.rollout),
            *_quantities(evaluation.rollout),
            *_laws(evaluation.rollout),
            *_symmetry(evaluation.symmetry),
            _cost(evaluation.cost),
        ]
    )


def _head(evaluation: Evaluation) -> str:
    model, data = evaluation.model, evaluation.data
    return (
        f"{evaluation.run}: {model.name}, {model.parameters:,} parameters\n"
        f"{data.windows} windows of {data.trajectories} trajectories, split {data.split}, "
        f"{data.path}" + (f", stride {data.stride}" if data.stride > 1 else "")
    )


def verdict(evaluation: Evaluation) -> str:
    """What the numbers say, in a sentence or two: how good, how long, how symmetric.

    Example::

        In short: one step is off by 12 % of the field, the persistence forecast by 40 %. Rollouts
        beat it for all 10 steps. Exact symmetries hold to 3e-07.
    """
    error = evaluation.one_step.total["relative_l2"]
    simple = evaluation.one_step.persistence["relative_l2"]
    steps, last = len(evaluation.rollout.steps), evaluation.rollout.persistence_frames
    if not error < simple:
        rollouts = "It has learnt nothing of use yet: train it longer"
    elif last is None:
        rollouts = f"Rollouts beat it for all {steps} steps"
    else:
        rollouts = f"Rollouts beat it for {last:.3g} of {steps} steps"
    return (
        f"In short: one step is off by {_share(error)} of the field, the persistence forecast by "
        f"{_share(simple)}. {rollouts}. {_held(evaluation.symmetry)}."
    )


def _held(symmetry: SymmetryErrors) -> str:
    """How exactly a network has the symmetries that can be exact."""
    if not math.isfinite(symmetry.translation + symmetry.point_group):
        return "Symmetries could not be measured"
    title, missed = "Exact symmetries", max(symmetry.translation, symmetry.point_group)
    if not symmetry.interior:  # translations change what is seen beyond borders, in any network
        title, missed = "Rotations and reflections of the grid", symmetry.point_group
    if missed < EXACT:
        return f"{title} hold to {missed:.0e}"
    return f"{title} are missed by {_share(missed)}"


def _share(value: float) -> str:
    return f"{100 * value:.3g} %" if math.isfinite(value) else "an unknown part"


def _one_step(one_step: OneStepErrors) -> str:
    names = list(one_step.total)
    rows: Rows = [("one step", *names)]
    for title, errors in (
        *one_step.fields.items(),
        ("all fields", one_step.total),
        ("persistence forecast", one_step.persistence),
    ):
        rows.append((title, *(_number(errors.get(name, math.nan)) for name in names)))
    return _aligned(rows)


def _rollout(rollout: RolloutErrors, unit: str) -> str:
    count = len(rollout.steps)
    # about equally spaced, the last one included
    chosen = sorted({round(i * (count - 1) / (SHOWN - 1)) for i in range(SHOWN)})
    rows: Rows = [("rollout", *(f"step {rollout.steps[i]}" for i in chosen))]
    error = rollout.spread["relative_l2"]
    for title, values in (
        ("time" + f" [{unit}]" * bool(unit), rollout.times),
        ("mse", rollout.mse),
        ("relative_l2", rollout.relative_l2),
        ("  a tenth of trajectories below", error.low),
        ("  a tenth of trajectories above", error.high),
        ("persistence forecast", rollout.persistence),
        ("correlation", rollout.correlation),
    ):
        rows.append((title, *(_number(values[i]) for i in chosen)))
    return (
        _aligned(rows) + f"\nstable for {rollout.stable_steps} of {count} steps; "
        f"{rollout.lost} of {len(rollout.stable)} trajectories lost"
    )


def _lifetimes(rollout: RolloutErrors) -> str:
    steps = len(rollout.steps)
    rows: Rows = [("steps that forecasts last", "correlation ≥ 0.8", "better than persistence")]
    for title, errors in (*rollout.fields.items(), ("all fields", rollout)):
        frames = (errors.correlation_frames, errors.persistence_frames)
        rows.append((title, *(_lifetime(value, steps) for value in frames)))
    for share, title in ((0.1, "  a tenth of trajectories at most"), (0.5, "  half of them")):
        quantiles = (quantile(rollout.lifetimes[n], share) for n in ("correlation", "persistence"))
        rows.append((title, *(_lifetime(value, steps) for value in quantiles)))
    return _aligned(rows)


def _lifetime(value: float | None, steps: int) -> str:
    """Steps; at least all of the rollout if it was not long enough to tell."""
    return f"≥ {steps}" if value is None else _number(value)


def _quantities(rollout: RolloutErrors) -> list[str]:
    if not rollout.quantities:
        return []
    last = max(rollout.stable_steps, 1)
    rows: Rows = [("mean over space", "start", f"forecast, step {last}", f"truth, step {last}")]
    for part in rollout.quantities.values():
        curves = (part.curves.prediction, part.curves.target)
        title = f"{part.title}, {part.formula}" + f" in {part.units}" * bool(part.units)
        numbers = (part.known, *(curve.mean[last - 1] for curve in curves))
        rows.append((title, *map(_number, numbers)))
    return [_aligned(rows)]


def _laws(rollout: RolloutErrors) -> list[str]:
    if not rollout.laws:
        return []
    rows: Rows = [("laws of physics: relative residual", "forecast", "truth")]
    for law in rollout.laws.values():
        title = f"{law.meaning}, {law.equation}"
        rows.append((title, _number(law.prediction), _number(law.target)))
    return [_aligned(rows)]


def _symmetry(symmetry: SymmetryErrors) -> list[str]:
    rows: Rows = [
        ("symmetry", "|f(gx) - gf(x)| / |f(gx) + gf(x)|", "interpolation"),
        ("translation", _number(symmetry.translation), ""),
        ("point group", _number(symmetry.point_group), ""),
    ]
    for title, motion, unit in (
        ("rotation", symmetry.rotation, "°"),
        ("boost", symmetry.boost, ""),
    ):
        if motion is not None:
            for value, *errors in zip(motion.values, motion.errors, motion.floors, strict=True):
                rows.append((f"{title} {value:g}{unit}", *map(_number, errors)))
    text = _aligned(rows)
    if extent := " × ".join(str(2 * n + 1) for n in symmetry.receptive_field):
        text += f"\nreceptive field: {extent} points"
    if not symmetry.interior:
        text += (
            "\nIt reaches the borders from every point. So the translation error is that of the "
            "borders:\nno network commutes with a shift that brings other borders into view."
        )
    return [text] if symmetry.observers is None else [text, _observers(symmetry.observers)]


def _observers(observers: ObserverErrors) -> str:
    count = f", {observers.windows} windows" if observers.windows else ""
    rows: Rows = [(f"{observers.kind} observers{count}", "mse", "relative_l2")]
    for observer, *errors in zip(
        observers.observers, observers.mse, observers.relative_l2, strict=True
    ):
        name = observer if isinstance(observer, str) else f"rapidity {observer:g}"
        rows.append((name, *map(_number, errors)))
    rows.append(("worst", _number(observers.worst), ""))
    return _aligned(rows)


def _cost(cost: Cost) -> str:
    return (
        f"cost: {cost.windows_per_second:.3g} windows/s, {cost.peak_bytes / 1e6:,.1f} MB for a "
        f"window, {cost.parameters:,} parameters"
    )


def _number(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "–"


def _aligned(rows: Rows) -> str:
    """Columns: the first to the left, the others to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        rest = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        lines.append("  ".join([row[0].ljust(widths[0]), *rest]).rstrip())
    return "\n".join(lines)
