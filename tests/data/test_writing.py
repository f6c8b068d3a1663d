"""Writing files: what cannot be written leaves no file, and says why."""

import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest

from cscnn.data import Background, FieldFile
from cscnn.data.files import find_damage, write
from tests.data.test_files import HEADER, make, trajectory


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda t: t.pop("heat"), r"has fields \['smoke', 'velocity'\]"),
        (lambda t: t.update(heat=np.zeros((1, 2))), r"field heat: shape \(1, 2\), expected"),
        (lambda t: t["heat"].fill(np.inf), "field heat: 120 of 120 numbers are NaN or infinite"),
        (lambda t: t["heat"].fill(1e300), "infinite as float32"),
        (lambda t: t.update(heat=t["heat"] * 1j), "field heat must hold real numbers, got complex"),
        (lambda t: t.update(heat=t["heat"].astype(str)), "must hold real numbers, got <U"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_bad_trajectories_leave_no_file(tmp_path: Path, spoil, message: str) -> None:
    bad = trajectory(0)
    spoil(bad)
    with pytest.raises(ValueError, match=message):
        write(tmp_path / "train.h5", HEADER, [trajectory(1), bad], [0, 1])
    assert list(tmp_path.iterdir()) == []


def test_wrong_counts_and_options_leave_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="expected 2 trajectories, got 1"):
        write(tmp_path / "train.h5", HEADER, [trajectory(1)], [0, 1])
    with pytest.raises(ValueError, match=r"no trajectories to write into .*train\.h5"):
        write(tmp_path / "train.h5", HEADER, [], [])
    with pytest.raises(ValueError, match="int8"):
        write(tmp_path / "train.h5", HEADER, [trajectory(1)], [0], dtype="int8")
    with pytest.raises(ValueError, match="zip"):
        write(tmp_path / "train.h5", HEADER, [trajectory(1)], [0], compression="zip")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"trajectories": trajectory(0)}, TypeError, "must be a list of mappings .*one mapping"),
        ({"trajectories": ["velocity"]}, TypeError, "trajectory 0 must be a mapping .* got str"),
        ({"indices": 1}, TypeError, "indices must list the number of each trajectory, got 1"),
        ({"indices": ["a"]}, TypeError, "an index of a trajectory must be an integer, got 'a'"),
        ({"trajectories": [trajectory(0)] * 2}, ValueError, "expected 1 trajectories, .*got more"),
        ({"header": {}}, TypeError, "header must be of type Header, got {}"),
        (
            {"trajectories": [{**trajectory(0), "heat": [[1, 2], [3]]}]},
            TypeError,
            "trajectory 0, field heat must be an array, got list",
        ),
    ],
)
def test_what_is_no_data(tmp_path: Path, arguments: dict, error: type, message: str) -> None:
    given = {"header": HEADER, "trajectories": [trajectory(0)], "indices": [0], **arguments}
    with pytest.raises(error, match=message):
        write(tmp_path / "a.h5", given["header"], given["trajectories"], given["indices"])
    assert not list(tmp_path.iterdir())


def test_paths_may_be_text_and_arrays_lists(tmp_path: Path) -> None:
    lists = {name: array.tolist() for name, array in trajectory(0).items()}
    write(str(tmp_path / "a.h5"), HEADER, [lists], [0], dtype="float64")
    with FieldFile(tmp_path / "a.h5") as file:
        assert all(np.array_equal(file.read(0)[name], trajectory(0)[name]) for name in lists)


def test_the_time_of_the_first_frame_is_kept(tmp_path: Path) -> None:
    later = HEADER.replace(start_time=2.5)
    path = make(tmp_path / "later.h5", header=later)
    assert not list(find_damage(path))
    with FieldFile(path) as file, FieldFile(make(tmp_path / "now.h5")) as other:
        assert file.header.start_time == 2.5
        assert "start_time" not in h5py.File(other.path).attrs  # as in files from before


def test_a_full_disk_is_seen_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(OSError, match=r"needs 5\.8 kB of disk, but .* has 1\.0 kB free"):
        make(tmp_path / "train.h5")


def test_the_order_of_backgrounds_is_kept(tmp_path: Path) -> None:
    wind = Background("a wind", 1, (1.0, 0.0))
    header = HEADER.replace(backgrounds=(*HEADER.backgrounds, wind))
    assert FieldFile(make(tmp_path / "x.h5", header=header)).header.differences(header) == []


def test_errors_of_the_maker_are_not_those_of_the_disk(tmp_path: Path) -> None:
    def trajectories():
        yield trajectory(0)
        raise RuntimeError("out of ideas")

    with pytest.raises(RuntimeError, match="out of ideas"):
        write(tmp_path / "train.h5", HEADER, trajectories(), [0, 1])
    assert list(tmp_path.iterdir()) == []
