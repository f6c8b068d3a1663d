"""Projections: least squares, mirrored fields, closed forms, symmetry."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

from cscnn import CliffordAlgebra
from cscnn.calculus import (
    Differences,
    Projection,
    Spectral,
    divergence,
    exterior_derivative,
    gradient,
    interior_derivative,
    mirror,
    project,
    with_mean,
)
from cscnn.testing import grid_equivariance_errors, relative_error
from tests.calculus.fields import positions
from tests.conftest import metric_name

SPACING = (0.5, 0.3, 0.7)
MODES = ("circular", "wall", "conductor")
EUCLIDEAN = [(1,), (1, 1), (-1, -1), (1, 1, 1)]
OPERATORS = {"closed": exterior_derivative, "coclosed": interior_derivative}


def noise(algebra, *grid):
    return torch.randn(*grid, algebra.n_blades, dtype=torch.float64)


def schemes(dim, boundary):
    h = SPACING[:dim]
    return (
        Spectral(h, boundary),
        Differences(h, 2, boundary),
        Differences(h, 4, boundary),
        Differences(h, 2, boundary, staggered=True),
    )


def cases(metrics=EUCLIDEAN):
    for metric in metrics:
        for boundary in itertools.product(MODES, repeat=len(metric)):
            for scheme in schemes(len(metric), boundary):
                yield CliffordAlgebra(metric), scheme


# --- what a projection is -------------------------------------------------------------------------


def test_the_matching_operator_is_zero():
    """∇∧ of closed and ∇⌟ of co-closed parts, on odd and even sizes, for all boundaries."""
    for algebra, scheme in cases():
        f = noise(algebra, 2, *(5, 6, 4)[: algebra.dim])
        for onto, operator in OPERATORS.items():
            assert operator(project(f, algebra, onto, scheme), algebra, scheme).abs().max() < 1e-12
            assert operator(f, algebra, scheme).abs().max() > 0.1


def test_idempotent_self_adjoint_and_complete():
    for algebra, scheme in cases([(1,), (1, 1)]):
        f, g = noise(algebra, *(5, 6)[: algebra.dim]), noise(algebra, *(5, 6)[: algebra.dim])
        parts = [project(f, algebra, onto, scheme) for onto in ("exact", "coexact", "harmonic")]
        assert (sum(parts) - f).abs().max() < 1e-13
        for a, b in itertools.combinations(parts, 2):
            assert (a * b).sum().abs() < 1e-12
        closed = project(f, algebra, "closed", scheme)
        assert (closed - parts[0] - parts[2]).abs().max() < 1e-13
        assert (project(closed, algebra, "closed", scheme) - closed).abs().max() < 1e-13
        other = (f * project(g, algebra, "closed", scheme)).sum()
        assert ((closed * g).sum() - other).abs() < 1e-12


def matrix_of(operator, algebra, grid, scheme):
    """An operator on all fields of a tiny grid, as a matrix."""
    size = math.prod(grid) * algebra.n_blades
    unit = torch.eye(size, dtype=torch.float64).reshape(size, *grid, algebra.n_blades)
    return operator(unit, algebra, scheme).reshape(size, size).T.numpy()


@pytest.mark.parametrize(
    ("metric", "grid"), [((1,), (5,)), ((1, 1), (4, 3)), ((-1, -1), (4, 4)), ((1, 1, 1), (3, 2, 4))]
)
@pytest.mark.parametrize("mode", [*MODES, "mixed"])
def test_against_least_squares(metric, grid, mode):
    """The nearest field in the null space of the operator's matrix, by numpy."""
    algebra = CliffordAlgebra(metric)
    boundary = ("wall", "circular", "conductor")[: algebra.dim] if mode == "mixed" else mode
    f = noise(algebra, *grid)
    for scheme in (Spectral(0.3, boundary), Differences(0.5, 2, boundary),
                   Differences(0.5, 2, boundary, staggered=True)):  # fmt: skip
        for onto, operator in OPERATORS.items():
            a = matrix_of(operator, algebra, grid, scheme)
            b = f.flatten().numpy()
            part = np.linalg.lstsq(a, a @ b, rcond=1e-10)[0]  # of least norm: orthogonal to zeros
            expected = (b - part).reshape(f.shape)
            assert np.abs(project(f, algebra, onto, scheme).numpy() - expected).max() < 1e-11


def fft_divergence_free(v, spacing):
    """v - k (k·v)/k² of a periodic vector field (*grid, dim) in numpy, by complex FFTs."""
    grid = v.shape[:-1]
    waves = []
    for n, h in zip(grid, spacing, strict=True):
        k = 2 * np.pi * np.fft.fftfreq(n, h)
        waves.append(np.where(np.isclose(np.abs(k), np.pi / h), 0, k))
    k = np.stack(np.meshgrid(*waves, indexing="ij"), -1)
    axes = tuple(range(len(grid)))
    c = np.fft.fftn(v, axes=axes)
    square = (k**2).sum(-1, keepdims=True)
    c = c - k * (k * c).sum(-1, keepdims=True) / np.where(square == 0, 1, square)
    return np.fft.ifftn(c, axes=axes).real


@pytest.mark.parametrize("boundary", list(itertools.product(MODES, repeat=2)))
def test_walls_against_the_mirrored_field(boundary):
    algebra, h = CliffordAlgebra((1, 1)), (0.5, 0.3)
    v = algebra.embed(torch.randn(5, 4, 2, dtype=torch.float64), 1)
    wide = algebra.grade(mirror(v, algebra, boundary), 1).numpy()
    expected = fft_divergence_free(wide, h)[:5, :4]
    flow = algebra.grade(project(v, algebra, "divergence_free", Spectral(h, boundary)), 1)
    assert np.abs(flow.numpy() - expected).max() < 1e-12


# --- closed forms ---------------------------------------------------------------------------------


def test_gradients_vanish_and_curls_stay():
    for algebra, scheme in cases([(1, 1), (1, 1, 1)]):
        grid = (5, 6, 4)[: algebra.dim]
        grad = gradient(algebra.embed(noise(algebra, *grid)[..., :1], 0), algebra, scheme)
        assert project(grad, algebra, "divergence_free", scheme).abs().max() < 1e-12
        assert (project(grad, algebra, "curl_free", scheme) - grad).abs().max() < 1e-12
        b = algebra.embed(algebra.grade(noise(algebra, *grid), 2), 2)
        flow = interior_derivative(b, algebra, scheme)
        assert (project(flow, algebra, "divergence_free", scheme) - flow).abs().max() < 1e-12


@pytest.mark.parametrize("metric", [(1, 1), (-1, -1), (1, 1, 1)], ids=metric_name)
def test_plane_waves(metric):
    """M sin(k·x) has the exact part k∧(k⌟M)/k² sin(k·x), also in the algebra's own products."""
    algebra, dim = CliffordAlgebra(metric), len(metric)
    sizes, h = (8, 7, 5)[:dim], SPACING[:dim]
    periods = torch.tensor([n * s for n, s in zip(sizes, h, strict=True)], dtype=torch.float64)
    k = torch.tensor([1.0, -2.0, 1.0][:dim]).double() * 2 * math.pi / periods
    wave = ((positions(sizes, h) @ k)[..., None] + 0.4).sin()
    m, vector = noise(algebra), algebra.embed(k, 1)
    square = algebra.geometric_product(vector, vector)[0]
    exact = algebra.wedge(vector, algebra.left_contraction(vector, m)) / square
    assert (project(m * wave, algebra, "exact", Spectral(h)) - exact * wave).abs().max() < 1e-12


def test_magnetic_field_without_charges():
    """A bivector B of space: ∇∧B = 0 is div b = 0; at a conductor no field passes the wall."""
    algebra = CliffordAlgebra((1, 1, 1))
    scheme = Differences(boundary="conductor")
    layer = Projection(algebra, "closed", scheme, grades=(2,))
    f = noise(algebra, 4, 5, 6)
    y = layer(f)
    others = [i for i, k in enumerate(algebra.grades) if k != 2]
    assert torch.equal(y[..., others], f[..., others])
    b = algebra.grade(y, 2)
    wide = torch.nn.functional.pad(b, (0, 0, 1, 1, 1, 1, 1, 1))
    for axis, name in enumerate((2, 1, 0)):  # b_x is on e23, the last; odd at the ends of its axis
        for end, inner in ((0, 1), (-1, -2)):
            wide.select(axis, end)[..., name] = -wide.select(axis, inner)[..., name]
    slopes = [(wide[..., n].roll(-1, a) - wide[..., n].roll(1, a)) / 2 for a, n in
              enumerate((2, 1, 0))]  # fmt: skip
    total = slopes[0] - slopes[1] + slopes[2]  # e13 is -b_y
    assert total[1:-1, 1:-1, 1:-1].abs().max() < 1e-13


def test_null_modes_stay():
    """Constants, and on even grids the checkerboard, which central differences cannot see."""
    algebra = CliffordAlgebra((1, 1))
    signs = (-1.0) ** torch.arange(6, dtype=torch.float64)
    checkerboard = (signs[:, None] * signs)[..., None].expand(6, 6, 4)
    for f in (torch.ones(6, 6, 4, dtype=torch.float64), checkerboard):
        for scheme in (Spectral(), Differences(boundary="circular")):
            assert (project(f, algebra, "harmonic", scheme) - f).abs().max() < 1e-14
            assert project(f, algebra, "coexact", scheme).abs().max() < 1e-14


def test_slices_in_time():
    """With time as an axis B of F is projected at each time, and E stays."""
    algebra, space = CliffordAlgebra((1, -1, -1, -1)), CliffordAlgebra((1, 1, 1))
    scheme = Differences((1.0, 0.5, 0.3, 0.7), boundary=("zeros", "circular", "wall", "circular"))
    f = noise(algebra, 2, 4, 3, 5)
    y = project(f, algebra, "closed", scheme, grades=(2,), axes=(1, 2, 3))
    assert torch.equal(y[..., 5:8], f[..., 5:8])  # e12, e13, e14
    in_space = Differences((0.5, 0.3, 0.7), boundary=("circular", "wall", "circular"))
    b = space.embed(f[..., 8:11], 2)
    expected = project(b, space, "closed", in_space)
    assert (y[..., 8:11] - space.grade(expected, 2)).abs().max() < 1e-14


# --- symmetry -------------------------------------------------------------------------------------


@pytest.mark.parametrize("onto", ["closed", "coclosed", "harmonic"])
@pytest.mark.parametrize("size", [5, 6])
def test_commutes_with_the_grid(onto, size):
    for metric in ((1, 1), (1, 1, 1)):
        algebra = CliffordAlgebra(metric)
        for mode in MODES:
            for scheme in (Spectral(0.5, mode), Differences(0.5, 2, mode, staggered=True)):
                layer = Projection(algebra, onto, scheme)
                errors = grid_equivariance_errors(layer, algebra, (1, 1, *(size,) * algebra.dim))
                assert errors["point group"] < 1e-12
                if mode == "circular" or onto != "harmonic":  # the mean does not see walls
                    assert (errors["translation"] < 1e-12) == (mode == "circular")


def test_what_is_no_projection_of_the_grid_does_not_commute():
    """The control: spacings that differ on a square grid, and one component left out."""
    algebra = CliffordAlgebra((1, 1))
    skewed = Projection(algebra, "coclosed", Spectral((0.5, 0.3)))

    def half(f):
        y = project(f, algebra, "coclosed", Spectral())
        return torch.cat([y[..., :2], f[..., 2:]], -1)

    for broken in (skewed, half):
        assert grid_equivariance_errors(broken, algebra, (1, 1, 6, 6))["point group"] > 0.1


# --- as a layer -----------------------------------------------------------------------------------


def test_gradients():
    algebra = CliffordAlgebra((1, 1))
    for scheme in (Spectral(boundary=("circular", "wall")), Differences(boundary="conductor")):
        layer = Projection(algebra, "divergence_free", scheme, grades=(1,))
        assert gradcheck(layer, (noise(algebra, 2, 3, 4).requires_grad_(),))


def test_shapes_and_precisions():
    algebra = CliffordAlgebra((1, 1))
    layer = Projection(algebra, "divergence_free", Spectral(boundary=("circular", "wall")))
    for shape in ((1, 1), (1, 7), (8, 2), (3, 4, 5), (0, 2, 4, 6), (2, 1, 3, 16, 9)):
        f = torch.randn(*shape, 4)
        y = layer(f)
        assert (y.shape, y.dtype) == (f.shape, f.dtype)
        assert f.numel() == 0 or relative_error(y, layer(f.double()).float()) < 1e-5
    f = torch.randn(4, 5, 4)
    assert layer(f.bfloat16()).dtype == torch.bfloat16
    with torch.autocast("cpu", torch.bfloat16):
        cast = layer(f)
    assert torch.equal(cast, layer(f))


def test_compiles_and_exports(fresh_compiler):
    algebra = CliffordAlgebra((1, 1))
    layer = Projection(algebra, "coclosed", Differences(boundary=("circular", "wall")))
    f = torch.randn(2, 5, 4, 4)
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    assert torch.allclose(compiled(f), layer(f), atol=1e-6)
    program = torch.export.export(layer, (f,)).module()
    assert torch.allclose(program(f), layer(f), atol=1e-6)
    assert not any("fft" in str(node.target) for node in program.graph.nodes)  # ONNX knows the rest


def test_means():
    algebra = CliffordAlgebra((1, 1))
    f, before = noise(algebra, 2, 5, 4), noise(algebra, 2, 5, 4)
    kept = with_mean(f, before, algebra)
    assert (kept.mean((1, 2)) - before.mean((1, 2))).abs().max() < 1e-14
    assert (kept - f - (kept - f)[:, :1, :1]).abs().max() < 1e-14  # a constant
    walled = with_mean(f, before, algebra, ("wall", "circular"))
    assert torch.equal(walled[..., [1, 3]], f[..., [1, 3]])  # e1, e12 are odd: no constant
    assert torch.equal(walled[..., [0, 2]], kept[..., [0, 2]])
    # so it keeps what a projection has made
    scheme = Differences(boundary=("wall", "circular"))
    flow = project(f, algebra, "coclosed", scheme)
    after = with_mean(flow, before, algebra, scheme.boundary)
    assert divergence(after, algebra, scheme).abs().max() < 1e-13


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("mode", ["wall", "conductor"])
def test_constants_that_walls_allow(symmetric, mode):
    """Those that are their own mirror images, of blades and of symmetric tensors."""
    algebra = CliffordAlgebra((1, 1, 1), symmetric)
    boundary = ("circular", mode, mode)
    f = torch.zeros(2, 3, 2, algebra.n_blades)
    kept = with_mean(f, torch.ones_like(f), algebra, boundary)
    expected = (mirror(torch.ones_like(f), algebra, boundary) > 0).all(0).all(0).all(0)
    assert torch.equal(kept, expected.to(kept).expand_as(f))
    chosen = with_mean(f, torch.ones_like(f), algebra, boundary, grades=(1, 4))
    within = torch.tensor([grade in (1, 4) for grade in algebra.grades])
    assert torch.equal(chosen, (expected & within).to(kept).expand_as(f))


def test_tensors_have_no_projection():
    algebra = CliffordAlgebra((1, 1), symmetric=True)
    f = noise(algebra, 5, 4)
    after = project(f, algebra, "coclosed", Spectral())
    assert torch.equal(after[..., 4:], f[..., 4:])
    alone = project(f[..., :4], algebra.multivectors, "coclosed", Spectral())
    assert relative_error(after[..., :4], alone) < 1e-14
    with pytest.raises(ValueError, match=r"that can be projected are 0 to 2, got 3"):
        Projection(algebra, "closed", grades=(3,))


def test_errors():
    algebra, spacetime = CliffordAlgebra((1, 1)), CliffordAlgebra((1, -1))
    f = noise(algebra, 4, 4)
    with pytest.raises(ValueError, match=r"axis 0 has boundary 'extrapolate'.*open borders"):
        project(f, algebra, "closed", Differences())
    with pytest.raises(ValueError, match=r"mixed signs.*axes of one sign"):
        project(f, spacetime, "closed", Spectral())
    with pytest.raises(ValueError, match="onto must be"):
        Projection(algebra, "solenoidal")
    with pytest.raises(ValueError, match=r"grades of .* projected are 0 to 2, got 3"):
        Projection(algebra, "closed", grades=(3,))
    with pytest.raises(ValueError, match="axes must be different ones from 0 to 1"):
        Projection(algebra, "closed", axes=(0, 2))
    with pytest.raises(ValueError, match="has shape"):
        Projection(algebra, "closed")(torch.zeros(4, 4))
