"""What the study was made to find out, and whether it was found, beyond the spread of the seeds."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from cscnn.study.summary import Record, Score, point_group, scores, training_seconds

#: The models of other people.
BASELINES = ("resnet", "clifford_resnet", "steerable_resnet", "fno", "gfno")
#: Those that do not have the symmetries of the grid by construction.
PLAIN = tuple(key for key in BASELINES if key != "steerable_resnet")
#: The same network with all steerable kernels and with the paper's.
KERNELS = ("cs_complete", "cs_resnet")
#: A network, the same without an ingredient, and what is said of it.
INGREDIENTS = (
    ("cs_resnet", "cs_fixed_head", "learnt head weights help"),
    ("ours", "ours_gate", "geometric products help"),
    ("ours", "ours_blind", "backgrounds help"),
    ("ours", "ours_implicit", "complete kernels help"),
    ("ours", "ours_no_norm", "normalisation helps"),
)


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, or an expectation of ours, and what was found.

    Attributes:
        text: the statement.
        verdict: ``"yes"``, ``"no"``, ``"within the spread of the seeds"`` or ``"unclear, as some
            trainings diverged"``; and how many seeds there are, if there are few.
        found: the numbers.
    """

    text: str
    verdict: str
    found: str


def compare(
    text: str,
    name: str,
    mine: Score,
    others: Mapping[str, Score],
    factor: float = 1.0,
    seeds: int = 1,
) -> Claim:
    """Whether an error is below ``factor`` times each of some others, for all seeds.

    Args:
        text: the statement.
        name: of the model.
        mine: its errors.
        others: name -> errors of those that it is compared with.
        factor: less than one if it is to be ahead by far.
        seeds: how many were planned; it is said if there are fewer.
    """
    best = min(others, key=lambda other: others[other].mean)
    found = f"{name} {mine}, {best} {others[best]}"
    if math.isfinite(mine.mean) and math.isfinite(others[best].mean) and others[best].mean:
        found += f": ratio {mine.mean / others[best].mean:.2f}"
    close = [o for o, score in others.items() if o != best and not mine.below(score, factor)]
    if close:
        found += "; not below " + ", ".join(f"{other} {others[other]}" for other in close)
    every = [mine, *others.values()]
    if all(mine.below(other, factor) for other in others.values()):
        verdict = "yes"
    elif any(factor * max(other.values) < min(mine.values) for other in others.values()):
        verdict = "no"
    elif any(score.diverged for score in every):
        verdict = "unclear, as some trainings diverged"
    else:
        verdict = "within the spread of the seeds"
    count = min(len(score.values) for score in every)
    if count < seeds:
        verdict += f", with {count} of {seeds} seeds"
    elif count == 1:
        verdict += ", with one seed"
    return Claim(text, verdict, found)


def claims(
    task: str,
    records: Sequence[Record],
    ablations: Sequence[Record] = (),
    longer: Sequence[Record] = (),
    faster: Collection[str] = (),
    expected: Collection[str] = (),
    seeds: int = 1,
    largest_size: int = 0,
) -> list[Claim]:
    """The verdicts of one task.

    Args:
        task: which.
        records: of all sizes of the training set.
        ablations: of networks that lack an ingredient.
        longer: of others that were trained for as long as ours.
        faster: which others need that, because their steps are cheaper.
        expected: models of the study: nothing is said of every baseline while some are missing.
        seeds: how many were planned.
        largest_size: of the training sets that were planned; by default that there is.
    """
    found = scores(records)
    labels = {r["contender"]: r["label"] for r in [*records, *ablations]}
    baselines = [key for key in BASELINES if key in found or key in expected]

    def named(keys: Collection[str], by: Mapping[str, Score | None]) -> dict[str, Score] | None:
        """Their errors; None if some are missing."""
        known = {labels[key]: score for key in keys if (score := by.get(key)) is not None}
        return known if len(known) == len(keys) and keys else None

    def verdict(
        text: str,
        key: str,
        others: Collection[str],
        by: Mapping[str, Score | None],
        factor: float = 1.0,
    ) -> list[Claim]:
        mine, rivals = by.get(key), named(others, by)
        if mine is None or rivals is None:
            return []
        return [compare(text, labels[key], mine, rivals, factor, seeds)]

    def of(size: int) -> dict[str, Score | None]:
        return {key: by_size.get(size) for key, by_size in found.items()}

    sizes = sorted({n for by_size in found.values() for n in by_size})
    if not sizes:
        return []
    largest_size = largest_size or sizes[-1]
    largest = of(largest_size)
    every = f"is ahead of every baseline ({len(baselines)})"
    result = []
    for key in ("cs_resnet", "ours"):
        for size in dict.fromkeys((sizes[0], sizes[-1])):
            text = f"{labels.get(key)} {every} with {size} training simulations"
            result += verdict(text, key, baselines, of(size))
    if task == "navier_stokes":
        text = "ours is at least 30 % below the best baseline"
        result += verdict(text, "ours", baselines, largest, 0.7)
    if task == "maxwell_spacetime":
        for key in ("cs_resnet", "ours"):
            text = f"{labels.get(key)} has at most half the error of ResNet"
            result += verdict(text, key, ("resnet",), largest, 0.5)
    text = "complete kernels are at least as good as implicit ones at equal"
    result += verdict(f"{text} parameters", KERNELS[0], KERNELS[1:], largest)

    late = {key: by_size.get(largest_size) for key, by_size in scores(longer).items()}
    if late:
        timed = {key: (late if key in faster else largest).get(key) for key in found}
        short = [r for r in records if r["contender"] not in faster]
        seconds = training_seconds([*short, *longer])
        claim = verdict(f"ours {every} at equal training time", "ours", baselines, timed)
        result += [_with_times(c, "ours", baselines, seconds) for c in claim]
        claim = verdict(f"{text} training time", KERNELS[0], KERNELS[1:], timed)
        result += [_with_times(c, KERNELS[0], KERNELS[1:], seconds) for c in claim]

    parts = scores(ablations)
    borrowed = {r["contender"] for r in ablations if r.get("borrowed")}
    for with_it, without, text in INGREDIENTS:
        for size in {*parts.get(with_it, {})} & {*parts.get(without, {})}:
            by = {key: parts[key][size] for key in (with_it, without)}
            said = f"{text}, at the same learning rate" if without in borrowed else text
            result += verdict(said, with_it, (without,), by)
    return [*result, *_symmetry(records)]


def _with_times(
    claim: Claim, key: str, others: Collection[str], seconds: Mapping[str, float]
) -> Claim:
    """Say how far from equal training times were."""
    ratios = [seconds[k] / seconds[key] for k in others if k in seconds and key in seconds]
    if not ratios:
        return claim
    low, high = f"{min(ratios):.2f}", f"{max(ratios):.2f}"
    between = low if low == high else f"{low} to {high}"
    verdict = claim.verdict + (", with less time for some" if min(ratios) < 0.9 else "")
    return Claim(claim.text, verdict, f"{claim.found}; time of the others {between} of it")


def _symmetry(records: Sequence[Record]) -> list[Claim]:
    errors = [point_group(r) for r in records if r["contender"] not in PLAIN and "point_group" in r]
    if not errors:
        return []
    worst = max(errors)
    return [
        Claim(
            "steerable models commute with the symmetries of the grid to 1e-5 in float32",
            "yes" if worst <= 1e-5 else "no",
            f"worst of {len(errors)} trained models: {worst:.1e}",
        )
    ]
