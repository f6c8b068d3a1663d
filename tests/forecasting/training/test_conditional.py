"""Runs with kernels that see the field: from YAML to an exported program."""

from pathlib import Path

import pytest

from cscnn.cli import main
from cscnn.forecasting import Run
from cscnn.forecasting.export import export
from cscnn.kernels import SteerableKernel
from tests.forecasting.training.runs import QUIET, command, config

pytestmark = [*QUIET, pytest.mark.slow]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["implicit", "complete"])
def test_from_yaml_to_a_program(data: Path, tmp_path: Path, name: str) -> None:
    """`export` itself compares the program with the original."""
    kernel = {"name": name, "hidden_dim": 2, "condition": 2}
    options = {"blocks": 1, "kernel_size": 3, "kernel": kernel}
    settings = config(
        data, tmp_path / "run", model__options=options, trainer__epochs=1, data__margin=0
    )
    assert main(command(settings, tmp_path)) == 0
    run = Run(tmp_path / "run")
    assert run.config().model.options["kernel"] == kernel
    forecaster = run.forecaster()
    kernels = [part for part in forecaster.modules() if isinstance(part, SteerableKernel)]
    assert {kernel.condition for kernel in kernels} == {2}
    assert export(forecaster, tmp_path / "x.pt2", grid=(12,), batch=2) < 1e-5
