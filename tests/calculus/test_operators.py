"""∇ and its parts: loops, closed forms, identities, what physicists call them."""

import math

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from cscnn import CliffordAlgebra
from cscnn.calculus import (
    Differences,
    Spectral,
    curl,
    dalembertian,
    directional_derivative,
    divergence,
    exterior_derivative,
    gradient,
    interior_derivative,
    laplacian,
    partial_derivative,
    vector_derivative,
)
from cscnn.testing import relative_error
from tests.calculus.fields import naive_nabla, positions, smooth_field
from tests.conftest import metric_name, metrics, signatures

OPERATORS = (vector_derivative, exterior_derivative, interior_derivative, dalembertian)
SPACING = (0.5, 0.3, 0.7, 0.4)


def random_field(algebra, size=5):
    return torch.randn(2, 3, *(size,) * algebra.dim, algebra.n_blades, dtype=torch.float64)


# --- definitions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", [*metrics(3), *signatures(4, 4)], ids=metric_name)
@pytest.mark.parametrize(
    ("operator", "raise_by"),
    [(vector_derivative, (1, -1)), (exterior_derivative, (1,)), (interior_derivative, (-1,))],
)
def test_against_loops(metric, operator, raise_by):
    algebra, h = CliffordAlgebra(metric), SPACING[: len(metric)]
    f = random_field(algebra, 4)[:1, :1]

    def derivative(x, axis):
        return (np.roll(x, -1, axis) - np.roll(x, 1, axis)) / (2 * h[axis])

    expected = naive_nabla(f[0, 0].numpy(), metric, derivative, raise_by)
    y = operator(f, algebra, Differences(h, boundary="circular"))
    assert y.shape == f.shape
    assert np.abs(y[0, 0].numpy() - expected).max() < 1e-13


@pytest.mark.parametrize("metric", signatures(4), ids=metric_name)
def test_plane_waves(metric):
    """∇ (M sin k·x) = k M cos k·x with the vector k = sum_i η_i k_i e_i, and □ = -k k."""
    algebra, dim = CliffordAlgebra(metric), len(metric)
    h = SPACING[:dim]
    sizes = (5, 7, 6, 5)[:dim]
    waves = torch.tensor([1.0, -2.0, 1.0, 2.0][:dim]).double()
    periods = [n * s for n, s in zip(sizes, h, strict=True)]
    k = waves * 2 * math.pi / torch.tensor(periods, dtype=torch.float64)
    phase = (positions(sizes, h) @ k)[..., None] + 0.4
    m = torch.randn(algebra.n_blades, dtype=torch.float64)
    vector = algebra.embed(k * torch.tensor(metric), 1)
    f, cosine = m * phase.sin(), phase.cos()
    scheme = Spectral(h)
    for operator, product in (
        (vector_derivative, algebra.geometric_product),
        (exterior_derivative, algebra.wedge),
        (interior_derivative, algebra.left_contraction),
    ):
        assert relative_error(operator(f, algebra, scheme), product(vector, m) * cosine) < 1e-12
    square = algebra.geometric_product(vector, vector)[0]
    assert (dalembertian(f, algebra, scheme) + square * f).abs().max() < 1e-11


# --- identities -----------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", signatures(4), ids=metric_name)
def test_identities_of_fourier_series(metric):
    """To rounding: ∇∇ = □, ∇∧∇∧ = 0, ∇⌟∇⌟ = 0, and □ = ∇∧∇⌟ + ∇⌟∇∧."""
    algebra = CliffordAlgebra(metric)
    scheme = Spectral(SPACING[: len(metric)])
    f = random_field(algebra)
    box = dalembertian(f, algebra, scheme)
    nabla, d, delta = (
        lambda x, o=o: o(x, algebra, scheme)
        for o in (vector_derivative, exterior_derivative, interior_derivative)
    )
    scale = box.abs().max()
    assert (nabla(nabla(f)) - box).abs().max() < 1e-12 * scale
    assert (d(delta(f)) + delta(d(f)) - box).abs().max() < 1e-12 * scale
    assert d(d(f)).abs().max() < 1e-12 * scale
    assert delta(delta(f)).abs().max() < 1e-12 * scale


@pytest.mark.parametrize(
    ("boundary", "staggered"),
    [(("circular", "extrapolate", "reflect", "zeros"), False), (("circular",) * 4, True)],
)
@pytest.mark.parametrize("metric", signatures(4), ids=metric_name)
def test_identities_of_differences(metric, boundary, staggered):
    """∇∧∇∧ = 0 and ∇⌟∇⌟ = 0 to rounding: differences along two axes commute."""
    algebra, dim = CliffordAlgebra(metric), len(metric)
    scheme = Differences(SPACING[:dim], boundary=boundary[:dim], staggered=staggered)
    f = random_field(algebra, 4)[:1, :1]
    d, delta = (
        lambda x, o=o: o(x, algebra, scheme) for o in (exterior_derivative, interior_derivative)
    )
    nabla = vector_derivative(f, algebra, scheme)
    scale = vector_derivative(nabla, algebra, scheme).abs().max()
    assert (d(f) + delta(f) - nabla).abs().max() < 1e-12 * scale
    assert d(d(f)).abs().max() < 1e-12 * scale
    assert delta(delta(f)).abs().max() < 1e-12 * scale


class Curvilinear(Differences):
    """Coordinates whose ∂_0 depends on x_1: derivatives that do not commute."""

    def partial(self, f, axis, dim, order=1):
        y = super().partial(f, axis, dim, order)
        factor = torch.linspace(1, 2, f.shape[-2], dtype=f.dtype)[:, None]
        return y * factor if axis == 0 else y


def test_the_controls_fail():
    """Identities need derivatives that commute, and Nyquist modes are left out of ∇∇."""
    algebra = CliffordAlgebra((1, -1))
    f, scheme = random_field(algebra), Curvilinear()
    twice = exterior_derivative(exterior_derivative(f, algebra, scheme), algebra, scheme)
    assert twice.abs().max() > 0.1
    even = random_field(algebra, 6)
    nabla = vector_derivative(even, algebra, Spectral())
    nabla = vector_derivative(nabla, algebra, Spectral())
    assert relative_error(nabla, dalembertian(even, algebra, Spectral())) > 1e-2


@pytest.mark.parametrize("accuracy", [2, 4])
@pytest.mark.parametrize("metric", [(1, 1), (1, -1, -1)], ids=metric_name)
def test_composed_differences_converge_to_the_dalembertian(metric, accuracy):
    algebra, dim, gaps = CliffordAlgebra(metric), len(metric), []
    for h in (0.1, 0.05):
        f = smooth_field(algebra, positions((17,) * dim, (h,) * dim) - 8 * h)
        scheme = Differences(h, accuracy)
        twice = vector_derivative(vector_derivative(f, algebra, scheme), algebra, scheme)
        box = dalembertian(f, algebra, scheme)
        centre = (slice(None), *(8,) * dim)
        gaps.append(float((twice - box)[centre].norm() / box[centre].norm()))
    assert abs(math.log2(gaps[0] / gaps[1]) - accuracy) < 0.2


# --- along a vector -------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", signatures(4), ids=metric_name)
def test_directional_derivative(metric):
    """Constant and varying directions; of positions it is the direction, in every signature."""
    algebra, dim = CliffordAlgebra(metric), len(metric)
    h = SPACING[:dim]
    x = algebra.embed(positions((4,) * dim, h), 1)[None, None]
    scheme = Differences(h)
    v = torch.randn(dim, dtype=torch.float64)
    expected = algebra.embed(v, 1).expand_as(x)
    assert relative_error(directional_derivative(x, v, algebra, scheme), expected) < 1e-12
    field = torch.randn(1, 1, *(4,) * dim, dim, dtype=torch.float64)
    moved = directional_derivative(x, field, algebra, scheme)
    assert relative_error(moved, algebra.embed(field, 1)) < 1e-12


# --- names of physics -----------------------------------------------------------------------------


def slopes(field, h):
    """d[i][j] = ∂_j of component i, by numpy."""
    return [
        [np.gradient(part, step, axis=j, edge_order=2) for j, step in enumerate(h)]
        for part in np.moveaxis(field, -1, 0)
    ]


def test_vectors_and_magnetic_fields_in_space():
    algebra, h = CliffordAlgebra((1, 1, 1)), SPACING[:3]
    scheme = Differences(h)
    v = np.random.default_rng(0).standard_normal((5, 4, 6, 3))
    d = slopes(v, h)
    div = d[0][0] + d[1][1] + d[2][2]
    rot = np.stack([d[2][1] - d[1][2], d[0][2] - d[2][0], d[1][0] - d[0][1]], -1)
    vector = algebra.embed(torch.as_tensor(v), 1)
    bivector = algebra.undual(vector)  # b I: e23, e31, e12 carry b_x, b_y, b_z
    assert torch.equal(bivector[..., 4:7], vector[..., [3, 2, 1]] * torch.tensor([1, -1, 1]))

    def same(x, expected, grade):
        x = algebra.grade(x, grade).numpy()
        return np.abs(x - expected.reshape(x.shape)).max() < 1e-12

    assert same(divergence(vector, algebra, scheme), div, 0)
    assert same(algebra.dual(curl(vector, algebra, scheme)), rot, 1)
    assert same(curl(bivector, algebra, scheme), div, 3)
    assert same(divergence(bivector, algebra, scheme), -rot, 1)
    scalar = torch.as_tensor(v[..., 0])
    slope = gradient(algebra.embed(scalar[..., None], 0), algebra, scheme)
    assert same(slope, np.stack(d[0], -1), 1)


def test_vorticity_in_the_plane():
    algebra = CliffordAlgebra((1, 1))
    at = positions((5, 4), (0.5, 0.3))
    spin = algebra.embed(torch.stack([-at[..., 1], at[..., 0]], -1), 1)
    vorticity = algebra.dual(curl(spin, algebra, Differences((0.5, 0.3))))
    assert torch.allclose(vorticity[..., 0], torch.full((5, 4), 2.0).double())
    assert divergence(spin, algebra, Differences((0.5, 0.3))).abs().max() < 1e-12


def test_charge_and_current_in_spacetime():
    """With F = sum E_i e_i0 - (B_z e_12 - B_y e_13 + B_x e_23): ∇F = ρ e_0 + j."""
    algebra, h = CliffordAlgebra((1, -1, -1, -1)), SPACING
    eb = np.random.default_rng(0).standard_normal((4, 4, 5, 4, 6))
    e, b = eb[..., :3], eb[..., 3:]
    f = np.concatenate([e, b[..., [2]], -b[..., [1]], b[..., [0]]], -1)
    j = vector_derivative(algebra.embed(-torch.as_tensor(f), 2), algebra, Differences(h)).numpy()
    de, db = slopes(e, h), slopes(b, h)
    rho = de[0][1] + de[1][2] + de[2][3]
    rot_b = [db[2][2] - db[1][3], db[0][3] - db[2][1], db[1][1] - db[0][2]]
    rot_e = [de[2][2] - de[1][3], de[0][3] - de[2][1], de[1][1] - de[0][2]]
    assert np.abs(j[..., 1] - rho).max() < 1e-12
    for i in range(3):
        assert np.abs(j[..., 2 + i] - (rot_b[i] - de[i][0])).max() < 1e-12
    # the grade 3 part: Faraday's law and the absence of magnetic charge
    laws = [db[i][0] + rot_e[i] for i in range(3)] + [db[0][1] + db[1][2] + db[2][3]]
    trivectors = np.moveaxis(j[..., 11:15], -1, 0)
    for law, part in zip([laws[2], laws[1], laws[0], laws[3]], trivectors, strict=True):
        assert min(np.abs(law - part).max(), np.abs(law + part).max()) < 1e-12


def test_the_laplacian_is_euclidean():
    algebra = CliffordAlgebra((1, 1))
    at = positions((5, 5), (1, 1))
    f = algebra.embed(at.square().sum(-1, keepdim=True), 0)
    assert torch.allclose(laplacian(f, algebra)[..., 0], torch.full((5, 5), 4.0).double())
    with pytest.raises(ValueError, match=r"Euclidean space, got CliffordAlgebra\(\(1, -1\)\)"):
        laplacian(f, CliffordAlgebra((1, -1)))


# --- tensors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", [Differences(accuracy=4), Spectral()])
def test_derivatives_of_derivatives(scheme):
    algebra = CliffordAlgebra((1, -1))
    f = torch.randn(1, 6, 6, 4, dtype=torch.float64, requires_grad=True)
    v = torch.randn(6, 6, 2, dtype=torch.float64, requires_grad=True)
    for operator in OPERATORS:
        assert gradcheck(lambda x, o=operator: o(x, algebra, scheme), (f,), fast_mode=True)
    assert gradcheck(
        lambda x, y: directional_derivative(x, y, algebra, scheme), (f, v), fast_mode=True
    )
    batched = torch.func.vmap(lambda x: vector_derivative(x, algebra, scheme))(f)
    assert torch.allclose(batched, vector_derivative(f, algebra, scheme))
    tangent = torch.randn_like(f)
    pushed = torch.func.jvp(lambda x: curl(x, algebra, scheme), (f,), (tangent,))[1]
    assert torch.allclose(pushed, curl(tangent, algebra, scheme))


@pytest.mark.parametrize("scheme", [Differences(), Spectral()])
def test_dtypes_leading_axes_and_memory_orders(scheme):
    algebra = CliffordAlgebra((1, -1, -1))
    f = random_field(algebra)
    for operator in OPERATORS:
        y = operator(f, algebra, scheme)
        single = operator(f.float(), algebra, scheme)
        assert single.dtype == torch.float32
        assert relative_error(single.double(), y) < 1e-5
        assert torch.allclose(operator(f[0, 0], algebra, scheme), y[0, 0])
        planes = f.movedim(-1, 2).contiguous().movedim(2, -1)
        assert torch.allclose(operator(planes, algebra, scheme), y)
    half = vector_derivative(f.bfloat16(), algebra, Differences())
    assert half.dtype == torch.bfloat16


def test_one_scheme_per_axis():
    """Periodic in space, not in time."""
    algebra = CliffordAlgebra((1, -1))
    at = positions((6, 8), (0.1, math.pi / 4))
    f = algebra.embed((at[..., :1] ** 2 * at[..., 1:].sin()), 0)
    y = gradient(f, algebra, (Differences(0.1), Spectral(math.pi / 4)))
    expected = torch.stack(
        [2 * at[..., 0] * at[..., 1].sin(), -(at[..., 0] ** 2) * at[..., 1].cos()], -1
    )
    assert relative_error(algebra.grade(y, 1), expected) < 1e-12


def test_compiles_without_graph_breaks(fresh_compiler):
    algebra = CliffordAlgebra((1, -1))
    f = random_field(algebra)
    compiled = torch.compile(vector_derivative, backend="aot_eager", fullgraph=True)
    assert torch.allclose(compiled(f, algebra), vector_derivative(f, algebra))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda a, f: gradient(f[..., :3], a), ValueError, "must hold the 4 blades"),
        (lambda a, f: gradient(f[0], a), ValueError, r"2 axes of the grid, got \(5, 4\)"),
        (lambda a, f: gradient(f, (1, 1)), TypeError, r"expected a CliffordAlgebra.*\(1, 1\)"),
        (lambda a, f: gradient(f.long(), a), TypeError, "real floating dtype"),
        (lambda a, f: gradient(f, a, (Spectral(),)), ValueError, "scheme needs one value per axis"),
        (lambda a, f: partial_derivative(f, 2, a), ValueError, "axis must be from 0 to 1, got 2"),
        (
            lambda a, f: directional_derivative(f, f, a),
            ValueError,
            r"2 components of a vector .*got shape \(5, 5, 4\): take algebra.grade\(v, 1\)",
        ),
    ],
)
def test_mistakes_are_explained(call, error, message):
    algebra = CliffordAlgebra((1, -1))
    with pytest.raises(error, match=message):
        call(algebra, torch.zeros(5, 5, 4))
