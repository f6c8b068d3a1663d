"""Stresses as tensors and as scalars: a study of seconds."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from cscnn import CliffordAlgebra
from cscnn.algebra.grids import transform_on_grid
from cscnn.kernels import Complete
from cscnn.networks import CSResNet, Grid
from cscnn.testing import relative_error
from experiments.rollouts.plan import Contender
from experiments.rollouts.results import Results, Study
from experiments.rollouts.runner import open_results, run
from experiments.rollouts.timing import Speeds
from experiments.tensors import __main__ as command
from experiments.tensors.networks import ComponentsResNet, add_networks
from experiments.tensors.page import write_page
from experiments.tensors.presets import CONTENDERS, RECIPES, SETTINGS

(TASK,) = SETTINGS
PLANE = CliffordAlgebra((1, 1), symmetric=True)


@pytest.mark.parametrize(("network", "knows"), [(CSResNet, True), (ComponentsResNet, False)])
def test_rotations_of_tensors(network, knows):
    """A quarter: one network commutes with it, for the other tensors are scalars."""
    kernel, grid = Complete(hidden_dim=4), Grid(padding_mode="circular")
    torch.manual_seed(0)
    net = network(PLANE, 2, 3, 4, 1, kernel_size=3, kernel=kernel, grid=grid).double()
    quarter = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    x = torch.randn(1, 2, 8, 8, PLANE.n_blades, dtype=torch.float64)

    def error(x):
        moved = net(transform_on_grid(PLANE, quarter, x))
        return relative_error(moved, transform_on_grid(PLANE, quarter, net(x)))

    assert (error(x) < 1e-12) == knows
    assert net(x).shape == (1, 3, *x.shape[2:])


@pytest.mark.usefixtures("fresh_registry")
def test_presets_are_possible(tmp_path: Path) -> None:
    add_networks()
    speeds = Speeds({}, {f"{TASK}/{key}/change": 1.0 for key in CONTENDERS})
    results = Results(Study(SETTINGS, CONTENDERS, RECIPES), tmp_path, speeds)
    for key in CONTENDERS:
        results.trial(TASK, key, "change", 1e-3).config(tmp_path, tmp_path).check()
    assert len(SETTINGS[TASK].files(tmp_path)) == 5


def test_bad_arguments(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert command.main(["--only", "nonsense", "--out", str(tmp_path / "x")]) != 0
    assert "unknown network 'nonsense'" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.usefixtures("fresh_registry")
def test_study_and_page(tmp_path: Path) -> None:
    tiny = {"cells": 8, "frames": 5, "smoothness": 0.2}
    setting = replace(
        SETTINGS[TASK],
        options=tiny,
        splits={"train": 2, "valid": 1, "test": 2},
        data={"frames_in": 1, "batch": 1, "valid_windows": 1},
        params=4000,
        seconds=0.05,
        rates=(1e-3, 1e-2),
        horizon=4,
        seeds=1,
        checks=1,
        others={"at_90": {**tiny, "direction": 90.0, "focus": 2.0}},
    )
    small = {"blocks": 1, "kernel_size": 3}
    chosen = {
        key: Contender(c.label, c.name, {**c.options, **small}, ours=c.ours)
        for key, c in CONTENDERS.items()
        if key in ("tensors", "components")
    }
    study = Study({TASK: setting}, chosen, RECIPES, "tensors", add_networks)
    results = open_results(study, tmp_path, quiet=True)
    run(results, TASK, ("levers", "time"), quiet=True)
    records = results.finished(TASK, "time")
    assert {record.contender for record in records} == {*chosen}
    assert all(len(record.others["at_90"]) == 4 for record in records)
    page = write_page(results, tmp_path / "docs").read_text(encoding="utf-8")
    for text in ("waves at 90°", "tensors against components", "## elastodynamics", "ms |"):
        assert text in page
    trained, other = page.split("### Tested on waves at 90°")
    assert "correlation ≥ 0.8" in trained  # which was measured on the first split alone
    assert "correlation" not in other
    assert (tmp_path / "docs/figures/tensors_elastodynamics_at_90.png").is_file()
    known = open_results(study, tmp_path / "again", tmp_path / "docs", quiet=True)
    assert not known.missing(TASK, ("levers", "time"))
