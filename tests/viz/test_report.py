"""The page as a whole, and what it says about runs that lack something."""

import dataclasses
import json
import re
import shutil

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("safetensors")

from cscnn.cli import main
from cscnn.forecasting.evaluation.results import Evaluation, Samples
from cscnn.viz.report.contents import load_runs
from cscnn.viz.report.page import render, write_report
from tests.viz.report_page import Page, words
from tests.viz.report_runs import TASKS, change_evaluation, change_samples, make_run

SECTIONS = ["In short", "Forecasts beside the truth", "As forecasts run on", "Physical quantities",
            "Symmetry", "Learning", "All numbers", "Kernels", "How it was made"]  # fmt: skip


@pytest.mark.parametrize("name", TASKS)
def test_one_page_with_everything(folders, name, tmp_path, capsys):
    out = tmp_path / "page.html"
    assert main(["report", *map(str, folders[name]), "--out", str(out)]) == 0
    assert capsys.readouterr().out.startswith(f"{out}: ")
    assert list(tmp_path.iterdir()) == [out]
    text = out.read_text(encoding="utf-8")
    page = Page(text)
    assert len(text) < 5e6
    assert not re.search(r"https?:|url\(|@import", text)  # nothing from elsewhere
    assert "default-src 'none'" in page.all("meta")[1]["content"]
    assert [t for t in page.texts("h2") if t in SECTIONS] == SECTIONS
    assert len(page.texts("h1")) == 1
    assert {a["href"] for a in page.all("a")} <= {f"#{a['id']}" for a in page.all("section")
                                                 if "id" in a}  # fmt: skip
    for image in page.all("img"):
        assert image["alt"]
        assert image["src"].startswith("data:image/png;base64,")
    pictures = [a for tag in ("svg", "canvas") for a in page.all(tag) if "aria-hidden" not in a]
    assert all(a["role"] == "img" and a["aria-label"] for a in pictures)
    assert len(page.all("canvas")) == 6
    assert all(a.get("type") != "range" or a["aria-label"] for a in page.all("input"))
    assert len([a for a in page.all("input") if a["type"] == "range"]) == (name != "line")
    assert "Dotted lines are the light cone" in page.text or name == "fluid"
    assert "plain, a resnet, has no steerable kernels" in words(page)
    for fact in ("16 trajectories of split test", "20 of 20", "a processor", "4.17 min"):
        assert fact in page.text


def test_the_numbers_are_those_of_the_runs(folders):
    text = render(load_runs(folders["fluid"]))
    page = Page(text)
    for shown in ("2.00 %", "1.60 %", "28.0 %", "6,077", "350 MB", "4.00 × 10⁻⁷", "≥ 48"):
        assert shown in page.text
    bold = page.texts("b")
    assert "1.60 %" in bold  # the plain network forecasts better, and the page says so
    assert "2.00 %" not in bold
    assert "350 MB" not in bold  # equal
    verdicts = re.search(r'<ul class="verdicts">(.*?)</ul>', text, re.DOTALL)[1]
    one, later, other, kept, cost, sizes = re.findall("<li>(.*?)</li>", verdicts)
    assert "steerable has 6,077 parameters, 3.56 × as many as plain" in sizes
    assert "<b>plain</b> is lowest with 1.60 %; next is steerable with 2.00 %, 1.25 ×" in one
    assert "And after 8 steps?" in later
    assert "<b>plain</b> is lowest with 6.40 %; next is steerable with 8.00 %" in later
    assert "<b>plain</b> is lowest with 6.67 ms" in cost
    assert "<b>steerable</b> is lowest" in other
    assert "<b>steerable</b> is lowest with 4.00 × 10⁻⁷; next is plain with 0.400" in kept
    exact = "translations 3.00 × 10⁻⁷, point group 4.00 × 10⁻⁷"
    resolved = "rotations up to 90° 0.0200, a matter of resolution: interpolation alone 0.0150"
    assert f"{exact}; {resolved}" in page.text
    assert "10.0 × its error" not in page.text
    assert "5.50 × its error for the observer of the data, worst 0.00640" in page.text
    assert {"(x, y)", "(-y, x)"} <= set(page.texts("text"))  # observers by the names of their axes


def test_one_run_alone(folders):
    text = render(load_runs(folders["fluid"][:1]))
    page = Page(text)
    assert "lowest" not in page.text
    assert "is bold" not in page.text
    assert "persistence forecast" in page.text


def test_names_cannot_break_the_page(tmp_path):
    nasty = '</script><script>alert(1)</script><b>&"'
    bold = nasty.replace("/", "")  # names of fields have no slashes
    folder = tmp_path / "a<b>&'\"<script>"
    make_run(tmp_path / "tame", TASKS["fluid"](), points=8, steps=3).rename(folder)
    evaluation = Evaluation.load(folder / "evaluation.json")
    smoke, velocity = evaluation.task.fields
    change_evaluation(
        folder,
        machine={nasty: nasty},
        task={"name": nasty, "fields": (dataclasses.replace(smoke, name=bold), velocity)},
        data={"split": nasty},
        model={"name": nasty},
    )
    with pytest.raises(ValueError, match="has no array known/<script>"):
        load_runs([folder])
    stored = Samples.load(folder / "samples.npz", evaluation.task)
    renamed = Samples(
        *({bold: part["smoke"], "velocity": part["velocity"]}
          for part in (stored.known, stored.target, stored.prediction)), stored.times
    )  # fmt: skip
    (folder / "samples.npz").unlink()
    (run,) = load_runs([folder])
    assert run.samples is None
    text = render([dataclasses.replace(run, samples=renamed)])
    page = Page(text)
    assert len(page.all("script")) == 2  # the fields and the program
    assert "alert(1)" in page.text
    assert folder.name in page.texts("h2")
    data = json.loads(re.search(r'<script type="application/json">(.*?)</script>', text)[1])
    assert data["quantities"][0]["label"] == bold


def test_losses_that_are_not_finite(copy):
    """A training that diverged is on the page, as far as its losses can be drawn."""
    path = copy[0] / "metrics.csv"
    lines = path.read_text().splitlines()
    for number, text in ((3, "inf"), (5, "nan"), (7, "-inf")):
        cells = lines[number].split(",")
        lines[number] = ",".join([*cells[:2], text, text, *cells[4:]])
    path.write_text("\n".join(lines))
    page = Page(render(load_runs(copy)))
    assert "Learning" in page.texts("h2")
    assert not re.search(r"\b(nan|inf)\b", " ".join(a["d"] for a in page.all("path")))
    path.write_text("\n".join([lines[0], *(f"{i},1,inf,inf,1,1" for i in range(3))]))
    render(load_runs(copy))
    path.write_text("epoch,train_loss\n0,much\n")
    with pytest.raises(ValueError, match=r"metrics\.csv is damaged: .*'much'"):
        load_runs(copy)


def test_missing_parts_name_the_command(copy):
    shutil.rmtree(copy[1])
    copy[1].mkdir()
    (copy[1] / "config.json").write_text('{"data": {}, "model": {"name": "resnet"}}')
    page = Page(render(load_runs(copy)))
    for command in ("evaluate", "train --resume"):
        assert f"cscnn {command} {copy[1]}" in page.texts("code")
    for sentence in ("plain has not been evaluated", "There are no fields of plain",
                     "plain has not finished an epoch", "plain has no weights yet"):  # fmt: skip
        assert sentence in words(page)
    assert "lowest" not in page.text
    alone = Page(render(load_runs(copy[1:])))
    assert [t for t in alone.texts("h2") if t in SECTIONS] == [
        "In short", "Forecasts beside the truth", "Learning", "Kernels", "How it was made"
    ]  # fmt: skip
    (copy[0] / "samples.npz").unlink()
    change_evaluation(copy[0], symmetry={"rotation": None, "boost": None, "observers": None})
    page = Page(render(load_runs(copy[:1])))
    assert "Symmetry" not in page.texts("h2")
    assert "translations and the symmetries of the grid" in page.text
    assert "rotated observers" not in page.text


@pytest.mark.slow
def test_many_runs(folders, tmp_path):
    """More than there are colours."""
    many = [shutil.copytree(folders["fluid"][i % 2], tmp_path / f"run{i}") for i in range(10)]
    text = render(load_runs(many))
    page = Page(text)
    assert len(text) < 5e6
    assert len(page.all("canvas")) == 30
    assert not re.search(r"run-[89]|run-1\d", text)
    tied = "<b>run1</b>, <b>run3</b>, <b>run5</b>, <b>run7</b> and <b>run9</b> tie at 1.60 %"
    assert tied in text
    assert 'class="badge"' not in text


def test_runs_that_cannot_be_compared(copy, folders):
    text = render(load_runs([copy[0], folders["line"][1]]))
    page = Page(text)
    assert "cannot be compared" in page.text
    assert "lowest" not in page.text
    assert len([a for a in page.all("div") if a.get("class") == "viewer"]) == 2
    assert "persistence forecast" not in page.text
    assert "reference" not in {a.get("class") for a in page.all("th")}
    names = [run.label for run in load_runs([folders["fluid"][0], folders["line"][0]])]
    assert names == ["fluid/steerable", "line/steerable"]


def test_bad_input(copy, tmp_path, capsys):
    with pytest.raises(ValueError, match="at least one run, got none"):
        load_runs([])
    with pytest.raises(ValueError, match=r"once, got .*steerable twice"):
        load_runs([copy[0], copy[0]])
    with pytest.raises(FileNotFoundError, match=r"has no config\.json: there is no such folder"):
        load_runs([tmp_path / "nowhere"])
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere to write"):
        write_report(copy, tmp_path / "nowhere" / "page.html")
    assert main(["report", str(tmp_path / "nowhere")]) == 1
    assert "is not a complete run" in capsys.readouterr().err
    path = copy[0] / "evaluation.json"
    good = path.read_text()
    for text, message in (
        ("{", r"evaluation\.json is damaged, it is no JSON"),
        ("[]", "must have format 3, got None"),
        ('{"format": 1}', r"evaluation\.json must have format 3, got 1: evaluate again"),
        ('{"format": 3}', "there is no entry run"),
        (re.sub(r'("metric": \[\s*1,\s*)1', r"\g<1>3", good), "metric"),
    ):
        assert text != good
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            load_runs(copy)
    path.write_text('{"format": 1}')
    assert main(["report", str(copy[0])]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1
    path.write_text(good)
    change_samples(copy[0], lambda samples: samples.update(times=samples["times"][:3]))
    with pytest.raises(ValueError, match=r"smoke must be .* with 3 steps.*got \(8, 24, 24, 1\)"):
        load_runs(copy)
    (copy[0] / "samples.npz").write_bytes(b"PK nonsense")
    with pytest.raises(ValueError, match="is no file of arrays"):
        load_runs(copy)
