"""Data on points: headers, files, what `cscnn data` says of them, and edges on disk."""

import json
import logging
import os
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

pytest.importorskip("scipy")

from cscnn.cli import main
from cscnn.data import Field, FieldFile, Header, open_fields
from cscnn.data import edges as edges_module
from cscnn.data.edges import EdgeStore, edges_key, read_pairs
from cscnn.data.files import find_damage, write
from cscnn.data.merge import merge
from cscnn.geometry import NeighbourSearch
from tests.data.clouds import GIVEN, SIZES, cloud_file, cloud_header, random_clouds


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return cloud_file(tmp_path / "train.h5", given=GIVEN)


def test_numbers_come_back(path: Path) -> None:
    header = cloud_header(given=GIVEN)
    with open_fields(path) as source:
        assert source.header == header
        assert source.sizes == SIZES
        for number, expected in enumerate(random_clouds(header)):
            place, fields = source.place(number), source.read(number, 2, 5)
            assert set(place) == {"positions", "weights"}
            for name, array in {**place, **fields}.items():
                cut = slice(2, 5) if name in ("dye", "flow", "heat") else slice(None)
                assert np.array_equal(array, expected[name][cut]), name
    assert not list(find_damage(path))


def test_files_of_points_are_joined_and_merged(path: Path, tmp_path: Path) -> None:
    with open_fields([path, cloud_file(tmp_path / "more.h5", (5,), 1, given=GIVEN)]) as both:
        assert both.sizes == (*SIZES, 5)
        assert len(both.place(4)["positions"]) == both.read(4)["dye"].shape[1] == 5
    with pytest.raises(ValueError, match=r"cloud is .*2\.0"):
        open_fields([path, cloud_file(tmp_path / "other.h5", period=(2.0, None), given=GIVEN)])
    first, second = (tmp_path / f"{n}.h5" for n in range(2))
    clouds = random_clouds(cloud_header(given=GIVEN))
    write(first, cloud_header(given=GIVEN), clouds[1:], range(1, 4), dtype="float64")
    write(second, cloud_header(given=GIVEN), clouds[:1], range(1), dtype="float64")
    assert merge([first, second], tmp_path / "merged.h5") == 4
    with FieldFile(tmp_path / "merged.h5") as merged, FieldFile(path) as whole:
        for number in range(4):
            assert np.array_equal(merged.checksum(number), whole.checksum(number))


def test_the_commands_describe_and_check(path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["data", "info", str(path)]) == 0
    text = capsys.readouterr().out
    assert "points      9 to 20 in a trajectory, with weights, period 1, none" in text
    assert main(["data", "info", "--json", str(path)]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert told["points"] == [9, 20]
    assert told["cloud"] == {"period": [1.0, None], "weights": True}
    assert main(["data", "check", str(path)]) == 0
    with h5py.File(path, "r+") as file:
        file["positions"][30] += 1e-9
    assert main(["data", "check", str(path)]) == 1
    assert "trajectory 1 is damaged" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"positions": np.zeros((12, 3))}, r"positions: shape \(12, 3\), expected \(12, 2\)"),
        ({"positions": np.zeros((0, 2))}, r"positions: shape \(0, 2\), expected \(1, 2\)"),
        ({"positions": np.zeros((7, 2))}, r"shape \(12,\), expected \(7,\)"),
        ({"positions": np.full((12, 2), np.nan)}, "24 of 24 numbers are NaN"),
        ({"weights": np.zeros(12)}, "must be positive, got 0.0"),
        ({"flow": np.zeros((8, 11, 2))}, r"flow: shape \(8, 11, 2\), expected \(8, 12, 2\)"),
    ],
)
def test_wrong_trajectories(changes: dict, message: str, tmp_path: Path) -> None:
    header = cloud_header()
    (cloud,) = random_clouds(header, (12,))
    with pytest.raises(ValueError, match=message):
        write(tmp_path / "wrong.h5", header, [{**cloud, **changes}], [0])
    del cloud["positions"]
    with pytest.raises(ValueError, match=r"expected \['dye', 'flow', 'positions', 'weights'\]"):
        write(tmp_path / "wrong.h5", header, [cloud], [0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"period": (1.0,)}, "period needs one value per axis"),
        ({"period": (1.0, -1.0)}, r"must be positive, or None, got \(1.0, -1.0\)"),
        ({"time_axis": 0}, "have time_axis None, got 0"),
        ({"frames": 0}, "at least one frame, got 0"),
        ({"fields": (Field("weights", 0),)}, "'weights'"),
    ],
)
def test_wrong_headers(options: dict, message: str) -> None:
    told = {"metric": (1, 1), "fields": (Field("dye", 0),), "frames": 3, **options}
    with pytest.raises(ValueError, match=message):
        Header.of_points(**told)
    with pytest.raises(ValueError, match=r"have grid \(\), got \(4,\)"):
        cloud_header().replace(grid=(4,))


@pytest.mark.parametrize("sizes", [[12, 20, 9, 0], [12, 20, 9], [12, 20, 9, 16]])
def test_wrong_sizes_in_a_file(sizes: list[int], path: Path) -> None:
    with h5py.File(path, "r+") as file:
        del file["points"]
        file["points"] = sizes
    with pytest.raises(ValueError, match=r"for each of 4 trajectories|has shape"):
        open_fields(path)


# --- edges on disk --------------------------------------------------------------------------------

SEARCH = NeighbourSearch(0.3, 5, period=(1.0, None), weighted=True)


def same(a, b) -> bool:
    return all(
        torch.equal(getattr(a, name), getattr(b, name))
        for name in ("receiver", "sender", "position", "weight")
    )


@pytest.mark.parametrize("by", ["radius", "nearest"])
def test_edges_are_computed_once(by: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    search = NeighbourSearch(0.3, 5, by, period=(1.0, None), weighted=True)
    with open_fields(path) as source:
        first = EdgeStore(source, search)
        expected = [first.edges(n) for n in range(4)]
        place = source.place(1)
        positions, weights = (torch.from_numpy(place[n]) for n in ("positions", "weights"))
        assert same(expected[1], search.edges(positions, weights))
        files = sorted(path.with_name("train.h5.edges").iterdir())
        assert len(files) == 4
        monkeypatch.setattr(NeighbourSearch, "edges", None)  # from now on they are read
        again = EdgeStore(source, search)
        assert all(same(again.edges(n), expected[n]) for n in range(4))
        assert again.edges(0) is again.edges(0)


def test_other_positions_or_options_have_other_edges(path: Path) -> None:
    with open_fields(path) as source:
        positions = source.place(0)["positions"]
    keys = {
        edges_key(search, x)
        for x in (positions, positions + 1e-12)
        for search in (
            SEARCH,
            NeighbourSearch(0.31, 5, period=(1.0, None)),
            NeighbourSearch(0.3, 5, "nearest", period=(1.0, None)),
            NeighbourSearch(0.3, 5, period=(1.0, 1.0)),
        )
    }
    assert len(keys) == 8
    same_reach = NeighbourSearch(0.3, 7, period=(1.0, None))  # the number is only typical
    assert edges_key(SEARCH, positions) == edges_key(same_reach, positions)


def test_damaged_edges_are_computed_again(path: Path) -> None:
    with open_fields(path) as source:
        expected = EdgeStore(source, SEARCH).edges(0)
        folder = path.with_name("train.h5.edges")
        (file,) = folder.iterdir()
        whole = file.read_bytes()
        other = NeighbourSearch(0.2, 5, period=(1.0, None))
        EdgeStore(source, other).edges(0)
        (wrong,) = set(folder.iterdir()) - {file}
        flipped = bytearray(whole)
        flipped[len(whole) // 3] ^= 255
        for content in (b"", b"nonsense", whole[:100], bytes(flipped), wrong.read_bytes()):
            file.write_bytes(content)
            assert read_pairs(file, 12) is None
            assert same(EdgeStore(source, SEARCH).edges(0), expected)
            assert file.read_bytes() == whole  # and written again
        assert read_pairs(file, 3) is None  # of more points than there are


def test_a_folder_that_cannot_be_written(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(edges_module, "write_bytes", refuse)
    with open_fields(path) as source, caplog.at_level(logging.WARNING, "cscnn"):
        store = EdgeStore(source, SEARCH)
        assert all(len(store.edges(n)) for n in range(2))
    assert len(caplog.records) == 1
    assert "train.h5.edges" in caplog.text
    assert not list(path.with_name("train.h5.edges").iterdir())


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder(path: Path) -> None:
    path.parent.chmod(0o500)
    try:
        with open_fields(path) as source:
            assert len(EdgeStore(source, SEARCH).edges(0))
    finally:
        path.parent.chmod(0o700)


def test_memory_is_limited(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edges_module, "MOST", 1)
    with open_fields(path) as source:
        store = EdgeStore(source, SEARCH, on_disk=False)
        for number in range(4):
            store.edges(number)
        assert len(store._kept) == 1
        assert not path.with_name("train.h5.edges").exists()
        shutil.rmtree(path.with_name("train.h5.edges"), ignore_errors=True)
