"""Forecasters for programs without this library."""

import os
import signal
import sys
from pathlib import Path

import pytest
import torch

from cscnn.cli import main
from cscnn.forecasting import Task, Units
from cscnn.forecasting import export as export_module
from cscnn.forecasting.export import deployable, export
from tests.forecasting.evaluation.stubs import forecaster, plane
from tests.forecasting.evaluation.test_predict import tiny_run
from tests.forks import fork, needs_fork

UNITS = Units({"smoke": 2.0, "wind": 0.5}, {"smoke": 1.0})


def fields(batch=1, frames=2, grid=(6, 5)):
    return {
        "smoke": torch.rand(batch, frames, *grid, 1),
        "wind": torch.randn(batch, frames, *grid, 2),
    }


@pytest.mark.parametrize("name", ["cs_resnet", "resnet"])
@pytest.mark.parametrize("boundary", ["open", ("open", "periodic")])
def test_programs_take_physical_units(name, boundary, tmp_path):
    original = forecaster(name, plane(boundary=boundary), UNITS).float()
    assert export(original, tmp_path / "x.pt2", grid=(6, 5), batch=3) < 1e-5
    program = torch.export.load(tmp_path / "x.pt2").module()
    frames = fields(batch=3)
    with torch.no_grad():
        expected, made = original(frames), program(frames)
    assert set(made) == {"smoke", "wind"}
    for key, x in expected.items():
        assert made[key].shape == (3, 1, 6, 5, x.shape[-1])
        torch.testing.assert_close(made[key], x, rtol=1e-4, atol=1e-5)


def test_nothing_of_this_library_is_left():
    original = forecaster("cs_resnet", plane(), UNITS)
    names = {type(m).__name__ for m in deployable(original).modules()}
    assert "CliffordSteerableConv" not in names
    assert "CliffordSteerableConv" in {type(m).__name__ for m in original.modules()}


def test_spacetime(tmp_path):
    run = tiny_run(tmp_path, "sine_gordon")
    original = run.forecaster()
    assert export(original, tmp_path / "x.pt2", grid=(12,)) < 1e-5
    with pytest.raises(ValueError, match=r"has 1 axes of space .* got grid 4 12"):
        export(original, tmp_path / "y.pt2", grid=(4, 12))
    assert not (tmp_path / "y.pt2").exists()


@pytest.mark.parametrize("suffix", [".pt2", pytest.param(".onnx", marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore")
def test_one_sided_differences(tmp_path, suffix):
    """`export` itself compares the program with the original."""
    if suffix == ".onnx":
        pytest.importorskip("onnxscript")
        pytest.importorskip("onnxruntime")
    task = plane(frames_in=3, open_padding="extrapolate")
    original = forecaster("cs_resnet", task, UNITS, kernel_size=5, kernel="differential").float()
    assert export(original, tmp_path / f"x{suffix}", grid=(7, 6)) < 1e-5


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_onnx(tmp_path):
    pytest.importorskip("onnxscript")
    runtime = pytest.importorskip("onnxruntime")
    run = tiny_run(tmp_path, "sine_gordon")
    out = tmp_path / "m.onnx"
    assert main(["export", str(run.path), "--out", str(out)]) == 0
    session = runtime.InferenceSession(str(out), providers=["CPUExecutionProvider"])
    shapes = {entry.name: tuple(entry.shape) for entry in session.get_inputs()}
    assert shapes == {"sine": (1, 4, 12, 1), "cosine": (1, 4, 12, 1), "gradient": (1, 4, 12, 2)}
    frames = {name: torch.randn(shape) for name, shape in shapes.items()}
    (gradient,) = session.run(["forecast_gradient"], {n: x.numpy() for n, x in frames.items()})
    with torch.no_grad():
        expected = run.forecaster()(frames)["gradient"]
    torch.testing.assert_close(torch.as_tensor(gradient), expected, rtol=1e-4, atol=1e-5)


def test_command(tmp_path, capsys):
    """The grid is that of the training data in cells, or the given one."""
    run = tiny_run(tmp_path, "navier_stokes", coarsen=2)
    out = tmp_path / "m.pt2"

    def grid_of_program():
        program = torch.export.load(out).module()
        for grid in ((4, 4), (6, 5)):
            frames = {"smoke": torch.rand(1, 3, *grid, 1), "velocity": torch.rand(1, 3, *grid, 2)}
            try:
                assert program(frames)["velocity"].shape == (1, 2, *grid, 2)
            except (AssertionError, RuntimeError):
                continue
            yield grid

    def run_command(*argv):
        code = main(["export", *map(str, argv)])
        return code, capsys.readouterr().err

    assert run_command(run.path, "--out", out)[0] == 0
    assert list(grid_of_program()) == [(4, 4)]
    file = run.path / "model.safetensors"
    assert run_command(file, "--out", out, "--grid", 6, 5, "--overwrite")[0] == 0
    assert list(grid_of_program()) == [(6, 5)]
    for argv, message in (
        ((file, "--out", tmp_path / "new.pt2"), "does not name its training data"),
        ((run.path, "--out", tmp_path / "m.zip"), "must end in .pt2 or .onnx, got m.zip"),
        ((run.path, "--out", tmp_path / "no" / "m.pt2"), "there is no folder"),
    ):
        code, error = run_command(*argv)
        assert code == 1
        assert message in error


def test_training_data_that_are_gone(tmp_path, capsys):
    run = tiny_run(tmp_path, "sine_gordon")
    data, out = run.config().data.train, tmp_path / "m.pt2"
    Path(data).unlink()
    assert main(["export", str(run.path), "--out", str(out)]) == 1
    error = capsys.readouterr().err
    assert "give --grid" in error
    assert data in error
    assert not out.exists()
    assert main(["export", str(run.path), "--out", str(out), "--grid", "12"]) == 0


@needs_fork
def test_a_full_disk_is_an_error(tmp_path):
    """A limit on the size of files, as a full disk; torch would end the process."""
    original = forecaster("cs_resnet", plane(), UNITS).float()
    out, report = tmp_path / "x.pt2", tmp_path / "report.txt"
    out.write_bytes(b"old")

    def limited():
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.RLIM_INFINITY))
        try:
            export(original, out, grid=(6, 5))
        except OSError as error:
            report.write_text(str(error))
            raise

    _, status = os.waitpid(fork(limited), 0)
    assert os.WIFEXITED(status)
    assert f"cannot write {out}; the one from before is intact" in report.read_text()
    assert out.read_bytes() == b"old"
    assert {path.name for path in tmp_path.iterdir()} == {"x.pt2", "report.txt"}


def test_four_dimensions_have_no_plain_convolution(tmp_path, capsys):
    run = tiny_run(tmp_path, "maxwell_spacetime4d")
    assert main(["export", str(run.path), "--out", str(tmp_path / "m.pt2")]) == 1
    assert "no plain convolution in 4 dimensions" in capsys.readouterr().err
    assert not (tmp_path / "m.pt2").exists()


def test_a_program_that_differs_is_not_written(tmp_path, monkeypatch):
    original = forecaster("cs_resnet", plane(), UNITS).float()

    def careless(model):
        """Forget the units."""
        copied = deployable(model)
        copied.units = Units({"smoke": 1.0, "wind": 1.0})
        return copied

    monkeypatch.setattr(export_module, "deployable", careless)
    with pytest.raises(ValueError, match="differs from the original by"):
        export(original, tmp_path / "x.pt2", grid=(6, 5))
    assert list(tmp_path.iterdir()) == []


def test_onnx_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    task = Task("plane", (1, 1), plane().fields, frames_in=2)
    with pytest.raises(ImportError, match=r"onnxscript: pip install 'cscnn\[onnx\]'"):
        export(forecaster("resnet", task), tmp_path / "x.onnx", grid=(6, 5))
    assert list(tmp_path.iterdir()) == []
