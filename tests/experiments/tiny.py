"""A study of seconds, and outcomes without trainings."""

from typing import Any

from cscnn.forecasting.evaluation.metrics import METRICS
from cscnn.forecasting.evaluation.results import OneStepErrors
from experiments.paper.outcomes import Outcome
from experiments.paper.plan import Contender, Setting
from experiments.paper.records import LearningCurve, Measurements, Record, TrialPlan
from experiments.paper.study import Study

SETTING = Setting(
    "sine_gordon",
    simulator={"preset": "small", "grid": (12,), "frames": 16},
    splits={"train": 3, "valid": 2, "test": 2},
    sizes=(1, 2),
    seeds=1,
    params=2000,
    options={"blocks": 1, "kernel_size": 3},
    data={"frames_in": 4, "batch": 2, "valid_windows": 4},
    steps=4,
    checks=2,
    rates=(1e-3, 1e-2),
    test_windows=4,
    hidden_dim={"complete": 4},
    step_factors={"resnet": 2.5},
)
COMPLETE = {"kernel": "complete"}
TINY = Study(
    "tiny",
    {"sine_gordon": SETTING},
    {
        "resnet": Contender("ResNet", "resnet"),
        "ours": Contender("ours", "cs_resnet", COMPLETE, constants=True),
        "ours_blind": Contender("ours, blind", "cs_resnet", COMPLETE, rate_of="ours"),
    },
    {"sine_gordon": ("resnet", "ours")},
    {"sine_gordon": ("ours", "ours_blind")},
)


def plan(trajectories: int = 8) -> TrialPlan:
    return TrialPlan(0, {"task": "any"}, {}, trajectories, 1e-3, 0, 1.0, False)


def outcome(
    key: str,
    error: float | None,
    size: int = 8,
    *,
    seconds: float = 0.1,
    steps: int = 100,
    point_group: float = 0.0,
    **more: Any,
) -> Outcome:
    """Of a training that reached an error, or diverged."""
    record = Record(f"any-{key}", key, plan(size), diverged="the loss is nan")
    if error is not None:
        errors = dict.fromkeys(METRICS, error)
        record = Record(
            f"any-{key}",
            key,
            plan(size),
            valid=error,
            curve=LearningCurve([steps], [error], [error]),
            measured=Measurements(
                10, 10, {}, OneStepErrors(errors, error, {}, errors), seconds, point_group
            ),
        )
    return Outcome(record, label=key, **more)
