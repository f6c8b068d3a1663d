"""Convolution by derivatives equals direct convolution with the same taps."""

import copy
from collections import Counter

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from cscnn import CliffordAlgebra
from cscnn.conv import use_backend
from cscnn.conv.derivatives import axes, engine
from cscnn.conv.derivatives.cost import derivatives_are_faster
from cscnn.conv.derivatives.plan import Differences, levels, make_plan
from cscnn.conv.padding import MODES
from cscnn.conv.sizes import ConvSizes
from cscnn.conv.spectral import cost
from cscnn.kernels import Differential
from cscnn.kernels.differential import Derivative, operators_up_to
from cscnn.testing import grid_equivariance_errors, relative_error
from tests.conftest import metric_name
from tests.conv.builders import build

GRIDS = {
    (1,): (11,),
    (1, 1): (7, 9),
    (1, -1): (9, 6),
    (-1, 1): (6, 7),
    (1, 1, 1): (5, 6, 7),
    (1, -1, -1): (7, 5, 6),
    (1, 1, 1, 1): (5, 5, 6, 5),
    (1, -1, -1, -1): (5, 6, 5, 5),
}


def differential(
    metric, c_in=2, c_out=3, size=5, order=4, group="O", backend="derivatives", **options
):
    torch.manual_seed(0)
    kernel = Differential(order=order, group=group)
    conv = build(metric, c_in, c_out, size, kernel=kernel, **options)
    use_backend(conv, backend)
    return conv


def compare(conv, x):
    """Relative deviation of output and of all gradients, from direct convolution."""
    results = []
    for backend in ("direct", "derivatives"):
        use_backend(conv, backend)
        x = x.detach().requires_grad_()
        y = conv(x)
        weight = torch.linspace(-1, 2, y.numel(), dtype=y.dtype).reshape(y.shape).sin()
        results.append(
            [y.detach(), *torch.autograd.grad((y * weight).sum(), [x, *conv.parameters()])]
        )
    assert results[0][0].shape == results[1][0].shape
    assert not torch.equal(results[0][0], results[1][0])  # different sums
    return max(relative_error(a, b) for a, b in zip(results[1], results[0], strict=True))


def field(metric, batch=2, channels=2, grid=None, dtype=torch.float64):
    return torch.randn(batch, channels, *(grid or GRIDS[metric]), 2 ** len(metric), dtype=dtype)


@pytest.mark.parametrize("group", ["O", "SO"])
@pytest.mark.parametrize("metric", GRIDS, ids=metric_name)
def test_equals_direct(metric, group):
    conv = differential(metric, group=group, spacing=(1.0, 0.7, 1.3, 0.9)[: len(metric)])
    assert compare(conv.double(), field(metric)) < 1e-12
    assert compare(conv.float(), field(metric, dtype=torch.float32)) < 1e-5


@pytest.mark.parametrize(
    ("order", "size"), [(0, 1), (1, 3), (2, 3), (2, 5), (3, 5), (4, 7), (5, 7), (6, 7)]
)
@pytest.mark.parametrize("metric", [(1, -1), (1, 1, 1)], ids=metric_name)
def test_every_order_and_number_of_taps(metric, order, size):
    conv = differential(metric, order=order, size=size).double()
    x = field(metric, grid=(8, 7, 9)[: len(metric)])
    if order == 0:  # a product of matrices at every point, done by direct convolution
        assert torch.equal(conv(x), copy.deepcopy(conv)(x))
    else:
        assert compare(conv, x) < 1e-12


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("metric", [(1,), (1, -1), (1, -1, -1)], ids=metric_name)
def test_every_padding_mode(metric, mode, monkeypatch):
    conv = differential(metric, padding_mode=mode).double()
    x = field(metric, grid=(9, 8, 11)[: len(metric)])
    assert compare(conv, x) < 1e-12
    monkeypatch.setattr(engine, "LONGEST_PIECE", 3)
    assert compare(conv, x) < 1e-12
    monkeypatch.setattr(axes, "LONGEST", 8)  # some axes are padded before
    monkeypatch.setattr("cscnn.conv.derivatives.operator.LONGEST", 8)
    assert compare(conv, x) < 1e-12


@pytest.mark.parametrize("padding", [0, 1, (2, 0), (5, 4)])
@pytest.mark.parametrize("mode", ["zeros", "circular", ("reflect", "extrapolate")])
def test_every_amount_of_padding(padding, mode):
    conv = differential((1, -1), size=(7, 5), padding=padding, padding_mode=mode).double()
    assert compare(conv, field((1, -1), grid=(9, 8))) < 1e-12


@pytest.mark.parametrize("metric", GRIDS, ids=metric_name)
def test_a_single_point(metric):
    """Grids as large as the kernel: every axis has one point left, or one axis has more."""
    conv = differential(metric, padding=0).double()
    for first in (5, 8):
        grid = (first, *(5,) * (len(metric) - 1))
        assert compare(conv, field(metric, grid=grid)) < 1e-12


@pytest.mark.parametrize("values", [1, 500])
def test_boxes_and_groups_change_nothing(monkeypatch, values):
    monkeypatch.setattr(engine, "LONGEST_PIECE", 4)
    monkeypatch.setattr(engine, "BOX_POINTS", 20)
    monkeypatch.setitem(engine.BOX_VALUES, "cpu", values)
    cut = engine.cut_field((9, 7), 3, 5, "cpu")
    seen = Counter(
        (sample, *point)
        for box in engine.boxes((9, 7), 3, cut)
        for sample in range(3)[box.samples]
        for point in torch.cartesian_prod(*(torch.arange(*r) for r in box.ranges)).tolist()
    )
    assert len(seen) == 3 * 9 * 7
    assert set(seen.values()) == {1}
    assert (cut.channels < 5) == (values == 1)
    conv = differential((1, 1), c_in=5, c_out=5, padding_mode="circular").double()
    assert compare(conv, field((1, 1), batch=3, channels=5, grid=(9, 7))) < 1e-12


def test_memory_does_not_grow_with_the_grid():
    class Largest(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor) and result.dtype == x.dtype:
                sizes.append(result.untyped_storage().nbytes())
            return result

    kernel = differential((1, 1), c_in=4, c_out=4).kernel
    options = ((1, 1), False, "O", 4, (5, 5), kernel.steps, (2, 2), (0, 0))
    weights = kernel.operator_weights().detach()
    largest = []
    for size in (96, 192):
        x, sizes = torch.randn(1, 16, size, size), []
        with Largest():
            engine.convolve(x, weights, None, Differences(*options))
            engine.gradients(x, x, weights, Differences(*options), True, True)
        largest.append(max(s for s in sizes if s != x.untyped_storage().nbytes()))
    assert largest[0] == largest[1]


def test_any_memory_layout():
    conv = differential((1, -1)).double()
    x = field((1, -1))
    expected = conv(x)
    for order in ((0, 1, 4, 2, 3), (4, 0, 2, 1, 3), (3, 2, 1, 0, 4)):
        inverse = sorted(range(5), key=order.__getitem__)
        assert (
            relative_error(conv(x.permute(order).contiguous().permute(inverse)), expected) < 1e-14
        )
    constant = field((1, -1), grid=(1, 1)).expand(2, 2, 9, 6, 4)
    assert relative_error(conv(constant), conv(constant.contiguous())) < 1e-14
    permuted = expected.permute(4, 3, 2, 1, 0).contiguous().permute(4, 3, 2, 1, 0)
    (a,) = torch.autograd.grad(conv(x.requires_grad_()), x, permuted)
    (b,) = torch.autograd.grad(conv(x), x, expected)
    assert relative_error(a, b) < 1e-14


def test_batches():
    conv = differential((1, 1))
    x = field((1, 1), batch=3, dtype=torch.float32)
    assert relative_error(conv(x), torch.cat([conv(sample[None]) for sample in x])) < 1e-6
    empty = x[:0].requires_grad_()
    y = conv(empty)
    assert y.shape == (0, 3, 7, 9, 4)
    y.sum().backward()
    assert empty.grad.shape == empty.shape


def test_commutes_with_the_symmetries_of_the_grid():
    conv = differential((1, -1, -1), c_out=2, padding_mode="circular")
    errors = grid_equivariance_errors(conv, conv.algebra, (1, 2, 6, 5, 5))
    assert max(errors.values()) < 1e-12


# --- derivatives of convolutions ------------------------------------------------------------------


def test_gradients_of_gradients():
    conv = differential((1, 1), c_in=1, c_out=1, order=2, size=3, padding_mode="circular").double()
    x = field((1, 1), batch=1, channels=1, grid=(3, 4)).requires_grad_()
    assert torch.autograd.gradcheck(conv, (x,))
    assert torch.autograd.gradgradcheck(conv, (x,))
    penalties = []
    for backend in ("derivatives", "direct"):
        use_backend(conv, backend)
        (g,) = torch.autograd.grad(conv(x).pow(3).sum(), x, create_graph=True)
        penalties.append(torch.autograd.grad(g.square().sum(), list(conv.parameters())))
    scale = max(b.abs().max() for b in penalties[1])
    assert all((a - b).abs().max() < 1e-10 * scale for a, b in zip(*penalties, strict=True))


@pytest.mark.parametrize("frozen", ["field", "kernel", "kernel and field"])
def test_only_the_gradients_that_are_needed(frozen):
    conv = differential((1, 1))
    conv.kernel.requires_grad_("kernel" not in frozen)
    x = field((1, 1), dtype=torch.float32).requires_grad_("field" not in frozen)
    conv(x).sum().backward()
    assert (x.grad is None) == ("field" in frozen)
    assert (conv.kernel.weight.grad is None) == ("kernel" in frozen)
    assert conv.bias.grad is not None


# --- in production --------------------------------------------------------------------------------


def test_half_precision_computes_in_single():
    conv = differential((1, 1))
    x = field((1, 1), dtype=torch.float32)
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


@torch.no_grad()
def test_weights_are_never_stale():
    conv = differential((1, 1)).eval()
    x = field((1, 1), dtype=torch.float32)
    first = conv(x)
    assert torch.equal(conv(x), first)
    conv.kernel.weight.data.mul_(2)
    conv.bias.zero_()
    assert relative_error(conv(x), copy.deepcopy(conv)(x)) == 0
    assert relative_error(conv(x), first) > 0.1


def test_a_kernel_cast_without_its_convolution():
    conv = differential((1, 1))
    conv.kernel.double()
    with pytest.raises(ValueError, match=r"the kernel is torch\.float64"):
        conv(field((1, 1), dtype=torch.float32))


@pytest.mark.usefixtures("fresh_compiler")
def test_compiled_training():
    conv = differential((1, 1), order=2, size=3)
    compiled = torch.compile(conv, fullgraph=True, backend="aot_eager")
    for size in (6, 7, 8):
        x = field((1, 1), grid=(6, size), dtype=torch.float32)
        grads = [
            torch.autograd.grad(f(x).square().sum(), list(conv.parameters()))
            for f in (compiled, conv)
        ]
        assert max(relative_error(a, b) for a, b in zip(*grads, strict=True)) < 1e-5


def test_exports_transforms_and_strides_are_direct():
    conv = differential((1, 1), c_out=2)
    x = field((1, 1), batch=3, dtype=torch.float32)
    program = torch.export.export(conv, (x,))
    assert "derivative_conv" not in str(program.graph)
    assert relative_error(program.module()(x), conv(x)) < 1e-5
    together = torch.func.vmap(lambda v: conv(v[None])[0])(x)
    assert relative_error(together, conv(x)) < 1e-5
    with torch.autograd.forward_ad.dual_level():
        dual = conv(torch.autograd.forward_ad.make_dual(x, x))
        derivative = torch.autograd.forward_ad.unpack_dual(dual).tangent
    assert relative_error(derivative, conv(x) - conv(torch.zeros_like(x))) < 1e-5
    assert differential((1, 1), stride=2)(x).shape == (3, 3, 4, 5, 4)


def test_on_the_meta_device():
    conv = differential((1, 1), padding=1)
    x = torch.empty(1, 2, 6, 6, 4, device="meta")
    assert conv.to("meta")(x).shape == (1, 3, 4, 4, 4)


# --- the choice -----------------------------------------------------------------------------------


def faster(grid, channels, batch=1, taps=5):
    d = len(grid)
    flat, shape = channels << d, (grid, (taps,) * d, (0,) * d, (False,) * d)
    sizes = ConvSizes(*shape, batch, flat, flat, parity=True, itemsize=4)
    return derivatives_are_faster(sizes, ((1,) * d, False, "O", 4))


def test_derivatives_where_taps_are_many(monkeypatch):
    rates = cost.DEFAULT_RATES
    monkeypatch.setattr("cscnn.conv.derivatives.cost.device_rates", lambda device: rates)
    monkeypatch.setattr(cost, "device_rates", lambda device: rates)
    cost.plan_backend.cache_clear()
    assert faster((32, 32, 32), 12)
    assert faster((12, 12, 12, 12), 2)
    assert not faster((512,), 32, batch=8)
    assert not faster((16, 16), 4)


def test_automatic_choice(monkeypatch):
    used = []

    def record(x, *args):
        used.append(x.shape)
        return torch.zeros(1, 12, *x.shape[2:])

    monkeypatch.setattr("cscnn.conv.grid.derivative_conv", record)
    for answer in (True, False):
        monkeypatch.setattr("cscnn.conv.grid.choose_derivatives", lambda *_, a=answer: a)
        for backend in ("auto", "spectral", "direct"):
            used.clear()
            differential((1, 1), backend=backend)(field((1, 1), batch=1, dtype=torch.float32))
            assert bool(used) == (answer and backend == "auto")


def test_other_kernels_choose_by_themselves():
    conv = build((1, 1), kernel="complete")
    x = field((1, 1), dtype=torch.float32)
    expected = conv(x)
    use_backend(conv, "derivatives")
    assert torch.equal(conv(x), expected)


# --- the plan -------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", [(1,), (1, -1), (-1, 1, -1), (1, -1, -1, -1)], ids=metric_name)
def test_levels_multiply_out_to_the_derivatives(metric):
    _, derivatives, _ = operators_up_to(CliffordAlgebra(metric), "O", 6)
    fields = [Counter({(): 1})]
    for level in reversed(levels(derivatives, metric)):
        made = []
        for terms in level:
            total = Counter()
            for source, order, factor in terms:
                for exponents, value in fields[source].items():
                    total[order, *exponents] += factor * value
            made.append(total)
        fields = made
    for derivative, made in zip(derivatives, fields, strict=True):
        assert made == Counter(derivative.along_axes(metric))


def test_derivatives_are_made_once():
    """Of the 21 derivatives a blade of R^3 has only those made that are used, each for one sum."""
    plan = make_plan((1, 1, 1), False, "O", 4, False)
    made = [len(blade.uses) for blade in plan.blades]
    assert made == [9, 15, 15, 15, 17, 17, 17, 9]
    assert all(len(uses) == 1 for blade in plan.blades for uses in blade.uses)
    assert Derivative((0, 0, 0), 2) in operators_up_to(CliffordAlgebra((1, 1, 1)), "O", 4)[1]
    assert sum(len(n) * (g.stop - g.start) for n, g in zip(*plan[1:], strict=True)) == 64
