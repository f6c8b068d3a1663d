"""What is given and not predicted: in files, coarse views, and every way in which it can be bad."""

import h5py
import numpy as np
import pytest

from cscnn.data import Background, Coarse, Field, FieldFile, Given, Header
from cscnn.data.files import find_damage, header_checksum, write
from cscnn.data.merge import merge
from tests.data.command import command

HEADER = Header(
    metric=(1, 1),
    axes=("x", "y"),
    spacing=(0.5, 0.5),
    boundary=("wall", "periodic"),
    fields=(Field("velocity", 1, "m/s"),),
    frames=5,
    grid=(4, 6),
    given=(
        Given("stirring", 1, "forcing", "m/s²"),
        Given("normals", 1, "static"),
        Given("mask", 0, "static", "1"),
        Given("viscosity", 0, "constant", "m²/s"),
        Given("wind", 1, "constant"),
    ),
)
SHAPES = {
    "velocity": (5, 4, 6, 2),
    "stirring": (5, 4, 6, 2),
    "normals": (4, 6, 2),
    "mask": (4, 6, 1),
    "viscosity": (1,),
    "wind": (2,),
}


def trajectory(seed):
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(shape) for name, shape in SHAPES.items()}


def make(path, indices=range(3), header=HEADER, **options):
    write(path, header, map(trajectory, indices), indices, **options)
    return path


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_round_trip(tmp_path, compression):
    path = make(tmp_path / "a.h5", compression=compression)
    assert {q.name: HEADER.shape(q.name) for q in HEADER.quantities} == SHAPES
    with FieldFile(path) as file:
        assert file.header == Header.from_dict(HEADER.to_dict())  # in this order
        for number in range(3):
            window = file.read(number, 1, 4)
            for name, expected in trajectory(number).items():
                constant = name in ("viscosity", "wind")
                stored = expected if constant else expected.astype("float32")
                framed = name in ("velocity", "stirring")
                np.testing.assert_array_equal(file.read(number)[name], stored, strict=True)
                np.testing.assert_array_equal(window[name], stored[1:4] if framed else stored)
    assert list(find_damage(path)) == []
    with h5py.File(path) as raw:
        assert raw["static/grade1/normals"].shape == (3, 4, 6, 2)
        assert raw["constant/grade0/viscosity"].shape == (3, 1)
        assert raw["forcing/grade1/stirring"].attrs["units"] == "m/s²"


def test_shards_with_given_quantities_are_joined(tmp_path):
    parts = [make(tmp_path / f"{i}.h5", range(i, i + 1)) for i in range(2)]
    assert merge(parts, tmp_path / "all.h5") == 2
    with FieldFile(tmp_path / "all.h5") as file:
        assert file.read(1)["viscosity"] == trajectory(1)["viscosity"]
    assert list(find_damage(tmp_path / "all.h5")) == []


@pytest.mark.parametrize("name", ["static/grade0/mask", "constant/grade1/wind"])
def test_a_changed_number_is_damage(tmp_path, name):
    path = make(tmp_path / "a.h5")
    with h5py.File(path, "a") as file:
        file[name][1] = 7.0
    assert [text for text in find_damage(path) if "trajectory 1 is damaged" in text]


def test_headers_of_older_files_keep_their_checksum():
    """Those of files that were written before there was anything given."""
    plain = HEADER.replace(given=())
    assert header_checksum(plain, range(3)) == "424a83cf61e9390db3157839496b0f5f"
    assert header_checksum(HEADER, range(3)) != header_checksum(plain, range(3))


def test_a_coarse_view_takes_means_of_static_fields(tmp_path):
    with Coarse(FieldFile(make(tmp_path / "a.h5", dtype="float64")), 2) as source:
        assert source.header.shape("normals") == (2, 3, 2)
        got, fine = source.read(2, 1, 3), trajectory(2)
    for i, j in np.ndindex(2, 3):
        cell = np.s_[2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
        np.testing.assert_allclose(got["normals"][i, j], fine["normals"][cell].mean((0, 1)))
        expected = fine["stirring"][1:3][(slice(None), *cell)].mean((1, 2))
        np.testing.assert_allclose(got["stirring"][:, i, j], expected)
    np.testing.assert_array_equal(got["wind"], fine["wind"])


def test_info_lists_what_is_given(tmp_path, capsys):
    assert command("data", "info", str(make(tmp_path / "a.h5"))) == 0
    text = capsys.readouterr().out
    assert "  static      normals: grade 1" in text
    assert "  constant    viscosity: grade 0, m²/s" in text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"given": (Given("velocity", 0, "static"),)}, "of different names"),
        ({"given": (Given("mask", 3, "static"),)}, "mask has grade 3"),
        ({"given": (Given("a/b", 0, "static"),)}, "'a/b' cannot be the name"),
        ({"given": (Given("mask", 0, "static", "\x1b"),)}, "must be printable"),
        (
            {"time_axis": 0, "grid": (4,), "given": (Given("mask", 0, "static"),)},
            r"only constants can be given, got mask \(static\)",
        ),
    ],
)
def test_bad_headers(changes, message):
    with pytest.raises(ValueError, match=message):
        HEADER.replace(**changes)


def test_kinds_have_names():
    with pytest.raises(ValueError, match=r"the kind of mask must be .*forcing.*got 'fixed'"):
        Given("mask", 0, "fixed")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("mask", np.zeros((5, 4, 6, 1)), r"field mask: shape \(5, 4, 6, 1\), expected \(4, 6, 1\)"),
        ("viscosity", np.array([np.nan]), "field viscosity: 1 of 1 numbers are NaN"),
        ("viscosity", np.array([1j]), "field viscosity must hold real numbers"),
        ("speed", np.zeros(1), r"has fields .*'speed'.* expected"),
        ("mask", None, r"trajectory 0 has fields \['normals', 'stirring', 'velocity'"),
    ],
)
def test_bad_trajectories(tmp_path, name, value, message):
    bad = {**trajectory(0), name: value}
    bad = {key: x for key, x in bad.items() if x is not None}
    with pytest.raises(ValueError, match=message):
        write(tmp_path / "a.h5", HEADER, [bad], [0])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: f.__delitem__("static/grade0/mask"), "attribute given lists .*'mask'"),
        (lambda f: f.attrs.__delitem__("given"), r"attribute given lists \[\], the file holds"),
        (lambda f: f.move("static/grade0/mask", "constant/grade0/mask"), "field mask has shape"),
        (lambda f: f.move("static/grade0/mask", "static/grade1/mask"), "field mask has shape"),
    ],
)
def test_files_with_a_wrong_description(tmp_path, damage, message):
    path = make(tmp_path / "a.h5")
    with h5py.File(path, "a") as file:
        damage(file)
    with pytest.raises(ValueError, match=rf"a\.h5: .*{message}"):
        FieldFile(path)


def test_backgrounds_and_constants_live_together(tmp_path):
    header = HEADER.replace(backgrounds=(Background("gravity", 1, (0.0, -1.0)),))
    with FieldFile(make(tmp_path / "a.h5", header=header)) as file:
        assert file.header == Header.from_dict(header.to_dict())
