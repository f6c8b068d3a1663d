"""Differential kernels: exact symbols, differences at their rate, and boosts that hold on grids."""

import math
from itertools import product

import pytest
import torch

from cscnn import CliffordAlgebra, CliffordSteerableConv
from cscnn.conv import CliffordSteerablePointConv
from cscnn.kernels import Complete, Differential
from cscnn.kernels.stencils import (
    accuracy_of,
    central_weights,
    extrapolation_weights,
    radius_for,
)
from cscnn.nn import MVGELU
from cscnn.testing import (
    assert_steerable,
    conformance,
    grid_equivariance_errors,
    random_element,
    relative_error,
    steerability_errors,
)
from tests.conftest import metric_name, signatures
from tests.kernels.samples import grid


def differential(algebra, c_in, c_out, group="O", size=5, **options):
    choice = Differential(group=group, **options)
    points = grid(size, algebra.dim) if size > 1 else torch.zeros(1, algebra.dim).double()
    return choice.build(algebra, c_in, c_out, points, (size,) * algebra.dim)


TestDifferential = conformance.kernel(
    differential,
    groups=("O", "SO"),
    points=lambda algebra: grid(5, algebra.dim),
    compiles=False,
)
TestCompiled = conformance.kernel(  # one signature, it takes seconds
    differential, metrics=((1, -1),), points=lambda algebra: grid(5, algebra.dim)
)


# --- finite differences ---------------------------------------------------------------------------


@pytest.mark.parametrize("radius", [1, 2, 3, 4])
def test_differences_are_exact_on_polynomials(radius):
    for order in range(2 * radius + 1):
        weights = torch.tensor(central_weights(order, radius), dtype=torch.float64)
        at = torch.arange(-radius, radius + 1).double()
        for degree in range(2 * radius + 1):
            expected = float(math.factorial(degree)) if degree == order else 0.0
            assert float(weights @ at**degree) == pytest.approx(expected, abs=1e-9)
        parity = 1 if order % 2 == 0 else -1
        assert torch.equal(weights.flip(0), parity * weights)


@pytest.mark.parametrize("radius", [1, 2, 3])
def test_differences_converge_at_their_accuracy(radius):
    for order in range(1, 2 * radius + 1):
        exact = torch.tensor(
            0.3 + order * torch.pi / 2, dtype=torch.float64
        ).sin()  # derivative of the sine
        errors = []
        for h in (0.2, 0.1):
            at = 0.3 + h * torch.arange(-radius, radius + 1).double()
            weights = torch.tensor(central_weights(order, radius), dtype=torch.float64) / h**order
            errors.append((weights @ at.sin() - exact).abs())
        rate = float(torch.log2(errors[0] / errors[1]))
        assert abs(rate - accuracy_of(order, radius)) < 0.3
        assert radius_for(order, accuracy_of(order, radius)) == radius


@pytest.mark.parametrize(("amount", "degree"), [(1, 1), (2, 2), (3, 3), (1, 2), (2, 5)])
def test_extrapolation_continues_polynomials(amount, degree):
    weights = torch.tensor(extrapolation_weights(amount, degree), dtype=torch.float64)
    inside, outside = torch.arange(degree + 1).double(), -torch.arange(1, amount + 1).double()
    for power in range(degree + 1):
        assert torch.allclose(weights @ inside**power, outside**power)
    assert not torch.allclose(weights @ inside ** (degree + 1), outside ** (degree + 1))


# --- the symbol -----------------------------------------------------------------------------------


def as_polynomial(kernel):
    """Exponents of v -> matrix (c_out, n, c_in, n), with ∂_i = η_i v_i."""
    metric = kernel.algebra.metric
    matrices = kernel.matrices().detach().unbind(-1)
    result = {}
    for derivative, matrix in zip(kernel.derivatives, matrices, strict=True):
        for exponents, factor in derivative.along_axes(metric).items():
            sign = torch.tensor(metric).pow(torch.tensor(exponents)).prod()
            result[exponents] = result.get(exponents, 0) + factor * sign * matrix
    return result


def substituted(polynomial, g):
    """The polynomial p(g v) as exponents of v -> matrix, multiplied out."""
    dim = len(g)
    result = {}
    for exponents, matrix in polynomial.items():
        factors = [row for row, power in zip(g, exponents, strict=True) for _ in range(power)]
        for choice in product(range(dim), repeat=len(factors)):
            value = matrix
            for row, axis in zip(factors, choice, strict=True):
                value = value * row[axis]
            key = tuple(choice.count(axis) for axis in range(dim))
            result[key] = result[key] + value if key in result else value
    return result


@pytest.mark.parametrize("group", ["O", "SO"])
@pytest.mark.parametrize("metric", signatures(4), ids=metric_name)
def test_symbol_is_steerable_as_a_polynomial(metric, group):
    algebra = CliffordAlgebra(metric)
    kernel = differential(algebra, 1, 1, group=group).double()
    g = random_element(algebra, group, generator=torch.Generator().manual_seed(1), rapidity=1.0)
    rho = algebra.action(g)
    here = as_polynomial(kernel)
    moved = substituted(here, g)
    scale = max(float(m.abs().max()) for m in moved.values())
    zero = torch.zeros_like(next(iter(here.values())))
    for exponents in moved.keys() | here.keys():
        expected = torch.einsum(
            "xc,ocib,by->oxiy", rho, here.get(exponents, zero), torch.linalg.inv(rho)
        )
        assert float((moved.get(exponents, zero) - expected).abs().max()) < 1e-12 * max(scale, 1)


@pytest.mark.parametrize("metric", signatures(4), ids=metric_name)
def test_number_of_operators(metric):
    """One coefficient for each family and power of □ that the order admits, all independent."""
    algebra, d = CliffordAlgebra(metric), len(metric)
    for order, size in ((0, 1), (2, 3), (4, 5)):
        kernel = differential(algebra, 1, 1, order=order, size=size)
        expected = (d + 1) * (order // 2 + 1)
        expected += 2 * d * ((order + 1) // 2) + (d - 1) * (order // 2)
        assert len(kernel.operators) == expected
        taps = kernel._table.flatten(2).movedim(1, -1) @ kernel._stencils
        taps = taps / kernel._norms[:, None, None]
        assert torch.linalg.matrix_rank(taps.flatten(1)) == expected
        assert torch.allclose(taps.flatten(1).norm(dim=1), torch.ones(expected).double())


def test_the_control_fails():
    """Steerability of the symbol is a property: one wrong sign breaks it."""
    kernel = differential(CliffordAlgebra((1, -1)), 2, 2).double()
    assert_steerable(kernel, tol=1e-12)
    first_order = next(i for i, e in enumerate(kernel.derivatives) if e.order == 1)
    kernel._table[:, first_order] *= -1
    kernel.double()  # takes over the constants
    assert max(steerability_errors(kernel).values()) > 0.1


# --- as a convolution -----------------------------------------------------------------------------


def test_is_the_operator_on_polynomials():
    """With one coefficient it is ∇∧ of a scalar: the gradient, exact with anisotropic spacing."""
    algebra, spacing = CliffordAlgebra((1, -1)), (0.1, 0.3)
    conv = CliffordSteerableConv(
        algebra, 1, 1, 5, kernel="differential", spacing=spacing, padding=0, bias=False
    ).double()
    kernel = conv.kernel
    wedge = kernel.operators.index((kernel.basis.elements.index(("wedge", 0, False)), 0))
    with torch.no_grad():
        kernel.weight.zero_()[..., wedge] = 1.0
    t, x = torch.meshgrid(
        *(h * torch.arange(n).double() for h, n in zip(spacing, (9, 8), strict=True)), indexing="ij"
    )
    f = 2 * t**4 - t * x**3 + x**2
    gradient = torch.stack([8 * t**3 - x**3, -(-3 * t * x**2 + 2 * x)], -1)[2:-2, 2:-2]
    y = algebra.grade(conv(algebra.embed(f[None, None, ..., None], 0)), 1)[0, 0].detach()
    factor = y.flatten() @ gradient.flatten() / gradient.norm() ** 2
    assert relative_error(y, factor * gradient) < 1e-12


@pytest.mark.parametrize("metric", [(1,), (1, 1), (1, -1), (1, -1, -1)], ids=metric_name)
def test_commutes_with_the_grid(metric):
    algebra = CliffordAlgebra(metric)
    conv = CliffordSteerableConv(algebra, 2, 2, 5, kernel="differential", padding_mode="circular")
    errors = grid_equivariance_errors(conv, algebra, shape=(1, 2, *(7,) * len(metric)))
    assert max(errors.values()) < 1e-12


def centre_error(net, algebra, g, h, size):
    """Relative |net(gf) - g net(f)| at the fixed point of g, for fields known everywhere."""
    generator = torch.Generator().manual_seed(0)
    dim, bumps = algebra.dim, 4
    centres = torch.randn(bumps, dim, generator=generator).double() * 0.5
    amplitudes = torch.randn(8, bumps, algebra.n_blades, generator=generator).double()

    def field(at):  # (..., dim) -> (8, ..., blades)
        squares = (at.unsqueeze(-2) - centres).square().sum(-1)
        return torch.einsum("...k,skb->s...b", torch.exp(-squares / 2), amplitudes)

    axis = h * torch.arange(-(size // 2), size // 2 + 1).double()
    at = torch.stack(torch.meshgrid(*[axis] * dim, indexing="ij"), -1)
    moved = algebra.transform(g, field(at @ torch.linalg.inv(g).T))
    centre = (slice(None), slice(None), *(size // 2,) * dim)
    with torch.no_grad():
        a, b = net(moved[:, None])[centre], algebra.transform(g, net(field(at)[:, None])[centre])
    return float((a - b).norm() / (b - b.mean(0)).norm())


def network(algebra, kernel, h):
    """Two convolutions and a gate; differential ones are the same operators for every spacing."""
    torch.manual_seed(0)
    convs = [CliffordSteerableConv(algebra, *c, 5, kernel=kernel) for c in ((1, 2), (2, 1))]
    if isinstance(kernel, Differential):
        for conv in convs:
            degrees = [conv.kernel.basis.degrees[e] + 2 * p for e, p in conv.kernel.operators]
            conv.kernel.weight.data *= (0.4 / h) ** torch.tensor(degrees)
    return torch.nn.Sequential(convs[0], MVGELU(algebra), convs[1]).double()


@pytest.mark.parametrize(
    ("metric", "kind"), [((1, 1), "rotation"), ((1, -1), "boost"), ((1, -1, -1), "boost")]
)
@pytest.mark.parametrize(("order", "rate"), [(2, 4), (4, 2)])
def test_networks_converge_to_equivariance(metric, kind, order, rate):
    """At the rate of the differences, where kernels over a box of taps do not converge."""
    algebra = CliffordAlgebra(metric)
    g = random_element(
        algebra, "O", kind, rapidity=(0.4, 0.6), generator=torch.Generator().manual_seed(2)
    )
    steps = (0.05, 0.025)
    a, b = (
        centre_error(network(algebra, Differential(order=order), h), algebra, g, h, 9)
        for h in steps
    )
    assert abs(float(torch.tensor(a / b).log2()) - rate) < 0.3
    if kind == "boost":
        boxed = [
            centre_error(network(algebra, Complete(hidden_dim=4), h), algebra, g, h, 9)
            for h in steps
        ]
        assert min(boxed) > 0.1
        assert boxed[1] > 0.9 * boxed[0]


# --- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "size", "message"),
    [
        ({}, 3, r"order 4 of accuracy 2 need 5 taps per axis, got kernel_size \(3, 3\)"),
        ({"order": 2, "accuracy": 4}, 3, "need 5 taps"),
        ({"accuracy": 3}, 5, "even accuracy, got accuracy=3"),
        ({"order": -1}, 5, "order must be at least 0, got -1"),
        ({"group": "O+"}, 5, r"group must be one of O, SO, got 'O\+'"),
    ],
)
def test_mistakes_are_explained(options, size, message):
    with pytest.raises(ValueError, match=message):
        CliffordSteerableConv(CliffordAlgebra((1, 1)), 1, 1, size, kernel=Differential(**options))


def test_lives_on_its_grid():
    kernel = differential(CliffordAlgebra((1, 1)), 1, 1)
    assert torch.equal(kernel(kernel.points.flip(0)), kernel(kernel.points).flip(0))
    with pytest.raises(ValueError, match=r"grid of \(5, 5\) taps, .*0\.3.* is none of them"):
        kernel(torch.tensor([[0.3, 0.0]]))
    with pytest.raises(ValueError, match="need a grid"):
        CliffordSteerablePointConv(CliffordAlgebra((1, 1)), 1, 1, 1.0, kernel="differential")
