"""What the study was made to find out, and whether it holds for every seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from experiments.boosts.records import Record

OURS, COMPLETE = "differential", "complete"


@dataclass(frozen=True)
class Verdict:
    """A target, and whether it is met.

    Attributes:
        text: the target.
        verdict: ``"met"``, ``"missed"`` or ``"no records yet"``, and for how many seeds.
        numbers: of each seed: what was measured, beside its limit.
    """

    text: str
    verdict: str
    numbers: str


Pair = Callable[[int], tuple[float, float]]  #: seed -> what was measured, and its limit


class Evidence:
    """Records of one task by model, spacing, displacement and seed.

    Args:
        records: of all parts.
        seeds: how many were planned.
    """

    def __init__(self, records: Sequence[Record], seeds: int):
        self.seeds = seeds
        self.records = {(r.model, round(r.spacing, 9), r.seed): r for r in _shortest(records)}

    def error(self, model: str, spacing: float, seed: int, rapidity: float) -> float:
        """Of a training; raises KeyError if there is none."""
        return self.records[model, round(spacing, 9), seed].error(rapidity)

    def others(self, spacing: float, seed: int, rapidity: float) -> dict[str, float]:
        """Errors of all models but ours on a grid."""
        errors = {
            model: record.error(rapidity)
            for (model, h, number), record in self.records.items()
            if model != OURS and (h, number) == (round(spacing, 9), seed)
        }
        if not errors:
            raise KeyError(f"no other model has seed {seed}")
        return errors

    def verdict(self, text: str, pair: Pair) -> Verdict:
        """Whether what was measured is at most its limit, for every seed."""
        pairs: list[tuple[float, float]] = []
        for seed in range(self.seeds):
            try:
                pairs.append(pair(seed))
            except KeyError:  # not run yet
                continue
        if not pairs:
            return Verdict(text, "no records yet", "")
        met = sum(math.isfinite(value) and value <= limit for value, limit in pairs)
        verdict = "met" if met == len(pairs) else "missed"
        of = f"{len(pairs)} of {self.seeds} seeds" if len(pairs) < self.seeds else "all seeds"
        verdict += f" ({of})" if met == len(pairs) else f" (met by {met} of {len(pairs)} seeds)"
        numbers = ", ".join(
            f"{value:.3g} {'≤' if value <= limit else '>'} {limit:.3g}" for value, limit in pairs
        )
        return Verdict(text, verdict, numbers)


def _shortest(records: Sequence[Record]) -> list[Record]:
    """Those of the shortest displacement."""
    least = min((r.displacement for r in records), default=0.0)
    return [r for r in records if r.displacement <= 1.001 * least]


def _by_length(records: Sequence[Record]) -> dict[int, list[Record]]:
    """Records by factor of the number of steps, ascending."""
    lengths = sorted({r.prolongation for r in records} | {1})
    return {n: [r for r in records if r.prolongation == n] for n in lengths}


def verdicts(task: str, records: Sequence[Record], seeds: int) -> list[Verdict]:
    """The targets of a task."""
    judges: dict[str, Callable[[Evidence], list[Verdict]]]
    judges = {"sine_gordon": _solitons, "charges": _charges}
    judge = judges.get(task, lambda _: [])
    result: list[Verdict] = []
    for length, own in _by_length(records).items():
        more = f", {length} × the steps" if length > 1 else ""
        result += [replace(v, text=v.text + more) for v in judge(Evidence(own, seeds))]
    return result


def _ratio(evidence: Evidence, spacing: float, rapidity: float, most: float) -> Pair:
    """Our error for an observer over that at rest, and the largest that is allowed."""

    def pair(seed: int) -> tuple[float, float]:
        at_rest = evidence.error(OURS, spacing, seed, 0.0)
        return evidence.error(OURS, spacing, seed, rapidity) / at_rest, most

    return pair


def _excess(evidence: Evidence, model: str, spacing: float, seed: int) -> float:
    """By how much the error at rapidity 0.5 is above that at rest."""
    at_rest, moving = (evidence.error(model, spacing, seed, rapidity) for rapidity in (0.0, 0.5))
    return moving - at_rest


def _convergence(evidence: Evidence, coarse: float) -> Verdict:
    """Whether the excess falls at second order; those of complete kernels beside it."""
    fine = coarse / 2

    def pair(seed: int) -> tuple[float, float]:
        return _excess(evidence, OURS, fine, seed), _excess(evidence, OURS, coarse, seed) / 4

    verdict = evidence.verdict(
        f"excess error at rapidity 0.5 with h = {fine:g} at most a quarter of that with {coarse:g}",
        pair,
    )
    try:
        others = [
            sum(_excess(evidence, COMPLETE, h, seed) for seed in range(evidence.seeds))
            for h in (fine, coarse)
        ]
    except KeyError:  # not run yet
        return verdict
    ratio = f"; complete kernels: {others[0] / others[1]:.2g} of it on average"
    return Verdict(verdict.text, verdict.verdict, verdict.numbers + ratio)


def _solitons(evidence: Evidence) -> list[Verdict]:
    h = 0.2
    return [
        evidence.verdict(
            "at rest, error not above that of complete kernels (h = 0.2)",
            lambda s: (evidence.error(OURS, h, s, 0.0), evidence.error(COMPLETE, h, s, 0.0)),
        ),
        evidence.verdict(
            "at rapidity 0.5, error at most a fifth of the best competitor's (h = 0.2)",
            lambda s: (
                evidence.error(OURS, h, s, 0.5),
                min(evidence.others(h, s, 0.5).values()) / 5,
            ),
        ),
        evidence.verdict(
            "at rapidity 0.5, at most 2 × the error at rest (h = 0.2)",
            _ratio(evidence, h, 0.5, 2.0),
        ),
        evidence.verdict(
            "at rapidity 0.5, at most 1.25 × the error at rest (h = 0.1)",
            _ratio(evidence, h / 2, 0.5, 1.25),
        ),
        *(_convergence(evidence, coarse) for coarse in (2 * h, h)),
    ]


def _charges(evidence: Evidence) -> list[Verdict]:
    h = 1.0
    result = [
        evidence.verdict(
            "at rest, error below that of complete kernels",
            lambda s: (evidence.error(OURS, h, s, 0.0), evidence.error(COMPLETE, h, s, 0.0)),
        )
    ]
    for rapidity, most in ((0.5, 1.35), (0.75, 2.0)):
        result += [
            evidence.verdict(
                f"at rapidity {rapidity}, at most {most:g} × the error at rest",
                _ratio(evidence, h, rapidity, most),
            ),
            evidence.verdict(
                f"at rapidity {rapidity}, error at most a tenth of that of complete kernels",
                lambda s, r=rapidity: (  # type: ignore[misc]
                    evidence.error(OURS, h, s, r),
                    evidence.error(COMPLETE, h, s, r) / 10,
                ),
            ),
        ]
    return result
