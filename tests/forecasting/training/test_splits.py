"""Splits of several files."""

from pathlib import Path

import numpy as np
import pytest

from cscnn.data import FieldFile
from cscnn.data.files import write
from cscnn.forecasting import Run, evaluate
from cscnn.forecasting.predict import predict
from cscnn.forecasting.training.train import train
from tests.forecasting.training.runs import QUIET, config, make_data, same

pytestmark = QUIET


def cut(path: Path, folder: Path) -> Path:
    """A folder with a file for each trajectory of a file."""
    folder.mkdir()
    with FieldFile(path) as source:
        for number in range(len(source)):
            write(folder / f"part{number}.h5", source.header, [source.read(number)], [number])
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_data(tmp_path_factory.mktemp("data"))
    for split in ("train", "valid", "test"):
        cut(folder / f"{split}.h5", folder / split)
    return folder


def test_a_folder_is_the_file_of_its_trajectories(data: Path, tmp_path: Path) -> None:
    """The same weights and losses, evaluation and forecasts, with and without loader processes."""
    whole = train(config(data, tmp_path / "whole"))
    splits = {
        "data__train": str(data / "train"),
        "data__valid": str(data / "valid" / "*.h5"),
        "data__test": [str(data / "test" / f"part{n}.h5") for n in range(2)],
    }
    parts = train(config(data, tmp_path / "parts", data__workers=1, **splits))
    assert same(whole, parts)
    numbers = [
        evaluate(run, windows=4, trajectories=2, steps=2)[0].one_step for run in (whole, parts)
    ]
    assert numbers[0] == numbers[1]
    for name, paths in (("a.h5", data / "test.h5"), ("b.h5", parts.config().data.test)):
        predict(parts.forecaster(), paths, tmp_path / name, steps=2)
    with FieldFile(tmp_path / "a.h5") as one, FieldFile(tmp_path / "b.h5") as other:
        assert len(one) == len(other) == 2
        for number in range(2):
            forecast, again = one.read(number), other.read(number)
            assert all(np.array_equal(forecast[name], again[name]) for name in forecast)
    with pytest.raises(ValueError, match=r"part1.h5 is what the forecasts begin with"):
        predict(parts.forecaster(), data / "test", data / "test" / "part1.h5", steps=2)


def test_a_run_goes_on_with_all_of_its_files_only(data: Path, tmp_path: Path) -> None:
    """Two files of several were exchanged, or one is missing."""
    folder = cut(data / "train.h5", tmp_path / "train")
    options = config(
        data, tmp_path / "run", data__train=str(folder), optimizer__schedule="constant"
    )
    options.trainer.epochs = 1
    train(options)
    options.trainer.epochs = 2
    first, kept = ((folder / f"part{n}.h5").read_bytes() for n in (1, 2))
    (folder / "part1.h5").write_bytes(kept)
    (folder / "part2.h5").write_bytes(first)
    with pytest.raises(ValueError, match=r"train is not the data .*has learned: the checksum of"):
        train(options)
    (folder / "part1.h5").write_bytes(first)
    (folder / "part2.h5").unlink()
    with pytest.raises(ValueError, match=r"train is not the data .*it has 3 trajectories, not 4"):
        train(options)
    (folder / "part2.h5").write_bytes(kept)
    assert len(train(options).metrics()) == 2
    assert len(Run(options.folder).source("train").files) == 4
