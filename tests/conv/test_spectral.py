"""Spectral convolution equals direct convolution, in values and in every gradient."""

import copy

import pytest
import torch

from cscnn.conv.padding import MODES
from cscnn.conv.spectral import tiles
from cscnn.conv.spectral.cost import candidate_cuts
from cscnn.conv.spectral.operator import spectral_conv
from cscnn.conv.spectral.overlap import Tiling, cut_axis
from cscnn.kernels import Complete, Implicit
from cscnn.testing import grid_equivariance_errors, relative_error
from tests.conv.builders import build


def compare(conv, x):
    """Relative deviation of output and of all gradients, spectral against direct."""
    results = []
    for backend in ("direct", "spectral"):
        conv.backend = backend
        x = x.detach().requires_grad_()
        y = conv(x)
        weight = torch.linspace(-1, 2, y.numel(), dtype=y.dtype).reshape(y.shape).sin()
        grads = torch.autograd.grad((y * weight).sum(), [x, *conv.parameters()])
        results.append([y.detach(), *grads])
    assert results[0][0].shape == results[1][0].shape
    scale = max(g.abs().max() for g in results[0][2:])
    return max(
        ((a - b).abs().max() / b.abs().max().clamp(min=1e-3 * scale)).item()
        for a, b in zip(results[1], results[0], strict=True)
    )


GRIDS = [
    ((1,), (11,)),
    ((1, 1), (9, 14)),
    ((1, -1), (20, 7)),
    ((1, 1, 1), (5, 8, 7)),
    ((1, -1, -1), (3, 7, 10)),
    ((1, -1, -1, -1), (3, 4, 5, 3)),
]


@pytest.mark.parametrize(("metric", "grid"), GRIDS, ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_equals_direct(metric, grid, mode):
    conv = build(metric, padding_mode=mode).double()
    x = torch.randn(2, 2, *grid, 2 ** len(metric), dtype=torch.float64)
    assert compare(conv, x) < 1e-12


@pytest.mark.parametrize(("metric", "grid"), GRIDS, ids=str)
def test_equals_direct_in_single_precision(metric, grid):
    conv = build(metric, kernel="complete")
    assert compare(conv, torch.randn(2, 2, *grid, 2 ** len(metric))) < 2e-5


@pytest.mark.parametrize("group", ["O", "SO", "O+", "SO+"])
@pytest.mark.parametrize("metric", [(1, -1), (1, -1, -1)])
def test_every_group(metric, group):
    """Also those without v -> -v, whose spectra are complex."""
    conv = build(metric, kernel=Complete(group=group, hidden_dim=4)).double()
    grid = (6, 7, 5)[: len(metric)]
    assert compare(conv, torch.randn(2, 2, *grid, 2 ** len(metric), dtype=torch.float64)) < 1e-12


def test_parity_is_what_the_kernel_has():
    """The control: claiming a symmetry that the kernel lacks gives something else."""
    conv = build((1, -1), kernel=Complete(group="O+", hidden_dim=4)).double()
    weight = conv.expanded_kernel().detach()
    x = torch.randn(1, 8, 6, 6, dtype=torch.float64)
    right, wrong = (
        spectral_conv(x, weight, None, (0, 0), (False, False), (1, 2), (1, 2, 1), parity)
        for parity in (False, True)
    )
    direct = torch.nn.functional.conv2d(x, weight, padding=1)
    assert relative_error(right, direct) < 1e-13
    assert relative_error(wrong, direct) > 1e-2


@pytest.mark.parametrize("padding", [0, 1, (2, 0), (4, 3)])
@pytest.mark.parametrize("mode", ["zeros", "circular"])
def test_every_amount_of_padding(padding, mode):
    conv = build((1, 1), kernel_size=(5, 3), padding=padding, padding_mode=mode).double()
    assert compare(conv, torch.randn(1, 2, 9, 8, 4, dtype=torch.float64)) < 1e-12


@pytest.mark.parametrize("circular", [False, True])
@pytest.mark.parametrize("half", [1, 2, 3])
def test_every_way_to_cut_an_axis(half, circular):
    conv = build((1,), kernel_size=2 * half + 1).double()
    weight, bias = conv.expanded_kernel().detach(), torch.randn(6, dtype=torch.float64)
    size, shifts = 9, [0] if circular else range(-half, half + 1)
    x = torch.randn(2, 4, size, dtype=torch.float64)
    for shift in shifts:
        amount = half - shift
        padded = torch.nn.functional.pad(x, (amount,) * 2, "circular" if circular else "constant")
        direct = torch.nn.functional.conv1d(padded, weight, bias)
        counts = {cut_axis(size, shift, circular, half, q).count for q in range(1, size + 1)}
        assert len(counts) >= 3
        for count in counts:
            y = spectral_conv(x, weight, bias, (shift,), (circular,), (count,), (1, 1), True)
            assert relative_error(y, direct) < 1e-13, (shift, count)


@pytest.mark.parametrize("limit", [1, 20_000])
def test_small_chunks_change_nothing(monkeypatch, limit):
    monkeypatch.setitem(tiles.CHUNK_BYTES, "cpu", limit)
    conv = build((1, 1)).double()
    x = torch.randn(3, 2, 30, 9, 4, dtype=torch.float64)
    axes = [cut_axis(n, 0, False, 1, 4) for n in (30, 9)]
    tiling = Tiling(tuple(axes), (1, 2, 1), True)
    chunks = list(tiles.FieldTiles(tiling.axes, tiling.grades, 3, x).chunks(2))
    seen = [(b, t) for bs, ts in chunks for b in range(3)[bs] for t in range(4)[ts]]
    assert sorted(seen) == [(b, t) for b in range(3) for t in range(4)]
    assert len(chunks) > 1
    assert compare(conv, x) < 1e-12


@pytest.mark.parametrize("mode", ["circular", "zeros"])
@pytest.mark.parametrize("metric", [(1, 1), (1, -1, -1)])
def test_commutes_with_the_symmetries_of_the_grid(metric, mode):
    conv = build(metric, padding_mode=mode, backend="spectral")
    errors = grid_equivariance_errors(conv, conv.algebra, (1, 2, *(6, 5, 5)[: len(metric)]))
    assert errors["point group"] < 1e-12
    if mode == "circular":
        assert errors["translation"] < 1e-12
    else:
        assert errors["translation"] > 1e-3


def test_gradients_of_gradients():
    conv = build((1, 1), c_in=1, c_out=1, backend="spectral", padding_mode="circular").double()
    x = torch.randn(1, 1, 4, 5, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(conv, (x,))
    penalties = []
    for backend in ("spectral", "direct"):
        conv.backend = backend
        (g,) = torch.autograd.grad(conv(x).pow(3).sum(), x, create_graph=True)
        penalties.append(torch.autograd.grad(g.square().sum(), list(conv.parameters())))
    scale = max(b.abs().max() for b in penalties[1])
    assert all((a - b).abs().max() < 1e-10 * scale for a, b in zip(*penalties, strict=True))


@pytest.mark.parametrize("frozen", ["field", "kernel", "kernel and field"])
def test_only_the_gradients_that_are_needed(frozen):
    conv = build((1, 1), backend="spectral")
    conv.kernel.requires_grad_("kernel" not in frozen)
    x = torch.randn(1, 2, 6, 6, 4, requires_grad="field" not in frozen)
    conv(x).sum().backward()
    assert (x.grad is None) == ("field" in frozen)
    assert all((p.grad is None) == ("kernel" in frozen) for p in conv.kernel.parameters())
    assert conv.bias.grad is not None


def test_cached_spectra_are_never_stale():
    conv = build((1, 1), backend="spectral").eval()
    x = torch.randn(1, 2, 6, 7, 4)
    with torch.no_grad():
        first = conv(x)
        assert conv._cache._matrices
        assert torch.equal(conv(x), first)
        conv.kernel.head.mul_(2)
        conv.bias.zero_()
        assert relative_error(conv(x), copy.deepcopy(conv)(x)) == 0
        assert relative_error(conv(x), first) > 0.1
        other = torch.randn(1, 2, 9, 5, 4)  # other shapes, other tiles
        assert conv(other).shape == (1, 3, 9, 5, 4)
    assert relative_error(conv(x).detach(), conv.train()(x)) < 1e-6


def test_half_precision_computes_in_single():
    conv = build((1, 1), backend="spectral")
    x = torch.randn(2, 2, 8, 8, 4)
    exact = conv(x)
    with torch.autocast("cpu", torch.bfloat16):
        y = conv(x)
        y.float().square().sum().backward()
    assert y.dtype == torch.bfloat16
    rounded = x.bfloat16().float()
    assert (y != conv(rounded).bfloat16()).float().mean() < 0.01  # rounded only at the ends
    assert all(p.grad is not None and p.grad.isfinite().all() for p in conv.parameters())
    low = copy.deepcopy(conv).bfloat16()
    assert relative_error(low(x.bfloat16()).float(), exact) < 0.05


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def assert_same_gradients(compiled, conv, x):
    grads = [
        torch.autograd.grad(f(x).square().sum(), list(conv.parameters())) for f in (compiled, conv)
    ]
    scale = max(g.abs().max() for g in grads[1])
    assert all((a - b).abs().max() < 1e-4 * scale for a, b in zip(*grads, strict=True))


@pytest.mark.usefixtures("two_threads", "fresh_compiler")
def test_compiled_training():
    """Through the code generator: with two threads, indexing in the kernel once crashed it."""
    conv = build((1, 1, 1), c_out=2, backend="spectral", kernel=Implicit(num_layers=2))
    assert_same_gradients(torch.compile(conv, fullgraph=True), conv, torch.randn(1, 2, 6, 6, 5, 8))


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("dynamic", [None, True])
def test_compiled_for_several_sizes(dynamic):
    conv = build((1, 1), backend="spectral")
    compiled = torch.compile(conv, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for batch, size in ((1, 6), (1, 7), (2, 8)):
        assert_same_gradients(compiled, conv, torch.randn(batch, 2, 6, size, 4))


def test_transforms_and_strides_use_direct_convolution():
    conv = build((1, 1), c_out=2, backend="spectral")
    x = torch.randn(3, 2, 6, 6, 4)
    together = torch.func.vmap(lambda v: conv(v[None])[0])(x)
    assert relative_error(together, conv(x)) < 1e-5
    tangent = torch.randn_like(x)
    with torch.autograd.forward_ad.dual_level():
        dual = conv(torch.autograd.forward_ad.make_dual(x, tangent))
        derivative = torch.autograd.forward_ad.unpack_dual(dual).tangent
    no_bias = conv(tangent) - conv(torch.zeros_like(tangent))
    assert relative_error(derivative, no_bias) < 1e-5
    assert build((1, 1), stride=2, backend="spectral")(x).shape == (3, 3, 3, 3, 4)


def test_empty_batch():
    assert build((1, 1), backend="spectral")(torch.randn(0, 2, 6, 6, 4)).shape == (0, 3, 6, 6, 4)


def test_tiles_cover_the_axis():
    for size, shift, circular, half in ((32, 0, False, 3), (5, 2, False, 3), (17, 0, True, 2)):
        for axis in candidate_cuts(size, shift, circular, half):
            assert axis.count * axis.step >= axis.out > (axis.count - 1) * axis.step
            assert axis.first + axis.step <= axis.tile


@torch.no_grad()
def test_autocast_and_the_cache():
    conv = build((1, 1), backend="spectral").eval()
    x = torch.randn(2, 2, 8, 8, 4)
    exact = conv(x)
    for _ in range(2):
        with torch.autocast("cpu", torch.bfloat16):
            assert conv(x).dtype == torch.bfloat16
        assert torch.equal(conv(x), exact)
    with torch.autocast("cpu", torch.bfloat16):
        assert conv.double()(x.double()).dtype == torch.float64


def test_long_kernels_have_short_tiles():
    axes = candidate_cuts(16384, 0, False, 50)
    assert max(a.tile for a in axes) < 400
    conv = build((1,), kernel_size=101, kernel="complete").double()
    assert compare(conv, torch.randn(1, 2, 700, 2, dtype=torch.float64)) < 1e-12


def test_options_changed_afterwards():
    conv = build((1, 1)).double()
    x = torch.randn(1, 2, 7, 7, 4, dtype=torch.float64)
    compare(conv, x)
    conv.padding_mode = ("circular",) * 2
    assert compare(conv, x) < 1e-12


def test_bias_alone_with_create_graph():
    conv = build((1, 1), backend="spectral")
    conv.kernel.requires_grad_(False)
    y = conv(torch.randn(1, 2, 6, 6, 4))
    (g,) = torch.autograd.grad(y.square().sum(), conv.bias, create_graph=True)
    assert g.isfinite().all()


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("backend", ["auto", "spectral"])
def test_compiled_for_many_sizes(backend):
    """Twenty shapes need a handful of graphs, fewer than the compiler's limit."""
    conv = build((1, 1), 1, 1, kernel="complete", backend=backend)
    graphs = []

    def compiler(graph, inputs):
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(conv, fullgraph=True, backend=compiler)
    shapes = [(batch, 8, 8) for batch in range(2, 12)] + [(3, size, 9) for size in range(8, 18)]
    for batch, *grid in shapes:
        x = torch.randn(batch, 1, *grid, 4)
        assert relative_error(compiled(x), conv(x)) < 1e-5
    assert len(graphs) <= 5


def test_on_the_meta_device_and_traced():
    conv = build((1, 1), backend="spectral")
    assert conv.to("meta")(torch.empty(1, 2, 6, 6, 4, device="meta")).shape == (1, 3, 6, 6, 4)
