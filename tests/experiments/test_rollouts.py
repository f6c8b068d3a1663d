"""Recipes for rollouts: a study of seconds; verdicts on made-up records."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cscnn.forecasting.unroll import Unroll
from experiments import archive
from experiments.rollouts import __main__ as command
from experiments.rollouts import page as page_of
from experiments.rollouts.page import write_page
from experiments.rollouts.plan import Contender, Recipe, Setting, Trial
from experiments.rollouts.presets import CONTENDERS, RECIPES, SETTINGS
from experiments.rollouts.records import FORMAT, Record
from experiments.rollouts.results import Results, Study
from experiments.rollouts.runner import open_results, run
from experiments.rollouts.timing import Speeds, _Step
from experiments.rollouts.verdicts import compare

TASK = "navier_stokes"
STUDY = Study(
    {
        TASK: Setting(
            TASK,
            TASK,
            {"grid": (8, 8), "frames": 7, "warmup": 2, "every": 1},
            splits={"train": 2, "valid": 1, "test": 2},
            data={"frames_in": 2, "batch": 1, "valid_windows": 1},
            params=1600,
            steps=2,
            seconds=0.05,
            rates=(1e-3, 1e-2),
            horizon=4,
            seeds=2,
            checks=1,
        )
    },
    {
        "mine": Contender("mine", "cs_resnet", {"blocks": 1, "kernel_size": 3}, ours=True),
        "resnet": Contender("ResNet", "resnet", {"blocks": 1, "kernel_size": 3}),
        "repeat": Contender(
            "walls repeat",
            "cs_resnet",
            {"blocks": 1, "kernel_size": 3},
            ours=True,
            data={"wall_padding": "symmetric"},
            like="mine",
        ),
    },
    {
        "change": Recipe("change", {}, {"predict": "change"}),
        "pushforward": Recipe(
            "pushforward", {"unroll": 2, "pushforward": True}, {"predict": "change"}
        ),
    },
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A tiny study, run to its end."""
    results = open_results(STUDY, tmp_path_factory.mktemp("rollouts"), quiet=True)
    run(results, TASK, quiet=True)
    return results


@pytest.mark.slow
def test_every_part_has_its_records(finished: Results) -> None:
    assert not finished.missing(TASK)
    for part in ("time", "steps"):
        records = finished.finished(TASK, part)
        assert {(r.contender, r.seed) for r in records} == {
            (key, seed) for key in ("mine", "resnet") for seed in (0, 1)
        }
    assert {r.steps for r in records} == {2}
    levers = finished.finished(TASK, "levers")
    assert {r.lever for r in levers if r.contender != "repeat"} == {*STUDY.recipes}
    (ablation,) = [r for r in levers if r.contender == "repeat"]
    assert (ablation.lever, ablation.rate) == ("change", finished.rates(TASK, "mine")[1])
    for record in finished.all_records():
        assert len(record.errors) == len(record.persistence) == 4
        assert abs(record.parameters - 1600) <= 160
        assert record.score > 0


@pytest.mark.slow
def test_all_have_the_same_time(finished: Results) -> None:
    """Steps times seconds of a step is the time; two digits of steps are kept."""
    for name, seconds in finished.speeds.seconds.items():
        task, key, lever = name.split("/")
        steps = finished.steps(task, key, lever)
        assert steps * seconds == pytest.approx(0.05, rel=0.06, abs=seconds)


@pytest.mark.slow
def test_steps_that_grow_are_timed_as_they_are_trained(finished: Results) -> None:
    """With all steps of the last epoch the others would have more time."""
    setting = replace(STUDY.settings[TASK], checks=3)
    recipe = Recipe("grow", {"unroll": 3, "grow": 3})
    trial = Trial(setting, "resnet", STUDY.contenders["resnet"], "grow", recipe, 1e-3, 3)
    step = _Step(trial, finished.out / "data")
    assert step.unrolls == {Unroll(1): 1, Unroll(2): 1, Unroll(3): 1}
    assert step() > 0


@pytest.mark.slow
def test_choices_are_made_on_the_validation_split(finished: Results) -> None:
    for key in ("mine", "resnet"):
        trials, rate = finished.rates(TASK, key)
        scores = {trial.rate: finished.find(trial).score for trial in trials}  # type: ignore[union-attr]
        assert rate == min(scores, key=lambda r: scores[r])
        best = finished.best(TASK, key)
        scores = {t.lever: finished.find(t).score for t in finished.levers(TASK, key)}  # type: ignore[union-attr]
        assert best is not None
        assert best.lever == min(scores, key=lambda lever: scores[lever])


@pytest.mark.slow
def test_page_and_going_on_from_it(finished: Results, tmp_path: Path) -> None:
    page = write_page(finished, tmp_path / "docs").read_text(encoding="utf-8")
    for text in ("ResNet", "pushforward", "In the same time", "mine against resnet"):
        assert text in page
    assert (tmp_path / "docs/figures/rollouts_navier_stokes_time.png").is_file()
    again = open_results(STUDY, tmp_path / "again", tmp_path / "docs", quiet=True)
    assert not again.missing(TASK)  # records and speeds are known
    changed = replace(STUDY.settings[TASK], params=1700)
    other = Results(replace(STUDY, settings={TASK: changed}), finished.out, finished.speeds)
    assert len(other.missing(TASK, ["levers"])) == 4  # of another plan: nothing is known


def made_up(contender: str, seed: int, *errors: float) -> Record:
    return Record(
        f"{contender}{seed}", TASK, contender, "change", {}, 1e-3, 1, seed, {},
        valid=sum(errors), errors=errors,
    )  # fmt: skip


def test_verdicts_say_who_wins() -> None:
    records = [
        made_up("mine", 0, 0.1, 0.2, 0.5),
        made_up("mine", 1, 0.12, 0.25, 0.6),
        made_up("worse", 0, 0.3, 0.24, 0.4),
        made_up("worse", 1, 0.2, 0.3, 0.3),
        made_up("mine too", 0, 9.0, 9.0, 9.0),
    ]
    (line,) = compare(records, ["mine", "mine too"])
    assert line == (
        "mine against worse: below at steps 1, above at steps 3, within the spread at steps 2; "
        "ratio of errors at step 3: 1.57"
    )
    lost = replace(records[0], valid=None, errors=(), diverged="inf")
    assert "above at steps 1-3" in compare([lost, *records[2:4]], ["mine"])[0]
    assert compare(records[2:4], ["mine"]) == []
    worse = replace(records[2], valid=None, errors=(), diverged="inf")
    assert compare([lost, worse], ["mine"]) == ["mine against worse: both diverged"]


def test_tables_say_what_is_not_known() -> None:
    """A training that diverged does not last, and one long rollout does not speak for all."""
    long, short = made_up("mine", 0, 0.1, 0.2), made_up("mine", 1, 0.3, 0.4)
    short = replace(short, correlation_frames=1.0)
    lost = replace(long, valid=None, errors=(), diverged="inf")

    def row(*records: Record) -> str:
        return page_of.curves(records, {"mine": "Mine"}, 2)[-1]

    assert row(short).endswith("| 0.300 | 0.400 | 1.0 |")
    assert row(long).endswith("| ≥ 2.0 |")
    assert row(long, short).endswith("| ≥ 1.5 ± 0.5 |")
    assert row(lost, short).endswith("| diverged | diverged | diverged |")


def test_other_test_splits_have_errors_alone() -> None:
    """Correlation and persistence were measured on the first test split."""
    record = replace(
        made_up("mine", 0, 0.1, 0.2), persistence=(0.5, 0.6), others={"turned": (0.3, 0.4)}
    )
    (other,) = page_of.other_split([record], "turned")
    assert (other.errors, other.persistence, other.correlation_frames) == ((0.3, 0.4), (), None)
    row = page_of.curves([other], {"mine": "Mine"}, 2, correlation=False)[-1]
    assert row.endswith("| 0.300 | 0.400 |")
    figures = [page_of.plot([r], {"mine": "Mine"}).axes[0] for r in (record, other)]
    shown = [[line.get_label() for line in ax.get_lines()] for ax in figures]
    assert shown == [["Mine", "persistence"], ["Mine"]]


def test_records_of_another_format(tmp_path: Path) -> None:
    path = tmp_path / "rollouts.json"
    path.write_text(json.dumps({"format": FORMAT + 1, "records": []}), encoding="utf-8")
    with pytest.raises(ValueError, match=f"must be {FORMAT}, got {FORMAT + 1}"):
        archive.load(path, Record, FORMAT)


def test_presets_are_possible(tmp_path: Path) -> None:
    speeds = Speeds({}, {f"{TASK}/{key}/{r}": 1.0 for key in CONTENDERS for r in RECIPES})
    results = Results(Study(SETTINGS, CONTENDERS, RECIPES), tmp_path, speeds)
    for trial in [results.trial(TASK, key, lever, 1e-3) for key in CONTENDERS for lever in RECIPES]:
        trial.config(tmp_path, tmp_path).check()


def test_bad_arguments(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert command.main(["--only", "nonsense", "--out", str(tmp_path / "x")]) != 0
    assert "unknown network 'nonsense'" in capsys.readouterr().err
