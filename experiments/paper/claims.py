"""What the study was made to find out, and whether it holds, beyond the spread of the seeds."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from experiments.paper.outcomes import Outcome, Score, Scores, scores, training_seconds

#: The models of other people.
BASELINES = (
    "resnet", "clifford_resnet", "steerable_resnet", "fno", "gfno", "unet", "convnext_unet",
)  # fmt: skip
#: Those that do not have the symmetries of the grid by construction.
WITHOUT_SYMMETRY = tuple(key for key in BASELINES if key != "steerable_resnet")
#: The same network with all steerable kernels and with the paper's.
COMPLETE, IMPLICIT = "cs_complete", "cs_resnet"
#: Ours, and the same with differential operators for kernels.
OURS, DIFFERENTIAL = "ours", ("differential2", "differential4")
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
    """A statement of the paper, or an expectation of ours, and whether it holds.

    Attributes:
        text: the statement.
        verdict: ``"yes"``, ``"no"``, ``"within the spread of the seeds"`` or ``"unclear, as some
            trainings diverged"``; and how many seeds there are, if there are few.
        numbers: on which the verdict rests.
    """

    text: str
    verdict: str
    numbers: str


def compare(
    text: str,
    name: str,
    mine: Score,
    others: Mapping[str, Score],
    factor: float = 1.0,
    seeds: int = 1,
) -> Claim:
    """Whether an error is below ``factor`` times each of the others, for all seeds.

    Args:
        text: the statement.
        name: of the model.
        mine: its errors.
        others: name -> errors of those that it is compared with.
        factor: less than one if it is to be ahead by far.
        seeds: how many were planned; it is said if there are fewer.
    """
    best = min(others, key=lambda other: others[other].mean)
    numbers = f"{name} {mine}, {best} {others[best]}"
    if math.isfinite(mine.mean) and math.isfinite(others[best].mean) and others[best].mean:
        numbers += f": ratio {mine.mean / others[best].mean:.2f}"
    close = [o for o, score in others.items() if o != best and not mine.below(score, factor)]
    if close:
        numbers += "; not below " + ", ".join(f"{other} {others[other]}" for other in close)
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
    return Claim(text, verdict, numbers)


@dataclass(frozen=True)
class Evidence:
    """What is known of one task.

    Attributes:
        task: which.
        scaling: outcomes of all sizes of the training set.
        ablations: of networks that lack an ingredient.
        equal_time: of others that were trained for as long as ours.
        faster: which others need that, because their steps are cheaper.
        expected: models of the study: nothing is said of every baseline while some are missing.
        seeds: how many were planned.
        planned_size: the largest of the training sets that were planned; by default that there is.
    """

    task: str
    scaling: Sequence[Outcome]
    ablations: Sequence[Outcome] = ()
    equal_time: Sequence[Outcome] = ()
    faster: Collection[str] = ()
    expected: Collection[str] = ()
    seeds: int = 1
    planned_size: int = 0

    @cached_property
    def scores(self) -> Scores:
        """Of all sizes of the training set."""
        return scores(self.scaling)

    @cached_property
    def labels(self) -> dict[str, str]:
        """Contender -> name for people."""
        return {o.key: o.label for o in (*self.scaling, *self.ablations)}

    @property
    def sizes(self) -> list[int]:
        """Of the training sets."""
        return sorted({size for by_size in self.scores.values() for size in by_size})

    @property
    def baselines(self) -> list[str]:
        """Those that ours is to be ahead of."""
        return [key for key in BASELINES if key in self.scores or key in self.expected]

    def of_size(self, size: int) -> dict[str, Score]:
        """Contender -> errors with one size of the training set."""
        return {key: by_size[size] for key, by_size in self.scores.items() if size in by_size}

    @property
    def largest(self) -> dict[str, Score]:
        """Contender -> errors with the largest training set."""
        return self.of_size(self.planned_size or self.sizes[-1])

    def verdict(
        self,
        text: str,
        key: str,
        others: Collection[str],
        errors: Mapping[str, Score],
        factor: float = 1.0,
    ) -> list[Claim]:
        """`compare` by keys; nothing if errors are missing."""
        if not others or not {key, *others} <= {*errors}:
            return []
        rivals = {self.labels[other]: errors[other] for other in others}
        return [compare(text, self.labels[key], errors[key], rivals, factor, self.seeds)]


def claims(evidence: Evidence) -> list[Claim]:
    """The verdicts of one task."""
    if not evidence.sizes:
        return []
    return [
        *_ahead_of_baselines(evidence),
        *_expectations(evidence),
        *_kernels(evidence),
        *_equal_time(evidence),
        *_ingredients(evidence),
        *_symmetry(evidence.scaling),
    ]


def _every(evidence: Evidence) -> str:
    return f"is ahead of every baseline ({len(evidence.baselines)})"


def _ahead_of_baselines(evidence: Evidence) -> list[Claim]:
    claims = []
    for key in ("cs_resnet", "ours"):
        for size in dict.fromkeys((evidence.sizes[0], evidence.sizes[-1])):
            label = evidence.labels.get(key)
            text = f"{label} {_every(evidence)} with {size} training simulations"
            claims += evidence.verdict(text, key, evidence.baselines, evidence.of_size(size))
    return claims


def _expectations(evidence: Evidence) -> list[Claim]:
    """Of single tasks."""
    if evidence.task == "navier_stokes":
        text = "ours is at least 30 % below the best baseline"
        return evidence.verdict(text, "ours", evidence.baselines, evidence.largest, 0.7)
    claims = []
    if evidence.task == "maxwell_spacetime":
        for key in ("cs_resnet", "ours"):
            text = f"{evidence.labels.get(key)} has at most half the error of ResNet"
            claims += evidence.verdict(text, key, ("resnet",), evidence.largest, 0.5)
    return claims


KERNELS_AT_EQUAL = "complete kernels are at least as good as implicit ones at equal"


def _kernels(evidence: Evidence) -> list[Claim]:
    text = f"{KERNELS_AT_EQUAL} parameters"
    claims = evidence.verdict(text, COMPLETE, (IMPLICIT,), evidence.largest)
    for key in DIFFERENTIAL:
        text = f"{evidence.labels.get(key)}, is at least as good as ours at equal parameters"
        claims += evidence.verdict(text, key, (OURS,), evidence.largest)
    return claims


def _equal_time(evidence: Evidence) -> list[Claim]:
    if not evidence.equal_time:
        return []
    size = evidence.planned_size or evidence.sizes[-1]
    late = {k: sizes[size] for k, sizes in scores(evidence.equal_time).items() if size in sizes}
    largest = evidence.largest
    errors = {
        key: source[key]
        for key in evidence.scores
        if key in (source := late if key in evidence.faster else largest)
    }
    short = [o for o in evidence.scaling if o.key not in evidence.faster]
    seconds = training_seconds([*short, *evidence.equal_time])
    claims = []
    for text, key, others in (
        (f"ours {_every(evidence)} at equal", "ours", evidence.baselines),
        (KERNELS_AT_EQUAL, COMPLETE, [IMPLICIT]),
    ):
        for claim in evidence.verdict(f"{text} training time", key, others, errors):
            claims.append(_with_times(claim, key, others, seconds))
    return claims


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
    numbers = f"{claim.numbers}; time of the others {between} of it"
    return replace(claim, verdict=verdict, numbers=numbers)


def _ingredients(evidence: Evidence) -> list[Claim]:
    ablated = scores(evidence.ablations)
    borrowed = {o.key for o in evidence.ablations if o.borrowed}
    claims = []
    for complete, without, text in INGREDIENTS:
        for size in {*ablated.get(complete, {})} & {*ablated.get(without, {})}:
            errors = {key: ablated[key][size] for key in (complete, without)}
            if without in borrowed:
                text = f"{text}, at the same learning rate"
            claims += evidence.verdict(text, complete, (without,), errors)
    return claims


def _symmetry(outcomes: Sequence[Outcome]) -> list[Claim]:
    steerable = [o.point_group for o in outcomes if o.key not in WITHOUT_SYMMETRY]
    violations = [violation for violation in steerable if violation is not None]
    if not violations:
        return []
    worst = max(violations)
    return [
        Claim(
            "steerable models commute with the rotations and reflections of the grid to 1e-5 in "
            "float32",
            "yes" if worst <= 1e-5 else "no",
            f"worst of {len(violations)} trained models: {worst:.1e}",
        )
    ]
