from pathlib import Path

import pytest

from cscnn.forecasting import Run
from cscnn.forecasting.training.train import train
from tests.forecasting.training.runs import config, make_data


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Solitons, enough for runs of seconds."""
    return make_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="session")
def undisturbed(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that nothing happened to."""
    return train(config(data, tmp_path_factory.mktemp("run") / "undisturbed"))
