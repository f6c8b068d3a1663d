"""Windows: random but reproducible, scaled and turned without breaking the symmetry."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from cscnn import models
from cscnn.conv.symmetry import transform_on_grid
from cscnn.data import FieldFile, Header, RandomSymmetry, Scaling, Windows, coarse_task
from cscnn.data.generate import generate, plans
from cscnn.data.simulators import MaxwellSpacetime, NavierStokes
from cscnn.models import Background, Field

HEADER = Header(
    metric=(1, 1),
    axes=("x", "y"),
    spacing=(1.0, 1.0),
    boundary=("wall", "wall"),
    fields=(Field("smoke", 0, "1"), Field("velocity", 1, "m/s")),
    frames=9,
    grid=(4, 4),
    backgrounds=(Background("gravity", 1, (0.0, -2.0)),),
    split="train",
)


class Memory:
    """A source whose numbers tell where they come from: trajectory + frame / 100."""

    path = "memory"

    def __init__(self, header: Header = HEADER, count: int = 6):
        self.header, self.count = header, count
        self.reads = 0

    def __len__(self) -> int:
        return self.count

    def read(self, number: int, start: int = 0, stop: int | None = None) -> dict[str, np.ndarray]:
        self.reads += 1
        stop = self.header.frames if stop is None else stop
        result = {}
        for seed, field in enumerate(self.header.fields):
            shape = self.header.shape(field.name)
            noise = np.random.default_rng((number, seed)).standard_normal(shape)
            result[field.name] = (noise * (3 + 4 * seed) + 1)[start:stop]
        return result


def test_windows_are_consecutive_frames() -> None:
    source = Memory()
    windows = Windows(
        source, HEADER.task(frames_in=3, frames_out=2), mode="all", dtype=torch.float64
    )
    assert len(windows) == 6 * 5
    assert windows.locate(7) == (1, 2)
    x, y, background = windows[7]
    assert x.shape == (3, 4, 4, 4)
    assert y.shape == (2, 4, 4, 4)
    stored = source.read(1)
    assert torch.equal(x[..., 0], torch.as_tensor(stored["smoke"][2:5, ..., 0]))
    assert torch.equal(x[..., 1:3], torch.as_tensor(stored["velocity"][2:5]))
    assert torch.equal(y[..., 1:3], torch.as_tensor(stored["velocity"][5:7]))
    assert background.tolist() == [[0, 0, -2, 0]]


def test_random_windows_are_a_function_of_seed_epoch_and_index() -> None:
    def places(seed: int, epoch: int) -> list[tuple[int, int]]:
        windows = Windows(Memory(), seed=seed, per_trajectory=10)
        windows.set_epoch(epoch)
        return [windows.locate(i) for i in range(len(windows))]

    assert places(0, 0) == places(0, 0)
    assert places(0, 0) != places(0, 1) != places(1, 0)
    numbers, starts = zip(*places(0, 0), strict=True)
    assert sorted(numbers) == sorted(list(range(6)) * 10)
    assert set(starts) == set(range(5))  # 9 frames, windows of 4 + 1


def test_workers_see_the_epoch_and_the_same_windows() -> None:
    windows = Windows(Memory(), per_trajectory=2)
    loader = DataLoader(windows, batch_size=4, num_workers=2, persistent_workers=True)
    for epoch in range(2):
        windows.set_epoch(epoch)
        expected = torch.stack([windows[i].input for i in range(12)])
        assert torch.equal(torch.cat([batch.input for batch in loader]), expected)


def test_only_the_window_is_read() -> None:
    source = Memory()
    Windows(source)[3]
    assert source.reads == 1


def test_spacetime_windows_have_time_as_an_axis(tmp_path: Path) -> None:
    simulator = MaxwellSpacetime(frames=20, grid=(8, 8), distance=1.0)
    (plan,) = plans(simulator, tmp_path, {"train": 2})
    generate([plan])
    file = FieldFile(plan.path)
    windows = Windows(file, file.header.task(frames_in=6), mode="all")
    x, y, background = windows[3]
    assert x.shape == y.shape == (1, 6, 8, 8, 8)
    stored = torch.as_tensor(file.read(0)["faraday"])
    assert torch.equal(x[0, ..., 4:7], stored[3:9])
    assert torch.equal(y[0, ..., 4:7], stored[9:15])
    assert background[0].tolist() == [0, 1, 0, 0, 0, 0, 0, 0]
    model = models.build("cs_resnet", windows.task, width=2, blocks=1, kernel_size=3)
    assert model(x[None], background[None]).shape == (1, *y.shape)


def test_scaling_is_one_number_per_field() -> None:
    source = Memory()
    scaling = Scaling.fit(source)
    numbers = {name: np.stack([source.read(i)[name] for i in range(6)]) for name in scaling.scale}
    assert scaling.shift == {"smoke": pytest.approx(numbers["smoke"].mean())}
    assert scaling.scale["smoke"] == pytest.approx(numbers["smoke"].std())
    assert scaling.scale["velocity"] == pytest.approx(np.sqrt((numbers["velocity"] ** 2).mean()))
    fields = {name: torch.as_tensor(a) for name, a in source.read(0).items()}
    again = scaling.restore(scaling.apply(fields))
    assert all(torch.allclose(again[name], fields[name]) for name in fields)


def test_scaling_commutes_with_the_group() -> None:
    source, task = Memory(), HEADER.task()
    scaling = Scaling.fit(source)
    plain = Windows(source, task, mode="all", dtype=torch.float64)[0].input[None]
    scaled = Windows(source, task, mode="all", scaling=scaling, dtype=torch.float64)[0].input[None]
    assert torch.allclose(scaling.restore_field(scaled, task), plain)
    for g in RandomSymmetry(task).elements((4, 4)):
        moved = scaling.apply(task.unpack(transform_on_grid(task.algebra, g, plain)))
        assert torch.allclose(task.pack(moved), transform_on_grid(task.algebra, g, scaled))
    per_component = plain / torch.tensor([1.0, 2.0, 3.0, 1.0])  # what must not be done
    g = RandomSymmetry(task).elements((4, 4))[4]
    turned = transform_on_grid(task.algebra, g, plain) / torch.tensor([1.0, 2.0, 3.0, 1.0])
    assert not torch.allclose(turned, transform_on_grid(task.algebra, g, per_component))


def test_scaling_files_and_errors(tmp_path: Path) -> None:
    scaling = Scaling({"a": 2.0}, {"a": 1.0})
    scaling.save(tmp_path / "scaling.json")
    assert Scaling.load(tmp_path / "scaling.json") == scaling
    assert [p.name for p in tmp_path.iterdir()] == ["scaling.json"]
    with pytest.raises(ValueError, match=r"the split 'test': scaling comes from training data"):
        Scaling.fit(Memory(HEADER.replace(split="test")))
    with pytest.raises(ValueError, match="scale of a must be positive, got 0"):
        Scaling({"a": 0.0})
    with pytest.raises(ValueError, match="no scale for field 'b'"):
        scaling.apply({"b": torch.zeros(1)})
    (tmp_path / "scaling.json").write_text("[1]")
    with pytest.raises(ValueError, match="is not a scaling"):
        Scaling.load(tmp_path / "scaling.json")


def test_a_constant_field_has_no_scale() -> None:
    class Constant(Memory):
        def read(self, number: int, start: int = 0, stop: int | None = None):
            found = super().read(number, start, stop)
            return {**found, "smoke": np.full_like(found["smoke"], 813.27)}

    with pytest.raises(ValueError, match="field smoke has variance"):
        Scaling.fit(Constant())


def test_random_symmetries_transform_everything_together() -> None:
    task = HEADER.task()
    turn = RandomSymmetry(task)
    elements = turn.elements((4, 4))
    assert len(elements) == 8
    plain = Windows(Memory(), task, dtype=torch.float64)[5]
    turned = Windows(Memory(), task, dtype=torch.float64, transform=turn)
    seen = set()
    for epoch in range(30):
        turned.set_epoch(epoch)
        if turned.locate(5) != Windows(Memory(), task).locate(5):
            continue
        window = turned[5]
        for number, g in enumerate(elements):
            if torch.allclose(
                transform_on_grid(task.algebra, g, plain.input[None])[0], window.input
            ):
                seen.add(number)
                target = transform_on_grid(task.algebra, g, plain.target[None])[0]
                assert torch.allclose(target, window.target)
                expected = task.algebra.transform(g, plain.background)
                assert torch.allclose(expected, window.background)
    assert len(seen) >= 3
    assert torch.equal(turned[5].input, turned[5].input)


def test_symmetries_respect_spacing_boundary_and_metric() -> None:
    assert len(RandomSymmetry(HEADER.task()).elements((4, 6))) == 4
    walls = HEADER.replace(boundary=("wall", "periodic")).task()
    assert len(RandomSymmetry(walls).elements((4, 4))) == 4
    flat = HEADER.replace(spacing=(1.0, 2.0)).task()
    assert len(RandomSymmetry(flat).elements((4, 4))) == 4
    spacetime = MaxwellSpacetime().header().task(frames_in=4)
    assert len(RandomSymmetry(spacetime).elements((4, 4, 4))) == 16
    assert len(RandomSymmetry(spacetime, "SO+").elements((4, 4, 4))) == 4


def test_an_equivariant_models_loss_does_not_see_the_transform() -> None:
    task = HEADER.task()
    model = models.build("cs_resnet", task, width=2, blocks=1, kernel_size=3).double().eval()
    plain = Windows(Memory(), task, dtype=torch.float64)[0]
    for g in RandomSymmetry(task).elements((4, 4)):
        x, y = (transform_on_grid(task.algebra, g, t[None]) for t in plain[:2])
        loss = (model(x, task.algebra.transform(g, plain.background)) - y).square().mean()
        reference = (model(plain.input[None], plain.background) - plain.target).square().mean()
        assert torch.allclose(loss, reference, rtol=1e-10)


def test_coarse_windows_average_cells_and_commute_with_turns() -> None:
    source = Memory()
    windows = Windows(source, coarsen=2, mode="all", dtype=torch.float64)
    assert windows.task.spacing == (2.0, 2.0)
    x = windows[0].input
    stored = source.read(0)["velocity"]
    expected = stored[0, 2:4, 0:2].mean((0, 1))
    assert np.allclose(x[0, 1, 0, 1:3], expected)
    fine = Windows(source, mode="all", dtype=torch.float64)[0].input[None]
    for g in RandomSymmetry(HEADER.task()).elements((4, 4)):
        algebra = windows.task.algebra
        turned = transform_on_grid(algebra, g, fine)
        coarse = turned.unflatten(3, (2, 2)).mean(4).unflatten(2, (2, 2)).mean(3)
        assert torch.allclose(coarse, transform_on_grid(algebra, g, x[None]))


def test_coarse_spacetime_averages_time_as_well() -> None:
    header = MaxwellSpacetime(frames=24, grid=(6, 6)).header()
    source = Memory(header)
    windows = Windows(source, coarse_task(header, 2, frames_in=4), coarsen=2, mode="all")
    assert windows.length == 16
    x = windows[0].input
    assert x.shape == (1, 4, 3, 3, 8)
    expected = source.read(0)["faraday"][2:4, 0:2, 4:6].mean((0, 1, 2))
    assert np.allclose(x[0, 1, 0, 2, 4:7], expected, atol=1e-6)
    assert windows.task.spacing == (2.0, 2.0, 2.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": HEADER.task(frames_in=9)}, "a window needs 10 frames, the trajectories have 9"),
        ({"task": models.TASKS["maxwell3d"]}, "metric"),
        ({"task": HEADER.task(fields=(Field("smoke", 0),))}, "has fields"),
        ({"task": HEADER.task(spacing=(1.0, 2.0))}, "their ratios differ"),
        ({"task": HEADER.task(frame_spacing=2.0)}, "frames 2.0 apart, the data 1.0"),
        ({"task": HEADER.task(boundary="periodic")}, "has padding"),
        (
            {"task": HEADER.task(backgrounds=(Background("gravity", 1, (2.0, 0.0)),))},
            "has backgrounds",
        ),
        ({"mode": "some"}, "'some'"),
        ({"mode": "all", "per_trajectory": 3}, "goes with mode 'random'"),
        ({"coarsen": 3}, "does not divide the grid"),
        ({"per_trajectory": 0}, "per_trajectory"),
    ],
)
def test_impossible_windows(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Windows(Memory(), **options)


def test_indices_out_of_range() -> None:
    windows = Windows(Memory())
    with pytest.raises(IndexError, match="there are 30 windows, got 30"):
        windows[30]


def test_from_simulation_to_training(tmp_path: Path) -> None:
    """The whole road: generate, scale, cut, train; the loss goes down."""
    simulator = NavierStokes(grid=(16, 16), frames=8)
    train, valid = plans(simulator, tmp_path, {"train": 4, "valid": 2})
    generate([train, valid])
    source = FieldFile(train.path)
    scaling = Scaling.fit(source)
    task = source.header.task()
    windows = Windows(source, task, scaling=scaling, transform=RandomSymmetry(task))
    torch.manual_seed(0)
    model = models.build("cs_resnet", task, width=4, blocks=1, kernel_size=3)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for epoch in range(6):
        windows.set_epoch(epoch)
        for x, y, background in DataLoader(windows, batch_size=8, shuffle=True):
            optimizer.zero_grad()
            loss = (model(x, background) - y).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert np.mean(losses[-2:]) < 0.7 * np.mean(losses[:2])
    held_out = Windows(FieldFile(valid.path), task, scaling=scaling, mode="all")
    assert len(held_out) == 2 * 4
