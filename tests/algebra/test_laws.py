"""Laws that hold for all multivectors and all metrics, searched for counterexamples.

Coefficients are small integers, so that most laws hold exactly and failures simplify well.
"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cscnn import CliffordAlgebra
from tests.conftest import metric_name, metrics

SEEDS = st.integers(0, 2**31 - 1)
examples = settings(max_examples=5, deadline=None, derandomize=True)
all_metrics = pytest.mark.parametrize("metric", metrics(5), ids=metric_name)


def draw(algebra, data, count):
    """(count, n_blades) with coefficients that hypothesis chooses."""
    size = count * algebra.n_blades
    values = data.draw(st.lists(st.integers(-9, 9), min_size=size, max_size=size))
    return torch.tensor(values, dtype=torch.float64).reshape(count, algebra.n_blades)


def elements(algebra, data, kind="any"):
    """Two random elements of O(p, q)."""
    generator = torch.Generator().manual_seed(data.draw(SEEDS))
    return algebra.random_orthogonal(
        kind, batch=2, rapidity=2.0, generator=generator, dtype=torch.float64
    )


def close(a, b, size=1.0):
    """Equal up to the rounding of terms of that size."""
    return (a - b).abs().max() <= 1e-12 * size * (1 + b.abs().max())


def apply(rho, x):
    return torch.einsum("...ij,...j->...i", rho, x)


@all_metrics
@examples
@given(data=st.data())
def test_associative_and_distributive(metric, data):
    algebra = CliffordAlgebra(metric)
    x, y, z = draw(algebra, data, 3)
    gp, wedge = algebra.geometric_product, algebra.wedge
    assert torch.equal(gp(gp(x, y), z), gp(x, gp(y, z)))
    assert torch.equal(gp(x, y + 2 * z), gp(x, y) + 2 * gp(x, z))
    assert torch.equal(wedge(wedge(x, y), z), wedge(x, wedge(y, z)))


@all_metrics
@examples
@given(data=st.data())
def test_vectors_square_to_the_metric(metric, data):
    algebra = CliffordAlgebra(metric)
    v = algebra.embed(algebra.grade(draw(algebra, data, 1)[0], 1), 1)
    eta = (algebra.grade(v, 1).square() * torch.tensor(metric)).sum()
    assert torch.equal(algebra.geometric_product(v, v), algebra.embed(eta[None], 0))
    assert torch.equal(algebra.norm_squared(v), eta)


@all_metrics
@examples
@given(data=st.data())
def test_grade_structure(metric, data):
    """A vector times a k-vector has grades k - 1 and k + 1 only: contraction plus wedge."""
    algebra = CliffordAlgebra(metric)
    x, y = draw(algebra, data, 2)
    v = algebra.embed(algebra.grade(x, 1), 1)
    for k in range(algebra.n_grades):
        a = algebra.embed(algebra.grade(y, k), k)
        product = algebra.geometric_product(v, a)
        assert torch.equal(product, algebra.left_contraction(v, a) + algebra.wedge(v, a))
        for other in set(range(algebra.n_grades)) - {k - 1, k + 1}:
            assert algebra.grade(product, other).abs().sum() == 0


@all_metrics
@examples
@given(data=st.data())
def test_reverse_is_an_antiautomorphism_and_gives_the_form(metric, data):
    algebra = CliffordAlgebra(metric)
    x, y = draw(algebra, data, 2)
    gp, rev = algebra.geometric_product, algebra.reverse
    assert torch.equal(rev(gp(x, y)), gp(rev(y), rev(x)))
    assert torch.equal(algebra.inner(x, y), gp(rev(x), y)[..., 0])
    assert torch.equal(algebra.norm_squared_by_grade(x).sum(-1), algebra.norm_squared(x))


@all_metrics
@examples
@given(data=st.data())
def test_action(metric, data):
    algebra = CliffordAlgebra(metric)
    x, y = draw(algebra, data, 2)
    gp = algebra.geometric_product
    for kind in algebra.kinds():
        g, h = elements(algebra, data, kind)
        rho = algebra.action(g)
        size = rho.abs().max() ** 2  # boosts stretch, and rounding errors with them
        assert close(algebra.action(g @ h), rho @ algebra.action(h), size)
        assert close(apply(rho, gp(x, y)), gp(apply(rho, x), apply(rho, y)), size)
        wedge = algebra.wedge(apply(rho, x), apply(rho, y))
        assert close(apply(rho, algebra.wedge(x, y)), wedge, size)
        inner = algebra.inner(apply(rho, x), apply(rho, y))
        assert close(inner, algebra.inner(x, y), size * (1 + (x.abs() @ y.abs())))
        assert close(algebra.transform(g, x), apply(rho, x), size)


@all_metrics
@examples
@given(data=st.data())
def test_versor_acts_as_the_matrix(metric, data):
    algebra = CliffordAlgebra(metric)
    x = draw(algebra, data, 1)
    g = elements(algebra, data)
    v = algebra.versor(g)
    rho = algebra.action(g)
    assert close(algebra.sandwich(v, x), apply(rho, x), 10 * rho.abs().max() ** 2)
    odd = (v - algebra.grade_involution(v)).abs().amax(-1) > 1e-9
    assert torch.equal(odd, torch.linalg.det(g) < 0)


@all_metrics
@examples
@given(data=st.data())
def test_exponentials_of_bivectors_are_rotors(metric, data):
    algebra = CliffordAlgebra(metric)
    if algebra.dim < 2:
        return
    b = algebra.embed(0.05 * algebra.grade(draw(algebra, data, 1)[0], 2), 2)
    rotor = algebra.exp(b)
    one = algebra.embed(torch.ones(1, dtype=torch.float64), 0)
    size = 100 * rotor.square().sum()
    assert close(algebra.geometric_product(rotor, algebra.exp(-b)), one, size)
    assert close(algebra.geometric_product(rotor, algebra.reverse(rotor)), one, size)
