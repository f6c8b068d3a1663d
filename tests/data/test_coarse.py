"""Coarse views: values by naive loops, headers, time as an axis, errors, other processes."""

import itertools
import pickle

import numpy as np
import pytest
import torch

from cscnn.data import Coarse, Field, FieldFile, Header
from cscnn.data.coarse import coarse
from cscnn.data.files import write

PLANE = Header(
    metric=(1, 1),
    axes=("x", "y"),
    spacing=(0.5, 0.25),
    boundary=("wall", "periodic"),
    fields=(Field("smoke", 0), Field("velocity", 1)),
    frames=5,
    grid=(6, 12),
    frame_spacing=2.0,
    seed=3,
)
SPACETIME = Header(
    metric=(1, -1, -1),
    axes=("t", "x", "y"),
    spacing=(0.5, 0.5, 0.5),
    boundary=("open",) * 3,
    fields=(Field("faraday", 2),),
    frames=7,
    grid=(6, 12),
    frame_spacing=0.5,
    time_axis=0,
)


def make(path, header, dtype="float32"):
    rng = np.random.default_rng(0)
    trajectories = [
        {f.name: rng.standard_normal(header.shape(f.name)) for f in header.fields} for _ in range(2)
    ]
    write(path, header, trajectories, range(2), dtype=dtype)
    return FieldFile(path)


@pytest.fixture(params=[PLANE, SPACETIME], ids=["plane", "spacetime"])
def source(request, tmp_path):
    with make(tmp_path / "fine.h5", request.param) as file:
        yield file


def test_headers():
    source = type("Fake", (), {"header": PLANE})()
    header = Coarse(source, 3).header
    assert header == PLANE.replace(grid=(2, 4), spacing=(1.5, 0.75))
    source.header = SPACETIME
    header = Coarse(source, 2).header
    expected = SPACETIME.replace(grid=(3, 6), spacing=(1.0,) * 3, frames=3, frame_spacing=1.0)
    assert header == expected


@pytest.mark.parametrize("cells", [2, 3])
def test_values_by_naive_loops(source, cells):
    view = Coarse(source, cells)
    time = cells if source.header.time_axis is not None else 1
    fine = source.read(1)
    for name, values in view.read(1).items():
        assert values.shape == view.header.shape(name)
        for t, i, j in itertools.product(*map(range, values.shape[:3])):
            cell = [
                fine[name][time * t + a, cells * i + b, cells * j + c].astype(np.float64)
                for a, b, c in itertools.product(range(time), range(cells), range(cells))
            ]
            np.testing.assert_allclose(values[t, i, j], np.mean(cell, 0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bits_are_those_of_torch(tmp_path, dtype):
    for header in (PLANE, SPACETIME):
        source = make(tmp_path / f"{header.axes[0]}.h5", header, dtype)
        first = 0 if header.time_axis == 0 else 1
        fine = source.read(0, 0, 4)
        stop = 4 // 2 if first == 0 else 4
        for name, values in Coarse(source, 2).read(0, 0, stop).items():
            x = torch.as_tensor(fine[name]).to(getattr(torch, dtype))
            for axis in range(first, 3):
                x = x.unflatten(axis, (-1, 2)).mean(axis + 1)
            assert str(values.dtype) == dtype
            assert np.array_equal(values, x.numpy())


def test_windows_are_parts_of_trajectories(source):
    view = Coarse(source, 2)
    assert len(view) == 2
    assert view.path == source.path
    trajectory = view.read(0)
    for name, values in view.read(0, 1, 3).items():
        np.testing.assert_array_equal(values, trajectory[name][1:3])
    frames = view.header.frames
    with pytest.raises(IndexError, match=f"has frames 0 to {frames}, got 1 to {frames + 1}"):
        view.read(0, 1, frames + 1)
    with pytest.raises(IndexError, match="has 2 trajectories, got 2"):
        view.read(2)


def test_mean_of_all_is_kept(tmp_path):
    source = make(tmp_path / "fine.h5", PLANE, "float64")
    assert Coarse(source, 6).read(0)["smoke"].mean() == pytest.approx(
        source.read(0)["smoke"].mean()
    )


def test_views_of_views(source):
    twice = Coarse(Coarse(source, 3), 2)
    assert twice.header == Coarse(source, 6).header
    for name, values in Coarse(source, 6).read(0).items():
        np.testing.assert_allclose(twice.read(0)[name], values, rtol=1e-4, atol=1e-6)


def test_cells_of_one_point_are_the_source(source):
    assert coarse(source, 1) is source
    assert isinstance(coarse(source, 2), Coarse)


def test_impossible_cells(source):
    with pytest.raises(ValueError, match=r"coarsen=5 does not divide the grid \(6, 12\)"):
        coarse(source, 5)
    with pytest.raises(ValueError, match="coarsen must be at least 1, got 0"):
        coarse(source, 0)
    with pytest.raises(TypeError, match=r"coarsen must be an integer, got 1\.5"):
        coarse(source, 1.5)


def test_too_few_frames(tmp_path):
    source = make(tmp_path / "short.h5", SPACETIME.replace(frames=2))
    with pytest.raises(ValueError, match="coarsen=3 needs as many frames, got 2"):
        Coarse(source, 3)


def test_views_travel_and_close_their_source(source):
    with Coarse(source, 2) as view:
        expected = view.read(1)
        copy = pickle.loads(pickle.dumps(view))
        np.testing.assert_equal(copy.read(1), expected)
        copy.close()
        assert copy.source._file is None
        assert source._file is not None
    assert source._file is None
    np.testing.assert_equal(view.read(1), expected)  # reopened
