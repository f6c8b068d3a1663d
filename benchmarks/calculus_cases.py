"""Derivatives of multivector fields against torch's, followed by the dense Cayley table."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from benchmarks.algebra_cases import dense_table
from benchmarks.registry import Case, benchmark
from benchmarks.work import forward_backward
from cscnn.algebra import CliffordAlgebra
from cscnn.calculus import exterior_derivative, vector_derivative


@benchmark(
    "vector_derivative",
    "∇f by central differences, forward + backward",
    "Ratios are relative to derivatives along each axis, then a product with the Cayley table.",
)
def derivatives() -> Iterator[Case]:
    for metric, shape in (((1, 1), (4, 4, 64, 64)), ((1, -1, -1), (1, 4, 32, 32, 32))):
        algebra = CliffordAlgebra(metric)
        torch.manual_seed(0)
        f = torch.randn(*shape, algebra.n_blades, requires_grad=True)
        vectors = dense_table(algebra)[algebra.grade_slice(1)] * torch.tensor(metric)[:, None, None]

        def dense(f: Tensor, vectors: Tensor = vectors, dim: int = algebra.dim) -> Tensor:
            axes = tuple(range(2, 2 + dim))
            slopes = torch.stack(torch.gradient(f, dim=axes, edge_order=2), -1)
            return torch.einsum("icb,...bi->...c", vectors, slopes)

        def ours(f: Tensor, algebra: CliffordAlgebra = algebra) -> Tensor:
            return vector_derivative(f, algebra)

        def half(f: Tensor, algebra: CliffordAlgebra = algebra) -> Tensor:
            return exterior_derivative(f, algebra)

        yield Case(
            label=f"Cl{algebra.signature} {'x'.join(map(str, shape))}",
            variants={
                "cscnn": forward_backward(ours, (f,)),
                "cscnn, ∇∧f only": forward_backward(half, (f,)),
                "torch.gradient, dense einsum": forward_backward(dense, (f,)),
            },
            reference="torch.gradient, dense einsum",
            truth=forward_backward(ours, (f.detach().double().requires_grad_(),)),
            compare=("cscnn", "torch.gradient, dense einsum"),
        )
