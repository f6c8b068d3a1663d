"""What the table of an evaluation says."""

import math
from dataclasses import replace

import pytest
import torch

from cscnn.forecasting.evaluation import Evaluation, Evaluator, evaluate, table
from tests.forecasting.evaluation.stubs import make_run
from tests.forecasting.evaluation.test_evaluate import SMOKE, rescale_output


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    torch.manual_seed(0)
    return make_run(tmp_path_factory.mktemp("smoke"), SMOKE, name="resnet", frames_in=2)


@pytest.fixture(scope="module")
def evaluation(smoke):
    return evaluate(smoke, windows=1)[0]


def test_few_windows_for_observers_are_told(smoke):
    """At most four batches are seen by other observers; errors of one step are of all windows."""
    with smoke.source("test") as source:
        evaluator = Evaluator(smoke.forecaster(), source, batch=1)
        assert evaluator.symmetry(range(18)).observers.windows == 4


def test_borders_are_no_violation(evaluation):
    """Where borders are seen from everywhere, the summary is about the point group alone."""
    seen = replace(evaluation.symmetry, translation=0.3, point_group=2e-16, interior=False)
    text = table(replace(evaluation, symmetry=seen))
    assert "Rotations and reflections of the grid hold to 2e-16." in text
    text = table(replace(evaluation, symmetry=replace(seen, interior=True)))
    assert "Exact symmetries are missed by 30 %." in text
    assert "\ntime [s] " in table(replace(evaluation, data=replace(evaluation.data, time_unit="s")))


def test_lifetimes_in_the_table(evaluation):
    """A rollout that is too short to tell says so."""
    rollout = replace(
        evaluation.rollout,
        correlation_frames=None,
        persistence_frames=2.5,
        lifetimes={"correlation": [None, 4.0, None], "persistence": [1.0, 2.0, 3.0]},
    )
    part = table(replace(evaluation, rollout=rollout)).split("\n\n")[4]
    head, *fields, total, tenth, half = part.splitlines()
    assert head.startswith("steps that forecasts last")
    assert [line.split()[0] for line in fields] == ["smoke", "velocity"]
    assert total.split()[-3:] == ["≥", "6", "2.5"]
    assert tenth.split()[-2:] == ["4", "1"]
    assert half.split()[-3:] == ["≥", "6", "2"]
    energy = rollout.quantities["kinetic_energy(velocity)"]
    (line,) = [t for t in table(evaluation).splitlines() if t.startswith("kinetic energy")]
    assert f"{energy.curves.prediction.mean[-1]:.4g}" in line
    assert f"{energy.curves.target.mean[-1]:.4g}" in line
    assert f"{energy.known:.4g}" in line


def test_unstable_forecasts_are_reported(tmp_path):
    run = make_run(tmp_path, SMOKE, frames_in=2)
    rescale_output(run, 30.0)
    evaluation, _ = evaluate(run, windows=2, trajectories=2)
    rollout = evaluation.rollout
    stable = rollout.stable_steps
    assert stable < 6
    assert stable == min(rollout.stable)
    assert all(math.isnan(x) for x in rollout.relative_l2[stable:])
    assert all(math.isfinite(x) for x in rollout.relative_l2[:stable])
    assert rollout.correlation_time is not None
    lost = f"stable for {stable} of 6 steps; {rollout.lost} of 2 trajectories lost"
    assert lost in table(evaluation)
    assert rollout.lost == sum(steps < 6 for steps in rollout.stable) > 0
    evaluation.save(tmp_path / "x.json")
    loaded = Evaluation.load(tmp_path / "x.json")
    assert table(loaded) == table(evaluation)
