"""Rollouts on the page: curves with bands, seeds, times, and forecasts that are lost."""

import json
import math
import re

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("safetensors")

from cscnn.forecasting.evaluation.results import Evaluation
from cscnn.viz.report import headline, page, rollouts, table
from cscnn.viz.report.charts import Series, line_chart
from cscnn.viz.report.contents import comparable, load_runs
from cscnn.viz.report.seeds import by_seed
from tests.viz.report_page import Page
from tests.viz.report_runs import TASKS, change_evaluation, make_run


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    """Three seeds of one network, and a run of another."""
    root, task = tmp_path_factory.mktemp("seeds"), TASKS["fluid"]()
    ours = [
        make_run(root / f"ours_seed{i}", task, quality=1 + i, points=8, seed=i) for i in range(3)
    ]
    return [*ours, make_run(root / "plain", task, "resnet", points=8)]


def test_bands():
    lines = [
        Series("a", [1, 2], [1.0, 10.0], "run-0", low=[0.5, 0.0], high=[2.0, 100.0]),
        Series("b", [1, 2], [1.0, None], "run-1", low=[0.5, None], high=[2.0, None]),
    ]
    chart = line_chart("t", "", lines, "x", "y")
    path = [float(x) for x in re.findall(r"[\d.]+", chart.lines[0].band)]
    (x1, y1), (x2, y2), (x3, y3), (x4, y4) = zip(path[::2], path[1::2], strict=True)
    assert (x1, x2) == (x4, x3)
    assert y2 < y1 < y4  # a larger number is higher on the page
    marker = {round(x): y for x, y, _ in chart.lines[0].markers}
    assert y3 == pytest.approx(marker[round(x2)], abs=0.1)  # the band has no zero on a log axis
    ticks = {text: y for y, text in chart.y_ticks}
    assert ticks["100"] == pytest.approx(y2, abs=0.1)  # the axis reaches the band
    assert chart.lines[1].band == ""  # a point has no area
    assert chart.table == [
        ("1", ["1.00 (0.500 to 2.00)", "1.00 (0.500 to 2.00)"]),
        ("2", ["10.0 (0 to 100)", "–"]),
    ]
    text = page.render_template("chart.html", chart=chart)
    assert text.count('class="band"') == 1
    Page(text)


def test_charts_of_rollouts(folders):
    runs = load_runs(folders["fluid"])
    section = rollouts.errors(runs)
    charts = {chart.title: chart for chart in section.content}
    assert [*charts] == ["Error", "Correlation", "Error of smoke", "Error of velocity"]
    for chart in charts.values():
        assert [bool(line.band) for line in chart.lines] == [True, True, False]
        assert "a tenth on either side" in chart.text
    assert [line.label for line in charts["Correlation"].lines] == ["steerable", "plain", "0.8"]
    labels = [line.label for line in charts["Error of smoke"].lines]
    assert labels == ["steerable", "plain", "persistence forecast"]
    assert charts["Error"].table[-1][1][0] == "0.0800 (0.0720 to 0.0880)"
    energy, law = rollouts.physics(runs).content
    assert (energy.title, energy.y_label) == ("Kinetic energy per mass", "½⟨v²⟩ in (m/s)²")
    assert [line.label for line in energy.lines] == ["steerable", "plain", "truth"]
    assert energy.table[0] == ("0", ["2.00 (2.00 to 2.00)", "2.00 (2.00 to 2.00)", "2.00"])
    assert energy.table[-1][1][0] == "5.00 (4.00 to 6.00)"
    assert law.title == "No divergence: ∇⌟v = 0"
    assert law.table[-1][1][2] == "1.00 × 10⁻⁷"


def test_runs_that_cannot_be_compared_have_a_truth_each(folders):
    runs = load_runs([folders["fluid"][0], folders["line"][0]])
    energy, _ = rollouts.physics(runs).content
    assert [line.label for line in energy.lines] == [
        "fluid/steerable", "line/steerable", "fluid/steerable, truth", "line/steerable, truth"
    ]  # fmt: skip
    assert len(rollouts.errors(runs).content[0].lines) == 2  # no persistence forecast of both


def test_runs_that_are_told_more_can_be_compared(seeds, tmp_path):
    """`data.constants: false` is there for this comparison. Other frames are another question."""
    task = TASKS["fluid"]()
    untold = make_run(tmp_path / "untold", task.replace(backgrounds=()), points=8)
    assert comparable(load_runs([seeds[0], untold]))
    later = make_run(tmp_path / "later", task.replace(frames_in=2), points=8)
    assert not comparable(load_runs([seeds[0], later]))


def test_spread_over_seeds(seeds):
    """One line for the mean of all seeds, and a band from the lowest to the highest."""
    runs = load_runs(seeds)
    ours, plain = by_seed(runs)
    assert (ours.label, ours.runs) == ("ours, 3 seeds", runs[:3])
    assert (plain.label, plain.runs) == ("plain", runs[3:])
    error = rollouts.errors(runs).content[0]
    assert [line.label for line in error.lines] == [
        "ours, 3 seeds",
        "plain",
        "persistence forecast",
    ]
    assert error.lines[0].style == runs[0].style
    curves = np.array([run.evaluation.rollout.relative_l2 for run in runs[:3]])
    middle, low, high = curves.mean(0)[-1], curves.min(0)[-1], curves.max(0)[-1]
    assert error.table[-1][1][0] == f"{middle:.3f} ({low:.4f} to {high:.3f})"
    assert "the lowest to the highest seed" in error.text
    assert "the lowest to the highest seed" not in rollouts.errors(runs[3:]).content[0].text
    Page(page.render(runs))


def test_what_is_no_spread_over_seeds(seeds, tmp_path):
    """Copies of a run, other data, and runs that differ by more than the seed."""
    twins = [
        make_run(tmp_path / name, TASKS["fluid"](), points=8, steps=3, seed=1) for name in "ab"
    ]
    assert [group.label for group in by_seed(load_runs(twins))] == ["a", "b"]
    config = json.loads((twins[0] / "config.json").read_text())
    (twins[0] / "config.json").write_text(json.dumps({**config, "seed": 2}))
    assert [group.label for group in by_seed(load_runs(twins))] == ["cs_resnet, 2 seeds"]
    learning = {**config["training"], "loss": "relative"}
    changed = {**config, "seed": 2, "training": learning}
    (twins[0] / "config.json").write_text(json.dumps(changed))
    assert len(by_seed(load_runs(twins))) == 2
    (twins[0] / "config.json").write_text(json.dumps({**config, "seed": 2}))
    change_evaluation(twins[0], data={"path": "elsewhere.h5"})
    assert len(by_seed(load_runs(twins))) == 2


def test_times(folders):
    """Longer than the rollout is at least its length; a correlation that is lost has a time."""
    rows = {row.label: row for row in table.rows(load_runs(folders["fluid"]))["Rollout"]}
    row = rows["time until the correlation is below 0.8"]
    assert [row.show(value) for value in row.values] == ["≥ 48.0", "33.0"]
    assert row.best() == [True, False]
    row = rows["time until persistence is better"]
    assert [row.show(value) for value in row.values] == ["≥ 48.0", "≥ 48.0"]
    assert row.best() == [False, False]
    text = Page(page.render(load_runs(folders["fluid"]))).text
    assert "correlated for ≥ 8 steps, better than persistence for ≥ 8" in text
    assert "correlated for 5.50 steps" in text


def lose(folder, steps):
    errors = Evaluation.load(folder / "evaluation.json").rollout.relative_l2[:steps]
    change_evaluation(
        folder,
        rollout={
            "relative_l2": errors + [math.nan] * (8 - steps),
            "stable_steps": steps,
            "stable": [steps] + [8] * 15,
        },
    )


def test_lost_rollouts_are_last(copy):
    lose(copy[1], 4)
    runs = load_runs(copy)
    card = headline.cards(runs)[1]
    assert card.title == "And after 8 steps?"
    assert [card.show(value) for value in card.values] == ["8.00 %", "lost"]
    assert "1 of 16 trajectories lost" in card.notes[1]
    assert "lost" not in card.notes[0]
    verdict = headline.verdict(card, runs)
    assert (verdict.leaders, verdict.text) == (
        ["steerable"], " is lowest with 8.00 %; no other lasts."
    )  # fmt: skip
    assert [bar.share for bar in card.bars(runs, True)] == pytest.approx(
        [100 * 0.08 / 0.6, 100, 100]
    )
    lose(copy[0], 2)
    runs = load_runs(copy)
    card = headline.cards(runs)[1]
    assert headline.verdict(card, runs).text == " tie at lost."
    rows = {row.label: row.values for row in table.rows(runs)["Rollout"]}
    assert rows["trajectories that blow up"] == [1, 1]
    Page(page.render(runs))


def test_observers_say_how_many_windows(copy):
    assert Page(page.render(load_runs(copy))).text.count("Measured on 32 windows.") == 2
    evaluation = Evaluation.load(copy[0] / "evaluation.json")
    assert evaluation.data.windows != 32
