"""A tiny study from end to end: records, interruptions, processes."""

import math
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cscnn.forecasting import Run
from cscnn.forecasting.evaluation.evaluator import Evaluator, NonFinitePrediction
from cscnn.forecasting.training.module import TrainingModule
from experiments.paper.__main__ import main
from experiments.paper.measure import run_trial
from experiments.paper.plan import Contender, Trial
from experiments.paper.records import Archive, Record
from experiments.paper.results import Results
from experiments.paper.runner import Runner
from tests.experiments.tiny import SETTING, TINY, plan

pytestmark = pytest.mark.slow


def test_every_model_size_and_seed_has_a_record(finished: Results) -> None:
    outcomes = finished.outcomes("sine_gordon", "scaling")
    assert {(o.key, o.trajectories) for o in outcomes} == {
        (key, n) for key in ("resnet", "ours") for n in (1, 2)
    }
    for outcome in outcomes:
        measured, curve = outcome.record.measured, outcome.record.curve
        assert measured is not None
        assert curve is not None
        assert math.isfinite(outcome.record.error)
        assert abs(measured.parameters - 2000) <= 60
        assert curve.step == [2, 4]
        detailed = outcome.trajectories == 2
        assert (measured.rollout is not None) == (measured.symmetry is not None) == detailed
    ablations = finished.outcomes("sine_gordon", "ablations")
    assert [o.key for o in ablations] == ["ours", "ours_blind"]
    for outcome in ablations:
        assert outcome.record.measured is not None
        assert outcome.record.measured.options["kernel"] == {"name": "complete", "hidden_dim": 4}
    (longer,) = finished.outcomes("sine_gordon", "time")
    assert longer.key == "resnet"
    assert longer.record.curve is not None
    assert longer.record.curve.step == [5, 10]


def test_all_sizes_have_the_units_of_the_whole_training_split(finished: Results) -> None:
    folders = [p for p in (finished.out / "runs").iterdir() if (p / "model.safetensors").exists()]
    assert len({str(Run(folder).forecaster().units) for folder in folders}) == 1


def test_trials_in_processes_of_their_own(finished: Results, tmp_path: Path) -> None:
    """The order does not matter, nor who computes."""
    trials = TINY.trials("sine_gordon", {"resnet": 1e-3, "ours": 1e-3}, "scaling")
    trials = [t for t in trials if t.key == "resnet"]
    results = Results(TINY, tmp_path)
    Runner(results, workers=2, quiet=True).run_trials("two", trials)
    for trial in trials:
        here, there = results.find(trial), finished.find(trial)
        assert here is not None
        if there is not None:
            assert here.error == pytest.approx(there.error, rel=1e-5)


def test_a_broken_trial_ends_the_others(tmp_path: Path) -> None:
    """An error is raised at once, and no process is left behind."""
    long = replace(SETTING, steps=4000)
    wrong, right = Contender("nobody", "nobody"), TINY.contenders["resnet"]
    trials = [
        Trial(SETTING, "nobody", wrong, 1, 1e-3, 0),
        Trial(long, "resnet", right, 1, 1e-3, 0),
    ]
    results = Results(TINY, tmp_path)
    with pytest.raises(ValueError, match="unknown network 'nobody'"):
        Runner(results, workers=2, quiet=True).run_trials("two", trials)
    assert not multiprocessing.active_children()
    assert not results.file(trials[1].name).exists()  # nobody waited for it


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at processes through /proc")
def test_workers_end_with_their_parent() -> None:
    """Also if it is killed and cannot tell them."""
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    ) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        parent.kill()
    for _ in range(600):
        if not alive(worker):
            return
        time.sleep(0.1)
    os.kill(worker, signal.SIGTERM)
    raise AssertionError("the worker goes on")


PARENT = """
import multiprocessing, os, time
from concurrent.futures import ProcessPoolExecutor
from experiments.pool import start_worker

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(1, mp_context=context, initializer=start_worker, initargs=(1,))
    print(pool.submit(os.getpid).result(), flush=True)
    pool.submit(time.sleep, 60)
    time.sleep(60)
"""


def alive(process: int) -> bool:
    """Whether a process is there and no zombie."""
    status = Path(f"/proc/{process}/stat")
    return status.exists() and status.read_text().rsplit(")", 1)[1].split()[0] != "Z"


def test_the_rate_is_that_of_the_least_validation_error(finished: Results) -> None:
    rates = finished.rates("sine_gordon")
    for key in ("resnet", "ours"):
        errors = {}
        for trial in TINY.tuning("sine_gordon"):
            record = finished.find(trial)
            if trial.key == key and record is not None:
                errors[trial.rate] = record.valid
        assert errors[rates[key]] == min(v for v in errors.values() if v is not None)


def test_symmetry_of_trained_models(finished: Results) -> None:
    outcomes = finished.outcomes("sine_gordon", "scaling")
    violations = {o.key: o.point_group for o in outcomes if o.point_group is not None}
    assert violations["ours"] < 1e-5
    assert violations["resnet"] > 1e-2


@pytest.mark.usefixtures("no_trainings")
def test_records_of_an_earlier_study_are_not_run_again(finished_file: Path, tmp_path: Path) -> None:
    known = Archive.load(finished_file)
    assert known.timings["sine_gordon"].seconds.keys() == {"resnet", "ours", "ours_blind"}
    Runner(Results(TINY, tmp_path / "a", known), quiet=True).run("sine_gordon", ("scaling",))
    first = next(iter(known.records.values()))
    first.plan.setting["steps"] = 5  # another plan: not reused
    with pytest.raises(AssertionError, match="must not be called"):
        Runner(Results(TINY, tmp_path / "b", known), quiet=True).run("sine_gordon", ("scaling",))


def test_timings_are_of_all_models_as_they_are(finished: Results, tmp_path: Path) -> None:
    """Of other networks they are not used."""
    before = finished.timing("sine_gordon")
    assert before is not None
    assert finished.seconds("sine_gordon") == before.seconds
    Runner(finished, quiet=True).measure_seconds("sine_gordon")
    assert finished.timing("sine_gordon") == before
    larger = replace(TINY, settings={"sine_gordon": replace(SETTING, params=3000)})
    known = Archive(timings={"sine_gordon": before})
    assert Results(larger, tmp_path, known).seconds("sine_gordon") == {}


def test_a_new_model_is_timed_beside_those_that_were_trained_elsewhere(
    finished: Results, tmp_path: Path
) -> None:
    """Only it is trained, by the command; its place in the study is among all others."""
    known = finished.archive()
    kernel = {"name": "differential", "order": 2}
    new = Contender("differential", "cs_resnet", {"kernel": kernel}, open_padding="extrapolate")
    wider = replace(
        TINY,
        contenders={**TINY.contenders, "new": new},
        scaling={"sine_gordon": ("resnet", "ours", "new")},
    )
    known.save(tmp_path / "results.json")
    arguments = ["--models", "new", "--workers", "1", "--page", tmp_path, "--out", tmp_path / "out"]
    arguments += ["--known", tmp_path / "results.json", "--preset", "tiny"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("experiments.paper.__main__.STUDIES", {"tiny": wider})
        patch.setattr("experiments.paper.page.draw_kernel_story", lambda folder: [])
        assert main([str(argument) for argument in arguments]) == 0
    after = Archive.load(tmp_path / "results.json")
    assert {r.contender for n, r in after.records.items() if n not in known.records} == {"new"}
    assert known.records.items() <= after.records.items()
    seconds = after.timings["sine_gordon"].seconds
    assert seconds.keys() == {"resnet", "ours", "ours_blind", "new"}
    run = Run(next((tmp_path / "out" / "runs").iterdir()))
    assert run.forecaster().task.open_padding == "extrapolate"


def test_saving_loses_nothing(finished_file: Path, tmp_path: Path) -> None:
    """A study that has not got far keeps the records it was given."""
    known = Archive.load(finished_file)
    wider = replace(TINY, settings={"sine_gordon": replace(SETTING, seeds=2)})
    results = Results(wider, tmp_path / "b", known)
    assert {trial.seed for trial in results.missing("sine_gordon")} == {1}
    foreign = "sine_gordon-other-n2-lr1-s0"
    known.records[foreign] = Record(foreign, "other", plan())
    assert Results(wider, tmp_path / "b", known).archive() == known
    # A finished one does not carry along what is not its own.
    kept = Results(TINY, tmp_path / "b", known).archive()
    assert known.records.keys() - kept.records.keys() == {foreign}


def test_an_interrupted_trial_goes_on(
    finished: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = TINY.tuning("sine_gordon")[0]
    reference = finished.find(trial)
    assert reference is not None
    assert reference.curve is not None
    shutil.copytree(finished.out / "data", tmp_path / "data")
    step = TrainingModule.training_step

    def stopping(self: TrainingModule, batch: Any, batch_idx: int) -> Any:
        if self.current_epoch == 1:
            raise KeyboardInterrupt
        return step(self, batch, batch_idx)

    with monkeypatch.context() as patch:
        patch.setattr(TrainingModule, "training_step", stopping)
        with pytest.raises(KeyboardInterrupt):
            run_trial(trial, Results(TINY, tmp_path))
    moved = Results(TINY, tmp_path / "elsewhere")
    moved.out.mkdir()
    for name in ("data", "runs"):
        shutil.move(tmp_path / name, moved.out / name)
    state = moved.run(trial) / "state.ckpt"
    assert state.exists()
    steps = []

    def counting(self: TrainingModule, batch: Any, batch_idx: int) -> Any:
        steps.append(batch_idx)
        return step(self, batch, batch_idx)

    monkeypatch.setattr(TrainingModule, "training_step", counting)
    record = run_trial(trial, moved)
    assert steps == [0, 1]  # of the second epoch only
    assert record.error == pytest.approx(reference.error, rel=1e-5)
    assert record.curve is not None
    assert record.curve.valid == pytest.approx(reference.curve.valid, rel=1e-5)
    assert not state.exists()


def test_a_model_that_says_nan_is_a_result(
    finished: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(finished.out / "data", tmp_path / "data")

    def broken(*_: Any) -> Any:
        raise NonFinitePrediction("not finite")

    monkeypatch.setattr(Evaluator, "one_step", broken)
    trial = TINY.tuning("sine_gordon")[0]
    results = Results(TINY, tmp_path)
    record = run_trial(trial, results)
    assert record.diverged == "not finite"
    assert record.error == math.inf
    assert record.valid is not None  # the test split has no say in the choice of rates
    assert math.isfinite(record.valid)
    assert results.find(trial) == record
