"""A tiny study from end to end, and the numbers it is summed up by."""

import json
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
from tiny import SETTING, TINY

from cscnn.cli import main
from cscnn.evaluation.subject import NonFinitePrediction
from cscnn.study import PARTS
from cscnn.study.measure import record_file, run_trial
from cscnn.study.page import write_page
from cscnn.study.plan import Contender, Trial
from cscnn.study.runner import Runner, read_known
from cscnn.training.module import Forecast


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    runner = Runner(TINY, tmp_path_factory.mktemp("study"), workers=1, quiet=True)
    runner.run("sine_gordon", PARTS)
    return runner


@pytest.fixture
def no_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages without real pictures of kernels: they take a while, and have tests of their own."""
    story = [("kernels.png", "What kernels lack")]
    monkeypatch.setattr("cscnn.study.page.draw_kernel_story", lambda folder: story)


def test_every_model_size_and_seed_has_a_record(finished: Runner) -> None:
    records = finished.records("sine_gordon", "scaling")
    assert {(r["contender"], r["trajectories"]) for r in records} == {
        (key, n) for key in ("resnet", "ours") for n in (1, 2)
    }
    for record in records:
        assert math.isfinite(record["error"])
        assert abs(record["parameters"] - 2000) <= 60
        assert record["curve"]["step"] == [2, 4]
    blind = finished.records("sine_gordon", "ablations")
    assert [r["contender"] for r in blind] == ["ours", "ours_blind"]
    assert all(r["options"]["kernel_options"] == {"hidden_dim": 4} for r in blind)
    (longer,) = finished.records("sine_gordon", "time")
    assert (longer["contender"], longer["curve"]["step"]) == ("resnet", [5, 10])


def test_trials_in_processes_of_their_own(finished: Runner, tmp_path: Path) -> None:
    """The order does not matter, nor who computes."""
    trials = TINY.trials("sine_gordon", {"resnet": 1e-3, "ours": 1e-3}, "scaling")
    some = [t for t in trials if t.key == "resnet"]
    runner = Runner(TINY, tmp_path, workers=2, quiet=True)
    runner.run_trials("two", some)
    for trial in some:
        here, there = runner.find(trial), finished.find(trial)
        assert here is not None
        if there is not None:
            assert here["error"] == pytest.approx(there["error"], rel=1e-5)


def test_a_broken_trial_ends_the_others(tmp_path: Path) -> None:
    """An error is raised at once, and no process is left behind."""
    long = replace(SETTING, steps=4000)
    wrong, right = Contender("nobody", "nobody"), TINY.contenders["resnet"]
    trials = [
        Trial(SETTING, "nobody", wrong, 1, 1e-3, 0),
        Trial(long, "resnet", right, 1, 1e-3, 0),
    ]
    with pytest.raises(ValueError, match="unknown model 'nobody'"):
        Runner(TINY, tmp_path, workers=2, quiet=True).run_trials("two", trials)
    assert not multiprocessing.active_children()
    assert not record_file(trials[1], tmp_path).exists()  # nobody waited for it


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at processes through /proc")
def test_workers_end_with_their_parent() -> None:
    """Also if it is killed and cannot tell them."""
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        parent.kill()
    for _ in range(100):
        if not alive(worker):
            return
        time.sleep(0.1)
    os.kill(worker, signal.SIGTERM)
    raise AssertionError("the worker goes on")


PARENT = """
import multiprocessing, os, time
from concurrent.futures import ProcessPoolExecutor
from cscnn.study.measure import start_worker

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


def test_the_rate_is_that_of_the_least_validation_error(finished: Runner) -> None:
    rates = finished.rates("sine_gordon")
    assert rates is not None
    for key in ("resnet", "ours"):
        found = {t.rate: finished.find(t) for t in TINY.tuning("sine_gordon") if t.key == key}
        assert rates[key] == min(found, key=lambda rate: found[rate]["valid"])


def test_symmetry_of_trained_models(finished: Runner) -> None:
    worst = {r["contender"]: r["point_group"] for r in finished.records("sine_gordon", "scaling")}
    assert worst["ours"] < 1e-5
    assert worst["resnet"] > 1e-2


@pytest.mark.usefixtures("no_kernels")
def test_a_second_run_only_draws(
    finished: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cscnn.study.runner.prepare_data", _must_not_be_called)
    finished.run("sine_gordon", PARTS)
    page = write_page(finished, ["sine_gordon"], tmp_path)
    text = page.read_text(encoding="utf-8")
    for name in ("scaling", "convergence_sine_gordon", "ablations"):
        assert f"figures/results_{name}.png" in text
        assert (tmp_path / "figures" / f"results_{name}.png").stat().st_size > 1000
    assert "![What kernels lack](figures/kernels.png)" in text
    assert "| ours, blind |" in text
    assert "backgrounds help" in text
    assert "ours is ahead of every baseline (1) at equal training time" in text
    assert "≥ 0.01" in text or "≤ 0.001" in text
    assert "Not run yet" not in text
    assert ", the least of some side by side (processor" in text
    assert "of them: processor" in text
    wider = replace(TINY, settings={"sine_gordon": replace(SETTING, further_rates=(1e-9,))})
    inner = Runner(wider, finished.out, quiet=True)
    monkeypatch.setattr(inner, "rates", lambda task: {"resnet": 1e-3, "ours": 1e-3})
    again = write_page(inner, ["sine_gordon"], tmp_path / "again").read_text(encoding="utf-8")
    assert "(1e-09), 0.001, 0.01" in again
    assert "| 0.001 |" in again
    assert "≤ 0.001" not in again  # not the end of the search


def test_records_of_an_earlier_study_are_not_run_again(
    finished: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished.save(tmp_path / "results.json")
    known = read_known(tmp_path / "results.json")
    monkeypatch.setattr("cscnn.study.runner.prepare_data", _must_not_be_called)
    Runner(TINY, tmp_path / "a", known=known, quiet=True).run("sine_gordon", ("scaling",))
    assert known["sine_gordon-timing"]["seconds"].keys() == {"resnet", "ours", "ours_blind"}
    some = next(iter(known.values()))
    some["plan"]["setting"]["steps"] = 5  # another plan: not reused
    with pytest.raises(AssertionError, match="must not be called"):
        Runner(TINY, tmp_path / "b", known=known, quiet=True).run("sine_gordon", ("scaling",))


def test_timings_are_of_all_models_as_they_are(finished: Runner, tmp_path: Path) -> None:
    """Of some of them, or of other sizes, they are not used; nor are they replaced by fewer."""
    before = finished.timing("sine_gordon")
    assert finished.seconds("sine_gordon") == before["seconds"]
    some = Runner(TINY.only(["resnet"]), finished.out, quiet=True)
    some.measure_seconds("sine_gordon")
    assert finished.timing("sine_gordon") == before
    larger = replace(TINY, settings={"sine_gordon": replace(SETTING, params=3000)})
    known = {"sine_gordon-timing": before}
    assert Runner(larger, tmp_path, known=known, quiet=True).seconds("sine_gordon") == {}


@pytest.mark.usefixtures("no_kernels")
def test_pages_with_values_that_are_not_finite(finished: Runner, tmp_path: Path) -> None:
    finished.save(tmp_path / "results.json")
    known = read_known(tmp_path / "results.json")
    for record in known.values():
        if record.get("contender") == "ours":
            record["point_group"] = None
            record["curve"]["valid"][0] = None
            if record.get("symmetry", {}).get("frames"):
                record["symmetry"]["frames"]["relative_l2"][-1] = None
    runner = Runner(TINY, tmp_path / "none", known=known, quiet=True)
    text = write_page(runner, ["sine_gordon"], tmp_path).read_text(encoding="utf-8")
    assert "| not finite |" in text
    assert "grid to 1e-5 in float32 | no |" in text


def test_saving_loses_nothing(finished: Runner, tmp_path: Path) -> None:
    """A study that has not got far keeps the records it was given."""
    finished.save(tmp_path / "results.json")
    known = read_known(tmp_path / "results.json")
    wider = replace(TINY, settings={"sine_gordon": replace(SETTING, seeds=2)})
    runner = Runner(wider, tmp_path / "b", known=known, quiet=True)
    assert {trial.seed for trial in runner.missing("sine_gordon")} == {1}
    known["sine_gordon-other-n2-lr1-s0"] = {"plan": {}}
    Runner(wider, tmp_path / "b", known=known, quiet=True).save(tmp_path / "results.json")
    assert read_known(tmp_path / "results.json") == known
    # A finished one does not carry along what is not its own.
    Runner(TINY, tmp_path / "b", known=known, quiet=True).save(tmp_path / "results.json")
    assert known.keys() - read_known(tmp_path / "results.json").keys() == {
        "sine_gordon-other-n2-lr1-s0"
    }


def _must_not_be_called(*_: object) -> None:
    raise AssertionError("must not be called")


def test_an_interrupted_trial_goes_on(
    finished: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = TINY.tuning("sine_gordon")[0]
    reference = finished.find(trial)
    assert reference is not None
    shutil.copytree(finished.out / "data", tmp_path / "data")
    with monkeypatch.context() as patch:
        patch.setattr(Forecast, "training_step", _stop_in_second_epoch(Forecast.training_step))
        with pytest.raises(KeyboardInterrupt):
            run_trial(trial, tmp_path)
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for name in ("data", "runs"):
        shutil.move(tmp_path / name, moved / name)
    state = moved / "runs" / trial.name / "state.ckpt"
    assert state.exists()
    steps = []
    forward = Forecast.training_step

    def counting(self: Forecast, batch: Any, batch_idx: int) -> Any:
        steps.append(batch_idx)
        return forward(self, batch, batch_idx)

    monkeypatch.setattr(Forecast, "training_step", counting)
    record = run_trial(trial, moved)
    assert steps == [0, 1]  # of the second epoch only
    assert record["error"] == pytest.approx(reference["error"], rel=1e-5)
    assert record["curve"]["valid"] == pytest.approx(reference["curve"]["valid"], rel=1e-5)
    assert not state.exists()


def _stop_in_second_epoch(step: Any) -> Any:
    def stopping(self: Forecast, batch: Any, batch_idx: int) -> Any:
        if self.current_epoch == 1:
            raise KeyboardInterrupt
        return step(self, batch, batch_idx)

    return stopping


@pytest.mark.usefixtures("no_kernels")
def test_pages_of_unfinished_studies(finished: Runner, tmp_path: Path) -> None:
    """Diverged and missing trainings are left out of figures, and said."""
    finished.save(tmp_path / "results.json")
    for change in ("diverged", "missing"):
        known = read_known(tmp_path / "results.json")
        for name, record in list(known.items()):
            if record.get("trajectories") == 2 and record["contender"] == "ours":
                if change == "missing" and "lr0.001" not in name:
                    del known[name]
                elif change == "diverged":
                    for key in ("error", "seconds_per_step", "one_step", "options", "symmetry"):
                        record.pop(key, None)
                    record["diverged"] = "the loss is nan"
        runner = Runner(TINY, tmp_path / change, known=known, quiet=True)
        text = write_page(runner, ["sine_gordon"], tmp_path / change).read_text(encoding="utf-8")
        assert ("diverged" in text) == (change == "diverged")
        assert ("Not run yet: sine_gordon" in text) == (change == "missing")


def test_a_model_that_says_nan_is_a_result(
    finished: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(finished.out / "data", tmp_path / "data")

    def broken(*_: Any) -> Any:
        raise NonFinitePrediction("not finite")

    monkeypatch.setattr("cscnn.evaluation.subject.Subject.one_step", broken)
    trial = TINY.tuning("sine_gordon")[0]
    record = run_trial(trial, tmp_path)
    assert record["diverged"] == "not finite"
    assert math.isfinite(record["valid"])  # the test split has no say in the choice of rates
    runner = Runner(TINY, tmp_path, quiet=True)
    assert runner.find(trial) is not None


@pytest.mark.usefixtures("no_kernels")
def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "navier_stokes", "--list", "--out", str(tmp_path / "none")]) == 0
    assert "navier_stokes-ours-n32-lr0.015-s0" in capsys.readouterr().out
    only = ["study", "navier_stokes", "--models", "ours_blind", "--out", str(tmp_path / "none")]
    assert main([*only, "--list"]) == 0
    listed = capsys.readouterr().out
    assert "navier_stokes-ours_blind-n32" in listed
    assert "navier_stokes-ours-n128" in listed
    assert "resnet" not in listed
    assert main(["study", "--models", "transformer", "--list"]) == 1
    assert "unknown model 'transformer'" in capsys.readouterr().err
    assert main(["study", "weather", "--out", str(tmp_path)]) == 1
    assert "unknown task 'weather'" in capsys.readouterr().err
    (tmp_path / "broken.json").write_text("[]")
    assert main(["study", "--known", str(tmp_path / "broken.json"), "--list"]) == 1
    assert "holds no records" in capsys.readouterr().err
    assert main(["study", "--draw", "--out", str(tmp_path / "empty")]) == 0
    assert json.loads((tmp_path / "empty" / "results.json").read_text()) == {}
    kept = {"navier_stokes-ours-n8-lr1-s0": {"plan": {}}}
    (tmp_path / "empty" / "results.json").write_text(json.dumps(kept))
    assert main(["study", "--draw", "--out", str(tmp_path / "empty")]) == 0
    assert json.loads((tmp_path / "empty" / "results.json").read_text()) == kept
