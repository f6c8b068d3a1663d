"""Forecasts on points commute with isometries, to rounding."""

from dataclasses import replace

import pytest
import torch
from torch import nn

pytest.importorskip("scipy")

from cscnn.algebra import CliffordAlgebra
from cscnn.data import Background, Field, Given
from cscnn.forecasting import Forecaster, Task
from cscnn.forecasting.evaluation.point_symmetry import translation_error, turning_error
from cscnn.forecasting.points import pad_points
from cscnn.geometry import NeighbourSearch
from tests.forecasting.point_tasks import batch_of, forecaster_of, task_of


class SeesCoordinates(nn.Module):
    """The control: a network that takes a coordinate for a scalar."""

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = network

    def forward(self, x, edges):
        seen = torch.zeros(len(x), dtype=x.dtype).index_add(
            0, edges.receiver, edges.position[:, 0].square()
        )
        return self.network(x, edges) + seen[:, None, None]


def equivariance_error(forecaster, seed=0):
    """Of a rollout under a rotation, a reflection, a translation and another order of points."""
    task = forecaster.task
    frames, points = batch_of(task)
    constant = torch.randn(3, 2, dtype=torch.float64)
    given = {"wall": frames["flow"][:, 0], "stress": constant}
    expected = forecaster(frames, 4, given=given, points=points)
    g = task.algebra.random_orthogonal(
        generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    g = g if torch.det(g) < 0 else g @ torch.diag(torch.tensor([1.0, -1.0])).to(g)
    orders = [torch.randperm(n, generator=torch.Generator().manual_seed(n)) for n in points.sizes]
    index = torch.stack([pad_points(order[:, None], points.most)[:, 0] for order in orders])

    def moved(fields):
        result = {}
        for name, x in fields.items():
            rows = torch.stack([part[..., i, :] for part, i in zip(x, index, strict=True)])
            result[name] = rows @ g.T if name in ("flow", "wall") else rows
        return result

    clouds = points.positions.split(points.sizes)
    positions = [
        x[i] @ g.T + torch.tensor([3.0, -2.0]) for x, i in zip(clouds, orders, strict=True)
    ]
    forecast = forecaster(
        moved(frames), 4, given={**moved({"wall": given["wall"]}), "stress": constant @ g.T},
        points=positions,
        constants=task.algebra.transform(g, forecaster.constants),
    )  # fmt: skip
    return max((forecast[n] - x).abs().max().item() for n, x in moved(expected).items())


@pytest.mark.parametrize("by", ["radius", "nearest"])
@pytest.mark.parametrize("predicts", ["state", "change"])
def test_forecasts_commute_with_isometries(by, predicts):
    task = task_of(
        NeighbourSearch(0.35, 5, by),
        given=(Given("wall", 1, "static"), Given("stress", 1, "constant")),
        backgrounds=(Background("gravity", 1, (0.0, -1.0)),),
    )
    forecaster = forecaster_of(task, predicts=predicts)
    assert equivariance_error(forecaster) < 1e-9
    control = Forecaster(
        SeesCoordinates(forecaster.network), task, forecaster.units, predicts=predicts
    ).double()
    assert equivariance_error(control) > 1e-3


@pytest.mark.parametrize("metric", [(1,), (1, 1, 1), (-1, 1), (1, -1, -1)])
def test_all_signatures(metric):
    algebra = CliffordAlgebra(metric)
    fields = (Field("dye", 0), Field("flow", 1))
    search = NeighbourSearch(0.5, 6, period=(1.0,) + (None,) * (len(metric) - 1))
    search = replace(search, radius=0.45)
    task = Task("any", metric, fields, frames_in=2, points=search)
    torch.manual_seed(1)
    forecaster = Forecaster.build("cs_pointnet", task, width=2, blocks=1).double().eval()
    frames, points = batch_of(task)
    x = forecaster.pack({n: f[:, :2] for n, f in frames.items()})
    assert translation_error(forecaster, x, points) < 1e-12
    for seed in range(3):
        g = algebra.random_orthogonal(
            generator=torch.Generator().manual_seed(seed), dtype=torch.float64
        )
        assert turning_error(forecaster, x, points, g) < 1e-9
    control = Forecaster(SeesCoordinates(forecaster.network), task).double()
    if len(metric) > 1:
        assert turning_error(control, x, points, g) > 1e-5
