"""Every network learns every task that it serves: two epochs on tiny data."""

from pathlib import Path

import pytest

from cscnn.data.simulators import ON_GRIDS
from cscnn.forecasting.training.train import train
from cscnn.networks import names
from cscnn.networks.registry import entry
from tests.forecasting.test_forecaster import UNSUPPORTED
from tests.forecasting.training.runs import TINY, config, make_data
from tests.networks.tiny import need

KERNEL = {"name": "implicit", "num_layers": 2, "hidden_dim": 4}
OPTIONS = {
    "cs_resnet": {"blocks": 1, "kernel_size": 3, "kernel": KERNEL},
    "cs_unet": {"levels": 1, "kernel_size": 3, "kernel": KERNEL},
    "steerable_resnet": {"blocks": 1, "kernel_size": 3},
    "resnet": {"blocks": 1, "kernel_size": 3},
    "unet": {"multipliers": [1, 2], "blocks_per_level": 1},
    "convnext_unet": {"levels": 2, "blocks_per_level": 1, "kernel_size": 3},
    "clifford_resnet": {"blocks": 1, "kernel_size": 3},
    "fno": {"modes": 3, "layers": 1},
    "gfno": {"modes": 2, "layers": 1},
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {task: make_data(tmp_path_factory.mktemp(task), task) for task in TINY}


def test_all_networks_are_here() -> None:
    on_grids = {name for name in names() if entry(name).interface != "points"}
    assert set(OPTIONS) == on_grids


PAIRS = [(name, task) for name in OPTIONS for task in TINY if task in ON_GRIDS]
PAIRS += [("cs_pointnet", task) for task in TINY if task not in ON_GRIDS]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "task"), PAIRS)
@pytest.mark.filterwarnings("ignore:.*LeafSpec.*")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:lightning.*")
def test_two_epochs(name: str, task: str, data: dict[str, Path], tmp_path: Path) -> None:
    need(name)
    if (name, task) in UNSUPPORTED:
        pytest.skip("tests/networks checks which these are, and what they say")
    options = config(
        data[task], tmp_path / "run", task, model__name=name, model__width=2,
        model__options=OPTIONS.get(name, {"blocks": 1}), trainer__epochs=2, data__per_trajectory=1,
    )  # fmt: skip
    run = train(options)
    assert len(run.metrics()) == 2
    assert run.forecaster().name == name
