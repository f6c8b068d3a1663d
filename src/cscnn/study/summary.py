"""From records to numbers that can be compared: means, spreads, and what they say."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

Record = dict[str, Any]


@dataclass(frozen=True)
class Score:
    """Errors of the seeds of one model on one size.

    Attributes:
        values: one for each seed; infinite where training diverged.
    """

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Of the seeds."""
        return sum(self.values) / len(self.values)

    @property
    def spread(self) -> float:
        """Half the distance of the best and the worst seed."""
        return (max(self.values) - min(self.values)) / 2 if math.isfinite(self.mean) else 0.0

    def below(self, other: Score) -> bool:
        """Whether all seeds are below all seeds of the other."""
        return max(self.values) < min(other.values)

    def __str__(self) -> str:
        if not math.isfinite(self.mean):
            return "diverged"
        return (
            f"{self.mean:.3g} ± {self.spread:.1g}" if len(self.values) > 1 else f"{self.mean:.3g}"
        )


def scores(records: Sequence[Record]) -> dict[str, dict[int, Score]]:
    """Contender -> trajectories -> errors of its seeds."""
    values: dict[str, dict[int, list[float]]] = {}
    for record in records:
        error = record.get("error")
        by_size = values.setdefault(record["contender"], {})
        by_size.setdefault(record["trajectories"], []).append(
            math.inf if error is None else float(error)
        )
    return {
        key: {n: Score(tuple(found)) for n, found in sorted(by_size.items())}
        for key, by_size in values.items()
    }


#: The models of other people.
BASELINES = ("resnet", "clifford_resnet", "steerable_resnet", "fno", "gfno")
#: The same network with all steerable kernels and with the paper's.
KERNELS = ("cs_complete", "cs_resnet")


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, or an expectation of ours, and what was found.

    Attributes:
        text: the statement.
        verdict: ``"yes"``, ``"no"`` or ``"within the spread of the seeds"``, or that there is one.
        found: the numbers.
    """

    text: str
    verdict: str
    found: str


def compare(text: str, ours: Score, other: Score, names: tuple[str, str], factor: float) -> Claim:
    """Whether one error is below ``factor`` times another, beyond the spread of the seeds."""
    limit = Score(tuple(factor * value for value in other.values))
    found = f"{names[0]} {ours}, {names[1]} {other}"
    if math.isfinite(ours.mean) and math.isfinite(other.mean) and other.mean:
        found += f": ratio {ours.mean / other.mean:.2f}"
    one = ", with one seed" if min(len(ours.values), len(other.values)) == 1 else ""
    if ours.below(limit):
        return Claim(text, f"yes{one}", found)
    return Claim(text, f"no{one}" if limit.below(ours) else "within the spread of the seeds", found)


def claims(
    task: str,
    records: Sequence[Record],
    ablations: Sequence[Record] = (),
    longer: Sequence[Record] = (),
    faster: Collection[str] = (),
) -> list[Claim]:
    """What the study was made to find out, for one task.

    Args:
        task: which.
        records: of all sizes of the training set.
        ablations: of networks that lack an ingredient.
        longer: of others that were trained for as long as ours.
        faster: which others need that, because their steps are cheaper.
    """
    found, result = scores(records), []
    labels = {r["contender"]: r["label"] for r in [*records, *ablations]}
    there = [key for key in BASELINES if found.get(key)]
    for key in ("cs_resnet", "ours"):
        if key not in found or not there:
            continue
        for size in (min(found[key]), max(found[key])):
            rivals = [k for k in there if size in found[k]]
            if not rivals:
                continue
            best = min(rivals, key=lambda k: found[k][size].mean)
            result.append(
                compare(
                    f"{labels[key]} is ahead of every baseline with {size} training simulations",
                    found[key][size], found[best][size], (labels[key], labels[best]), 1.0,
                )
            )  # fmt: skip
    sizes = found.get("ours", {})
    shared = [n for n in sizes if any(n in found[k] for k in there)]
    if task == "navier_stokes" and shared:
        size = max(shared)
        best = min((k for k in there if size in found[k]), key=lambda k: found[k][size].mean)
        result.append(
            compare(
                "ours is at least 30 % below the best baseline", sizes[size], found[best][size],
                (labels["ours"], labels[best]), 0.7,
            )
        )  # fmt: skip
    result += _equal_time(found, labels, longer, faster)
    if task == "maxwell_spacetime" and "resnet" in found:
        for key in ("cs_resnet", "ours"):
            if size := max({*found.get(key, {})} & {*found["resnet"]}, default=0):
                result.append(
                    compare(
                        f"{labels[key]} has at most half the error of ResNet", found[key][size],
                        found["resnet"][size], (labels[key], labels["resnet"]), 0.5,
                    )
                )  # fmt: skip
    complete, implicit = KERNELS
    if size := max({*found.get(complete, {})} & {*found.get(implicit, {})}, default=0):
        result.append(
            compare(
                "complete kernels are at least as good as implicit ones at equal parameters",
                found[complete][size], found[implicit][size],
                (labels[complete], labels[implicit]), 1.0,
            )
        )  # fmt: skip
    parts = scores(ablations)
    pairs = (
        ("cs_resnet", "cs_fixed_head", "learnt head weights help"),
        ("ours", "ours_gate", "geometric products help"),
        ("ours", "ours_blind", "backgrounds help"),
        ("ours", "ours_implicit", "complete kernels help"),
        ("ours", "ours_no_norm", "normalisation helps"),
    )
    for with_it, without, text in pairs:
        if size := max({*parts.get(with_it, {})} & {*parts.get(without, {})}, default=0):
            result.append(
                compare(
                    text, parts[with_it][size], parts[without][size],
                    (labels[with_it], labels[without]), 1.0,
                )
            )  # fmt: skip
    steerable = [
        r for r in records if r["contender"] not in BASELINES and r.get("point_group") is not None
    ]
    if steerable:
        worst = max(float(r["point_group"]) for r in steerable)
        result.append(
            Claim(
                "steerable models commute with the symmetries of the grid to 1e-5 in float32",
                "yes" if worst <= 1e-5 else "no",
                f"worst of {len(steerable)} trained models: {worst:.1e}",
            )
        )
    return result


def _equal_time(
    found: dict[str, dict[int, Score]],
    labels: dict[str, str],
    longer: Sequence[Record],
    faster: Collection[str],
) -> list[Claim]:
    """Networks beside others of their training time: trained longer where their steps are cheap."""
    late = scores(longer)
    sizes = {n for by in late.values() for n in by} & {*found.get("ours", {})}
    if not sizes:
        return []
    size = max(sizes)

    def timed(key: str) -> Score | None:
        return (late if key in faster else found).get(key, {}).get(size)

    def verdict(text: str, key: str, other: str) -> list[Claim]:
        mine, its = timed(key), timed(other)
        if mine is None or its is None:
            return []
        text = f"{text} at equal training time"
        return [compare(text, mine, its, (labels[key], labels[other]), 1.0)]

    result = []
    there = [key for key in BASELINES if key in found]
    scored = {key: score for key in there if (score := timed(key)) is not None}
    if there and len(scored) == len(there):  # none is missing
        best = min(scored, key=lambda key: scored[key].mean)
        result += verdict("ours is ahead of every baseline", "ours", best)
    return result + verdict("complete kernels are at least as good as implicit ones", *KERNELS)
