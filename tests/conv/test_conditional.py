"""Convolutions whose kernels see the mean of the field: each sample has its own."""

import io

import pytest
import torch

from cscnn import CliffordAlgebra
from cscnn.conv import CliffordSteerablePointConv, reuse_kernels
from cscnn.kernels import Complete, CompleteKernel, Implicit
from cscnn.networks import CSResNet, Grid, plain_convolutions
from cscnn.testing import conformance, grid_equivariance_errors, relative_error
from cscnn.testing.conformance import METRICS
from tests.conftest import metric_name
from tests.conv.builders import build

IMPLICIT = Implicit(num_layers=2, hidden_dim=3, condition=2)
COMPLETE = Complete(hidden_dim=4, condition=2)
GRIDS = {1: (7,), 2: (6, 6), 3: (4, 4, 4), 4: (3, 3, 3, 3)}
TORUS = Grid(padding_mode="circular")


@pytest.fixture(params=[IMPLICIT, COMPLETE], ids=lambda choice: choice.name)
def kernel(request):
    return request.param


def sample(metric, batch=3, grid=None):
    grid = GRIDS[len(metric)] if grid is None else grid
    return torch.randn(batch, 2, *grid, 2 ** len(metric), dtype=torch.float64)


def one_by_one(conv, x):
    """Each sample with its own kernel, point by point, tap by tap; on a torus."""
    outputs = []
    for field in x:
        axes = tuple(range(1, field.dim() - 1))
        means = field.sum(axes) / field[0, ..., 0].numel()
        taps = conv.kernel(conv._points, extra=conv.kernel.given(means[None])[0])
        offsets = torch.cartesian_prod(
            *(torch.arange(-(n // 2), n // 2 + 1) for n in conv.kernel_size)
        ).reshape(len(taps), -1)
        y = sum(
            torch.einsum("ocib,i...b->o...c", tap, field.roll([-n for n in v], axes))
            for tap, v in zip(taps, offsets.tolist(), strict=True)
        )
        outputs.append(y)
    y = torch.stack(outputs)
    y[..., 0] += conv.bias.reshape(-1, *(1,) * (y.dim() - 3))
    return y


@pytest.mark.parametrize("backend", ["auto", "direct", "spectral"])
@pytest.mark.parametrize("metric", [(1,), *METRICS, (1, -1, -1, -1)], ids=metric_name)
def test_every_sample_has_its_own_kernel(metric, backend, kernel):
    if len(metric) == 4 and kernel is COMPLETE:
        pytest.skip("four dimensions once")
    conv = build(metric, kernel=kernel, backend=backend, padding_mode="circular").double()
    x = sample(metric)
    y = conv(x)
    assert relative_error(y, one_by_one(conv, x)) < 1e-12
    changed = torch.cat([x[:1], 2 * x[1:]])
    assert relative_error(conv(changed)[:1], y[:1]) < 1e-12  # samples do not see each other


@pytest.mark.parametrize("metric", METRICS, ids=metric_name)
def test_equivariant(metric, kernel):
    """Also with walls; not if the kernel sees components that do not transform with the field."""
    shape = (1, 2, *GRIDS[len(metric)])
    for mode in ("circular", "zeros")[: 4 - len(metric)]:  # both in two dimensions
        conv = build(metric, kernel=kernel, padding_mode=mode).double()
        errors = grid_equivariance_errors(conv, conv.algebra, shape)
        errors |= {} if mode == "circular" else {"translation": 0.0}
        assert max(errors.values()) < 1e-12

    class Raw(torch.nn.Module):
        """The control: each blade of the mean leaks into the next one."""

        def forward(self, pooled):
            mixed = conv_mix(pooled)
            return mixed + mixed.roll(1, -1)

    conv_mix, conv.kernel.mix = conv.kernel.mix, Raw()
    assert grid_equivariance_errors(conv, conv.algebra, shape)["point group"] > 1e-3


@pytest.mark.parametrize("kernel", [Complete("SO", condition=2), Complete("SO+", condition=2)])
def test_equivariant_to_smaller_groups(kernel):
    conv = build((1, -1, -1), kernel=kernel, padding_mode="circular").double()
    shape = (2, 2, *GRIDS[3])
    errors = grid_equivariance_errors(conv, conv.algebra, shape, group=kernel.group)
    assert max(errors.values()) < 1e-12
    assert grid_equivariance_errors(conv, conv.algebra, shape)["point group"] > 1e-3


@pytest.mark.parametrize("options", [{"stride": 2}, {"padding_mode": "wall"}, {"spacing": (1, 2)}])
def test_options_of_the_grid(options, kernel):
    """As for the same kernels in convolutions of their own."""
    conv = build((1, 1), kernel=kernel, **options).double()
    x = sample((1, 1), grid=(7, 6))
    means = conv.kernel.given(x.mean((2, 3)))
    for part, given, y in zip(x, means, conv(x), strict=True):
        plain = conv.export(given)(part.movedim(-1, 1).flatten(0, 1)[None])
        assert relative_error(plain.unflatten(1, (3, 4)).movedim(2, -1)[0], y) < 1e-12


def test_far_points_matter(kernel):
    conv = build((1, 1), kernel=kernel).double()
    x = sample((1, 1), 1, (9, 9))
    far = x.clone()
    far[:, :, 8, 8] += 1
    difference = (conv(far) - conv(x))[0, :, 0, 0]
    assert difference.abs().max() > 1e-6


def test_gradients_reach_the_field_through_its_mean(kernel):
    conv = build((1, -1), 1, 1, kernel=kernel).double()
    x = torch.randn(2, 1, 3, 3, 4, dtype=torch.float64, requires_grad=True)
    weights = dict(conv.named_parameters())

    def call(x, mix):
        return torch.func.functional_call(conv, {**weights, "kernel.mix.weight": mix}, (x,))

    assert torch.autograd.gradcheck(call, (x, weights["kernel.mix.weight"]), fast_mode=True)


def test_life(kernel, tmp_path):
    """Empty batches, mixed precision, transforms, no cache, states in files."""
    conv = build((1, 1), kernel=kernel, padding_mode="circular")
    x = sample((1, 1)).float()
    assert conv(x[:0]).shape == (0, 3, 6, 6, 4)
    y = conv(x)
    with torch.autocast("cpu", torch.bfloat16):
        assert relative_error(conv(x).float(), y) < 0.05
    conv.eval()
    with torch.no_grad():
        assert relative_error(conv(x), y) < 1e-5
        other = torch.cat([conv(-2 * part) for part in x.split(1)])
        assert relative_error(conv(-2 * x), other) < 1e-5
    assert conv._cache is None
    weights = dict(conv.named_parameters())
    each = torch.vmap(lambda x: torch.func.functional_call(conv, weights, (x[None],))[0])(x)
    assert relative_error(each, y) < 1e-5
    with reuse_kernels(conv):
        conv(x).sum().backward()  # nothing is shared between fields
    assert conv.kernel.mix.weight.grad.abs().max() > 0
    torch.save(conv.state_dict(), tmp_path / "state.pt")
    again = build((1, 1), kernel=kernel, padding_mode="circular")
    again.load_state_dict(torch.load(tmp_path / "state.pt"))
    assert torch.equal(again(x), y)


@pytest.mark.slow
@pytest.mark.usefixtures("fresh_compiler")
@pytest.mark.parametrize("backend", ["direct", "spectral"])
def test_compiles(backend, kernel):
    conv = build((1, 1), kernel=kernel, backend=backend)
    x = sample((1, 1)).float()
    compiled = torch.compile(conv, backend="aot_eager", fullgraph=True)
    assert relative_error(compiled(x), conv(x)) < 1e-4
    assert relative_error(compiled(x[:2]), conv(x[:2])) < 1e-4


@pytest.mark.slow
def test_exported_programs_keep_what_makes_kernels():
    """There is no plain convolution, but a program of torch's operations."""
    conv = build((1, 1), kernel=COMPLETE)
    net = torch.nn.Sequential(conv, build((1, 1), 3, 2)).eval()
    with pytest.raises(ValueError, match=r"takes 2 extra multivectors.*given makes the last 2"):
        conv.export()
    plain = plain_convolutions(net)
    kinds = [type(part).__name__ for part in plain]
    assert kinds == ["CliffordSteerableConv", "PlainFieldConv"]
    x, other = sample((1, 1)).float(), sample((1, 1)).float()
    assert relative_error(plain(x), net(x)) < 1e-5
    file = io.BytesIO()
    torch.export.save(torch.export.export(plain, (x,)), file)
    file.seek(0)
    program = torch.export.load(file).module()
    assert relative_error(program(other), net(other)) < 1e-5


def test_known_multivectors_for_each_sample():
    """A wind for each sample, say, transformed along with its field."""
    choice = Implicit(num_layers=2, hidden_dim=3, extra_channels=1)
    conv = build((1, 1), kernel=choice).double()
    x, extra = sample((1, 1)), torch.randn(3, 1, 4, dtype=torch.float64)
    expected = torch.cat([conv(x[i : i + 1], extra[i]) for i in range(3)])
    assert relative_error(conv(x, extra), expected) < 1e-12
    with pytest.raises(ValueError, match="have no batch or that of the field, 3, got 2"):
        conv(x, extra[:2])


def test_points_are_refused():
    algebra = CliffordAlgebra((1, 1))
    for kernel in (IMPLICIT, COMPLETE, CompleteKernel(algebra, 2, 3, COMPLETE)):
        with pytest.raises(ValueError, match=r"a condition.*not for edges.* got 2 extra"):
            CliffordSteerablePointConv(algebra, 2, 3, kernel=kernel)


def resnet(algebra, c_in, c_out):
    return CSResNet(algebra, c_in, c_out, 2, 1, kernel_size=3, kernel=COMPLETE, grid=TORUS)


TestCSResNet = conformance.network(resnet, metrics=((1, 1), (1, -1)), compiles=False)
