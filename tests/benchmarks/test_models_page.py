"""``python -m benchmarks.models``: a row for each network, and why one does not serve a task."""

import pytest

from benchmarks import models
from benchmarks.models import grid_cost, main, point_cost
from benchmarks.tasks import simulator_task
from cscnn.data.simulators import ON_GRIDS, create


@pytest.fixture
def small_grids(monkeypatch):
    monkeypatch.setattr(models, "GRIDS", {dim: (8,) * dim for dim in (1, 2, 3, 4)})


def test_tasks_are_those_of_the_simulators():
    for name in ON_GRIDS:
        task, simulator = simulator_task(name), create(name)
        task.check_data(simulator.header())
        assert (task.name, task.frames_in) == (name, simulator.frames_in)


def test_a_row_of_costs(small_grids):
    cost = grid_cost("resnet", simulator_task("sine_gordon"), params=10_000)
    assert abs(cost.parameters - 10_000) < 300
    assert min(cost.multiply_adds, cost.peak_bytes, cost.seconds) > 0
    assert cost.row().startswith("| sine_gordon | 8×8 | resnet | ")
    assert cost.row().count("|") == 8


def test_a_network_that_does_not_serve_a_task(small_grids):
    cost = grid_cost("steerable_resnet", simulator_task("sine_gordon"), params=3000)
    assert "O(n)" in cost.obstacle
    assert cost.row().count("|") == 8


def test_networks_along_edges_are_measured_on_point_sets(monkeypatch):
    monkeypatch.setattr(models, "CLOUDS", {"a few points": ((1, 1), 20)})
    cost = point_cost("cs_pointnet", "a few points", params=3000)
    assert "20 × 32 edges" in cost.row()
    assert cost.multiply_adds > 0


def test_the_page_has_a_table(small_grids, monkeypatch, capsys):
    monkeypatch.setattr(models, "names", lambda: ("gfno", "cs_pointnet"))
    assert main(["--params", "3000", "--task", "sine_gordon"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "# What the networks cost"
    assert lines[-2].startswith("|---|")
    assert "| gfno |" in lines[-1]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--task", "nonsense"], "unknown task 'nonsense': choose from elastodynamics, maxwell3d"),
        (["--params", "0"], "--params must be at least 1, got 0"),
    ],
)
def test_errors_are_one_line(argv, message, capsys):
    assert main(argv) == 1
    err = capsys.readouterr().err
    assert message in err
    assert len(err.strip().splitlines()) == 1
