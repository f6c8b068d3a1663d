"""What a study plans: presets, options, and the search for learning rates."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny import SETTING, TINY

from cscnn import CliffordAlgebra, CliffordSteerableConv, models
from cscnn.study import PARTS, presets
from cscnn.study.freedom import degrees_of_freedom, kernel_dimension
from cscnn.study.plan import Contender, Trial
from cscnn.study.runner import Runner


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


def test_runs_every_rate_of_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The errors fall with the rate here: the search ends with the largest there is."""
    setting = replace(SETTING, further_rates=(1e-4, 0.1, 1.0))
    runner = Runner(replace(TINY, settings={"sine_gordon": setting}), tmp_path, quiet=True)
    records: dict[str, dict[str, Any]] = {}
    goes: list[int] = []

    def run(what: str, trials: list[Trial]) -> None:
        missing = [t for t in trials if t.name not in records]
        goes.append(len(missing))
        records.update({t.name: {"valid": 1 / t.rate} for t in missing})

    monkeypatch.setattr(runner, "run_trials", run)
    monkeypatch.setattr(runner, "find", lambda trial: records.get(trial.name))
    assert runner.rates("sine_gordon") == {}
    runner.run("sine_gordon", ())
    assert goes == [4, 2, 2]
    assert runner.rates("sine_gordon") == {"resnet": 1.0, "ours": 1.0}
    # Of models whose search has not ended nothing is planned.
    del records[next(name for name in records if name.startswith("sine_gordon-ours-n2-lr1-"))]
    assert runner.rates("sine_gordon") == {"resnet": 1.0}
    planned = {trial.key for trial in runner.trials("sine_gordon", ("scaling", "ablations"))}
    assert planned == {"resnet", "ours"}  # the latter's search
    assert {t.rate for t in runner.missing("sine_gordon") if t.key == "ours"} == {1.0}


def test_a_search_that_finds_no_records_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = Runner(TINY, tmp_path, quiet=True)
    monkeypatch.setattr("cscnn.study.runner.prepare_data", lambda *_: None)
    monkeypatch.setattr("cscnn.study.runner.timed", lambda trial, out: (trial, {}, 0.0))
    with pytest.raises(RuntimeError, match=r"the record of sine_gordon-resnet-n2-\S* is not"):
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
    free = CliffordSteerableConv(
        plane, 2, 2, 3, kernel="complete", kernel_options={"radial": "free"}
    )
    assert kernel_dimension(free) == 19
    assert sum(p.numel() for p in free.kernel.parameters()) == 4 * 19
    resnet = models.build("resnet", "navier_stokes", width=2, blocks=1)
    assert degrees_of_freedom(resnet) == resnet.n_parameters()


def test_options_of_a_trial() -> None:
    """Those of the contender before those of its model, before those of the setting."""
    setting = replace(SETTING, own={"fno": {"modes": 3}}, kernel_width={"implicit": 7})
    fno, implicit, wide = (
        Trial(setting, "x", contender, 1, 1e-3, 0).config(Path("data"), Path("runs")).model.options
        for contender in (
            Contender("", "fno", plain=True),
            Contender("", "cs_resnet"),
            Contender("", "cs_resnet", {"kernel_options": {"hidden_dim": 9}}),
        )
    )
    assert fno == {"modes": 3}
    assert implicit == {**SETTING.model, "kernel_options": {"hidden_dim": 7}}
    assert wide["kernel_options"] == {"hidden_dim": 9}


@pytest.mark.parametrize("name", presets.STUDIES)
def test_presets_are_consistent(name: str) -> None:
    study = presets.STUDIES[name]
    for task, setting in study.settings.items():
        assert max(setting.sizes) <= setting.splits["train"]
        assert setting.steps % setting.checks == 0
        for key in (*study.scaling[task], *study.ablations.get(task, ())):
            contender = study.contenders[key]
            assert not contender.like or contender.like in study.scaling[task]
        assert {*setting.longer} <= {*study.scaling[task]}
        setting.files(Path("nowhere"))
        names = [t.name for t in study.tuning(task)]
        assert len(set(names)) == len(names)
