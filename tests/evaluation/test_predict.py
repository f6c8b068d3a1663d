"""Forecasts as data, and models for other programs."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from cscnn import models
from cscnn.cli import main
from cscnn.data import FieldFile, Scaling, coarse_task
from cscnn.data.files import problems
from cscnn.data.generate import generate, plans
from cscnn.data.simulators import create
from cscnn.evaluation.predict import predict
from cscnn.evaluation.rollout import rollout
from cscnn.training import DataConfig, TrainConfig
from cscnn.training.export import plain_model
from cscnn.training.run import Run

TINY = {
    "navier_stokes": ({"grid": (8, 8), "frames": 8}, {"frames_in": 3, "frames_out": 2}, 2),
    "sine_gordon": ({"grid": (12,), "frames": 16}, {"frames_in": 4}, 1),
    "maxwell_spacetime4d": (
        {"grid": (4, 4, 4), "frames": 8, "distance": 1.0}, {"frames_in": 4}, 1,
    ),
}  # fmt: skip


def make_run(folder: Path, task: str, model: str = "cs_resnet") -> Run:
    """A run as ``cscnn train`` leaves it, untrained."""
    simulator, frames, coarsen = TINY[task]
    (plan,) = plans(create(task, **simulator), folder, {"train": 2})
    generate([plan])
    source = FieldFile(plan.path)
    built = models.build(
        model, coarse_task(source.header, coarsen, **frames), width=2, blocks=1, kernel_size=3
    )
    models.save(built, folder / "model.safetensors")
    Scaling.fit(source).save(folder / "scaling.json")
    config = TrainConfig(
        out=str(folder), data=DataConfig(train=str(plan.path), coarsen=coarsen, **frames)
    )
    (folder / "config.json").write_text(json.dumps(config.to_dict()))
    return Run(folder)


@pytest.mark.parametrize("task", TINY)
def test_forecasts_are_those_of_a_rollout(task: str, tmp_path: Path) -> None:
    run = make_run(tmp_path, task)
    predict(run, tmp_path / "train.h5", tmp_path / "out.h5", steps=5)
    assert list(problems(tmp_path / "out.h5")) == []
    out, source = FieldFile(tmp_path / "out.h5"), FieldFile(tmp_path / "train.h5")
    assert (out.header.frames, len(out)) == (5, 2)
    assert out.header.generator == "cscnn predict"
    if TINY[task][2] > 1:
        assert out.header.grid == (4, 4)
        assert out.header.spacing[0] == 2 * source.header.spacing[0]
        return
    frames = {name: torch.as_tensor(a)[None] for name, a in source.read(1).items()}
    steps = min(4, source.header.frames - run.model().task.frames_in)
    expected = rollout(run.model(), frames, run.scaling(), steps=steps).prediction
    for name, x in expected.items():
        assert np.allclose(out.read(1)[name][:steps], x[0].numpy(), atol=1e-5)


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path, "navier_stokes")
    data = str(tmp_path / "train.h5")
    out = str(tmp_path / "forecast.h5")
    assert main(["predict", str(tmp_path), data, "--steps", "3", "--out", out]) == 0
    assert FieldFile(out).header.frames == 3
    assert main(["predict", str(tmp_path), data, "--start", "7", "--out", out]) == 1
    assert "has frames 0 to 8, got 7 to 10" in capsys.readouterr().err
    assert main(["export", str(tmp_path), "--out", str(tmp_path / "m.zip")]) == 1
    assert "must end in .pt2 or .onnx, got m.zip" in capsys.readouterr().err
    assert main(["export", str(tmp_path), "--out", str(tmp_path / "m.pt2")]) == 0
    module = torch.export.load(tmp_path / "m.pt2").module()
    x = torch.randn(1, 3, 4, 4, 4)
    x[..., 3] = 0
    with torch.no_grad():
        assert torch.allclose(module(x), plain_model(run)(x), atol=1e-5)


@pytest.mark.parametrize("name", ["cs_resnet", "resnet"])
def test_exported_models_take_physical_units(name: str, tmp_path: Path) -> None:
    run = make_run(tmp_path, "navier_stokes", name)
    model, scaling = run.model(), run.scaling()
    task = model.task
    fields = {"smoke": torch.rand(1, 3, 4, 4, 1), "velocity": torch.randn(1, 3, 4, 4, 2)}
    with torch.no_grad():
        expected = scaling.restore(task.unpack(model(task.pack(scaling.apply(fields)))))
        found = task.unpack(plain_model(run)(task.pack(fields)))
    for key in expected:
        assert torch.allclose(found[key], expected[key], atol=1e-4)


@pytest.mark.filterwarnings("ignore")
def test_onnx(tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    make_run(tmp_path, "sine_gordon")
    assert main(["export", str(tmp_path), "--out", str(tmp_path / "m.onnx")]) == 0
    assert (tmp_path / "m.onnx").stat().st_size > 1000


def test_four_dimensions_have_no_plain_convolution(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_run(tmp_path, "maxwell_spacetime4d")
    assert main(["export", str(tmp_path), "--out", str(tmp_path / "m.pt2")]) == 1
    assert "no plain convolution in 4 dimensions" in capsys.readouterr().err
    assert not (tmp_path / "m.pt2").exists()


def test_other_data_are_refused(tmp_path: Path) -> None:
    run = make_run(tmp_path, "sine_gordon")
    (tmp_path / "x").mkdir()
    make_run(tmp_path / "x", "navier_stokes")
    with pytest.raises(
        ValueError,
        match=r"is not for the model of .* has metric \(1, -1\)",
    ):
        predict(run, tmp_path / "x" / "train.h5", tmp_path / "out.h5", steps=1)
    assert not (tmp_path / "out.h5").exists()
