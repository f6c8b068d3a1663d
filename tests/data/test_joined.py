"""Folders, patterns and lists of files as one source."""

import multiprocessing
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from cscnn.cli import main
from cscnn.data import (
    Background,
    Field,
    FieldFile,
    Given,
    Header,
    JoinedFiles,
    joined,
    open_fields,
)
from cscnn.data.files import write
from cscnn.data.paths import list_files, spelled
from cscnn.data.simulators import exact_simulator
from cscnn.data.simulators.sine_gordon import SineGordon
from cscnn.data.stated import stated
from cscnn.forecasting import Forecaster, Task, Windows, collate
from cscnn.forecasting.training.identity import FileIdentity
from tests.data.layouts import maxwell_file, random_flow, smoke_file, well_file

HEADER = Header(
    (1, 1), ("x", "y"), (0.5, 0.5), ("wall", "wall"), (Field("dye", 0), Field("flow", 1)),
    frames=6, grid=(4, 4), split="train", parameters={"a": 1, "b": 2},
)  # fmt: skip


def make(path: Path, count: int = 2, seed: int = 0, **changes) -> Path:
    """A file of random numbers."""
    header = HEADER.replace(**changes)
    rng = np.random.default_rng(seed)
    trajectories = (
        {q.name: rng.standard_normal(header.shape(q.name)) for q in header.quantities}
        for _ in range(count)
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, header, trajectories, range(count))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of 1, 2 and 3 trajectories, and what a folder holds besides."""
    for count, name in enumerate(("run_1", "run_2", "run_10"), start=1):
        make(tmp_path / "many" / f"{name}.h5", count, seed=count)
    (tmp_path / "many" / "notes.txt").write_text("of no interest")
    (tmp_path / "many" / ".run_3.h5").write_text("half-written")
    (tmp_path / "many" / "sub.h5").mkdir()
    return tmp_path / "many"


def test_what_stands_for_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    names = ["many/run_1.h5", "many/run_2.h5", "many/run_10.h5"]
    for paths in ("many", Path("many"), "many/*.h5", "m*/**/run_*", ["many"]):
        assert [p.as_posix() for p in list_files(paths)] == names, paths
    assert [p.name for p in list_files("many/run_?.h5")] == ["run_1.h5", "run_2.h5"]
    for paths in ([names[2], "many/run_?.h5"], f"{names[2]}, many/run_?.h5"):
        assert [p.as_posix() for p in list_files(paths)] == [names[2], *names[:2]], paths
    odd = make(Path("a[1],b*.h5"))  # the name of a file is no pattern
    assert list_files(str(odd)) == [odd]
    assert len(list_files(",".join(f"absent{n}.h5" for n in range(1000)))) == 1000
    assert list_files("absent.h5") == [Path("absent.h5")]  # told by whoever opens it
    assert spelled("many") == "many"
    assert spelled(list("abcde")) == "a, b, c and 2 more"


@pytest.mark.parametrize(
    ("paths", "error", "message"),
    [
        ([], ValueError, "must not be empty"),
        ("", ValueError, "expected a file, a folder or a pattern, got ''"),
        ("many/run_1.h5,", ValueError, "expected a file, a folder or a pattern, got ''"),
        ("many/*.hdf5", FileNotFoundError, r"no file matches the pattern many/\*\.hdf5"),
        ("many/sub.h5", FileNotFoundError, r"folder without \.h5 or \.hdf5 files"),
        (["many", "many/run_1.h5"], ValueError, "run_1.h5 is there twice, also as many.run_1.h5"),
    ],
)  # fmt: skip
def test_what_stands_for_none(paths, error, message, folder: Path, monkeypatch) -> None:
    monkeypatch.chdir(folder.parent)
    with pytest.raises(error, match=message):
        open_fields(paths)


def test_a_link_to_a_file_is_the_file(folder: Path) -> None:
    try:
        (folder / "run_4.h5").symlink_to(folder / "run_1.h5")
    except OSError:
        pytest.skip("no right to make links")
    with pytest.raises(ValueError, match=r"run_4.h5 is there twice, also as .*run_1.h5"):
        list_files(folder)


def test_trajectories_come_one_file_after_the_other(folder: Path) -> None:
    files = [FieldFile(folder / f"run_{n}.h5") for n in (1, 2, 10)]
    expected = [file.read(number) for file in files for number in range(len(file))]
    with open_fields(folder) as source:
        assert isinstance(source, JoinedFiles)
        assert (len(source), len(source.files), source.path) == (6, 3, folder)
        assert source.header == HEADER
        for number in (0, 5, 3, 1, 4, 2):
            read = source.read(number, 1, 4)
            assert all(np.array_equal(read[n], x[1:4]) for n, x in expected[number].items())
        for number in (-1, 6):
            with pytest.raises(IndexError, match=f"many has 6 trajectories, got {number}"):
                source.read(number)
    assert isinstance(open_fields([folder / "run_1.h5"]), FieldFile)


def test_few_files_are_open(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joined, "MOST_OPEN", 2)
    with open_fields(folder) as source:

        def opened() -> list[int]:
            return [i for i, file in enumerate(source.files) if file._file is not None]

        assert opened() == []
        steps = []
        for number in (0, 1, 0, 5, 1):
            source.read(number)
            steps.append(opened())
        assert steps == [[0], [0, 1], [0, 1], [0, 2], [1, 2]]
    assert opened() == []


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_workers_read_the_same(start: str, folder: Path) -> None:
    if start not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {start} here")
    with open_fields(folder) as source:
        windows = Windows(source, per_trajectory=2)
        expected = torch.cat([windows[i].known["flow"][None] for i in range(len(windows))])
        loader = DataLoader(
            windows, 4, num_workers=1, collate_fn=collate, multiprocessing_context=start
        )
        assert torch.equal(torch.cat([batch.known["flow"] for batch in loader]), expected)
        again = pickle.loads(pickle.dumps(source))  # while files are open
        assert np.array_equal(again.read(5)["dye"], source.read(5)["dye"])
        again.close()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("metric", (1, -1), r"metric is \[1, 1\] in the first, \[1, -1\] in the other"),
        ("fields", (Field("dye", 0),), "fields is .*flow.* in the first"),
        (
            "fields",
            (Field("dye", 0, "kg"), Field("flow", 1)),
            "fields is .*'units': ''.*'units': 'kg'",
        ),
        ("spacing", (0.5, 0.25), r"spacing is \[0.5, 0.5\] in the first, \[0.5, 0.25\]"),
        ("boundary", ("wall", "open"), "boundary is"),
        ("grid", (4, 5), r"grid is \[4, 4\] in the first, \[4, 5\] in the other"),
        ("frame_spacing", 2.0, "frame_spacing is 1.0 in the first, 2.0 in the other"),
        ("frames", 7, "frames is 6 in the first, 7 in the other: cut the trajectories"),
        ("given", (Given("drag", 0, "constant"),), r"given is \[\] in the first, .*drag"),
        ("backgrounds", (Background("up", 1, (0.0, 1.0)),), r"given is \[\] .*up"),
        ("split", "test", "split is train in the first, test in the other: name the files of one"),
    ],
)
def test_files_that_differ(name, value, message, tmp_path: Path) -> None:
    paths = [make(tmp_path / "a.h5"), make(tmp_path / "b.h5", seed=1, **{name: value})]
    with pytest.raises(ValueError, match=message) as info:
        open_fields(tmp_path)
    assert all(str(path) in str(info.value) for path in paths)


def test_how_files_were_made_may_differ(tmp_path: Path) -> None:
    rounded = {"spacing": (0.5, 0.50001), "frame_spacing": 1.00001}
    made = {"seed": 3, "generator": "x", "parameters": {"a": 1, "b": 3, "c": 4}, **rounded}
    paths = [make(tmp_path / "a.h5"), make(tmp_path / "b.h5", **made)]
    with open_fields(paths) as source:
        assert source.header == HEADER.replace(parameters={"a": 1})
        assert source.path == Path(f"{paths[0]}, {paths[1]}")


def test_a_trajectory_counts_once(folder: Path) -> None:
    """A folder may hold shards beside the file that they were merged into."""
    shutil.copy(folder / "run_1.h5", folder / "run_4.h5")
    with pytest.raises(ValueError, match=r"run_1\.h5 and .*run_4\.h5 .*trajectory 0 .*double"):
        open_fields(folder)


def test_trajectories_with_their_own_times(tmp_path: Path) -> None:
    """Means of files differ, where every trajectory is given its frame spacing."""
    for name, steps in (("a", (1.0, 3.0)), ("b", (4.0, 6.0))):
        smoke_file(tmp_path / f"{name}.h5", *random_flow(2), dt=np.array(steps))
    with open_fields(tmp_path) as source:
        assert [float(source.read(i)["frame_spacing"][0]) for i in range(4)] == [1, 3, 4, 6]
        assert source.header.frame_spacing == 3.5


def test_constants_that_differ_between_files(tmp_path: Path) -> None:
    """A background of each file, or given with each trajectory: together it is given."""
    paths = []
    for number, buoyancy in enumerate((0.5, 0.3, [0.1, 0.2])):
        paths.append(tmp_path / f"{number}.h5")
        smoke_file(paths[-1], *random_flow(2, seed=number), buoyancy=buoyancy)
    with open_fields(paths) as source:
        assert source.header.backgrounds == ()
        assert source.header.given == (Given("buoyancy", 1, "constant"),)
        read = [source.read(i)["buoyancy"].tolist() for i in range(6)]
        assert read == [[0, b] for b in (0.5, 0.5, 0.3, 0.3, 0.1, 0.2)]
        window = Windows(source, Task.from_header(source.header, frames_in=2), mode="all")[0]
        assert window.given["buoyancy"].tolist() == [0, 0.5]
    with open_fields([paths[0], make_twin(tmp_path)]) as source:
        assert [b.name for b in source.header.backgrounds] == ["buoyancy"]  # one value: as before


def make_twin(folder: Path) -> Path:
    """Another file with the same constants."""
    return smoke_file(folder / "twin.h5", *random_flow(2, seed=9), buoyancy=0.5)


def test_data_with_one_value_serve_a_task_with_several(tmp_path: Path) -> None:
    train = smoke_file(tmp_path / "train.h5", *random_flow(2), buoyancy=[0.1, 0.2])
    valid = smoke_file(tmp_path / "valid.h5", *random_flow(2), buoyancy=0.7)
    with open_fields(train) as source:
        task = Task.from_header(source.header, frames_in=2)
    with open_fields(valid) as source:
        with pytest.raises(ValueError, match=r"is given .*buoyancy"):  # the control
            Windows(source, task)
        window = Windows(stated(source, task.given), task)[0]
    assert window.given["buoyancy"].tolist() == pytest.approx([0, 0.7])
    forecaster = Forecaster.build("cs_resnet", task, width=2, blocks=1, kernel_size=3)
    with forecaster.view(valid) as seen:
        assert seen.read(1)["buoyancy"].tolist() == [0, 0.7]


def test_a_simulator_that_was_told_differently_is_not_exact() -> None:
    headers = [SineGordon(frames=n).describe(seed=0, split="test") for n in (8, 8, 9)]
    assert exact_simulator(joined._common_header(headers[:2])) is not None
    assert exact_simulator(joined._common_header(headers[1:])) is None


def test_files_of_others(tmp_path: Path) -> None:
    for number in range(2):
        well_file(tmp_path / "well" / "train" / f"x{number}.hdf5")
        smoke_file(tmp_path / f"smoke{number}.h5", *random_flow(seed=number))
    with open_fields(tmp_path / "well" / "train", fields=["velocity"]) as source:
        assert (len(source), source.header.split) == (4, "train")
        assert list(source.read(3)) == ["velocity"]
    with (
        open_fields(str(tmp_path / "smoke*.h5")) as source,
        open_fields(tmp_path / "smoke1.h5") as second,
    ):
        assert np.array_equal(source.read(2)["velocity"], second.read(0)["velocity"])
    fields = np.random.default_rng(0).standard_normal((2, 1, 3, 4, 4, 4, 3))
    (tmp_path / "mixed").mkdir()
    maxwell_file(tmp_path / "mixed" / "a.h5", *fields, split="train")
    smoke_file(tmp_path / "mixed" / "b.h5", *random_flow())
    with pytest.raises(ValueError, match=r"a\.h5 and .*b\.h5 cannot be joined: metric is"):
        open_fields(tmp_path / "mixed")


def test_the_identity_covers_all_files(folder: Path) -> None:
    def identity() -> FileIdentity:
        with open_fields(folder) as source:
            found = FileIdentity.of(source)
            assert all(file._file is None for file in source.files)
            return found

    def difference() -> str:
        return next(before.differences(identity()))

    before = identity()
    assert before == identity()
    (folder / "run_10.h5").rename(folder / "run_0.h5")  # the order counts: windows depend on it
    assert difference().startswith("the checksum of its numbers is")
    (folder / "run_0.h5").rename(folder / "run_10.h5")
    make(folder / "run_10.h5", 3, seed=99)
    assert difference().startswith("the checksum of its numbers is")
    make(folder / "run_11.h5", 1)
    assert difference() == "it has 7 trajectories, not 6"


def test_commands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "info", str(folder)]) == 0
    assert f"{folder}: 3 files, 6 trajectories" in capsys.readouterr().out
    assert main(["data", "check", str(folder)]) == 0
    assert capsys.readouterr().out.count("all well") == 3
    make(folder.parent / "both" / "train.h5")
    make(folder.parent / "both" / "valid.h5", split="valid")
    assert main(["data", "info", str(folder.parent / "both")]) == 1
    assert "split is train in the first, valid in the other" in capsys.readouterr().err
