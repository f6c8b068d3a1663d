import copy
from itertools import pairwise

import pytest
import torch
from conftest import metric_name, metrics, signatures

from cscnn import CliffordAlgebra, CliffordSteerableConv
from cscnn.kernels import (
    CompleteKernel,
    ImplicitKernel,
    SteerableKernel,
    find_orbits,
    invariants,
)
from cscnn.kernels.orbits import GROUPS
from cscnn.testing import assert_steerable, relative_error, steerability_errors


def groups(metric):
    spacetime = len(metric) > 1 and 1 in (metric.count(1), metric.count(-1))
    return GROUPS if spacetime and len(set(metric)) == 2 else GROUPS[:2]


def grid(size, dim):
    axis = torch.linspace(-1, 1, size, dtype=torch.float64)
    return torch.cartesian_prod(*[axis] * dim).reshape(-1, dim)


# --- orbits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "size", "count"),
    [
        ((1, 1), 7, 10),
        ((1, 1, 1), 7, 19),
        ((1, -1), 3, 4),  # origin, light cone, time-like, space-like
        ((-1,), 5, 3),
    ],
)
def test_number_of_orbits(metric, size, count):
    assert len(find_orbits(grid(size, len(metric)), CliffordAlgebra(metric))) == count


def test_past_and_future():
    algebra = CliffordAlgebra((1, -1, -1))
    plain = find_orbits(grid(5, 3), algebra)
    split = find_orbits(grid(5, 3), algebra, "O+")
    timelike = (plain.invariants.eta >= 0) & (plain.invariants.origin == 0)
    assert len(split) == len(plain) + int(timelike.sum())
    assert set(split.invariants.side[split.invariants.eta < 0].tolist()) == {0.0}


@pytest.mark.parametrize("spacing", [1.0, 0.1, 1 / 3, 1e-9, 1e9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_orbits_are_robust_to_rounding(spacing, dtype):
    """The same orbits whatever the unit of length; a boosted set has the orbits of the original."""
    algebra = CliffordAlgebra((1, -1, -1))
    points = torch.cartesian_prod(*[torch.arange(-3, 4, dtype=dtype)] * 3) * spacing
    orbits = find_orbits(points, algebra)
    exact = find_orbits(torch.cartesian_prod(*[torch.arange(-3.0, 4.0)] * 3), algebra)
    assert torch.equal(orbits.index, exact.index)
    assert torch.equal(
        orbits.invariants.eta[orbits.index] == 0, exact.invariants.eta[exact.index] == 0
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_keeps_orbits_apart(dtype):
    algebra = CliffordAlgebra((1, -1))
    points = torch.tensor([[0.0, 0], [1, 0], [0.5, 0.5], [-1, 1], [0, 0.5]])
    low = invariants(points.to(dtype), algebra)
    assert low.origin.tolist() == [1, 0, 0, 0, 0]
    assert low.eta.tolist() == [0, 1, 0, 0, -0.25]


def test_a_point_does_not_depend_on_its_company():
    """Also where it is small beside the others: only zero is the origin."""
    kernel = CompleteKernel(CliffordAlgebra((1, -1)), 1, 1)
    points = torch.tensor([[1e-4, 0.0], [1.0, 0.0]])
    assert relative_error(kernel(points)[:1], kernel(points[:1])) < 1e-6


def test_left_and_right_are_different_only_for_the_smallest_group_of_the_plane():
    points = torch.tensor([[0.0, 1.0], [0.0, -1.0]])
    counts = {g: len(find_orbits(points, CliffordAlgebra((1, -1)), g)) for g in GROUPS}
    assert counts == {"O": 1, "SO": 1, "O+": 1, "SO+": 2}


@pytest.mark.parametrize("radial", ["network", "rings", "free"])
def test_the_origin_is_not_on_the_light_cone(radial):
    algebra = CliffordAlgebra((1, -1))
    kernel = CompleteKernel(algebra, 1, 1, radial=radial, points=grid(3, 2))
    values = kernel.coefficients(find_orbits(grid(3, 2), algebra).invariants.to(torch.ones(())))
    found = find_orbits(grid(3, 2), algebra).invariants
    origin, cone = (((found.eta == 0) & (found.origin == o)).nonzero().item() for o in (1, 0))
    assert (values[..., :3, origin] - values[..., :3, cone]).abs().min() > 1e-4


def test_basis_kernels_start_with_equal_sizes():
    """v∧ and v∧v⌟ are small near the origin; without balance they would start with no effect."""
    algebra = CliffordAlgebra((1, -1, -1))
    kernel = CompleteKernel(algebra, 1, 1, points=grid(5, 3))
    sizes = torch.zeros(len(kernel.basis))
    for j in range(len(sizes)):
        values = torch.zeros(1, 1, len(sizes), 125)
        values[:, :, j] = kernel.element_scale[j]
        sizes[j] = kernel.basis.assemble(values, grid(5, 3).float()).square().sum()
    assert torch.allclose(sizes, torch.ones_like(sizes), atol=1e-4)


def test_the_size_of_a_fixed_head_is_saved():
    a, b = (
        ImplicitKernel(
            CliffordAlgebra((1, 1)), 1, 1, learn_head=False, points=grid(3, 2), unit_variance=True
        )
        for _ in range(2)
    )
    b.load_state_dict(a.state_dict())
    assert torch.equal(a(grid(3, 2).float()), b(grid(3, 2).float()))


def test_free_values_tell_close_orbits_apart():
    conv = CliffordSteerableConv(
        CliffordAlgebra((1, -1)), 1, 1, 3, kernel="complete", kernel_options={"radial": "free"},
        spacing=(1, 1.00008),
    )  # fmt: skip
    assert conv(torch.randn(1, 1, 5, 5, 4)).isfinite().all()
    kernel = CompleteKernel(conv.algebra, 1, 1, radial="free", points=grid(3, 2)).double()
    assert torch.vmap(kernel)(grid(3, 2)[None]).shape == (1, 9, 1, 4, 1, 4)


def test_orbits_of_nothing_and_of_the_origin():
    algebra = CliffordAlgebra((1, -1))
    assert len(find_orbits(torch.zeros(0, 2), algebra)) == 0
    assert find_orbits(torch.zeros(1, 2), algebra).invariants.origin.tolist() == [1.0]


# --- steerability ---------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", metrics(4), ids=metric_name)
def test_steerable(metric):
    algebra = CliffordAlgebra(metric)
    assert_steerable(ImplicitKernel(algebra, 2, 2, num_layers=3, hidden_dim=4), samples=2)
    for group in groups(metric):
        for radial in ("network", "rings"):
            kernel = CompleteKernel(algebra, 2, 1, group=group, radial=radial, hidden_dim=4)
            assert_steerable(kernel, samples=2)


@pytest.mark.parametrize("metric", [(1, 1), (1, -1, -1)], ids=metric_name)
def test_free_values_are_steerable_on_their_orbits(metric):
    algebra = CliffordAlgebra(metric)
    points = grid(5, algebra.dim)
    for group in groups(metric):
        kernel = CompleteKernel(algebra, 2, 1, group=group, radial="free", points=points)
        assert_steerable(kernel, points=points, samples=2)


def test_must_fail_for_another_metric():
    """A kernel made for one signature is not steerable under the boosts of another."""
    for build in (ImplicitKernel, CompleteKernel):
        kernel = build(CliffordAlgebra((1, 1, 1)), 1, 1).double()
        algebra = CliffordAlgebra((1, -1, -1))
        g = algebra.random_orthogonal("boost", rapidity=2.0, dtype=torch.float64)
        points = torch.randn(5, 3, dtype=torch.float64)
        rho = algebra.action(g)
        expected = torch.einsum("xc,nocib,by->noxiy", rho, kernel(points), torch.linalg.inv(rho))
        assert relative_error(kernel(points @ g.T), expected) > 1e-2
        with pytest.raises(AssertionError, match="not steerable under"):
            assert_steerable(_Pretender(algebra, kernel))


class _Pretender(SteerableKernel):
    """Claims to be steerable for one algebra with the values of a kernel for another."""

    def __init__(self, algebra, kernel):
        super().__init__(algebra, kernel.c_in, kernel.c_out, kernel.basis, "O")
        self.kernel = kernel

    def forward(self, points, orbits=None, extra=None):
        return self.kernel(points)


def test_must_fail_outside_the_group():
    algebra = CliffordAlgebra((1, -1, -1))
    reversal = torch.diag(torch.tensor([-1.0, 1, 1])).double()
    points = torch.randn(8, 3, dtype=torch.float64)
    points = torch.cat([points, torch.tensor([[2.0, 0.1, 0.2]]).double()])

    def violation(kernel, g):
        rho = algebra.action(g)
        kernel = kernel.double()
        expected = torch.einsum("xc,nocib,by->noxiy", rho, kernel(points), torch.linalg.inv(rho))
        return relative_error(kernel(points @ g.T), expected)

    assert violation(CompleteKernel(algebra, 1, 1, group="O"), reversal) < 1e-12
    assert violation(CompleteKernel(algebra, 1, 1, group="O+"), reversal) > 1e-2
    mirror = torch.diag(torch.tensor([1.0, -1, 1])).double()
    assert violation(CompleteKernel(algebra, 1, 1, group="O+"), mirror) < 1e-12
    assert violation(CompleteKernel(algebra, 1, 1, group="SO+"), mirror) > 1e-2


def test_causal_kernels_vanish_outside_the_past():
    algebra = CliffordAlgebra((1, -1, -1))
    points = grid(5, 3)
    for radial in ("network", "rings", "free"):
        kernel = CompleteKernel(
            algebra, 1, 1, group="O+", radial=radial, points=points, causal=True
        ).double()
        size = kernel(points).abs().sum((1, 2, 3, 4))
        eta = points[:, 0] ** 2 - points[:, 1] ** 2 - points[:, 2] ** 2
        origin = points.abs().sum(-1) == 0
        past = origin | ((points[:, 0] < 0) & (eta > -1e-9))
        assert (size[~past] == 0).all()
        assert (size[past] > 0).all()
        assert_steerable(kernel, points=points, samples=1)


# --- collapse -------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", metrics(4), ids=metric_name)
def test_collapsed_evaluation_is_the_full_one(metric):
    algebra = CliffordAlgebra(metric)
    kernel = ImplicitKernel(algebra, 2, 3, num_layers=4, hidden_dim=5).double()
    points = grid(3, algebra.dim)
    full = kernel.expand_full(points)
    assert relative_error(kernel.expand(points), full) < 1e-12
    assert relative_error(kernel.expand(points, find_orbits(points, algebra)), full) < 1e-12
    slow = copy.deepcopy(kernel)
    slow.collapse = False
    gradients = []
    for k in (kernel, slow):
        loss = (k.expand(points) * torch.linspace(-1, 1, full.numel()).reshape(full.shape)).sum()
        gradients.append(torch.autograd.grad(loss, list(k.parameters())))
    scale = max(g.abs().max() for g in gradients[1])
    for a, b in zip(*gradients, strict=True):
        assert (a - b).abs().max() <= 1e-11 * scale


@pytest.mark.parametrize("options", [{"mask": False}, {"learn_head": False}, {"num_layers": 1}])
def test_options_of_the_implicit_kernel(options):
    kernel = ImplicitKernel(CliffordAlgebra((1, -1)), 2, 3, **options).double()
    points = torch.randn(6, 2, dtype=torch.float64)
    assert relative_error(kernel.expand(points), kernel.expand_full(points)) < 1e-12
    assert ("head" in dict(kernel.named_parameters())) == options.get("learn_head", True)
    assert ("mask_width" in dict(kernel.named_parameters())) == options.get("mask", True)
    assert_steerable(kernel)


def test_extra_inputs_transform_with_the_kernel():
    """K(gv; ρ(g) w) = ρ(g) K(v; w) ρ(g)^-1, and not if w stays behind."""
    algebra = CliffordAlgebra((1, -1, -1))
    kernel = ImplicitKernel(algebra, 2, 1, extra_channels=2, hidden_dim=4, num_layers=3).double()
    points = torch.randn(6, 3, dtype=torch.float64)
    extra = torch.randn(2, 8, dtype=torch.float64)
    g = algebra.random_orthogonal("any", rapidity=1.0, dtype=torch.float64)
    rho = algebra.action(g)
    expected = torch.einsum(
        "xc,nocib,by->noxiy", rho, kernel(points, extra=extra), torch.linalg.inv(rho)
    )
    moved = kernel(points @ g.T, extra=algebra.transform(g, extra))
    assert relative_error(moved, expected) < 1e-10
    assert relative_error(kernel(points @ g.T, extra=extra), expected) > 1e-2
    with pytest.raises(ValueError, match=r"takes 2 extra multivectors.*\(2, 8\); got None"):
        kernel(points)
    with pytest.raises(ValueError, match=r"got \(3, 8\)"):
        kernel(points, extra=torch.zeros(3, 8).double())
    with pytest.raises(ValueError, match="takes 0 extra multivectors"):
        ImplicitKernel(algebra, 1, 1).double()(points, extra=extra)
    with pytest.raises(ValueError, match="CompleteKernel without extra channels"):
        CompleteKernel(algebra, 1, 1).double()(points, extra=extra)
    assert_steerable(kernel, extra=extra, rapidity=1.0)


# --- completeness ---------------------------------------------------------------------------------


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
    basis = CompleteKernel(algebra, 1, 1, group="SO" if special else "O").basis
    assert len(basis) == (8 if special else 4) * algebra.dim
    for v in directions(algebra):
        assert torch.linalg.matrix_rank(span(algebra, basis, v)) == len(basis)
        assert commutant_dimension(algebra, v, special) == len(basis)


@pytest.mark.parametrize("metric", [(1, -1, -1), (1, -1, -1, -1), (-1, 1, 1)], ids=metric_name)
@pytest.mark.parametrize("special", [False, True], ids=["O+", "SO+"])
def test_the_basis_is_complete_for_orthochronous_groups(metric, special):
    algebra = CliffordAlgebra(metric)
    basis = CompleteKernel(algebra, 1, 1, group="SO+" if special else "O+").basis
    for v in directions(algebra):
        assert torch.linalg.matrix_rank(span(algebra, basis, v)) == len(basis)
        assert commutant_dimension(algebra, v, special, orthochronous=True) == len(basis)


def test_at_the_origin_only_the_projections_survive():
    algebra = CliffordAlgebra((1, -1, -1))
    origin = torch.zeros(3, dtype=torch.float64)
    basis = CompleteKernel(algebra, 1, 1).basis
    assert torch.linalg.matrix_rank(span(algebra, basis, origin)) == 4 == sum(basis.at_origin)


def test_implicit_kernels_span_less(generator):
    """They have no v∧v⌟ term: the frequency-2 vector-to-vector kernel of O(2) is missing."""
    algebra = CliffordAlgebra((1, 1))
    v = torch.tensor([0.6, 0.3], dtype=torch.float64)
    rows = [
        ImplicitKernel(algebra, 1, 1, hidden_dim=4, num_layers=2).double()(v[None]).flatten()
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
        ImplicitKernel(algebra, 2, 2, hidden_dim=4, num_layers=2).double()(points) for _ in range(2)
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


# --- parametrisations -----------------------------------------------------------------------------


@pytest.mark.parametrize("metric", [(1, 1), (1, -1), (1, 1, 1)], ids=metric_name)
def test_free_values_have_no_redundant_weight(metric):
    """4d weights per orbit and channel pair, d + 1 at the origin, each with its own effect."""
    algebra = CliffordAlgebra(metric)
    points = grid(3, algebra.dim)
    kernel = CompleteKernel(algebra, 1, 1, radial="free", points=points).double()
    orbits = len(find_orbits(points, algebra))
    count = 4 * algebra.dim * (orbits - 1) + algebra.dim + 1
    assert kernel.radial.weight.numel() == count

    def values(weight):
        state = {"radial.weight": weight.reshape(1, 1, -1)}
        return torch.func.functional_call(kernel, state, (points,)).flatten()

    jacobian = torch.func.jacrev(values)(kernel.radial.weight.detach().flatten())
    assert torch.linalg.matrix_rank(jacobian) == count


def test_free_values_refuse_other_points():
    algebra = CliffordAlgebra((1, 1))
    kernel = CompleteKernel(algebra, 1, 1, radial="free", points=grid(3, 2))
    with pytest.raises(ValueError, match=r"3 orbits of their grid; η = 0\.25 is none of them"):
        kernel(torch.tensor([[0.5, 0.0]]))


@pytest.mark.parametrize("metric", signatures(4), ids=metric_name)
@pytest.mark.parametrize("radial", ["network", "free", "rings", "implicit"])
def test_unit_variance(metric, radial):
    """White noise of variance 1 keeps it in every grade, for any signature, size and width."""
    algebra = CliffordAlgebra(metric)
    for size, c_in, c_out in ((1, 4, 4), (3, 2, 5), (5 if algebra.dim < 4 else 3, 5, 2)):
        points = grid(size, algebra.dim) if size > 1 else torch.zeros(1, algebra.dim).double()
        if radial == "implicit":
            kernel = ImplicitKernel(algebra, c_in, c_out, points=points, unit_variance=True)
        else:
            kernel = CompleteKernel(algebra, c_in, c_out, radial=radial, points=points)
        variance = kernel.double().expand(points).square().sum((2, 3, 4)).mean(0)
        by_grade = torch.stack([v.mean() for v in variance.split(algebra.grade_sizes)])
        assert torch.allclose(by_grade, torch.ones_like(by_grade), atol=1e-4)


def test_kernels_are_differentiable_in_the_points():
    algebra = CliffordAlgebra((1, -1))
    points = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    for kernel in (ImplicitKernel(algebra, 1, 1, hidden_dim=3), CompleteKernel(algebra, 1, 1)):
        assert torch.autograd.gradcheck(kernel.double(), points)


def test_errors():
    algebra = CliffordAlgebra((1, 1))
    with pytest.raises(ValueError, match="O, SO, O\\+, SO\\+, got 'U'"):
        CompleteKernel(algebra, 1, 1, group="U")
    with pytest.raises(ValueError, match=r"no group 'O\+' here: .* none in metric \(1, 1\)"):
        CompleteKernel(algebra, 1, 1, group="O+")
    with pytest.raises(ValueError, match="network, free, rings, got 'fourier'"):
        CompleteKernel(algebra, 1, 1, radial="fourier")
    with pytest.raises(ValueError, match="causal kernels need group 'O\\+' or 'SO\\+', got 'O'"):
        CompleteKernel(CliffordAlgebra((1, -1)), 1, 1, causal=True)
    with pytest.raises(ValueError, match="needs the sampling points"):
        CompleteKernel(algebra, 1, 1, radial="free")
    with pytest.raises(ValueError, match="needs the sampling points"):
        ImplicitKernel(algebra, 1, 1, unit_variance=True)
    with pytest.raises(ValueError, match=r"shape \(N, 2\), got \(5, 3\)"):
        CompleteKernel(algebra, 1, 1)(torch.zeros(5, 3))
    with pytest.raises(TypeError, match=r"torch\.int64"):
        ImplicitKernel(algebra, 1, 1)(torch.zeros(5, 2, dtype=torch.int64))
    with pytest.raises(ValueError, match="no reflection in the group SO"):
        assert_steerable(CompleteKernel(algebra, 1, 1, group="SO"), kinds="reflection")
    with pytest.raises(TypeError, match=r"e\.g\. conv\.kernel, got CliffordSteerableConv"):
        assert_steerable(CliffordSteerableConv(algebra, 1, 1, 3))
    assert_steerable(CompleteKernel(algebra, 1, 1, radial="free", points=grid(3, 2)))
    assert steerability_errors(CompleteKernel(algebra, 1, 1, group="SO")).keys() == {
        "rotation",
        "any",
    }
