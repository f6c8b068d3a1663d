"""Strided views: values by naive slicing, headers, time as an axis, errors, other processes."""

import pickle

import numpy as np
import pytest

from cscnn.data import Coarse, FieldFile, Given, JoinedFiles, Strided
from cscnn.data.strided import Strides, strided, strided_header
from tests.data.test_coarse import PLANE, SPACETIME, make
from tests.forecasting.given_data import HEADER, make_files, trajectory


def test_headers():
    assert strided_header(PLANE, 2) == PLANE.replace(frames=3, frame_spacing=4.0)
    assert strided_header(PLANE, 3) == PLANE.replace(frames=2, frame_spacing=6.0)
    expected = SPACETIME.replace(frames=3, frame_spacing=1.5, spacing=(1.5, 0.5, 0.5))
    assert strided_header(SPACETIME, 3) == expected
    told = strided_header(PLANE.replace(units={"time": "s"}), 2, told=True)
    assert told.given == (Given("frame_spacing", 0, "constant", "s"),)
    assert strided_header(told, 2, told=True).given == told.given


@pytest.mark.parametrize("header", [PLANE, SPACETIME], ids=["plane", "spacetime"])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_frames_by_slicing(header, stride, tmp_path):
    with make(tmp_path / "a.h5", header) as file, Strided(file, stride) as source:
        for name, stored in file.read(1).items():
            got = source.read(1)[name]
            assert got.shape == source.header.shape(name)
            np.testing.assert_array_equal(got, stored[::stride])
            np.testing.assert_array_equal(source.read(1, 1)[name], stored[::stride][1:])
            np.testing.assert_array_equal(source.read(1, 0, 2)[name], stored[: 2 * stride : stride])
        again = pickle.loads(pickle.dumps(source))
        name = header.fields[0].name
        np.testing.assert_array_equal(again.read(0)[name], source.read(0)[name])


def test_what_is_given(tmp_path):
    """Forcing is cut like the fields; the rest stays, and the time between frames is told."""
    stored = trajectory(1)
    with Strided(FieldFile(make_files(tmp_path) / "train.h5"), 2, told=True) as source:
        got = source.read(1, 1, 4)
        np.testing.assert_allclose(got["stirring"], stored["stirring"][2:7:2], rtol=1e-6)
        for name in ("normals", "mask", "viscosity", "wind"):
            np.testing.assert_allclose(got[name], stored[name], rtol=1e-6)
        assert got["frame_spacing"].tolist() == [2.0]
        assert set(got) == {q.name for q in source.header.quantities}


def test_trajectories_with_spacings_of_their_own(tmp_path):
    header = HEADER.replace(given=(Given("frame_spacing", 0, "constant"),))
    stored = trajectory(2, header)["frame_spacing"]
    with FieldFile(make_files(tmp_path, header) / "train.h5") as file:
        for told in (False, True):
            got = Strided(file, 3, told).read(2)["frame_spacing"]
            np.testing.assert_allclose(got, 3 * stored, rtol=1e-6)


def test_cells_and_several_files(tmp_path):
    paths = [make_files(tmp_path) / f"{split}.h5" for split in ("train", "valid")]
    files = [FieldFile(path) for path in paths]
    files[1].header = files[1].header.replace(split="train")
    with Strided(Coarse(JoinedFiles("both", files), 2), 4) as source:
        assert (len(source), source.header.frames, source.header.grid) == (6, 3, (3, 3))
        cells = trajectory(4)["velocity"].reshape(9, 3, 2, 3, 2, 2).mean((2, 4))
        np.testing.assert_allclose(source.read(4)["velocity"], cells[::4], atol=1e-5)


def test_cells_of_spacetime_are_strided_after_they_are_joined(tmp_path):
    with make(tmp_path / "a.h5", SPACETIME) as file:
        source = Strided(Coarse(file, 2), 2)
        assert source.header.spacing == (2.0, 1.0, 1.0)
        cells = file.read(0)["faraday"][:6].reshape(3, 2, 3, 2, 6, 2, 3).mean((1, 3, 5))
        np.testing.assert_allclose(source.read(0)["faraday"], cells[::2], atol=1e-6)


def test_nothing_changes_without_a_stride(tmp_path):
    with make(tmp_path / "a.h5", PLANE) as file:
        assert strided(file, 1) is file
        assert strided(file, 1, told=True).header.given


def test_strides():
    assert Strides.read(3) == Strides.read([3, 3]) == Strides(3, 3)
    assert [*Strides.read((2, 4)).values] == [2, 3, 4]
    assert not Strides.read([2, 2]).varies
    assert (Strides(1, 4).choose(None), Strides(1, 4).choose(3)) == (1, 3)
    assert Strides(2, 2).choose(5) == 5  # whether data fit is told by the time between frames
    with pytest.raises(ValueError, match="stride must be from 1 to 4, as in training, got 5"):
        Strides(1, 4).choose(5)


@pytest.mark.parametrize("value", [0, -1, True, 1.5, "2", [4, 1], [0, 2], [1], [1, 2, 3], [1, 2.0]])
def test_strides_that_cannot_be(value):
    with pytest.raises(
        ValueError, match=r"^data\.stride must be .* such as \[1, 4\], got "
    ) as error:
        Strides.read(value, "data.stride")
    assert str(error.value).endswith(f"got {value!r}")


def test_impossible_views(tmp_path):
    with make(tmp_path / "a.h5", SPACETIME) as file:
        with pytest.raises(ValueError, match="stride must be at least 1, got 0"):
            Strided(file, 0)
        with pytest.raises(IndexError, match="has frames 0 to 4, got 0 to 5"):
            Strided(file, 2).read(0, 0, 5)
    with pytest.raises(ValueError, match=r"must be one number, got the range \[1, 2\]"):
        Strides(1, 2).seen(SPACETIME)
