"""Convolution along edges: equal to the grid's and to naive sums, convergent, robust."""

import copy
import math
import pickle
from functools import partial

import pytest
import torch

from cscnn import CliffordAlgebra, CliffordSteerableConv, geometry
from cscnn.conv import CliffordSteerablePointConv, points
from cscnn.geometry import (
    Edges,
    all_pairs,
    fibonacci_sphere,
    nearest_edges,
    radius_edges,
    sphere,
)
from cscnn.kernels import Complete, CompleteKernel, DifferentialKernel, Implicit
from tests.conv.point_builders import METRICS, bias_field, cloud, features, make, naive, relative

KERNELS = {
    "implicit": Implicit(),
    "complete": Complete(),
    "rings": Complete(radial="rings"),
}
GRID_KERNELS = {
    "implicit": Implicit(),
    "complete": Complete(),
    "free": Complete(radial="free", group="SO"),
}


def deviation_from_the_grid(metric, kernel, mode, unit=1.0, dtype=torch.float64):
    """Of the convolution on the points of a full grid with distances of about a unit."""
    torch.manual_seed(0)
    algebra, d = CliffordAlgebra(metric), len(metric)
    half, size = (2, 6) if d == 2 else (1, 4)
    spacing = (unit / 2, *(unit,) * (d - 1))
    grid = CliffordSteerableConv(
        algebra, 2, 3, 2 * half + 1, kernel=kernel, padding_mode=mode, spacing=spacing,
    ).to(dtype)  # fmt: skip
    torch.nn.init.normal_(grid.bias)
    x = torch.randn(2, 2, *(size,) * d, algebra.n_blades, dtype=dtype)
    axes = [step * torch.arange(size, dtype=dtype) for step in spacing]
    edges = radius_edges(
        torch.cartesian_prod(*axes), [half * s for s in spacing], shape="box",
        period=[size * s for s in spacing] if mode == "circular" else None,
    )  # fmt: skip
    conv = CliffordSteerablePointConv(algebra, 2, 3, half * unit, kernel=grid.kernel).to(dtype)
    conv.bias = grid.bias
    flat = x.flatten(2, -2).transpose(1, 2).flatten(0, 1)
    y = conv(flat, edges.repeat(2)).unflatten(0, (2, -1)).transpose(1, 2)
    expected = grid(x)
    return relative(y.reshape(expected.shape), expected)


@pytest.mark.parametrize("mode", ["circular", "zeros"])
@pytest.mark.parametrize("kernel", GRID_KERNELS.values(), ids=GRID_KERNELS)
@pytest.mark.parametrize("metric", METRICS)
def test_on_a_full_grid_it_is_the_grid_convolution(metric, kernel, mode):
    assert deviation_from_the_grid(metric, kernel, mode) < 1e-10


@pytest.mark.parametrize("mode", ["circular", "zeros"])
def test_on_a_rounded_grid_it_is_the_grid_convolution(mode):
    """Tenths are not exact: the farthest neighbours are at the radius up to rounding."""
    for kernel in ("implicit", "complete"):
        assert deviation_from_the_grid((1, -1), kernel, mode, 0.1, torch.float32) < 1e-5


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("metric", [(-1,), (1, -1), (1, 1, 1), (1, -1, -1, -1)])
def test_equals_the_naive_sum(metric, kernel):
    conv = make(metric, kernel=kernel)
    edges = nearest_edges(cloud(metric), 4).weighted(torch.rand(9))
    h = conv.algebra.random_orthogonal("any", batch=9, dtype=torch.float64)
    for case in (edges, edges.change_frames(h)):
        x = features(case, conv)
        assert relative(conv(x, case), naive(conv, x, case)) < 1e-12


@pytest.mark.parametrize("by_hand", [False, True], ids=["plain", "by hand"])
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_groups_and_their_recomputation_change_nothing(kernel, by_hand, monkeypatch):
    monkeypatch.setattr(points, "by_hand", lambda x: by_hand)
    monkeypatch.setattr(points, "CHUNK", 100)
    conv = make((1, 1), kernel=kernel)
    edges = radius_edges(cloud((1, 1), 40), 0.6)
    x = features(edges, conv).requires_grad_()
    results = []
    for room, kept in ((1 << 30, 1 << 30), (1 << 10, 1 << 30), (1 << 10, 1 << 10)):
        monkeypatch.setattr(points, "ROOM", room)
        monkeypatch.setattr(points, "ROOM_BY_HAND", room)
        monkeypatch.setattr(points, "KEPT", kept)
        y = conv(x, edges)
        gradients = torch.autograd.grad(y.square().sum(), [x, *conv.parameters()])
        with torch.no_grad():
            torch.testing.assert_close(conv(x, edges), y, atol=1e-12, rtol=1e-12)
        results.append([y, *gradients])
    for whole, *others in zip(*results, strict=True):
        for other in others:
            torch.testing.assert_close(other, whole, atol=1e-11, rtol=1e-11)


def field_on_sphere(where, frames):
    """A smooth scalar and vector field as multivectors in frames."""
    scalar = torch.sin(2 * where[:, 0]) + where[:, 1] * where[:, 2]
    vector = torch.linalg.cross(torch.tensor([[0.3, 1.0, -0.5]]).double().expand_as(where), where)
    vector = vector * (1 + where[:, 2:])
    inner = (vector.unsqueeze(1) @ frames).squeeze(1)
    return torch.cat([scalar[:, None], inner, (scalar**2)[:, None]], 1).unsqueeze(1)  # oriented


def test_refining_the_sphere_converges_to_the_integral():
    """Errors fall at about third order in the distance of points."""
    space = sphere(2)
    conv = make((1, 1), 1, 1, radius=0.8, aggregation="integral", window=True)
    receivers = fibonacci_sphere(50)[0]
    values = []
    sizes = (400, 1600, 6400, 51200)
    for count in sizes:
        where, weights = fibonacci_sphere(count)
        edges = space.edges(where, 0.8, receivers=receivers, weights=weights)
        with torch.no_grad():
            values.append(conv(field_on_sphere(where, space.frames(where)), edges))
    errors = [relative(v, values[-1]) for v in values[:-1]]
    spacing_ratio = math.sqrt(sizes[2] / sizes[0])
    rate = math.log(errors[0] / errors[2]) / math.log(spacing_ratio)
    assert rate > 2.5, (errors, rate)
    assert errors[2] < 3e-4


def test_refining_a_torus_converges_to_the_integral():
    conv = make((1, 1), 1, 1, radius=0.4, aggregation="integral", window=True)
    receivers = torch.tensor([[0.31, 0.77], [0.05, 0.5]], dtype=torch.float64)
    values = []
    for n in (10, 20, 40, 160):
        axis = torch.arange(n, dtype=torch.float64) / n
        where = torch.cartesian_prod(axis, axis)
        wave = torch.sin(2 * math.pi * (where @ torch.tensor([1.0, 2.0]).double()))
        x = torch.stack([wave, wave**2, 1 - wave, wave + 0.5], -1).unsqueeze(1)
        edges = radius_edges(where, 0.4, receivers=receivers, period=(1.0, 1.0))
        with torch.no_grad():
            values.append(conv(x, edges.weighted(torch.full((n * n,), n**-2.0))))
    errors = [relative(v, values[-1]) for v in values[:-1]]
    assert math.log2(errors[1] / errors[2]) > 3, errors


@pytest.mark.parametrize("aggregation", points.AGGREGATIONS)
def test_initial_scale(aggregation):
    """Unit noise in, unit noise out, however it is added up."""
    torch.manual_seed(0)
    where = torch.rand(600, 2)
    radius = 0.15
    edges = radius_edges(where, radius, period=(1.0, 1.0))
    edges = edges.weighted(torch.full((600,), 1 / 600 if aggregation == "integral" else 1.0))
    neighbours = round(float(edges.degree.double().mean()))
    for kernel in ("implicit", "complete"):
        conv = CliffordSteerablePointConv(
            CliffordAlgebra((1, 1)), 16, 16, radius,
            kernel=kernel, aggregation=aggregation, neighbours=neighbours,
        )  # fmt: skip
        variance = float(conv(torch.randn(600, 16, 4), edges).detach().var())
        assert 0.5 < variance < 2, kernel


def test_means_divide_by_edges_and_weights():
    where = cloud((1, 1), 12)
    edges = radius_edges(where, 0.5).weighted(torch.rand(12))
    summing = make((1, 1))
    x = features(edges, summing)
    for aggregation, total in (
        ("mean", edges.degree.double()),
        ("weighted mean", torch.zeros(12).double().index_add(0, edges.receiver, edges.weight)),
    ):
        conv = CliffordSteerablePointConv(
            summing.algebra, 2, 3, kernel=summing.kernel, aggregation=aggregation
        ).double()
        expected = (naive(summing, x, edges) - bias_field(summing)) / total[:, None, None]
        assert relative(conv(x, edges), expected) < 1e-12


def test_from_many_points_to_few_and_back():
    where = cloud((1, 1, 1), 40)
    few = where[::8]
    down = make((1, 1, 1), 2, 4)
    up = make((1, 1, 1), 4, 2)
    x = torch.randn(40, 2, 8, dtype=torch.float64)
    coarse = down(x, radius_edges(where, 0.8, receivers=few))
    assert coarse.shape == (5, 4, 8)
    assert up(coarse, radius_edges(few, 0.8, receivers=where)).shape == (40, 2, 8)


def test_a_batch_of_clouds_is_each_cloud_by_itself():
    conv = make((1, 1, 1), aggregation="mean")
    clouds = [cloud((1, 1, 1), count, seed=count) for count in (3, 11, 1, 6)]
    where, number = torch.cat(clouds), torch.repeat_interleave(torch.tensor([3, 11, 1, 6]))
    for build in (all_pairs, lambda p, **o: nearest_edges(p, 4, **o)):
        together = build(where, batch=number)
        x = features(together, conv)
        parts = x.split([len(c) for c in clouds])
        each = [conv(part, build(c)) for part, c in zip(parts, clouds, strict=True)]
        torch.testing.assert_close(conv(x, together), torch.cat(each))
        stacked = Edges.cat([build(c) for c in clouds])
        torch.testing.assert_close(conv(x, stacked), torch.cat(each))


def test_nobody_near():
    conv = make((1, 1))
    far = 100 * torch.arange(4.0).double()[:, None].expand(4, 2)
    lonely = radius_edges(far, 1.0, loops=False)
    x = features(lonely, conv).requires_grad_()
    y = conv(x, lonely)
    assert torch.equal(y, bias_field(conv).expand_as(y))
    y.sum().backward()
    assert torch.equal(x.grad, torch.zeros_like(x))
    half = radius_edges(far, 1.0, receivers=far[:2] + torch.tensor([[0.0], [50.0]]))
    y = conv(features(half, conv), half)
    assert torch.equal(y[1], bias_field(conv))
    assert not torch.equal(y[0], bias_field(conv))
    for aggregation in ("mean", "weighted mean"):
        some = make((1, 1), aggregation=aggregation)
        weights = torch.zeros(4, requires_grad=True)
        zero = half.weighted(weights)
        y = some(features(zero, some), zero)
        assert torch.equal(y, bias_field(some).expand_as(y))
        y.sum().backward()
        assert weights.grad.isfinite().all()
    opposite = all_pairs(far[:2]).weighted(torch.tensor([1.0, -1.0]))
    y = some(features(opposite, some), opposite)
    assert torch.equal(y, bias_field(some).expand_as(y)), "no mean: their sum is zero"


def test_coincident_points_have_finite_gradients():
    for kernel in ("implicit", "complete"):
        conv = make((1, -1), kernel=kernel)
        where = torch.zeros(3, 2, dtype=torch.float64, requires_grad=True)
        edges = all_pairs(where)
        x = features(edges, conv)
        gradient = torch.autograd.grad(conv(x, edges).square().sum(), where)[0]
        assert gradient.isfinite().all()


def test_positions_and_features_have_right_gradients():
    conv = make((1, -1), 1, 1)
    where = cloud((1, -1), 4).requires_grad_()
    x = torch.randn(4, 1, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda p, f: conv(f, all_pairs(p)), (where, x))


def test_autocast_and_float32():
    conv = make((1, 1)).float()
    edges = radius_edges(cloud((1, 1)), 1.0)
    x = features(edges, conv).float()
    y = conv(x, edges)
    assert y.dtype == torch.float32
    with torch.autocast("cpu", torch.bfloat16):
        assert relative(conv(x, edges), y) < 1e-6
        assert conv(x.bfloat16(), edges).dtype == torch.bfloat16
    with pytest.raises(TypeError, match=r"field is torch.float64 but the layer's weights"):
        conv(x.double(), edges)


def test_forces_can_be_trained_on():
    """Gradients by positions have gradients."""
    for kernel in ("implicit", "complete"):
        conv = make((1, 1), 1, 1, kernel=kernel)
        where = cloud((1, 1), 3).requires_grad_()
        x = torch.randn(3, 1, 4, dtype=torch.float64)
        fields = partial(lambda f, c, p: c(f, all_pairs(p))[:, 0, :2], x, conv)
        assert torch.autograd.gradgradcheck(fields, where)


def test_copies_and_state():
    conv = make((1, -1), aggregation="integral", window=True)
    edges = all_pairs(cloud((1, -1))).prepared()
    x = features(edges, conv)
    y = conv(x, edges)
    same = copy.deepcopy((conv, edges))
    assert torch.equal(same[0](x, same[1]), y)
    loaded = make((1, -1), seed=1, aggregation="integral", window=True)
    assert not torch.equal(loaded(x, edges), y)
    loaded.load_state_dict(conv.state_dict())
    assert torch.equal(loaded(x, edges), y)
    assert torch.equal(pickle.loads(pickle.dumps(conv))(x, pickle.loads(pickle.dumps(edges))), y)
    conv.reset_parameters()
    assert not conv.bias.any()
    assert 0.1 < conv(x, edges).std() / make((1, -1), aggregation="integral", window=True)(
        x, edges
    ).std() < 10  # fmt: skip


@pytest.mark.usefixtures("fresh_compiler")
def test_compile_and_export(monkeypatch):
    conv = make((1, 1))
    edges = all_pairs(cloud((1, 1), 6)).prepared()
    x = features(edges, conv)
    monkeypatch.setattr(points, "ROOM", 18 * 72)  # two groups, recomputed for gradients
    monkeypatch.setattr(points, "KEPT", 0)
    compiled = torch.compile(conv, fullgraph=True, backend="aot_eager")
    gradients = [
        torch.autograd.grad(f(x, edges).square().sum(), list(conv.parameters()))
        for f in (compiled, conv)
    ]
    for a, b in zip(*gradients, strict=True):
        torch.testing.assert_close(a, b)

    class OnThesePoints(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = conv

        def forward(self, x):
            return self.conv(x, edges)

    program = torch.export.export(OnThesePoints(), (x,))
    torch.testing.assert_close(program.module()(x), conv(x, edges))


@pytest.mark.usefixtures("fresh_compiler")
def test_edges_of_another_dtype_are_sorted_once_and_compile(monkeypatch):
    where = cloud((1, 1), 6)
    weights, frames = torch.rand(6), torch.eye(2).double().expand(6, 2, 2)
    edges = radius_edges(where, 1.0, weights=weights).change_frames(frames)
    conv = make((1, 1), aggregation="weighted mean").float()
    x = features(edges, conv).float()
    y = conv(x, edges)
    assert relative(y, conv.double()(x.double(), edges)) < 1e-5
    conv.float()
    with monkeypatch.context() as patch:
        patch.setattr(Edges, "__post_init__", None)  # no more checks
        patch.setattr(geometry.edges, "bisect_right", None)  # no more sorting
        assert torch.equal(conv(x, edges), y)
    compiled = torch.compile(conv, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, edges), y)


def test_bad_input():
    algebra = CliffordAlgebra((1, 1))
    for options, message in (
        ({"radius": 0.0}, "radius must be positive, got 0.0"),
        ({"aggregation": "max"}, "one of sum, mean, weighted mean, integral, got 'max'"),
        (
            {"kernel": "free"},
            "one of the names complete, differential, implicit, got",
        ),
        ({"kernel": Implicit(extra_channels=1)}, "for grids, .* got 1 extra"),
        ({"kernel": CompleteKernel(algebra, 5, 3)}, "the kernel is for"),
    ):
        with pytest.raises(ValueError, match=message):
            CliffordSteerablePointConv(algebra, 2, 3, **options)
    edges = radius_edges(torch.rand(5, 2), 0.5)
    taps = torch.cartesian_prod(*[torch.linspace(-1, 1, 5)] * 2)
    operators = DifferentialKernel(algebra, 2, 3, taps, (5, 5))
    with pytest.raises(ValueError, match="differential kernels need a grid"):
        CliffordSteerablePointConv(algebra, 2, 3, kernel=operators)(torch.randn(5, 2, 4), edges)
    conv = CliffordSteerablePointConv(algebra, 2, 3)
    with pytest.raises(ValueError, match=r"expected features \(5, 2, 4\) for Edges"):
        conv(torch.randn(6, 2, 4), edges)
    with pytest.raises(ValueError, match="channel"):
        conv(torch.randn(5, 3, 4), edges)
    with pytest.raises(ValueError, match="3D"):
        conv(torch.randn(5, 2, 4), radius_edges(torch.rand(5, 3), 0.5))
