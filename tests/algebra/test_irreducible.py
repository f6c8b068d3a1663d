"""Grades are irreducible: the linear maps that commute with O(p, q) are one number for each."""

import pytest
import torch

from cscnn import CliffordAlgebra
from tests.conftest import metric_name, signatures


def commutant_dimension(algebra, elements):
    """Dimension of {X : ρ(g) X = X ρ(g)} for some elements, from singular values."""
    eye = torch.eye(algebra.n_blades, dtype=torch.float64)
    normal = torch.zeros(algebra.n_blades**2, algebra.n_blades**2, dtype=torch.float64)
    for g in elements:
        rho = algebra.action(g)
        rho = rho / torch.linalg.matrix_norm(rho, 2)
        rows = torch.kron(rho, eye) - torch.kron(eye, rho.mT.contiguous())
        normal += rows.mT @ rows
    values = torch.linalg.eigvalsh(normal)
    return int((values < 1e-10 * values[-1]).sum())


@pytest.mark.parametrize("metric", signatures(4), ids=metric_name)
@pytest.mark.parametrize("symmetric", [False, True], ids=["", "tensors"])
def test_grades_are_irreducible(metric, symmetric):
    if symmetric and len(metric) == 1:
        pytest.skip("no tensors on one axis")
    algebra = CliffordAlgebra(metric, symmetric)
    generator = torch.Generator().manual_seed(0)
    elements = algebra.random_orthogonal(
        batch=6, rapidity=0.7, generator=generator, dtype=torch.float64
    )
    reflections = algebra.random_orthogonal(
        "reflection", batch=4, rapidity=0.7, generator=generator, dtype=torch.float64
    )
    assert commutant_dimension(algebra, [*elements, *reflections]) == algebra.n_grades


def test_fewer_symmetries_leave_more_maps():
    """The control: symmetries of the square split tensors of the plane in two."""
    algebra = CliffordAlgebra((1, 1), symmetric=True)
    square = [
        torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64),
        torch.diag(torch.tensor([1.0, -1.0], dtype=torch.float64)),
    ]
    assert commutant_dimension(algebra, square) > algebra.n_grades
