"""Equivariance errors: exact where they are, small where they should be, large for controls."""

import math

import pytest
import torch
from stubs import Stub, blobs, network, plane

from cscnn.algebra import CliffordAlgebra
from cscnn.conv.symmetry import transform_on_grid
from cscnn.data.simulators import SineGordon, stream
from cscnn.evaluation import symmetry
from cscnn.evaluation.resample import fade, move, resample


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
    model = network("cs_resnet", task)
    assert symmetry.translation_error(model, x) < 1e-9
    assert symmetry.point_group_error(model, x) < 1e-9


def test_controls_fail():
    task = plane()
    x = blobs(task, (16, 16))
    assert symmetry.point_group_error(network("resnet", task), x) > 0.1
    where = torch.linspace(-1, 1, 16, dtype=torch.float64)[:, None, None]
    here = Stub(task, lambda x: x[:, :1] * where).double()
    assert symmetry.translation_error(here, x) > 0.1
    # the constant vector must turn with the field
    model = network("cs_resnet", task)
    fixed = Stub(task, lambda x: model(x)).double()
    assert symmetry.point_group_error(fixed, x) > 1e-3


def test_borders_are_left_out_only_if_something_remains():
    task = plane()
    x = torch.randn(1, 2, 16, 16, 4, dtype=torch.float64)
    model = network("cs_resnet", task)
    assert symmetry.reach(model, (16, 16)) == (2, 2)
    assert symmetry.has_interior(task, (16, 16), (2, 2))
    assert not symmetry.has_interior(task, (16, 16), (2, 8))
    assert symmetry.has_interior(plane(boundary="periodic"), (16, 16), (8, 8))
    assert symmetry.translation_error(model, x) < 1e-9
    assert symmetry.translation_error(model, x, sight=(0, 0)) > 1e-3
    assert symmetry.translation_error(model, x, sight=(8, 8)) > 1e-3  # as is


def test_reach():
    task = plane()
    assert symmetry.reach(network("cs_resnet", task, kernel_size=5), (24, 20)) == (4, 4)
    assert symmetry.reach(network("resnet", task, width=4, blocks=2), (24, 20)) == (4, 4)
    assert symmetry.reach(Stub(task, lambda x: x[:, :1].roll(2, 3)), (8, 8)) == (0, 2)
    assert symmetry.reach(Stub(task, lambda x: torch.zeros_like(x[:, :1])), (8, 8)) == (0, 0)
    everywhere = Stub(task, lambda x: x[:, :1] + x[:, :1].mean((2, 3), keepdim=True))
    assert symmetry.reach(everywhere, (8, 8)) == (4, 4)
    around = plane(boundary="periodic")
    assert symmetry.reach(Stub(around, lambda x: x[:, :1].roll(7, 3)), (8, 8)) == (0, 1)


def test_groups_of_kernels_count():
    assert symmetry.symmetry_group(network("resnet", plane())) == "O"
    special = network("cs_resnet", plane(), kernel="complete", kernel_options={"group": "SO"})
    assert symmetry.symmetry_group(special) == "SO"
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

    found = resample(polynomial(grid)[None, None, ..., None], points)[0, 0, :, 0]
    torch.testing.assert_close(found, polynomial(points))
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
    model = network(name, task, width=4, **options)
    x = blobs(task, (n, n))
    return [symmetry.motion_error(model, x, symmetry.rotation(2, a)) for a in (15, 45)]


def test_rotations_hold_up_to_resolution():
    coarse, fine = (rotation_errors("cs_resnet", n) for n in (20, 40))
    control = rotation_errors("resnet", 40)
    for a, b, c in zip(coarse, fine, control, strict=True):
        assert b.error < 0.5 * a.error
        assert b.error < 0.2 * c.error
        assert c.error > 0.05
        assert c.floor < 0.01  # so it is the model, not the interpolation


def test_rotations_in_space():
    g = symmetry.rotation(3, 40.0, seed=3)
    assert CliffordAlgebra((1, 1, 1)).is_orthogonal(g)
    assert torch.trace(g) == pytest.approx(1 + 2 * math.cos(math.radians(40)))
    with pytest.raises(ValueError, match="2 and 3 dimensions, got 4"):
        symmetry.rotation(4, 10)


def solitons(n):
    """The same solutions on finer grids."""
    simulator = SineGordon(frames=n, grid=(n,), spacing=16 / n, kinks=(1, 2), breathers=(0, 1))
    task = simulator.header().task()
    return task, task.pack(simulator.simulate([stream("solitons", 0, "test", i) for i in range(2)]))


def boost_error(name, n=160, rapidity=0.5, fixed=False, **options):
    task, x = solitons(n)
    model = network(name, task, **{"kernel_size": 1, "width": 4, "norm": False, **options})
    if fixed:
        inner = model
        model = Stub(task, lambda x: inner(x)).double()
    return symmetry.motion_error(model, x, symmetry.boost(task.algebra, rapidity))


@pytest.mark.parametrize("rapidity", [0.25, 0.5])
def test_boosts(rapidity):
    """Networks that mix no points commute with boosts, up to the interpolation."""
    coarse, fine = (boost_error("cs_resnet", n, rapidity) for n in (80, 160))
    control = boost_error("resnet", rapidity=rapidity)
    assert fine.error < 0.3 * coarse.error
    assert fine.error < fine.floor
    assert fine.error < 0.1 * control.error
    assert control.error > 0.05


def test_boosts_see_what_breaks_them():
    """A displacement that stays behind, and the box of a kernel's points, which is not invariant"""
    good = boost_error("cs_resnet").error
    assert boost_error("cs_resnet", fixed=True).error > 3 * good
    assert boost_error("cs_resnet", kernel_size=3).error > 3 * good


def test_too_small_for_boosts():
    task, x = solitons(12)
    with pytest.raises(ValueError, match=r"\(12, 12\) is too small"):
        symmetry.motion_error(
            network("resnet", task), x, symmetry.boost(task.algebra, 1.0), sight=(2, 2)
        )


def test_which_tasks_have_what():
    task, _ = solitons(12)
    assert symmetry.has_boosts(task)
    assert not symmetry.has_rotations(task)
    assert symmetry.has_rotations(plane())
    assert not symmetry.has_boosts(plane())
