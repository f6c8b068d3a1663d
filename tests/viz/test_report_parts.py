"""Parts of the page by themselves: kernels, charts, numbers."""

import re
import sys

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("safetensors")

from torch import nn

from cscnn import CliffordAlgebra, CliffordSteerableConv
from cscnn.forecasting.runs import Run
from cscnn.viz.numbers import count, duration, listing, number, percent, size
from cscnn.viz.report import page
from cscnn.viz.report.charts import Axis, Series, line_chart
from cscnn.viz.report.contents import load_runs
from cscnn.viz.report.kernels import first_conv, kernel_plate
from tests.viz.report_page import Page


def test_networks_without_a_picture(folders, monkeypatch):
    """A network of a package that is not installed, and kernels of four dimensions."""
    (run,) = load_runs(folders["fluid"][:1])

    def fail(self, device="cpu"):
        raise ImportError("it needs the package cliffordlayers")

    monkeypatch.setattr(Run, "forecaster", fail)
    assert kernel_plate(run).text == " cannot be built here: it needs the package cliffordlayers."
    conv = CliffordSteerableConv(CliffordAlgebra((1, 1, 1, 1)), 1, 1, 3)
    monkeypatch.setattr(Run, "forecaster", lambda self, device="cpu": conv)
    plate = kernel_plate(run)
    assert plate.text == " has kernels of 4 dimensions, which have no picture."
    assert not plate.image


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_packages_that_are_missing(folders, monkeypatch, package):
    runs = load_runs(folders["fluid"][:1])
    page._templates.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"needs the package {package}: pip .*'cscnn\[viz\]'"):
        page.render(runs)


def test_the_usual_kernel_is_shown():
    plane = CliffordAlgebra((1, 1))
    convs = [CliffordSteerableConv(plane, 1, 1, size) for size in (1, 9, 7, 7)]
    assert first_conv(nn.Sequential(*convs)) is convs[2]
    assert first_conv(nn.Sequential(*convs[:2])) is convs[1]
    assert first_conv(nn.Linear(1, 1)) is None


def test_charts():
    assert line_chart("t", "", [Series("a", [1, 2], [None, 0.0], "run-0")], "x", "y") is None
    point = line_chart("t", "", [Series("a<", [1], [3.0], "run-0")], "x", "y")
    parsed = Page(page.render_template("chart.html", chart=point))
    assert "a< is 3.00 at 1" in parsed.all("svg")[1]["aria-label"]
    faint = Series("a", [0, 1], [-1.0, 1.0], "run-1", faint=True)
    text = page.render_template(
        "chart.html", chart=line_chart("t", "", [faint], "x", "y", log=False)
    )
    assert "goes from −1.00 at 0 to 1.00 at 1" in text
    assert "marker" not in text
    runs = [Series(f"run {i}", [0, 1], [1.0, 2.0], f"run-{i}") for i in range(2)]
    reference = Series("reference", [0, 1], [1.0, 3.0], "reference")
    chart = line_chart("t", "", [*runs, reference], "x", "y")
    assert len({line.shape for line in chart.lines}) == 3  # runs by shape, references without
    drawn = re.findall(r'<g class="(.*?)">', page.render_template("chart.html", chart=chart))
    assert drawn == ["reference", "run-0", "run-1"]  # runs above references
    assert chart.table == [("0", ["1.00", "1.00", "1.00"]), ("1", ["2.00", "2.00", "3.00"])]
    assert [t for _, t in Axis(0, 10, 0, 1).ticks()] == ["0", "2", "4", "6", "8", "10"]
    assert [t for _, t in Axis(1, 4, 0, 1, whole=True).ticks()] == ["1", "2", "3", "4"]
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
