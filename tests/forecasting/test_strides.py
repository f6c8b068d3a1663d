"""Windows with a stride, a range of strides or a gap: numbers by naive slicing, and symmetry."""

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from cscnn.data import Coarse, FieldFile, Given
from cscnn.forecasting import (
    Forecaster,
    RandomNoise,
    RandomSymmetry,
    Task,
    Units,
    Windows,
    collate,
)
from cscnn.forecasting.augment import task_symmetries, transform_fields, transform_given
from cscnn.forecasting.evaluation.rollout import rollout
from cscnn.forecasting.unroll import Unroll
from tests.forecasting.given_data import HEADER, Last, forecaster, make_files, trajectory
from tests.forecasting.test_windows import HEADER as PLAIN
from tests.forecasting.test_windows import Memory

LONG = HEADER.replace(frames=21, frame_spacing=0.5)
FIELDS = ("smoke", "velocity")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return make_files(tmp_path_factory.mktemp("data"), LONG)


@pytest.fixture
def source(data):
    with FieldFile(data / "train.h5") as file:
        yield file


def task_of(windows, **options):
    return Task.from_header(windows.strides.seen(windows.source.header), **options)


def window_by_slicing(number, start, stride, frames_in, gap, frames_out):
    """Known and target frames, and the forcing, of a stored trajectory."""
    stored = {name: torch.as_tensor(x).float() for name, x in trajectory(number, LONG).items()}
    times = [start + stride * i for i in range(frames_in + gap + frames_out)]
    known, target = times[:frames_in], times[frames_in + gap :]
    fields = ({n: stored[n][t] for n in FIELDS} for t in (known, target))
    return *fields, stored["stirring"][times]


# --- windows --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("stride", "gap", "unroll"), [(2, 0, 1), (3, 0, 2), (1, 3, 1), (2, 3, 1)])
def test_windows_by_slicing(source, stride, gap, unroll):
    """They begin at any stored frame, also between the frames of a view."""
    header = LONG.replace(frame_spacing=0.5 * stride)
    task = Task.from_header(header, frames_in=2, frames_out=2, gap=gap)
    windows = Windows(source, task, mode="all", stride=stride, unroll=unroll)
    length = 2 + gap + 2 * unroll
    assert windows.starts == 21 - stride * (length - 1)
    for index in (0, 1, windows.starts + 2, len(windows) - 1):
        number, start = divmod(index, windows.starts)
        assert windows.locate(index) == (number, start)
        window = windows[index]
        known, target, forcing = window_by_slicing(number, start, stride, 2, gap, 2 * unroll)
        for name in FIELDS:
            assert torch.equal(window.known[name], known[name])
            assert torch.equal(window.target[name], target[name])
        assert torch.equal(window.given["stirring"], forcing)
        assert "frame_spacing" not in window.given


def test_random_windows_of_a_range_by_slicing(source):
    """Each says how far apart its frames are, and has them so."""
    windows = Windows(source, stride=[2, 4], per_trajectory=40, seed=3)
    assert windows.task.given[-1] == Given("frame_spacing", 0, "constant")
    assert windows.task.frame_spacing == 1.0  # of the smallest stride
    strides = []
    for index in range(len(windows)):
        number, start = windows.locate(index)
        window = windows[index]
        stride = round(window.given["frame_spacing"].item() / 0.5)
        known, target, forcing = window_by_slicing(number, start, stride, 4, 0, 1)
        assert all(torch.equal(window.known[n], known[n]) for n in FIELDS)
        assert all(torch.equal(window.target[n], target[n]) for n in FIELDS)
        assert torch.equal(window.given["stirring"], forcing)
        strides.append(stride)
    counts = np.bincount(strides, minlength=5)[2:]
    assert counts.sum() == 120
    assert counts.min() > 25  # all as likely


def test_windows_of_a_range_are_a_function_of_seed_epoch_and_index(source):
    def drawn(seed, epoch):
        windows = Windows(source, stride=(1, 4), seed=seed)
        windows.set_epoch(epoch)
        return [(*windows.locate(i), windows[i].given["frame_spacing"].item()) for i in range(20)]

    assert drawn(0, 0) == drawn(0, 0)
    assert drawn(0, 0) != drawn(0, 1) != drawn(1, 0)


def test_workers_see_the_same_windows(source):
    windows = Windows(source, stride=(1, 4), per_trajectory=4)
    loader = DataLoader(windows, batch_size=4, num_workers=2, collate_fn=collate)
    expected = collate([windows[i] for i in range(12)])
    batches = list(loader)
    for name in FIELDS:
        assert torch.equal(torch.cat([b.known[name] for b in batches]), expected.known[name])
    spacings = torch.cat([b.given["frame_spacing"] for b in batches])
    assert torch.equal(spacings, expected.given["frame_spacing"])
    assert len(spacings.unique()) > 1


def test_draws_without_a_stride_are_those_of_before():
    """So that runs from before strides go on with the same windows and random numbers."""
    drawn = []
    windows = Windows(Memory(), seed=7, transform=lambda w, rng: drawn.append(rng.random()) or w)
    windows.set_epoch(2)
    for index in range(30):
        rng = np.random.default_rng((7, 2, index))
        assert windows.locate(index) == (index % 6, rng.integers(5))
        windows[index]
        assert drawn[-1] == rng.random()


def test_all_windows_of_a_range_have_the_smallest_stride(source):
    windows = Windows(source, stride=(2, 3), mode="all")
    assert len(windows) == 3 * (21 - 8)
    assert windows[5].given["frame_spacing"].tolist() == [1.0]
    known = window_by_slicing(0, 5, 2, 4, 0, 1)[0]
    assert torch.equal(windows[5].known["smoke"], known["smoke"])


def test_coarse_windows(source):
    window = Windows(Coarse(source, 2), stride=(3, 4), mode="all")[1]
    cells = trajectory(0, LONG)["velocity"].reshape(21, 3, 2, 3, 2, 2).mean((2, 4))
    np.testing.assert_allclose(window.known["velocity"], cells[1:11:3], atol=1e-5)
    assert window.given["frame_spacing"].tolist() == [1.5]


def test_trajectories_with_spacings_of_their_own(tmp_path):
    header = LONG.replace(given=(Given("frame_spacing", 0, "constant"),))
    stored = trajectory(1, header)["frame_spacing"]
    with FieldFile(make_files(tmp_path, header) / "train.h5") as source:
        for stride in (3, [3, 4]):
            window = Windows(source, stride=stride, mode="all")[10]
            np.testing.assert_allclose(window.given["frame_spacing"], 3 * stored, rtol=1e-6)


def test_spacings_are_compared_unless_the_network_is_told_them(tmp_path):
    """Files whose trajectories have their own spacing: the header has the mean."""
    own = LONG.replace(given=(Given("frame_spacing", 0, "constant"),))
    files = {}
    for factor in (1.2, 8.0):
        header = own.replace(frame_spacing=factor * LONG.frame_spacing)
        folder = tmp_path / f"{factor}"
        folder.mkdir()
        files[factor] = make_files(folder, header) / "train.h5"
    told, untold = (
        Forecaster.build("cs_resnet", Task.from_header(own, constants=c), width=1, blocks=1,
                         kernel_size=3)
        for c in (True, False)
    )  # fmt: skip
    for path in files.values():
        told.view(path).close()
    untold.view(files[1.2]).close()  # may be chance
    with pytest.raises(ValueError, match=r"has frames 0\.5 apart, the data 4\.0"):
        untold.view(files[8.0])


def test_a_network_that_is_not_told(source):
    windows = Windows(source, stride=(1, 4))
    task = task_of(windows, constants=False)
    assert not task.given
    same = Windows(source, task, stride=(1, 4))
    assert not same[3].given
    assert torch.equal(same[3].known["smoke"], windows[3].known["smoke"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stride": 3}, r"a window needs 13 frames \(5 with stride 3\), the trajectories have 9"),
        ({"stride": [1, 4]}, r"a window needs 17 frames \(5 with stride 4\), the traj.* have 9$"),
        ({"stride": 2, "unroll": 2}, r"needs 11 frames \(6 .*: unroll fewer steps than 2"),
        ({"task": Task.from_header(PLAIN, gap=5)}, "a window needs 10 frames, the traject"),
        ({"task": Task.from_header(PLAIN, gap=1), "unroll": 2}, "after a gap of 1 frames"),
        ({"task": Task.from_header(PLAIN), "stride": 2}, "apart, the data 2.0 with stride 2"),
        ({"task": Task.from_header(PLAIN), "stride": [2, 3]}, "apart, the data 2.0 with stride 2"),
        ({"stride": 0}, "stride must be a number of frames of at least 1, .* got 0"),
    ],
)  # fmt: skip
def test_impossible_windows(options, message):
    with pytest.raises(ValueError, match=message):
        Windows(Memory(), **options)


# --- units ----------------------------------------------------------------------------------------


def test_units_of_a_range(source):
    """As of all windows: the time between frames, and changes over all strides."""
    units = Units.fit(source, stride=[1, 4], displacements=(1, 2))
    times = 0.5 * np.arange(1, 5)
    assert units.shift["frame_spacing"] == pytest.approx(times.mean())
    assert units.scale["frame_spacing"] == pytest.approx(times.std())
    changes = [
        np.square(x[n * d :] - x[: -n * d]).ravel()
        for x in (trajectory(i, LONG)["velocity"] for i in range(3))
        for n in range(1, 5)
        for d in (1, 2)
    ]
    expected = np.sqrt(np.concatenate(changes).mean())
    assert units.change["velocity"] == pytest.approx(expected, rel=1e-5)
    plain = Units.fit(source)
    assert "frame_spacing" not in plain.scale
    assert units.scale["velocity"] == plain.scale["velocity"]


def test_units_of_spacings_of_their_own(tmp_path):
    header = LONG.replace(given=(Given("frame_spacing", 0, "constant"),))
    own = np.array([trajectory(i, header)["frame_spacing"] for i in range(3)])
    with FieldFile(make_files(tmp_path, header) / "train.h5") as source:
        fixed, drawn = (Units.fit(source, stride=stride) for stride in (2, (1, 3)))
    assert fixed.shift["frame_spacing"] == pytest.approx(2 * own.mean(), rel=1e-5)
    assert drawn.scale["frame_spacing"] == pytest.approx(np.outer(own, [1, 2, 3]).std(), rel=1e-5)


def test_changes_after_a_gap():
    task = Task.from_header(PLAIN, frames_out=2, gap=3)
    assert task.displacements == (4, 5)
    assert task.span == 9


# --- forecasts ------------------------------------------------------------------------------------


def test_a_network_hears_the_time_between_frames(source):
    """One that answers with it: the value of each window, scaled, and none other."""
    windows = Windows(source, stride=(1, 3), dtype=torch.float64, unroll=3)
    task = windows.task.replace(fields=windows.task.fields[:1])
    units = Units.fit(source, stride=(1, 3))
    echo = Forecaster(Last([-1]), task, units, stride=(1, 3)).double()
    window = collate([windows[i] for i in range(6)])
    known = {"smoke": window.known["smoke"]}
    made = echo(known, 3, given=window.given)["smoke"]
    spacing = window.given["frame_spacing"]
    scaled = (spacing - units.shift["frame_spacing"]) / units.scale["frame_spacing"]
    expected = scaled * units.scale["smoke"] + units.shift["smoke"]
    torch.testing.assert_close(made[:, 2, 3, 4], expected)
    with pytest.raises(
        ValueError, match=r"is given .*frame_spacing \(constant\) beside the frames"
    ):
        echo(known, given={n: x for n, x in window.given.items() if n != "frame_spacing"})


@pytest.mark.parametrize("transform", ["symmetry", "noise"])
def test_transforms_keep_what_is_told(source, transform):
    units = Units.fit(source, stride=(1, 4))
    still = Windows(source, stride=(1, 4), seed=5)
    noise, symmetry = RandomNoise(still.task, units, 0.1), RandomSymmetry(still.task)
    change = symmetry if transform == "symmetry" else noise
    moved = Windows(source, stride=(1, 4), seed=5, transform=change)
    for index in range(8):
        a, b = still[index], moved[index]
        assert torch.equal(a.given["frame_spacing"], b.given["frame_spacing"])
        if transform == "symmetry":
            values, moved_values = (w.target["smoke"].flatten().sort().values for w in (a, b))
            assert torch.equal(values, moved_values)
        if transform == "noise":
            difference = (a.known["smoke"] - b.known["smoke"]) / units.scale["smoke"]
            assert 0.05 < difference.std() < 0.2
            assert torch.equal(a.target["smoke"], b.target["smoke"])


@pytest.mark.parametrize("predicts", ["state", "change"])
def test_it_is_equivariant_still(source, predicts):
    """The time between frames is a scalar; a network that took it for a vector would notice."""
    windows = Windows(source, stride=(1, 4), dtype=torch.float64, unroll=2)
    model = forecaster(windows.task, predicts=predicts)
    window = collate([windows[i] for i in range(3)])
    expected = model(window.known, 2, given=window.given)
    loss = model.loss(window, unroll=Unroll(2))
    other = {**window.given, "frame_spacing": window.given["frame_spacing"] + 0.5}
    assert (model(window.known, given=other)["smoke"] - expected["smoke"][:, :1]).abs().max() > 1e-4
    for g in task_symmetries(windows.task, (6, 6))[1:]:
        known, target = (transform_fields(windows.task, g, x) for x in window[:2])
        given = transform_given(windows.task, g, window.given)
        assert torch.equal(given["frame_spacing"], window.given["frame_spacing"])
        made = model(known, 2, given=given)
        for name, x in transform_fields(windows.task, g, expected).items():
            assert (made[name] - x).abs().max() < 1e-9 * x.abs().max()
        moved = window._replace(known=known, target=target, given=given)
        assert abs(model.loss(moved, unroll=Unroll(2)) - loss) < 1e-9 * loss
        wrong = model(known, 2, given={**given, "wind": window.given["wind"]})["velocity"]
        turned = transform_fields(windows.task, g, expected)["velocity"]
        assert (wrong - turned).abs().max() > 1e-4  # the control: a vector stays behind


def test_forcing_of_a_gap(source):
    """A network hears the forcing from its first input to its last output."""
    task = Task.from_header(LONG, frames_in=2, frames_out=2, gap=3)
    window = collate([Windows(source, task, mode="all", dtype=torch.float64)[4]])
    window = window._replace(known={"velocity": window.known["velocity"]})
    # 2 frames, then 7 of the forcing
    echo = Forecaster(Last([7, 8]), task.replace(fields=task.fields[1:])).double()
    made = echo(window.known, given=window.given)["velocity"]
    assert torch.equal(made, window.given["stirring"][:, 5:7])
    assert echo.loss(window._replace(target={"velocity": made})) == 0
    with pytest.raises(ValueError, match="step 1 needs 7 frames of it, 5 later"):
        echo(window.known, given={**window.given, "stirring": made})


def test_a_forecast_after_a_gap_is_not_fed_back(source):
    task = Task.from_header(LONG, frames_in=2, frames_out=2, gap=3)
    model = forecaster(task)
    window = collate([Windows(source, task, mode="all", dtype=torch.float64)[4]])
    assert model(window.known, given=window.given)["smoke"].shape[1] == 2
    assert model(window.known, 1, given=window.given)["smoke"].shape[1] == 1
    with pytest.raises(ValueError, match=r"has 1 to 2 steps, got 3\. .* data\.stride 4 instead"):
        model(window.known, 3, given=window.given)
    with pytest.raises(ValueError, match="after a gap of 3 frames"):
        model.loss(window, unroll=Unroll(2))


def test_rollouts_compare_with_the_frames_after_the_gap():
    task = Task.from_header(PLAIN, frames_in=2, frames_out=2, gap=3)
    model = forecaster(task)
    frames = {
        name: torch.as_tensor(np.stack([Memory().read(i)[name] for i in range(2)]))
        for name in FIELDS
    }
    made = rollout(model, frames)
    assert torch.equal(made.target["velocity"], frames["velocity"][:, 5:7])
    known = {name: x[:, :2] for name, x in frames.items()}
    torch.testing.assert_close(made.prediction["velocity"], model(known)["velocity"])
    with pytest.raises(ValueError, match="of 9 frames allow 1 to 2, got 3"):
        rollout(model, frames, 3)


def test_time_as_an_axis_has_no_gap():
    header = PLAIN.replace(
        metric=(1, -1), axes=("t", "x"), grid=(4,), time_axis=0, boundary=("open", "open"),
        backgrounds=(),
    )  # fmt: skip
    with pytest.raises(ValueError, match="change frames_out, and leave out gap=2"):
        Task.from_header(header, gap=2)
    with pytest.raises(ValueError, match="gap must be at least 0, got -1"):
        Task.from_header(PLAIN, gap=-1)
