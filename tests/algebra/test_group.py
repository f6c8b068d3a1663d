import math

import pytest
import torch

from cscnn import CliffordAlgebra
from cscnn.algebra.group import boost, rotation
from tests.conftest import metric_name, metrics


@pytest.mark.parametrize("metric", metrics(4), ids=metric_name)
def test_kinds_are_what_they_say(metric, generator):
    algebra = CliffordAlgebra(metric)
    for kind in algebra.kinds():
        g = algebra.random_orthogonal(
            kind, batch=(50,), rapidity=2.0, generator=generator, dtype=torch.float64
        )
        assert g.shape == (50, algebra.dim, algebra.dim)
        assert algebra.is_orthogonal(g).all()
        det = torch.linalg.det(g)
        if kind in ("rotation", "boost"):
            assert torch.allclose(det, torch.ones_like(det))
        if kind == "reflection":
            assert torch.allclose(det, -torch.ones_like(det))
            assert torch.allclose(g @ g, torch.eye(algebra.dim).double().expand_as(g), atol=1e-9)
        # the largest stretch of a boost with rapidity r is exp(r)
        assert torch.linalg.matrix_norm(g, 2).max() <= math.exp(2.0) * (1 + 1e-9)
    stretched = torch.linalg.matrix_norm(g, 2) > 1.01  # g: the last kind, "any"
    assert stretched.any() == ("boost" in algebra.kinds())


def test_any_reaches_all_four_components_of_the_lorentz_group(generator):
    g = CliffordAlgebra((1, -1, -1)).random_orthogonal(batch=(64,), generator=generator)
    components = {
        (time > 0, det > 0)
        for time, det in zip(g[:, 0, 0].tolist(), torch.linalg.det(g).tolist(), strict=True)
    }
    assert len(components) == 4


@pytest.mark.parametrize("metric", [(1, -1, -1, -1), (-1, 1, 1, 1)], ids=metric_name)
def test_electromagnetic_field_of_the_readme_table_transforms_as_in_textbooks(metric, generator):
    """F = (E_x, E_y, E_z, B_z, -B_y, B_x) under a boost, in either convention."""
    algebra = CliffordAlgebra(metric)
    e, b, direction = torch.randn(3, 3, generator=generator, dtype=torch.float64)
    n = direction / direction.norm()
    rapidity = 0.8
    c, s = math.cosh(rapidity), math.sinh(rapidity)
    g = torch.eye(4, dtype=torch.float64)
    g[0, 0] = c
    g[0, 1:] = g[1:, 0] = s * n
    g[1:, 1:] += (c - 1) * torch.outer(n, n)
    assert algebra.is_orthogonal(g)

    def bivector(e, b):
        return algebra.embed(torch.stack([e[0], e[1], e[2], b[2], -b[1], b[0]]), 2)

    frame = -n * (s / c)  # the field carried along by v is the field seen from a frame at -v
    e_moved = c * (e + torch.linalg.cross(frame, b)) - (c - 1) * (e @ n) * n
    b_moved = c * (b - torch.linalg.cross(frame, e)) - (c - 1) * (b @ n) * n
    moved = algebra.transform(g, bivector(e, b))
    assert torch.allclose(moved, bivector(e_moved, b_moved), atol=1e-12)


def test_reproducible_from_a_generator():
    algebra = CliffordAlgebra((1, -1, -1))
    a, b = (
        algebra.random_orthogonal(generator=torch.Generator().manual_seed(3), batch=(2, 2))
        for _ in range(2)
    )
    assert torch.equal(a, b)
    assert a.dtype == torch.get_default_dtype()


def test_action_is_differentiable(generator):
    algebra = CliffordAlgebra((1, -1, -1))
    g = algebra.random_orthogonal(generator=generator, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(algebra.action, g)
    assert torch.autograd.gradcheck(algebra.action, torch.eye(3).double().requires_grad_())


def test_versor_of_hard_elements():
    """Identity, half turns, central inversion, tiny and large angles: no division by zero."""
    algebra = CliffordAlgebra((1, -1, -1, -1))
    eye = torch.eye(4, dtype=torch.float64)
    flips = torch.cartesian_prod(*[torch.tensor([1.0, -1.0]).double()] * 4)
    small = torch.linalg.matrix_exp(
        1e-9 * torch.tensor([[0.0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 2], [0, 0, -2, 0]]).double()
    )
    g = torch.cat([torch.diag_embed(flips), (small @ eye)[None], eye[[0, 2, 1, 3]][None]])
    v = algebra.versor(g)
    x = torch.randn(len(g), 16, dtype=torch.float64)
    moved = torch.einsum("bij,bj->bi", algebra.action(g), x)
    assert torch.allclose(algebra.sandwich(v, x), moved, atol=1e-12)


def test_membership():
    algebra = CliffordAlgebra((1, -1))
    g = torch.stack([torch.eye(2), torch.tensor([[1.0, 0.1], [0.0, 1.0]])])
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        assert algebra.is_orthogonal(g.to(dtype)).tolist() == [True, False]


def test_rapidity_range(generator):
    algebra = CliffordAlgebra((1, -1, -1))
    g = algebra.random_orthogonal(
        "boost", batch=50, rapidity=(1.0, 1.5), generator=generator, dtype=torch.float64
    )
    rapidity = torch.acosh(g[:, 0, 0])
    assert (rapidity >= 1).all()
    assert (rapidity <= 1.5).all()


def test_reflections_are_along_vectors_of_both_signs(generator):
    algebra = CliffordAlgebra((1, -1, -1))
    g = algebra.random_orthogonal("reflection", batch=50, generator=generator)
    forward = g[:, 0, 0] > 0  # along space-like vectors: time keeps its direction
    assert forward.any()
    assert not forward.all()


def test_errors():
    algebra = CliffordAlgebra((1, 1, 1))
    with pytest.raises(ValueError, match=r"no boost for metric \(1, 1, 1\)"):
        algebra.random_orthogonal("boost")
    with pytest.raises(ValueError, match=r"rotation, boost, reflection, any, got 'spin'"):
        algebra.random_orthogonal("spin")
    for rapidity in (-1, float("inf"), float("nan"), (2, 1)):
        with pytest.raises(ValueError, match="rapidity must be finite and non-negative, got"):
            algebra.random_orthogonal(rapidity=rapidity)
    with pytest.raises(TypeError, match=r"real floating dtype, got torch\.int64"):
        algebra.random_orthogonal(dtype=torch.int64)
    with pytest.raises(ValueError, match=r"not in O\(3, 0\)"):
        algebra.versor(torch.tensor([[3.0, 1, 0], [5, 1, 0], [0, 0, 1]]).bfloat16())
    with pytest.raises(ValueError, match=r"\(\.\.\., 3, 3\) for metric .* got \(2, 2\)"):
        algebra.action(torch.eye(2))
    with pytest.raises(TypeError, match=r"torch\.int64"):
        algebra.action(torch.eye(3, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"not in O\(3, 0\)"):
        algebra.versor(2 * torch.eye(3))
    with pytest.raises(ValueError, match=r"one 3 x 3 matrix, got \(2, 3, 3\)"):
        algebra.transform(torch.eye(3).expand(2, 3, 3), torch.zeros(8))


@pytest.mark.parametrize("size", [0.0, 1e-3, 0.01, 0.02, 0.0476, 0.3, 2.0])
def test_boosts_and_rotations_of_any_size(size):
    """Torch's matrix exponential has errors of 2e-10 for some of these sizes."""
    spacetime, space = CliffordAlgebra((1, -1, -1)), CliffordAlgebra((1, 1, 1))
    g = boost(spacetime, size, [0.6, 0.8])
    assert spacetime.is_orthogonal(g)
    expected = torch.tensor([math.cosh(size), 0.6 * math.sinh(size), 0.8 * math.sinh(size)])
    assert torch.allclose(g[0], expected.double(), rtol=1e-6)
    assert g[0, 0].item() == pytest.approx(math.cosh(size), rel=1e-15)
    assert (g @ boost(spacetime, -size, [0.6, 0.8]) - torch.eye(3)).abs().max() < 1e-14
    r = rotation(size, [0.0, 0.6, 0.8])
    assert space.is_orthogonal(r)
    assert r.trace().item() == pytest.approx(1 + 2 * math.cos(size), rel=1e-15)
    for algebra in (spacetime, space):
        rotor = algebra.exp(algebra.embed(torch.tensor([size / 2, 0, 0]).double(), 2))
        square = -algebra.metric[0] * algebra.metric[1]  # of e12
        norm = rotor[0] ** 2 - square * rotor[algebra.grade_slice(2).start] ** 2
        assert norm.item() == pytest.approx(1, rel=1e-14)


def test_directions_are_unit_vectors():
    with pytest.raises(ValueError, match=r"direction must be a unit vector, got \[1.0, 1.0\]"):
        boost(CliffordAlgebra((1, -1, -1)), 0.5, [1.0, 1.0])
    with pytest.raises(ValueError, match="axis must be a unit vector"):
        rotation(0.5, [0.0, 0.0, 2.0])
