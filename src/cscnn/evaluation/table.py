"""An evaluation for people."""

from __future__ import annotations

from typing import Any

COLUMNS = ("mse", "relative_l2", "vrmse", "spectrum_error")
Rows = list[tuple[str, ...]]
SHOWN = 8  #: steps of a rollout in the table


def table(result: dict[str, Any]) -> str:
    """The contents of evaluation.json as text."""
    return "\n\n".join(
        [_head(result), _one_step(result), _rollout(result), _symmetry(result), _cost(result)]
    )


def _head(result: dict[str, Any]) -> str:
    model, data = result["model"], result["data"]
    return (
        f"{result['run']}: {model['name']}, {model['parameters']:,} parameters\n"
        f"{data['windows']} windows of {data['trajectories']} trajectories, split "
        f"{data['split']}, {data['path']}"
    )


def _one_step(result: dict[str, Any]) -> str:
    found = result["one_step"]
    rows: Rows = [("one step", *COLUMNS)]
    rows += [(name, *_numbers(values)) for name, values in found["fields"].items()]
    rows += [("all", *_numbers(found)), ("persistence", *_numbers(found["persistence"]))]
    return _aligned(rows)


def _numbers(values: dict[str, Any]) -> tuple[str, ...]:
    return tuple(_number(values[column]) for column in COLUMNS)


def _rollout(result: dict[str, Any]) -> str:
    found = result["rollout"]
    steps = len(found["steps"])
    # about equally spaced, the last one included
    chosen = sorted({round(i * (steps - 1) / (SHOWN - 1)) for i in range(SHOWN)})
    still = found["persistence"]["relative_l2"]
    rows: Rows = [("rollout", *(f"step {found['steps'][i]}" for i in chosen))]
    for title, values in (
        ("time", found["times"]),
        ("mse", found["mse"]),
        ("relative_l2", found["relative_l2"]),
        ("persistence", still),
        ("correlation", found["correlation"]),
    ):
        rows.append((title, *(_number(values[i]) for i in chosen)))
    lost = found["correlation_time"]
    when = "not within these steps" if lost is None else f"after {_number(lost)} units of time"
    return (
        _aligned(rows)
        + f"\ncorrelation below 0.8: {when}; stable for {found['stable_steps']} of {steps} steps"
    )


def _symmetry(result: dict[str, Any]) -> str:
    found = result["symmetry"]
    rows: Rows = [("symmetry", "|f(gx) - gf(x)| / |f(gx) + gf(x)|", "floor")]
    rows += [(kind, _number(found[kind]), "") for kind in ("translation", "point group")]
    for kind, values, unit in (
        ("rotation", "angles", "°"),
        ("boost", "rapidities", ""),
    ):
        part = found[kind]
        if part is not None:
            for value, error, floor in zip(
                part[values], part["errors"], part["floor"], strict=True
            ):
                rows.append((f"{kind} {value:g}{unit}", _number(error), _number(floor)))
    text = _aligned(rows)
    if not found["interior"]:
        text += (
            "\nThe model sees the borders from everywhere: they are part of the translation error."
        )
    frames = found["frames"]
    if frames is not None:
        rows = [(f"{frames['kind']} frames", "mse", "relative_l2")]
        for value, error, relative in zip(
            frames["values"], frames["mse"], frames["relative_l2"], strict=True
        ):
            name = value if isinstance(value, str) else f"rapidity {value:g}"
            rows.append((name, _number(error), _number(relative)))
        rows.append(("worst", _number(frames["worst"]), ""))
        text += "\n\n" + _aligned(rows)
    return text


def _cost(result: dict[str, Any]) -> str:
    cost = result["cost"]
    return (
        f"cost: {cost['windows_per_second']:.3g} windows/s, {cost['peak_bytes'] / 1e6:,.1f} MB for "
        f"a window, {cost['parameters']:,} parameters"
    )


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _aligned(rows: Rows) -> str:
    """Columns: the first to the left, the others to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        rest = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        lines.append("  ".join([row[0].ljust(widths[0]), *rest]).rstrip())
    return "\n".join(lines)
