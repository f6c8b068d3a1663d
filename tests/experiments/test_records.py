"""Files of results: one form, and one line about whatever is none."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.paper import PARTS
from experiments.paper.plan import VERSION
from experiments.paper.presets import RIVAL_STEPS, RIVALS, SMALL
from experiments.paper.records import FORMAT, Archive, LearningCurve, Record, Timing
from experiments.paper.results import Results
from tests.experiments.tiny import outcome, plan

PUBLISHED = Path(__file__).parents[2] / "docs" / "results.json"


def test_results_survive_the_file(tmp_path: Path) -> None:
    record = outcome("ours", 0.5).record
    lost = Record("lost", "ours", plan(), {"processor": "abacus"}, diverged="the loss is nan")
    timing = Timing({"processor": "abacus"}, {"ours": 0.1}, {"ours": plan().network()})
    archive = Archive({"any-ours": record, "lost": lost}, {"any": timing})
    archive.save(tmp_path / "results.json")
    assert Archive.load(tmp_path / "results.json") == archive
    lines = (tmp_path / "results.json").read_text().splitlines()
    assert sum(line.startswith('"lost": {') for line in lines) == 1  # a line for each record


def test_values_that_are_not_finite_are_null(tmp_path: Path) -> None:
    measured = outcome("ours", 0.5).record.measured
    assert measured is not None
    record = Record(
        "any", "ours", plan(), curve=LearningCurve([1], [math.nan], [math.inf]),
        measured=replace(measured, point_group=math.inf),
    )  # fmt: skip
    Archive({"any": record}).save(tmp_path / "results.json")
    assert json.loads((tmp_path / "results.json").read_text())["records"]["any"]["curve"] == {
        "step": [1],
        "valid": [None],
        "train": [None],
    }
    again = Archive.load(tmp_path / "results.json").records["any"]
    assert again.curve is not None
    assert again.measured is not None
    assert math.isnan(again.curve.valid[0])
    assert math.isnan(again.measured.point_group)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", f"its format must be {FORMAT}, got None"),
        ('{"navier_stokes-ours": {"plan": {}}}', f"must be {FORMAT}, got None; without it"),
        (f'{{"format": {FORMAT + 1}}}', f"must be {FORMAT}, got {FORMAT + 1}"),
        ("{", "is damaged, it is no JSON"),
        (f'{{"format": {FORMAT}, "records": {{"a": {{}}}}}}', "there is no entry name"),
    ],
)
def test_other_files_are_told_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "results.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"results\.json") as error:
        Archive.load(path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_changed_files_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    assert Archive.find(path) == Archive()
    for count in (1, 2):
        records = {f"r{i}": outcome("ours", 0.5).record for i in range(count)}
        Archive(records).save(path)
        assert Archive.find(path).records == records


def test_the_published_results_are_those_of_the_present_plans(tmp_path: Path) -> None:
    """Nothing in docs/results.json is out of date, and nothing is missing of what was begun."""
    published = Archive.load(PUBLISHED)
    results = Results(SMALL, tmp_path, published)
    planned = set()
    for task in SMALL.settings:
        trials, _ = results.forecast(task, PARTS)
        planned |= {trial.name for trial in trials}
        assert not [trial.name for trial in trials if results.find(trial) is None]
    assert published.records.keys() <= planned
    for name, record in published.records.items():
        assert record.name == name
        assert record.plan.version == VERSION
        assert math.isfinite(record.error)


def test_rivals_are_trained_beside_the_published_results(tmp_path: Path) -> None:
    """The study with the U-Nets takes over all records, and lacks nothing else that was run."""
    published = Archive.load(PUBLISHED)
    results, found = Results(RIVALS, tmp_path, published), set()
    for task in RIVALS.settings:
        trials, certain = results.forecast(task, PARTS)
        assert not certain
        done = {trial.name for trial in trials if results.find(trial) is not None}
        missing = {trial.key for trial in trials if trial.name not in done}
        assert missing == {*RIVAL_STEPS[task]} == {"unet", "convnext_unet"}
        assert {t.key for t in trials if t.step_factor != 1} >= missing
        found |= done
    assert found == published.records.keys()
