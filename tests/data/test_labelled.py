"""Names of axes: in xarray, and in our files as netCDF tells them."""

from pathlib import Path

import h5py
import numpy as np
import pytest

from cscnn.data import Background, Field, FieldFile, Given, Header, open_fields
from cscnn.data.dimensions import coordinates, dimensions
from cscnn.data.files import find_damage, write
from tests.data.clouds import GIVEN, SIZES, cloud_file
from tests.data.layouts import NAMES, well_file

xarray = pytest.importorskip("xarray", reason="xarray is not installed")
pytest.importorskip("h5netcdf", reason="h5netcdf is not installed")

SPACE = Header(
    metric=(1, 1, 1), axes=("x", "y", "z"), spacing=(0.5, 0.25, 1.0), boundary=("open",) * 3,
    fields=(Field("density", 0, "kg"), Field("magnetic", 2, "T")), frames=4, grid=(3, 4, 5),
    frame_spacing=0.1, units={"length": "m", "time": "s"},
    backgrounds=(Background("gravity", 1, (0.0, 0.0, -9.8)),),
    given=(Given("mask", 0, "static"), Given("stirring", 1, "forcing"), Given("nu", 0, "constant")),
    split="valid", parameters={"a": 1},
)  # fmt: skip
SPACETIME = Header(
    metric=(1, -1, -1), axes=("t", "x", "y"), spacing=(0.5, 0.25, 1.0), boundary=("open",) * 3,
    fields=(Field("light", 2),), frames=4, grid=(3, 5), time_axis=0,
    frame_spacing=2.0, start_time=6.0,
)  # fmt: skip
HEADERS = {"space": SPACE, "spacetime": SPACETIME}


def data_file(path: Path, header: Header, count: int = 3, seed: int = 0, **options: str) -> Path:
    """Random numbers."""
    rng = np.random.default_rng(seed)
    rows = [
        {q.name: rng.standard_normal(header.shape(q.name)) for q in header.quantities}
        for _ in range(count)
    ]
    write(path, header, rows, range(5, 5 + count), **options)
    return path


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_every_number_and_coordinate_is_there(tmp_path: Path, header: Header) -> None:
    file = FieldFile(data_file(tmp_path / "a.h5", header))
    data = file.to_xarray()
    for quantity in header.quantities:
        variable = data[quantity.name]
        assert variable.dims == dimensions(header, quantity.name)
        assert variable.attrs["grade"] == quantity.grade
        for number in range(3):
            expected = file.read(number)[quantity.name]
            assert np.array_equal(variable.isel(trajectory=number), expected)
            assert variable.dtype == expected.dtype
    time = "time" if header.time_axis is None else "t"
    step = header.frame_spacing if header.time_axis is None else header.spacing[0]
    first = 0 if header is SPACE else 3  # frames
    assert np.allclose(data[time], step * np.arange(first, first + 4))
    assert np.allclose(
        data.y, header.spacing[header.axes.index("y")] * (np.arange(len(data.y)) + 0.5)
    )
    assert data.trajectory.values.tolist() == [5, 6, 7]


def test_parts_are_read_lazily_by_any_index(tmp_path: Path, monkeypatch) -> None:
    file = FieldFile(data_file(tmp_path / "a.h5", SPACE))
    whole = np.stack([file.read(number)["magnetic"] for number in range(3)])
    read, asked = file.read_quantity, []
    monkeypatch.setattr(file, "read_quantity", lambda *key: asked.append(key) or read(*key))
    magnetic = file.to_xarray().magnetic
    assert not asked
    got = magnetic.isel(trajectory=2, time=slice(1, 3), x=-1)
    assert np.array_equal(got, whole[2, 1:3, -1])
    assert asked == [("magnetic", 2, 1, 3)]
    assert np.array_equal(magnetic.isel(time=slice(None, None, -2)), whole[:, ::-2])
    assert np.array_equal(magnetic.isel(trajectory=[2, 0], time=[0, 3]), whole[[2, 0]][:, [0, 3]])
    assert np.array_equal(magnetic.sel(component2="e13", time=0.2), whole[:, 2, ..., 1])
    assert magnetic.isel(time=slice(0, 0)).values.shape == (3, 0, 3, 4, 5, 3)


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_files_open_as_netcdf_with_named_axes(
    tmp_path: Path, header: Header, compression: str
) -> None:
    path = data_file(tmp_path / "a.h5", header, compression=compression)
    assert not list(find_damage(path))
    own = FieldFile(path).to_xarray()
    with xarray.open_datatree(path, engine="h5netcdf") as tree:
        groups = {q.name: f"grade{q.grade}" for q in header.fields}
        groups |= {g.name: f"{g.kind}/grade{g.grade}" for g in header.given}
        groups |= {b.name: f"backgrounds/grade{b.grade}" for b in header.backgrounds}
        for name, group in groups.items():
            xarray.testing.assert_equal(tree[group][name], own[name])
        assert tree["checksum"].dims == ("trajectory", "byte")
    with xarray.open_dataset(
        path, engine="h5netcdf", group=f"grade{header.fields[0].grade}"
    ) as one:
        assert set(one.data_vars) == {header.fields[0].name}


def test_points(tmp_path: Path) -> None:
    path = cloud_file(tmp_path / "a.h5", given=GIVEN)
    file = FieldFile(path)
    data = file.to_xarray()
    assert data.flow.dims == ("time", "point", "component1")
    for number, size in enumerate(SIZES):
        part = data.isel(point=data.trajectory_of_point.values == number)
        assert part.sizes["point"] == size
        place = file.place(number)
        assert np.array_equal(np.stack([part.x, part.y], -1), place["positions"])
        assert np.array_equal(part.weights, place["weights"])
        for name in ("flow", "wall", "heat"):
            assert np.array_equal(part[name], file.read(number)[name])
        assert np.array_equal(data.stiffness[number], file.read(number)["stiffness"])
    with xarray.open_datatree(path, engine="h5netcdf") as tree:
        assert np.array_equal(tree["grade1/flow"], data.flow)
        assert tree["positions"].dims == ("point", "axis")
        assert tree["axis"].values.tolist() == ["x", "y"]


def test_other_sources_and_some_trajectories(tmp_path: Path) -> None:
    well = open_fields(well_file(tmp_path / "valid" / "w.hdf5"), fields=NAMES)
    data = well.to_xarray([1])
    assert np.array_equal(data.velocity[0], well.read(1)["velocity"])
    paths = [data_file(tmp_path / f"{n}.h5", SPACE, count=n, seed=n) for n in (1, 2)]
    joined = open_fields(paths)
    data = joined.to_xarray()
    assert data.trajectory.values.tolist() == [0, 1, 2]
    assert np.array_equal(data.magnetic[2], FieldFile(paths[1]).read(1)["magnetic"])


def test_a_file_without_scales_is_read(tmp_path: Path) -> None:
    """As older versions wrote them."""
    path = data_file(tmp_path / "a.h5", SPACE)
    before = FieldFile(path).everything(1)
    names = [*coordinates(SPACE, range(3)), "byte"]
    with h5py.File(path, "a") as file:

        def forget(_: str, item: object) -> None:
            for name in ("DIMENSION_LIST", "REFERENCE_LIST"):
                if name in item.attrs:
                    del item.attrs[name]

        file.visititems(forget)
        for name in names:
            del file[name]
    with FieldFile(path) as file:
        after = file.everything(1)
    assert not list(find_damage(path))
    assert all(np.array_equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize(
    "axes", [("time", "index"), ("a/b", ""), ("axis1", "component1"), ("points", "x")]
)
def test_awkward_names_of_axes_give_way(tmp_path: Path, axes: tuple[str, str]) -> None:
    header = Header((1, 1), axes, (1.0, 1.0), ("open",) * 2, (Field("v", 1),), 2, (3, 4))
    data = FieldFile(data_file(tmp_path / "a.h5", header)).to_xarray()
    last = "x" if axes[1] == "x" else "axis1"
    assert data.v.dims == ("trajectory", "time", "axis0", last, "component1")
    with xarray.open_dataset(tmp_path / "a.h5", engine="h5netcdf", group="grade1") as stored:
        assert np.array_equal(stored.v, data.v)


def test_names_that_are_taken_twice_are_told(tmp_path: Path) -> None:
    header = Header((1, 1), ("x", "y"), (1.0, 1.0), ("open",) * 2, (Field("x", 0),), 2, (3, 4))
    file = FieldFile(data_file(tmp_path / "a.h5", header))
    with pytest.raises(ValueError, match="'x' is the name of two things"):
        file.to_xarray()


@pytest.mark.parametrize("joined", [False, True])
def test_a_variable_reads_its_own_numbers_alone(tmp_path: Path, joined: bool, monkeypatch) -> None:
    data_file(tmp_path / "a.h5", SPACE)
    if joined:
        data_file(tmp_path / "b.h5", SPACE, seed=1)
    source = open_fields(tmp_path if joined else tmp_path / "a.h5")
    asked = []
    load = FieldFile._load

    def watch(self, name, number, index, field):
        asked.append(field)
        return load(self, name, number, index, field)

    monkeypatch.setattr(FieldFile, "_load", watch)
    data = source.to_xarray()
    assert not asked
    assert np.isfinite(data.magnetic).all()
    assert set(asked) == {"magnetic"}
    for name in ("density", "mask", "stirring", "nu"):
        assert np.array_equal(source.read_quantity(name, 1), source.read(1)[name])
    assert np.array_equal(source.read_quantity("density", 1, 2, 3), source.read(1)["density"][2:3])
