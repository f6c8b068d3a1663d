"""What a study plans: presets, options, and the search for learning rates."""

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from cscnn import CliffordAlgebra, CliffordSteerableConv
from cscnn.data.simulators import create
from cscnn.forecasting import Forecaster, Task
from cscnn.kernels import Complete
from experiments.paper import PARTS, presets
from experiments.paper.__main__ import main
from experiments.paper.freedom import degrees_of_freedom, kernel_dimension
from experiments.paper.plan import Contender, Trial
from experiments.paper.records import Record
from experiments.paper.results import Results
from experiments.paper.runner import Runner
from tests.experiments.tiny import SETTING, TINY


def test_the_search_for_a_rate_goes_on_at_its_edges() -> None:
    setting = replace(SETTING, rates=(1e-3, 1e-2), further_rates=(1e-5, 1e-4, 0.1))

    def tried(errors: dict[float, float]) -> tuple[float, ...]:
        return setting.rates_to_try(errors)

    assert tried({}) == tried({1e-3: 1.0}) == (1e-3, 1e-2)  # wait for the others
    assert tried({1e-3: 2.0, 1e-2: 1.0}) == (1e-3, 1e-2, 0.1)
    assert tried({1e-3: 2.0, 1e-2: 1.0, 0.1: 3.0}) == (1e-3, 1e-2, 0.1)
    assert tried({1e-3: 1.0, 1e-2: 2.0}) == (1e-4, 1e-3, 1e-2)
    assert tried({1e-3: 1.0, 1e-2: 2.0, 1e-4: 0.5}) == (1e-5, 1e-4, 1e-3, 1e-2)
    # all diverged: smaller ones, to the end
    lost = dict.fromkeys((1e-5, 1e-4, 1e-3, 1e-2), math.inf)
    assert tried(lost) == (1e-5, 1e-4, 1e-3, 1e-2)
    assert replace(setting, further_rates=()).rates_to_try({1e-3: 1.0, 1e-2: 2.0}) == (1e-3, 1e-2)


@pytest.mark.parametrize(
    ("preset", "time"), [("small", r"take about \d+ (h|min) \d+"), ("paper", "is not known before")]
)
def test_it_says_what_it_is_about_to_do(
    preset: str,
    time: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before it begins: how many trainings, and hours where steps like these were timed."""

    def begin(self: Runner, task: str, parts: tuple[str, ...]) -> None:
        text = capsys.readouterr().out
        assert "trainings to run" in text
        print(text)
        raise KeyboardInterrupt

    monkeypatch.setattr(Runner, "run", begin)
    out = ["--preset", preset, "--out", str(tmp_path / "study"), "--workers", "2"]
    assert main(out) == 130
    lines = capsys.readouterr().out.split("\n")[:3]
    for task, line in zip(presets.STUDIES[preset].settings, lines, strict=True):
        assert re.match(rf"{task}: about (\d+) of \1 trainings to run, 2 at a time; .*{time}", line)


def test_runs_every_rate_of_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The errors fall with the rate here: the search ends with the largest there is."""
    setting = replace(SETTING, further_rates=(1e-4, 0.1, 1.0))
    results = Results(replace(TINY, settings={"sine_gordon": setting}), tmp_path)
    runner = Runner(results, quiet=True)
    records: dict[str, Record] = {}
    rounds: list[int] = []

    def run(title: str, trials: list[Trial]) -> None:
        missing = [t for t in trials if t.name not in records]
        rounds.append(len(missing))
        for t in missing:
            records[t.name] = Record(t.name, t.key, t.plan(), valid=1 / t.rate)

    monkeypatch.setattr(runner, "run_trials", run)
    monkeypatch.setattr(results, "find", lambda trial: records.get(trial.name))
    assert results.rates("sine_gordon") == {}
    runner.run("sine_gordon", ())
    assert rounds == [4, 2, 2]
    assert results.rates("sine_gordon") == {"resnet": 1.0, "ours": 1.0}
    # Of models whose search has not ended nothing is planned.
    del records[next(name for name in records if name.startswith("sine_gordon-ours-n2-lr1-"))]
    assert results.rates("sine_gordon") == {"resnet": 1.0}
    planned = {trial.key for trial in results.trials("sine_gordon", ("scaling", "ablations"))}
    assert planned == {"resnet", "ours"}  # the latter's search
    assert {t.rate for t in results.missing("sine_gordon") if t.key == "ours"} == {1.0}


def test_a_search_without_records_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(trial: Trial, results: Results) -> tuple[Trial, Record, float]:
        return trial, Record(trial.name, trial.key, trial.plan()), 0.0

    monkeypatch.setattr("experiments.paper.runner.prepare_data", lambda *_: None)
    monkeypatch.setattr("experiments.paper.runner.run_timed", run)
    runner = Runner(Results(TINY, tmp_path), quiet=True)
    with pytest.raises(RuntimeError, match=r"there is no record \S*sine_gordon-resnet-n2-\S*json"):
        runner.run("sine_gordon", PARTS)


def test_rates_are_checked() -> None:
    for rates in ((), (1e-2, 1e-3), (1e-3, 1e-3)):
        with pytest.raises(ValueError, match="must be different and ascending"):
            replace(SETTING, rates=rates)
    with pytest.raises(ValueError, match=r"further rate 0.01 is not beyond"):
        replace(SETTING, further_rates=(0.01,))


def test_degrees_of_freedom() -> None:
    plane = CliffordAlgebra((1, 1))
    implicit = CliffordSteerableConv(plane, 1, 1, 3)
    # f0 on three orbits with 3 weights of the head, f1 on two with 4, up to factors: 5 + 5
    assert kernel_dimension(implicit) == 10
    free = CliffordSteerableConv(plane, 2, 2, 3, kernel=Complete(radial="free"))
    assert kernel_dimension(free) == 19
    assert sum(p.numel() for p in free.kernel.parameters()) == 4 * 19
    smoke = Task.from_header(create("navier_stokes", "small").header())
    resnet = Forecaster.build("resnet", smoke, width=2, blocks=1)
    assert degrees_of_freedom(resnet) == resnet.n_parameters()


def test_options_of_a_trial() -> None:
    """Those of the contender before those of its network, before those of the setting."""
    setting = replace(SETTING, own_options={"fno": {"modes": 3}}, hidden_dim={"implicit": 7})
    fno, implicit, wide, complete = (
        Trial(setting, "x", contender, 1, 1e-3, 0).config(Path("data"), Path("runs")).model.options
        for contender in (
            Contender("", "fno", convolutional=False),
            Contender("", "cs_resnet"),
            Contender("", "cs_resnet", {"kernel": {"name": "implicit", "hidden_dim": 9}}),
            Contender("", "cs_resnet", {"kernel": "complete"}),
        )
    )
    assert fno == {"modes": 3}
    assert implicit == {**SETTING.options, "kernel": {"name": "implicit", "hidden_dim": 7}}
    assert wide["kernel"] == {"name": "implicit", "hidden_dim": 9}
    assert complete["kernel"] == "complete"  # as published


def test_plans_say_all_that_results_depend_on() -> None:
    """Other numbers of sizes, seeds, rates and names do not make another result."""
    contender = TINY.contenders["ours"]
    trial = Trial(SETTING, "ours", contender, 1, 1e-3, 0)
    for other in (
        replace(trial, setting=replace(SETTING, seeds=9, rates=(1.0,), step_factors={})),
        replace(trial, key="mine", contender=replace(contender, label="mine", rate_of="resnet")),
    ):
        assert other.plan() == trial.plan()
    for other in (
        replace(trial, setting=replace(SETTING, steps=5)),
        replace(trial, setting=replace(SETTING, simulator={"preset": "small"})),
        replace(trial, setting=replace(SETTING, hidden_dim={})),
        replace(trial, contender=replace(contender, constants=False)),
        replace(trial, contender=replace(contender, open_padding="extrapolate")),
        replace(trial, contender=replace(contender, options={"kernel": "implicit"})),
        replace(trial, rate=1e-4),
        replace(trial, seed=1),
        replace(trial, trajectories=2),
        replace(trial, step_factor=2),
    ):
        assert other.plan() != trial.plan()


@pytest.mark.parametrize("name", presets.STUDIES)
def test_presets_are_consistent(name: str) -> None:
    study = presets.STUDIES[name]
    for task, setting in study.settings.items():
        assert setting.task == task
        assert max(setting.sizes) <= setting.splits["train"]
        assert setting.steps % setting.checks == 0
        for key in (*study.scaling[task], *study.ablations.get(task, ())):
            contender = study.contenders[key]
            assert not contender.rate_of or contender.rate_of in study.scaling[task]
        assert {*setting.step_factors} <= {*study.scaling[task]}
        setting.files(Path("nowhere"))
        names = [t.name for t in study.tuning(task)]
        assert len(set(names)) == len(names)
