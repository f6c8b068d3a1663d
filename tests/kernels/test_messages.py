"""Tables of messages: their components are the basis kernels, each row once."""

import pytest
import torch

from cscnn import CliffordAlgebra
from cscnn.kernels.basis import SteerableBasis
from cscnn.kernels.messages import message_table

ALGEBRAS = [
    CliffordAlgebra(metric, symmetric=symmetric)
    for metric in ((1, -1), (1, 1, 1))
    for symmetric in (False, True)
]


@pytest.mark.parametrize("special", [False, True], ids=["O", "SO"])
@pytest.mark.parametrize("algebra", ALGEBRAS, ids=str)
def test_components_are_the_basis_kernels(algebra, special):
    basis = SteerableBasis(algebra, special)
    table = message_table(basis)
    points = torch.randn(5, algebra.dim, dtype=torch.float64)
    components = table.components(table.operators(points))
    one_by_one = torch.eye(len(basis), dtype=torch.float64)
    values = one_by_one[:, None, :, None].expand(-1, 1, -1, 5)
    kernels = basis.assemble(values, points)[:, :, 0]  # elements, blades, blades, points
    assert table.size == sum(algebra.grade_sizes[out] for out in basis.output_grades), (
        "a component for each blade of the output of each basis kernel"
    )
    for place, (blade, element) in enumerate(zip(table.blades, table.elements, strict=True)):
        expected = kernels[element, blade].T
        torch.testing.assert_close(components[:, place], expected, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("special", [False, True], ids=["O", "SO"])
@pytest.mark.parametrize("algebra", ALGEBRAS, ids=str)
def test_no_row_is_redundant(algebra, special):
    table = message_table(SteerableBasis(algebra, special))
    assert table.repeated == special
    points = torch.randn(100, algebra.dim, dtype=torch.float64)
    rows = table.operators(points).transpose(0, 1).flatten(1)
    assert torch.linalg.matrix_rank(rows) == table.count
