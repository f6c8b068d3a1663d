"""No command replaces a file unasked, and none its own input."""

from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

from benchmarks.__main__ import main as benchmarks
from cscnn.cli import main
from cscnn.data import FieldFile
from tests.forecasting.evaluation.test_predict import tiny_run

#: Command -> arguments; RUN and DATA are a run and its data, OUT is a file to write.
COMMANDS = {
    "predict": "predict RUN DATA --steps 2 --out OUT.h5",
    "export": "export RUN --out OUT.pt2",
    "plot": "plot DATA --out OUT.png",
    "film": "plot DATA --out OUT.gif",
    "report": "report RUN --out OUT.html",
    "evaluate": "evaluate RUN --split train --windows 2 --trajectories 1 --out OUT.json",
    "samples": "evaluate RUN --split train --windows 2 --trajectories 1 --out OUT.json",
    "merge": "data merge DATA --out OUT.h5",
}
WRITTEN = {"samples": ".npz"}  # beside what the arguments name
CHEAP = ("predict", "plot", "report", "merge")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outputs")
    tiny_run(folder, "navier_stokes")
    return folder


def arguments(name: str, folder: Path, out: Path) -> tuple[list[str], Path]:
    """Of a command, and the file that it writes."""
    run = next(path.parent for path in folder.rglob("model.safetensors"))
    data = next(folder.rglob("train.h5"))
    names = {"RUN": str(run), "DATA": str(data)}
    words = [names.get(w, w.replace("OUT", str(out / "out"))) for w in COMMANDS[name].split()]
    written = Path(words[words.index("--out") + 1])
    return words, written.with_suffix(WRITTEN.get(name, written.suffix))


@pytest.mark.parametrize("name", COMMANDS)
def test_files_are_not_replaced_unasked(
    name: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, written = arguments(name, folder, tmp_path)
    written.write_text("precious")
    assert main(words) == 1
    error = capsys.readouterr().err
    assert f"{written} exists" in error
    assert "--overwrite" in error
    assert len(error.splitlines()) == 1
    assert written.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [written]


@pytest.mark.parametrize("name", CHEAP)
def test_files_are_replaced_if_asked(name: str, folder: Path, tmp_path: Path) -> None:
    words, written = arguments(name, folder, tmp_path)
    written.write_text("old")
    assert main([*words, "--overwrite"]) == 0
    assert written.read_bytes() != b"old"
    assert list(tmp_path.iterdir()) == [written]


@pytest.mark.parametrize(
    "command",
    [
        "predict RUN DATA --out DATA",
        "predict MODEL DATA --out MODEL",
        "predict RUN DATA --out LINK",
        "data merge DATA --out DATA",
        "evaluate RUN --out CONFIG",
        "report RUN --out CONFIG",
        "generate navier_stokes --out DATA",
    ],
)
def test_inputs_are_never_replaced(
    command: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, data = next(folder.rglob("model.safetensors")), next(folder.rglob("train.h5"))
    link = tmp_path / "link.h5"
    link.symlink_to(data)
    names = {"RUN": model.parent, "MODEL": model, "DATA": data, "LINK": link,
             "CONFIG": model.parent / "config.json"}  # fmt: skip
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    words = [str(names.get(word, word)) for word in command.split()]
    assert main([*words, "--overwrite"]) == 1
    error = capsys.readouterr().err
    assert "cannot be replaced" in error or "is a file, not a folder" in error
    assert words[-1] in error
    assert before == {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert link.is_symlink()


def test_a_run_is_evaluated_again(folder: Path) -> None:
    """Its own numbers are replaced: that is what the command is for."""
    words, _ = arguments("evaluate", folder, folder)
    run = Path(words[1])
    for name in ("evaluation.json", "samples.npz"):
        (run / name).write_text("old")
    assert main(words[: words.index("--out")]) == 0
    assert (run / "evaluation.json").read_text().startswith("{")


def test_benchmarks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--json", "--markdown"):
        path = tmp_path / "page"
        path.write_text("precious")
        words = ["--only", "product_layer", "--repeats", "1", option, str(path)]
        assert benchmarks(words) == 1
        assert f"{path} exists" in capsys.readouterr().err
        assert path.read_text() == "precious"
        assert benchmarks([*words, "--overwrite"]) == 0
        assert path.read_text() != "precious"


def test_predictions_in_python(folder: Path) -> None:
    from cscnn.forecasting import Run
    from cscnn.forecasting.predict import predict

    data = next(folder.rglob("train.h5"))
    run = Run(next(folder.rglob("model.safetensors")).parent)
    before = data.read_bytes()
    with pytest.raises(ValueError, match=r"train\.h5 is what the forecasts begin with"):
        predict(run.forecaster(), data, data, steps=1)
    assert data.read_bytes() == before
    assert len(FieldFile(data)) == 2
