"""`GeometricProductLayer`: learnable bilinear interactions that commute with O(p, q)."""

from __future__ import annotations

import math
from functools import cache

import torch
from torch import Tensor, nn

from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.bilinear import BilinearTable
from cscnn.algebra.blades import admissible_paths, product_terms
from cscnn.nn.functional import check_field, from_planes, mix_channels, to_planes, weighted_product
from cscnn.nn.linear import MVLinear, add_scalar_bias, check_size
from cscnn.nn.norm import GradeNorm


class GeometricProductLayer(nn.Module):
    """Fully connected geometric product (Ruhe et al. 2023; paper, Def. 2.13).

    ::

        r = GradeNorm(MVLinear(x))
        y_o = (sum_i sum_(m,n->k) w[o, i, (m,k,n)] (x_i^(m) r_i^(n))^(k) + MVLinear(x)_o) / sqrt(2)

    with one weight for every grade path (m, n -> k) that the algebra admits. Without
    ``first_order`` the second summand and the factor are left out. Commutes with ρ(g).

    Args:
        algebra: the Clifford algebra.
        c_in, c_out: channels.
        first_order: add the linear term (with its scalar bias).

    Attributes:
        paths: grade triples (left, out, right), the last axis of ``weight``.

    Shape:
        (batch, c_in, *space, blades) -> (batch, c_out, *space, blades)
    """

    def __init__(self, algebra: CliffordAlgebra, c_in: int, c_out: int, first_order: bool = True):
        super().__init__()
        self.algebra = algebra
        self.c_in = check_size("c_in", c_in)
        self.c_out = check_size("c_out", c_out)
        self.paths = admissible_paths(algebra.metric)
        self.weight = nn.Parameter(torch.empty(c_out, c_in, len(self.paths)))
        self.right = MVLinear(algebra, c_in, c_in, bias=False)
        self.norm = GradeNorm(algebra, c_in)
        self.linear = MVLinear(algebra, c_in, c_out) if first_order else None
        self._plan = _path_plan(algebra.metric)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the path weights with variance 1 / (c_in (dim + 1)), and reset the sublayers."""
        nn.init.normal_(self.weight, std=1 / math.sqrt(self.c_in * self.algebra.n_grades))
        for layer in (self.right, self.norm, self.linear):
            if layer is not None:
                layer.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        check_field(x, self.algebra, self.c_in)
        order, tables, slices = self._plan
        planes = to_planes(x)
        right = mix_channels(planes, self.right.weight, self.algebra)
        right = self.norm(right.movedim(2, -1)).movedim(-1, 2)
        y = weighted_product(planes, right, self.weight[..., order], tables, slices)
        if self.linear is None:
            return from_planes(y, like=x)
        y = y + mix_channels(planes, self.linear.weight, self.algebra)
        y = from_planes(y, like=x)
        if self.linear.bias is not None:
            y = add_scalar_bias(y, self.linear.bias)
        return y / math.sqrt(2)

    def extra_repr(self) -> str:
        return f"{self.algebra}, {self.c_in}, {self.c_out}, paths={len(self.paths)}"


@cache
def _path_plan(
    metric: tuple[int, ...],
) -> tuple[list[int], tuple[BilinearTable, ...], tuple[slice, ...]]:
    """How `weighted_product` runs: paths by output grade, and for each its table and slice."""
    algebra = CliffordAlgebra(metric)
    paths = admissible_paths(metric)
    order = sorted(range(len(paths)), key=lambda i: (paths[i][1], i))
    tables, slices, start = [], [], 0
    for k, size in enumerate(algebra.grade_sizes):
        mine = [paths[i] for i in order if paths[i][1] == k]
        first = algebra.grade_slice(k).start
        terms = [
            (a, b, mine.index((algebra.grades[a], k, algebra.grades[b])) * size + c - first, sign)
            for a, b, c, sign in product_terms(metric)
            if algebra.grades[c] == k
        ]
        n = algebra.n_blades
        tables.append(BilinearTable(terms, (n, n, len(mine) * size)))
        slices.append(slice(start, start + len(mine)))
        start += len(mine)
    return order, tuple(tables), tuple(slices)
