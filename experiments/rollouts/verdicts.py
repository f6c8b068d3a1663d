"""What the study was made to find out: who wins which steps."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from experiments.rollouts.records import Record


def compare(records: Sequence[Record], ours: Collection[str]) -> list[str]:
    """The best of ours against each other network at every step, in words.

    Ours is that whose rollouts of the validation split are the best. A step is won or lost if the
    seeds do not overlap: the worst of one is better than the best of the other.

    Args:
        records: of all networks, with the same number of seeds.
        ours: keys of our networks.
    """
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(record.contender, []).append(record)
    mine = [key for key in groups if key in ours]
    if not mine:
        return []
    best = min(mine, key=lambda key: _mean([record.score for record in groups[key]]))
    return [
        f"{best} against {key}: {_steps(groups[best], rows)}"
        for key, rows in groups.items()
        if key not in ours
    ]


def _steps(mine: Sequence[Record], theirs: Sequence[Record]) -> str:
    """Who wins which steps, and by how much at the last."""
    horizon = max(len(record.errors) for record in (*mine, *theirs))
    if not horizon:
        return "both diverged"
    verdicts: dict[str, list[int]] = {"below": [], "above": [], "within the spread": []}
    for step in range(1, horizon + 1):
        a, b = ([record.error(step) for record in rows] for rows in (mine, theirs))
        verdict = "below" if max(a) < min(b) else "above" if min(a) > max(b) else ""
        verdicts[verdict or "within the spread"].append(step)
    parts = [f"{name} at steps {_ranges(steps)}" for name, steps in verdicts.items() if steps]
    ratio = _mean([r.error(horizon) for r in mine]) / _mean([r.error(horizon) for r in theirs])
    return f"{', '.join(parts)}; ratio of errors at step {horizon}: {ratio:.2f}"


def _ranges(steps: Sequence[int]) -> str:
    """1-3, 5."""
    parts: list[list[int]] = []
    for step in steps:
        if parts and step == parts[-1][-1] + 1:
            parts[-1].append(step)
        else:
            parts.append([step])
    return ", ".join(f"{p[0]}-{p[-1]}" if len(p) > 1 else f"{p[0]}" for p in parts)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
