"""The algebra as a citizen of PyTorch: dtypes, devices, gradients, compile, export, pickling."""

import copy
import pickle

import pytest
import torch

from cscnn import CliffordAlgebra
from tests.conftest import metric_name

METRICS = [(1, 1), (1, -1, -1), (1, -1, -1, -1)]


@pytest.mark.parametrize("metric", METRICS, ids=metric_name)
def test_equal_hashable_picklable(metric):
    algebra = CliffordAlgebra(metric)
    assert algebra == CliffordAlgebra(list(metric))
    assert algebra != CliffordAlgebra((*metric, 1))
    assert len({algebra, CliffordAlgebra(metric)}) == 1
    assert pickle.loads(pickle.dumps(algebra)) == algebra
    assert copy.deepcopy(algebra) == algebra
    assert eval(repr(algebra)) == algebra


def test_attributes():
    algebra = CliffordAlgebra.from_signature(1, 2)
    assert (algebra.dim, algebra.n_blades, algebra.signature) == (3, 8, (1, 2))
    assert algebra.grades == (0, 1, 1, 1, 2, 2, 2, 3)
    assert algebra.grade_slice(2) == slice(4, 7)
    assert [algebra.blade_square(i) for i in range(8)] == [1, 1, -1, -1, 1, 1, -1, -1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_low_precision(dtype, generator):
    algebra = CliffordAlgebra((1, -1, -1))
    x, y = (torch.randn(50, 8, generator=generator, dtype=torch.float64) for _ in range(2))
    z = algebra.geometric_product(x.to(dtype), y.to(dtype))
    assert z.dtype == dtype
    # One rounding of the result: sums are accumulated in float32.
    exact = algebra.geometric_product(x.to(dtype).double(), y.to(dtype).double())
    allowed = torch.finfo(dtype).eps * exact.abs() + 1e-5
    assert ((z.double() - exact).abs() <= allowed).all()
    assert algebra.exp(0.1 * x.to(dtype)).dtype == dtype


@pytest.mark.parametrize("metric", METRICS, ids=metric_name)
def test_gradients_to_second_order(metric, generator):
    algebra = CliffordAlgebra(metric)
    n = algebra.n_blades
    x, y = (
        torch.randn(2, n, generator=generator, dtype=torch.float64, requires_grad=True)
        for _ in range(2)
    )
    for product in (algebra.geometric_product, algebra.wedge, algebra.left_contraction):
        assert torch.autograd.gradcheck(product, (x, y), check_forward_ad=True)
        assert torch.autograd.gradgradcheck(product, (x, y))
    for function in (algebra.norm_squared, algebra.reverse, algebra.dual, algebra.exp):
        assert torch.autograd.gradcheck(function, 0.3 * x)


def test_func_transforms(generator):
    algebra = CliffordAlgebra((1, -1, -1))
    x, y = (torch.randn(5, 8, generator=generator, dtype=torch.float64) for _ in range(2))
    gp = algebra.geometric_product
    assert torch.allclose(torch.vmap(gp)(x, y), gp(x, y))
    assert torch.allclose(torch.vmap(gp, in_dims=(None, 0))(x[0], y), gp(x[0], y))
    jacobian = torch.func.jacrev(gp)(x[0], y[0])
    assert torch.allclose(jacobian @ x[0], gp(x[0], y[0]))
    g = algebra.random_orthogonal(batch=5, generator=generator, dtype=torch.float64)
    versors = torch.vmap(algebra.versor)(g)
    assert torch.allclose(torch.vmap(algebra.sandwich)(versors, x), algebra.sandwich(versors, x))
    per_sample = torch.vmap(torch.func.grad(lambda a, b: gp(a, b).sum()))(x, y)
    leaf = x.clone().requires_grad_()
    gp(leaf, y).sum().backward()
    assert torch.allclose(per_sample, leaf.grad)


def test_vmap_of_large_inputs(generator):
    algebra = CliffordAlgebra((1, -1, -1))
    x, y = (torch.randn(3, 5000, 8, generator=generator) for _ in range(2))
    z = torch.vmap(algebra.geometric_product, in_dims=(1, 1), out_dims=1)(x, y)
    assert torch.allclose(z, algebra.geometric_product(x, y), atol=1e-5)


def everything(algebra, x, y, g):
    z = algebra.geometric_product(x, y) + algebra.wedge(x, y) - algebra.left_contraction(x, y)
    z = algebra.dual(algebra.reverse(z)) + algebra.clifford_conjugation(x)
    z = algebra.sandwich(algebra.versor(g), z) + algebra.exp(0.1 * y)
    z = z * algebra.inner(x, y).unsqueeze(-1) + algebra.embed(algebra.grade(y, 1), 1)
    return algebra.transform(g, z), algebra.norm_squared_by_grade(z)


class Everything(torch.nn.Module):
    def __init__(self, metric):
        super().__init__()
        self.algebra = CliffordAlgebra(metric)

    def forward(self, x, y, g):
        return everything(self.algebra, x, y, g)


@pytest.mark.usefixtures("fresh_compiler")
def test_compile_fullgraph(generator):
    module = Everything((1, -1, -1))
    g = module.algebra.random_orthogonal(generator=generator)
    x, y = (torch.randn(6, 8, generator=generator, requires_grad=True) for _ in range(2))
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    for a, b in zip(compiled(x, y, g), module(x, y, g), strict=True):
        assert torch.allclose(a, b, atol=1e-5)
    grads = [torch.autograd.grad(f(x, y, g)[0].square().sum(), (x, y)) for f in (compiled, module)]
    assert all(torch.allclose(a, b, atol=1e-3) for a, b in zip(*grads, strict=True))


@pytest.mark.usefixtures("fresh_compiler")
def test_inductor(generator):
    algebra = CliffordAlgebra((1, -1))
    x, y = (torch.randn(6, 4, generator=generator, requires_grad=True) for _ in range(2))
    z = torch.compile(algebra.geometric_product, fullgraph=True)(x, y)
    assert torch.allclose(z, algebra.geometric_product(x, y), atol=1e-5)
    grads = torch.autograd.grad(z.square().sum(), (x, y))
    expected = torch.autograd.grad(algebra.geometric_product(x, y).square().sum(), (x, y))
    assert all(torch.allclose(a, b, atol=1e-3) for a, b in zip(grads, expected, strict=True))


def test_export(generator):
    module = Everything((1, -1))
    g = module.algebra.random_orthogonal(generator=generator)
    x, y = (torch.randn(6, 4, generator=generator) for _ in range(2))
    program = torch.export.export(module, (x, y, g))
    for a, b in zip(program.module()(x, y, g), module(x, y, g), strict=True):
        assert torch.allclose(a, b, atol=1e-6)


def test_export_with_dynamic_shapes(generator):
    class Product(torch.nn.Module):
        def forward(self, x, y):
            return CliffordAlgebra((1, -1)).geometric_product(x, y)

    b, c = torch.export.Dim("b", max=10_000), torch.export.Dim("c", max=10_000)
    example = (torch.randn(5, 4), torch.randn(3, 1, 4))
    program = torch.export.export(Product(), example, dynamic_shapes=({0: b}, {0: c}))
    x, y = torch.randn(2, 4, generator=generator), torch.randn(7, 1, 4, generator=generator)
    assert torch.allclose(program.module()(x, y), Product()(x, y), atol=1e-6)


def test_fake_tensors_after_real_ones():
    from torch._subclasses.fake_tensor import FakeTensorMode

    algebra = CliffordAlgebra((1, -1))
    algebra.geometric_product(torch.ones(4), torch.ones(4))
    with FakeTensorMode():
        fake = torch.ones(3, 4)
        assert algebra.norm_squared(algebra.geometric_product(fake, fake)).shape == (3,)
    assert algebra.norm_squared(torch.ones(4)).item() == 0


def test_after_inference_mode_gradients_still_work():
    algebra = CliffordAlgebra((-1, -1, 1))
    with torch.inference_mode():
        algebra.norm_squared(torch.ones(8))
    x = torch.ones(8, requires_grad=True)
    algebra.norm_squared(x).backward()
    assert x.grad is not None


@pytest.mark.parametrize(
    ("metric", "error", "message"),
    [
        ((1, 0), ValueError, r"degenerate: axis 1 has sign 0"),
        ((1, 2), ValueError, r"\+1 or -1, got 2 for axis 1"),
        ((1.0, 1), TypeError, r"integers \+1 or -1, got 1\.0 \(float\) for axis 0"),
        ((True, 1), TypeError, r"got True \(bool\)"),
        ((), ValueError, r"between 1 and 6 entries, got 0"),
        ((1,) * 7, ValueError, r"between 1 and 6 entries, got 7"),
        (3, TypeError, r"one sign per axis, .* got 3"),
        ("+0", TypeError, r"one sign per axis, .* got '\+0'"),
        ({1, -1}, TypeError, r"one sign per axis, .* got \{1, -1\}"),
        ((2, 0), ValueError, r"from_signature\(p, q\)"),
    ],
)
def test_bad_metrics(metric, error, message):
    with pytest.raises(error, match=message):
        CliffordAlgebra(metric)


def test_bad_tensors():
    algebra = CliffordAlgebra((1, 1, 1))
    good = torch.zeros(2, 8)
    with pytest.raises(ValueError, match=r"8 blades of .* got shape \(2, 4\)"):
        algebra.geometric_product(good, torch.zeros(2, 4))
    with pytest.raises(TypeError, match=r"torch\.int64"):
        algebra.geometric_product(good.long(), good)
    with pytest.raises(TypeError, match=r"torch\.complex64"):
        algebra.reverse(good.cfloat())
    with pytest.raises(TypeError, match="got list"):
        algebra.norm_squared([0.0] * 8)
    with pytest.raises(ValueError, match="one device, got cpu and meta"):
        algebra.wedge(good, good.to("meta"))
    with pytest.raises(ValueError, match=r"the 3 component\(s\) of grade 1 of .* got .* \(2, 4\)"):
        algebra.embed(torch.zeros(2, 4), 1)
    with pytest.raises(ValueError, match=r"grade must be an integer from 0 to 3, got 4"):
        algebra.grade(good, 4)
    with pytest.raises(ValueError, match=r"2 of 2 fail"):
        algebra.versor_inverse(good)
    with pytest.raises(ValueError, match=r"1 of 1 fail"):
        algebra.versor_inverse(torch.zeros(8))
    with pytest.raises(ValueError, match="x and y must be on one device, got cpu and meta"):
        algebra.inner(good, good.to("meta"))
    with pytest.raises(ValueError, match="x and g must be on one device, got cpu and meta"):
        algebra.transform(torch.eye(3, device="meta"), good)
    with pytest.raises(ValueError, match=r"p must be at least 0, got -1"):
        CliffordAlgebra.from_signature(-1, 2)
    with pytest.raises(TypeError, match=r"q must be an integer, got 2\.5"):
        CliffordAlgebra.from_signature(1, 2.5)
    with pytest.raises(ValueError, match=r"unsqueeze\(-1\)"):
        algebra.embed(torch.zeros(2, 4), 0)
    with pytest.raises(TypeError, match=r"got ndarray: use torch\.from_numpy"):
        algebra.reverse(good.numpy())
