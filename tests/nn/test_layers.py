"""Layers: the conformance kit, then what is specific, their formulas above all."""

import pickle

import pytest
import torch

from cscnn import CliffordAlgebra
from cscnn.nn import CGENN, MVGELU, GeometricProductLayer, GradeNorm, MVLayerNorm, MVLinear
from cscnn.testing import conformance, relative_error
from tests.conftest import metric_name, metrics

EVERY = {"channels": 3, "metrics": metrics(4), "tol": 1e-10, "rapidity": 2.0}

TestLinear = conformance.layer(lambda a: MVLinear(a, 3, 4), **EVERY)
TestProduct = conformance.layer(lambda a: GeometricProductLayer(a, 3, 4), **EVERY)
TestProductAlone = conformance.layer(
    lambda a: GeometricProductLayer(a, 3, 4, first_order=False), **EVERY
)
TestGradeNorm = conformance.layer(lambda a: GradeNorm(a, 3), **EVERY)
TestLayerNorm = conformance.layer(MVLayerNorm, **EVERY)
TestAbsoluteLayerNorm = conformance.layer(lambda a: MVLayerNorm(a, absolute=True), **EVERY)
TestGate = conformance.layer(MVGELU, **EVERY)
TestCGENN = conformance.layer(lambda a: CGENN(a, 3, 2, hidden_dim=5, num_layers=3), **EVERY)
TestGradients = conformance.layer(
    lambda a: CGENN(a, 1, 1, hidden_dim=2, num_layers=2),
    channels=1, metrics=[(1, -1)], gradcheck=True, compiles=False,
)  # fmt: skip


def randomise(module):
    """Parameters away from special values, so that nothing holds by accident."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return module


def dense_table(algebra):
    eye = torch.eye(algebra.n_blades, dtype=torch.float64)
    return algebra.geometric_product(eye[:, None], eye[None])  # [left, right, out]


def naive_norm(q):
    return (torch.clamp(q, min=0.01) ** 2 + 1e-16) ** 0.25


def naive_grade_norm(x, factor, algebra):
    y = torch.empty_like(x)
    for k in range(algebra.dim + 1):
        blades = [i for i, grade in enumerate(algebra.grades) if grade == k]
        form = torch.tensor([algebra.blade_square(i) for i in blades], dtype=x.dtype)
        form = form * (-1) ** (k * (k - 1) // 2)
        r = naive_norm((form * x[..., blades] ** 2).sum(-1, keepdim=True))
        a = torch.sigmoid(factor[None, :, k, None])
        y[..., blades] = x[..., blades] / (a * (r - 1) + 1 + 1e-6)
    return y


@pytest.mark.parametrize("metric", [(1,), (1, -1), (1, 1, 1), (1, -1, -1, -1)], ids=metric_name)
def test_product_layer_is_its_formula(metric):
    """Loops over channels, blades and paths, written from the formula alone."""
    algebra = CliffordAlgebra(metric)
    layer = randomise(GeometricProductLayer(algebra, 2, 3)).double()
    x = torch.randn(4, 2, algebra.n_blades, dtype=torch.float64)
    grade = torch.tensor(algebra.grades)
    right = torch.einsum("oin,pin->pon", layer.right.weight[..., grade], x)
    right = naive_grade_norm(right, layer.norm.factor, algebra)
    y = torch.einsum("oin,pin->pon", layer.linear.weight[..., grade], x)
    y[..., 0] = y[..., 0] + layer.linear.bias
    table = dense_table(algebra)
    for a in range(algebra.n_blades):
        for b in range(algebra.n_blades):
            for c in range(algebra.n_blades):
                if table[a, b, c]:
                    path = layer.paths.index((grade[a].item(), grade[c].item(), grade[b].item()))
                    pairs = x[..., a] * right[..., b] * table[a, b, c]
                    y[..., c] = y[..., c] + pairs @ layer.weight[..., path].T
    assert relative_error(layer(x), y / 2**0.5) < 1e-13


def test_number_of_paths():
    for d, count in ((1, 4), (2, 10), (3, 20), (4, 35)):
        algebra = CliffordAlgebra((1, -1, 1, -1)[:d])
        paths = GeometricProductLayer(algebra, 1, 1).paths
        assert len(paths) == count
        left, right, out = dense_table(algebra).nonzero().T
        grade = torch.tensor(algebra.grades)
        triples = torch.stack([grade[left], grade[out], grade[right]], -1).unique(dim=0)
        assert [list(path) for path in paths] == triples.tolist()


def test_norms_and_gate_are_their_formulas():
    algebra = CliffordAlgebra((1, -1, -1))
    x = torch.randn(4, 3, 8, dtype=torch.float64)
    norm = randomise(GradeNorm(algebra, 3)).double()
    assert relative_error(norm(x), naive_grade_norm(x, norm.factor, algebra)) < 1e-12
    form = torch.tensor([1, 1, -1, -1, -1, -1, 1, 1]).double()
    mean = naive_norm((form * x**2).sum(-1)).mean(1)[:, None, None]
    assert relative_error(MVLayerNorm(algebra)(x), x / (mean + 1e-6)) < 1e-12
    gelu = torch.nn.functional.gelu(x[..., 0], approximate="tanh")
    assert relative_error(MVGELU(algebra)(x)[..., 0], gelu) < 1e-13
    exact = MVGELU(algebra, approximate="none")
    assert relative_error(exact(x)[..., 0], torch.nn.functional.gelu(x[..., 0])) < 1e-13
    assert 1e-5 < relative_error(exact(x), MVGELU(algebra)(x)) < 1e-3
    ratio = MVGELU(algebra)(x) / x
    assert relative_error(ratio, ratio[..., :1].expand_as(ratio)) < 1e-13


def test_initialisation_scale():
    algebra = CliffordAlgebra((1, 1, 1))
    layer = GeometricProductLayer(algebra, 50, 80)
    assert layer.weight.std().item() == pytest.approx(1 / (50 * 4) ** 0.5, rel=0.05)
    assert layer.right.weight.std().item() == pytest.approx(50**-0.5, rel=0.05)
    assert layer.linear.bias.std().item() == pytest.approx(0.1 * 50**-0.5, rel=0.4)
    assert layer.norm.factor.abs().sum() == 0


def test_everything_in_bfloat16():
    algebra = CliffordAlgebra((1, -1, -1))
    net = CGENN(algebra, 2, 2, hidden_dim=4, num_layers=2).bfloat16()
    y = net(torch.randn(5, 2, 3, 8).bfloat16())
    assert y.dtype == torch.bfloat16
    assert y.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("size", [20.0, 1000.0])
def test_large_values_in_half_precision(dtype, size):
    """Squares of such values overflow float16: norms and gate have to take care."""
    algebra = CliffordAlgebra((1, 1, 1))
    x = (size * torch.randn(4, 3, 8)).to(dtype)
    for layer in (MVLayerNorm(algebra), GradeNorm(algebra, 3), MVGELU(algebra)):
        low, exact = layer.to(dtype)(x), layer.double()(x.double())
        assert relative_error(low.double(), exact) < 0.02
    leaf = (-300 * torch.ones(1, 1, 8)).to(dtype).requires_grad_()
    MVGELU(algebra)(leaf).sum().backward()
    assert leaf.grad.isfinite().all()


@pytest.mark.parametrize("metric", [(1, 1, 1), (1, -1, -1)], ids=metric_name)
@pytest.mark.parametrize("size", [1e20, 1e30])
def test_large_values_in_single_precision(metric, size):
    """Squares of such values overflow float32."""
    algebra = CliffordAlgebra(metric)
    x = torch.randn(4, 3, 8)
    for layer in (
        MVLayerNorm(algebra), MVLayerNorm(algebra, absolute=True), randomise(GradeNorm(algebra, 3))
    ):  # fmt: skip
        leaf = (size * x).requires_grad_()
        y = layer(leaf)
        assert relative_error(y.double(), layer.double()(leaf.double())) < 1e-5
        y.square().sum().backward()
        assert leaf.grad.isfinite().all()


def test_gradients_of_scaled_losses_are_finite():
    """As mixed precision scales them: they must not overflow on their way through a norm."""
    algebra = CliffordAlgebra((1, -1))
    x = (0.05 * torch.randn(4, 3, 4)).requires_grad_()
    for layer in (
        MVLayerNorm(algebra), MVLayerNorm(algebra, absolute=True), GradeNorm(algebra, 3)
    ):  # fmt: skip
        (gradient,) = torch.autograd.grad(2.0**40 * layer(x).sum(), x)
        assert gradient.isfinite().all()


def test_infinite_squares_count_as_large():
    x = torch.full((1, 1, 4), 1e38)
    y = MVLayerNorm(CliffordAlgebra((1, 1)))(x)
    assert y.isfinite().all()
    assert (y > 1).all()


def test_autocast_gives_one_dtype():
    algebra = CliffordAlgebra((1, -1))
    x = torch.randn(5, 2, 4)
    with torch.autocast("cpu", torch.bfloat16):
        for bias in (True, False):
            assert MVLinear(algebra, 2, 3, bias=bias)(x).dtype == torch.bfloat16
        assert CGENN(algebra, 2, 3)(x).dtype == torch.bfloat16


def test_hooks_of_sublayers_fire():
    layer = GeometricProductLayer(CliffordAlgebra((1, 1)), 2, 3)
    fired = []
    for name, child in layer.named_children():
        child.register_forward_hook(lambda *_, name=name: fired.append(name))
    layer(torch.randn(4, 2, 4))
    assert sorted(fired) == ["linear", "norm", "right"]


def test_pickles_are_small_and_share_their_tables():
    net = CGENN(CliffordAlgebra((1, -1, -1, -1)), 1, 1, hidden_dim=2)
    data = pickle.dumps(net)
    assert len(data) < 8 * sum(p.numel() * 4 for p in net.parameters()) + 20_000
    assert pickle.loads(data).products[0]._tables[0] is net.products[0]._tables[0]


def test_export_and_transforms():
    algebra = CliffordAlgebra((1, -1))
    net = CGENN(algebra, 2, 3, hidden_dim=4, num_layers=3)
    x = torch.randn(5, 2, 6, 4)
    program = torch.export.export(net, (x,))
    assert relative_error(program.module()(x), net(x)) < 1e-5
    jacobian = torch.func.jacrev(net)(x[:1])
    assert jacobian.shape == (1, 3, 6, 4, 1, 2, 6, 4)
    assert torch.vmap(net)(x.expand(2, *x.shape)).shape == (2, 5, 3, 6, 4)


def test_errors():
    algebra = CliffordAlgebra((1, 1))
    with pytest.raises(ValueError, match=r"blades \[3\] \(\['e12'\]\) is not invariant"):
        MVLinear(algebra, 1, 1, bias=(0, 3))
    assert MVLinear(algebra, 1, 1, bias=(0,)).bias is not None
    assert MVLinear(algebra, 1, 1, bias=()).bias is None
    with pytest.raises(ValueError, match="c_in must be at least 1, got 0"):
        MVLinear(algebra, 0, 1)
    with pytest.raises(TypeError, match=r"c_out must be an integer, got 2\.0"):
        GeometricProductLayer(algebra, 1, 2.0)
    with pytest.raises(ValueError, match="num_layers must be at least 1, got 0"):
        CGENN(algebra, 1, 1, num_layers=0)
    layer = MVLinear(algebra, 2, 3)
    with pytest.raises(
        ValueError, match=r"expected 2 channel\(s\) on axis 1 of .* got shape \(5, 3, 4\)"
    ):
        layer(torch.zeros(5, 3, 4))
    with pytest.raises(ValueError, match=r"\(batch, channels, \*space, 4\), got \(2, 4\)"):
        layer(torch.zeros(2, 4))
    with pytest.raises(ValueError, match=r"4 blades of .* got shape \(5, 2, 8\)"):
        layer(torch.zeros(5, 2, 8))
    with pytest.raises(TypeError, match=r"torch\.int64"):
        layer(torch.zeros(5, 2, 4, dtype=torch.int64))
    with pytest.raises(TypeError, match=r"field is torch\.float64 but the layer's weights are"):
        layer(torch.zeros(5, 2, 4).double())
    with pytest.raises(ValueError, match="field and the layer must be on one device"):
        layer(torch.zeros(5, 2, 4, device="meta"))
    for build in (MVGELU, MVLayerNorm, lambda a: MVLinear(a, 1, 1), lambda a: CGENN(a, 1, 1)):
        with pytest.raises(TypeError, match=r"expected a CliffordAlgebra, .* got \(1, 1\)"):
            build((1, 1))
    with pytest.raises(ValueError, match="hidden_dim must be at least 1, got 0"):
        CGENN(algebra, 1, 1, hidden_dim=0)
    with pytest.raises(ValueError, match="channels must be at least 1, got -1"):
        GradeNorm(algebra, -1)
    for bias in (None, "yes"):
        with pytest.raises(TypeError, match=rf"bias must be True, False or a .* got {bias!r}"):
            MVLinear(algebra, 1, 1, bias=bias)
    with pytest.raises(TypeError, match=r"dense tensor, got torch\.sparse_coo: use x\.to_dense"):
        layer(torch.zeros(5, 2, 4).to_sparse())
    with pytest.raises(TypeError, match=r"got torch\.complex64: use x\.real and x\.imag"):
        layer(torch.zeros(5, 2, 4, dtype=torch.complex64))
    with pytest.raises(ValueError, match="approximate must be one of tanh, none, got 'erf'"):
        MVGELU(algebra, approximate="erf")
    with torch.inference_mode():
        layer = MVLinear(algebra, 2, 3)
    with pytest.raises(ValueError, match="made in inference mode"):
        layer(torch.zeros(5, 2, 4))
    with torch.no_grad():
        assert layer(torch.zeros(5, 2, 4)).shape == (5, 3, 4)
