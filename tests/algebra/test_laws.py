"""Laws that hold for all multivectors and all metrics, searched for counterexamples."""

import torch
from conftest import metrics
from hypothesis import given, settings
from hypothesis import strategies as st

from cscnn import CliffordAlgebra

METRICS = st.sampled_from(metrics(5))
SEEDS = st.integers(0, 2**31 - 1)
examples = settings(max_examples=40, deadline=None, derandomize=True)


def draw(algebra, seed, count):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, algebra.n_blades, generator=generator, dtype=torch.float64), generator


def close(a, b, tol=1e-10):
    return (a - b).abs().max() <= tol * (1 + b.abs().max())


def apply(rho, x):
    return torch.einsum("...ij,...j->...i", rho, x)


@examples
@given(METRICS, SEEDS)
def test_associative_and_distributive(metric, seed):
    algebra = CliffordAlgebra(metric)
    (x, y, z), _ = draw(algebra, seed, 3)
    gp = algebra.geometric_product
    assert close(gp(gp(x, y), z), gp(x, gp(y, z)))
    assert close(gp(x, y + 2 * z), gp(x, y) + 2 * gp(x, z))
    wedge = algebra.wedge
    assert close(wedge(wedge(x, y), z), wedge(x, wedge(y, z)))


@examples
@given(METRICS, SEEDS)
def test_vectors_square_to_the_metric(metric, seed):
    algebra = CliffordAlgebra(metric)
    (x,), _ = draw(algebra, seed, 1)
    v = algebra.embed(algebra.grade(x, 1), 1)
    square = algebra.geometric_product(v, v)
    eta = (algebra.grade(v, 1).square() * torch.tensor(metric)).sum()
    assert close(square, algebra.embed(eta[None], 0))
    assert close(algebra.norm_squared(v), eta)


@examples
@given(METRICS, SEEDS)
def test_grade_structure(metric, seed):
    """A vector times a k-vector has grades k - 1 and k + 1 only: contraction plus wedge."""
    algebra = CliffordAlgebra(metric)
    (x, y), _ = draw(algebra, seed, 2)
    v = algebra.embed(algebra.grade(x, 1), 1)
    for k in range(algebra.n_grades):
        a = algebra.embed(algebra.grade(y, k), k)
        product = algebra.geometric_product(v, a)
        assert close(product, algebra.left_contraction(v, a) + algebra.wedge(v, a))
        for other in range(algebra.n_grades):
            if other not in (k - 1, k + 1):
                assert algebra.grade(product, other).abs().sum() == 0


@examples
@given(METRICS, SEEDS)
def test_reverse_is_an_antiautomorphism_and_gives_the_form(metric, seed):
    algebra = CliffordAlgebra(metric)
    (x, y), _ = draw(algebra, seed, 2)
    gp, rev = algebra.geometric_product, algebra.reverse
    assert close(rev(gp(x, y)), gp(rev(y), rev(x)))
    assert close(algebra.inner(x, y), gp(rev(x), y)[..., 0])
    assert close(algebra.norm_squared_by_grade(x).sum(-1), algebra.norm_squared(x))


@examples
@given(METRICS, SEEDS, st.sampled_from(["rotation", "boost", "reflection", "any"]))
def test_action(metric, seed, kind):
    algebra = CliffordAlgebra(metric)
    if kind not in algebra.kinds():
        return
    (x, y), generator = draw(algebra, seed, 2)
    g, h = algebra.random_orthogonal(
        kind, batch=(2,), rapidity=2.0, generator=generator, dtype=torch.float64
    )
    rho = algebra.action(g)
    gp = algebra.geometric_product
    assert close(algebra.action(g @ h), rho @ algebra.action(h))
    assert close(apply(rho, gp(x, y)), gp(apply(rho, x), apply(rho, y)))
    assert close(apply(rho, algebra.wedge(x, y)), algebra.wedge(apply(rho, x), apply(rho, y)))
    assert close(algebra.inner(apply(rho, x), apply(rho, y)), algebra.inner(x, y), 1e-9)
    assert close(algebra.transform(g, x), apply(rho, x))


@examples
@given(METRICS, SEEDS)
def test_versor_acts_as_the_matrix(metric, seed):
    algebra = CliffordAlgebra(metric)
    (x, _), generator = draw(algebra, seed, 2)
    g = algebra.random_orthogonal(
        batch=(3,), rapidity=2.0, generator=generator, dtype=torch.float64
    )
    v = algebra.versor(g)
    assert close(algebra.sandwich(v, x), apply(algebra.action(g), x))
    odd = (v - algebra.grade_involution(v)).abs().amax(-1) > 1e-9
    assert torch.equal(odd, torch.linalg.det(g) < 0)


@examples
@given(METRICS, SEEDS)
def test_exponentials_of_bivectors_are_rotors(metric, seed):
    algebra = CliffordAlgebra(metric)
    if algebra.dim < 2:
        return
    (b,), _ = draw(algebra, seed, 1)
    b = algebra.embed(0.5 * algebra.grade(b, 2), 2)
    rotor = algebra.exp(b)
    one = algebra.embed(torch.ones(1, dtype=torch.float64), 0)
    assert close(algebra.geometric_product(rotor, algebra.exp(-b)), one)
    assert close(algebra.geometric_product(rotor, algebra.reverse(rotor)), one)
