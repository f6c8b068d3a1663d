"""Symmetric tensors in tasks: channels, symmetries, noise, scales, and equivariant forecasts."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor

from cscnn.algebra.group import rotation
from cscnn.data import Coarse, Field, FieldFile, Header
from cscnn.data.files import write
from cscnn.forecasting import Forecaster, RandomNoise, RandomSymmetry, Task, Units, Windows, collate
from cscnn.forecasting.augment import task_symmetries, transform_fields, transform_given
from cscnn.forecasting.evaluation import metrics
from cscnn.forecasting.evaluation.point_symmetry import turning_error
from cscnn.forecasting.evaluation.quantities import quantities_of
from cscnn.forecasting.evaluation.symmetry import (
    motion_error,
    point_group_error,
    relative_violation,
)
from cscnn.forecasting.export import export
from cscnn.forecasting.frames import factors
from cscnn.forecasting.losses import LOSSES
from cscnn.forecasting.packing import place_fields
from cscnn.forecasting.windows import Window
from cscnn.kernels import Complete, Differential
from tests.data.tensors import SOLID, rotated, solid, solid_file, trajectory, transposed_mean
from tests.forecasting.point_tasks import batch_of, forecaster_of, task_of

LIGHT = solid(3).replace(
    metric=(1, -1, -1), axes=("t", "x", "y"), grid=(8, 8), time_axis=0, frames=8
)
HEADERS = {"plane": SOLID, "space": solid(3, 4), "spacetime": LIGHT}


@pytest.fixture(params=HEADERS.values(), ids=HEADERS)
def header(request: pytest.FixtureRequest) -> Header:
    return request.param


def fields_of(header: Header, dtype: torch.dtype = torch.float64) -> dict[str, Tensor]:
    """All arrays of two trajectories."""
    rows = [trajectory(n, header) for n in range(2)]
    return {n: torch.as_tensor(np.stack([r[n] for r in rows])).to(dtype) for n in rows[0]}


def parts(header: Header, frames: int = 2) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The first frames of fields, and what is given."""
    arrays, names = fields_of(header), {f.name for f in header.fields}
    known = {n: x[:, :frames] for n, x in arrays.items() if n in names}
    return known, {n: x for n, x in arrays.items() if n not in names}


def forecaster(task: Task, name: str = "cs_resnet", **options: object) -> Forecaster:
    """With random weights, in float64, and scales that are not one."""
    scales = {q.name: 2.0 + i for i, q in enumerate(task.quantities)}
    if name == "cs_resnet":
        options = {"kernel": Complete(hidden_dim=4), "kernel_size": 3, **options}
    torch.manual_seed(0)
    options = {"width": 2, **({} if name == "fno" else {"blocks": 1}), **options}
    made = Forecaster.build(name, task, Units(scales, {}, scales), **options)
    return made.to(torch.float64).eval()


# --- tasks ----------------------------------------------------------------------------------------


def test_trace_and_traceless_part_are_in_one_channel(header: Header) -> None:
    task = Task.from_header(header, frames_in=2)
    top = task.dim + 1
    assert task.algebra == header.algebra
    assert task.field_channels == (0, 1, 0)
    assert task.frame_type.grades == ((0, 1), (0, top))
    task.check_data(header)
    assert Task.from_dict(task.to_dict()) == task
    known, _ = parts(header)
    x = task.pack(known)
    stress = x.unflatten(1, (-1, 2))[:, :, 1]
    assert torch.allclose(task.algebra.norm_squared(stress).abs().sum(), _norms(task, known))
    again = task.unpack(x)
    assert again.keys() == known.keys()
    assert all(torch.allclose(again[n], known[n], rtol=0, atol=1e-14) for n in known)
    back = again["stress"].unflatten(-1, (task.dim, task.dim))
    assert torch.equal(back, back.mT)  # to the last bit, so that it can be packed again
    assert torch.allclose(task.pack(again), x)


def _norms(task: Task, known: dict[str, Tensor]) -> Tensor:
    """Sum of |T_ij T^ij|."""
    signs = torch.tensor(task.metric).double()
    square = known["stress"].unflatten(-1, (task.dim, task.dim)) ** 2
    return (square * signs[:, None] * signs).sum((-1, -2)).abs().sum()


def test_the_first_free_channel_is_taken() -> None:
    algebra = SOLID.algebra
    names = ("symmetric", 0, "symmetric", 0, 1, 1, 2)
    fields = [Field(str(i), grade) for i, grade in enumerate(names)]
    assert place_fields(fields, algebra) == (0, 1, 2, 3, 0, 1, 0)


def test_given_and_backgrounds_have_channels_of_their_own() -> None:
    task = Task.from_header(SOLID, frames_in=1)
    assert task.input_type.grades == ((0, 1), (0, 3), (0, 3), (0,), (0, 3))
    load = task.algebra.grade(task.constant_multivectors(), "symmetric")
    assert load.tolist()[0] == pytest.approx(SOLID.backgrounds[0].components)


def test_what_is_not_symmetric_is_told() -> None:
    made = forecaster(Task.from_header(SOLID, frames_in=2))
    known, given = parts(SOLID)
    known["stress"] = known["stress"].clone()
    known["stress"][0, 1, 2, 3] = torch.tensor([1.0, 2.0, 3.0, 4.0])
    with pytest.raises(ValueError, match=r"stress: a symmetric tensor must equal its transpose"):
        made(known, given=given)
    known, given = parts(SOLID)
    given["stiffness"] = torch.rand(2, 8, 8, 4).double()
    with pytest.raises(ValueError, match=r"stiffness: a symmetric tensor must equal"):
        made(known, given=given)
    known["stress"] = known["stress"][..., :3]
    with pytest.raises(ValueError, match=r"field stress must be .* with 4 component\(s\)"):
        made(known, given=given)


def test_factors_are_one_number_for_each_field(header: Header) -> None:
    task = Task.from_header(header, frames_in=2)
    values = {f.name: 2.0 + i for i, f in enumerate(task.fields)}
    scales = factors(task, values)
    known, _ = parts(header)
    scaled = task.pack({n: values[n] * x for n, x in known.items()})
    channels = scales.shape[0]
    assert torch.allclose(scaled[:, :channels], task.pack(known)[:, :channels] * scales.double())


# --- symmetries -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [2, 3])
def test_augmentation_is_g_t_gt_by_loops(dim: int) -> None:
    """[g.T](y) = g T(g⁻¹ y) gᵀ at every point, about the centre of the grid."""
    header = solid(dim, 3)
    task = Task.from_header(header, frames_in=2)
    known, _ = parts(header)
    elements = task_symmetries(task, header.grid)
    for g in elements[:: len(elements) // 7]:
        moved = transform_fields(task, g, known)["stress"].numpy()
        matrix = g.numpy()
        for y in np.ndindex(*header.grid):
            source = np.linalg.inv(matrix) @ (np.array(y) - 1)  # the centre is at 1
            at = tuple(round(i) + 1 for i in source)
            expected = rotated(matrix, known["stress"].numpy()[(slice(None), slice(None), *at)])
            np.testing.assert_allclose(moved[(slice(None), slice(None), *y)], expected, atol=1e-14)


def test_windows_stay_symmetric_under_augmentation(tmp_path) -> None:
    source = FieldFile(solid_file(tmp_path / "a.h5"))
    task = Task.from_header(source.header, frames_in=2)
    windows = Windows(source, task, transform=RandomSymmetry(task))
    batch = collate([windows[i] for i in range(4)])
    for x in (batch.known["stress"], batch.target["stress"], batch.given["stiffness"]):
        square = x.unflatten(-1, (2, 2))
        assert torch.equal(square, square.mT)
    assert batch.constants.shape == (4, 1, task.algebra.n_blades)


def test_noise_is_symmetric_and_isotropic() -> None:
    """Its covariance is that of rotated noise; independent T^xy and T^yx would not have it."""
    task = Task("solid", (1, 1, 1), (Field("stress", "symmetric"),), 1)
    noise = RandomNoise(task, Units({"stress": 2.0}), 0.5)
    empty = {"stress": torch.zeros(1, 40, 40, 40, 9, dtype=torch.float64)}
    x = noise(Window(empty, empty, torch.empty(0, 8)), np.random.default_rng(0)).known["stress"]
    square = x.flatten(0, -2).unflatten(-1, (3, 3))
    assert torch.equal(square, square.mT)
    algebra = task.algebra
    packed = algebra.embed(square.flatten(1), "symmetric")
    held = [0, *range(8, algebra.n_blades)]
    covariance = packed[:, held].mT @ packed[:, held] / len(packed)
    assert torch.allclose(covariance, torch.eye(6, dtype=torch.float64), atol=0.03)


def test_given_tensors_turn() -> None:
    task = Task.from_header(SOLID.replace(given=(*SOLID.given[:1],)), frames_in=2)
    _, given = parts(SOLID)
    g = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    moved = transform_given(task, g, given)["stiffness"].numpy()
    expected = rotated(g.numpy(), np.rot90(given["stiffness"].numpy(), 1, (1, 2)))
    np.testing.assert_allclose(moved, expected, atol=1e-14)


@pytest.mark.parametrize("name", ["cs_resnet", pytest.param("cs_unet", marks=pytest.mark.slow)])
def test_forecasts_commute_with_rotations(name: str) -> None:
    header = SOLID.replace(grid=(16, 16))
    task = Task.from_header(header, frames_in=2)
    made = forecaster(task, name, **({} if name == "cs_resnet" else {"kernel_size": 3}))
    x = made.pack(*parts(header))
    assert point_group_error(made, x) < 1e-10
    assert x.shape[-1] == task.algebra.n_blades == 6


@pytest.mark.parametrize("name", ["resnet", "fno"])
def test_networks_of_components_do_not(name: str) -> None:
    """The control: they take tensors, and know nothing of how they turn."""
    task = Task.from_header(SOLID, frames_in=2)
    made = forecaster(task, name, **({"modes": 3, "layers": 1} if name == "fno" else {}))
    known, given = parts(SOLID)
    forecast = made(known, steps=2, given=given)
    assert forecast["stress"].shape == (2, 2, 8, 8, 4)
    assert point_group_error(made, made.pack(known, given)) > 1e-3


def test_forecasts_commute_with_numpy() -> None:
    """The whole way: named fields in, named fields out, turned by numpy."""
    header = solid(2, 8)
    made = forecaster(Task.from_header(header, frames_in=2))
    known, _ = parts(header)
    g = np.array([[0.0, -1.0], [1.0, 0.0]])

    def turned(x: Tensor, act) -> Tensor:
        return torch.from_numpy(act(np.rot90(x.numpy(), 1, (2, 3)).copy()))

    actions = {
        "pressure": lambda x: x,
        "velocity": lambda x: x @ g.T,
        "stress": partial(rotated, g),
    }
    first = made({n: turned(x, actions[n]) for n, x in known.items()}, steps=3)
    last = {n: turned(x.detach(), actions[n]) for n, x in made(known, steps=3).items()}
    for name, expected in last.items():
        assert relative_violation(first[name].detach(), expected) < 1e-11, name


# --- learning and measuring -----------------------------------------------------------------------


def test_units_are_one_scale(tmp_path) -> None:
    source = FieldFile(solid_file(tmp_path / "a.h5"))
    units = Units.fit(source)
    stored = np.stack([source.read(n)["stress"] for n in range(2)])
    assert units.scale["stress"] == pytest.approx(np.sqrt(np.mean(stored**2)))
    assert "stress" not in units.shift
    scaled = units.scaled({"stress": torch.from_numpy(stored)})["stress"].unflatten(-1, (2, 2))
    assert torch.equal(scaled, scaled.mT)


def test_losses_and_metrics_are_frobenius_norms() -> None:
    task = Task.from_header(solid(2, 8), frames_in=2)
    known, other = parts(solid(2, 8))[0], {n: x.flip(0) for n, x in parts(solid(2, 8))[0].items()}
    p, t = (task.pack(x)[:, :2] for x in (known, other))
    single = {n: x[:, :1] for n, x in known.items()}
    sizes = {"pressure": 1, "stress": 4, "velocity": 2}
    squares = {n: (x - other[n][:, :1]).square().mean() for n, x in single.items()}
    expected = sum(sizes[n] * x for n, x in squares.items()) / 7
    assert torch.allclose(LOSSES["mse"](p, t, task, None), expected)
    g = task.algebra.random_orthogonal("rotation", dtype=torch.float64)
    gp, gt = (task.algebra.transform(g, x) for x in (p, t))
    for name in LOSSES:
        a, b = LOSSES[name](p, t, task, None), LOSSES[name](gp, gt, task, None)
        assert torch.allclose(a, b), name
    moved = [x["stress"] @ task.algebra.action(g, "symmetric").mT for x in (known, other)]
    for metric in (metrics.mse, metrics.relative_l2, metrics.vrmse, metrics.correlation):
        assert torch.allclose(metric(*moved), metric(known["stress"], other["stress"]))


def test_means_over_cells_stay_symmetric(tmp_path) -> None:
    """To the last bit: packing checks it."""
    path = solid_file(tmp_path / "a.h5", dtype="float32")
    with Coarse(FieldFile(path), 4) as source:
        stress = source.read(0)["stress"]
        assert np.array_equal(stress, transposed_mean(stress))
        assert collate([Windows(source)[0]]).known["stress"].shape[-1] == 4


def test_quantities_of_tensors() -> None:
    known = parts(SOLID)[0]
    found = {q.name: q for q in quantities_of(SOLID)}
    assert found["mean_square(stress)"].units == "(Pa)²"
    density = found["mean_square(stress)"].density(known)
    assert torch.allclose(density, known["stress"].square().sum(-1))
    assert found["enstrophy(velocity)"].density(known).shape == (2, 2, 8, 8)


@pytest.mark.slow
def test_export(tmp_path) -> None:
    made = forecaster(Task.from_header(SOLID, frames_in=2)).float()
    assert export(made, tmp_path / "solid.pt2", grid=(8, 8)) < 1e-5


def test_training_lowers_the_loss(tmp_path) -> None:
    header = SOLID.replace(frames=4)
    rows = [trajectory(n, header) for n in range(2)]
    for row in rows:
        row["stress"] = np.repeat(row["stress"][:1], 4, 0)  # what stays can be learned
    write(tmp_path / "a.h5", header, rows, range(2))
    source = FieldFile(tmp_path / "a.h5")
    task = Task.from_header(header, frames_in=2)
    made = Forecaster.build(
        "cs_resnet", task, Units.fit(source), width=2, blocks=1, kernel_size=3,
        kernel=Complete(hidden_dim=4),
    )  # fmt: skip
    batch = collate([Windows(source, task, mode="all")[i] for i in range(4)])
    optimizer = torch.optim.Adam(made.parameters(), 0.01)
    losses = []
    for _ in range(12):
        optimizer.zero_grad()
        loss = made.loss(batch, weights={"pressure": 0.0, "velocity": 0.0})
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


def test_forecasts_on_points_commute_with_rotations() -> None:
    pytest.importorskip("scipy")
    fields = (Field("stress", "symmetric"), Field("flow", 1), Field("dye", 0))
    task = task_of().replace(fields=fields)
    frames, points = batch_of(task)
    frames["stress"] = torch.from_numpy(transposed_mean(frames["stress"].numpy()))
    made = forecaster_of(task)
    x = made.pack({name: f[:, :2] for name, f in frames.items()})
    g = task.algebra.random_orthogonal(dtype=torch.float64)
    assert turning_error(made, x, points, g) < 1e-10


def test_rotations_by_any_angle_up_to_the_resolution() -> None:
    """With differential kernels the error is that of the interpolation, which falls fast."""
    errors = []
    for size in (24, 48):
        header = solid(2, size).replace(fields=SOLID.fields[1:2], spacing=(1 / size,) * 2)
        made = forecaster(
            Task.from_header(header, frames_in=1), kernel=Differential(), kernel_size=5
        )
        place = (np.indices((size, size)) + 0.5) / size - 0.5
        bumps = np.exp(-60 * ((place - 0.05) ** 2).sum(0))[..., None] * np.array([1.0, 0.5, 0.5, 0])
        x = made.pack({"stress": torch.from_numpy(bumps)[None, None]})
        errors.append(motion_error(made, x, rotation(np.radians(30)), [3, 3]).error)
    assert errors[1] < 0.1 * errors[0] < 1e-3
