"""Symmetric tensors beside multivectors, against matrices written out with numpy."""

from __future__ import annotations

import pickle
from itertools import combinations, product

import numpy as np
import pytest
import torch
from torch import Tensor

from cscnn import CliffordAlgebra

METRICS = [m for d in (2, 3, 4) for m in product((1, -1), repeat=d) if list(m) == sorted(m)[::-1]]
PRODUCTS = (
    "geometric_product", "wedge", "left_contraction", "right_contraction", "symmetric_product",
)  # fmt: skip


@pytest.fixture(params=METRICS, ids=lambda m: "".join("+" if s > 0 else "-" for s in m))
def algebra(request: pytest.FixtureRequest) -> CliffordAlgebra:
    return CliffordAlgebra(request.param, symmetric=True)


def noise(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def matrices(algebra: CliffordAlgebra, x: Tensor) -> np.ndarray:
    """T^ij of the traceless part of one element."""
    tensor = x.clone()
    tensor[: 2**algebra.dim] = 0
    return algebra.grade(tensor, "symmetric").reshape(algebra.dim, algebra.dim).numpy()


def traceless(algebra: CliffordAlgebra, matrix: np.ndarray) -> np.ndarray:
    eta = np.diag(algebra.metric)
    return matrix - np.trace(eta @ matrix) / algebra.dim * eta


def bivector(algebra: CliffordAlgebra, x: Tensor) -> np.ndarray:
    matrix = np.zeros((algebra.dim,) * 2)
    values = algebra.grade(x, 2).tolist()
    for (i, j), value in zip(combinations(range(algebra.dim), 2), values, strict=True):
        matrix[i, j], matrix[j, i] = value, -value
    return matrix


def test_components(algebra: CliffordAlgebra) -> None:
    d = algebra.dim
    size = d * (d + 1) // 2 - 1
    assert algebra.n_blades == 2**d + size
    assert algebra.grade_sizes[-1] == algebra.size(d + 1) == size
    assert algebra.size("symmetric") == d * d
    assert len(algebra.blade_names) == len(set(algebra.blade_names)) == algebra.n_blades
    even = torch.cat(
        [torch.full((size,), float(k % 2 == 0)) for k, size in enumerate(algebra.runs)]
    )
    assert torch.equal(even * 2 - 1, algebra.grade_involution(torch.ones(algebra.n_blades)))
    assert algebra != algebra.multivectors == CliffordAlgebra(algebra.metric)
    assert pickle.loads(pickle.dumps(algebra)) == algebra
    assert "symmetric=True" in repr(algebra)


def test_matrices_come_back(algebra: CliffordAlgebra) -> None:
    matrix = noise(5, algebra.dim, algebra.dim)
    matrix = matrix + matrix.mT
    x = algebra.embed(matrix.flatten(1), "symmetric")
    assert torch.allclose(algebra.grade(x, "symmetric"), matrix.flatten(1), atol=1e-12)
    eta = torch.tensor(algebra.metric, dtype=torch.float64)
    squares = (matrix**2 * eta[:, None] * eta).sum((1, 2))
    assert torch.allclose(algebra.norm_squared(x), squares, atol=1e-12)
    trace = (torch.diagonal(matrix, dim1=1, dim2=2) * eta).sum(-1)
    assert torch.allclose(algebra.grade(x, 0)[:, 0] * algebra.dim**0.5, trace, atol=1e-12)


def test_products_of_matrices(algebra: CliffordAlgebra) -> None:
    eta = np.diag(algebra.metric)
    x, y = noise(2, algebra.n_blades)
    only = [torch.zeros_like(x).index_copy(0, i, x[i]) for i in grade_indices(algebra)]
    others = [torch.zeros_like(y).index_copy(0, i, y[i]) for i in grade_indices(algebra)]
    top = algebra.dim + 1
    t, u = matrices(algebra, x), matrices(algebra, y)
    a, b = algebra.grade(x, 1).numpy(), algebra.grade(y, 1).numpy()
    p, q = bivector(algebra, x), bivector(algebra, y)

    def of(left: Tensor, right: Tensor, grade: int) -> Tensor:
        return algebra.grade(algebra.geometric_product(left, right), grade)

    def close(actual: object, expected: np.ndarray) -> None:
        np.testing.assert_allclose(np.asarray(actual), expected, atol=1e-12)

    def tensor(left: Tensor, right: Tensor) -> np.ndarray:
        return matrices(algebra, algebra.geometric_product(left, right))

    close(of(only[top], others[1], 1), t @ eta @ b)
    close(of(only[1], others[top], 1), u @ eta @ a)
    close(tensor(only[1], others[1]), traceless(algebra, (np.outer(a, b) + np.outer(b, a)) / 2))
    close(
        bivector(algebra, algebra.geometric_product(only[top], others[2])),
        t @ eta @ q + q @ eta @ t,
    )
    anti = p @ eta @ q + q @ eta @ p
    close(tensor(only[2], others[2]), traceless(algebra, -anti / 2))
    close(tensor(only[2], others[top]), (p @ eta @ u - u @ eta @ p) / 2)
    close(tensor(only[top], others[2]), (t @ eta @ q - q @ eta @ t) / 2)
    close(tensor(only[top], others[top]), traceless(algebra, (t @ eta @ u + u @ eta @ t) / 2))
    close(
        bivector(algebra, algebra.geometric_product(only[top], others[top])),
        (t @ eta @ u - u @ eta @ t) / 2,
    )
    close(of(only[top], others[top], 0), np.array([np.trace(t @ eta @ u @ eta)]))
    close(tensor(only[0], others[top]), float(x[0]) * u)


def grade_indices(algebra: CliffordAlgebra) -> list[Tensor]:
    spans = [algebra.grade_slice(k) for k in range(algebra.n_grades)]
    return [torch.arange(s.start, s.stop) for s in spans]


def test_everything_commutes_with_the_group(algebra: CliffordAlgebra) -> None:
    x, y = noise(2, 20, algebra.n_blades)
    generator = torch.Generator().manual_seed(0)
    for kind in algebra.kinds():
        g = algebra.random_orthogonal(kind, rapidity=2.0, generator=generator, dtype=x.dtype)
        gx, gy = algebra.transform(g, x), algebra.transform(g, y)
        for name in PRODUCTS:
            operation = getattr(algebra, name)
            expected = algebra.transform(g, operation(x, y))
            error = (operation(gx, gy) - expected).abs().max() / expected.abs().max()
            assert error < 1e-10, (kind, name)
        assert torch.allclose(algebra.inner(gx, gy), algebra.inner(x, y), rtol=1e-8, atol=1e-8)
        matrix = algebra.grade(x, "symmetric")
        moved = matrix @ algebra.action(g, "symmetric").mT
        assert torch.allclose(algebra.grade(gx, "symmetric"), moved, rtol=1e-9, atol=1e-9)
    leaked = x + x.roll(1, -1)  # the control
    moved = algebra.transform(g, x)
    assert not torch.allclose(algebra.transform(g, leaked), moved + moved.roll(1, -1))


def test_action_is_a_representation(algebra: CliffordAlgebra) -> None:
    g, h = algebra.random_orthogonal(batch=2, dtype=torch.float64)
    together = algebra.action(g @ h)
    assert torch.allclose(together, algebra.action(g) @ algebra.action(h), atol=1e-9)
    top = algebra.grade_slice(algebra.dim + 1)
    assert torch.equal(algebra.action(g, algebra.dim + 1), algebra.action(g)[top, top])


def test_multivectors_are_as_without_tensors(algebra: CliffordAlgebra) -> None:
    small, n = algebra.multivectors, 2**algebra.dim
    x, y = noise(2, 3, n)
    wide = [torch.nn.functional.pad(z, (0, algebra.n_blades - n)) for z in (x, y)]
    for name in PRODUCTS[:-1]:
        expected = getattr(small, name)(x, y)
        assert torch.allclose(getattr(algebra, name)(*wide)[..., :n], expected, atol=1e-12)
    assert torch.equal(algebra.dual(wide[0])[..., :n], small.dual(x))
    assert {path for path in algebra.paths if max(path) <= algebra.dim} == {*small.paths}


def test_the_pseudoscalar_turns_tensors_of_the_plane(algebra: CliffordAlgebra) -> None:
    x = noise(3, algebra.n_blades)
    turned = algebra.geometric_product(x, algebra.pseudoscalar(dtype=x.dtype))
    assert torch.allclose(algebra.undual(x), turned, atol=1e-12)
    back = algebra.dual(turned) - x
    assert back[..., : 2**algebra.dim].abs().max() < 1e-12
    assert (back.abs().max() < 1e-12) == (algebra.dim == 2)


def test_no_path_is_missing(algebra: CliffordAlgebra) -> None:
    """Equivariant maps Λ^m × Λ^n -> Λ^k with tensors, by solving the constraint."""
    if algebra.dim > 3:
        return
    generator = torch.Generator().manual_seed(1)
    elements = [
        algebra.action(algebra.random_orthogonal(generator=generator, dtype=torch.float64))
        for _ in range(4)
    ]
    top = algebra.dim + 1
    for path in product(range(algebra.n_grades), repeat=3):
        if top not in path:
            continue
        rows = []
        for rho in elements:
            left, out, right = (rho[algebra.grade_slice(k), algebra.grade_slice(k)] for k in path)
            whole = torch.kron(torch.kron(out.inverse().mT, left), right)
            form = torch.kron(
                torch.kron(torch.eye(len(out)), torch.eye(len(left))), torch.eye(len(right))
            )
            rows.append(whole - form)
        sizes = torch.linalg.svdvals(torch.cat(rows))
        count = int((sizes < 1e-9 * sizes[0]).sum()) + max(0, rows[0].shape[1] - len(sizes))
        assert count == (path in algebra.paths), path


def test_errors_show_values() -> None:
    algebra = CliffordAlgebra((1, 1), symmetric=True)
    with pytest.raises(
        ValueError, match=r"equal its transpose, got \[\[1.0, 2.0\], \[3.0, 4.0\]\]"
    ):
        algebra.embed(torch.tensor([1.0, 2.0, 3.0, 4.0]), "symmetric")
    with pytest.raises(ValueError, match=r"4 component\(s\) of grade symmetric .* \(3,\)"):
        algebra.embed(torch.zeros(3), "symmetric")
    with pytest.raises(ValueError, match=r"\(2, 2\); .* all 4 numbers of its matrix, row by row"):
        algebra.embed(torch.eye(2), "symmetric")
    with pytest.raises(ValueError, match="a matrix with its trace has grade 'symmetric'"):
        algebra.embed(torch.eye(2).flatten(), 3)
    with pytest.raises(ValueError, match=r"on one axis .* metric \(1,\)"):
        CliffordAlgebra((1,), symmetric=True)
    with pytest.raises(TypeError, match="symmetric must be of type bool, got 1"):
        CliffordAlgebra((1, 1), symmetric=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"got 'symmetric'; make .* with symmetric"):
        algebra.multivectors.grade(torch.zeros(4), "symmetric")
    with pytest.raises(ValueError, match="has no tensors: make it with symmetric=True"):
        algebra.multivectors.symmetric_product(torch.zeros(4), torch.zeros(4))
    for method in (algebra.exp, algebra.log, algebra.inverse, algebra.versor_inverse):
        with pytest.raises(ValueError, match="associative product"):
            method(torch.zeros(6))
    with pytest.raises(ValueError, match="associative product"):
        algebra.versor(torch.eye(2))
