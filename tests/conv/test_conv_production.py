"""Life of a convolution: cache, state, casts, export, compile, autocast, transforms."""

import copy
import pickle

import pytest
import torch

from cscnn import CliffordAlgebra, CliffordSteerableConv
from cscnn.conv import reuse_kernels
from cscnn.conv.export import PlainFieldConv
from cscnn.conv.padding import MODES
from cscnn.kernels import CompleteKernel, Differential, Implicit
from cscnn.testing import relative_error
from tests.conftest import metric_name
from tests.conv.builders import FIELD, build, twin


@pytest.fixture(params=["implicit", "complete", "differential"])
def conv(request):
    return build((1, -1), kernel=request.param)


def test_cached_kernel_is_never_stale(conv, monkeypatch):
    x = torch.randn(FIELD)
    conv.eval()
    calls = []
    expand = conv.expanded_kernel
    monkeypatch.setattr(conv, "expanded_kernel", lambda *a: calls.append(1) or expand(*a))

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
    if mode in ("symmetric", "extrapolate", "wall", "conductor"):
        assert isinstance(plain, torch.nn.Sequential)
    else:
        assert type(plain) is getattr(torch.nn, f"Conv{d}d")
    x = torch.randn(2, 2, *(5, 6, 4)[:d], 2**d)
    y = plain(x.movedim(-1, 2).flatten(1, 2)).unflatten(1, (3, 2**d)).movedim(2, -1)
    assert relative_error(y, conv(x)) < 1e-5


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")  # torch's own
@pytest.mark.parametrize(
    ("kernel", "modes"),
    [("implicit", ("circular", "symmetric")), ("differential", ("extrapolate", "circular"))],
)
def test_export_to_onnx(tmp_path, kernel, modes):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    conv = build((1, -1), kernel=kernel, kernel_size=5, padding_mode=modes)
    x = torch.randn(FIELD).movedim(-1, 2).flatten(1, 2).contiguous()
    path = tmp_path / "conv.onnx"
    plain = conv.export().eval()
    torch.onnx.export(plain, (x,), path, dynamo=True, verbose=False)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (y,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    assert relative_error(torch.from_numpy(y), plain(x)) < 1e-5


@pytest.mark.usefixtures("fresh_compiler")
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


@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("metric", [(1,), (1, -1), (1, 1, 1), (1, -1, -1, -1)], ids=metric_name)
def test_one_sided_differences_compile_and_export(metric):
    d = len(metric)
    order = 4 if d < 4 else 2
    conv = build(
        metric, kernel=Differential(order=order), kernel_size=order + 1, padding_mode="extrapolate"
    )
    x = torch.randn(1, 2, *(5, 6, 7, 5)[:d], 2**d)
    programs = [
        torch.compile(conv, fullgraph=True, backend="aot_eager"),
        torch.export.export(conv, (x,)).module(),
    ]
    if d < 4:
        plain = PlainFieldConv(conv.export(), 2**d)
        programs += [plain, torch.export.export(plain, (x,)).module()]
    for program in programs:
        assert relative_error(program(x), conv(x)) < 1e-5


def test_autocast_keeps_the_kernel_in_full_precision(conv):
    x = torch.randn(FIELD)
    with torch.autocast("cpu", torch.bfloat16):
        inside, y = conv.expanded_kernel(), conv(x)
    assert inside.dtype == torch.float32
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
    conv = build((1, 1), kernel=Implicit(num_layers=2, hidden_dim=4, extra_channels=1)).double()
    x, extra = torch.randn(1, 2, 5, 5, 4).double(), torch.randn(1, 4).double()
    from cscnn.algebra.grids import grid_symmetries, transform_on_grid

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
        conv = build((1, -1, -1), 8, 8, kernel=kernel, padding_mode="circular")
        torch.nn.init.zeros_(conv.bias)
        with torch.no_grad():
            y = conv(torch.randn(2, 8, 8, 8, 8, 8))
        assert y.var().item() == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("backend", ["direct", "spectral"])
def test_kernels_shared_by_micro_batches(conv, backend, monkeypatch):
    conv.backend = backend
    batches = torch.randn(3, *FIELD)
    for x in batches:
        conv(x).square().mean().backward()
    expected = [p.grad.clone() for p in conv.parameters()]
    conv.zero_grad()
    calls = []
    expand = conv.expanded_kernel
    monkeypatch.setattr(conv, "expanded_kernel", lambda *a: calls.append(1) or expand(*a))
    with reuse_kernels(torch.nn.Sequential(conv)):
        for x in batches:
            conv(x).square().mean().backward()
        assert all(p.grad is None for p in conv.kernel.parameters())
    assert len(calls) == 1
    scale = max(g.abs().max() for g in expected)
    pairs = zip(conv.parameters(), expected, strict=True)
    assert all((p.grad - g).abs().max() < 1e-5 * scale for p, g in pairs)


def test_an_interrupted_block_shares_nothing_afterwards(conv):
    def fail():
        with reuse_kernels(conv):
            conv(torch.randn(FIELD)).sum().backward()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert conv._shared is None
    assert all(p.grad is None for p in conv.kernel.parameters())


def test_backward_after_the_block_is_refused(conv):
    with reuse_kernels(conv):
        loss = conv(torch.randn(FIELD)).sum()
    with pytest.raises(RuntimeError, match="after the end of reuse_kernels"):
        loss.backward()


def test_shared_kernels_under_checkpointing(conv):
    x = torch.randn(FIELD)
    conv(x).square().mean().backward()
    expected = [p.grad.clone() for p in conv.parameters()]
    conv.zero_grad()
    with reuse_kernels(conv):
        y = torch.utils.checkpoint.checkpoint(conv, x, use_reentrant=False)
        y.square().mean().backward()
    scale = max(g.abs().max() for g in expected)
    pairs = zip(conv.parameters(), expected, strict=True)
    assert all((p.grad - g).abs().max() < 1e-5 * scale for p, g in pairs)


def test_replicas_do_not_share_the_cache(conv):
    with torch.no_grad():
        conv.eval()(torch.randn(FIELD))
    assert conv._cache is not None
    assert conv._replicate_for_data_parallel()._cache is None
