"""Equivariance errors: exact where they are, small where they should be, large for controls."""

import math

import pytest
import torch

from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.grids import transform_on_grid
from cscnn.algebra.group import rotation
from cscnn.data import Field
from cscnn.data.simulators import SineGordon, stream
from cscnn.forecasting import Task
from cscnn.forecasting.evaluation import symmetry
from cscnn.forecasting.evaluation.resample import fade, move, resample
from cscnn.forecasting.receptive_field import receptive_field
from cscnn.kernels import Complete
from tests.forecasting.evaluation.stubs import blobs, forecaster, plane, stub


def test_relative_violation():
    a, b = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    assert symmetry.relative_violation(a, b) == 1.0
    assert symmetry.relative_violation(a, a) == 0.0
    assert symmetry.relative_violation(0 * a, 0 * a) == 0.0
    assert symmetry.relative_violation(a, -a) == math.inf
    assert symmetry.relative_violation(a, a * math.nan) == math.inf


@pytest.mark.parametrize("boundary", ["open", "periodic", "wall", ("open", "periodic")])
@pytest.mark.parametrize("grid", [(16, 16), (16, 20)])
def test_exact_on_grids(boundary, grid):
    task = plane(boundary=boundary)
    x = blobs(task, grid)
    model = forecaster("cs_resnet", task)
    assert symmetry.translation_error(model, x) < 1e-9
    assert symmetry.point_group_error(model, x) < 1e-9


def test_controls_fail():
    task = plane()
    x = blobs(task, (16, 16))
    assert symmetry.point_group_error(forecaster("resnet", task), x) > 0.1
    slope = torch.linspace(-1, 1, 16, dtype=torch.float64)[:, None, None]
    assert symmetry.translation_error(stub(task, lambda x: x[:, :1] * slope), x) > 0.1
    # the constant vector must rotate with the field
    model = forecaster("cs_resnet", task)
    fixed = stub(task, lambda x: model.predict(x))
    assert symmetry.point_group_error(fixed, x) > 1e-3


def test_components_without_data_do_not_count():
    """Two scalars and a vector: the second channel has no vector, no channel a bivector."""
    task = Task(
        "two", (1, 1), (Field("sine", 0), Field("cosine", 0), Field("gradient", 1)), frames_in=1
    )
    x = blobs(task, (16, 16))

    def noise_on(channel, blade):
        broken = torch.zeros(2, 16, 16, 4, dtype=torch.float64)
        broken[channel, ..., blade] = torch.linspace(-9, 9, 16, dtype=torch.float64)
        return stub(task, lambda x: x + broken)

    for channel, blade in ((0, 3), (1, 1), (1, 2), (1, 3)):
        model = noise_on(channel, blade)
        assert symmetry.point_group_error(model, x) < 1e-12
        assert symmetry.translation_error(model, x) < 1e-12
        assert symmetry.motion_error(model, x, rotation(0.3)).error < 1e-12
    for channel, blade in ((0, 0), (0, 1), (1, 0)):
        model = noise_on(channel, blade)
        assert symmetry.point_group_error(model, x) > 0.01
        assert symmetry.translation_error(model, x) > 0.01
        assert symmetry.motion_error(model, x, rotation(0.3)).error > 0.01


def test_borders_are_left_out_only_if_something_remains():
    task = plane()
    x = torch.randn(1, 2, 16, 16, 4, dtype=torch.float64)
    model = forecaster("cs_resnet", task)
    assert receptive_field(model, (16, 16)) == (2, 2)
    assert symmetry.has_interior(task, (16, 16), (2, 2))
    assert not symmetry.has_interior(task, (16, 16), (2, 8))
    assert symmetry.has_interior(plane(boundary="periodic"), (16, 16), (8, 8))
    assert symmetry.translation_error(model, x) < 1e-9
    assert symmetry.translation_error(model, x, radii=(0, 0)) > 1e-3
    assert symmetry.translation_error(model, x, radii=(8, 8)) > 1e-3  # no point is left out


def test_receptive_field():
    task = plane()

    def measured(model, grid=(8, 8)):
        return receptive_field(model, grid)

    assert measured(forecaster("cs_resnet", task, kernel_size=5), (24, 20)) == (4, 4)
    assert measured(forecaster("resnet", task, width=4, blocks=2), (24, 20)) == (4, 4)
    assert measured(stub(task, lambda x: x[:, :1].roll(2, 3))) == (0, 2)
    assert measured(stub(task, lambda x: torch.zeros_like(x[:, :1]))) == (0, 0)
    everywhere = stub(task, lambda x: x[:, :1] + x[:, :1].mean((2, 3), keepdim=True))
    assert measured(everywhere) == (4, 4)
    around = plane(boundary="periodic")
    assert measured(stub(around, lambda x: x[:, :1].roll(7, 3))) == (0, 1)


def test_groups_of_kernels_count():
    assert symmetry.symmetry_group(forecaster("resnet", plane())) == "O"
    special = forecaster("cs_resnet", plane(), kernel=Complete(group="SO"))
    assert symmetry.symmetry_group(special) == "SO"
    products = forecaster("cs_resnet", plane(), activation="product", group="SO")
    assert symmetry.symmetry_group(products) == "SO"
    x = blobs(plane(), (16, 16))
    assert symmetry.point_group_error(special, x) < 1e-9


# --- by interpolation -----------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_polynomials_are_interpolated_exactly(dim, generator):
    axis = torch.arange(9, dtype=torch.float64)
    grid = torch.stack(torch.meshgrid(*(axis,) * dim, indexing="ij"), -1)
    points = 2 + 4 * torch.rand(20, dim, generator=generator, dtype=torch.float64)

    def polynomial(p):
        return ((p - 3) ** 3).sum(-1) + p.prod(-1)

    values = resample(polynomial(grid)[None, None, ..., None], points)[0, 0, :, 0]
    torch.testing.assert_close(values, polynomial(points))
    with pytest.raises(ValueError, match="even and at least 2, got 3"):
        resample(grid[None, None], points, taps=3)


@pytest.mark.parametrize("metric", [(1, 1), (1, -1), (1, 1, 1)])
def test_moving_by_grid_symmetries_is_exact(metric, generator):
    algebra = CliffordAlgebra(metric)
    x = torch.randn(2, 1, *(7,) * len(metric), algebra.n_blades, generator=generator)
    x = x.double()
    g = torch.eye(len(metric), dtype=torch.float64)
    g[0, 0] = -1
    for h in (g, g[:, torch.arange(len(metric)).roll(1)]):
        if algebra.is_orthogonal(h):
            expected = transform_on_grid(algebra, h, x)
            torch.testing.assert_close(move(algebra, h, x, (0.5,) * len(metric)), expected)


def test_fade():
    window = fade((33, 33), (1.0, 1.0), 16.0)
    assert window[16, 16] == 1 == window[16, 24]
    assert window[16, 32] == window[0, 0] < 1e-30
    assert 0 < window[16, 28] < 1


def rotation_errors(name, n, **options):
    task = plane(n)
    model = forecaster(name, task, width=4, **options)
    x = blobs(task, (n, n))
    return [symmetry.motion_error(model, x, rotation(math.radians(a))) for a in (15, 45)]


def test_rotations_hold_up_to_resolution():
    coarse, fine = (rotation_errors("cs_resnet", n) for n in (20, 40))
    control = rotation_errors("resnet", 40)
    for a, b, c in zip(coarse, fine, control, strict=True):
        assert b.error < 0.5 * a.error
        assert b.error < 0.2 * c.error
        assert c.error > 0.05
        assert c.floor < 0.01  # so it is the network, not the interpolation


def solitons(n):
    """The same solutions on finer grids."""
    simulator = SineGordon(frames=n, grid=(n,), spacing=16 / n, kinks=(1, 2), breathers=(0, 1))
    task = Task.from_header(simulator.header())
    return task, task.pack(simulator.simulate([stream("solitons", 0, "test", i) for i in range(2)]))


def boost_error(name, n=160, rapidity=0.5, fixed=False, **options):
    task, x = solitons(n)
    model = forecaster(name, task, **{"kernel_size": 1, "width": 4, "norm": False, **options})
    if fixed:
        honest = model
        model = stub(task, lambda x: honest.predict(x))
    return symmetry.motion_error(model, x, symmetry.random_boost(task.algebra, rapidity))


@pytest.mark.slow
@pytest.mark.parametrize("rapidity", [0.25, 0.5])
def test_boosts(rapidity):
    """Networks that mix no points commute with boosts, up to the interpolation."""
    coarse, fine = (boost_error("cs_resnet", n, rapidity) for n in (80, 160))
    control = boost_error("resnet", rapidity=rapidity)
    assert fine.error < 0.3 * coarse.error
    assert fine.error < fine.floor
    assert fine.error < 0.1 * control.error
    assert control.error > 0.05


@pytest.mark.slow
def test_boosts_see_what_breaks_them():
    """A displacement that stays behind, and the box of a kernel's points, which is not invariant"""
    good = boost_error("cs_resnet").error
    assert boost_error("cs_resnet", fixed=True).error > 3 * good
    assert boost_error("cs_resnet", kernel_size=3).error > 3 * good


def test_grids_without_room():
    task, x = solitons(12)
    model = forecaster("resnet", task)
    fast = symmetry.random_boost(task.algebra, 1.0)
    with pytest.raises(ValueError, match=r"\(12, 12\) is too small"):
        symmetry.motion_error(model, x, fast, radii=(2, 2))
    slow = symmetry.random_boost(task.algebra, 0.1)
    errors = symmetry.motion_errors(model, x, {0.1: slow, 1.0: fast})
    assert errors.values == [0.1]
    assert len(errors.errors) == len(errors.floors) == 1
    assert symmetry.motion_errors(model, x, {1.0: fast}) is None


def test_which_tasks_have_rotations_and_boosts():
    line, _ = solitons(12)
    space = Task("space", (1, 1, 1), (Field("heat", 0),))
    assert list(symmetry.boosts(line)) == list(symmetry.RAPIDITIES)
    assert symmetry.boosts(plane()) == symmetry.rotations(line) == {}
    for task in (plane(), space):
        rotations = symmetry.rotations(task, seed=3)
        assert list(rotations) == list(symmetry.ANGLES)
        for angle, g in rotations.items():
            assert task.algebra.is_orthogonal(g)
            trace = task.dim - 2 + 2 * math.cos(math.radians(angle))
            assert torch.trace(g) == pytest.approx(trace)
    assert symmetry.random_direction(1) == [1.0]
    assert math.hypot(*symmetry.random_direction(3, seed=5)) == pytest.approx(1.0)
