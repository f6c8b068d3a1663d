"""Verdicts: what may be called ahead, and when nothing may be said."""

import math
from dataclasses import replace

import pytest

from experiments.paper.claims import Claim, Evidence, claims, compare
from experiments.paper.outcomes import Outcome, Score, scores, step_seconds
from tests.experiments.tiny import outcome

UNCLEAR = "unclear, as some trainings diverged"
SPREAD = "within the spread of the seeds"


def verdicts(claims: list[Claim]) -> dict[str, str]:
    """Statement -> verdict."""
    return {claim.text: claim.verdict for claim in claims}


def verdict(mine: Score, *others: Score, factor: float = 1.0) -> str:
    named = {f"other {i}": other for i, other in enumerate(others)}
    return compare("", "mine", mine, named, factor).verdict


def test_scores() -> None:
    by_key = scores([*(outcome("a", e) for e in (1.0, 2.0, 3.0)), outcome("b", None)])
    assert by_key["a"][8].mean == 2.0
    assert str(by_key["a"][8]) == "2 ± 1"
    assert str(by_key["b"][8]) == "diverged"
    partly = Score((1.0, math.inf, 3.0))
    assert (partly.mean, partly.spread, partly.diverged) == (2.0, 1.0, 1)
    assert str(partly) == "2 ± 1 (1 of 3 diverged)"


def test_verdicts_are_beyond_the_spread() -> None:
    low, mixed, high = Score((1.0, 1.1)), Score((1.0, 4.2)), Score((4.0, 4.1))
    assert verdict(low, high) == "yes"
    assert verdict(mixed, high) == SPREAD
    assert verdict(high, low) == "no"
    assert verdict(low, high, factor=0.1) == "no"
    assert verdict(Score((0.4, 0.6)), Score((1.01, 1.02)), factor=0.5) == SPREAD
    assert verdict(Score((1.0,)), Score((2.0,))) == "yes, with one seed"
    assert compare("", "", low, {"x": high}, seeds=3).verdict == "yes, with 2 of 3 seeds"


def test_diverged_trainings() -> None:
    low, lost, partly = Score((1.0, 1.1)), Score((math.inf,) * 2), Score((1.0, math.inf))
    assert verdict(low, lost) == "yes"
    assert verdict(lost, low) == "no"
    assert verdict(lost, lost) == UNCLEAR
    assert verdict(partly, Score((5.0, 5.1))) == UNCLEAR
    assert verdict(low, partly) == UNCLEAR


def test_every_other_has_to_be_worse() -> None:
    """Also one whose mean is not the best, and one of which some trainings diverged."""
    mine, best = Score((0.27, 0.28, 0.28)), Score((0.30, 0.30, 0.30))
    wide, broken = Score((0.25, 0.35, 0.35)), Score((0.25, 0.5, math.inf))
    assert verdict(mine, best) == "yes"
    assert verdict(mine, best, wide) == SPREAD
    assert verdict(mine, best, broken) == UNCLEAR
    claim = compare("", "mine", mine, {"best": best, "wide": wide})
    assert "best 0.3 ± 0" in claim.numbers
    assert "not below wide" in claim.numbers


def test_differential_kernels_are_compared_with_ours() -> None:
    outcomes = [outcome("ours", 0.1), outcome("differential2", 0.2), outcome("differential4", 0.05)]
    found = verdicts(claims(Evidence("any", outcomes)))
    text = "differential{}, is at least as good as ours at equal parameters"
    assert found[text.format(2)] == "no, with one seed"
    assert found[text.format(4)] == "yes, with one seed"


def test_nothing_is_said_of_every_baseline_while_some_are_missing() -> None:
    outcomes = [outcome("ours", 0.1), outcome("resnet", 0.2)]
    every = "ours is ahead of every baseline (1) with 8 training simulations"
    symmetric = list(verdicts(claims(Evidence("any", outcomes))))[1:]
    assert [*verdicts(claims(Evidence("any", outcomes)))] == [every, *symmetric]  # one size, once
    expected = ("ours", "resnet", "fno")
    assert [*verdicts(claims(Evidence("any", outcomes, expected=expected)))] == symmetric
    more = [*outcomes, outcome("fno", 0.05)]
    found, _ = claims(Evidence("any", more, expected=expected))
    assert found.verdict == "no, with one seed"
    small = claims(Evidence("navier_stokes", outcomes, planned_size=64))
    assert [*verdicts(small)] == [every, *symmetric]  # nothing of the largest training set


def test_equal_time_needs_all_that_are_faster() -> None:
    short = [outcome("ours", 0.2), outcome("resnet", 0.5), outcome("fno", 0.4)]
    short.append(outcome("gfno", 0.3))
    late = [outcome("resnet", 0.1), outcome("fno", 0.15)]
    text = "ours is ahead of every baseline (3) at equal training time"

    def at_equal_time(equal_time: list[Outcome]) -> list[Claim]:
        evidence = Evidence("any", short, equal_time=equal_time, faster=("resnet", "fno"))
        return [claim for claim in claims(evidence) if claim.text == text]

    (claim,) = at_equal_time(late)
    assert claim.verdict == "no, with one seed"
    assert "time of the others 1.00 of it" in claim.numbers
    (claim,) = at_equal_time([outcome("resnet", 0.1, steps=50), late[1]])
    assert claim.verdict == "no, with one seed, with less time for some"
    assert "time of the others 0.50 to 1.00 of it" in claim.numbers
    assert at_equal_time(late[:1]) == at_equal_time([]) == []  # a short training says nothing


def test_kernels_at_equal_parameters_and_at_equal_time() -> None:
    short = [outcome("cs_complete", 0.6), outcome("cs_resnet", 0.5)]
    late = [outcome("cs_complete", 0.3)]  # a step with implicit kernels takes longer
    evidence = Evidence("any", short, equal_time=late, faster=("cs_complete",))
    held = verdicts(claims(evidence))
    better = "complete kernels are at least as good as implicit ones at equal"
    assert held[f"{better} parameters"] == "no, with one seed"
    assert held[f"{better} training time"] == "yes, with one seed"


@pytest.mark.parametrize(
    ("task", "text"),
    [
        ("navier_stokes", "ours is at least 30 % below the best baseline"),
        ("maxwell_spacetime", "ours has at most half the error of ResNet"),
    ],
)
def test_expectations_of_tasks(task: str, text: str) -> None:
    for error, expected in ((0.49, "yes, with one seed"), (0.71, "no, with one seed")):
        evidence = Evidence(task, [outcome("ours", error), outcome("resnet", 1.0)])
        assert verdicts(claims(evidence))[text] == expected


SYMMETRIC = (
    "steerable models commute with the rotations and reflections of the grid to 1e-5 in float32"
)


def test_ingredients() -> None:
    ablations = [outcome("ours", 0.1), outcome("ours_gate", 0.2), outcome("ours_blind", 0.05)]
    ablations.append(outcome("ours_no_norm", 0.2, borrowed=True))
    held = verdicts(claims(Evidence("any", [outcome("ours", 0.1)], ablations)))
    assert held["geometric products help"] == "yes, with one seed"
    assert held["backgrounds help"] == "no, with one seed"
    assert held["normalisation helps, at the same learning rate"] == "yes, with one seed"


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([outcome("ours", 0.1, point_group=1e-3)], "no"),
        ([outcome("ours", 1.0, point_group=math.nan), outcome("ours", 1.0)], "no"),
        ([outcome("steerable_resnet", 1.0), outcome("fno", 1.0, point_group=0.5)], "yes"),
        ([outcome("fno", 1.0, point_group=0.5), outcome("ours", None)], None),
    ],
)
def test_symmetry(outcomes: list[Outcome], expected: str | None) -> None:
    assert verdicts(claims(Evidence("any", outcomes))).get(SYMMETRIC) == expected


def test_seconds_are_minima() -> None:
    outcomes = [outcome("a", 1.0, seconds=s) for s in (0.3, 0.2)] + [outcome("b", None)]
    assert step_seconds(outcomes) == {"a": 0.2}
    beside = replace(outcomes[0], seconds=0.25)
    assert beside.seconds_per_step == 0.25  # measured side by side
