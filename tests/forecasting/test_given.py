"""What is given and not predicted: it arrives, in time, and transforms with the fields."""

import numpy as np
import pytest
import torch

from cscnn.data import Coarse, Field, FieldFile, Given
from cscnn.forecasting import Forecaster, RandomSymmetry, Task, Units, Windows, collate
from cscnn.forecasting.augment import task_symmetries, transform_fields, transform_given
from cscnn.forecasting.given import at_step
from cscnn.forecasting.unroll import Unroll
from cscnn.forecasting.windows import Window
from tests.forecasting.given_data import (
    HEADER,
    TASK,
    Last,
    batch,
    forecaster,
    make_files,
    trajectory,
)
from tests.networks.tiny import OPTIONS, need

VECTORS = ("stirring", "normals", "wind")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return make_files(tmp_path_factory.mktemp("data"))


# --- task and windows -----------------------------------------------------------------------------


def test_a_network_sees_frames_then_what_is_given_then_constants():
    frames, forcing = ((0, 1),) * 2, ((1,),) * 3  # of two frames in and one out
    assert TASK.input_type.grades == (*frames, *forcing, (1,), (0,), (0,), (1,))
    assert (TASK.frame_channels, TASK.in_channels) == (2, 9)
    assert TASK.output_type.grades == ((0, 1),)
    untold = Task.from_header(HEADER, frames_in=2, constants=False)
    assert not untold.given
    assert untold.input_type.grades == frames
    untold.check_data(HEADER)
    assert Task.from_dict(TASK.to_dict()) == TASK


def test_data_must_have_what_the_task_is_given():
    TASK.replace(given=TASK.given[:1]).check_data(HEADER)  # of some of it nobody need be told
    other = HEADER.replace(given=(Given("mask", 1, "static"), *HEADER.given[:2]))
    with pytest.raises(ValueError, match=r"is given Given\(name='mask', grade=0.* the data have"):
        TASK.check_data(other)
    with pytest.raises(ValueError, match="only constants can be given, got mask"):
        TASK.replace(time_axis=0, given=(Given("mask", 0, "static"),))


def test_trajectories_may_have_frame_spacings_of_their_own():
    header = HEADER.replace(given=(Given("frame_spacing", 0, "constant"),))
    Task.from_header(header).check_data(header.replace(frame_spacing=2.0))
    with pytest.raises(ValueError, match=r"frames 1\.0 apart"):
        TASK.check_data(HEADER.replace(frame_spacing=2.0))


def test_windows_deliver_it(data):
    with FieldFile(data / "train.h5") as source:
        windows = Windows(source, TASK, mode="all", unroll=2)
        window = windows[windows.starts + 3]  # of trajectory 1, from frame 3
        stored = {name: torch.as_tensor(x).float() for name, x in trajectory(1).items()}
        assert set(window.known) == set(window.target) == {"smoke", "velocity"}
        assert set(window.given) == {g.name for g in HEADER.given}
        assert torch.equal(window.given["stirring"], stored["stirring"][3:7])
        for name in ("normals", "mask", "viscosity", "wind"):
            assert torch.equal(window.given[name], stored[name])
        joined = collate([windows[0], window])
        assert joined.given["wind"].shape == (2, 2)
        assert joined.given["stirring"].shape == (2, 4, 6, 6, 2)
        untold = Windows(source, Task.from_header(HEADER, constants=False))
        assert not untold[0].given


def test_units_scale_it(data):
    with FieldFile(data / "train.h5") as source:
        units = Units.fit(source)
    rows = [trajectory(i) for i in range(3)]
    for name in ("mask", "viscosity"):
        values = np.stack([row[name] for row in rows])
        assert units.scale[name] == pytest.approx(values.std(), rel=1e-5)
        assert units.shift[name] == pytest.approx(values.mean(), rel=1e-5)
    wind = np.stack([row["wind"] for row in rows])
    assert units.scale["wind"] == pytest.approx(np.sqrt(np.square(wind).mean()))
    assert not set(units.shift) & set(VECTORS)
    assert set(units.change) == {"smoke", "velocity"}


def test_what_never_varies_needs_no_scale(data, tmp_path):
    class Same(FieldFile):
        def read(self, number, start=0, stop=None):
            fields = super().read(number, start, stop)
            return {**fields, "viscosity": np.array([0.01]), "wind": np.zeros(2)}

    with Same(data / "train.h5") as source:
        units = Units.fit(source)
    assert (units.scale["viscosity"], units.shift["viscosity"]) == (1.0, pytest.approx(0.01))
    assert units.scale["wind"] == 1.0


# --- forecasts ------------------------------------------------------------------------------------


def test_all_that_is_given_matters():
    fields, given = batch()
    model = forecaster()
    known = {name: x[:, :2] for name, x in fields.items()}
    for name in given:
        other = {**given, name: given[name] + 1}
        a, b = model(known, 1, given=given), model(known, 1, given=other)
        assert (a["velocity"] - b["velocity"]).abs().max() > 1e-4, name


@pytest.mark.parametrize("name", OPTIONS)
def test_every_network_takes_it(name):
    need(name)
    options = {k: v for k, v in OPTIONS[name].items() if k != "kernel"}
    torch.manual_seed(0)
    model = Forecaster.build(name, TASK, width=2, **options).eval()
    fields, given = batch(HEADER.replace(grid=(8, 8)), dtype=torch.float32)
    known = {n: x[:, :2] for n, x in fields.items()}
    told = model(known, 1, given=given)["velocity"]
    other = model(known, 1, given={**given, "mask": 1 - given["mask"]})["velocity"]
    assert told.shape == (2, 1, 8, 8, 2)
    assert (told - other).abs().max() > 1e-5


@pytest.mark.parametrize("frames_out", [1, 2])
def test_forcing_advances_with_the_forecast(frames_out):
    """A network that answers with the forcing at the times of its output."""
    task = Task.from_header(HEADER, frames_in=2, frames_out=frames_out)
    task = task.replace(fields=(Field("velocity", 1),))
    echo = Forecaster(Last(slice(4, 4 + frames_out)), task).double()
    fields, given = batch()
    known = {"velocity": fields["velocity"][:, :3]}  # of which the last two count
    forecast = echo(known, 5, given={**given, "unused": given["mask"]})["velocity"]
    assert torch.equal(forecast, given["stirring"][:, 3:8])


def test_unrolled_losses_see_the_forcing_of_each_step():
    task = Task.from_header(HEADER, frames_in=2).replace(fields=(Field("velocity", 1),))
    echo = Forecaster(Last(slice(4, 5)), task).double()
    fields, given = batch()
    window = Window(
        {"velocity": fields["velocity"][:, :2]},
        {"velocity": given["stirring"][:, 2:5]},
        torch.empty(2, 0, 4),
        {**given, "stirring": given["stirring"][:, :5]},
    )
    assert echo.loss(window, unroll=Unroll(3)) == 0
    late = window._replace(given={**given, "stirring": given["stirring"][:, 1:6]})
    assert echo.loss(late, unroll=Unroll(3)) > 1
    with pytest.raises(ValueError, match=r"forcing stirring must be known.* step 4 needs 6 frames"):
        echo.loss(window._replace(target={"velocity": given["stirring"][:, 2:6]}), unroll=Unroll(4))


def test_changes_are_added_to_the_newest_frame():
    """Not to what follows the frames in the input."""
    fields, given = batch()
    model = forecaster(predicts="change")
    for parameter in model.network.parameters():
        parameter.data.zero_()
    known = {name: x[:, :2] for name, x in fields.items()}
    forecast = model(known, 2, given=given)
    torch.testing.assert_close(forecast["velocity"][:, 0], known["velocity"][:, 1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (None, r"is given stirring \(forcing\), normals .* got nothing: pass given=\{'stirring'"),
        ({"mask": None}, r"is given mask \(static\) beside the frames, got \['normals'"),
        ({"mask": torch.zeros(2, 6, 5, 1)}, r"given as mask \(static\) must have shape \(2, 6, 6"),
        ({"wind": torch.zeros(2, 1)}, r"given as wind .* shape \(2, 2\), got \(2, 1\)"),
        ({"stirring": torch.zeros(2, 4, 6, 6, 2)}, r"step 3 needs 5 frames of it, .* got 4"),
    ],
)
def test_what_is_missing_is_told(change, message):
    fields, given = batch()
    told = None if change is None else {**given, **change}
    told = told and {name: x for name, x in told.items() if x is not None}
    known = {name: x[:, :2] for name, x in fields.items()}
    with pytest.raises(ValueError, match=message):
        forecaster()(known, 3, given=told)


def test_an_input_without_it_is_refused():
    fields, _ = batch()
    model = forecaster()
    x = model.pack({name: x[:, :2] for name, x in fields.items()})
    with pytest.raises(ValueError, match=r"got \(2, 2, 6, 6, 4\): frames, then stirring, normals"):
        model.predict(x)


# --- symmetry -------------------------------------------------------------------------------------


def moved(g, fields, given, without=()):
    turned = transform_given(TASK, g, given)
    turned.update({name: given[name] for name in without})
    return transform_fields(TASK, g, fields), turned


@pytest.mark.parametrize("predicts", ["state", "change"])
def test_forecasts_commute_with_symmetries_of_fields_and_given(predicts):
    """To 1e-9 in float64, over three steps; not if one of the vectors stays behind."""
    fields, given = batch()
    known = {name: x[:, :2] for name, x in fields.items()}
    model = forecaster(predicts=predicts)
    expected = model(known, 3, given=given)
    elements = task_symmetries(TASK, (6, 6))
    assert len(elements) == 8
    for g in elements[1:]:
        turned = transform_fields(TASK, g, expected)
        frames, told = moved(g, known, given)
        forecast = model(frames, 3, given=told)
        for name, x in turned.items():
            assert (forecast[name] - x).abs().max() < 1e-9 * x.abs().max()
        for vector in VECTORS:
            frames, told = moved(g, known, given, without=[vector])
            wrong = model(frames, 3, given=told)["velocity"]
            assert (wrong - turned["velocity"]).abs().max() > 1e-4, vector


def test_other_networks_do_not():
    fields, given = batch()
    known = {name: x[:, :2] for name, x in fields.items()}
    model = forecaster(name="resnet")
    g = task_symmetries(TASK, (6, 6))[3]
    frames, told = moved(g, known, given)
    forecast = model(frames, given=told)["velocity"]
    expected = transform_fields(TASK, g, model(known, given=given))["velocity"]
    assert (forecast - expected).abs().max() > 1e-3


def test_augmentation_moves_all_together(data):
    """An equivariant forecaster does not notice; it does if the given vectors stay behind."""
    with FieldFile(data / "train.h5") as source:
        windows = Windows(source, TASK, mode="all", unroll=2, dtype=torch.float64)
        window = windows[0]
    model, augment = forecaster(), RandomSymmetry(TASK)
    expected = model.loss(collate([window]), unroll=Unroll(2))
    seen = set()
    for seed in range(12):
        turned = augment(window, np.random.default_rng(seed))
        loss = model.loss(collate([turned]), unroll=Unroll(2))
        assert abs(loss - expected) < 1e-9 * expected
        seen.add(tuple(turned.given["wind"].tolist()))
        half = turned._replace(given=window.given)
        if not torch.equal(turned.given["wind"], window.given["wind"]):
            assert abs(model.loss(collate([half]), unroll=Unroll(2)) - expected) > 1e-6
    assert len(seen) > 3


def test_transforms_of_given_fields_by_loops():
    """A quarter turn: [g.f](y) = ρ(g) f(g⁻¹ y)."""
    _, given = batch()
    quarter = torch.tensor([[0.0, -1.0], [1.0, 0.0]])
    turned = transform_given(TASK, quarter, given)
    for i, j in np.ndindex(6, 6):
        vx, vy = given["normals"][0, i, j]
        assert turned["normals"][0, 5 - j, i].tolist() == [-vy, vx]
        assert turned["mask"][0, 5 - j, i] == given["mask"][0, i, j]
        fx, fy = given["stirring"][1, 4, i, j]
        assert turned["stirring"][1, 4, 5 - j, i].tolist() == [-fy, fx]
    wx, wy = given["wind"][1]
    assert turned["wind"][1].tolist() == [-wy, wx]
    assert torch.equal(turned["viscosity"], given["viscosity"])


# --- cells and files ------------------------------------------------------------------------------


def test_a_forecaster_comes_back_from_its_file(tmp_path):
    model = forecaster()
    model.save(tmp_path / "model.safetensors")
    back = Forecaster.load(tmp_path / "model.safetensors").double()
    assert back.task == TASK
    fields, given = batch()
    known = {name: x[:, :2] for name, x in fields.items()}
    torch.testing.assert_close(back(known, given=given), model(known, given=given))


def test_coarse_windows(data):
    with Coarse(FieldFile(data / "train.h5"), 2) as source:
        window = Windows(source, mode="all")[0]
    assert window.given["mask"].shape == (3, 3, 1)
    assert window.given["viscosity"].shape == (1,)


def test_steps_of_a_forcing():
    _, given = batch()
    cut = at_step(TASK, given, 2, start=1)
    assert torch.equal(cut["stirring"], given["stirring"][:, 3:6])
    assert cut["mask"] is given["mask"]
