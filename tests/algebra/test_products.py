"""Products, involutions, duals and exponentials: the clifford package and loops as oracles."""

import numpy as np
import pytest
import torch

from cscnn import CliffordAlgebra
from cscnn.algebra.bilinear import PLANES_FROM, by_planes, gathered, unrolled
from tests.conftest import metric_name, metrics

clifford = pytest.importorskip("clifford", reason="the clifford package is the oracle here")

TOL = 1e-12


@pytest.fixture(scope="module", params=metrics(4), ids=metric_name)
def pair(request):
    """Our algebra and the same one of the clifford package."""
    layout, _ = clifford.Cl(sig=list(request.param), firstIdx=1)
    return CliffordAlgebra(request.param), layout


def draw(algebra, generator, count=4):
    return torch.randn(count, algebra.n_blades, generator=generator, dtype=torch.float64)


@pytest.fixture(autouse=True, scope="module")
def _exact_series():
    before = clifford.eps()
    clifford.eps(1e-30)
    yield
    clifford.eps(before)


def agree(ours, theirs):
    theirs = torch.tensor(np.array([mv.value for mv in theirs]))
    return (ours - theirs).abs().max() <= TOL * (1 + theirs.abs().max())


def test_blade_order_is_the_oracles(pair):
    algebra, layout = pair
    assert algebra.blade_names == tuple(name or "1" for name in layout.names)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("geometric_product", lambda a, b: a * b),
        ("wedge", lambda a, b: a ^ b),
        ("left_contraction", lambda a, b: a.lc(b)),
        ("right_contraction", lambda a, b: ~((~b).lc(~a))),
        ("regressive", lambda a, b: (a.dual() ^ b.dual()).dual() * a.layout.pseudoScalar**2),
    ],
)
def test_binary_products(pair, generator, ours, theirs):
    algebra, layout = pair
    x, y = draw(algebra, generator), draw(algebra, generator)
    expected = [
        theirs(layout.MultiVector(a.numpy()), layout.MultiVector(b.numpy()))
        for a, b in zip(x, y, strict=True)
    ]
    assert agree(getattr(algebra, ours)(x, y), expected)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("reverse", lambda a: ~a),
        ("grade_involution", lambda a: a.gradeInvol()),
        ("clifford_conjugation", lambda a: a.conjugate()),
        ("dual", lambda a: a.dual()),
    ],
)
def test_unary_operations(pair, generator, ours, theirs):
    algebra, layout = pair
    x = draw(algebra, generator)
    assert agree(getattr(algebra, ours)(x), [theirs(layout.MultiVector(a.numpy())) for a in x])


def test_grades(pair, generator):
    algebra, layout = pair
    x = draw(algebra, generator)
    for k in range(algebra.n_grades):
        projected = algebra.embed(algebra.grade(x, k), k)
        assert agree(projected, [layout.MultiVector(a.numpy())(k) for a in x])


def test_undual_inverts_dual(pair, generator):
    algebra, _ = pair
    x = draw(algebra, generator)
    assert torch.allclose(algebra.undual(algebra.dual(x)), x, atol=TOL, rtol=0)


def test_exponential_of_bivectors(pair, generator):
    algebra, layout = pair
    if algebra.dim < 2:
        pytest.skip("no bivectors in one dimension")
    b = algebra.embed(0.7 * algebra.grade(draw(algebra, generator), 2), 2)
    exp = clifford.taylor_expansions.exp  # by default it stops at 1e-12
    expected = [exp(layout.MultiVector(a.numpy()), max_order=40) for a in b]
    assert agree(algebra.exp(b), expected)


def test_versor_inverse(pair, generator):
    algebra, layout = pair
    v = algebra.versor(
        algebra.random_orthogonal(batch=(4,), generator=generator, dtype=torch.float64)
    )
    assert agree(algebra.versor_inverse(v), [layout.MultiVector(a.numpy()).inv() for a in v])


def test_inverse_of_any_multivector(pair, generator):
    algebra, layout = pair
    x = draw(algebra, generator)
    mine = algebra.inverse(x)
    one = algebra.embed(torch.ones(1, dtype=x.dtype), 0)
    for product in (algebra.geometric_product(x, mine), algebra.geometric_product(mine, x)):
        assert (product - one).abs().max() < 1e-9 * (1 + float(mine.abs().max() * x.abs().max()))
    theirs = [layout.MultiVector(a.numpy()).leftLaInv() for a in x]
    theirs = torch.tensor(np.array([mv.value for mv in theirs]))
    assert (mine - theirs).abs().max() < 1e-9 * (1 + theirs.abs().max())


def test_what_divides_zero_has_no_inverse():
    algebra = CliffordAlgebra((1, 1))
    with pytest.raises(
        ValueError, match=r"x has no inverse .* 1 of 2 fail, the first is \[1.0, 1.0"
    ):
        algebra.inverse(torch.tensor([[1.0, 1.0, 0, 0], [2.0, 1.0, 0, 0]]))  # (1 + e1)(1 - e1) = 0
    for bad in (torch.zeros(4), torch.tensor([torch.nan, 0, 0, 0])):
        with pytest.raises(ValueError, match=r"x has no inverse .* 1 of 2 fail"):
            algebra.inverse(torch.stack([bad, torch.tensor([1.0, 0, 0, 0])]))


def test_inverses_in_half_precision_and_of_nothing():
    algebra = CliffordAlgebra((1, 1))
    half = algebra.inverse(torch.tensor([1.0, 0.875, 0, 0]).bfloat16())  # nearly divides zero
    assert half.dtype == torch.bfloat16
    assert (half[:2].double() - torch.tensor([64.0, -56.0]) / 15).abs().max() < 0.02
    for function in (algebra.inverse, algebra.exp, algebra.log):
        assert function(torch.zeros(0, 4)).shape == (0, 4)


def test_logarithm_inverts_the_exponential(pair, generator):
    """Of bivectors, and of all multivectors that are not too large; against scipy's logm."""
    algebra, _ = pair
    logm = pytest.importorskip("scipy.linalg").logm
    x = 0.4 * draw(algebra, generator)
    if algebra.dim > 1:
        x = torch.cat([x, algebra.embed(algebra.grade(draw(algebra, generator), 2), 2)])
    y = algebra.exp(x)
    mine = algebra.log(y)
    assert (algebra.exp(mine) - y).abs().max() < 1e-10 * (1 + y.abs().max())
    theirs = torch.tensor(np.array([logm(m.numpy()).real[:, 0] for m in algebra.left_matrix(y)]))
    assert (mine - theirs).abs().max() < 1e-8
    assert (mine[:4] - x[:4]).abs().max() < 1e-9


def test_logarithms_of_null_rotations_and_of_none():
    algebra = CliffordAlgebra((1, -1, -1))
    null = torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64)  # a light ray
    b = algebra.wedge(algebra.embed(null, 1), algebra.embed(null.new_tensor([0.0, 0.0, 3.0]), 1))
    assert (algebra.log(algebra.exp(b)) - b).abs().max() < 1e-12
    with pytest.raises(ValueError, match="x has no principal logarithm"):
        algebra.log(-algebra.embed(torch.ones(1), 0))
    x = (0.3 * b + 0.1).requires_grad_()
    assert torch.autograd.gradcheck(algebra.log, algebra.exp(x).detach().requires_grad_())


@pytest.mark.parametrize("metric", [(1,), (-1, 1), (1, -1, 1), (1, -1, -1, -1)], ids=metric_name)
def test_naive_multiplication_of_generators(metric, generator):
    """Multiply blades as words of generators, sorting by swaps: nothing shared with the library."""

    def multiply(word):
        sign, word = 1, list(word)
        moved = True
        while moved:
            moved = False
            for i in range(len(word) - 1):
                if word[i] > word[i + 1]:
                    word[i], word[i + 1], sign, moved = word[i + 1], word[i], -sign, True
                elif word[i] == word[i + 1]:
                    sign *= metric[word[i]]
                    del word[i : i + 2]
                    moved = True
                    break
        return tuple(word), sign

    algebra = CliffordAlgebra(metric)
    x, y = (draw(algebra, generator, 1)[0] for _ in range(2))
    expected = torch.zeros(algebra.n_blades, dtype=torch.float64)
    for i, a in enumerate(algebra.blades):
        for j, b in enumerate(algebra.blades):
            word, sign = multiply(a + b)
            expected[algebra.blades.index(word)] += sign * x[i] * y[j]
    assert torch.allclose(algebra.geometric_product(x, y), expected, atol=TOL, rtol=0)


@pytest.mark.parametrize("metric", [(1,), (1, -1), (1, 1, 1), (1, -1, -1, -1)], ids=metric_name)
@pytest.mark.parametrize("kind", ["geometric", "wedge", "left_contraction"])
def test_all_ways_are_equal_in_every_role(metric, kind, generator):
    algebra = CliffordAlgebra(metric)
    table = algebra.tables[kind]
    x, y = draw(algebra, generator, 7), draw(algebra, generator, 7)
    for roles in table.rounds:
        expected = gathered(x, y, table, roles)
        for way in (by_planes, unrolled):
            assert torch.allclose(way(x, y, table, roles), expected, atol=TOL, rtol=0)


@pytest.mark.parametrize("blades_last", [True, False])
def test_large_inputs_and_memory_order(blades_last, generator):
    """Large inputs take the other path: same values, and the memory order of the input."""
    algebra = CliffordAlgebra((1, -1, 1))
    n = PLANES_FROM // algebra.n_blades + 1
    if blades_last:
        x, y = (torch.randn(2, n, 8, generator=generator).double() for _ in range(2))
    else:
        x, y = (torch.randn(2, 8, n, generator=generator).double().mT for _ in range(2))
    x.requires_grad_()
    z = algebra.geometric_product(x, y)
    assert z.stride() == x.stride()
    pieces = torch.stack([algebra.geometric_product(x[:, i], y[:, i]) for i in (0, 5, n - 1)], 1)
    assert torch.allclose(z[:, [0, 5, n - 1]], pieces, atol=TOL, rtol=0)
    (grad,) = torch.autograd.grad(z.square().sum(), x, create_graph=True)
    small = x[:, 3].detach().requires_grad_()
    loss = algebra.geometric_product(small, y[:, 3]).square().sum()
    (expected,) = torch.autograd.grad(loss, small)
    assert torch.allclose(grad[:, 3], expected, atol=1e-11)
    (second,) = torch.autograd.grad(grad.square().sum(), x)
    (small_grad,) = torch.autograd.grad(
        algebra.geometric_product(small, y[:, 3]).square().sum(), small, create_graph=True
    )
    (expected,) = torch.autograd.grad(small_grad.square().sum(), small)
    assert torch.allclose(second[:, 3], expected, atol=1e-9)


@pytest.mark.parametrize("points", [6, PLANES_FROM])
@pytest.mark.parametrize("blades_last", [True, False])
def test_the_larger_factor_has_the_memory_order(blades_last, points, generator):
    """Whichever side it is on, and however large it is."""
    algebra = CliffordAlgebra((1, -1))
    x = torch.randn(2, 3, 4, points, generator=generator)
    x = x.mT.contiguous() if blades_last else x.mT
    weight = torch.randn(3, 1, 4, generator=generator)
    for left, right in ((x, x), (weight, x), (x, weight)):
        z = algebra.geometric_product(left, right)
        assert z.stride() == x.stride()
        first = (t[..., :1, :].contiguous() for t in (left, right))
        assert torch.allclose(z[..., :1, :], algebra.geometric_product(*first), atol=1e-5)


def test_forward_mode_on_large_inputs(generator):
    algebra = CliffordAlgebra((1, -1, 1))
    x, dx = torch.randn(2, PLANES_FROM // 8 + 1, 8, generator=generator).double()
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, dx)
        tangent = torch.autograd.forward_ad.unpack_dual(algebra.geometric_product(dual, x)).tangent
    assert torch.allclose(tangent, algebra.geometric_product(dx, x), atol=TOL, rtol=0)


def test_broadcasting_and_promotion(generator):
    algebra = CliffordAlgebra((1, 1))
    x = torch.randn(5, 1, 4, generator=generator)
    y = torch.randn(3, 4, generator=generator, dtype=torch.float64)
    z = algebra.geometric_product(x, y)
    assert z.shape == (5, 3, 4)
    assert z.dtype == torch.float64
    assert torch.allclose(z[2, 1], algebra.geometric_product(x[2, 0].double(), y[1]))
