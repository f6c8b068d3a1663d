import base64
import dataclasses
import html.parser
import json
import re
import shutil

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("safetensors")

from report_runs import TASKS, make_run

from cscnn.cli import main
from cscnn.models.tasks import Field, Task
from cscnn.viz.report import frames
from cscnn.viz.report.charts import Axis, Series, line_chart
from cscnn.viz.report.contents import Samples, load_runs
from cscnn.viz.report.numbers import count, duration, listing, number, percent, size
from cscnn.viz.report.page import render, write_report

VOID = {"meta", "input", "img", "br", "link"}
SECTIONS = ["In short", "Forecasts beside the truth", "As forecasts run on", "Symmetry", "Learning",
            "All numbers", "Kernels", "How it was made"]  # fmt: skip


class Page(html.parser.HTMLParser):
    """Headings, attributes and scripts; fails on elements that are not closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.data = [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.data.append((tag, ""))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.data.append((self.open[-1] if self.open else "", data))

    def texts(self, tag):
        return [data for name, data in self.data if name == tag and data]

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def text(self):
        return " ".join(data for tag, data in self.data if tag not in ("script", "style"))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two runs of each task; the second one forecasts better in the plane only."""
    root = tmp_path_factory.mktemp("runs")
    return {
        name: [
            make_run(root / name / "steerable", task(), "cs_resnet"),
            make_run(root / name / "plain", task(), "resnet", quality=0.8 if name == "fluid" else 3,
                     seed=1),
        ]
        for name, task in TASKS.items()
    }  # fmt: skip


@pytest.fixture
def copy(folders, tmp_path):
    """The two runs of the plane, to be spoilt."""
    return [shutil.copytree(f, tmp_path / "runs" / f.name) for f in folders["fluid"]]


def evaluation(folder, **changes):
    path = folder / "evaluation.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


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
    assert "dotted lines are the light cone" in page.text or name == "fluid"
    assert "plain, a resnet, has no steerable kernels" in re.sub(r"\s+(?=,)", "", page.text)
    for word in ("16 trajectories of split test", "20 of 20", "a processor", "4.17 min"):
        assert word in page.text


def test_the_numbers_are_those_of_the_runs(folders):
    text = render(load_runs(folders["fluid"]))
    page = Page(text)
    for shown in ("2.00 %", "1.60 %", "28.0 %", "6,077", "350 MB", "4.00 × 10⁻⁷", "not lost"):
        assert shown in page.text
    bold = page.texts("b")
    assert "1.60 %" in bold  # the plain network forecasts better, and the page says so
    assert "2.00 %" not in bold
    assert "350 MB" not in bold  # equal
    verdicts = re.search(r'<ul class="verdicts">(.*?)</ul>', text)[1]
    one, other, kept, race = re.findall("<li>(.*?)</li>", verdicts)
    assert "steerable has 6,077 parameters, 3.55 × as many as plain" in race
    assert "<b>plain</b> is lowest with 1.60 %; next is steerable with 2.00 %, 1.25 ×" in one
    assert "<b>steerable</b> is lowest" in other
    assert "<b>steerable</b> is lowest" in kept
    assert "grid alone costs 0.0150" in page.text
    assert "10.0 × its error" not in page.text
    assert "5.50 × its error in the usual frame, worst 0.00640" in page.text
    assert {"(x, y)", "(-y, x)"} <= set(page.texts("text"))  # observers by the names of their axes


def test_one_run_alone(folders):
    text = render(load_runs(folders["fluid"][:1]))
    page = Page(text)
    assert "lowest" not in page.text
    assert "is bold" not in page.text
    assert "if nothing changes" in page.text


def test_fields_are_bytes(folders):
    runs = load_runs(folders["charges"])
    viewer = frames.make_viewer(runs, [0, 1])
    data = frames.encode(viewer)
    assert [q["label"] for q in data["quantities"]] == ["faraday t∧x", "faraday t∧y", "faraday x∧y"]
    assert data["steps"] == list(range(1, 9))
    assert viewer.aspect == 1
    shown = data["quantities"][0]
    first, second = shown["runs"]
    assert first["target"] == second["target"]  # stored once
    stored = runs[1].samples
    target, forecast = (a["faraday"][..., 0] for a in (stored.target, stored.prediction))
    for kind, values, (low, high) in (
        ("target", target, shown["limits"]),
        ("prediction", forecast, shown["limits"]),
        ("error", forecast - target, (-shown["error"], shown["error"])),
    ):
        codes = np.frombuffer(base64.b64decode(data["blobs"][second[kind]]), np.uint8)
        codes = codes.reshape(8, 24, 24)[:, ::-1].transpose(0, 2, 1)  # rows from the top
        wanted = np.clip(values, low, high)
        assert np.abs(low + codes / 254 * (high - low) - wanted).max() <= 0.51 * (high - low) / 254
    assert shown["limits"][0] == -shown["limits"][1]
    error = np.linalg.norm(forecast[3] - target[3]) / np.linalg.norm(target[3])
    assert second["relative"][3] == pytest.approx(error, rel=1e-3)


def test_a_line_is_one_diagram(folders):
    data = frames.encode(frames.make_viewer(load_runs(folders["line"]), [0, 1]))
    assert data["steps"] == []
    shown = data["quantities"][0]
    assert (shown["width"], shown["height"]) == (24, 8)
    codes = np.frombuffer(base64.b64decode(data["blobs"][shown["runs"][0]["target"]]), np.uint8)
    stored = load_runs(folders["line"])[0].samples.target["sine"][..., 0]
    low, high = shown["limits"]
    wanted = (np.clip(stored[::-1], low, high) - low) / (high - low) * 254  # time goes up
    assert np.abs(codes.reshape(8, 24) - wanted).max() < 0.51


def test_forecasts_that_blow_up(copy):
    samples = dict(np.load(copy[0] / "samples.npz"))
    samples["prediction/smoke"][4:] = np.nan
    samples["prediction/smoke"][3] = np.inf
    samples["prediction/smoke"][2] = 1e20
    np.savez(copy[0] / "samples.npz", **samples)
    found = json.loads((copy[0] / "evaluation.json").read_text())
    found["rollout"]["relative_l2"][4:] = [None] * 4
    found["rollout"]["stable_steps"] = 4
    evaluation(copy[0], rollout=found["rollout"])
    runs = load_runs(copy)
    data = frames.encode(frames.make_viewer(runs, [0, 1]))
    shown = data["quantities"][0]
    codes = np.frombuffer(base64.b64decode(data["blobs"][shown["runs"][0]["prediction"]]), np.uint8)
    codes = codes.reshape(8, -1)
    assert np.all(codes[4:] == 255)
    assert np.all(codes[2:4] == 254)
    assert shown["error"] <= shown["limits"][1] - shown["limits"][0]  # the other run stays visible
    assert shown["runs"][0]["relative"][4:] == [None] * 4
    Page(render(runs))


def test_pages_stay_small(folders):
    runs = load_runs(folders["charges"])
    full = frames.make_viewer(runs, [0, 1])
    assert not full.notes
    small = frames.make_viewer(runs, [0, 1], budget=20_000)
    planes = [a for q in small.quantities for a in (*q.targets, *q.predictions, *q.predictions)]
    assert sum(a.size for a in planes) <= 20_000
    assert "the first 1 of 3 components are shown" in small.notes
    large = np.random.default_rng(0).normal(size=(60, 96, 96))
    quantity = frames.Quantity("x", [large], [large])
    steps, coarse, kept = frames._reduction([quantity], 100_000)
    assert (steps[0], steps[-1], kept) == (0, 59, 1)
    assert 3 * len(steps) * (96 // coarse) ** 2 <= 100_000
    assert np.allclose(frames._coarsen(large, 2)[3, 5, 7], large[3, 10:12, 14:16].mean())


def test_space_of_three_dimensions_is_cut(tmp_path):
    task = Task("box", (1, 1, 1), (Field("heat", 0), Field("flow", 1)), spacing=(1.0, 2.0, 1.0))
    folder = make_run(tmp_path / "box", task, "resnet", points=6, steps=3)
    runs = load_runs([folder])
    viewer = frames.make_viewer(runs, [0])
    assert viewer.notes == ["the plane z = point 4 of 6 is shown"]
    stored = runs[0].samples.target["flow"]
    assert np.allclose(viewer.quantities[2].targets[0], stored[:, :, :, 3, 1])
    assert [q.label for q in viewer.quantities] == ["heat", "flow x", "flow y", "flow z"]
    assert viewer.aspect == 0.5
    assert "point 4 of 6" in render(runs)


def test_names_cannot_break_the_page(tmp_path):
    nasty = '</script><script>alert(1)</script><b>&"'
    folder = tmp_path / "a<b>&'\"<script>"
    make_run(tmp_path / "tame", TASKS["fluid"](), points=8, steps=3).rename(folder)
    found = json.loads((folder / "evaluation.json").read_text())
    found["machine"] = {nasty: nasty}
    found["task"]["name"] = found["data"]["split"] = found["model"]["name"] = nasty
    found["task"]["fields"][0]["name"] = nasty
    evaluation(folder, **found)
    with pytest.raises(ValueError, match="has no array target/</script>"):
        load_runs([folder])
    samples = {k.replace("smoke", nasty): v for k, v in np.load(folder / "samples.npz").items()}
    runs = load_runs([shutil.copytree(folder, tmp_path / "x", ignore=lambda *_: {"samples.npz"})])
    assert runs[0].samples is None
    task = runs[0].task
    stored = Samples(*({f.name: samples[f"{k}/{f.name}"] for f in task.fields}
                       for k in ("target", "prediction")), samples["times"])  # fmt: skip
    (folder / "samples.npz").unlink()
    text = render([dataclasses.replace(load_runs([folder])[0], samples=stored)])
    page = Page(text)
    assert len(page.all("script")) == 2  # the fields and the program
    assert "alert(1)" in page.text
    assert folder.name in page.texts("h2")
    data = json.loads(re.search(r'<script type="application/json">(.*?)</script>', text)[1])
    assert data["quantities"][0]["label"] == nasty
    assert frames.to_script(["</script>&"]) == '["\\u003c/script\\u003e\\u0026"]'


def test_missing_parts_name_the_command(copy):
    shutil.rmtree(copy[1])
    copy[1].mkdir()
    (copy[1] / "config.json").write_text('{"data": {}, "model": {"name": "resnet"}}')
    page = Page(render(load_runs(copy)))
    for command in ("evaluate", "train --resume"):
        assert f"cscnn {command} {copy[1]}" in page.texts("code")
    words = re.sub(r"\s+", " ", page.text)
    for sentence in ("plain has not been evaluated", "There are no fields of plain",
                     "plain has not finished an epoch", "plain has no weights yet"):  # fmt: skip
        assert sentence in words
    assert "lowest" not in words
    alone = Page(render(load_runs(copy[1:])))
    assert [t for t in alone.texts("h2") if t in SECTIONS] == [
        "In short", "Forecasts beside the truth", "Learning", "Kernels", "How it was made"
    ]  # fmt: skip
    (copy[0] / "samples.npz").unlink()
    evaluation(copy[0], symmetry={"translation": 1e-7, "point group": 1e-6, "rotation": None,
                                  "boost": None, "frames": None})  # fmt: skip
    page = Page(render(load_runs(copy[:1])))
    assert "Symmetry" not in page.texts("h2")
    assert "over turns and flips of the grid" in page.text
    assert "rotated frames" not in page.text


def test_many_runs(folders, tmp_path):
    """More than there are colours."""
    many = [shutil.copytree(folders["fluid"][i % 2], tmp_path / f"run{i}") for i in range(10)]
    text = render(load_runs(many))
    page = Page(text)
    assert len(text) < 5e6
    assert len(page.all("canvas")) == 30
    assert not re.search(r"run-[89]|run-1\d", text)
    assert (
        "<b>run1</b>, <b>run3</b>, <b>run5</b>, <b>run7</b> and <b>run9</b> tie at 1.60 %" in text
    )
    assert 'class="badge"' not in text


def test_runs_that_cannot_be_compared(copy, folders):
    text = render(load_runs([copy[0], folders["line"][1]]))
    page = Page(text)
    assert "cannot be compared" in page.text
    assert "lowest" not in page.text
    assert len([a for a in page.all("div") if a.get("class") == "viewer"]) == 2
    assert "nothing changes" not in page.text.replace("Grey: the forecast that nothing changes", "")
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
        ("{", "is no JSON"),
        ("[]", "must have format 1, got None"),
        ('{"format": 2}', "must have format 1, got 2: evaluate again"),
        ('{"format": 1}', "has no entry model, task, data"),
        (good.replace('"metric": [1, 1]', '"metric": [1, 3]'), "describes no task"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            load_runs(copy)
    path.write_text(good)
    samples = dict(np.load(copy[0] / "samples.npz"))
    np.savez(copy[0] / "samples.npz", **{**samples, "times": samples["times"][:3]})
    with pytest.raises(ValueError, match=r"smoke must be .* with 3 steps.*got \(8, 24, 24, 1\)"):
        load_runs(copy)
    (copy[0] / "samples.npz").write_bytes(b"PK nonsense")
    with pytest.raises(ValueError, match="is no file of arrays"):
        load_runs(copy)


def test_charts():
    assert line_chart("t", "", [Series("a", [1, 2], [None, 0.0], "run-0")], "x", "y") == ""
    one = Page(line_chart("t", "", [Series("a<", [1], [3.0], "run-0")], "x", "y"))
    assert "a< is 3.00 at 1" in one.all("svg")[1]["aria-label"]
    two = line_chart("t", "", [Series("a", [0, 1], [-1.0, 1.0], "run-1", faint=True)], "x", "y",
                     log=False)  # fmt: skip
    assert "goes from −1.00 at 0 to 1.00 at 1" in two
    assert "marker" not in two
    assert [t for _, t in Axis(0, 10, 0, 1).ticks()] == ["0", "2", "4", "6", "8", "10"]
    assert [t for _, t in Axis(0.02, 0.3, 0, 1, log=True).ticks()] == ["0.02", "0.05", "0.1", "0.2"]
    assert [t for _, t in Axis(1e-8, 1, 0, 1, log=True).ticks()] == [
        "10⁻⁸", "10⁻⁶", "10⁻⁴", "0.01", "1"
    ]  # fmt: skip
    assert Axis(1e-4, 1, 200, 0, log=True)(1e-2) == pytest.approx(100)


def test_numbers_for_people():
    assert [number(v) for v in (None, 0, 0.0123, -1.5, 123.4, 54321, 3.21e-7, float("inf"))] == [
        "–", "0", "0.0123", "−1.50", "123", "54,321", "3.21 × 10⁻⁷", "∞"
    ]  # fmt: skip
    assert [percent(v) for v in (None, 0.042, 1.45, 1e-7, 1e4)] == [
        "–", "4.20 %", "145 %", "1.00 × 10⁻⁷", "10,000"
    ]  # fmt: skip
    assert [count(None), count(12345.0), size(None), size(2.5e9)] == ["–", "12,345", "–", "2.5 GB"]
    assert [duration(s) for s in (12.5, 250, 7200)] == ["12.5 s", "4.17 min", "2 h"]
    assert listing(["a"]) == "a"
    assert listing(["a", "b", "c"]) == "a, b and c"
