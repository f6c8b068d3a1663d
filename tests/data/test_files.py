"""The file format: round trips, self-description, and every way in which a file can be bad."""

import os
import pickle
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest

from cscnn.data import Background, Field, FieldFile, Header
from cscnn.data.files import checksum, find_damage, write
from cscnn.data.merge import merge

HEADER = Header(
    metric=(1, 1),
    axes=("x", "y"),
    spacing=(0.5, 0.25),
    boundary=("wall", "periodic"),
    fields=(Field("velocity", 1, "m/s"), Field("smoke", 0, "1"), Field("heat", 0, "K")),
    frames=5,
    grid=(4, 6),
    frame_spacing=2.0,
    units={"length": "m", "time": "s"},
    backgrounds=(Background("gravity", 1, (0.0, -9.8)),),
    generator="made up",
    generator_version=7,
    parameters={"viscosity": 0.1, "shape": [1, 2], "name": "ø"},
    seed=2**40,
    split="train",
)


def trajectory(seed: int, header: Header = HEADER) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {f.name: rng.standard_normal(header.shape(f.name)) for f in header.fields}


def make(path: Path, indices: range = range(3), header: Header = HEADER, **options: str) -> Path:
    write(path, header, (trajectory(i, header) for i in indices), indices, **options)
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make(tmp_path / "train.h5")


@pytest.mark.parametrize("compression", ["none", "lzf", "gzip"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_round_trip(tmp_path: Path, dtype: str, compression: str) -> None:
    path = make(tmp_path / "train.h5", dtype=dtype, compression=compression)
    with FieldFile(path) as file:
        assert file.header == HEADER.from_dict(HEADER.to_dict())
        assert [f.name for f in file.header.fields] == ["velocity", "smoke", "heat"]
        assert len(file) == 3
        assert (file.dtype, file.compression) == (dtype, compression)
        for number in range(3):
            for name, expected in trajectory(number).items():
                stored = file.read(number)[name]
                assert np.array_equal(stored, expected.astype(dtype))
                window = file.read(number, 1, 4)[name]
                assert np.array_equal(window, stored[1:4])
    assert list(tmp_path.iterdir()) == [path]
    assert list(find_damage(path)) == []


def test_file_describes_itself(path: Path) -> None:
    """Anyone with an HDF5 viewer understands the file."""
    with h5py.File(path) as file:
        assert file["grade1/velocity"].shape == (3, 5, 4, 6, 2)
        assert file["grade1/velocity"].attrs["units"] == "m/s"
        assert list(file["grade1/velocity"].attrs["components"]) == ["e1", "e2"]
        assert set(file["grade0"]) == {"smoke", "heat"}
        assert list(file["backgrounds/grade1/gravity"][:]) == [0.0, -9.8]
        attributes = dict(file.attrs)
    assert list(attributes["metric"]) == [1, 1]
    assert list(attributes["boundary"]) == ["wall", "periodic"]
    assert list(attributes["spacing"]) == [0.5, 0.25]
    assert attributes["seed"] == 2**40
    assert attributes["time_axis"] == -1
    assert "viscosity" in attributes["parameters"]


def test_the_same_data_give_the_same_bytes(tmp_path: Path) -> None:
    assert make(tmp_path / "a.h5").read_bytes() == make(tmp_path / "b.h5").read_bytes()


def test_a_window_reads_little_more_than_itself(tmp_path: Path) -> None:
    header = HEADER.replace(grid=(64, 64), frames=20)
    path = make(tmp_path / "big.h5", range(2), header)
    file = FieldFile(path)
    file.read(0, 0, 1)  # opens it and reads the index of the chunks
    wanted = sum(a.nbytes for a in file.read(1, 0, 1).values()) * 4
    before = _bytes_read()
    file.read(1, 9, 13)
    if before is None:
        pytest.skip("this system does not count the bytes that a process reads")
    assert wanted <= _bytes_read() - before <= 2 * wanted


def _bytes_read() -> int | None:
    counters = Path("/proc/self/io")
    if not counters.exists():
        return None
    return int(counters.read_text().split("rchar:")[1].split()[0])


def test_files_travel_between_processes(path: Path) -> None:
    file = FieldFile(path)
    expected = file.read(1)["smoke"]
    copy = pickle.loads(pickle.dumps(file))
    assert np.array_equal(copy.read(1)["smoke"], expected)
    if hasattr(os, "fork"):
        handle = file._file
        file._pid -= 1  # what a forked process finds
        assert np.array_equal(file.read(1)["smoke"], expected)
        assert file._file is not handle


@pytest.mark.parametrize(
    ("number", "start", "stop", "message"),
    [(3, 0, 1, "has 3 trajectories, got 3"), (-1, 0, 1, "got -1"), (0, 2, 9, "got 2 to 9"),
     (0, 3, 3, "got 3 to 3")],
)  # fmt: skip
def test_impossible_windows(path: Path, number: int, start: int, stop: int, message: str) -> None:
    with pytest.raises(IndexError, match=message):
        FieldFile(path).read(number, start, stop)


def change(path: Path, function) -> None:
    with h5py.File(path, "r+") as file:
        function(file)


def drop(name: str):
    return lambda file: file.attrs.pop(name)


def put(name: str, value: object):
    return lambda file: file.attrs.__setitem__(name, value)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (put("format_version", 99), "train.h5: this has format version 99, this cscnn reads 1"),
        (drop("format"), "train.h5: this is not a file of cscnn"),
        (drop("metric"), "train.h5: attribute metric is missing"),
        (put("metric", [1, 0]), r"train.h5: metric \(1, 0\) is degenerate"),
        (put("metric", [1, 1, 1]), "train.h5: "),
        (put("boundary", ["wall", "magic"]), "train.h5: boundary must be one of .* got 'magic'"),
        (put("spacing", [1.0, -1.0]), "train.h5: spacing must be positive"),
        (put("fields", ["smoke"]), "train.h5: attribute fields lists"),
        (lambda f: f.pop("grade0/smoke"), "train.h5: attribute fields lists"),
        (lambda f: f.pop("index"), "train.h5: .*index"),
        (lambda f: f.pop("checksum"), "train.h5: .*checksum"),
        (lambda f: f.move("grade1/velocity", "grade2/velocity"), "train.h5: .*velocity"),
    ],
)
def test_files_with_a_wrong_description(path: Path, damage, message: str) -> None:
    change(path, damage)
    with pytest.raises(ValueError, match=message):
        FieldFile(path)
    assert len(list(find_damage(path))) == 1


def test_truncated_files(path: Path) -> None:
    whole = path.read_bytes()
    for size in (0, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"train\.h5 is (truncated|no HDF5 file)"):
            FieldFile(path)


def test_other_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "notes.h5").write_text("no data")
    with pytest.raises(ValueError, match=r"notes\.h5 is no HDF5 file"):
        FieldFile(tmp_path / "notes.h5")
    with pytest.raises(FileNotFoundError, match=r"there is no file .*absent\.h5"):
        FieldFile(tmp_path / "absent.h5")


def test_damage_is_found(path: Path) -> None:
    def damage(file: h5py.File) -> None:
        file["grade1/velocity"][1, 2, 0, 0, 0] += 1e-3
        file["grade0/smoke"][2, 0, 0, 0] = np.nan

    change(path, damage)
    first, second = find_damage(path)
    assert "trajectory 1 is damaged" in first
    assert "trajectory 2, field smoke: 1 of 120 numbers are NaN" in second


def test_checksum_sees_every_bit() -> None:
    plain = trajectory(0)
    assert np.array_equal(checksum(plain), checksum(trajectory(0)))
    plain["heat"][0, 0, 0, 0] = np.nextafter(plain["heat"][0, 0, 0, 0], 9)
    assert not np.array_equal(checksum(plain), checksum(trajectory(0)))
    swapped = trajectory(0)
    swapped["heat"], swapped["smoke"] = swapped["smoke"], swapped["heat"]
    assert not np.array_equal(checksum(swapped), checksum(trajectory(0)))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda t: t.pop("heat"), r"has fields \['smoke', 'velocity'\]"),
        (lambda t: t.update(heat=np.zeros((1, 2))), r"field heat: shape \(1, 2\), expected"),
        (lambda t: t["heat"].fill(np.inf), "field heat: 120 of 120 numbers are NaN or infinite"),
        (lambda t: t["heat"].fill(1e300), "infinite as float32"),
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
    with pytest.raises(ValueError, match="int8"):
        write(tmp_path / "train.h5", HEADER, [trajectory(1)], [0], dtype="int8")
    with pytest.raises(ValueError, match="zip"):
        write(tmp_path / "train.h5", HEADER, [trajectory(1)], [0], compression="zip")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_seen_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(OSError, match=r"has only 0\.00 GB free"):
        make(tmp_path / "train.h5")


def test_merge_puts_shards_in_order(tmp_path: Path) -> None:
    whole = make(tmp_path / "whole.h5", range(5))
    shards = [make(tmp_path / f"{i}.h5", r) for i, r in enumerate((range(3, 5), range(0, 3)))]
    assert merge(shards, tmp_path / "merged.h5") == 5
    assert (tmp_path / "merged.h5").read_bytes() == whole.read_bytes()


def test_merge_refuses_what_does_not_belong_together(tmp_path: Path) -> None:
    first, out = make(tmp_path / "a.h5", range(2)), tmp_path / "out.h5"
    with pytest.raises(ValueError, match=r"trajectory 1 is in both .*a\.h5 and .*b\.h5"):
        merge([first, make(tmp_path / "b.h5", range(1, 3))], out)
    with pytest.raises(ValueError, match="1 of 4 trajectories are missing, the first is 2"):
        merge([first, make(tmp_path / "c.h5", range(3, 4))], out)
    other = make(tmp_path / "d.h5", range(2, 3), HEADER.replace(seed=1))
    with pytest.raises(ValueError, match="differ in seed"):
        merge([first, other], out)
    with pytest.raises(ValueError, match="holds float64"):
        merge([first, make(tmp_path / "e.h5", range(2, 3), dtype="float64")], out)
    with pytest.raises(ValueError, match="no files to merge"):
        merge([], out)
    change(first, lambda f: f["grade0/heat"].__setitem__((0, 0, 0, 0), 3.0))
    with pytest.raises(ValueError, match=r"a\.h5: trajectory 0 is damaged"):
        merge([first], out)
    assert not out.exists()


def test_merge_misses_shards_by_their_names(tmp_path: Path) -> None:
    shards = [make(tmp_path / f"train.shard-{i}-of-3.h5", range(2 * i, 2 * i + 2)) for i in (0, 1)]
    with pytest.raises(ValueError, match="1 of 3 shards are missing, the first is number 2"):
        merge(shards, tmp_path / "train.h5")


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
