"""Every model learns every task that it serves: two epochs on tiny data."""

from pathlib import Path

import pytest
from runs import TINY, config, make_data

from cscnn import models
from cscnn.data.simulators import create
from cscnn.training.train import train

KERNEL = {"num_layers": 2, "hidden_dim": 4}
OPTIONS = {
    "cs_resnet": {"blocks": 1, "kernel_size": 3, "kernel_options": KERNEL},
    "cs_unet": {"levels": 1, "kernel_size": 3, "kernel_options": KERNEL},
    "steerable_resnet": {"blocks": 1, "kernel_size": 3},
    "resnet": {"blocks": 1, "kernel_size": 3},
    "clifford_resnet": {"blocks": 1, "kernel_size": 3},
    "fno": {"modes": 3, "layers": 1},
    "gfno": {"modes": 2, "layers": 1},
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {task: make_data(tmp_path_factory.mktemp(task), task) for task in TINY}


def test_all_models_are_here() -> None:
    on_grids = {n for n in models.names() if issubclass(models.kind(n), models.FieldModel)}
    assert set(OPTIONS) == on_grids - {"zero"}  # which tests of the registry add


@pytest.mark.parametrize("task", TINY)
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.filterwarnings("ignore:.*LeafSpec.*")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:lightning.*")
def test_two_epochs(name: str, task: str, data: dict[str, Path], tmp_path: Path) -> None:
    if why := unsupported(name, task):
        pytest.skip(why)  # tests/models checks which these are, and what they say
    options = config(
        data[task], tmp_path / "run", task, model__name=name, model__width=2,
        model__options=OPTIONS[name], trainer__epochs=2, data__per_trajectory=1,
    )  # fmt: skip
    run = train(options)
    assert len(run.metrics()) == 2
    assert run.model().config["name"] == name


def unsupported(name: str, task: str) -> str:
    """Why a model does not serve a task, if it does not."""
    try:
        models.build(name, create(task).header().task(), width=2, **OPTIONS[name])
    except ValueError as error:
        return str(error)
    return ""
