"""Verdicts: what may be called ahead, and when nothing may be said."""

import math
from typing import Any

import pytest

from cscnn.study.claims import claims, compare
from cscnn.study.summary import Score, scores, step_seconds

UNCLEAR = "unclear, as some trainings diverged"
SPREAD = "within the spread of the seeds"


def record(key: str, error: float | None, size: int = 8, **more: Any) -> dict[str, Any]:
    return {"contender": key, "label": key, "trajectories": size, "error": error, **more}


def verdict(mine: Score, *others: Score, factor: float = 1.0) -> str:
    named = {f"other {i}": other for i, other in enumerate(others)}
    return compare("", "mine", mine, named, factor).verdict


def test_scores() -> None:
    found = scores([*(record("a", e) for e in (1.0, 2.0, 3.0)), record("b", None)])
    assert found["a"][8].mean == 2.0
    assert str(found["a"][8]) == "2 ± 1"
    assert str(found["b"][8]) == "diverged"
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
    assert "best 0.3 ± 0" in claim.found
    assert "not below wide" in claim.found


def test_nothing_is_said_of_every_baseline_while_some_are_missing() -> None:
    records = [record("ours", 0.1), record("resnet", 0.2)]
    every = "ours is ahead of every baseline (1) with 8 training simulations"
    assert [c.text for c in claims("any", records)] == [every]  # once, as there is one size
    assert claims("any", records, expected=("ours", "resnet", "fno")) == []
    (found,) = claims("any", [*records, record("fno", 0.05)], expected=("ours", "resnet", "fno"))
    assert found.verdict == "no, with one seed"
    small = claims("navier_stokes", records, largest_size=64)
    assert [c.text for c in small] == [every]  # nothing of the largest training set


def test_equal_time_needs_all_that_are_faster() -> None:
    short = [record("ours", 0.2), record("resnet", 0.5), record("fno", 0.4), record("gfno", 0.3)]
    late = [record("resnet", 0.1), record("fno", 0.15)]
    text = "ours is ahead of every baseline (3) at equal training time"

    def verdicts(longer: list[dict[str, Any]]) -> list[str]:
        found = claims("any", short, longer=longer, faster=("resnet", "fno"))
        return [claim.verdict for claim in found if claim.text == text]

    cost = {"curve": {"step": [100]}, "seconds_per_step": 0.1}
    timed = [record("ours", 0.2, **cost), *short[1:]]
    uneven = [record("resnet", 0.1, curve={"step": [50]}, seconds_per_step=0.1), late[1]]
    (found,) = (
        c for c in claims("any", timed, longer=uneven, faster=("resnet", "fno")) if c.text == text
    )
    assert found.verdict == "no, with one seed, with less time for some"
    assert "time of the others 0.50 of it" in found.found
    assert verdicts(late) == ["no, with one seed"]
    assert verdicts(late[:1]) == verdicts([]) == []  # a short training says nothing


def test_kernels_at_equal_parameters_and_at_equal_time() -> None:
    short = [record("cs_complete", 0.6), record("cs_resnet", 0.5)]
    late = [record("cs_complete", 0.3)]  # a step with implicit kernels takes longer
    found = claims("any", short, longer=late, faster=("cs_complete",))
    held = {claim.text: claim.verdict for claim in found}
    better = "complete kernels are at least as good as implicit ones at equal"
    assert held == {
        f"{better} parameters": "no, with one seed",
        f"{better} training time": "yes, with one seed",
    }


@pytest.mark.parametrize(
    ("task", "text"),
    [
        ("navier_stokes", "ours is at least 30 % below the best baseline"),
        ("maxwell_spacetime", "ours has at most half the error of ResNet"),
    ],
)
def test_expectations_of_tasks(task: str, text: str) -> None:
    for error, expected in ((0.49, "yes, with one seed"), (0.71, "no, with one seed")):
        found = claims(task, [record("ours", error), record("resnet", 1.0)])
        assert {claim.text: claim.verdict for claim in found}[text] == expected


def test_ingredients_and_symmetry() -> None:
    parts = [record("ours", 0.1), record("ours_gate", 0.2), record("ours_blind", 0.05)]
    parts.append(record("ours_no_norm", 0.2, borrowed=True))
    found = claims("any", [record("ours", 0.1, point_group=1e-3)], parts)
    held = {claim.text: claim.verdict for claim in found}
    assert held["geometric products help"] == "yes, with one seed"
    assert held["backgrounds help"] == "no, with one seed"
    assert held["normalisation helps, at the same learning rate"] == "yes, with one seed"
    symmetric = "steerable models commute with the symmetries of the grid to 1e-5 in float32"
    assert held[symmetric] == "no"
    lost = [record("ours", 1.0, point_group=None), record("ours", 1.0, point_group=1e-9)]
    assert [c.verdict for c in claims("any", lost) if c.text == symmetric] == ["no"]
    good = [record("steerable_resnet", 1.0, point_group=1e-7), record("fno", 1.0, point_group=0.5)]
    assert [c.verdict for c in claims("any", good) if c.text == symmetric] == ["yes"]


def test_seconds_are_the_least() -> None:
    records = [record("a", 1.0, seconds_per_step=s) for s in (0.3, 0.2)] + [record("b", None)]
    assert step_seconds(records) == {"a": 0.2}
