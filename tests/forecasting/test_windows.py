"""Windows: random but reproducible, scaled and turned without breaking the symmetry."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from cscnn.algebra.grids import transform_on_grid
from cscnn.data import Background, Coarse, Field, FieldFile, Header
from cscnn.data.generate import generate, plans
from cscnn.data.simulators import MaxwellSpacetime, NavierStokes, create
from cscnn.forecasting import Forecaster, RandomSymmetry, Task, Units, Windows, collate
from cscnn.forecasting.augment import transform_fields

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


TASK = Task.from_header(HEADER)


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
    task = Task.from_header(HEADER, frames_in=3, frames_out=2)
    windows = Windows(source, task, mode="all", dtype=torch.float64)
    assert len(windows) == 6 * 5
    assert windows.locate(7) == (1, 2)
    known, target, constants, given, points = windows[7]
    assert points is None
    assert not given
    stored = source.read(1)
    for name in ("smoke", "velocity"):
        assert torch.equal(known[name], torch.as_tensor(stored[name][2:5]))
        assert torch.equal(target[name], torch.as_tensor(stored[name][5:7]))
    assert constants.tolist() == [[0, 0, -2, 0]]


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
    loader = DataLoader(
        windows, batch_size=4, num_workers=2, persistent_workers=True, collate_fn=collate
    )
    for epoch in range(2):
        windows.set_epoch(epoch)
        expected = collate([windows[i] for i in range(12)]).known["velocity"]
        batches = [batch.known["velocity"] for batch in loader]
        assert torch.equal(torch.cat(batches), expected)


def test_only_the_window_is_read() -> None:
    source = Memory()
    Windows(source)[3]
    assert source.reads == 1


def test_spacetime_windows_have_time_as_an_axis(tmp_path: Path) -> None:
    simulator = MaxwellSpacetime(frames=20, grid=(8, 8), distance=1.0)
    (plan,) = plans(simulator, tmp_path, {"train": 2})
    generate([plan])
    file = FieldFile(plan.path)
    windows = Windows(file, Task.from_header(file.header, frames_in=6), mode="all")
    window = windows[3]
    stored = torch.as_tensor(file.read(0)["faraday"])
    assert torch.equal(window.known["faraday"], stored[3:9])
    assert torch.equal(window.target["faraday"], stored[9:15])
    assert window.constants[0].tolist() == [0, 1, 0, 0, 0, 0, 0, 0]
    forecaster = Forecaster.build("cs_resnet", windows.task, width=2, blocks=1, kernel_size=3)
    assert forecaster.pack(collate([window]).known).shape == (1, 1, 6, 8, 8, 8)
    assert forecaster.loss(collate([window])).isfinite()


def test_units_are_one_number_per_field() -> None:
    source = Memory()
    units = Units.fit(source)
    numbers = {name: np.stack([source.read(i)[name] for i in range(6)]) for name in units.scale}
    assert units.shift == {"smoke": pytest.approx(numbers["smoke"].mean())}
    assert units.scale["smoke"] == pytest.approx(numbers["smoke"].std())
    assert units.scale["velocity"] == pytest.approx(np.sqrt((numbers["velocity"] ** 2).mean()))
    fields = {name: torch.as_tensor(a) for name, a in source.read(0).items()}
    again = units.physical(units.scaled(fields))
    assert all(torch.allclose(again[name], fields[name]) for name in fields)


def test_units_commute_with_the_group() -> None:
    source = Memory()
    units = Units.fit(source)
    known = Windows(source, TASK, mode="all", dtype=torch.float64)[0].known
    for g in RandomSymmetry(TASK).elements((4, 4)):
        moved = units.scaled(transform_fields(TASK, g, known))
        expected = transform_fields(TASK, g, units.scaled(known))
        assert all(torch.allclose(moved[name], expected[name]) for name in moved)
    # what must not be done: a factor for each component
    g, factors = RandomSymmetry(TASK).elements((4, 4))[4], torch.tensor([2.0, 3.0])
    velocity = {"smoke": known["smoke"], "velocity": known["velocity"] / factors}
    moved = transform_fields(TASK, g, known)["velocity"] / factors
    assert not torch.allclose(moved, transform_fields(TASK, g, velocity)["velocity"])


def test_units_that_cannot_be() -> None:
    units = Units({"a": 2.0}, {"a": 1.0})
    with pytest.raises(ValueError, match=r"the split 'test': scaling comes from training data"):
        Units.fit(Memory(HEADER.replace(split="test")))
    with pytest.raises(ValueError, match="memory has no trajectories"):
        Units.fit(Memory(count=0))
    with pytest.raises(ValueError, match="scale of a must be positive, got 0"):
        Units({"a": 0.0})
    with pytest.raises(ValueError, match="no scale for field 'b'"):
        units.scaled({"b": torch.zeros(1)})


def test_a_constant_field_has_no_scale() -> None:
    class Constant(Memory):
        def read(self, number: int, start: int = 0, stop: int | None = None):
            fields = super().read(number, start, stop)
            return {**fields, "smoke": np.full_like(fields["smoke"], 813.27)}

    with pytest.raises(ValueError, match="field smoke has variance"):
        Units.fit(Constant())


def test_fields_transform_as_multivectors_do() -> None:
    """Component by component, in space and in spacetime, against the action on packed fields."""
    for task in (TASK, Task.from_header(MaxwellSpacetime().header(), frames_in=4)):
        sizes = task.algebra.grade_sizes
        fields = {f.name: torch.randn(2, 4, 4, 4, sizes[f.grade]).double() for f in task.fields}
        for g in RandomSymmetry(task).elements((4,) * task.dim):
            packed = transform_on_grid(task.algebra, g, task.pack(fields))
            expected = task.unpack(packed)
            moved = transform_fields(task, g, fields)
            assert all(torch.allclose(moved[name], expected[name]) for name in moved)


def test_random_symmetries_transform_everything_together() -> None:
    symmetry = RandomSymmetry(TASK)
    elements = symmetry.elements((4, 4))
    assert len(elements) == 8
    still = Windows(Memory(), TASK, dtype=torch.float64)[5]
    moving = Windows(Memory(), TASK, dtype=torch.float64, transform=symmetry)
    seen = set()
    for epoch in range(30):
        moving.set_epoch(epoch)
        if moving.locate(5) != Windows(Memory(), TASK).locate(5):
            continue
        window = moving[5]
        for number, g in enumerate(elements):
            known = transform_fields(TASK, g, still.known)
            if torch.allclose(known["velocity"], window.known["velocity"]):
                seen.add(number)
                assert torch.allclose(known["smoke"], window.known["smoke"])
                target = transform_fields(TASK, g, still.target)
                assert torch.allclose(target["velocity"], window.target["velocity"])
                expected = TASK.algebra.transform(g, still.constants)
                assert torch.allclose(expected, window.constants)
    assert len(seen) >= 3
    again = Windows(Memory(), TASK, dtype=torch.float64, transform=RandomSymmetry(TASK))
    again.set_epoch(29)
    assert torch.equal(moving[5].known["velocity"], again[5].known["velocity"])


def test_symmetries_respect_spacing_boundary_and_metric() -> None:
    assert len(RandomSymmetry(TASK).elements((4, 6))) == 4
    walls = Task.from_header(HEADER.replace(boundary=("wall", "periodic")))
    assert len(RandomSymmetry(walls).elements((4, 4))) == 4
    flat = Task.from_header(HEADER.replace(spacing=(1.0, 2.0)))
    assert len(RandomSymmetry(flat).elements((4, 4))) == 4
    spacetime = Task.from_header(MaxwellSpacetime().header(), frames_in=4)
    assert len(RandomSymmetry(spacetime).elements((4, 4, 4))) == 16
    assert len(RandomSymmetry(spacetime, "SO+").elements((4, 4, 4))) == 4


def test_an_equivariant_forecasters_loss_does_not_see_the_transform() -> None:
    forecaster = Forecaster.build("cs_resnet", TASK, width=2, blocks=1, kernel_size=3)
    forecaster = forecaster.double().eval()
    window = Windows(Memory(), TASK, dtype=torch.float64)[0]
    reference = forecaster.loss(collate([window]))

    class Chosen(RandomSymmetry):
        chosen = 0

        def elements(self, grid):
            return super().elements(grid)[self.chosen : self.chosen + 1]

    symmetry = Chosen(TASK)
    for symmetry.chosen in range(8):
        moved = symmetry(window, np.random.default_rng(0))
        assert torch.allclose(forecaster.loss(collate([moved])), reference, rtol=1e-10)
        wrong = moved._replace(constants=window.constants)  # the control: gravity stays
        if not torch.allclose(moved.constants, window.constants):
            assert not torch.allclose(forecaster.loss(collate([wrong])), reference, rtol=1e-6)


def test_coarse_windows_commute_with_symmetries() -> None:
    source = Memory()
    windows = Windows(Coarse(source, 2), mode="all", dtype=torch.float64)
    assert windows.task.spacing == (2.0, 2.0)
    known = windows[0].known
    expected = source.read(0)["velocity"][0, 2:4, 0:2].mean((0, 1))
    assert np.allclose(known["velocity"][0, 1, 0], expected)
    fine = Windows(source, mode="all", dtype=torch.float64)[0].known
    for g in RandomSymmetry(TASK).elements((4, 4)):
        moved = transform_fields(TASK, g, fine)["velocity"]
        coarse = moved.unflatten(2, (2, 2)).mean(3).unflatten(1, (2, 2)).mean(2)
        assert torch.allclose(coarse, transform_fields(windows.task, g, known)["velocity"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": TASK.replace(frames_in=9)}, "a window needs 10 frames, the trajectories have 9"),
        ({"task": Task.from_header(create("maxwell3d").header())}, "metric"),
        ({"task": TASK.replace(fields=(Field("smoke", 0),))}, "has fields"),
        ({"task": TASK.replace(spacing=(1.0, 2.0))}, "their ratios differ"),
        ({"task": TASK.replace(frame_spacing=2.0)}, "frames 2.0 apart, the data 1.0"),
        ({"task": TASK.replace(boundary="periodic")}, "has boundary"),
        (
            {"task": TASK.replace(backgrounds=(Background("gravity", 1, (2.0, 0.0)),))},
            "has backgrounds",
        ),
        ({"mode": "some"}, "'some'"),
        ({"mode": "all", "per_trajectory": 3}, "goes with mode 'random'"),
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
    """All of it: generate, fit units, cut, train; the loss goes down."""
    simulator = NavierStokes(grid=(16, 16), frames=8)
    train, valid = plans(simulator, tmp_path, {"train": 4, "valid": 2})
    generate([train, valid])
    source = FieldFile(train.path)
    task = Task.from_header(source.header)
    windows = Windows(source, task, transform=RandomSymmetry(task))
    torch.manual_seed(0)
    forecaster = Forecaster.build(
        "cs_resnet", task, Units.fit(source), width=4, blocks=1, kernel_size=3
    )
    optimizer = torch.optim.Adam(forecaster.parameters(), lr=1e-2)
    losses = []
    for epoch in range(6):
        windows.set_epoch(epoch)
        for window in DataLoader(windows, batch_size=8, shuffle=True, collate_fn=collate):
            optimizer.zero_grad()
            loss = forecaster.loss(window)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert np.mean(losses[-2:]) < 0.7 * np.mean(losses[:2])
    assert len(Windows(FieldFile(valid.path), task, mode="all")) == 2 * 4
