"""Files for other tools: what they read is what was there."""

import base64
import itertools
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import h5py
import numpy as np
import pytest

from cscnn.cli import main
from cscnn.data import Background, Field, FieldFile, Given, Header, open_fields
from cscnn.data.coarse import coarse_header
from cscnn.data.files import write
from cscnn.data.writers import export, formats
from tests.data.clouds import GIVEN, cloud_file

PLANE = Header(
    metric=(1, 1), axes=("x", "y"), spacing=(0.5, 0.25), boundary=("wall", "periodic"),
    fields=(Field("dye", 0, "kg"), Field("velocity", 1, "m/s"), Field("vorticity", 2)), frames=4,
    grid=(3, 5), frame_spacing=0.1, units={"length": "m", "time": "s"}, split="valid",
    generator="test", backgrounds=(Background("wind", 1, (1.0, 2.0)), Background("g", 0, (9.8,))),
    given=(Given("mask", 0, "static"), Given("stirring", 1, "forcing", "N"),
           Given("nu", 0, "constant"), Given("push", 1, "constant")),
    parameters={"a": 1, "name": "b", "list": [1, 2]}, start_time=2.5,
)  # fmt: skip
SPACE = Header(
    metric=(1, 1, 1), axes=("x", "y", "z"), spacing=(0.5, 0.25, 1.0),
    boundary=("open", "wall", "periodic"), frames=3, grid=(3, 4, 5), split="train",
    fields=(Field("electric", 1), Field("magnetic", 2), Field("charge", 0), Field("handed", 3)),
)  # fmt: skip
SPACETIME = Header(
    metric=(1, -1, -1), axes=("t", "x", "y"), spacing=(0.5, 0.25, 1.0), boundary=("open",) * 3,
    fields=(Field("light", 2), Field("current", 1)), frames=4, grid=(3, 5), time_axis=0,
)  # fmt: skip
GRIDS = {"plane": PLANE, "space": SPACE}


def data_file(path: Path, header: Header, count: int = 2, dtype: str = "float32") -> Path:
    rng = np.random.default_rng(0)
    rows = [
        {q.name: rng.standard_normal(header.shape(q.name)) for q in header.quantities}
        for _ in range(count)
    ]
    write(path, header, rows, range(count), dtype=dtype)
    return path


class TestTheWell:
    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    @pytest.mark.parametrize("header", GRIDS.values(), ids=GRIDS)
    def test_our_reader_gets_the_same_back(self, tmp_path, header, dtype):
        source = FieldFile(data_file(tmp_path / "a.h5", header, dtype=dtype))
        (path,) = export(source, tmp_path / "well", "the_well")
        assert path == tmp_path / "well" / "data" / header.split / "a.hdf5"
        again = open_fields(path)
        assert (len(again), again.dtype) == (2, dtype)
        for number in range(2):
            before, after = source.read(number), again.read(number)
            for background in header.backgrounds:  # are constants of trajectories there
                before[background.name] = np.array(background.components)
            assert set(before) == set(after)
            for name in before:
                assert np.array_equal(before[name], after[name]), name
                assert before[name].dtype == after[name].dtype
        told = again.header
        for name in ("metric", "axes", "spacing", "boundary", "frames", "grid", "units", "split"):
            assert getattr(told, name) == getattr(header, name)
        assert told.frame_spacing == pytest.approx(header.frame_spacing)
        assert told.start_time == pytest.approx(header.start_time)
        assert {*told.fields} == {*header.fields}
        constants = {Given(b.name, b.grade, "constant") for b in header.backgrounds}
        assert {*told.given} == {*header.given} | constants

    @pytest.mark.external
    @pytest.mark.filterwarnings("ignore")
    @pytest.mark.parametrize("header", GRIDS.values(), ids=GRIDS)
    def test_their_package_reads_it(self, tmp_path, header):
        well = pytest.importorskip("the_well.data", reason="the_well is not installed")
        source = FieldFile(data_file(tmp_path / "a.h5", header))
        export(source, tmp_path / "well", "the_well")
        data = well.WellDataset(
            path=str(tmp_path / "well"), well_split_name=header.split, n_steps_input=1,
            n_steps_output=header.frames - 1,
        )  # fmt: skip
        assert len(data) == 2
        names = [name for order in range(3) for name in data.metadata.field_names[order]]
        for number in range(2):
            sample = data[number]
            fields = np.concatenate([sample["input_fields"], sample["output_fields"]])
            stored = source.read(number)
            for name in [*(f.name for f in header.fields), *(["stirring"] if header.given else [])]:
                values = stored[name]
                if header.grade(name) == 2 and values.shape[-1] == 3:  # x, y, z: e23, -e13, e12
                    values = values[..., ::-1] * np.float32([1, -1, 1])
                labels = [f"{name}_{axis}" for axis in header.axes]
                labels = labels if values.shape[-1] > 1 else [name]
                for component, label in enumerate(labels):
                    got = fields[..., names.index(label)]
                    assert np.array_equal(got, values[..., component]), label
            kinds = {"wall": 0, "open": 1, "periodic": 2}  # BoundaryCondition of the_well
            expected = [[kinds[kind]] * 2 for kind in header.boundary]
            assert sample["boundary_conditions"].tolist() == expected
            places = np.meshgrid(
                *(
                    h * (np.arange(n) + 0.5)
                    for h, n in zip(header.spacing, header.grid, strict=True)
                ),
                indexing="ij",
            )
            assert np.allclose(sample["space_grid"], np.stack(places, -1))
            if header.given:
                constant = data.metadata.constant_field_names
                order = [*constant[0], *constant[1]]
                mask = sample["constant_fields"][..., order.index("mask")]
                assert np.array_equal(mask, stored["mask"][..., 0])
                push = sample["constant_fields"][..., order.index("push_y")]
                assert (push == stored["push"][1]).all()
                scalars = dict(
                    zip(
                        data.metadata.constant_scalar_names,
                        sample["constant_scalars"].tolist(),
                        strict=True,
                    )
                )
                assert scalars == {"nu": pytest.approx(stored["nu"][0]), "g": pytest.approx(9.8)}

    def test_what_it_cannot_hold_is_refused(self, tmp_path):
        spacetime = FieldFile(data_file(tmp_path / "a.h5", SPACETIME))
        with pytest.raises(ValueError, match=r"got metric \(1, -1, -1\) on axes t, x, y"):
            export(spacetime, tmp_path / "well", "the_well")
        points = FieldFile(cloud_file(tmp_path / "b.h5"))
        with pytest.raises(ValueError, match=r"b\.h5 holds points"):
            export(points, tmp_path / "well", "the_well")
        one = Header((1, 1), ("x", "y"), (1.0, 1.0), ("open",) * 2, (Field("v", 1),), 1, (3, 4))
        with pytest.raises(ValueError, match=r"got 1 frames of \(3, 4\)"):
            export(FieldFile(data_file(tmp_path / "c.h5", one)), tmp_path / "well", "the_well")
        assert not (tmp_path / "well").exists()


def arrays_of(path: Path) -> dict[str, np.ndarray]:
    """DataArrays of a file by their names, with the standard library alone."""
    root = ET.parse(path).getroot()
    assert root.attrib["byte_order"] == ("LittleEndian" if sys.byteorder == "little" else "Big")
    found = {}
    for array in root.iter("DataArray"):
        content = base64.b64decode(array.text)
        (size,) = np.frombuffer(content[:8], np.uint64)
        values = np.frombuffer(content[8:], array.attrib["type"].lower())
        assert size == values.nbytes
        found[array.attrib["Name"]] = values.reshape(-1, int(array.attrib["NumberOfComponents"]))
    return found


class TestVTK:
    @pytest.mark.parametrize("header", GRIDS.values(), ids=GRIDS)
    def test_grids_by_loops(self, tmp_path, header):
        source = FieldFile(data_file(tmp_path / "a.h5", header))
        paths = export(source, tmp_path / "out", "vtk")
        collection = ET.parse(paths[1]).getroot().findall("Collection/DataSet")
        times = [float(entry.attrib["timestep"]) for entry in collection]
        after_start = header.frame_spacing * np.arange(header.frames)
        assert times == pytest.approx(header.start_time + after_start)
        stored = source.read(1)
        for frame, entry in enumerate(collection):
            arrays = arrays_of(paths[1].parent / entry.attrib["file"])
            points = itertools.product(*(range(n) for n in reversed(header.grid)))
            for place, reverse in enumerate(points):  # x is fastest
                at = (frame, *reversed(reverse))
                for field in header.fields:
                    values = stored[field.name][at].tolist()
                    name = field.name
                    if name == "magnetic":
                        name, values = "magnetic_axial", [values[2], -values[1], values[0]]
                    if field.grade == 1:
                        values = [*values, 0.0][:3]
                    assert arrays[name][place].tolist() == values
        if header.given:
            assert arrays["nu"].tolist() == [stored["nu"].tolist()]
            assert arrays["wind"].tolist() == [[1.0, 2.0]]
            assert np.array_equal(arrays["mask"][:, 0], stored["mask"][..., 0].T.ravel())

    @pytest.mark.external
    @pytest.mark.filterwarnings("ignore")
    def test_vtk_reads_grids(self, tmp_path):
        vtk = pytest.importorskip("vtk", reason="vtk is not installed")
        support = pytest.importorskip("vtk.util.numpy_support")
        source = FieldFile(data_file(tmp_path / "a.h5", SPACE))
        paths = export(source, tmp_path / "out", "vtk")
        reader = vtk.vtkXMLImageDataReader()
        reader.SetFileName(str(paths[1].with_suffix("") / "frame_2.vti"))
        reader.Update()
        image = reader.GetOutput()
        assert image.GetDimensions() == SPACE.grid
        assert image.GetSpacing() == SPACE.spacing
        stored = source.read(1, 2, 3)
        data = image.GetPointData()
        electric = support.vtk_to_numpy(data.GetArray("electric"))
        axial = support.vtk_to_numpy(data.GetArray("magnetic_axial"))
        for x, y, z in itertools.product(*map(range, SPACE.grid)):
            at = image.ComputePointId((x, y, z))
            assert np.allclose(image.GetPoint(at), (0.5 * x + 0.25, 0.25 * y + 0.125, z + 0.5))
            assert np.array_equal(electric[at], stored["electric"][0, x, y, z])
            e12, e13, e23 = stored["magnetic"][0, x, y, z]
            assert axial[at].tolist() == [e23, -e13, e12]

    @pytest.mark.external
    @pytest.mark.filterwarnings("ignore")
    def test_vtk_reads_points_and_spacetime(self, tmp_path):
        vtk = pytest.importorskip("vtk", reason="vtk is not installed")
        support = pytest.importorskip("vtk.util.numpy_support")
        source = FieldFile(cloud_file(tmp_path / "a.h5", given=GIVEN))
        paths = export(source, tmp_path / "out", "vtk", trajectories=[2, 1])
        assert [path.name for path in paths] == ["trajectory_2.pvd", "trajectory_1.pvd"]
        reader = vtk.vtkXMLPolyDataReader()
        reader.SetFileName(str(paths[0].with_suffix("") / "frame_7.vtp"))
        reader.Update()
        cloud = reader.GetOutput()
        place, stored = source.place(2), source.read(2, 7, 8)
        points = support.vtk_to_numpy(cloud.GetPoints().GetData())
        assert np.array_equal(points[:, :2], place["positions"])
        assert cloud.GetNumberOfVerts() == len(points)
        assert not points[:, 2].any()
        flow = support.vtk_to_numpy(cloud.GetPointData().GetArray("flow"))
        assert np.array_equal(flow[:, :2], stored["flow"][0])
        source = FieldFile(data_file(tmp_path / "b.h5", SPACETIME))
        paths = export(source, tmp_path / "light", "vtk")
        reader = vtk.vtkXMLImageDataReader()
        reader.SetFileName(str(paths[0].with_suffix("") / "frame_3.vti"))
        reader.Update()
        assert reader.GetOutput().GetSpacing() == (0.25, 1.0, 1.0)
        light = reader.GetOutput().GetPointData().GetArray("light")
        assert [light.GetComponentName(i) for i in range(3)] == ["e12", "e13", "e23"]
        values = support.vtk_to_numpy(light).reshape(5, 3, 3).swapaxes(0, 1)
        assert np.array_equal(values, source.read(0)["light"][3])

    def test_coarse_cells_lie_amid_the_points_that_they_join(self, tmp_path):
        def positions(header, name):
            """Of the points along each axis, as VTK has them."""
            rows = [{q.name: np.zeros(header.shape(q.name)) for q in header.quantities}]
            write(tmp_path / f"{name}.h5", header, rows, [0])
            export(open_fields(tmp_path / f"{name}.h5"), tmp_path / name, "vtk")
            grid = ET.parse(tmp_path / name / "trajectory_0" / "frame_0.vti").find("ImageData")
            origin, spacing = (
                [float(x) for x in grid.get(k).split()] for k in ("Origin", "Spacing")
            )
            return [
                o + s * np.arange(n)
                for o, s, n in zip(origin[:2], spacing[:2], header.grid, strict=True)
            ]

        fine = PLANE.replace(grid=(4, 6), given=())
        for points, cells in zip(
            positions(fine, "fine"), positions(coarse_header(fine, 2), "coarse"), strict=True
        ):
            assert np.allclose(points.reshape(-1, 2).mean(1), cells)

    def test_names_are_quoted(self, tmp_path):
        header = PLANE.replace(fields=(Field('a "b" <c> & d', 0),), given=(), backgrounds=())
        paths = export(FieldFile(data_file(tmp_path / "a.h5", header)), tmp_path, "vtk")
        assert list(arrays_of(paths[0].with_suffix("") / "frame_0.vti")) == ['a "b" <c> & d']


def test_netcdf(tmp_path):
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    pytest.importorskip("h5netcdf", reason="h5netcdf is not installed")
    for name, path in (
        ("grid", data_file(tmp_path / "a.h5", PLANE)),
        ("points", cloud_file(tmp_path / "b.h5", given=GIVEN)),
    ):
        source = FieldFile(path)
        (out,) = export(source, tmp_path / f"{name}.nc", "netcdf", trajectories=[1])
        with xarray.open_dataset(out, engine="h5netcdf") as data:
            xarray.testing.assert_equal(data, source.to_xarray([1]))
            assert data.attrs["split"] == source.header.split


def test_forecasts_keep_their_times(tmp_path):
    pytest.importorskip("xarray", reason="xarray is not installed")
    late = PLANE.replace(start_time=2.0)
    source = FieldFile(data_file(tmp_path / "late.h5", late))
    times = [2.0, 2.1, 2.2, 2.3]
    assert source.to_xarray().time.values == pytest.approx(times)
    collection = ET.parse(export(source, tmp_path / "vtk", "vtk")[0]).getroot()
    stamps = [float(entry.attrib["timestep"]) for entry in collection.findall("Collection/DataSet")]
    assert stamps == pytest.approx(times)
    (well,) = export(source, tmp_path / "well", "the_well")
    with h5py.File(well) as file:
        assert file["dimensions/time"][()] == pytest.approx(times)
        assert file["dimensions/x"][0] == 0.25  # the centre of a cell
    late = SPACETIME.replace(start_time=2.0)  # two frames, each 0.5 along the axis t
    source = FieldFile(data_file(tmp_path / "spacetime.h5", late))
    assert source.to_xarray().t.values == pytest.approx([1.0, 1.5, 2.0, 2.5])
    assert source.to_xarray().x.values[0] == 0.125


class TestCommand:
    def test_it_writes_and_does_not_replace(self, tmp_path, capsys):
        data = data_file(tmp_path / "a.h5", PLANE, count=3)
        words = ["data", "export", str(data), "--format", "vtk", "--out", str(tmp_path / "out")]
        assert main([*words, "--trajectories", "2"]) == 0
        assert "trajectory_0.pvd and 1 more: 2 trajectories" in capsys.readouterr().out
        assert main(words) == 1
        assert "exists: choose another output, or add --overwrite" in capsys.readouterr().err
        assert main([*words, "--overwrite"]) == 0
        assert sorted(p.name for p in (tmp_path / "out").iterdir() if p.suffix) == [
            f"trajectory_{i}.pvd" for i in range(3)
        ]

    def test_several_files_become_one(self, tmp_path):
        for name, header in (("b_1", PLANE), ("b_2", PLANE.replace(frames=5))):
            data_file(tmp_path / f"{name}.h5", header)
        source = ["data", "export", str(tmp_path / "b_1.h5"), "--format", "the_well"]
        assert main([*source, "--out", str(tmp_path / "well")]) == 0
        pattern = ["data", "export", str(tmp_path / "b_*.h5"), "--format", "the_well"]
        assert main([*pattern, "--out", str(tmp_path / "other")]) == 1  # frames differ

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (
                "--format matlab --out o",
                "format must be one of netcdf (a netCDF file OUT, as xarray writes it), ",
            ),
            ("--format vtk --out o --trajectories 0", "--trajectories must be at least 1, got 0"),
        ],
    )
    def test_wrong_words(self, tmp_path, monkeypatch, capsys, words, message):
        monkeypatch.chdir(tmp_path)
        data_file(tmp_path / "a.h5", PLANE)
        assert main(["data", "export", "a.h5", *words.split()]) == 1
        assert message in capsys.readouterr().err
        assert not (tmp_path / "o").exists()

    def test_help_lists_all_formats(self, capsys):
        with pytest.raises(SystemExit):
            main(["data", "export", "--help"])
        text = capsys.readouterr().out
        assert all(name in text for name in formats())

    def test_the_input_is_never_replaced(self, tmp_path, capsys):
        data = data_file(tmp_path / "a.h5", PLANE)
        words = ["data", "export", str(data), "--format", "netcdf", "--out", str(data)]
        assert main([*words, "--overwrite"]) == 1
        assert "is read here" in capsys.readouterr().err
        assert len(FieldFile(data)) == 2
