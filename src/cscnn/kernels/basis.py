"""All O(p, q)-steerable kernels in closed form, as a table of monomials.

For every signature the steerable kernels between multivectors are exactly

    K(v) = sum_k  α_k P_k  +  β_k v∧(v⌟P_k)  +  γ_k v∧P_k  +  δ_k v⌟P_k

with P_k the projection on grade k and α, β, γ, δ free functions of the orbit of v: 4d of them. (On
an orbit K is determined by one matrix that commutes with the stabiliser of v; by Schur's lemma
there are 4d of those.) Every entry of K(v) is a sum of products "radial function × monomial in v of
degree ≤ 2", so a kernel is assembled by one sparse bilinear map of radial values and monomials.

A basis kernel is a word of steps, each linear in v. With symmetric traceless tensors two steps have
more to do: v⌟T = T(v) is a vector, and ``make`` takes a vector a to the tensor (v⊙a)_0. There are
4d + 11 words then (18 in two dimensions), with monomials of degree ≤ 4.

For SO(p, q) composing with the pseudoscalar I doubles the basis, but for maps of tensors to
tensors: I does not act on these. In two and three dimensions there is a bivector b(v), I or v I,
whose rotation makes two more.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations_with_replacement

import torch
from torch import Tensor

from cscnn._util.torch_private import constant_for_compilers
from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.bilinear import BilinearTable, bilinear
from cscnn.algebra.blades import Term, bit_mask, product_sign
from cscnn.algebra.constants import constant
from cscnn.algebra.tables import product_terms

#: Kinds of basis kernels: projection, v∧(v⌟P), v∧P, v⌟P.
KINDS = ("project", "stretch", "wedge", "contract")
#: Those that only tensors have, named by their steps.
TENSOR_KINDS = (
    "contract contract", "contract contract wedge", "make", "wedge make", "contract wedge make",
    "contract make", "contract contract wedge make", "rotate", "contract rotate make",
    "contract contract wedge make rotate",
)  # fmt: skip
#: Those that exist for SO(p, q) only.
ROTATIONS = tuple(kind for kind in TENSOR_KINDS if "rotate" in kind)

#: A kernel on a grid is one matrix product with a table of at most this many entries, if that takes
#: at most this many multiplications. Else basis kernels one by one cost less.
LARGEST_TABLE = 1 << 17
MOST_PRODUCTS = 1 << 24

#: (basis kernel's kind, grade it acts on, composed with the pseudoscalar)
Element = tuple[str, int, bool]
Monomial = tuple[int, ...]  #: the axes of its factors, sorted
#: For each component: what a step makes of it, as (component, monomial, factor).
Step = dict[int, list[tuple[int, Monomial, float]]]


def steps_of(kind: str) -> tuple[str, ...]:
    """The steps of a kind, in the order in which they are applied."""
    return tuple({"project": "", "stretch": "contract wedge"}.get(kind, kind).split())


class SteerableBasis:
    """Basis kernels of one signature and group, shared by all channel pairs.

    Args:
        algebra: the Clifford algebra.
        special: include the compositions with the pseudoscalar (SO instead of O).
        kinds: which to include; all that the algebra has are needed for completeness.

    Attributes:
        elements: (kind, grade it acts on, composed with the pseudoscalar) for each basis kernel.
        output_grades: the grade each one maps to.
        degrees: of each one in v; those of degree zero survive at v = 0.
        degree: of the monomials that the table has room for.
    """

    def __init__(
        self,
        algebra: CliffordAlgebra,
        special: bool = False,
        kinds: tuple[str, ...] | None = None,
    ):
        self.algebra = algebra
        if kinds is None:
            kinds = KINDS + (TENSOR_KINDS if algebra.symmetric else ())
        by_grade = [(kind, k) for kind in kinds for k in _source_grades(algebra, kind)]
        self.elements: tuple[Element, ...] = tuple(
            (kind, k, dual)
            for dual in (False, True)[: 1 + special]
            for kind, k in by_grade
            if _exists(algebra, kind, k, dual)
        )
        self.output_grades: tuple[int, ...] = tuple(
            algebra.dim - out if dual and out <= algebra.dim else out
            for (kind, k, dual) in self.elements
            for out in (_output_grade(algebra, kind, k),)
        )
        self.degrees: tuple[int, ...] = tuple(_degree(algebra, e) for e in self.elements)
        self.degree: int = max(2, *self.degrees)
        self._table = _assembly_table(algebra, self.elements, self.degree)

    def __len__(self) -> int:
        return len(self.elements)

    def terms(self) -> list[list[tuple[int, int, float]]]:
        """For each entry (C, B) of K, in C order: its terms (basis kernel, monomial, factor)."""
        return [[(j, m, factor) for j, m, _, factor in row] for row in self._table.rows[0, 1, 2]]

    def monomials(self, points: Tensor) -> Tensor:
        """All monomials at points (N, d): (N, monomials)."""
        return monomials(points, self.degree)

    def assemble(self, coefficients: Tensor, points: Tensor) -> Tensor:
        """K(v) = sum_j coefficients[j] E_j(v).

        Args:
            coefficients: (c_out, c_in, elements, N).
            points: (N, dim).

        Returns:
            (c_out, blades, c_in, blades, N)
        """
        kernel = bilinear(coefficients.movedim(2, -1), self.monomials(points), self._table)
        return kernel.permute(0, 3, 1, 4, 2)

    def table(self, points: Tensor, members: Tensor, pairs: int) -> Tensor | None:
        """Each basis kernel on each orbit alone, for `assemble_by_table`; None if too large.

        Args:
            points: (N, dim).
            members: (orbits, N), see `Orbits`.
            pairs: of channels, for which the table will be used.

        Returns:
            (elements · orbits, blades² · N)
        """
        count = len(self) * len(members)
        entries = count * self.algebra.n_blades**2 * len(points)
        if entries > LARGEST_TABLE or entries * pairs > MOST_PRODUCTS:
            return None
        one_by_one = torch.eye(count, dtype=points.dtype, device=points.device)
        values = one_by_one.unflatten(-1, (len(self), len(members))) @ members
        return self.assemble(values.unsqueeze(1), points).flatten(1)

    def assemble_by_table(self, coefficients: Tensor, table: Tensor) -> Tensor:
        """`assemble` by one matrix product.

        Args:
            coefficients: (..., c_out, c_in, elements, orbits).
            table: from `table`.

        Returns:
            (..., c_out, blades, c_in, blades, N)
        """
        blades = self.algebra.n_blades
        kernels = coefficients.flatten(-2) @ table
        kernels = kernels.unflatten(-1, (blades, blades, -1)).transpose(-4, -3)
        return kernels.contiguous()  # here, where the gradient undoes it without another copy


@cache
def monomials_up_to(dim: int, degree: int) -> tuple[Monomial, ...]:
    """1, v_a, v_a v_b (a ≤ b), and so on, each by the axes of its factors."""
    degrees = range(degree + 1)
    return tuple(m for k in degrees for m in combinations_with_replacement(range(dim), k))


def monomials(points: Tensor, degree: int) -> Tensor:
    """1, v_a, v_a v_b (a ≤ b), and so on, for points (N, d) -> (N, monomials)."""
    levels = [torch.ones_like(points[:, :1]), points]
    for pairs in _factors(points.shape[1], degree):
        first, last = (constant(axes, torch.int64, points.device) for axes in pairs)
        levels.append(levels[-1].index_select(1, first) * points.index_select(1, last))
    return torch.cat(levels, -1)


@constant_for_compilers
@cache
def _factors(dim: int, degree: int) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
    """For each degree from 2: which monomial of the one before, times which component."""
    result = []
    for k in range(2, degree + 1):
        before = list(combinations_with_replacement(range(dim), k - 1))
        rows = list(combinations_with_replacement(range(dim), k))
        first = tuple(before.index(row[:-1]) for row in rows)
        result.append((first, tuple(row[-1] for row in rows)))
    return tuple(result)


def _source_grades(algebra: CliffordAlgebra, kind: str) -> list[int]:
    """Grades that a kind acts on; the last is that of tensors."""
    d, top = algebra.dim, algebra.dim + 1
    grades = {
        "project": [*range(d + 1), top],
        "stretch": [*range(1, d), top],
        "wedge": [*range(d)],
        "contract": [*range(1, d + 1), top],
        "make": [1],
        "wedge make": [0],
        "contract wedge make": [1],
        # In the plane v⊙T(v) is η(v, v) T / 2; in space b(v) does not rotate v.
        "contract make": [2, top] if d > 2 else [2],
        "contract rotate make": [top] if d == 3 else [],
        "contract contract wedge make rotate": [top] if d == 2 else [],
    }
    return [k for k in grades.get(kind, [top]) if k < algebra.n_grades]


def _output_grade(algebra: CliffordAlgebra, kind: str, grade: int) -> int:
    """Where a kind leads from a grade, without the pseudoscalar."""
    top = algebra.dim + 1
    for step in steps_of(kind):
        if step == "make":
            grade = top
        elif step == "wedge":
            grade += 1
        elif step == "contract":
            grade = 1 if grade == top else grade - 1
    return grade


def _exists(algebra: CliffordAlgebra, kind: str, grade: int, dual: bool) -> bool:
    """Whether a kind is composed with the pseudoscalar, or not."""
    if kind in ROTATIONS:
        return dual and algebra.dim <= 3
    top = algebra.dim + 1
    return not (dual and grade == top == _output_grade(algebra, kind, grade))


@cache
def _steps(algebra: CliffordAlgebra) -> dict[str, Step]:
    """What each step does to components: products with v = sum_a v_a e_a or with b(v)."""
    metric, symmetric = algebra.metric, algebra.symmetric
    products = {"wedge": "wedge", "contract": "left_contraction", "make": "symmetric"}
    steps: dict[str, Step] = {}
    for step, product in products.items():
        table: Step = {}
        for a, b, c, factor in product_terms(metric, symmetric, product):
            if algebra.grades[a] == 1:
                table.setdefault(b, []).append((c, (a - 1,), factor))
        steps[step] = table
    bivector = [
        (place, monomial, factor)
        for place, monomial, factor in _times_pseudoscalar(algebra)
        if algebra.grades[place] == 2
    ]
    rotate: Step = {}
    for place, monomial, factor in bivector:
        for a, b, c, sign in product_terms(metric, symmetric):
            if a == place and algebra.grades[b] == algebra.grades[c] != 2:
                rotate.setdefault(b, []).append((c, monomial, factor * sign))
    return {**steps, "rotate": rotate}


def _times_pseudoscalar(algebra: CliffordAlgebra) -> list[tuple[int, Monomial, float]]:
    """Components of I + I v: (component, monomial, factor)."""
    masks = [bit_mask(axes) for axes in algebra.blades]
    whole = masks[-1]
    result: list[tuple[int, Monomial, float]] = [(len(masks) - 1, (), 1)]
    for axis in range(algebra.dim):
        sign = product_sign(algebra.metric, whole, 1 << axis)
        result.append((masks.index(whole ^ (1 << axis)), (axis,), sign))
    return result


def _images(
    algebra: CliffordAlgebra, element: Element
) -> list[tuple[int, list[tuple[int, Monomial, float]]]]:
    """For each component that a basis kernel acts on: its image, (component, monomial, factor)."""
    kind, grade, dual = element
    masks = [bit_mask(axes) for axes in algebra.blades]
    dual = dual and kind not in ROTATIONS
    first = dual and _output_grade(algebra, kind, grade) > algebra.dim

    def times_i(state: dict[tuple[int, Monomial], float]) -> dict[tuple[int, Monomial], float]:
        return {
            (masks.index(masks[blade] ^ masks[-1]), monomial): value
            * product_sign(algebra.metric, masks[-1], masks[blade])
            for (blade, monomial), value in state.items()
        }

    images = []
    for column in range(algebra.n_blades):
        if algebra.grades[column] != (algebra.dim - grade if first else grade):
            continue
        state: dict[tuple[int, Monomial], float] = {(column, ()): 1}
        if first:
            state = times_i(state)
        for step in steps_of(kind):
            state = _apply(_steps(algebra)[step], state)
        if dual and not first:
            state = times_i(state)
        images.append((column, [(*place, value) for place, value in state.items()]))
    return images


def _degree(algebra: CliffordAlgebra, element: Element) -> int:
    return max(len(monomial) for _, image in _images(algebra, element) for _, monomial, _ in image)


def _apply(
    step: Step, state: dict[tuple[int, Monomial], float]
) -> dict[tuple[int, Monomial], float]:
    result: dict[tuple[int, Monomial], float] = {}
    for (component, monomial), value in state.items():
        for target, factors, factor in step.get(component, ()):
            key = (target, tuple(sorted(monomial + factors)))
            result[key] = result.get(key, 0) + value * factor
    return {key: value for key, value in result.items() if abs(value) > 1e-12}


@cache
def _assembly_table(
    algebra: CliffordAlgebra, elements: tuple[Element, ...], degree: int
) -> BilinearTable:
    """Terms (element, monomial, entry of K, factor); entry (C, B) has index C n + B."""
    n = algebra.n_blades
    index = {monomial: i for i, monomial in enumerate(monomials_up_to(algebra.dim, degree))}
    terms: list[Term] = [
        (j, index[monomial], component * n + column, factor)
        for j, element in enumerate(elements)
        for column, image in _images(algebra, element)
        for component, monomial, factor in image
    ]
    sizes = (len(elements), len(index), n * n)
    recipe = (_assembly_table, (algebra, elements, degree))
    return BilinearTable(terms, sizes, recipe=recipe, matrix=n)
