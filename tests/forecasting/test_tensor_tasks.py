"""From simulation to evaluation with symmetric tensors: a tiny network, one epoch."""

from __future__ import annotations

from pathlib import Path

import pytest

from cscnn.cli import main
from cscnn.data import open_fields
from cscnn.forecasting.evaluation.results import Evaluation
from tests.forecasting.training.runs import QUIET, command, config, make_data

pytestmark = QUIET

#: Task: its law, and a quantity that needs the tensor.
TASKS = {
    "elastodynamics": ("compatible", "elastic_energy(velocity, stress)"),
    "viscoelastic": ("incompressible", "polymer_energy(conformation)"),
}


@pytest.mark.parametrize("task", TASKS)
def test_generate_train_evaluate(task: str, tmp_path: Path, capsys) -> None:
    law, quantity = TASKS[task]
    data = make_data(tmp_path / "data", task)
    test, run = str(data / "test.h5"), str(tmp_path / "run")
    with open_fields(test) as source:
        assert (source.header.generator, len(source)) == (task, 2)
    assert main(["data", "check", test, "--quiet"]) == 0
    options = config(data, tmp_path / "run", task, trainer__epochs=1)
    assert main(command(options, tmp_path)) == 0
    few = ["--windows", "2", "--trajectories", "1", "--steps", "2", "--quiet"]
    assert main(["evaluate", run, "--data", test, *few]) == 0
    assert "symmetry" in capsys.readouterr().out
    evaluation = Evaluation.load(tmp_path / "run" / "evaluation.json")
    assert evaluation.symmetry.point_group < 1e-9
    assert evaluation.symmetry.translation < 1e-9
    assert law in evaluation.rollout.laws
    assert quantity in evaluation.rollout.quantities
