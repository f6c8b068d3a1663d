import copy
import itertools
import pickle

import numpy as np
import paper
import pytest
import torch
from conftest import metric_name

from cscnn import CliffordAlgebra, CliffordSteerableConv
from cscnn.conv.padding import MODES, pad
from cscnn.kernels import CompleteKernel
from cscnn.testing import grid_equivariance_errors, relative_error

FAST = {"num_layers": 2, "hidden_dim": 4}


def build(metric, c_in=2, c_out=3, kernel_size=3, kernel="implicit", **options):
    chosen = FAST if kernel == "implicit" else {"hidden_dim": 4}
    chosen = {**chosen, **options.pop("kernel_options", {})}
    conv = CliffordSteerableConv(
        CliffordAlgebra(metric),
        c_in,
        c_out,
        kernel_size,
        kernel=kernel,
        kernel_options=chosen,
        **options,
    )
    if conv.bias is not None:
        torch.nn.init.normal_(conv.bias)
    return conv


# --- the function ---------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", [(1,), (1, 1), (1, -1), (-1, 1, 1)], ids=metric_name)
def test_is_the_papers_algorithm(metric):
    d = len(metric)
    conv = build(metric, 2, 2, kernel_size=3, kernel_options={"num_layers": 3}).double()
    algebra = paper.Algebra(metric)
    p = {name: value.detach().numpy() for name, value in conv.kernel.named_parameters()}
    offsets = list(itertools.product((-1, 0, 1), repeat=d))
    scale = 20 / 3 ** (d - 1)
    matrices = [paper.kernel_matrix(algebra, p, v, scale, 2, 2, 3) for v in offsets]
    expected = torch.tensor(np.stack(matrices, -1)).flatten(2, 3).flatten(0, 1)
    expected = expected.reshape(2 * 2**d, 2 * 2**d, *[3] * d)
    assert relative_error(conv.expanded_kernel(), expected) < 1e-12
    x = np.random.default_rng(0).normal(size=(2, *(4, 3, 2)[:d], 2**d))
    y = paper.convolve(x, matrices, offsets, conv.bias.detach().numpy())
    assert relative_error(conv(torch.tensor(x)[None])[0], torch.tensor(y)) < 1e-12


@pytest.mark.parametrize("metric", [(1, -1), (1, 1, 1), (1, -1, -1, -1)], ids=metric_name)
def test_strides_padding_and_sizes_in_every_dimension(metric):
    """Against the definition, with everything different along every axis."""
    d = len(metric)
    size, stride, padding = (3, 1, 5, 3)[:d], (1, 2, 2, 1)[:d], (0, 2, 1, 3)[:d]
    conv = build(
        metric, 1, 2, kernel_size=size, kernel="complete", stride=stride, padding=padding
    ).double()
    grid = (5, 4, 6, 3)[:d]
    x = torch.randn(2, 1, *grid, 2**d, dtype=torch.float64)
    y = conv(x)
    kernel = conv.expanded_kernel().reshape(2, 2**d, 1, 2**d, *size)
    padded = torch.zeros(
        2, 1, *(n + 2 * p for n, p in zip(grid, padding, strict=True)), 2**d
    ).double()
    inner = tuple(slice(p, p + n) for n, p in zip(grid, padding, strict=True))
    padded[(slice(None), slice(None), *inner)] = x
    out = tuple(
        (n + 2 * p - k) // s + 1 for n, p, k, s in zip(grid, padding, size, stride, strict=True)
    )
    assert y.shape == (2, 2, *out, 2**d)
    for point in [(0,) * d, tuple(n - 1 for n in out), tuple(n // 2 for n in out)]:
        window = tuple(slice(i * s, i * s + k) for i, s, k in zip(point, stride, size, strict=True))
        patch = padded[(slice(None), slice(None), *window)]
        expected = torch.einsum(
            "ocibn,zinb->zoc", kernel.flatten(4), patch.flatten(2, -2)
        ) + torch.nn.functional.pad(conv.bias[:, None], (0, 2**d - 1))
        assert relative_error(y[(slice(None), slice(None), *point)], expected) < 1e-12


@pytest.mark.parametrize("mode", MODES)
def test_padding_modes_are_numpys(mode):
    names = {"zeros": "constant", "circular": "wrap", "replicate": "edge"}
    x = torch.randn(1, 2, 5, 4)
    ours = pad(x, (2, 3), (mode, mode))
    theirs = np.pad(x.numpy(), ((0, 0), (0, 0), (2, 2), (3, 3)), mode=names.get(mode, mode))
    assert torch.equal(ours, torch.from_numpy(theirs))


def test_padding_mode_per_axis():
    conv = build((1, 1), padding_mode=("circular", "reflect")).double()
    x = torch.randn(1, 2, 6, 5, 4, dtype=torch.float64)
    padded = np.pad(x.numpy(), ((0, 0), (0, 0), (1, 1), (0, 0), (0, 0)), mode="wrap")
    padded = np.pad(padded, ((0, 0), (0, 0), (0, 0), (1, 1), (0, 0)), mode="reflect")
    valid = copy.deepcopy(conv)
    valid.padding, valid.padding_mode = (0, 0), ("zeros", "zeros")
    assert relative_error(conv(x), valid(torch.from_numpy(padded))) < 1e-13


# --- symmetry -------------------------------------------------------------------------------------

SYMMETRIC = [
    ((1,), (7,)),
    ((1, 1), (6, 6)),
    ((1, 1), (5, 7)),
    ((1, -1), (6, 6)),
    ((1, 1, 1), (4, 4, 4)),
    ((1, -1, -1), (3, 5, 5)),
    ((1, -1, -1, -1), (3, 4, 4, 3)),
]


@pytest.mark.parametrize(("metric", "grid"), SYMMETRIC, ids=str)
@pytest.mark.parametrize("kernel", ["implicit", "complete"])
@pytest.mark.parametrize("mode", ["circular", "zeros", "symmetric"])
def test_commutes_with_the_symmetries_of_the_grid(metric, grid, kernel, mode):
    conv = build(metric, kernel=kernel, padding_mode=mode)
    errors = grid_equivariance_errors(conv, conv.algebra, (1, 2, *grid))
    assert errors["point group"] < 1e-12
    if mode == "circular":
        assert errors["translation"] < 1e-12
    else:  # the control: walls are not invariant
        assert errors["translation"] > 1e-3


def test_what_cannot_be_checked_is_refused():
    conv = build((1, 1), stride=2)
    with pytest.raises(ValueError, match=r"must keep the grid, it maps \(6, 6\) to \(3, 3\)"):
        grid_equivariance_errors(conv, conv.algebra, (1, 2, 6, 6))
    with pytest.raises(ValueError, match=r"shape must be \(batch, channels, \*, \*\)"):
        grid_equivariance_errors(conv, conv.algebra, (1, 2, 6))


def test_plain_convolutions_do_not():
    class Plain(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = torch.nn.Conv2d(8, 8, 3, padding=1, padding_mode="circular")

        def forward(self, x):
            y = self.conv(x.movedim(-1, 2).flatten(1, 2))
            return y.unflatten(1, (2, 4)).movedim(2, -1)

    errors = grid_equivariance_errors(Plain(), CliffordAlgebra((1, 1)), (1, 2, 6, 6))
    assert errors["translation"] < 1e-12
    assert errors["point group"] > 0.1


@pytest.mark.parametrize("group", ["SO", "O+", "SO+"])
def test_smaller_groups_keep_only_their_symmetries(group):
    conv = build((1, -1, -1), kernel="complete", kernel_options={"group": group}).double()
    algebra = conv.algebra
    x = torch.randn(1, 2, 3, 4, 4, 8, dtype=torch.float64)
    from cscnn.testing import grid_symmetries, transform_on_grid

    errors = grid_equivariance_errors(conv, algebra, (1, 2, 3, 4, 4), group=group)
    assert errors["point group"] < 1e-12
    for g in grid_symmetries(algebra, (3, 4, 4)):
        inside = (torch.linalg.det(g) > 0 or "S" not in group) and (g[0, 0] > 0 or "+" not in group)
        moved = conv(transform_on_grid(algebra, g, x))
        error = relative_error(moved, transform_on_grid(algebra, g, conv(x)))
        assert (error < 1e-12) if inside else (error > 1e-3)


def test_causal_convolutions_do_not_see_the_future():
    options = {"group": "O+", "causal": True}
    conv = build((1, -1), kernel="complete", kernel_size=5, kernel_options=options).double()
    x = torch.randn(1, 2, 8, 8, 4, dtype=torch.float64)
    changed = x.clone()
    changed[:, :, 5:] = torch.randn_like(changed[:, :, 5:])
    y, z = conv(x), conv(changed)
    with pytest.raises(ValueError, match=r"time axis 0 .* padding_mode=\('zeros', 'circular'\)"):
        build((1, -1), kernel="complete", kernel_options=options, padding_mode="circular")
    assert torch.equal(y[:, :, :5], z[:, :, :5])
    assert not torch.allclose(y[:, :, 5:], z[:, :, 5:])


def test_spacing_makes_anisotropic_grids_one_space():
    """A kernel on a finer time axis, restricted to every second point, is the coarse kernel."""
    torch.manual_seed(3)
    coarse = build((1, -1), kernel_size=3)
    torch.manual_seed(3)
    fine = build((1, -1), kernel_size=(5, 3), spacing=(0.5, 1.0))
    fine.kernel.scale = coarse.kernel.scale
    a, b = coarse.double().expanded_kernel(), fine.double().expanded_kernel()
    assert relative_error(b[:, :, ::2], a) < 1e-12


def smooth_field(generator, width, modes=3):
    """A random field on the plane that dies out smoothly, as a function of points (..., 2)."""
    k = torch.arange(-modes, modes + 1, dtype=torch.float64)
    coefficients = torch.randn(2, 4, len(k), len(k), generator=generator, dtype=torch.complex128)

    def evaluate(points):  # (..., 2) -> (2, ..., 4)
        phases = [torch.exp(2j * torch.pi * points[..., i, None] * k) for i in range(2)]
        values = torch.einsum("cbxy,...x,...y->c...b", coefficients, *phases).real
        return values * torch.exp(-(points**2).sum(-1) / (2 * width**2))[..., None]

    return evaluate


@pytest.mark.parametrize(
    ("metric", "kernel", "rate", "limit"),
    [
        ((1, 1), "implicit", 4.0, 1e-6),  # smooth kernel and field: faster than any power
        ((1, -1), "complete", 1.8, 1e-3),  # continuous at the light cone: second order
        ((1, -1), "implicit", 0.9, 2e-2),  # the shell jumps at the light cone: first order
    ],
)
def test_rotations_and_boosts_hold_up_to_resolution(metric, kernel, rate, limit, generator):
    """For a kernel of fixed physical size the error falls with the grid spacing, at these rates.

    f seen from another frame must give, at the origin, the output seen from that frame. The square
    support of a kernel grid is not invariant, so f dies out before its edge.
    """
    algebra = CliffordAlgebra(metric)
    reach, angle = 0.12, 0.35
    f = smooth_field(generator, width=reach / 5)
    c, s = (np.cosh, np.sinh) if -1 in metric else (np.cos, np.sin)
    g = torch.tensor([[c(angle), -metric[1] * s(angle)], [s(angle), c(angle)]])
    assert algebra.is_orthogonal(g)
    torch.manual_seed(1)
    kernel = build(metric, 2, 2, kernel=kernel).kernel.double()
    errors = []
    for half in (8, 16):
        axis = torch.arange(-half, half + 1, dtype=torch.float64) / half * reach
        points = torch.stack(torch.meshgrid(axis, axis, indexing="ij"), -1)
        conv = CliffordSteerableConv(
            algebra, 2, 2, 2 * half + 1, kernel=kernel, padding=0, bias=False
        )
        here, there = (
            conv(field[None]).detach().reshape(2, 4) / half**2
            for field in (f(points), algebra.transform(g, f(points @ torch.linalg.inv(g).T)))
        )
        errors.append(relative_error(there, algebra.transform(g, here)))
    assert errors[1] < limit
    assert np.log2(errors[0] / errors[1]) > rate
    wrong = algebra.transform(torch.linalg.inv(g), here)  # the control
    assert relative_error(there, wrong) > 0.1


# --- life in production ---------------------------------------------------------------------------


@pytest.fixture(params=["implicit", "complete"])
def conv(request):
    return build((1, -1), kernel=request.param)


def twin(conv):
    """Another convolution of the same kind, with other weights."""
    return build((1, -1), kernel="implicit" if hasattr(conv.kernel, "head") else "complete")


FIELD = (2, 2, 6, 5, 4)


def test_cached_kernel_is_never_stale(conv):
    x = torch.randn(FIELD)
    conv.eval()
    calls = []
    conv.kernel.register_forward_hook(lambda *_: calls.append(1))

    def output():
        with torch.no_grad():
            return conv(x)

    first = output()
    assert torch.equal(output(), first)
    assert len(calls) == 1  # cached
    state = {name: value.clone() for name, value in conv.state_dict().items()}
    optimiser = torch.optim.SGD(conv.parameters(), 0.1)
    conv(x).square().mean().backward()  # with gradients: never from the cache
    assert len(calls) == 2
    optimiser.step()
    assert not torch.equal(output(), first)
    conv.load_state_dict(state)
    assert torch.equal(output(), first)
    conv.double()
    with torch.no_grad():
        assert conv(x.double()).dtype == torch.float64
    conv.float()
    assert torch.allclose(output(), first, atol=1e-5)
    for parameter in conv.parameters():
        parameter.data = parameter.data * 1.5
    assert not torch.allclose(output(), first)
    conv.train()
    assert conv._cache is None


def test_state_dict_is_the_same_in_train_and_eval(conv):
    before = set(conv.state_dict())
    conv.eval()
    with torch.no_grad():
        conv(torch.randn(FIELD))
    assert set(conv.state_dict()) == before
    assert not any("points" in name or "cache" in name for name in before)
    assert pickle.loads(pickle.dumps(conv))._cache is None
    assert copy.deepcopy(conv)._cache is None
    x = torch.randn(FIELD)
    assert torch.equal(pickle.loads(pickle.dumps(conv))(x), conv(x))


def test_materialised_from_the_meta_device(conv):
    """Deferred initialisation: build without memory, then load the weights of another one."""
    x = torch.randn(FIELD)
    with torch.device("meta"):
        shell = twin(conv)
    shell.to_empty(device="cpu").load_state_dict(conv.state_dict())
    assert torch.equal(shell(x), conv(x))


def test_replaced_parameters_do_not_meet_an_old_cache(conv):
    conv.eval()
    x = torch.randn(FIELD)
    with torch.no_grad():
        seen = [conv(x)]
        for factor in (2.0, 3.0, 4.0):
            state = {name: value * factor for name, value in conv.state_dict().items()}
            conv.load_state_dict(state, assign=True)
            seen.append(conv(x))
    fresh = twin(conv)
    fresh.load_state_dict(state)
    assert torch.equal(fresh(x), seen[-1])


def test_grid_is_exact_after_casts():
    conv = build((1, 1), kernel_size=7)
    conv.half().double()
    exact = torch.linspace(-1, 1, 7, dtype=torch.float64)
    assert relative_error(conv.points[:, 1].reshape(7, 7)[0], exact) < 1e-15


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("metric", [(1,), (1, -1), (1, 1, 1)], ids=metric_name)
def test_export_is_a_plain_convolution(metric, mode):
    conv = build(metric, padding_mode=mode, stride=2)
    plain = conv.export()
    d = len(metric)
    if mode == "symmetric":
        assert isinstance(plain, torch.nn.Sequential)
    else:
        assert type(plain) is getattr(torch.nn, f"Conv{d}d")
    x = torch.randn(2, 2, *(5, 6, 4)[:d], 2**d)
    y = plain(x.movedim(-1, 2).flatten(1, 2)).unflatten(1, (3, 2**d)).movedim(2, -1)
    assert relative_error(y, conv(x)) < 1e-5


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")  # torch's own
def test_export_to_onnx(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    conv = build((1, -1), padding_mode=("circular", "symmetric"))
    x = torch.randn(FIELD).movedim(-1, 2).flatten(1, 2).contiguous()
    path = tmp_path / "conv.onnx"
    plain = conv.export().eval()
    torch.onnx.export(plain, (x,), path, dynamo=True, verbose=False)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (y,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    assert relative_error(torch.from_numpy(y), plain(x)) < 1e-5


def test_compile_and_export(conv):
    x = torch.randn(FIELD)
    compiled = torch.compile(conv, fullgraph=True, backend="aot_eager")
    assert relative_error(compiled(x), conv(x)) < 1e-5
    grads = [
        torch.autograd.grad(f(x).square().sum(), list(conv.parameters())) for f in (compiled, conv)
    ]
    scale = max(g.abs().max() for g in grads[1])
    assert all((a - b).abs().max() < 1e-4 * scale for a, b in zip(*grads, strict=True))
    program = torch.export.export(conv, (x,))
    assert relative_error(program.module()(x), conv(x)) < 1e-5


def test_autocast_keeps_the_kernel_in_full_precision(conv):
    x = torch.randn(FIELD)
    with torch.autocast("cpu", torch.bfloat16):
        assert relative_error(conv.expanded_kernel(), conv.expanded_kernel().float()) == 0
        inside, y = conv.expanded_kernel(), conv(x)
    assert relative_error(inside, conv.expanded_kernel()) < 1e-6
    assert y.dtype == torch.bfloat16
    assert relative_error(y.float(), conv(x)) < 0.03


def test_autocast_in_four_dimensions():
    conv = build((1, -1, -1, -1), kernel="complete")
    with torch.autocast("cpu", torch.bfloat16):
        assert conv(torch.randn(1, 2, 3, 3, 3, 3, 16)).dtype == torch.bfloat16


def test_tracing_leaves_nothing_in_the_cache(conv):
    from torch._subclasses.fake_tensor import FakeTensorMode

    conv.eval()
    x = torch.randn(FIELD)
    with torch.no_grad():
        expected = conv(x)
        conv.train().eval()
        with FakeTensorMode(allow_non_fake_inputs=True):
            conv(torch.randn(FIELD))
        assert conv._cache is None
        torch.func.jvp(conv, (x,), (x,))
        assert conv._cache is None
        assert type(conv(x)) is torch.Tensor
        assert torch.equal(conv(x), expected)


def test_the_cache_watches_buffers_and_gives_nothing_away():
    conv = build((1, -1), kernel="complete").eval()
    x = torch.randn(FIELD)
    with torch.no_grad():
        first = conv(x)
        conv.expanded_kernel().mul_(2)
        assert torch.equal(conv(x), first)
        conv.kernel.element_scale.mul_(3)
        assert not torch.allclose(conv(x), first)


def test_shared_and_foreign_kernels():
    algebra = CliffordAlgebra((1, 1))
    kernel = CompleteKernel(algebra, 2, 2).double()
    first, second = (CliffordSteerableConv(algebra, 2, 2, 3, kernel=kernel) for _ in range(2))
    x = torch.randn(1, 2, 5, 5, 4, dtype=torch.float64)
    assert torch.equal(first(x), second(x))
    assert first.bias.dtype == torch.float64
    first.float()
    with pytest.raises(ValueError, match="a shared kernel was cast or moved without it"):
        second(x)


def test_reset_parameters(conv):
    before = conv.expanded_kernel()
    conv.reset_parameters()
    assert conv.bias.abs().sum() == 0
    assert not torch.allclose(conv.expanded_kernel(), before)


def test_func_transforms(conv):
    x = torch.randn(FIELD)
    parameters = dict(conv.named_parameters())

    def loss(parameters, x):
        return torch.func.functional_call(conv, parameters, (x[None],)).square().mean()

    per_sample = torch.vmap(torch.func.grad(loss), in_dims=(None, 0))(parameters, x)
    single = torch.func.grad(loss)(parameters, x[1])
    for name, value in single.items():
        scale = max(v.abs().max() for v in single.values())
        assert (per_sample[name][1] - value).abs().max() < 1e-4 * scale
    conv.eval()
    with torch.no_grad():
        stacked = {name: torch.stack([p, 2 * p]) for name, p in parameters.items()}
        many = torch.vmap(lambda p: torch.func.functional_call(conv, p, (x,)))(stacked)
    assert relative_error(many[0], conv(x)) < 1e-5


def test_gradients(conv):
    conv = conv.double()
    x = torch.randn(1, 2, 4, 3, 4, dtype=torch.float64, requires_grad=True)
    names = dict(conv.named_parameters())

    def call(x, *values):
        return torch.func.functional_call(conv, dict(zip(names, values, strict=True)), (x,))

    assert torch.autograd.gradcheck(call, (x, *names.values()))


def test_memory_order_makes_no_copies(conv):
    """The output of one convolution, blades beside channels in memory, is the next one's input."""
    y = conv(torch.randn(FIELD))
    assert y.movedim(-1, 2).is_contiguous()
    flat = y.movedim(-1, 2).flatten(1, 2)
    assert flat.data_ptr() == y.data_ptr()


def test_extra_inputs():
    conv = build((1, 1), kernel_options={"extra_channels": 1}).double()
    x, extra = torch.randn(1, 2, 5, 5, 4).double(), torch.randn(1, 4).double()
    from cscnn.testing import grid_symmetries, transform_on_grid

    for g in grid_symmetries(conv.algebra, (5, 5)):
        moved = conv(transform_on_grid(conv.algebra, g, x), conv.algebra.transform(g, extra))
        assert relative_error(moved, transform_on_grid(conv.algebra, g, conv(x, extra))) < 1e-12
    plain = conv.export(extra)(x.movedim(-1, 2).flatten(1, 2))
    assert relative_error(plain.unflatten(1, (3, 4)).movedim(2, -1), conv(x, extra)) < 1e-12


def test_four_dimensions_at_a_real_size():
    conv = build((1, -1, -1, -1), 2, 2, kernel_size=3, kernel="complete")
    x = torch.randn(1, 2, 12, 12, 12, 12, 16)
    with torch.no_grad():
        assert conv(x).shape == x.shape


def test_unit_variance_out():
    for kernel in ("implicit", "complete"):
        options = {"unit_variance": True} if kernel == "implicit" else {}
        conv = build(
            (1, -1, -1), 8, 8, kernel=kernel, padding_mode="circular", kernel_options=options
        )
        torch.nn.init.zeros_(conv.bias)
        with torch.no_grad():
            y = conv(torch.randn(2, 8, 8, 8, 8, 8))
        assert y.var().item() == pytest.approx(1.0, abs=0.1)


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel_size": 4}, r"must be odd, got \(4, 4\): an even kernel has no centre"),
        ({"kernel_size": (3, 3, 3)}, r"one value per axis, 2 in all, got \(3, 3, 3\)"),
        ({"kernel_size": 0}, "kernel_size must be at least 1, got 0"),
        ({"stride": 0}, r"stride must consist of integers of at least 1, got \(0, 0\)"),
        ({"padding": -1}, r"padding must consist of integers of at least 0, got \(-1, -1\)"),
        ({"padding_mode": "mirror"}, r"zeros, circular, .* got 'mirror'"),
        ({"spacing": (1.0, 0.0)}, r"spacing must be positive, got \(1\.0, 0\.0\)"),
        ({"backend": "magic"}, r"backend must be .* got 'magic'"),
        ({"kernel": "spline"}, r"'implicit', 'complete' or a SteerableKernel, got 'spline'"),
        ({"bias": (1,)}, r"blades \[1\] \(\['e1'\]\) is not invariant"),
        ({"c_in": 0}, "c_in must be at least 1, got 0"),
        ({"kernel_options": {"hiden": 3}}, r"implicit kernel are num_layers, .*; got \['hiden'\]"),
        ({"kernel_options": {"group": "SO"}}, "kernel='complete' knows groups"),
    ],
)
def test_bad_options(options, message):
    arguments = {"algebra": CliffordAlgebra((1, 1)), "c_in": 2, "c_out": 2, "kernel_size": 3}
    with pytest.raises((ValueError, TypeError), match=message):
        CliffordSteerableConv(**{**arguments, **options})
    assert CliffordSteerableConv(**arguments, padding="same").padding == (1, 1)


def test_bad_fields():
    conv = build((1, 1), padding_mode="reflect", kernel_size=5)
    for shape, message in (
        ((1, 3, 8, 8, 4), r"expected 2 channel\(s\) on axis 1"),
        ((1, 2, 8, 8, 8), r"4 blades of .* got shape \(1, 2, 8, 8, 8\)"),
        ((2, 8, 8, 4), r"shape \(batch, 2, \*, \*, 4\), got \(2, 8, 8, 4\): is the channel axis"),
        ((1, 2, 2, 8, 4), "reflect padding by 2 needs at least 3 points, grid axis 0 has 2"),
    ):
        with pytest.raises(ValueError, match=message):
            conv(torch.zeros(shape))
    with pytest.raises(ValueError, match=r"grid \(2, 8\) is smaller than the kernel \(5, 5\)"):
        build((1, 1), kernel_size=5, padding=0)(torch.zeros(1, 2, 2, 8, 4))
    with pytest.raises(TypeError, match=r"field is torch\.float64 but the layer's weights"):
        conv(torch.zeros(1, 2, 8, 8, 4).double())
    with pytest.raises(ValueError, match="no plain convolution in 4 dimensions"):
        build((1, 1, 1, 1)).export()
    with pytest.raises(ValueError, match="the kernel is for"):
        CliffordSteerableConv(conv.algebra, 3, 3, 3, kernel=conv.kernel)
    with pytest.raises(ValueError, match="at most 4 dimensions"):
        CliffordSteerableConv(CliffordAlgebra((1,) * 5), 1, 1, 3)
