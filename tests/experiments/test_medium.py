"""The study of medium size: presets that are possible, and all of it in seconds."""

from dataclasses import replace
from pathlib import Path

import pytest

from experiments.medium import __main__ as command
from experiments.medium.page import write_page
from experiments.medium.presets import CONTENDERS, RECIPES, SETTINGS
from experiments.rollouts.plan import Contender
from experiments.rollouts.results import Results, Study
from experiments.rollouts.runner import open_results, run
from experiments.rollouts.timing import Speeds
from tests.experiments.test_rollouts import STUDY, TASK

PARTS = ("levers", "time", "few")


@pytest.mark.parametrize("task", SETTINGS)
def test_presets_are_possible(task: str, tmp_path: Path) -> None:
    taking_part = [key for key, c in CONTENDERS.items() if task in (c.tasks or SETTINGS)]
    (recipe,) = SETTINGS[task].recipes
    speeds = Speeds({}, {f"{task}/{key}/{recipe}": 1.0 for key in taking_part})
    results = Results(Study(SETTINGS, CONTENDERS, RECIPES), tmp_path, speeds)
    assert {trial.key for trial in results.trials(task, "levers")} == {*taking_part}
    assert ("steerable_resnet" in taking_part) == (task != "maxwell_spacetime")
    for key in taking_part:
        trial = results.trial(task, key, recipe, 1e-3, trajectories=SETTINGS[task].few)
        trial.config(tmp_path, tmp_path).check()
    assert len(SETTINGS[task].files(tmp_path)) == 3 + len(SETTINGS[task].others)


def test_bad_arguments(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert command.main(["--only", "nonsense", "--out", str(tmp_path / "x")]) != 0
    assert "unknown network 'nonsense'" in capsys.readouterr().err


@pytest.mark.slow
def test_study_and_page(tmp_path: Path) -> None:
    tiny = STUDY.settings[TASK]
    others = {"moving": {**tiny.options, "warmup": 3}}
    setting = replace(
        tiny, few=1, seeds=1, checks=3, steps=3, others=others, recipes=("projection",)
    )
    small = {"blocks": 1, "kernel_size": 3}
    chosen = {
        "cs_resnet": Contender("ours", "cs_resnet", small, ours=True),
        "resnet": Contender("theirs", "resnet", small),
        "elsewhere": Contender("elsewhere", "fno", tasks=("another",)),
    }
    study = Study({TASK: setting}, chosen, RECIPES, "medium")
    results = open_results(study, tmp_path, quiet=True)
    assert {*results.speeds.seconds} == {f"{TASK}/{k}/projection" for k in ("cs_resnet", "resnet")}
    run(results, TASK, PARTS, quiet=True)
    assert not results.missing(TASK, PARTS)
    many, few = (results.finished(TASK, part) for part in ("time", "few"))
    assert {r.contender for r in many} == {r.contender for r in few} == {"cs_resnet", "resnet"}
    for a, b in zip(many, few, strict=True):
        assert (a.steps, a.rate) == (b.steps, b.rate)
        assert "trajectories" not in a.plan
        assert b.plan["trajectories"] == 1
        assert a.errors != b.errors
        assert len(a.learning) == 3
        assert len(a.others["moving"]) == 4
    page = write_page(results, tmp_path / "docs").read_text(encoding="utf-8")
    for text in (
        "### 2 simulations", "### 1 simulations", "observers in motion",
        "cs_resnet against resnet", "after 3 of 3 parts", "The best learning rate is bold",
    ):  # fmt: skip
        assert text in page
    assert "elsewhere" not in page
    assert (tmp_path / "docs/figures/medium_navier_stokes_few_moving.png").is_file()
    known = open_results(study, tmp_path / "again", tmp_path / "docs", quiet=True)
    assert not known.missing(TASK, PARTS)
