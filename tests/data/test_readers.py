"""What all sources of trajectories have in common, whoever wrote the file."""

import os
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from cscnn.data import Coarse, FieldFile, open_fields
from cscnn.data.files import write
from tests.data.layouts import NAMES, change, maxwell_file, random_flow, smoke_file, well_file


@pytest.fixture
def smoke(tmp_path):
    return smoke_file(tmp_path / "NavierStokes2D_train_42_0.50000_2.h5", *random_flow())


@pytest.fixture(params=["own", "smoke", "maxwell", "well"])
def source(request, tmp_path, smoke):
    """A source of each kind with 4 or more frames."""
    if request.param == "smoke":
        return open_fields(smoke)
    if request.param == "maxwell":
        fields = np.random.default_rng(0).standard_normal((2, 2, 4, 3, 3, 3, 3))
        return open_fields(maxwell_file(tmp_path / "m.h5", *fields))
    if request.param == "well":
        return open_fields(well_file(tmp_path / "w.h5"), fields=NAMES)
    with open_fields(smoke) as other:
        trajectories = [other.read(number) for number in range(2)]
        write(tmp_path / "own.h5", other.header, trajectories, [0, 1])
    own = open_fields(tmp_path / "own.h5")
    assert isinstance(own, FieldFile)
    return own


def test_windows_are_parts_of_trajectories(source):
    whole = source.read(1)
    part = source.read(1, 1, 3)
    assert set(whole) == {q.name for q in source.header.quantities}
    for name, values in whole.items():
        assert values.shape == source.header.shape(name)
        assert str(values.dtype) == source.dtype
        time, _ = source.header.axes_of(name)
        np.testing.assert_array_equal(part[name], values[1:3] if time else values)
    with pytest.raises(IndexError, match="has 2 trajectories, got 2"):
        source.read(2)
    with pytest.raises(IndexError, match=r"frames 0 to .*, got 2 to 2"):
        source.read(0, 2, 2)


def test_sources_can_be_pickled_and_closed(source):
    expected = source.read(0)
    with pickle.loads(pickle.dumps(source)) as copy:
        assert copy.header == source.header
        np.testing.assert_equal(copy.read(0), expected)
    assert copy._file is None
    np.testing.assert_equal(copy.read(0), expected)  # reopened
    copy.close()


class Frames(torch.utils.data.Dataset):
    def __init__(self, source):
        self.source = source

    def __len__(self):
        return len(self.source)

    def __getitem__(self, number):
        return {name: torch.from_numpy(x) for name, x in self.source.read(number, 1, 3).items()}


def test_workers_open_files_for_themselves(source):
    source.read(0)  # this process has a handle that workers inherit but must not use
    parent = (source._pid, os.getpid())
    loader = torch.utils.data.DataLoader(Frames(source), num_workers=2, batch_size=1)
    for number, batch in enumerate(loader):
        expected = source.read(number, 1, 3)
        np.testing.assert_equal({name: x[0].numpy() for name, x in batch.items()}, expected)
    assert parent == (source._pid, source._pid)


def test_truncated_files(source):
    source.close()
    with source.path.open("rb+") as file:
        file.truncate(source.path.stat().st_size * 2 // 3)
    with pytest.raises(ValueError, match=rf"{source.path.name} is truncated"):
        open_fields(source.path)


def test_files_that_change_after_they_were_opened(smoke):
    source = open_fields(smoke)
    source.close()
    change(smoke, lambda f: f["train"].__delitem__("vx"))
    with pytest.raises(OSError, match=r"0_2\.h5: cannot read field vx of trajectory 1: "):
        source.read(1)


def test_other_files(tmp_path):
    (tmp_path / "text.h5").write_text("no HDF5")
    with pytest.raises(ValueError, match=r"text\.h5 is no HDF5 file or is damaged"):
        open_fields(tmp_path / "text.h5")
    path = change(tmp_path / "other.h5", lambda f: f.create_dataset("train/images", data=[1.0]))
    with pytest.raises(ValueError, match=r"other\.h5 is of no known kind\. .* \['train'\]"):
        open_fields(path)
    with pytest.raises(FileNotFoundError, match=r"none\.h5"):
        open_fields(tmp_path / "none.h5")


def test_options_of_other_formats_are_refused(smoke):
    with pytest.raises(ValueError, match=r"is a NavierStokesFile, which has no option fields"):
        open_fields(smoke, fields=["smoke"])


def test_sources_have_coarse_views(source):
    """Cells of one point: the view reads what the source reads."""
    with Coarse(source, 1) as view:
        assert view.header == source.header
        np.testing.assert_equal(view.read(1, 1, 3), source.read(1, 1, 3))
    assert source._file is None


def test_examples_of_the_page(tmp_path, monkeypatch):
    page = Path(__file__).parents[2] / "docs" / "guides" / "readers.md"
    examples = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    smoke_file(tmp_path / "NavierStokes2D_train_42_0.50000_32.h5", *random_flow(nt=6, nx=8, ny=8))
    folder = tmp_path / "MHD_64" / "data" / "train"
    sources = [well_file(folder / f"{name}.hdf5", 3) for name in "ab"]
    monkeypatch.chdir(tmp_path)
    names = {}
    for example in examples:
        options = 'fields=["velocity"], grades={"velocity": 2}'
        exec(example.replace('grades={"magnetic_field": 2}', options), names)
    assert names["loss"] > 0
    converted = open_fields("train.h5")
    assert [f.grade for f in converted.header.fields] == [2]
    assert len(converted) == 4
    last = open_fields(sources[1], fields=["velocity"], grades={"velocity": 2}).read(1)
    np.testing.assert_array_equal(converted.read(3)["velocity"], last["velocity"])
