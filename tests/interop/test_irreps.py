"""Multivectors as irreps of O(3): round trips, by loops, and under e3nn's own matrices."""

import warnings

import pytest
import torch

from cscnn import CliffordAlgebra
from cscnn.interop import from_irreps, multivector_irreps, to_irreps

SPACE = CliffordAlgebra((1, 1, 1))
TENSORS = CliffordAlgebra((1, 1, 1), symmetric=True)
MIXED = "2x0e+3x1o+1e+2x0o+1x1o"  # an irrep twice, out of order
STRESSES = "2x2e+0e+3x1o+1x2e"


@pytest.mark.parametrize("shape", [(5, 8), (7, 3, 8), (2, 4, 3, 8)])
def test_all_of_a_multivector_comes_back(shape):
    x = torch.randn(*shape, dtype=torch.float64)
    features = to_irreps(SPACE, x)
    assert features.shape == (*shape[:-2], 8 * shape[-2])
    assert torch.equal(from_irreps(SPACE, features, multivector_irreps(shape[-2])), x)


def test_features_are_where_a_loop_puts_them():
    x = from_irreps(SPACE, torch.arange(1.0, 20.0), MIXED)
    expected = torch.zeros(4, 8)
    for channel, scalar in enumerate((1, 2)):
        expected[channel, 0] = scalar
    for channel, first in enumerate((3, 6, 9, 17)):
        expected[channel, 1:4] = torch.arange(first, first + 3)
    expected[0, 4:7] = torch.tensor([14.0, -13.0, 12.0])  # e12: z, e13: -y, e23: x
    for channel, scalar in enumerate((15, 16)):
        expected[channel, 7] = scalar
    assert torch.equal(x, expected)
    assert torch.equal(to_irreps(SPACE, x, MIXED), torch.arange(1.0, 20.0))


def test_all_of_a_tensor_comes_back():
    x = torch.randn(7, 3, 13, dtype=torch.float64)
    features = to_irreps(TENSORS, x)
    assert features.shape == (7, 3 * 13)
    every = multivector_irreps(3, symmetric=True)
    assert every == "3x0e+3x1o+3x1e+3x0o+3x2e"
    assert torch.allclose(from_irreps(TENSORS, features, every), x, rtol=0, atol=1e-14)
    assert torch.allclose(features.norm(dim=-1), x.flatten(1).norm(dim=-1))


def test_tensors_are_where_formulas_put_them():
    """The components of 2e, of vvᵀ: spherical harmonics of v about the axis y."""
    v = torch.randn(10, 3, dtype=torch.float64)
    x, y, z = v.unbind(-1)
    harmonics = torch.stack(
        [2 * x * z, 2 * x * y, (2 * y * y - x * x - z * z) / 3**0.5, 2 * y * z, z * z - x * x], -1
    )
    outer = TENSORS.embed((v[:, :, None] * v[:, None]).flatten(1), "symmetric").unsqueeze(-2)
    assert torch.allclose(to_irreps(TENSORS, outer, "2e"), harmonics / 2**0.5)
    assert torch.allclose(to_irreps(TENSORS, outer, "0e")[:, 0], v.square().sum(-1) / 3**0.5)


def test_a_cross_product_is_the_axial_vector_of_a_wedge():
    a, b = torch.randn(2, 10, 3, dtype=torch.float64)
    plane = SPACE.wedge(SPACE.embed(a, 1), SPACE.embed(b, 1)).unsqueeze(-2)
    assert torch.allclose(to_irreps(SPACE, plane, "1e"), torch.linalg.cross(a, b))


@pytest.fixture
def _float64():
    """As the default, in which e3nn makes its matrices."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.mark.external
@pytest.mark.usefixtures("_float64")
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("algebra", "irreps"),
    [
        (SPACE, multivector_irreps(3)), (SPACE, MIXED), (TENSORS, STRESSES),
        (TENSORS, multivector_irreps(2, symmetric=True)),
        (CliffordAlgebra((-1, -1, -1), symmetric=True), STRESSES),
    ],
)  # fmt: skip
def test_it_commutes_with_the_matrices_of_e3nn(algebra, irreps, sign):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        o3 = pytest.importorskip("e3nn.o3", reason="e3nn is not installed")
        g = sign * o3.rand_matrix()
        listed = o3.Irreps(irreps)
        rho = listed.D_from_matrix(g)
        without_parity = o3.Irreps(irreps.replace("o", "e")).D_from_matrix(g)
    features = torch.randn(20, listed.dim, dtype=torch.float64)
    ours = algebra.transform(g, from_irreps(algebra, features, listed))
    assert torch.allclose(ours, from_irreps(algebra, features @ rho.T, irreps), atol=1e-12, rtol=0)
    back = to_irreps(algebra, ours, listed)
    assert torch.allclose(back, features @ rho.T, atol=1e-12, rtol=0)
    same = torch.allclose(back, features @ without_parity.T, atol=1e-3)
    assert same is (sign == 1)  # control: parities matter for reflections


@pytest.mark.external
@pytest.mark.usefixtures("_float64")
def test_cartesian_tensors_of_e3nn_have_the_same_components():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        io = pytest.importorskip("e3nn.io", reason="e3nn is not installed")
        cartesian = io.CartesianTensor("ij=ji")
        square = torch.randn(5, 3, 3)
        square = square + square.mT
        theirs = cartesian.from_cartesian(square)
    x = TENSORS.embed(square.flatten(1), "symmetric").unsqueeze(-2)
    assert torch.allclose(to_irreps(TENSORS, x, cartesian), theirs, atol=1e-12)


@pytest.mark.parametrize(
    ("irreps", "message"),
    [
        ("2x2e", "2e of 2x2e is no .*: grades are 0e, 1o, 1e, 0o; make .* with symmetric=True"),
        ("2x3o", "3o of 2x3o is no multivector: grades are 0e, 1o, 1e, 0o$"),
        ("vector", "like '8x0e.4x1o', got 'vector'"),
        ("2x0e", "2 components of 2x0e, got shape \\(5, 3\\)"),
    ],
)
def test_irreps_that_do_not_fit(irreps, message):
    with pytest.raises(ValueError, match=message):
        from_irreps(SPACE, torch.zeros(5, 3), irreps)


def test_other_spaces_and_channels_are_refused():
    with pytest.raises(ValueError, match="got CliffordAlgebra\\(\\(1, 1\\)\\)"):
        from_irreps(CliffordAlgebra((1, 1)), torch.zeros(5, 3), "1o")
    with pytest.raises(ValueError, match=r"3 irreps of grade 1, x has 2 channels"):
        to_irreps(SPACE, torch.zeros(4, 2, 8), "3x1o")
    with pytest.raises(ValueError, match="must have shape"):
        to_irreps(SPACE, torch.zeros(8))
    mirrored = CliffordAlgebra((-1, -1, -1))  # O(0, 3) is O(3)
    assert from_irreps(mirrored, torch.zeros(5, 3), "1o").shape == (5, 1, 8)
