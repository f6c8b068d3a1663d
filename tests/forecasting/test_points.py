"""Forecasts on points: the layout, losses and metrics against loops."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

pytest.importorskip("scipy")

from cscnn.data import Given, Strided, open_fields
from cscnn.forecasting import (
    Forecaster,
    Points,
    Task,
    Window,
    Windows,
    collate,
    find_neighbours,
)
from cscnn.forecasting.evaluation import metrics, rollout
from cscnn.forecasting.evaluation.scoring import PointScoring
from cscnn.forecasting.unroll import Unroll
from cscnn.geometry import NeighbourSearch
from tests.data.clouds import GIVEN, SIZES, cloud_file
from tests.forecasting.point_tasks import FIELDS, batch_of, forecaster_of, task_of

# --- the layout -----------------------------------------------------------------------------------


def test_padding_repeats_the_first_point_and_is_not_seen():
    _, points = batch_of(task_of())
    y = torch.randn(28, 3, 4)
    padded = points.padded(y)
    assert padded.shape == (3, 3, 12, 4)
    start = 0
    for row, size in enumerate((7, 12, 9)):
        own = y[start : start + size].movedim(0, 1)
        assert torch.equal(padded[row, :, :size], own)
        assert torch.equal(padded[row, :, size:], own[:, :1].expand(-1, 12 - size, -1))
        start += size
    assert torch.equal(points.flat(padded), y)
    assert points.share.sum(1).tolist() == pytest.approx([1, 1, 1])
    assert not points.share[0, 7:].any()
    with pytest.raises(ValueError, match=r"3 samples with 12 points.*got shape \(3, 3, 11, 4\)"):
        points.flat(padded[:, :, 1:])


def test_a_sample_does_not_know_its_batch():
    task = task_of(given=(Given("wall", 1, "static"), Given("force", 1, "forcing")))
    forecaster, (frames, points) = forecaster_of(task), batch_of(task)
    given = {"wall": frames["flow"][:, 0], "force": frames["flow"]}
    frames = {name: x[:, :2] for name, x in frames.items()}
    together = forecaster(frames, 2, given=given, points=points)
    start = 0
    for row, size in enumerate(points.sizes):
        inside = slice(row, row + 1), slice(None), slice(size)
        alone = forecaster(
            {n: x[inside] for n, x in frames.items()},
            2,
            given={"wall": given["wall"][row : row + 1, :size], "force": given["force"][inside]},
            points=points.positions[start : start + size],
        )
        for name, x in alone.items():
            assert torch.allclose(together[name][inside], x, rtol=1e-12, atol=1e-12)
        start += size


def test_positions_stand_for_points():
    task = task_of()
    forecaster, (frames, points) = forecaster_of(task), batch_of(task)
    expected = forecaster(frames, points=points)
    again = forecaster(frames, points=list(points.positions.split(points.sizes)))
    assert all(torch.equal(x, expected[name]) for name, x in again.items())
    shared = {name: x[:, :, :7] for name, x in frames.items()}
    one = forecaster(shared, points=points.positions[:7])  # all samples on the same points
    assert torch.allclose(one["flow"][0], expected["flow"][0, :, :7], rtol=1e-12)


def test_files_keep_how_neighbours_are_found(tmp_path: Path):
    pytest.importorskip("safetensors")
    task = task_of(NeighbourSearch(0.3, 5, "nearest", (1.0, None)))
    forecaster, (frames, points) = forecaster_of(task), batch_of(task)
    forecaster.save(tmp_path / "points.safetensors")
    loaded = Forecaster.load(tmp_path / "points.safetensors").double()
    assert loaded.task == task
    positions = list(points.positions.split(points.sizes))
    for name, x in loaded(frames, 3, points=positions).items():
        assert torch.allclose(x, forecaster(frames, 3, points=positions)[name], rtol=1e-5)


# --- windows --------------------------------------------------------------------------------------


def test_windows_are_those_of_the_file(tmp_path: Path):
    with open_fields(cloud_file(tmp_path / "train.h5", given=GIVEN)) as source:
        search = find_neighbours(source, radius=0.3)
        task = Task.from_header(source.header, frames_in=2, points=search)
        windows = Windows(source, task, mode="all", dtype=torch.float64)
        assert len(windows) == 4 * 6
        batch = collate([windows[i] for i in (0, 7, 13)])
        assert batch.points.sizes == SIZES[:3]
        for row, (number, start) in enumerate(((0, 0), (1, 1), (2, 1))):
            read, size = source.read(number), SIZES[number]
            for name in ("dye", "flow"):
                seen = torch.from_numpy(read[name][start : start + 3])
                assert torch.equal(batch.known[name][row, :, :size], seen[:2])
                assert torch.equal(batch.target[name][row, :, :size], seen[2:])
            assert torch.equal(batch.given["wall"][row, :size], torch.from_numpy(read["wall"]))
            assert torch.equal(
                batch.given["heat"][row, :, :size],
                torch.from_numpy(read["heat"][start : start + 3]),
            )
        assert batch.given["stiffness"].shape == (3, 1)
        place = [source.place(number) for number in range(3)]
        weights = torch.from_numpy(np.concatenate([p["weights"] for p in place]))
        assert torch.equal(batch.points.weights, weights)
        expected = Points.at(
            [torch.from_numpy(p["positions"]) for p in place], search,
            [torch.from_numpy(p["weights"]) for p in place],
        )  # fmt: skip
        assert torch.equal(batch.points.edges.weight, expected.edges.weight)
        assert torch.equal(batch.points.edges.position, expected.edges.position)


def test_windows_with_strides(tmp_path: Path):
    """Cut from the file, and from a view of it, whose points are those of the file."""
    with open_fields(cloud_file(tmp_path / "train.h5")) as source:
        view, read = Strided(source, 2), source.read(1)["flow"]
        search = find_neighbours(view)
        assert search == find_neighbours(source)
        task = Task.from_header(view.header, frames_in=2, points=search)
        cut = Windows(source, task, stride=2, mode="all", dtype=torch.float64)
        seen = Windows(view, task, mode="all", dtype=torch.float64)
        for windows, number in ((cut, cut.starts), (seen, seen.starts)):
            window = windows[number]  # the first of the second trajectory
            assert torch.equal(window.known["flow"], torch.from_numpy(read[0:4:2]))
            assert torch.equal(window.target["flow"], torch.from_numpy(read[4:5]))
            positions = torch.from_numpy(source.place(1)["positions"])
            assert torch.equal(window.points.positions, positions)


# --- losses and metrics ---------------------------------------------------------------------------


def loop(prediction, target, points, task, weights):
    """`mse` and `relative` of packed fields, point by point."""
    names = [f.name for f in task.fields]
    p, t = ({n: x.numpy() for n, x in task.unpack(y).items()} for y in (prediction, target))
    mse = relative = 0.0
    start = 0
    for row, size in enumerate(points.sizes):
        share = np.full(size, 1 / size)
        if points.weights is not None:
            share = points.weights[start : start + size].numpy()
            share = share / share.sum()
        start += size
        squares, ratios, parts = 0.0, 0.0, 0.0
        for name in names:
            components = t[name].shape[-1]
            error = truth = 0.0
            for n in range(size):
                error += share[n] * np.mean((p[name][row, :, n] - t[name][row, :, n]) ** 2)
                truth += share[n] * np.mean(t[name][row, :, n] ** 2)
            squares += weights[name] * components * error
            ratios += weights[name] * np.sqrt(error / truth)
            parts += weights[name] * components
        mse += squares / parts / len(points)
        relative += ratios / sum(weights.values()) / len(points)
    return {"mse": mse, "relative": relative}


@pytest.mark.parametrize("weighted", [False, True])
def test_losses_are_means_over_samples(weighted):
    task = task_of(NeighbourSearch(0.35, 6, weighted=weighted))
    forecaster, (frames, points) = forecaster_of(task), batch_of(task)
    known = {n: x[:, :2] for n, x in frames.items()}
    target = {n: x[:, 2:4] for n, x in frames.items()}
    batch = Window(known, target, torch.zeros(3, 0, 4), {}, points)
    prediction = forecaster.predict(forecaster.pack(known), points=points).detach()
    weights = {"dye": 2.0, "flow": 1.0, "ink": 0.5}
    expected = loop(prediction, forecaster.pack(target), points, task, weights)
    for name, value in expected.items():
        assert forecaster.loss(batch, name, weights).item() == pytest.approx(value, rel=1e-12)
    with pytest.raises(ValueError, match=r"h1 compares neighbours on a grid.*mse, relative"):
        forecaster.loss(batch, "h1")
    # the same numbers as the mean over batches of one sample
    alone = []
    start = 0
    for row, size in enumerate(points.sizes):
        inside = slice(row, row + 1), slice(None), slice(size)
        one = Points.at(
            points.positions[start : start + size], task.points,
            None if points.weights is None else points.weights[start : start + size],
        )  # fmt: skip
        parts = ({n: x[inside] for n, x in fields.items()} for fields in (known, target))
        alone.append(forecaster.loss(Window(*parts, torch.zeros(1, 0, 4), {}, one)).item())
        start += size
    assert np.mean(alone) == pytest.approx(forecaster.loss(batch).item(), rel=1e-12)


@pytest.mark.parametrize("pushforward", [False, True])
def test_unrolled_losses_are_those_of_rollouts(pushforward):
    task = task_of()
    forecaster, (frames, points) = forecaster_of(task), batch_of(task)
    known = {n: x[:, :2] for n, x in frames.items()}
    target = {n: x[:, 2:] for n, x in frames.items()}
    batch = Window(known, target, torch.zeros(3, 0, 4), {}, points)
    loss = forecaster.loss(batch, unroll=Unroll(2, pushforward))
    assert loss.requires_grad
    later = forecaster(known, 4, points=points)
    weights = {f.name: 1.0 for f in task.fields}
    steps = []
    for cut in (slice(0, 2), slice(2, 4)):
        pair = [forecaster.pack({n: x[:, cut] for n, x in f.items()}) for f in (later, target)]
        steps.append(loop(*(x.detach() for x in pair), points, task, weights)["mse"])
    expected = steps[1] if pushforward else np.mean(steps)
    assert loss.item() == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_metrics_are_those_of_loops(weighted):
    task = task_of(NeighbourSearch(0.35, 6, weighted=weighted))
    (truth, points), (guess, _) = batch_of(task), batch_of(task, seed=5)
    scores = PointScoring().scores(guess, truth, points)
    assert set(scores["flow"]) == {"mse", "relative_l2", "vrmse", "correlation"}
    start = 0
    for row, size in enumerate(points.sizes):
        share = np.full(size, 1 / size)
        if weighted:
            share = points.weights[start : start + size].numpy()
            share = share / share.sum()
        start += size
        for name in truth:
            for frame in range(6):
                p, t = (x[name][row, frame, :size].numpy() for x in (guess, truth))
                error = sum(w * np.mean((a - b) ** 2) for w, a, b in zip(share, p, t, strict=True))
                size_t = sum(w * np.mean(b**2) for w, b in zip(share, t, strict=True))
                a, b = p - share @ p, t - share @ t
                covariance, *variances = (
                    sum(w * np.mean(u * v) for w, u, v in zip(share, x, y, strict=True))
                    for x, y in ((a, b), (a, a), (b, b))
                )
                expected = {
                    "mse": error,
                    "relative_l2": np.sqrt(error / size_t),
                    "vrmse": np.sqrt(error / variances[1]),
                    "correlation": covariance / np.sqrt(np.prod(variances)),
                }
                for metric, value in expected.items():
                    found = float(scores[name][metric][row, frame])
                    assert found == pytest.approx(value, rel=1e-9), metric
    mean = PointScoring().mean(truth["dye"][1:2, ..., 0], points, 1)
    assert mean.shape == (1, 6)
    assert not np.isnan(metrics.mean(mean))


def test_padding_does_not_change_when_a_trajectory_is_given_up():
    """Values far from zero: padding by zeros would widen the range of the data."""
    task = task_of(frames_out=1)
    frames, points = batch_of(task)
    frames = {n: 1000 + x for n, x in frames.items()}

    class Far(nn.Module):
        def forward(self, x, edges):
            return torch.full((len(x), task.output_type.channels, 4), 1100.0).to(x)

    forecaster = Forecaster(Far(), task).double()
    assert rollout(forecaster, frames, 2, points=points).stable.tolist() == [0, 0, 0]


# --- errors ---------------------------------------------------------------------------------------


def test_wrong_spaces():
    on_points, on_grid = task_of(), Task("flat", (1, 1), FIELDS)
    with pytest.raises(ValueError, match="cs_resnet serves grids, but task swirl is on points"):
        Forecaster.build("cs_resnet", on_points, width=2)
    with pytest.raises(ValueError, match="cs_pointnet serves point sets"):
        Forecaster.build("cs_pointnet", on_grid, width=2)
    forecaster, (frames, points) = forecaster_of(on_points), batch_of(on_points)
    with pytest.raises(ValueError, match="task swirl is on points: pass points=positions"):
        forecaster(frames)
    with pytest.raises(ValueError, match="constraints are for grids"):
        forecaster_of(on_points, constraints={"flow": "divergence_free"})
    flat = Forecaster.build("cs_resnet", on_grid, width=2, blocks=1, kernel_size=3)
    grid = {f.name: torch.zeros(1, 4, 8, 8, on_grid.algebra.grade_sizes[f.grade]) for f in FIELDS}
    for wrong in (points, points.positions):
        with pytest.raises(
            ValueError, match=r"grid.*it takes no points|grid, which takes no points"
        ):
            flat(grid, points=wrong)
    with pytest.raises(ValueError, match=r"was made for Grid.*is on points"):
        Forecaster(flat.network, on_points.replace(frames_in=4, frames_out=1))
    with pytest.raises(ValueError, match="these points have weights"):
        Points.at(points.positions, NeighbourSearch(0.3, 5, weighted=True))
    with pytest.raises(ValueError, match=r"samples of \(3,\) points"):
        Points(points.positions, points.edges, [3])


def test_tasks_know_their_data(tmp_path: Path):
    with open_fields(cloud_file(tmp_path / "train.h5")) as source:
        header = source.header
        with pytest.raises(ValueError, match="the data are on points: tell how neighbours"):
            Task.from_header(header)
        task = Task.from_header(header, points=find_neighbours(source))
        task.check_data(header)
        for points, message in (
            (None, "is about fields on a grid, the data are on points"),
            (NeighbourSearch(0.3, 5, weighted=True), r"period \(None, None\).*\(1.0, None\)"),
            (NeighbourSearch(0.3, 5, period=(1.0, None)), "weights False, the data have True"),
        ):
            with pytest.raises(ValueError, match=message):
                task.replace(points=points).check_data(header)
        with pytest.raises(ValueError, match="coarsen=2 joins points of a grid"):
            Forecaster(nn.Identity(), task, coarsen=2).view(source)
