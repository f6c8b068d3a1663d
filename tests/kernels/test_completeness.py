"""The closed form spans all steerable kernels; the implicit kernel spans fewer."""

from itertools import pairwise

import pytest
import torch

from cscnn import CliffordAlgebra
from cscnn.algebra.bilinear import PLANES_FROM, by_blocks, gathered
from cscnn.kernels import (
    Complete,
    CompleteKernel,
    Implicit,
    ImplicitKernel,
)
from cscnn.kernels.basis import SteerableBasis
from cscnn.testing import relative_error
from tests.conftest import metric_name, signatures
from tests.kernels.samples import grid


def commutant_dimension(algebra, v, special, orthochronous=False):
    """Dimension of {K : ρ(s) K = K ρ(s) for s in Stab(v)}, from its Lie algebra and reflections.

    Independent of the library's basis: the stabiliser is built from the orthogonal complement of
    v, the action on multivectors from exponentials, the dimension from a singular value problem.
    """
    d, n = algebra.dim, algebra.n_blades
    form = torch.diag(torch.tensor(algebra.metric, dtype=torch.float64))
    constraints = []
    # Lie algebra of O(p, q): X = A η with A antisymmetric; keep those with X v = 0.
    pairs = [(i, j) for i in range(d) for j in range(i + 1, d)]
    generators = []
    for i, j in pairs:
        a = torch.zeros(d, d, dtype=torch.float64)
        a[i, j], a[j, i] = 1.0, -1.0
        generators.append(a @ form)
    if pairs:
        annihilate = torch.stack([x @ v for x in generators], 1)  # (d, pairs)
        _, s, vh = torch.linalg.svd(annihilate, full_matrices=True)
        null = vh[(s > 1e-10).sum() :]
        for row in null:
            x = sum(c * m for c, m in zip(row, generators, strict=True))
            constraints.append(algebra.action(torch.linalg.matrix_exp(0.7 * x)))
            constraints.append(algebra.action(torch.linalg.matrix_exp(-0.3 * x)))
    # Reflections along non-null vectors orthogonal to v (pairs of them for SO).
    generator = torch.Generator().manual_seed(1)
    reflections = []
    _, s, vh = torch.linalg.svd((form @ v)[None], full_matrices=True)
    orthogonal = vh[(s > 1e-10).sum() :]
    for _ in range(12 if len(orthogonal) else 0):
        w = torch.randn(len(orthogonal), generator=generator, dtype=torch.float64) @ orthogonal
        norm = w @ form @ w
        if orthochronous and norm * algebra.metric[0] > 0:
            continue  # a reflection along a time-like vector turns time around
        if abs(norm) > 1e-2:
            reflections.append(torch.eye(d).double() - 2 * torch.outer(w, form @ w) / norm)
    if special:
        reflections = [a @ b for a, b in pairwise(reflections)]
    constraints += [algebra.action(r) for r in reflections]
    if not constraints:
        return n * n
    eye = torch.eye(n, dtype=torch.float64)
    system = torch.cat(
        [torch.kron(r, eye) - torch.kron(eye, r.T.contiguous()) for r in constraints]
    )
    return int((torch.linalg.svdvals(system) < 1e-8).sum()) + max(0, n * n - len(system))


def span(algebra, basis, v):
    """The basis kernels at v, flattened: (elements, n²)."""
    one_by_one = torch.eye(len(basis), dtype=torch.float64)
    values = one_by_one[:, None, :, None]
    return basis.assemble(values, v[None]).reshape(len(basis), -1)


def directions(algebra):
    """A time-like, a space-like and (if there is one) a null vector, none along an axis."""
    generator = torch.Generator().manual_seed(0)
    metric = torch.tensor(algebra.metric, dtype=torch.float64)
    found = {}
    while len(found) < len(set(algebra.metric)):
        v = torch.randn(algebra.dim, generator=generator, dtype=torch.float64)
        if abs(eta := float(metric @ v**2)) > 0.3:
            found[float(metric @ v**2) > 0] = v / abs(eta) ** 0.5
    if len(found) == 2 and algebra.dim > 2:
        plus, minus = (metric > 0).double(), (metric < 0).double()
        v = found[True]
        found["null"] = plus * v / (plus * v).norm() + minus * v / (minus * v).norm()
    return found.values()


@pytest.mark.parametrize("metric", signatures(4, 2), ids=metric_name)
@pytest.mark.parametrize("special", [False, True], ids=["O", "SO"])
def test_the_basis_is_complete(metric, special):
    """Its span at time-like, space-like and null points is the commutant: 4d, or 8d for SO."""
    algebra = CliffordAlgebra(metric)
    basis = CompleteKernel(algebra, 1, 1, Complete(group="SO" if special else "O")).basis
    assert len(basis) == (8 if special else 4) * algebra.dim
    for v in directions(algebra):
        assert torch.linalg.matrix_rank(span(algebra, basis, v)) == len(basis)
        assert commutant_dimension(algebra, v, special) == len(basis)


#: Dimensions with tensors, for O and SO: 4d + 11 and more; see the docstring of the basis.
WITH_TENSORS = {2: (18, 36), 3: (23, 45), 4: (27, 51)}


@pytest.mark.parametrize(
    "metric",
    [
        pytest.param(metric, marks=[pytest.mark.slow] if len(metric) > 3 else [])
        for metric in signatures(4, 2)
    ],
    ids=metric_name,
)
@pytest.mark.parametrize("special", [False, True], ids=["O", "SO"])
def test_the_basis_is_complete_with_tensors(metric, special):
    algebra = CliffordAlgebra(metric, symmetric=True)
    basis = CompleteKernel(algebra, 1, 1, Complete(group="SO" if special else "O")).basis
    assert len(basis) == WITH_TENSORS[algebra.dim][special]
    for v in directions(algebra):
        assert torch.linalg.matrix_rank(span(algebra, basis, v)) == len(basis)
        assert commutant_dimension(algebra, v, special) == len(basis)


@pytest.mark.parametrize("metric", [(1, -1, -1), (1, -1, -1, -1), (-1, 1, 1)], ids=metric_name)
@pytest.mark.parametrize("special", [False, True], ids=["O+", "SO+"])
@pytest.mark.parametrize("symmetric", [False, True], ids=["", "tensors"])
def test_the_basis_is_complete_for_orthochronous_groups(metric, special, symmetric):
    algebra = CliffordAlgebra(metric, symmetric)
    basis = CompleteKernel(algebra, 1, 1, Complete(group="SO+" if special else "O+")).basis
    for v in directions(algebra):
        assert torch.linalg.matrix_rank(span(algebra, basis, v)) == len(basis)
        assert commutant_dimension(algebra, v, special, orthochronous=True) == len(basis)


def test_at_the_origin_only_the_projections_survive():
    algebra = CliffordAlgebra((1, -1, -1))
    origin = torch.zeros(3, dtype=torch.float64)
    basis = CompleteKernel(algebra, 1, 1).basis
    assert torch.linalg.matrix_rank(span(algebra, basis, origin)) == 4 == basis.degrees.count(0)


def test_implicit_kernels_span_less(generator):
    """They have no v∧v⌟ term: the frequency-2 vector-to-vector kernel of O(2) is missing."""
    algebra = CliffordAlgebra((1, 1))
    v = torch.tensor([0.6, 0.3], dtype=torch.float64)
    rows = [
        ImplicitKernel(algebra, 1, 1, Implicit(hidden_dim=4, num_layers=2))
        .double()(v[None])
        .flatten()
        for _ in range(40)
    ]
    implicit = torch.linalg.matrix_rank(torch.stack(rows), tol=1e-10)
    assert implicit == 7 < 4 * algebra.dim
    vector_block = torch.stack([r.reshape(4, 4)[1:3, 1:3] for r in rows])
    traceless = vector_block - torch.einsum("nii->n", vector_block)[:, None, None] / 2 * torch.eye(
        2
    )
    assert traceless.abs().max() < 1e-12  # isotropic: no frequency 2


def test_two_implicit_convolutions_recover_the_missing_component():
    """Composing kernels convolves them, and (v∧)(w⌟) at v ≠ w is not isotropic (paper, App. B)."""
    algebra = CliffordAlgebra((1, 1))
    points = grid(3, 2)
    first, second = (
        ImplicitKernel(algebra, 2, 2, Implicit(hidden_dim=4, num_layers=2)).double()(points)
        for _ in range(2)
    )
    target = torch.tensor([1.0, 0.0], dtype=torch.float64)
    total = torch.zeros(4, 4, dtype=torch.float64)
    for i, v in enumerate(points):
        for j, w in enumerate(points):
            if torch.allclose(v + w, target):
                total += torch.einsum("ocmd,mdib->ocib", second[i], first[j])[0, :, 0]
    block = total[1:3, 1:3]
    traceless = block - block.trace() / 2 * torch.eye(2).double()
    assert traceless.abs().max() > 1e-4 * block.abs().max()


@pytest.mark.parametrize("metric", signatures(4), ids=metric_name)
@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("symmetric", [False, True], ids=["", "tensors"])
def test_assembly_by_blocks(metric, special, symmetric):
    """The fast way to assemble a kernel is the reference, and so are its adjoint and gradients."""
    if symmetric and len(metric) not in (2, 3):
        pytest.skip("none on one axis, large on four")
    basis = SteerableBasis(CliffordAlgebra(metric, symmetric), special)
    points = grid(3, len(metric))
    x = torch.randn(2, 3, len(points), len(basis), dtype=torch.float64)
    y = basis.monomials(points).expand(2, 3, -1, -1)
    kernel = gathered(x, y, basis._table, (0, 1, 2))
    assert relative_error(by_blocks(x, y, basis._table, (0, 1, 2)), kernel) < 1e-14
    roles = (2, 1, 0)
    expected = gathered(kernel, y, basis._table, roles)
    assert relative_error(by_blocks(kernel, y, basis._table, roles), expected) < 1e-14


def test_assembly_of_large_kernels():
    """Large kernels are assembled by blocks: same values and gradients, to second order."""
    basis = SteerableBasis(CliffordAlgebra((1, -1)))
    points = grid(5, 2).requires_grad_()
    x = torch.randn(1, 1, len(basis), len(points), dtype=torch.float64, requires_grad=True)
    many = PLANES_FROM // x.numel() + 1

    def derivatives(copies):
        kernel = basis.assemble(x.expand(copies, -1, -1, -1), points)
        loss = kernel.square().square().sum() / copies
        first = torch.autograd.grad(loss, (x, points), create_graph=True)
        norm = sum(g.square().sum() for g in first)
        return [kernel[:1], *first, *torch.autograd.grad(norm, (x, points))]

    for large, small in zip(derivatives(many), derivatives(1), strict=True):
        assert relative_error(large, small) < 1e-12
