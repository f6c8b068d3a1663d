"""What a stranger types: one line that names the bad value, and nothing is made or lost."""

import io
import shlex
import sys
from pathlib import Path

import h5py
import pytest

pytest.importorskip("matplotlib")

from cscnn.cli import main
from tests.data.clouds import cloud_file
from tests.forecasting.evaluation.test_predict import tiny_run

GENERATE = "generate navier_stokes --out new --split train=4 "

TRAIN = "train --out new --data.train DATA --model.width 1 "

#: Command -> what its message says: the bad value, and what to do or what is expected.
BAD = {
    "nonsense": ("'nonsense'", "choose from", "cscnn --help"),
    "info --metric=": ("between 1 and 6 entries, got 0",),
    "info --metric=+x": ("'+x'", "e.g. --metric=+--"),
    "info --colour red": ("unknown option --colour", "cscnn info --help"),
    "tune --device nonsense": ("'nonsense'", "Expected one of cpu"),
    "generate": ("needs a task and --out FOLDER", "--list"),
    "generate euler --out new": ("'euler'", "choose from acoustic_points, elastodynamics"),
    "generate navier_stokes --out file": ("file is a file, not a folder",),
    "generate navier_stokes --out file/deeper": ("file is a file, not a folder",),
    "generate navier_stokes --out new --split train": ("'train'", "e.g. train=512"),
    "generate navier_stokes --out new --split train=²": ("'train=²'", "e.g. train=512"),
    "generate navier_stokes --out new --split train=-1": ("'train=-1'", "e.g. train=512"),
    "generate navier_stokes --out new --split train=0": ("split train must be at least 1, got 0",),
    "generate navier_stokes --out new --split train=1e3": ("'train=1e3'", "e.g. train=512"),
    f"generate navier_stokes --out new --split train={'9' * 5000}": ("999'", "e.g. train=512"),
    "generate navier_stokes --out new --split ../x=3": ("'../x'", "a name such as train"),
    "generate navier_stokes --out new --split =3": ("''", "a name such as train"),
    "generate navier_stokes --out new --split a=1 a=2": ("--split has a twice: 1 and 2",),
    "generate navier_stokes --out new --split train=10000000000": ("TB of disk", "free"),
    GENERATE + "--seed -1": ("at least 0 and below 2^63, got -1",),
    GENERATE + "--seed 9223372036854775808": ("below 2^63, got 9223372036854775808",),
    GENERATE + "--seed one": ("--seed", "'one'", "cscnn generate --help"),
    GENERATE + "--workers 0": ("workers must be at least 1, got 0",),
    GENERATE + "--workers two": ("--workers", "'two'"),
    GENERATE + "--batch 0": ("batch must be at least 1, got 0",),
    GENERATE + "--shard 2/2": ("needs 0 <= i < n, got 2/2",),
    GENERATE + "--shard ¹/²": ("'¹/²'", "e.g. 0/8"),
    GENERATE + "--shard 0/9": ("shard 0/9 of 4 trajectories (train) is empty",),
    GENERATE + "--dtype int8": ("'int8'", "float32, float64"),
    GENERATE + "--compression zip": ("'zip'", "none, lzf, gzip"),
    GENERATE + "--device gpu": ("device 'gpu'", "cpu"),
    GENERATE + "--preset huge": ("'huge'", "choose from paper, small"),
    GENERATE + "--set grid": ("'grid'", "OPTION=VALUE"),
    GENERATE + "--set grid=8": ("grid takes 2 values, e.g. (128, 128), got 8",),
    GENERATE + "--set grid=-8,8": ("at least 4 cells per axis, got (-8, 8)",),
    GENERATE + "--set frames=0": ("frames must be positive, got 0",),
    GENERATE + "--set frames=two": ("frames takes int, e.g. 14, got 'two'",),
    GENERATE + "--set viscosity=nan": ("viscosity takes float, e.g. 0.01, got 'nan'",),
    GENERATE + "--set colour=red": ("'colour'", "choose from grid, size"),
    GENERATE + "--set frames=1 frames=2": ("--set has frames twice: 1 and 2",),
    GENERATE + f"--set grid={'(' * 300}": ("grid takes 2 values",),
    GENERATE + "--set frames=10000000000000": ("TB of disk", "free"),
    "data info absent.h5": ("there is no file absent.h5",),
    "data info folder": ("folder is a folder without .h5 or .hdf5 files: it holds nothing",),
    "data info 'absent*.h5'": ("no file matches the pattern absent*.h5",),
    "data info data/train.h5,absent.h5": ("there is no file absent.h5",),
    "data check DATA DATA": ("train.h5 is there twice",),
    "data info text.h5": ("text.h5 is no HDF5 file",),
    "data info empty.h5": ("empty.h5 is an empty file",),
    "data info strange.h5": ("strange.h5 is of no known kind", "Expected an attribute format"),
    "data merge empty.h5 --out new.h5": ("empty.h5 is an empty file",),
    "data merge DATA": ("--out", "cscnn data merge --help"),
    "data merge DATA --out folder": ("folder is a folder", "the name of a file"),
    "data merge DATA --out file/new.h5": ("file is a file, not a folder",),
    "data merge DATA DATA --out new.h5": ("trajectory 0 is in both", "train.h5"),
    "data frobnicate x": ("'frobnicate'", "choose from"),
    "plot absent.h5": ("there is no file absent.h5",),
    "plot folder --out a.png": ("folder is a folder",),
    "plot DATA --out a": ("must end in one of .png", "got a"),
    "plot DATA --out a.bmp": ("must end in one of .png", "got a.bmp"),
    "plot DATA --out absent/a.png": ("there is no folder absent",),
    "plot DATA --out a.png --trajectory 99": ("has 2 trajectories, got 99",),
    "plot DATA --out a.png --trajectory -1": ("has 2 trajectories, got -1",),
    "plot DATA --out a.png --frames 99": ("from 0 to 7, got [99]",),
    "plot DATA --out a.png --fields dust": ("fields must be of smoke, velocity, got ['dust']",),
    "plot DATA --out a.gif --fps nan": ("fps must be positive, got nan",),
    "plot DATA --out a.gif --frames 3": ("--frames is for stills",),
    "evaluate absent": ("there is no folder or file absent",),
    "evaluate folder": ("folder is not a complete run, it has no model.safetensors",),
    "evaluate RUN --split nowhere": ("'nowhere'", "another --split, or --data FILE"),
    "evaluate RUN --data absent.h5": ("there is no file absent.h5",),
    "evaluate RUN --data folder": ("folder is a folder",),
    "evaluate RUN --data DATA DATA": ("train.h5 is there twice", "count double"),
    "evaluate RUN --split train --windows 0": ("windows must be at least 1, got 0",),
    "evaluate RUN --split train --steps 999": ("1 to 5 steps, got 999",),
    "evaluate RUN --split train --stride 0": ("stride must be at least 1, got 0",),
    "evaluate RUN --split train --stride 2": ("apart, the data", "with stride 2"),
    "evaluate RUN --split train --stride two": ("--stride", "'two'", "cscnn evaluate --help"),
    "evaluate RUN --split train --device gpu": ("device 'gpu'", "cpu"),
    "evaluate RUN --split train --seed -1": ("--seed must be at least 0, got -1",),
    "evaluate RUN --split train --out x.txt": ("must end in .json, got x.txt",),
    "evaluate MODEL --data DATA": ("model.safetensors is not the folder of a run", "--out FILE"),
    "evaluate RUN --data points.h5": (
        "points.h5 is not for this forecaster",
        "the data are on points",
    ),
    "generate acoustic_points --out new --set points=9,5": ("(fewest, most), got (9, 5)",),
    "generate acoustic_points --out new --set dim=0": ("dim must be positive, got 0",),
    "predict RUN points.h5 --out new.h5": ("is not for this forecaster", "the data are on points"),
    "predict RUN absent.h5 --out new.h5": ("there is no file absent.h5",),
    "predict RUN folder --out new.h5": ("folder is a folder",),
    "predict RUN '*.hdf5' --out new.h5": ("no file matches the pattern *.hdf5",),
    "predict absent DATA --out new.h5": ("there is no folder or file absent",),
    "predict text.h5 DATA --out new.h5": ("text.h5 is not a readable safetensors file",),
    "predict RUN DATA": ("--out", "cscnn predict --help"),
    "predict RUN DATA --out new.h5 --steps 0": ("steps must be at least 1, got 0",),
    "predict RUN DATA --out new.h5 --steps 1000000000000": ("new.h5 needs", "TB of disk", "free"),
    "predict RUN DATA --out new.h5 --stride 0": ("stride must be at least 1, got 0",),
    "predict RUN DATA --out new.h5 --stride 3": ("apart, the data", "with stride 3"),
    "predict RUN DATA --out new.h5 --start -1": ("start must be at least 0, got -1",),
    TRAIN + "--data.stride 0": ("data.stride must be", "at least 1", "got 0"),
    TRAIN + "--data.stride [3,1]": ("data.stride", "from small to large", "got [3, 1]"),
    TRAIN + "--data.gap -1": ("data.gap", "-1"),
    TRAIN + "--data.gap 1 --training.unroll 2": ("cannot be fed back", "take data.stride"),
    "export RUN --out new.zip": ("must end in .pt2 or .onnx, got new.zip",),
    "export RUN --out new.pt2 --batch 0": ("batch must be at least 1, got 0",),
    "export RUN --out new.pt2 --grid 8": ("has 2 axes of space", "got grid 8"),
    "export RUN --out new.pt2 --grid 0 8": ("at least one point", "got grid 0 8"),
    "export RUN --out new.pt2 --grid -8 8": ("at least one point", "got grid -8 8"),
    "export MODEL --out new.pt2": ("model.safetensors", "give --grid"),
    "report absent": ("absent is not a complete run", "no such folder"),
    "report file": ("file is not a complete run", "it is a file"),
    "report RUN RUN": ("once, got", "twice"),
    "report RUN --out folder": ("folder is a folder",),
    "report RUN --out absent/x.html": ("there is no folder absent",),
}


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run and its data, and files of which commands can make nothing."""
    folder = tmp_path_factory.mktemp("room")
    tiny_run(folder, "navier_stokes")
    (folder / "text.h5").write_text("hello")
    (folder / "file").write_text("hello")
    (folder / "empty.h5").touch()
    (folder / "folder").mkdir()
    cloud_file(folder / "points.h5")
    with h5py.File(folder / "strange.h5", "w") as file:
        file["a"] = 1
    return folder


def contents(folder: Path) -> dict[Path, tuple[int, int]]:
    return {p: (p.stat().st_size, p.stat().st_mtime_ns) for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("command", BAD, ids=lambda command: command[:80])
def test_one_line(
    command: str, room: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(room)
    names = {"RUN": "run", "DATA": "data/train.h5", "MODEL": "run/model.safetensors"}
    before = contents(room)
    try:
        code = main([names.get(word, word) for word in shlex.split(command)])
    except SystemExit as ended:  # of the parser of arguments
        code = ended.code
    output, error = capsys.readouterr()
    assert code in (1, 2)
    assert output == ""
    assert error.startswith("cscnn")
    assert ": error: " in error
    assert error.endswith("\n")
    assert error.count("\n") == 1
    assert "--debug" not in error  # nobody expected it
    for part in BAD[command]:
        assert part in error
    assert contents(room) == before
    assert not (room / "new").exists()


def test_terminals_that_know_ascii_alone(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Signs that they lack, such as those of 8 × 8 points, are replaced."""
    file = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(file, encoding="ascii"))
    assert main(["data", "info", str(room / "data" / "train.h5")]) == 0
    sys.stdout.flush()
    assert b"8 ? 8 points of space" in file.getvalue()


def test_control_characters_do_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "info", "\x1b[31mred\nline"]) == 1
    assert capsys.readouterr().err == "cscnn: error: there is no file ?[31mred line\n"


def test_files_that_must_not_be_read(
    room: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)  # whoever runs the test, also root
    path = str(room / "data" / "train.h5")
    assert main(["data", "info", path]) == 1
    assert capsys.readouterr().err == f"cscnn: error: there is no right to read {path}\n"
