"""Files of The Well: values, axes that are left out, boundaries, and what is refused."""

import itertools

import h5py
import numpy as np
import pytest

from cscnn.data import FieldFile, open_fields
from cscnn.data.files import write
from cscnn.data.readers import WellFile
from tests.data.layouts import AXES, NAMES, change, replace, well_file


@pytest.mark.parametrize("dim", [2, 3])
def test_well_values_by_naive_loops(tmp_path, dim):
    source = open_fields(well_file(tmp_path / "valid" / "w.hdf5", dim), fields=NAMES)
    assert isinstance(source, WellFile)
    assert (len(source), source.dtype, source.staggering) == (2, "float32", "")
    got = source.read(1, 2, 5)
    with h5py.File(source.path) as file:
        data = {f"{g}{name}": file[g][name][()] for g in file if g[0] == "t" for name in file[g]}
    for t, *x in itertools.product(range(3), *map(range, AXES[dim])):
        at = (t, *x)
        expected = {
            "density": [data["t0_fieldsdensity"][(1, t + 2, *x)]],
            "forcing": [data["t0_fieldsforcing"][(t + 2, x[0])]],
            "velocity": data["t1_fieldsvelocity"][(1, t + 2, *x)].tolist(),
            "rotation": [
                data["t2_fieldsrotation"][(1, t + 2, *x, a, b)]
                for a, b in itertools.combinations(range(dim), 2)
            ],
        }
        assert {name: got[name][at].tolist() for name in expected} == expected
        assert got["mask"][tuple(x)] == data["t0_fieldsmask"][tuple(x)]
        assert got["profile"][tuple(x)] == data["t0_fieldsprofile"][(1, *x[1:])]
    assert set(got) == {*expected, "mask", "profile"}
    assert all(values.dtype == np.float32 and values.flags.writeable for values in got.values())


def test_what_does_not_change_in_time_is_given(tmp_path):
    """A mask is no target to predict, and scalars are constants of trajectories."""

    def scalars(file):
        group = file["scalars"]
        group.attrs["field_names"] = ["Re", "Ra", "gain"]
        group["Ra"], group["gain"] = np.float64([1e4, 2e4]), np.arange(6.0)
        group["Ra"].attrs.update(sample_varying=True, time_varying=False)
        group["gain"].attrs.update(sample_varying=False, time_varying=True)

    path = change(well_file(tmp_path / "w.hdf5"), scalars)
    names = [*NAMES, "Re", "Ra", "gain"]
    source = open_fields(path, fields=names, forcing=["forcing"])
    header = source.header
    assert [f.name for f in header.fields] == ["density", "velocity", "rotation"]
    assert {g.name: g.kind for g in header.given} == {
        "mask": "static", "profile": "static", "forcing": "forcing",
        "Re": "constant", "Ra": "constant", "gain": "forcing",
    }  # fmt: skip
    got = source.read(1, 2, 5)
    assert {g.name: got[g.name].shape for g in header.given} == {
        "mask": (5, 4, 1), "profile": (5, 4, 1), "forcing": (3, 5, 4, 1),
        "Re": (1,), "Ra": (1,), "gain": (3, 5, 4, 1),
    }  # fmt: skip
    assert (got["Re"].tolist(), got["Ra"].tolist()) == ([100.0], [2e4])
    assert (got["gain"] == np.arange(2.0, 5.0)[:, None, None, None]).all()
    assert source.dtype == "float32"  # whatever the type of scalars
    write(tmp_path / "own.h5", header, map(source.read, range(2)), range(2))
    np.testing.assert_equal(FieldFile(tmp_path / "own.h5").read(1), source.read(1))
    with pytest.raises(ValueError, match=r"no field 'heat', only density"):
        open_fields(path, fields=names, forcing=["heat"])
    with pytest.raises(ValueError, match=r"needs fields of different names, got \[\]"):
        open_fields(path, fields=["mask"])


def test_one_number_may_be_an_array_of_one(tmp_path):
    path = replace(well_file(tmp_path / "w.hdf5"), "scalars/Re", np.float32([7]))
    assert open_fields(path, fields=["density", "Re"]).read(0)["Re"].tolist() == [7.0]
    replace(path, "scalars/Re", np.float32([7, 8]))
    with pytest.raises(ValueError, match=r"scalars/Re has shape \(2,\), expected \(\)"):
        open_fields(path, fields=["density", "Re"])


@pytest.mark.parametrize("dim", [2, 3])
def test_well_header(tmp_path, dim):
    header = open_fields(well_file(tmp_path / "valid" / "w.hdf5", dim), fields=NAMES).header
    assert (header.metric, header.axes) == ((1,) * dim, tuple("xyz"[:dim]))
    assert header.boundary == ("periodic", "wall", "open")[:dim]
    assert header.spacing == pytest.approx((0.1,) * dim, rel=1e-6)
    assert len(set(header.spacing)) == 1  # float32 coordinates do not make space anisotropic
    assert header.frame_spacing == pytest.approx(0.2, rel=1e-6)
    assert (header.frames, header.grid) == (6, AXES[dim])
    assert (header.generator, header.split, dict(header.parameters)) == (
        "swirl", "valid", {"Re": 100.0},
    )  # fmt: skip
    assert [f.grade for f in header.fields] == [0, 0, 1, 2]
    assert [(g.name, g.grade, g.kind) for g in header.given] == [
        ("mask", 0, "static"), ("profile", 0, "static"),
    ]  # fmt: skip
    assert type(header).from_dict(header.to_dict()) == header


def test_axial_fields(tmp_path):
    path = well_file(tmp_path / "w.hdf5", 3)
    options = {"velocity": 2, "density": 3}
    source = open_fields(path, fields=["velocity", "density"], grades=options)
    assert [(f.name, f.grade) for f in source.header.fields] == [("velocity", 2), ("density", 3)]
    polar = open_fields(path, fields=["velocity"]).read(0)["velocity"]
    axial = source.read(0)["velocity"]
    for axis, component in ((2, axial[..., 0]), (1, -axial[..., 1]), (0, axial[..., 2])):
        np.testing.assert_array_equal(component, polar[..., axis])
    with pytest.raises(ValueError, match=r"field velocity .* has grade 1 or 2, got 3"):
        open_fields(path, fields=["velocity"], grades={"velocity": 3})


def mask(file, name, *index, value=False):
    file[f"boundary_conditions/{name}/mask"][index] = value


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (lambda f: None, ("periodic", "wall")),
        (lambda f: mask(f, "y_wall", -1), ("periodic", "open")),
        (lambda f: f["boundary_conditions"].__delitem__("x_periodic"), ("open", "wall")),
        (lambda f: f.__delitem__("boundary_conditions"), ("open", "open")),
        (lambda f: replace_walls(f, 0, slice(None)), ("periodic", "wall")),
        (lambda f: replace_walls(f, 0, 2), ("periodic", "open")),
    ],
)
def test_boundaries(tmp_path, action, expected):
    path = change(well_file(tmp_path / "w.hdf5"), action)
    assert open_fields(path, fields=["density"]).header.boundary == expected


def replace_walls(file, end, where):
    """Walls as a mask of the whole grid, also inside it, complete at the ends of y or not."""
    conditions = file["boundary_conditions"]
    del conditions["y_wall"]
    walls = np.zeros(AXES[2], bool)
    walls[:, -1] = True
    walls[where, end] = True
    walls[2, 2] = True
    group = conditions.create_group("xy_wall")
    group.attrs.update(associated_dims=["x", "y"], bc_type="WALL")
    group["mask"] = walls


def attribute(where, **values):
    return lambda file: file[where].attrs.update(values)


def delete(name):
    return lambda file: file.__delitem__(name)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (attribute("/", grid_type="spherical"), r"grid_type is 'spherical', .* curvilinear"),
        (attribute("/", n_spatial_dims=1), r"expected 2 or 3 n_spatial_dims .* got 1 and 2"),
        (lambda f: f.attrs.__delitem__("n_trajectories"), r"/ has no attribute n_trajectories"),
        (attribute("dimensions", spatial_dims=["x"]), r"is 2, but spatial_dims is \['x'\]"),
        (delete("dimensions"), r"group dimensions is missing"),
        (delete("dimensions/y"), r"dataset /dimensions/y is missing"),
        (delete("t0_fields/density"), r"dataset /t0_fields/density is missing"),
        (attribute("boundary_conditions/y_wall", bc_type="SLIP"), r"y_wall: bc_type .* 'slip'"),
        (attribute("t0_fields/density", time_varying=False), r"density has shape \(2, 6, 5, 4\), "),
        (attribute("t0_fields/density", dim_varying=[True]), r"dim_varying must have 2 values"),
        (attribute("/", n_trajectories=3), r"shape \(2, 6, 5, 4\), expected \(3, 6, 5, 4\)"),
        (attribute("dimensions/x", time_varying=True), r"/dimensions/x must be one row"),
    ],
)
def test_bad_well_files(tmp_path, action, message):
    path = change(well_file(tmp_path / "w.hdf5"), action)
    with pytest.raises(ValueError, match=rf"w\.hdf5: .*{message}"):
        open_fields(path, fields=["density"])


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("y", np.cos(np.linspace(np.pi, 0, 4)), r"/dimensions/y are not evenly spaced: number "),
        ("y", [3.0, 2.0, 1.0, 0.0], r"/dimensions/y must ascend, got 3\.0 to 0\.0"),
        ("y", [0.0, 1.0, np.nan, 3.0], r"/dimensions/y must have two or more finite"),
        ("y", np.stack([np.arange(4.0), 2 * np.arange(4.0)]), r"/dimensions/y must be one row"),
        ("time", np.geomspace(1, 2, 6), r"/dimensions/time are not evenly spaced"),
        ("time", np.stack([np.arange(6.0), 2 * np.arange(6.0)]), r"one step .* got 1\.0 to 2\.0"),
    ],
)
def test_uneven_coordinates(tmp_path, name, values, message):
    path = replace(well_file(tmp_path / "w.hdf5"), f"dimensions/{name}", np.asarray(values))
    with pytest.raises(ValueError, match=rf"w\.hdf5: .*{message}"):
        open_fields(path, fields=["density"])


def test_times_of_each_trajectory_may_start_anywhere(tmp_path):
    times = np.float32(0.1) * np.arange(6, dtype=np.float32) + np.float32([[0], [5]])
    path = replace(well_file(tmp_path / "w.hdf5"), "dimensions/time", times)
    source = open_fields(path, fields=["density"])
    assert source.header.frame_spacing == pytest.approx(0.1, rel=1e-6)


def test_numbers_of_different_types_become_one(tmp_path):
    path = replace(well_file(tmp_path / "w.hdf5"), "t0_fields/mask", np.ones((5, 4), bool))
    replace(path, "t0_fields/density", np.ones((2, 6, 5, 4), ">f8"))
    source = open_fields(path, fields=["mask", "density"])
    assert source.dtype == "float64"
    assert all(values.dtype == np.float64 for values in source.read(0).values())


def test_infinity_in_a_well_file(tmp_path):
    path = well_file(tmp_path / "w.hdf5")
    change(path, lambda f: f["t1_fields/velocity"].__setitem__((1, 4, 2, 3, 0), np.inf))
    message = r"w\.hdf5: trajectory 1, field velocity: 1 of 80 .* inf in frame 4 at \(2, 3, 0\)"
    with pytest.raises(ValueError, match=message):
        open_fields(path, fields=["velocity"]).read(1, 3, 5)
