"""Tables of an algebra: what its products, duals and involutions are made of, by metric.

With ``symmetric`` they go on with symmetric traceless tensors, see `cscnn.algebra.tensors`: one
more grade, which is even.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations

from cscnn.algebra import tensors
from cscnn.algebra.bilinear import BilinearTable
from cscnn.algebra.blades import (
    Term,
    admissible_paths,
    bit_mask,
    ordered_blades,
    product_sign,
)
from cscnn.algebra.blades import product_terms as blade_terms

#: Parts of the geometric product, and the product of blades into symmetric tensors.
PRODUCTS = ("geometric", "wedge", "left_contraction", "right_contraction", "symmetric")


@cache
def grades_of(dim: int, symmetric: bool = False) -> tuple[int, ...]:
    """The grade of each component."""
    blades = tuple(len(axes) for axes in ordered_blades(dim))
    return blades + (dim + 1,) * (tensors.size_of(dim) if symmetric else 0)


@cache
def product_terms(
    metric: tuple[int, ...], symmetric: bool = False, product: str = "geometric"
) -> tuple[Term, ...]:
    """Terms (left, right, out, coefficient) of a product of `PRODUCTS`."""
    grade = grades_of(len(metric))
    terms = blade_terms(metric)
    if product == "wedge":
        terms = tuple(t for t in terms if grade[t[2]] == grade[t[0]] + grade[t[1]])
    elif product == "left_contraction":
        terms = tuple(t for t in terms if grade[t[2]] == grade[t[1]] - grade[t[0]])
    elif product == "right_contraction":
        terms = tuple(t for t in terms if grade[t[2]] == grade[t[0]] - grade[t[1]])
    elif product == "symmetric":
        terms = ()
    return terms + (tensors.product_terms(metric, product) if symmetric else ())


@cache
def product_table(metric: tuple[int, ...], symmetric: bool, product: str) -> BilinearTable:
    """A product of `PRODUCTS`, ready to be applied."""
    sizes = (len(grades_of(len(metric), symmetric)),) * 3
    terms = product_terms(metric, symmetric, product)
    return BilinearTable(terms, sizes, recipe=(product_table, (metric, symmetric, product)))


@cache
def paths(metric: tuple[int, ...], symmetric: bool = False) -> tuple[tuple[int, int, int], ...]:
    """Grade triples (left, out, right) that the geometric product reaches, in order."""
    grade = grades_of(len(metric), symmetric)
    terms = tensors.product_terms(metric, "geometric") if symmetric else ()
    with_tensors = {(grade[a], grade[c], grade[b]) for a, b, c, _ in terms}
    return tuple(sorted({*admissible_paths(metric), *with_tensors}))


def runs(grade_sizes: tuple[int, ...], dim: int) -> tuple[int, ...]:
    """Sizes of the grades as even, odd, even, ... ones: tensors are even, whatever their number."""
    blades, rest = grade_sizes[: dim + 1], grade_sizes[dim + 1 :]
    return blades + (0,) * (len(rest) * (1 - dim % 2)) + rest


@cache
def reflection_signs(dim: int, symmetric: bool, axis: int) -> tuple[int, ...]:
    """Of each component under the reflection that negates an axis."""
    blades = tuple(-1 if axis in axes else 1 for axes in ordered_blades(dim))
    if not symmetric:
        return blades
    pairs = combinations(range(dim), 2)
    return blades + (1,) * (dim - 1) + tuple(-1 if axis in pair else 1 for pair in pairs)


@cache
def pseudoscalar_signs(metric: tuple[int, ...], symmetric: bool = False) -> tuple[int, ...]:
    """The signs of x I, whose blades are those of x from the last to the first: the complements.

    Of tensors likewise in two dimensions, where I turns them; in others x I has none.
    """
    masks = [bit_mask(axes) for axes in ordered_blades(len(metric))]
    signs = tuple(product_sign(metric, mask, masks[-1]) for mask in reversed(masks))
    if not symmetric:
        return signs
    n, size = len(masks), tensors.size_of(len(metric))
    terms = tensors.product_terms(metric, "geometric")
    turned = {c: round(v) for a, b, c, v in terms if a >= n and b == n - 1}
    return signs + tuple(turned.get(n + s, 0) for s in range(size))


@cache
def sign_vectors(metric: tuple[int, ...], symmetric: bool = False) -> dict[str, tuple[int, ...]]:
    """Signs of each component: of involutions, of x I, and of the invariant form."""
    blades = ordered_blades(len(metric))
    reverse = tuple((-1) ** (len(axes) * (len(axes) - 1) // 2) for axes in blades)
    involution = tuple((-1) ** len(axes) for axes in blades)
    form = []
    for axes in blades:
        product = 1
        for axis in axes:
            product *= metric[axis]
        form.append(product)
    conjugation = tuple(a * b for a, b in zip(reverse, involution, strict=True))
    even = (1,) * (tensors.size_of(len(metric)) if symmetric else 0)
    return {
        "reverse": reverse + even,
        "grade_involution": involution + even,
        "clifford_conjugation": conjugation + even,
        "undual": pseudoscalar_signs(metric, symmetric),
        "form": tuple(form) + (tensors.form(metric) if symmetric else ()),
    }
