"""The results page and the command that writes it."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from cscnn.forecasting.evaluation.results import MotionErrors, SymmetryErrors
from cscnn.viz.figures import new_figure
from experiments.paper import PARTS
from experiments.paper.__main__ import main
from experiments.paper.figures import _legend
from experiments.paper.outcomes import Outcome
from experiments.paper.page import write_page
from experiments.paper.plan import Trial
from experiments.paper.records import Archive, Record
from experiments.paper.results import Results
from experiments.paper.runner import Runner
from experiments.paper.tables import rotation_table
from tests.experiments.tiny import SETTING, TINY, outcome, plan

pytestmark = pytest.mark.usefixtures("no_kernels")


def text_of(results: Results, folder: Path) -> str:
    """The page, without its line breaks."""
    text = write_page(results, ["sine_gordon"], folder).read_text(encoding="utf-8")
    assert all(len(line) <= 100 or line.startswith(("|", "!")) for line in text.split("\n"))
    return " ".join(text.split())


def test_legends_are_not_cut_off() -> None:
    """Long labels have fewer columns."""
    columns = []
    for words in (1, 3):
        figure = new_figure(6.4, 4.2, "constrained")
        axes = list(figure.subplots(1, 2))
        for number in range(9):
            axes[0].plot([0, 1], label=f"network {number} " + words * "of many words ")
        _legend(figure, axes)
        (legend,) = figure.legends
        assert legend.get_window_extent().width <= figure.bbox.width
        assert len(legend.get_texts()) == 9
        columns.append(legend._ncols)
    assert 4 > columns[0] > columns[1]


@pytest.mark.slow
@pytest.mark.usefixtures("no_trainings")
def test_a_second_run_only_draws(finished: Results, tmp_path: Path) -> None:
    Runner(finished, quiet=True).run("sine_gordon", PARTS)
    text = text_of(finished, tmp_path)
    for name in ("scaling", "convergence_sine_gordon", "ablations", "fields_sine_gordon"):
        assert f"figures/results_{name}.png" in text
        assert (tmp_path / "figures" / f"results_{name}.png").stat().st_size > 1000
    assert "![What kernels lack](figures/kernels.png)" in text
    assert "Written by `python -m experiments.paper --preset tiny`." in text
    assert "**Lowest error with " in text
    assert "| ours, blind |" in text
    assert "backgrounds help" in text
    assert "ours is ahead of every baseline (1) at equal training time" in text
    assert "≥ 0.01" in text or "≤ 0.001" in text
    assert "Not run yet" not in text
    assert ", the minimum of ten interleaved timings (processor" in text
    assert "of them: processor" in text
    # Elsewhere there are no fields to draw, but the picture from before is still that of the page.
    known = finished.archive()
    assert "results_fields_" in text_of(Results(TINY, tmp_path / "none", known), tmp_path)
    assert "results_fields_" not in text_of(Results(TINY, tmp_path / "none", known), tmp_path / "b")


@pytest.mark.slow
def test_rates_inside_the_search(
    finished: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wider = replace(TINY, settings={"sine_gordon": replace(SETTING, further_rates=(1e-9,))})
    results = Results(wider, finished.out)
    monkeypatch.setattr(results, "rates", lambda task: {"resnet": 1e-3, "ours": 1e-3})
    text = text_of(results, tmp_path)
    assert "(1e-09), 0.001, 0.01" in text
    assert "| 0.001 |" in text
    assert "≤ 0.001" not in text  # not the end of the search


@pytest.mark.slow
def test_pages_with_values_that_are_not_finite(finished_file: Path, tmp_path: Path) -> None:
    known = Archive.load(finished_file)
    for name, record in known.records.items():
        if record.contender == "ours":
            assert record.curve is not None
            assert record.measured is not None
            measured = replace(record.measured, point_group=math.nan)
            record.curve.valid[0] = math.nan
            if measured.symmetry and measured.symmetry.observers:
                measured.symmetry.observers.relative_l2[-1] = math.nan
            known.records[name] = replace(record, measured=measured)
    text = text_of(Results(TINY, tmp_path / "none", known), tmp_path)
    assert "| not finite |" in text
    assert "grid to 1e-5 in float32 | no |" in text


@pytest.mark.slow
@pytest.mark.parametrize("change", ["diverged", "missing"])
def test_pages_of_unfinished_studies(finished_file: Path, tmp_path: Path, change: str) -> None:
    """Diverged and missing trainings are left out of figures, and said."""
    known = Archive.load(finished_file)
    for name, record in list(known.records.items()):
        if record.plan.trajectories == 2 and record.contender == "ours":
            if change == "diverged":
                known.records[name] = replace(record, measured=None, diverged="the loss is nan")
            elif "lr0.001" not in name:
                del known.records[name]
    text = text_of(Results(TINY, tmp_path / change, known), tmp_path / change)
    assert ("diverged" in text) == (change == "diverged")
    assert ("Not run yet: sine_gordon" in text) == (change == "missing")


@pytest.mark.slow
def test_timings_that_were_not_interleaved_are_named(finished_file: Path, tmp_path: Path) -> None:
    known = Archive.load(finished_file)
    del known.timings["sine_gordon"].seconds["ours_blind"]
    text = text_of(Results(TINY, tmp_path / "none", known), tmp_path)
    assert '; those of "ours, blind" the minimum over their runs.' in text
    known.timings.clear()
    text = text_of(Results(TINY, tmp_path / "none", known), tmp_path)
    assert "a backward pass, the minimum over all runs." in text


def test_rotations_by_any_angle_are_a_table() -> None:
    def rotated(key: str, errors: list[float], floors: list[float]) -> Outcome:
        done = outcome(key, 0.5)
        assert done.record.measured is not None
        motion = MotionErrors([5.0, 45.0], errors, floors)
        symmetry = SymmetryErrors([2, 2], True, "O", 0.0, 0.0, rotation=motion)
        measured = replace(done.record.measured, symmetry=symmetry)
        return replace(done, record=replace(done.record, measured=measured))

    outcomes = [
        rotated("ours", [0.011, 0.25], [1e-3, 2e-2]),
        outcome("resnet", 0.5),  # without details
        rotated("differential4", [0.012, 0.02], [3e-3, 1e-2]),
    ]
    assert rotation_table(outcomes) == [
        "| model | 5° | 45° |",
        "|---|---:|---:|",
        "| ours | 0.011 | 0.25 |",
        "| differential4 | 0.012 | 0.02 |",
        "| interpolation alone, at most | 0.003 | 0.02 |",
    ]
    assert rotation_table(outcomes[1:2]) == []


def test_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["navier_stokes", "--list", "--out", str(tmp_path / "none")]) == 0
    assert "navier_stokes-ours-n32-lr0.015-s0" in capsys.readouterr().out
    only = ["navier_stokes", "--models", "ours_blind", "--out", str(tmp_path / "none")]
    assert main([*only, "--list"]) == 0
    listed = capsys.readouterr().out
    assert "navier_stokes-ours_blind-n32" in listed
    assert "navier_stokes-ours-n128-lr?-" in listed
    assert "resnet" not in listed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--models", "transformer", "--list"], "unknown model 'transformer'"),
        (["weather"], "unknown task 'weather'"),
        (["--workers", "0"], "--workers must be positive, got 0"),
        (["--known", "old.json", "--list"], "old.json holds no results of this version"),
        (["--known", "no.json", "--list"], "no.json"),
        (["--draw", "--page", "old"], "results.json holds no results of this version"),
    ],
)
def test_errors_are_one_line(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("old").mkdir()
    for path in (Path("old.json"), Path("old/results.json")):
        path.write_text('{"navier_stokes-ours-n8-lr1-s0": {"plan": {}}}')
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("python -m experiments.paper: error: ")
    assert error.count("\n") == 1


def test_drawing_keeps_what_is_on_the_page(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    assert main(["--draw", "--out", str(tmp_path)]) == 0
    assert json.loads(file.read_text()) == {"format": 2, "timings": {}, "records": {}}
    name = "navier_stokes-ours-n8-lr1-s0"
    kept = Archive({name: Record(name, "ours", plan())})
    kept.save(file)
    assert main(["--draw", "--out", str(tmp_path)]) == 0
    assert Archive.load(file) == kept


def test_help_shows_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "  python -m experiments.paper navier_stokes --preset small" in capsys.readouterr().out


def test_records_of_older_versions_in_the_folder_are_told(tmp_path: Path) -> None:
    results = Results(TINY, tmp_path)
    trial = Trial(SETTING, "ours", TINY.contenders["ours"], 1, 1e-3, 0)
    results.file(trial.name).parent.mkdir()
    results.file(trial.name).write_text('{"plan": {}}')
    with pytest.raises(ValueError, match=r"must be 2, got None; without it the trials are run"):
        results.find(trial)
