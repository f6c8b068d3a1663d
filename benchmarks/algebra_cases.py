"""Products of multivectors against the dense Cayley-table einsum that other libraries use."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import torch
from torch import Tensor

from benchmarks.registry import Case, benchmark
from benchmarks.work import forward_backward
from cscnn.algebra import CliffordAlgebra
from cscnn.nn import GeometricProductLayer


def dense_table(algebra: CliffordAlgebra, dtype: torch.dtype = torch.float32) -> Tensor:
    """The Cayley tensor [left, out, right], n^3 entries."""
    eye = torch.eye(algebra.n_blades, dtype=dtype)
    return algebra.geometric_product(eye[:, None], eye[None]).mT.contiguous()


@benchmark(
    "geometric_product",
    "Geometric product of 100,000 multivectors, forward + backward",
    "Ratios are relative to an einsum with the dense Cayley table, as other libraries do it.",
)
def geometric_product() -> Iterator[Case]:
    for metric, speedup in (((1, 1), None), ((1, 1, 1), 3.0), ((1, -1, -1, -1), 6.0)):
        algebra = CliffordAlgebra(metric)
        torch.manual_seed(0)
        x, y = (torch.randn(10, 10, 1000, algebra.n_blades, requires_grad=True) for _ in range(2))
        # The memory order that fields have between our layers: blades beside the channels.
        channels_first = [
            t.detach().movedim(-1, 2).contiguous().movedim(2, -1).requires_grad_() for t in (x, y)
        ]
        table = dense_table(algebra)

        def dense(x: Tensor, y: Tensor, table: Tensor = table) -> Tensor:
            return torch.einsum("...a,acb,...b->...c", x, table, y)

        variants = {
            "cscnn": forward_backward(algebra.geometric_product, channels_first),
            "cscnn, blades innermost": forward_backward(algebra.geometric_product, (x, y)),
            "dense einsum": forward_backward(dense, (x, y)),
        }
        if algebra.dim > 2 and any(shutil.which(name) for name in ("c++", "g++", "clang++", "cl")):
            product, einsum = torch.compile(algebra.geometric_product), torch.compile(dense)
            variants = {
                "cscnn, compiled": forward_backward(product, channels_first),
                **variants,
                "dense einsum, compiled": forward_backward(einsum, (x, y)),
            }
        yield Case(
            label=f"Cl{algebra.signature}",
            variants=variants,
            reference="dense einsum",
            truth=forward_backward(
                algebra.geometric_product,
                [t.detach().double().requires_grad_() for t in (x, y)],
            ),
            speedup=speedup,
            judged=tuple(name for name in variants if name.startswith("cscnn")),
        )


def dense_layer(layer: GeometricProductLayer, x: Tensor) -> Tensor:
    """The product layer with its weights spread over the whole Cayley table, as published."""
    algebra = layer.algebra
    grades = torch.tensor(algebra.grades)
    index = torch.zeros((algebra.n_grades,) * 3, dtype=torch.int64)
    for i, path in enumerate(layer.paths):
        index[path] = i
    blade_paths = index[grades[:, None, None], grades[None, :, None], grades[None, None, :]]
    weighted = layer.weight[..., blade_paths] * dense_table(algebra)
    product = torch.einsum("pia,oiacb,pib->poc", x, weighted, layer.norm(layer.right(x)))
    assert layer.linear is not None
    return (product + layer.linear(x)) / 2**0.5


@benchmark(
    "product_layer",
    "Fully connected product layer, 12 -> 144 channels, 343 points",
    "Ratios are relative to the same layer with its weights spread over the dense Cayley table.",
)
def product_layer() -> Iterator[Case]:
    algebra = CliffordAlgebra((1, 1, 1))
    torch.manual_seed(0)
    layer = GeometricProductLayer(algebra, 12, 144)
    x = torch.randn(343, 12, algebra.n_blades, requires_grad=True)
    inputs = [x, *layer.parameters()]
    double = GeometricProductLayer(algebra, 12, 144).double()
    double.load_state_dict(layer.state_dict())
    yield Case(
        label=f"Cl{algebra.signature}",
        variants={
            "cscnn": forward_backward(lambda x, *_: layer(x), inputs),
            "dense einsum": forward_backward(lambda x, *_: dense_layer(layer, x), inputs),
        },
        reference="dense einsum",
        truth=forward_backward(
            lambda x, *_: double(x), [x.detach().double().requires_grad_(), *double.parameters()]
        ),
        speedup=4.0,
        memory=1 / 3,
    )
