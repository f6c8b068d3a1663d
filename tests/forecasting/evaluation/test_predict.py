"""Forecasts as data."""

import numpy as np
import pytest
import torch

from cscnn.cli import main
from cscnn.data import FieldFile
from cscnn.data.files import find_damage
from cscnn.data.simulators import create
from cscnn.forecasting.evaluation.rollout import rollout
from cscnn.forecasting.predict import predict
from cscnn.viz.panels import time_label
from tests.forecasting.evaluation.stubs import make_run

TINY = {
    "navier_stokes": ({"grid": (8, 8), "frames": 8}, {"frames_in": 3, "frames_out": 2}),
    "sine_gordon": ({"grid": (12,), "frames": 16}, {"frames_in": 4}),
    "maxwell_spacetime4d": ({"grid": (4, 4, 4), "frames": 8, "distance": 1.0}, {"frames_in": 4}),
}


def tiny_run(folder, task, name="cs_resnet", coarsen=1):
    simulator, frames = TINY[task]
    return make_run(folder, create(task, **simulator), name, coarsen, splits=("train",), **frames)


def training_data(run):
    return run.config().data.train


@pytest.mark.parametrize("task", TINY)
def test_forecasts_are_those_of_a_rollout(task, tmp_path):
    run = tiny_run(tmp_path, task)
    forecaster, out = run.forecaster(), tmp_path / "out.h5"
    predict(forecaster, training_data(run), out, steps=5)
    assert list(find_damage(out)) == []
    with FieldFile(out) as forecasts, run.source("train") as source:
        assert (forecasts.header.frames, len(forecasts)) == (5, 2)
        assert forecasts.header.generator == "cscnn predict"
        assert forecasts.header.parameters["model"] == "cs_resnet"
        frames = {name: torch.as_tensor(a)[None] for name, a in source.read(1).items()}
        steps = min(4, source.header.frames - forecaster.task.frames_in)
        expected = rollout(forecaster, frames, steps=steps).prediction
        for name, x in expected.items():
            np.testing.assert_allclose(forecasts.read(1)[name][:steps], x[0], atol=1e-5)


@pytest.mark.parametrize(("task", "start"), [("navier_stokes", 1), ("sine_gordon", 2)])
def test_forecasts_on_cells(task, start, tmp_path):
    """Grid, spacing and frames are those that the network sees, the first frame too."""
    run = tiny_run(tmp_path, task, coarsen=2)
    forecaster, out = run.forecaster(), tmp_path / "out.h5"
    predict(forecaster, training_data(run), out, steps=3, start=start)
    with FieldFile(out) as forecasts, run.source("train") as source:
        seen, header = forecaster.view(source), source.header
        assert forecasts.header.grid == tuple(n // 2 for n in header.grid)
        assert forecasts.header.spacing[0] == 2 * header.spacing[0]
        joined = 1 if header.time_axis is None else 2
        assert forecasts.header.frame_spacing == joined * header.frame_spacing
        first = start + forecaster.task.frames_in
        assert forecasts.header.start_time == first * joined * header.frame_spacing
        label = time_label(forecasts.header, 0)
        assert label == time_label(seen.header, first)
        stop = start + forecaster.task.frames_in
        known = {n: torch.as_tensor(a)[None] for n, a in seen.read(0, start, stop).items()}
        with torch.no_grad():
            expected = forecaster(known, steps=3)
        for name, x in expected.items():
            np.testing.assert_allclose(forecasts.read(0)[name], x[0], atol=1e-6)


def test_command(tmp_path, capsys):
    run = tiny_run(tmp_path, "navier_stokes", coarsen=2)
    data, out = training_data(run), str(tmp_path / "forecast.h5")
    for forecaster in (run.path, run.path / "model.safetensors"):
        command = ["predict", str(forecaster), data, "--steps", "3", "--out", out]
        assert main([*command, "--overwrite"]) == 0
        with FieldFile(out) as forecasts:
            assert forecasts.header.frames == 3
    out = str(tmp_path / "other.h5")
    assert main(["predict", str(run.path), data, "--start", "7", "--out", out]) == 1
    assert "has frames 0 to 8, got 7 to 10" in capsys.readouterr().err
    assert main(["predict", str(tmp_path / "no"), data, "--out", out]) == 1
    assert "there is no folder or file" in capsys.readouterr().err
    assert main(["predict", str(tmp_path), data, "--out", out]) == 1
    assert "is not a complete run, it has no model.safetensors" in capsys.readouterr().err


def test_other_data_are_refused(tmp_path):
    for name in ("waves", "smoke"):
        (tmp_path / name).mkdir()
    waves = tiny_run(tmp_path / "waves", "sine_gordon")
    smoke = tiny_run(tmp_path / "smoke", "navier_stokes")
    with pytest.raises(ValueError, match=r"is not for this forecaster: .* has metric \(1, -1\)"):
        predict(waves.forecaster(), training_data(smoke), tmp_path / "out.h5", steps=1)
    assert not (tmp_path / "out.h5").exists()
