"""Conditional kernels: invariants of multivectors, and kernels that are given some."""

import itertools

import pytest
import torch

from cscnn import CliffordAlgebra
from cscnn.kernels import Complete, CompleteKernel, Implicit, ImplicitKernel, find_orbits
from cscnn.kernels.conditions import count_invariants, multivector_invariants
from cscnn.testing import (
    assert_steerable,
    conformance,
    random_element,
    relative_error,
    steerability_errors,
)
from cscnn.testing.conformance import METRICS
from tests.conftest import metric_name
from tests.kernels.samples import grid, groups

SMALL = {"implicit": Implicit(num_layers=2, hidden_dim=3, condition=2)}
SMALL |= {group: Complete(group, hidden_dim=4, condition=2) for group in ("O", "SO", "O+", "SO+")}
CASES = [
    (metric, key) for metric in METRICS for key in SMALL if key in ("implicit", *groups(metric))
]


def make(metric, key, c_in=2, c_out=3):
    algebra = CliffordAlgebra(metric)
    return SMALL[key].build(algebra, c_in, c_out, grid(3, algebra.dim), (3,) * algebra.dim).double()


def noise(*shape):
    return torch.randn(*shape, dtype=torch.float64)


# --- invariants -----------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", [*METRICS, (1,)], ids=metric_name)
def test_features_are_invariant(metric):
    """Under the group, to all kinds of its elements; raw components are not."""
    algebra = CliffordAlgebra(metric)
    for group in groups(metric):
        x = noise(50, 3, algebra.n_blades)
        features = multivector_invariants(x, algebra, group)
        assert features.shape == (50, count_invariants(3, algebra, group))
        for kind in algebra.kinds():
            if "S" in group and kind == "reflection":
                continue
            moved = algebra.transform(random_element(algebra, group, kind, 1.0), x)
            assert relative_error(multivector_invariants(moved, algebra, group), features) < 1e-9
            assert relative_error(moved, x) > 1e-3 or algebra.dim == 1


@pytest.mark.parametrize("metric", METRICS, ids=metric_name)
def test_smaller_groups_know_more(metric):
    """SO tells a pseudoscalar from its negative, O+ the future from the past, O neither."""
    algebra = CliffordAlgebra(metric)

    def change(group, x, moved):
        before, after = (multivector_invariants(y, algebra, group) for y in (x, moved))
        return (after - before).abs().max().item()

    x = noise(1, algebra.n_blades)
    flip = torch.diag(torch.tensor([1.0] * (algebra.dim - 1) + [-1.0], dtype=torch.float64))
    mirrored = algebra.transform(flip, x)
    assert change("O", x, mirrored) < 1e-12
    assert change("SO", x, mirrored) > 1e-3
    if "O+" in groups(metric):
        later = algebra.embed(torch.eye(algebra.dim, dtype=torch.float64)[:1], 1)
        assert change("O", later, -later) < 1e-12
        assert change("O+", later, -later) > 1e-3


@pytest.mark.parametrize("metric", METRICS, ids=metric_name)
def test_features_are_inner_products(metric):
    """By geometric products, one pair and grade at a time: <x, y>_k = (reverse(x_k) y_k)^(0)."""
    algebra = CliffordAlgebra(metric)
    x = noise(3, algebra.n_blades)

    def part(y, k):
        return algebra.embed(algebra.grade(y, k), k)

    def inner(y, z, k):
        return algebra.geometric_product(algebra.reverse(part(y, k)), part(z, k))[0]

    pairs = list(itertools.combinations_with_replacement(x, 2))
    expected = [y[0] for y in x]
    expected += [inner(y, z, k) for k in range(1, algebra.n_grades) for y, z in pairs]
    features = torch.sinh(multivector_invariants(x, algebra))
    assert relative_error(features, torch.stack(expected)) < 1e-12


@pytest.mark.parametrize("metric", [(1, 1), (1, -1, -1)], ids=metric_name)
@pytest.mark.parametrize("key", ["implicit", "O", "SO"])
def test_symmetric_tensors(metric, key):
    algebra = CliffordAlgebra(metric, symmetric=True)
    kernel = SMALL[key].build(algebra, 2, 3, grid(3, algebra.dim), (3,) * algebra.dim).double()
    extra = kernel.given(noise(3, 2, algebra.n_blades))
    assert_steerable(kernel, extra=extra[0], rapidity=1.0)
    tensors = extra * torch.tensor([grade > algebra.dim for grade in algebra.grades])
    points = grid(3, algebra.dim)
    here, there = kernel(points, extra=extra), kernel(points, extra=extra - tensors)
    assert relative_error(here, there) > 1e-3  # tensors are seen


def test_large_fields_have_moderate_features():
    algebra = CliffordAlgebra((1, -1, -1))
    x = (1e9 * noise(4, algebra.n_blades)).float().requires_grad_()
    features = multivector_invariants(x, algebra, "SO+")
    features.sum().backward()
    assert features.abs().max() < 60
    assert x.grad.isfinite().all()
    half = multivector_invariants((x / 1e6).half(), algebra)  # squares overflow in this precision
    assert half.dtype == torch.float16
    assert half.isfinite().all()


def test_wrong_groups_and_shapes_are_errors():
    """A group that is misspelt would be taken for O."""
    plane = CliffordAlgebra((1, 1))
    with pytest.raises(ValueError, match=r"group must be one of O, SO, O\+, SO\+, got 'so'"):
        multivector_invariants(noise(2, 4), plane, "so")
    with pytest.raises(ValueError, match=r"shape \(..., channels, 4\), got \(4,\)"):
        multivector_invariants(noise(4), plane)


# --- kernels --------------------------------------------------------------------------------------


def implicit(algebra, c_in, c_out):
    choice = Implicit(num_layers=2, hidden_dim=3, extra_channels=1, condition=1)
    return ImplicitKernel(algebra, c_in, c_out, choice)


def complete(algebra, c_in, c_out, group="O"):
    return CompleteKernel(algebra, c_in, c_out, Complete(group, hidden_dim=4, condition=2))


#: What makes multivectors of fields belongs to the kernel, and acts in `SteerableKernel.given`.
OPTIONS = {"rapidity": 1.0, "compiles": False, "idle": ("mix.weight",)}
TestImplicit = conformance.kernel(implicit, metrics=METRICS, **OPTIONS)
TestComplete = conformance.kernel(complete, metrics=METRICS[1:3], **OPTIONS)


@pytest.mark.parametrize(("metric", "key"), CASES, ids=str)
def test_law_with_the_field(metric, key):
    """Fields that are transformed have kernels that are: K(gv | ρ(g) f) = ρ(g) K(v | f) ρ(g)^-1."""
    kernel = make(metric, key)
    algebra, means, points = kernel.algebra, noise(4, 2, 2 ** len(metric)), noise(6, len(metric))
    here = kernel(points, extra=kernel.given(means))
    assert relative_error(here[:1].expand_as(here), here) > 1e-3  # each sample has its own
    for kind in algebra.kinds():
        if kernel.group.startswith("SO") and kind == "reflection":
            continue
        g = random_element(algebra, kernel.group, kind, (0.5, 1.0))
        rho = algebra.action(g)
        expected = torch.einsum("xc,snocib,by->snoxiy", rho, here, torch.linalg.inv(rho))
        moved = kernel.given(algebra.transform(g, means))
        assert relative_error(kernel(points @ g.T, extra=moved), expected) < 1e-9
        if key == "implicit":  # the control: the field stays behind
            alone = kernel(points @ g.T, extra=kernel.given(means))
            assert relative_error(alone, expected) > 1e-3


@pytest.mark.parametrize("metric", METRICS, ids=metric_name)
def test_raw_components_break_the_law(metric, monkeypatch):
    """The control: radial functions that see components, as many as there are invariants."""
    kernel = make(metric, "O")
    extra = noise(2, kernel.algebra.n_blades)
    assert_steerable(kernel, extra=extra, rapidity=1.0)

    def components(x, algebra, group):
        repeated = x.flatten(-2).repeat(count_invariants(x.shape[-2], algebra, group))
        return repeated[: count_invariants(x.shape[-2], algebra, group)]

    monkeypatch.setattr("cscnn.kernels.base.multivector_invariants", components)
    errors = steerability_errors(kernel, extra=extra, rapidity=(0.5, 1.0))
    assert min(errors.values()) > 1e-3


@pytest.mark.parametrize(("metric", "key"), CASES, ids=str)
def test_a_batch_is_one_kernel_after_the_other(metric, key):
    kernel = make(metric, key)
    points, extra = grid(3, len(metric)), noise(3, 2, kernel.algebra.n_blades)
    orbits = find_orbits(points, kernel.algebra, kernel.group)
    expected = torch.stack([kernel.expand(points, orbits, each) for each in extra])
    assert relative_error(kernel.expand(points, orbits, extra), expected) < 1e-12
    assert relative_error(kernel.expand(points, extra=extra), expected) < 1e-12
    assert kernel(points, orbits, extra).shape == (3, len(points), *expected.shape[1:5])
    assert kernel.expand(points, orbits, extra[:0]).shape == (0, *expected.shape[1:])


@pytest.mark.parametrize("group", ["O", "SO+"])
def test_complete_kernels_without_weights_of_the_field(group):
    """Then they are those without a condition."""
    algebra, points = CliffordAlgebra((1, -1)), grid(5, 2)
    kernel = Complete(group, condition=3).build(algebra, 2, 3, points, (5, 5)).double()
    plain = Complete(group).build(algebra, 2, 3, points, (5, 5)).double()
    extra = noise(4, 3, algebra.n_blades)
    state = {k: v for k, v in kernel.state_dict().items() if k in plain.state_dict()}
    plain.load_state_dict(state)
    assert relative_error(kernel.expand(points, extra=extra)[0], plain.expand(points)) > 1e-3
    torch.nn.init.zeros_(kernel.radial.given.weight)
    for own in kernel.expand(points, extra=extra):
        assert relative_error(own, plain.expand(points)) < 1e-12


def test_implicit_kernels_without_weights_of_the_field():
    """Multivectors that are zero leave the kernel network as it is without them."""
    algebra, points = CliffordAlgebra((1, -1)), grid(5, 2)
    choice = Implicit(num_layers=2, hidden_dim=3, condition=3)
    kernel = choice.build(algebra, 2, 3, points, (5, 5)).double()
    plain = Implicit(num_layers=2, hidden_dim=3).build(algebra, 2, 3, points, (5, 5)).double()
    for name, weight in plain.state_dict().items():
        wide = kernel.state_dict()[name]
        weight.copy_(wide[tuple(slice(n) for n in weight.shape)])  # of the first input, v, alone
    means = noise(4, 2, algebra.n_blades)
    assert (
        relative_error(kernel.expand(points, extra=kernel.given(means))[0], plain.expand(points))
        > 1e-3
    )
    torch.nn.init.zeros_(kernel.mix.weight)
    for own in kernel.expand(points, extra=kernel.given(means)):
        assert relative_error(own, plain.expand(points)) < 1e-12


def test_nothing_changes_without_a_condition():
    """No weights, no draws, nothing in files."""
    algebra, points = CliffordAlgebra((1, 1)), grid(3, 2)
    for choice in (Implicit(), Complete(), Complete("SO", "free")):
        kernel = choice.build(algebra, 2, 3, points, (3, 3))
        assert not any("mix" in name or "given" in name for name in kernel.state_dict())
        assert "condition" not in choice.to_dict()
        assert (kernel.condition, kernel.extra_channels, kernel.mix) == (0, 0, None)
    assert Complete(condition=2).to_dict()["condition"] == 2


def test_known_multivectors_beside_those_of_the_field():
    algebra = CliffordAlgebra((1, 1))
    choice = Implicit(num_layers=2, hidden_dim=3, extra_channels=2, condition=3)
    kernel = ImplicitKernel(algebra, 2, 1, choice).double()
    means, known = noise(4, 2, 4), noise(2, 4)
    given = kernel.given(means, known)
    assert given.shape == (4, 5, 4)
    assert torch.equal(given, kernel.given(means, known.expand(4, 2, 4)))
    assert torch.equal(given[3, :2], known)
    with pytest.raises(ValueError, match=r"takes 2 extra multivectors.*got None"):
        kernel.given(means)
    with pytest.raises(ValueError, match=r"takes 5 extra .*got None\. Its method given makes the"):
        kernel(noise(6, 2))
    with pytest.raises(ValueError, match=r"\(5, 4\) or \(batch, 5, 4\); got \(4, 4, 4\)"):
        kernel(noise(6, 2), extra=given[:, 1:])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"radial": "free"}, "condition=2 needs radial='network'.*radial='free' are the same"),
        ({"radial": "rings"}, "condition=2 needs radial='network'"),
        ({"group": "O+", "causal": True}, "condition=2 shows the future to a causal kernel"),
    ],
)
def test_what_cannot_see_the_field(options, message):
    with pytest.raises(ValueError, match=message):
        Complete(condition=2, **options)
    for kind in (Implicit, Complete):
        with pytest.raises(ValueError, match="condition must be at least 0, got -1"):
            kind(condition=-1)
