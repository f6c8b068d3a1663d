"""Layers of SO(p, q): the conformance kit, completeness by null spaces, what reflections do."""

import pytest
import torch

from cscnn import CliffordAlgebra
from cscnn.algebra.group import GROUPS, common_group
from cscnn.networks import ProductGate
from cscnn.nn import CGENN, GeometricProductLayer, MVLinear
from cscnn.nn.linear import constant_blades
from cscnn.testing import (
    assert_equivariant,
    conformance,
    equivariance_errors,
    random_element,
    relative_error,
)
from cscnn.testing.conformance.suite import group_exists
from tests.conftest import metric_name, signatures

SO = {"channels": 3, "group": "SO", "tol": 1e-10, "rapidity": 2.0}
SO_PLUS = {**SO, "group": "SO+", "metrics": [(1, -1), (1, -1, -1)], "compiles": False}


def linear(algebra, group="SO"):
    return MVLinear(algebra, 3, 4, constant_blades(algebra, group), group)


def product(algebra, group="SO"):
    return GeometricProductLayer(algebra, 3, 4, group=group)


def cgenn(algebra, group="SO"):
    return CGENN(algebra, 3, 2, hidden_dim=4, num_layers=2, group=group)


def gate(algebra, group="SO"):
    return ProductGate(algebra, 3, group)


LAYERS = (linear, product, cgenn, gate)
TestLinear = conformance.layer(linear, **SO)
TestProduct = conformance.layer(product, **SO)
TestCGENN = conformance.layer(cgenn, **SO, compiles=False)
TestProductGate = conformance.layer(gate, **SO)
TENSORS = [CliffordAlgebra(metric, symmetric=True) for metric in ((1, 1), (1, -1), (1, 1, 1))]
TestProductOfTensors = conformance.layer(product, metrics=TENSORS, **SO, compiles=False)
TestProductGateOfTensors = conformance.layer(gate, metrics=TENSORS, **SO, compiles=False)
TestLinearOfProperBoosts = conformance.layer(lambda a: linear(a, "SO+"), **SO_PLUS)
TestProductGateOfProperBoosts = conformance.layer(lambda a: gate(a, "SO+"), **SO_PLUS)
TestGradients = conformance.layer(
    lambda a: CGENN(a, 1, 1, hidden_dim=1, num_layers=1, group="SO"),
    channels=1, metrics=[(1, -1)], group="SO", gradcheck=True, compiles=False,
)  # fmt: skip


def randomised(module):
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_()
    return module.double()


@pytest.mark.parametrize("metric", [(1, 1), (1, -1), (1, 1, 1), (1, -1, -1)], ids=metric_name)
@pytest.mark.parametrize("make", LAYERS)
def test_reflections_are_lost(make, metric):
    algebra = CliffordAlgebra(metric)
    layer = randomised(make(algebra))
    errors = equivariance_errors(layer, algebra, (4, 3), kinds="reflection", gradients=False)
    assert errors["reflection"] > 1e-2
    assert "reflection" not in equivariance_errors(layer, algebra, (4, 3), group="SO", samples=1)
    with pytest.raises(AssertionError, match=r"commute with reflection, any of O\("):
        assert_equivariant(layer, algebra, (4, 3), gradients=False)


@pytest.mark.parametrize("make", LAYERS)
@pytest.mark.parametrize("plus", ["", "+"])
def test_without_the_pseudoscalar_they_are_the_layers_of_o(make, plus):
    """The columns of x I and the bias on pseudoscalars are all that differs; O+ is O."""
    algebra = CliffordAlgebra((1, -1, -1))
    small, large = randomised(make(algebra, "O" + plus)), make(algebra, "SO" + plus).double()
    state = large.state_dict()
    for name, value in small.state_dict().items():
        wider = state[name].zero_()
        if wider.shape != value.shape:
            wider = wider[:, : value.shape[1]] if value.dim() > 1 else wider[:, 0]
        wider.copy_(value)
    x = torch.randn(2, 3, 5, 8, dtype=torch.float64)
    assert relative_error(large(x), small(x)) < 1e-15
    assert_equivariant(large, algebra, (4, 3), samples=1, gradients=False)
    shapes = [[p.shape for p in m.parameters()] for m in (small, make(algebra, "O"))]
    assert shapes[0] == shapes[1]


# --- completeness ---------------------------------------------------------------------------------


def dimension(constraints, size):
    """Dimension of the null space of some matrices with columns (rows, size)."""
    gram = sum(matrix.T @ matrix for matrix in constraints)
    values = torch.linalg.eigvalsh(gram)
    return int((values < 1e-9 * values.max().clamp(min=1)).sum())


def actions(algebra, group, count=6):
    """ρ of random elements, which are in every connected component."""
    generator = torch.Generator().manual_seed(1)
    return [
        algebra.action(random_element(algebra, group, "any", 1.0, generator)) for _ in range(count)
    ]


def linear_maps(algebra, group):
    """Number of matrices A with ρ(g) A = A ρ(g)."""
    eye = torch.eye(algebra.n_blades, dtype=torch.float64)
    systems = (
        torch.kron(rho, eye) - torch.kron(eye, rho.T.contiguous())
        for rho in actions(algebra, group)
    )
    return dimension(systems, algebra.n_blades**2)


def span(maps):
    """Dimension of the span of some tensors."""
    return int(torch.linalg.matrix_rank(torch.stack([m.flatten() for m in maps]), rtol=1e-10))


def matrices(layer):
    """A layer of one channel as a matrix, for random weights."""
    eye = torch.eye(layer.algebra.n_blades, dtype=torch.float64).unsqueeze(1)
    return [randomised(layer)(eye)[:, 0] for _ in range(2 * layer.weight.numel())]


@pytest.mark.parametrize("metric", signatures(4), ids=metric_name)
def test_linear_layers_are_complete(metric):
    """d + 1 maps for O and O+, twice as many for SO and SO+, in even dimensions too."""
    algebra = CliffordAlgebra(metric)
    for group in GROUPS:
        if group_exists(algebra, group):
            count = (2 if "S" in group else 1) * algebra.n_grades
            layer = MVLinear(algebra, 1, 1, bias=False, group=group)
            assert linear_maps(algebra, group) == count == span(matrices(layer))
            assert layer.weight.numel() == count


@pytest.mark.parametrize("metric", [(1, 1), (1, -1), (1, 1, 1), (1, -1, -1)], ids=metric_name)
def test_tensors_have_a_pseudoscalar_partner_in_two_dimensions_only(metric):
    algebra = CliffordAlgebra(metric, symmetric=True)
    count = {"O": algebra.n_grades, "SO": 2 * algebra.n_grades - (algebra.dim > 2)}
    for group, expected in count.items():
        layer = MVLinear(algebra, 1, 1, bias=False, group=group)
        assert linear_maps(algebra, group) == expected == span(matrices(layer))
        assert_equivariant(MVLinear(algebra, 2, 2, group=group), algebra, (4, 2), group=group)
    wide = MVLinear(algebra, 300, 300, group="SO", bias=(0, 2**algebra.dim - 1))
    variance = wide(torch.randn(20, 300, algebra.n_blades)).var((0, 1))
    assert torch.allclose(variance, torch.ones(algebra.n_blades), atol=0.15)


def bilinear_maps(algebra, group):
    """Number of bilinear maps B with ρ(g) B(x, y) = B(ρ(g) x, ρ(g) y), one grade path at a time."""
    total, rhos = (
        0,
        [(rho, torch.linalg.inv(rho).T.contiguous()) for rho in actions(algebra, group)],
    )
    spans = [algebra.grade_slice(k) for k in range(algebra.n_grades)]
    for left in spans:
        for right in spans:
            for out in spans:
                size = (
                    (out.stop - out.start) * (left.stop - left.start) * (right.stop - right.start)
                )
                systems = []
                for rho, inverse in rhos:
                    both = torch.kron(inverse[left, left], inverse[right, right])
                    moved = torch.kron(rho[out, out], both)
                    systems.append(moved - torch.eye(size, dtype=torch.float64))
                total += dimension(systems, size)
    return total


def bilinear_span(algebra, group, behind=False):
    """Dimension of what product layers make of two channels, in one factor each.

    Behind them there may be a linear layer.
    """
    layer = GeometricProductLayer(algebra, 2, 1, first_order=False, group=group).double()
    eye = torch.eye(algebra.n_blades, dtype=torch.float64)
    n = algebra.n_blades
    x = torch.zeros(n, n, 2, n, dtype=torch.float64)
    x[:, :, 0], x[:, :, 1] = eye[:, None], eye[None]
    parts = torch.stack([x, x, x])
    parts[1, :, :, 0], parts[2, :, :, 1] = 0, 0

    def mixed_part():
        randomised(layer).norm.factor.data.fill_(-100.0)  # no normalisation: squares of x
        y = layer(parts.flatten(0, 2))
        if behind:
            y = randomised(MVLinear(algebra, 1, 1, bias=False, group=group))(y)
        both, first, second = y.chunk(3)
        return both - first - second

    with torch.no_grad():
        return span([mixed_part() for _ in range(2 * len(layer.paths) + 10)])


@pytest.mark.parametrize("group", ["O", "SO"])
@pytest.mark.parametrize("metric", [(1,), (1, 1), (1, -1), (1, 1, 1), (1, -1, -1)], ids=metric_name)
def test_product_layers_are_complete(metric, group):
    """All bilinear maps: the paths of the geometric product for O, twice as many for SO."""
    algebra = CliffordAlgebra(metric)
    count = (2 if group == "SO" else 1) * len(algebra.paths)
    assert bilinear_maps(algebra, group) == count == bilinear_span(algebra, group)


@pytest.mark.slow
def test_products_of_tensors_times_the_pseudoscalar():
    """In the plane product layers have them, in space a linear layer behind."""
    plane, space = (CliffordAlgebra((1,) * d, symmetric=True) for d in (2, 3))
    assert bilinear_maps(plane, "SO") == 2 * len(plane.paths) == bilinear_span(plane, "SO")
    count = bilinear_maps(space, "SO")
    assert bilinear_span(space, "SO") == count - 2  # into vectors and pseudoscalars
    assert bilinear_span(space, "SO", behind=True) == count


@pytest.mark.slow
@pytest.mark.parametrize("metric", [(1, -1, -1, -1), (1, 1, 1, 1)], ids=metric_name)
@pytest.mark.parametrize("group", ["O", "SO", "O+", "SO+"])
def test_product_layers_are_complete_in_four_dimensions(metric, group):
    algebra = CliffordAlgebra(metric)
    if group_exists(algebra, group):
        count = (2 if "S" in group else 1) * len(algebra.paths)
        assert bilinear_maps(algebra, group) == count == bilinear_span(algebra, group)


# --- numbers --------------------------------------------------------------------------------------


def test_linear_layer_is_its_formula():
    """Loops over channels and grades; x I by the product of the algebra."""
    algebra = CliffordAlgebra((1, -1, -1))
    layer = randomised(linear(algebra))
    x = torch.randn(5, 3, 8, dtype=torch.float64)
    turned = algebra.geometric_product(x, algebra.pseudoscalar(dtype=torch.float64))
    y = torch.zeros(5, 4, 8, dtype=torch.float64)
    for out in range(4):
        for blade, k in enumerate(algebra.grades):
            for i in range(3):
                y[:, out, blade] += layer.weight[out, i, k] * x[:, i, blade]
                y[:, out, blade] += layer.weight[out, 3 + i, k] * turned[:, i, blade]
        y[:, out, 0] += layer.bias[out, 0]
        y[:, out, 7] += layer.bias[out, 1]
    assert relative_error(layer(x), y) < 1e-14


def test_unit_variance_at_the_start():
    algebra = CliffordAlgebra((1, -1))
    layer = MVLinear(algebra, 400, 400, group="SO", bias=False)
    assert layer(torch.randn(50, 400, 4)).var().item() == pytest.approx(1, rel=0.05)
    assert layer.weight.std().item() == pytest.approx(800**-0.5, rel=0.02)


def test_biases():
    algebra = CliffordAlgebra((1, 1, 1))
    assert MVLinear(algebra, 2, 3, group="SO").bias.shape == (3,)
    assert MVLinear(algebra, 2, 3, (0, 7), "SO").bias.shape == (3, 2)
    with pytest.raises(
        ValueError, match=r"blades \[7\] \(\['e123'\]\) is not invariant under O\(3"
    ):
        MVLinear(algebra, 2, 3, (0, 7))
    with pytest.raises(ValueError, match=r"under SO\(3, 0\) .* and blade 7 \(the pseudoscalar\)"):
        MVLinear(algebra, 2, 3, (0, 1), "SO")
    with pytest.raises(
        ValueError, match=r"comes with one on the scalar: bias=\(0, 7\), got \(7,\)"
    ):
        MVLinear(algebra, 2, 3, (7,), "SO")
    with pytest.raises(ValueError, match="group must be one of O, SO, O\\+, SO\\+, got 'Pin'"):
        MVLinear(algebra, 2, 3, group="Pin")
    with pytest.raises(ValueError, match="there is no group 'SO\\+' here"):
        MVLinear(algebra, 2, 3, group="SO+")


def test_common_groups():
    assert common_group([]) == common_group(["O"]) == "O"
    assert common_group(["O", "SO"]) == "SO"
    assert common_group(["O+", "O"]) == "O+"
    assert common_group(["O+", "SO"]) == common_group(["SO+"]) == "SO+"
