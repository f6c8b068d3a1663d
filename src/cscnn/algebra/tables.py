"""Tables of an algebra: what its products, duals and involutions are made of, by metric."""

from __future__ import annotations

from functools import cache

from cscnn.algebra.bilinear import BilinearTable
from cscnn.algebra.blades import bit_mask, ordered_blades, product_sign, product_terms

#: Parts of the geometric product.
PRODUCTS = ("geometric", "wedge", "left_contraction", "right_contraction")


@cache
def grades_of(dim: int) -> tuple[int, ...]:
    """The grade of each blade."""
    return tuple(len(axes) for axes in ordered_blades(dim))


@cache
def product_table(metric: tuple[int, ...], product: str) -> BilinearTable:
    """Terms of a product of `PRODUCTS`."""
    grade = grades_of(len(metric))
    terms = product_terms(metric)
    if product == "wedge":
        terms = tuple(t for t in terms if grade[t[2]] == grade[t[0]] + grade[t[1]])
    elif product == "left_contraction":
        terms = tuple(t for t in terms if grade[t[2]] == grade[t[1]] - grade[t[0]])
    elif product == "right_contraction":
        terms = tuple(t for t in terms if grade[t[2]] == grade[t[0]] - grade[t[1]])
    return BilinearTable(terms, (len(grade),) * 3, recipe=(product_table, (metric, product)))


@cache
def pseudoscalar_product(metric: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """For each blade of x I: the blade of x it comes from, and the sign."""
    masks = [bit_mask(axes) for axes in ordered_blades(len(metric))]
    sources = [mask ^ masks[-1] for mask in masks]
    signs = tuple(product_sign(metric, source, masks[-1]) for source in sources)
    return tuple(masks.index(source) for source in sources), signs


@cache
def sign_vectors(metric: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Signs of each blade: of involutions, and of the invariant form."""
    blades = ordered_blades(len(metric))
    reverse = tuple((-1) ** (len(axes) * (len(axes) - 1) // 2) for axes in blades)
    involution = tuple((-1) ** len(axes) for axes in blades)
    form = []
    for axes in blades:
        product = 1
        for axis in axes:
            product *= metric[axis]
        form.append(product)
    return {
        "reverse": reverse,
        "grade_involution": involution,
        "clifford_conjugation": tuple(a * b for a, b in zip(reverse, involution, strict=True)),
        "form": tuple(form),
    }
