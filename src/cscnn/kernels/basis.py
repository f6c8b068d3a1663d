"""All O(p, q)-steerable kernels in closed form, as a table of monomials.

For every signature the steerable kernels between multivectors are exactly

    K(v) = sum_k  α_k P_k  +  β_k v∧(v⌟P_k)  +  γ_k v∧P_k  +  δ_k v⌟P_k

with P_k the projection on grade k and α, β, γ, δ free functions of the orbit of v: 4d of them. (On
an orbit K is determined by one matrix that commutes with the stabiliser of v; by Schur's lemma
there are 4d of those.) Every entry of K(v) is a sum of products "radial function × monomial in v of
degree ≤ 2", so a kernel is assembled by one sparse bilinear map of radial values and monomials.

For SO(p, q) composing with the pseudoscalar doubles the basis.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations_with_replacement

import torch
from torch import Tensor

from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.bilinear import BilinearTable, bilinear
from cscnn.algebra.blades import Term, bit_mask, product_sign

#: Kinds of basis kernels: projection, v∧(v⌟P), v∧P, v⌟P.
KINDS = ("project", "stretch", "wedge", "contract")


class SteerableBasis:
    """Basis kernels of one signature and group, shared by all channel pairs.

    Args:
        algebra: the Clifford algebra.
        special: include the compositions with the pseudoscalar (SO instead of O).
        kinds: which of `KINDS` to include; all four are needed for completeness.

    Attributes:
        elements: (kind, grade it acts on, composed with the pseudoscalar) for each basis kernel.
        output_grades: the grade each one maps to.
        at_origin: whether each one survives at v = 0.
    """

    def __init__(
        self,
        algebra: CliffordAlgebra,
        special: bool = False,
        kinds: tuple[str, ...] = KINDS,
    ):
        self.algebra = algebra
        d = algebra.dim
        grades = {
            "project": range(d + 1),
            "stretch": range(1, d),
            "wedge": range(d),
            "contract": range(1, d + 1),
        }
        change = {"project": 0, "stretch": 0, "wedge": 1, "contract": -1}
        by_grade = [(kind, k) for kind in kinds for k in grades[kind]]
        self.elements: tuple[tuple[str, int, bool], ...] = tuple(
            (*e, dual) for dual in (False, True)[: 1 + special] for e in by_grade
        )
        self.output_grades: tuple[int, ...] = tuple(
            d - (k + change[kind]) if dual else k + change[kind] for kind, k, dual in self.elements
        )
        self.at_origin: tuple[bool, ...] = tuple(kind == "project" for kind, _, _ in self.elements)
        self._table = _assembly_table(algebra.metric, self.elements)

    def __len__(self) -> int:
        return len(self.elements)

    def terms(self) -> list[list[tuple[int, int, float]]]:
        """For each entry (C, B) of K, in C order: its terms (basis kernel, monomial, factor)."""
        return [[(j, m, sign) for j, m, _, sign in row] for row in self._table.rows[0, 1, 2]]

    def assemble(self, coefficients: Tensor, points: Tensor) -> Tensor:
        """K(v) = sum_j coefficients[j] E_j(v).

        Args:
            coefficients: (c_out, c_in, elements, N).
            points: (N, dim).

        Returns:
            (c_out, blades, c_in, blades, N)
        """
        kernel = bilinear(coefficients.movedim(2, -1), monomials(points), self._table)
        return kernel.permute(0, 3, 1, 4, 2)


def monomials(points: Tensor) -> Tensor:
    """1, v_a, v_a v_b (a ≤ b) for points (N, d) -> (N, 1 + d + d(d+1)/2)."""
    first, second = torch.triu_indices(points.shape[1], points.shape[1], device=points.device)
    ones = torch.ones_like(points[:, :1])
    return torch.cat([ones, points, points[:, first] * points[:, second]], -1)


@cache
def _assembly_table(
    metric: tuple[int, ...], elements: tuple[tuple[str, int, bool], ...]
) -> BilinearTable:
    """Terms (element, monomial, entry of K, sign); entry (C, B) has index C n + B."""
    algebra = CliffordAlgebra(metric)
    d, n = algebra.dim, algebra.n_blades
    masks = [bit_mask(axes) for axes in algebra.blades]
    index = {mask: i for i, mask in enumerate(masks)}
    quadratic = {
        pair: 1 + d + i for i, pair in enumerate(combinations_with_replacement(range(d), 2))
    }

    def wedge(axis: int, blade: int) -> tuple[int, int] | None:
        bit = 1 << axis
        return None if blade & bit else (blade ^ bit, product_sign(metric, bit, blade))

    def contract(axis: int, blade: int) -> tuple[int, int] | None:
        bit = 1 << axis
        return (blade ^ bit, product_sign(metric, bit, blade)) if blade & bit else None

    terms: list[Term] = []
    for j, (kind, k, dual) in enumerate(elements):
        for column in (mask for mask in masks if mask.bit_count() == k):
            images: list[tuple[int, int, int]] = []  # (output blade, monomial, sign)
            if kind == "project":
                images = [(column, 0, 1)]
            elif kind in ("wedge", "contract"):
                step = wedge if kind == "wedge" else contract
                for axis in range(d):
                    if (image := step(axis, column)) is not None:
                        images.append((image[0], 1 + axis, image[1]))
            else:
                for a in range(d):
                    if (lowered := contract(a, column)) is None:
                        continue
                    for b in range(d):
                        if (raised := wedge(b, lowered[0])) is not None:
                            pair = (min(a, b), max(a, b))
                            images.append((raised[0], quadratic[pair], lowered[1] * raised[1]))
            for blade, monomial, sign in images:
                if dual:
                    sign *= product_sign(metric, masks[-1], blade)
                    blade ^= masks[-1]
                terms.append((j, monomial, index[blade] * n + index[column], sign))
    sizes = (len(elements), 1 + d + len(quadratic), n * n)
    return BilinearTable(terms, sizes, recipe=(_assembly_table, (metric, elements)), matrix=n)
