"""Fields of the page: planes that are cut, and bytes that its script colours."""

import base64
import re

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("safetensors")

from cscnn.data import Field
from cscnn.forecasting.evaluation.results import Evaluation
from cscnn.forecasting.task import Task
from cscnn.viz.report import viewer as viewers
from cscnn.viz.report.contents import load_runs
from cscnn.viz.report.page import render
from cscnn.viz.report.viewer import make_viewer
from tests.viz.report_page import Page
from tests.viz.report_runs import change_evaluation, change_samples, make_run


def decode(data, position, shape):
    """The codes of a plane (frames, y, x)."""
    return np.frombuffer(base64.b64decode(data["blobs"][position]), np.uint8).reshape(shape)


def test_fields_are_bytes(folders):
    runs = load_runs(folders["charges"])
    viewer = make_viewer(runs, [0, 1])
    data = viewer.data
    assert [q["label"] for q in data["quantities"]] == ["faraday t∧x", "faraday t∧y", "faraday x∧y"]
    assert data["steps"] == list(range(1, 9))
    assert viewer.aspect == 1
    shown = data["quantities"][0]
    first, second = shown["runs"]
    assert first["target"] == second["target"]  # stored once
    stored = runs[1].samples
    target, forecast = (a["faraday"][..., 0] for a in (stored.target, stored.prediction))
    for part, values, (low, high) in (
        ("target", target, shown["limits"]),
        ("prediction", forecast, shown["limits"]),
        ("error", forecast - target, (-shown["error"], shown["error"])),
    ):
        codes = decode(data, second[part], (8, 24, 24))
        codes = codes[:, ::-1].transpose(0, 2, 1)  # rows from the top
        expected = np.clip(values, low, high)
        step = (high - low) / 254
        assert np.abs(low + codes * step - expected).max() <= 0.51 * step
    assert shown["limits"][0] == -shown["limits"][1]
    error = np.linalg.norm(forecast[3] - target[3]) / np.linalg.norm(target[3])
    assert second["relative"][3] == pytest.approx(error, rel=1e-3)


def test_a_line_is_one_diagram(folders):
    runs = load_runs(folders["line"])
    data = make_viewer(runs, [0, 1]).data
    assert data["steps"] == []
    shown = data["quantities"][0]
    assert (shown["width"], shown["height"]) == (24, 8)
    codes = decode(data, shown["runs"][0]["target"], (8, 24))
    stored = runs[0].samples.target["sine"][..., 0]
    low, high = shown["limits"]
    expected = (np.clip(stored[::-1], low, high) - low) / (high - low) * 254  # time goes up
    assert np.abs(codes - expected).max() < 0.51


def test_forecasts_that_blow_up(copy):
    def spoil(samples):
        samples["prediction/smoke"][4:] = np.nan
        samples["prediction/smoke"][3] = np.inf
        samples["prediction/smoke"][2] = 1e20

    change_samples(copy[0], spoil)
    errors = Evaluation.load(copy[0] / "evaluation.json").rollout.relative_l2[:4]
    change_evaluation(
        copy[0], rollout={"relative_l2": errors + [float("nan")] * 4, "stable_steps": 4}
    )
    runs = load_runs(copy)
    data = make_viewer(runs, [0, 1]).data
    shown = data["quantities"][0]
    codes = decode(data, shown["runs"][0]["prediction"], (8, -1))
    assert np.all(codes[4:] == 255)
    assert np.all(codes[2:4] == 254)
    assert shown["error"] <= shown["limits"][1] - shown["limits"][0]  # the other run stays visible
    assert shown["runs"][0]["relative"][4:] == [None] * 4
    text = render(runs)
    Page(text)
    assert not re.search(r"\bnan\b", text, re.IGNORECASE)


def test_pages_stay_small(folders):
    runs = load_runs(folders["charges"])
    full = make_viewer(runs, [0, 1])
    assert not full.notes
    small = make_viewer(runs, [0, 1], budget=20_000)
    planes = [a for q in small.quantities for a in (*q.targets, *q.predictions, *q.predictions)]
    assert sum(a.size for a in planes) <= 20_000
    assert "the first 1 of 3 components are shown" in small.notes
    large = np.random.default_rng(0).normal(size=(60, 96, 96))
    quantity = viewers.Quantity("x", [large], [large])
    steps, coarsen, kept = viewers._reduction([quantity], 100_000)
    assert (steps[0], steps[-1], kept) == (0, 59, 1)
    assert 3 * len(steps) * (96 // coarsen) ** 2 <= 100_000
    assert np.allclose(viewers._coarse(large, 2)[3, 5, 7], large[3, 10:12, 14:16].mean())


def test_space_of_three_dimensions_is_cut(tmp_path):
    task = Task("box", (1, 1, 1), (Field("heat", 0), Field("flow", 1)), spacing=(1.0, 2.0, 1.0))
    folder = make_run(tmp_path / "box", task, "resnet", points=6, steps=3)
    runs = load_runs([folder])
    viewer = make_viewer(runs, [0])
    assert viewer.notes == ["the plane z = point 4 of 6 is shown"]
    stored = runs[0].samples.target["flow"]
    assert np.allclose(viewer.quantities[2].targets[0], stored[:, :, :, 3, 1])
    assert [q.label for q in viewer.quantities] == ["heat", "flow x", "flow y", "flow z"]
    assert viewer.aspect == 0.5
    assert "point 4 of 6" in render(runs)
