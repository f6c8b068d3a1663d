"""The file format: round trips, self-description, and every way in which a file can be bad."""

import os
import pickle
from pathlib import Path

import h5py
import numpy as np
import pytest

from cscnn.data import Background, Field, FieldFile, Header, open_fields
from cscnn.data.files import checksum, find_damage, write

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


def store(name: str, dtype: type):
    """Numbers of another type."""

    def change(file: h5py.File) -> None:
        path = f"grade{HEADER.grade(name)}/{name}"
        attributes, shape = dict(file[path].attrs), file[path].shape
        del file[path]
        file.create_dataset(path, shape, dtype).attrs.update(attributes)

    return change


def rename(old: str, new: str):
    """A field of another name."""

    def change(file: h5py.File) -> None:
        file.move(f"grade{HEADER.grade(old)}/{old}", f"grade{HEADER.grade(old)}/{new}")
        file.attrs["fields"] = [new if name == old else name for name in file.attrs["fields"]]

    return change


def empty(file: h5py.File) -> None:
    """Take all trajectories out."""
    for path in ("index", "checksum", *(f"grade{f.grade}/{f.name}" for f in HEADER.fields)):
        attributes, shape, dtype = dict(file[path].attrs), file[path].shape, file[path].dtype
        del file[path]
        file.create_dataset(path, (0, *shape[1:]), dtype).attrs.update(attributes)


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
        (lambda f: f.copy("grade0/heat", "grade2/heat"), "holds .*grade0/heat.*grade2/heat"),
        (store("heat", np.complex64), "field heat holds complex64, expected float32"),
        (store("velocity", np.complex64), "the type of numbers must be .* got 'complex64'"),
        (store("heat", np.int16), "field heat holds int16, expected float32"),
        (
            lambda f: f["grade1/velocity"].attrs.__setitem__("components", ["e2", "e1"]),
            r"velocity has components \['e2', 'e1'\], but grade 1 of metric \(1, 1\) has",
        ),
        (lambda f: f["grade0/heat"].attrs.__setitem__("units", "\x1b[31m"), "must be printable"),
        (rename("heat", "$heat"), r"'\$heat' cannot be the name of a field"),
        (rename("heat", ".heat"), "'.heat' cannot be the name of a field"),
        (rename("heat", "he\nat"), r"'he\\nat' cannot be the name of a field"),
        (rename("heat", "a/heat"), "holds .*grade0/a"),
        (empty, "train.h5: it holds no trajectories"),
    ],
)
def test_files_with_a_wrong_description(path: Path, damage, message: str) -> None:
    change(path, damage)
    with pytest.raises(ValueError, match=message):
        FieldFile(path)
    assert len(list(find_damage(path))) == 1


@pytest.mark.parametrize(
    "damage",
    [
        put("spacing", [0.5, 0.5]),
        put("boundary", ["periodic", "periodic"]),
        put("seed", 3),
        put("parameters", '{"viscosity": 0.2}'),
        put("fields", ["smoke", "velocity", "heat"]),
        lambda f: f["grade1/velocity"].attrs.__setitem__("units", "km/h"),
        lambda f: f["backgrounds/grade1/gravity"].__setitem__(1, -1.6),
        lambda f: f["index"].__setitem__(0, 7),
    ],
)
def test_changed_headers_are_found(path: Path, damage) -> None:
    """Each of these is a good header, but not the one that was written."""
    assert list(find_damage(path)) == []
    change(path, damage)
    FieldFile(path).close()
    (message,) = find_damage(path)
    assert "attributes, units or indices were changed" in message
    change(path, drop("header_checksum"))
    (message,) = find_damage(path)
    assert "header_checksum is missing" in message


def elsewhere(file: h5py.File) -> dict[str, object]:
    """Ways to keep the data of a field in other files."""
    name, folder = "grade0/heat", Path(file.filename).parent
    shape, attributes = file[name].shape, dict(file[name].attrs)
    del file[name]
    layout = h5py.VirtualLayout(shape, "f4")
    layout[:] = h5py.VirtualSource(str(folder / "other.h5"), "x", shape)

    def raw() -> h5py.Dataset:
        (folder / "raw").write_bytes(bytes(4 * int(np.prod(shape))))
        return file.create_dataset(
            name, shape, "f4", external=[(str(folder / "raw"), 0, h5py.h5f.UNLIMITED)]
        )

    return {
        "link": lambda: file.__setitem__(name, h5py.ExternalLink(str(folder / "other.h5"), "x")),
        "virtual": lambda: file.create_virtual_dataset(name, layout).attrs.update(attributes),
        "external": lambda: raw().attrs.update(attributes),
        "group": lambda: file.__setitem__("more", h5py.ExternalLink("/etc/passwd", "x")),
    }


@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("link", r"grade0/heat is a link to another file, .*other\.h5: copy its data"),
        ("virtual", "the data of grade0/heat are in other files"),
        ("external", "the data of grade0/heat are in other files"),
        ("group", "more is a link to another file, /etc/passwd"),
    ],
)
def test_data_in_other_files_are_refused(path: Path, way: str, message: str) -> None:
    """A file of a stranger must not make us read other files, whatever reads it."""
    with h5py.File(path.with_name("other.h5"), "w") as other:
        other["x"] = np.zeros((3, 5, 4, 6, 1), "f4")
    change(path, lambda file: elsewhere(file)[way]())
    for reader in (FieldFile, open_fields):
        with pytest.raises(ValueError, match=message):
            reader(path)
    assert message.partition(" ")[0] in next(iter(find_damage(path)))


@pytest.mark.parametrize("name", ["", " ", "a/b", "/a", "..", ".a", "$a", "a\n", "\x1b[2J", "a\0"])
def test_names_that_files_cannot_hold(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be the name of a field"):
        HEADER.replace(fields=(Field(name, 0),))
    with pytest.raises(ValueError, match="cannot be the name of a field"):
        HEADER.replace(backgrounds=(Background(name, 0, (1.0,)),))


def test_truncated_files(path: Path) -> None:
    whole = path.read_bytes()
    for size in (0, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(
            ValueError, match=r"train\.h5 is (truncated|no HDF5 file|an empty file)"
        ):
            FieldFile(path)


def test_other_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "notes.h5").write_text("no data")
    with pytest.raises(ValueError, match=r"notes\.h5 is no HDF5 file"):
        FieldFile(tmp_path / "notes.h5")
    with pytest.raises(IsADirectoryError, match="is a folder, expected a file"):
        FieldFile(tmp_path)
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
