"""Symmetric and general tensors in the formats of other tools."""

from __future__ import annotations

import itertools
from pathlib import Path

import h5py
import numpy as np
import pytest

from cscnn.data import Background, FieldFile, Given, open_fields
from cscnn.data.writers import export
from tests.data.layouts import change, well_file
from tests.data.tensors import SOLID, solid, solid_file
from tests.data.test_writers import arrays_of

HEADERS = {"plane": SOLID, "space": solid(3, 3)}


def read_tensor(path: Path, name: str) -> np.ndarray:
    with h5py.File(path) as file:
        return file[f"t2_fields/{name}"][()]


@pytest.mark.parametrize("dim", [2, 3])
def test_the_well_says_what_is_symmetric(tmp_path: Path, dim: int) -> None:
    path = well_file(tmp_path / "w.hdf5", dim)
    source = open_fields(path, fields=["strain", "rotation"])
    assert {f.name: f.grade for f in source.header.fields} == {"strain": "symmetric", "rotation": 2}
    stored, got = read_tensor(path, "strain"), source.read(1, 2, 5)["strain"]
    assert got.shape[-1] == dim * dim
    assert np.array_equal(got, stored[1, 2:5].reshape(got.shape))
    assert open_fields(path).header.algebra.symmetric  # all fields can be read


@pytest.mark.parametrize("told", [True, False])
def test_a_general_tensor_is_two_fields(tmp_path: Path, told: bool) -> None:
    """By the numbers, if the file says nothing, or says that it is neither."""

    def general(file: h5py.File) -> None:
        data = file["t2_fields/strain"]
        values = np.random.default_rng(1).standard_normal(data.shape).astype(np.float32)
        values[:, :-1] += values[:, :-1].swapaxes(-1, -2)  # all but the last frames are symmetric
        data[...] = values
        data.attrs["symmetric"] = False
        if not told:
            del data.attrs["symmetric"], data.attrs["antisymmetric"]

    path = change(well_file(tmp_path / "w.hdf5", 3), general)
    source = open_fields(path, fields=["strain"])
    fields = [(f.name, f.grade) for f in source.header.fields]
    assert fields == [("strain", "symmetric"), ("strain_antisymmetric", 2)]
    stored, got = read_tensor(path, "strain"), source.read(0)
    symmetric = got["strain"].reshape(stored[0].shape)
    again = symmetric.copy()
    for number, (i, j) in enumerate(itertools.combinations(range(3), 2)):
        again[..., i, j] += got["strain_antisymmetric"][..., number]
        again[..., j, i] -= got["strain_antisymmetric"][..., number]
    assert np.allclose(again, stored[0], atol=1e-6)
    assert np.array_equal(symmetric, symmetric.swapaxes(-1, -2))
    forced = open_fields(path, fields=["strain", "velocity"], forcing=["strain"]).header
    assert [g.name for g in forced.given] == ["strain", "strain_antisymmetric"]
    claimed = open_fields(path, fields=["strain"], grades={"strain": "symmetric"})
    assert claimed.read(0, 2, 4)["strain"].shape[-1] == 9
    with pytest.raises(
        ValueError, match=r"trajectory 0, field strain: .* in frame 5 at .*\{'strain': 'general'\}"
    ):
        claimed.read(0, 4, 6)


def test_what_the_well_does_not_say_its_numbers_do(tmp_path: Path) -> None:
    path = well_file(tmp_path / "w.hdf5")
    change(path, lambda file: file["t2_fields/strain"].attrs.update(symmetric=False))
    assert [f.grade for f in open_fields(path, fields=["strain"]).header.fields] == ["symmetric"]
    general = open_fields(path, fields=["strain"], grades={"strain": "general"})
    assert not general.read(0)["strain_antisymmetric"].any()
    with pytest.raises(ValueError, match=r"has grade 2 or symmetric or general, got 1"):
        open_fields(path, fields=["strain"], grades={"strain": 1})
    with pytest.raises(ValueError, match=r"no field 'stress', only density"):
        open_fields(path, fields=["stress"])


def test_names_of_parts_must_be_free(tmp_path: Path) -> None:
    def rename(file: h5py.File) -> None:
        file["t0_fields"].move("density", "strain_antisymmetric")
        file["t0_fields"].attrs["field_names"] = ["strain_antisymmetric"]

    path = change(well_file(tmp_path / "w.hdf5"), rename)
    with pytest.raises(ValueError, match="are both strain_antisymmetric"):
        open_fields(path, grades={"strain": "general"})


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_the_well_and_back(tmp_path: Path, header) -> None:
    source = FieldFile(solid_file(tmp_path / "a.h5", header=header))
    (path,) = export(source, tmp_path / "well", "the_well")
    with h5py.File(path) as file:
        assert file["t2_fields/stress"].attrs["symmetric"]
        assert file["t2_fields/stress"].shape[-2:] == (header.algebra.dim,) * 2
    again = open_fields(path)
    assert {*again.header.fields} == {*header.fields}
    constants = {Given(b.name, b.grade, "constant") for b in header.backgrounds}
    assert {*again.header.given} == {*header.given} | constants
    before, after = source.read(1), again.read(1)
    for name, values in before.items():
        assert np.array_equal(values, after[name]), name
    if header.backgrounds:
        assert after["load"].tolist() == list(header.backgrounds[0].components)


@pytest.mark.external
@pytest.mark.filterwarnings("ignore")
def test_the_package_of_the_well_reads_tensors(tmp_path: Path) -> None:
    well = pytest.importorskip("the_well.data", reason="the_well is not installed")
    source = FieldFile(solid_file(tmp_path / "a.h5"))
    export(source, tmp_path / "well", "the_well")
    data = well.WellDataset(
        path=str(tmp_path / "well"), well_split_name="train", n_steps_input=1, n_steps_output=5
    )
    names = [name for order in range(3) for name in data.metadata.field_names[order]]
    sample = data[1]
    fields = np.concatenate([sample["input_fields"], sample["output_fields"]])
    stored = source.read(1)["stress"]
    for number, label in enumerate(("xx", "xy", "yx", "yy")):
        assert np.array_equal(fields[..., names.index(f"stress_{label}")], stored[..., number])


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_vtk_has_tensors_of_nine_components(tmp_path: Path, header) -> None:
    source = FieldFile(solid_file(tmp_path / "a.h5", header=header))
    paths = export(source, tmp_path / "out", "vtk")
    frame = paths[1].with_suffix("") / "frame_2.vti"
    arrays, stored, dim = arrays_of(frame), source.read(1), header.algebra.dim
    points = itertools.product(*(range(n) for n in reversed(header.grid)))
    for place, reverse in enumerate(points):  # x is fastest
        tensor = arrays["stress"][place].reshape(3, 3)
        expected = stored["stress"][(2, *reversed(reverse))].reshape(dim, dim)
        assert np.array_equal(tensor[:dim, :dim], expected)
        assert np.count_nonzero(tensor) == dim * dim
    text = frame.read_text()
    assert 'ComponentName1="xy"' in text
    if header.backgrounds:
        assert arrays["load"].tolist() == [list(header.backgrounds[0].components)]


@pytest.mark.external
@pytest.mark.filterwarnings("ignore")
def test_vtk_takes_them_as_tensors(tmp_path: Path) -> None:
    vtk = pytest.importorskip("vtk", reason="vtk is not installed")
    support = pytest.importorskip("vtk.util.numpy_support")
    source = FieldFile(solid_file(tmp_path / "a.h5", header=solid(3, 3)))
    paths = export(source, tmp_path / "out", "vtk")
    reader = vtk.vtkXMLImageDataReader()
    reader.SetFileName(str(paths[0].with_suffix("") / "frame_0.vti"))
    reader.Update()
    image = reader.GetOutput()
    assert image.GetPointData().SetActiveTensors("stress") >= 0
    tensors = support.vtk_to_numpy(image.GetPointData().GetTensors())
    at = image.ComputePointId((0, 1, 2))
    assert np.array_equal(tensors[at], source.read(0)["stress"][0, 0, 1, 2])


def test_xarray_names_the_components(tmp_path: Path) -> None:
    pytest.importorskip("xarray", reason="xarray is not installed")
    pytest.importorskip("h5netcdf", reason="h5netcdf is not installed")
    source = FieldFile(solid_file(tmp_path / "a.h5"))
    data = source.to_xarray()
    assert data.stress.dims == ("trajectory", "time", "x", "y", "component_symmetric")
    assert data.stress.attrs["grade"] == "symmetric"
    shear = data.stress.sel(component_symmetric="xy", trajectory=1)
    assert np.array_equal(shear, source.read(1)["stress"][..., 1])
    assert data["load"].sel(component_symmetric="yy") == -2.0
    (path,) = export(source, tmp_path / "a.nc", "netcdf")
    xarray = pytest.importorskip("xarray")
    with xarray.open_dataset(path, engine="h5netcdf") as stored:
        xarray.testing.assert_equal(stored, data)


def test_backgrounds_of_all_ranks(tmp_path: Path) -> None:
    backgrounds = (Background("g", 0, (9.8,)), Background("spin", 2, (1.0,)), *SOLID.backgrounds)
    header = SOLID.replace(backgrounds=backgrounds)
    (path,) = export(FieldFile(solid_file(tmp_path / "a.h5", header=header)), tmp_path, "the_well")
    after = open_fields(path).read(0)
    assert {b.name: tuple(after[b.name]) for b in backgrounds} == {
        b.name: b.components for b in backgrounds
    }
