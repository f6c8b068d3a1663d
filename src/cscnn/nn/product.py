"""`GeometricProductLayer`: learnable bilinear interactions, equivariant to O(p, q) or SO(p, q)."""

from __future__ import annotations

import math
from functools import cache

import torch
from torch import Tensor, nn

from cscnn._util.checks import check_int
from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.bilinear import BilinearTable
from cscnn.algebra.clifford import check_algebra
from cscnn.algebra.tables import product_terms
from cscnn.nn.functional import check_field, from_planes, to_planes, weighted_product
from cscnn.nn.linear import MVLinear, constant_blades
from cscnn.nn.norm import GradeNorm


class GeometricProductLayer(nn.Module):
    """Fully connected geometric product (Ruhe et al. 2023; paper, Def. 2.13).

    ::

        r = GradeNorm(MVLinear(x))
        y_o = (sum_i sum_(m,n->k) w[o, i, (m,k,n)] (x_i^(m) r_i^(n))^(k) + MVLinear(x)_o) / sqrt(2)

    with one weight for every grade path (m, n -> k) that the algebra admits. Without
    ``first_order`` the second summand and the factor are left out. Commutes with ρ(g).

    For SO the linear maps know x I, see `MVLinear`, and the paths stay as they are. That is enough:
    x (y I) = (x y) I, so a path to grade k from the part x_j I of r_i is a path to d - k from x_j,
    times I. Such pairs are all bilinear maps that commute with SO(p, q). With symmetric tensors,
    which have no x I in more than two dimensions, the products of two of them times I are missing;
    a linear layer behind has them.

    Args:
        algebra: the Clifford algebra.
        c_in, c_out: channels.
        first_order: add the linear term, with its bias on all blades that the group leaves alone.
        group: as for `MVLinear`.

    Attributes:
        paths: grade triples (left, out, right), the last axis of ``weight``.

    Shape:
        (batch, c_in, *space, blades) -> (batch, c_out, *space, blades)
    """

    def __init__(
        self,
        algebra: CliffordAlgebra,
        c_in: int,
        c_out: int,
        first_order: bool = True,
        group: str = "O",
    ):
        super().__init__()
        self.algebra: CliffordAlgebra = check_algebra(algebra)
        self.c_in: int = check_int("c_in", c_in, low=1)
        self.c_out: int = check_int("c_out", c_out, low=1)
        self.paths: tuple[tuple[int, int, int], ...] = algebra.paths
        self.weight = nn.Parameter(torch.empty(c_out, c_in, len(self.paths)))
        self.right = MVLinear(algebra, c_in, c_in, bias=False, group=group)
        self.norm = GradeNorm(algebra, c_in)
        self.linear: MVLinear | None = None
        if first_order:
            bias = constant_blades(algebra, group)
            self.linear = MVLinear(algebra, c_in, c_out, bias, group)
        grades = range(algebra.n_grades)
        self._paths_by_grade = tuple(
            [i for i, path in enumerate(self.paths) if path[1] == k] for k in grades
        )
        self._tables = tuple(path_table(algebra, k) for k in grades)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the path weights with variance 1 / (c_in grades), and reset the sublayers."""
        nn.init.normal_(self.weight, std=1 / math.sqrt(self.c_in * self.algebra.n_grades))
        for layer in (self.right, self.norm, self.linear):
            if layer is not None:
                layer.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        check_field(x, self.algebra, self.c_in, self.weight)
        planes = to_planes(x)
        field = planes.movedim(2, -1)  # for the sublayers, in the memory order they like
        right = self.norm(self.right(field)).movedim(-1, 2)
        y = weighted_product(planes, right, self.weight, self._paths_by_grade, self._tables)
        if self.linear is not None:
            y = (y + self.linear(field).movedim(-1, 2)) / math.sqrt(2)
        return from_planes(y, like=x)

    def extra_repr(self) -> str:
        return f"{self.algebra}, {self.c_in}, {self.c_out}, paths={len(self.paths)}"


@cache
def path_table(algebra: CliffordAlgebra, grade: int) -> BilinearTable:
    """The geometric product into one grade, with an output slot for each (path, blade)."""
    grades, n, size = algebra.grades, algebra.n_blades, algebra.grade_sizes[grade]
    first = algebra.grade_slice(grade).start
    paths = [path for path in algebra.paths if path[1] == grade]
    terms = [
        (a, b, paths.index((grades[a], grade, grades[b])) * size + c - first, sign)
        for a, b, c, sign in product_terms(algebra.metric, algebra.symmetric)
        if grades[c] == grade
    ]
    return BilinearTable(terms, (n, n, len(paths) * size), recipe=(path_table, (algebra, grade)))
