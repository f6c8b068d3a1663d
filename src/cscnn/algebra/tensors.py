"""Symmetric traceless tensors beside multivectors: their basis, and products with blades.

A symmetric tensor T^ij is a trace, which is a scalar, and a traceless part S, irreducible under
O(p, q). The basis of S is orthonormal for <T, U> = T^ij U_ij: first the diagonal tensors, then
(e_i⊗e_j + e_j⊗e_i)/√2 for i < j. All O(p, q)-equivariant bilinear maps that involve S are here:

- D_T on Λ^k, the derivation with D_T a = T(a) = T^ij a_j on vectors, and its adjoint
  Λ^k × Λ^k -> S, which on vectors is the traceless part of (a⊗b + b⊗a)/2;
- half the commutator of matrices, Λ² × S -> S, and its adjoint S × S -> Λ²;
- half the anticommutator S × S -> S, the form S × S -> Λ⁰, and multiplication by scalars.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import pad

from cscnn._util.checks import check_type
from cscnn._util.torch_private import tracing
from cscnn.algebra.blades import Term, bit_mask, ordered_blades, product_sign
from cscnn.algebra.constants import constant
from cscnn.algebra.group import check_matrix

Array = npt.NDArray[np.float64]

#: Coefficients below this are rounding errors of zeros.
ZERO = 1e-12


def check(symmetric: bool, metric: tuple[int, ...]) -> bool:
    """``symmetric`` if there are such tensors, else an error."""
    check_type("symmetric", symmetric, bool)
    if symmetric and len(metric) == 1:
        raise ValueError(
            f"on one axis a symmetric tensor is its trace, a scalar: metric {metric} has no "
            "symmetric=True"
        )
    return symmetric


def size_of(dim: int) -> int:
    """Number of components of a symmetric traceless tensor."""
    return dim * (dim + 1) // 2 - 1


def size_hint(grade: int | str, dim: int) -> str:
    """For messages about components of a wrong number: what a tensor of this grade has."""
    if isinstance(grade, str):
        return f"; a symmetric tensor has all {dim**2} numbers of its matrix, row by row"
    return "; a matrix with its trace has grade 'symmetric'" if grade == dim + 1 else ""


@cache
def basis(metric: tuple[int, ...]) -> Array:
    """Matrices S_a^ij of the basis, (components, d, d)."""
    d = len(metric)
    tensors = []
    for k in range(1, d):  # orthogonal to the metric and to each other
        diagonal = np.zeros(d)
        diagonal[:k] = metric[:k]
        diagonal[k] = -k * metric[k]
        tensors.append(np.diag(diagonal / np.sqrt(k * (k + 1))))
    for i, j in combinations(range(d), 2):
        tensor = np.zeros((d, d))
        tensor[i, j] = tensor[j, i] = np.sqrt(0.5)
        tensors.append(tensor)
    return np.stack(tensors) if tensors else np.zeros((0, d, d))


def names(dim: int) -> tuple[str, ...]:
    """Names of the components: diagonal ones by number, the others by their axes."""
    pairs = combinations(range(1, dim + 1), 2)
    return (*(f"s{k}" for k in range(1, dim)), *(f"s{i}{j}" for i, j in pairs))


@cache
def form(metric: tuple[int, ...]) -> tuple[int, ...]:
    """<S_a, S_a>, +1 or -1, for each tensor of the basis."""
    pairs = combinations(metric, 2)
    return ((1,) * (len(metric) - 1)) + tuple(a * b for a, b in pairs)


@cache
def components(metric: tuple[int, ...]) -> Array:
    """Takes a matrix T^ij to the components of its traceless part, (components, d, d)."""
    signs = np.array(metric, dtype=float)
    lowered = basis(metric) * signs[:, None] * signs
    return lowered * np.array(form(metric), dtype=float)[:, None, None]


@cache
def product_terms(metric: tuple[int, ...], product: str) -> tuple[Term, ...]:
    """Terms that involve S, of a product of `cscnn.algebra.tables.PRODUCTS`.

    ``"wedge"`` and the contractions have the forms, and with vectors T(a); ``"symmetric"`` has the
    maps of blades to S; ``"geometric"`` has all maps.
    """
    maps = _maps(metric)
    chosen = {
        "geometric": tuple(maps),
        "wedge": ("1 S", "S 1"),
        "left_contraction": ("1 S", "v S", "form"),
        "right_contraction": ("S 1", "S v", "form"),
        "symmetric": ("to S",),
    }[product]
    return tuple(term for name in chosen for term in maps[name])


@cache
def _maps(metric: tuple[int, ...]) -> dict[str, tuple[Term, ...]]:
    """All bilinear maps by their names, as terms (left, right, out, coefficient)."""
    d = len(metric)
    n, size = 2**d, size_of(d)
    if size == 0:
        return dict.fromkeys(("1 S", "S 1", "v S", "S v", "form", "to S", "other"), ())
    lower, tensors, signs = np.diag(np.array(metric, dtype=float)), basis(metric), form(metric)
    vectors, bivectors = range(1, d + 1), range(1 + d, 1 + d + d * (d - 1) // 2)
    derivations = [_derivation(metric, tensor) for tensor in tensors]
    blade_form = _blade_form(metric)

    on_vectors: list[Term] = []
    on_others: list[Term] = []
    to_s: list[Term] = []
    for s, derivation in enumerate(derivations):
        for c, b in zip(*np.nonzero(np.abs(derivation) > ZERO), strict=True):
            value = float(derivation[c, b])
            (on_vectors if b in vectors else on_others).append((n + s, int(b), int(c), value))
            # <X ⊙ Y, T> = <X, D_T Y>
            to_s.append((int(c), int(b), n + s, value * blade_form[c] * signs[s]))

    def matrix_product(a: Array, b: Array) -> Array:
        product: Array = a @ lower @ b
        return product

    units = _bivector_matrices(d)
    others = on_others + [(b, s, c, v) for s, b, c, v in on_others]
    for s, tensor in enumerate(tensors):
        for b, unit in zip(bivectors, units, strict=True):
            commutator = (matrix_product(unit, tensor) - matrix_product(tensor, unit)) / 2
            for out, value in _in_basis(metric, commutator):
                others += [(b, n + s, out, value), (n + s, b, out, -value)]
        for t, other in enumerate(tensors):
            product = matrix_product(tensor, other)
            even, odd = (product + product.T) / 2, (product - product.T) / 2
            others += [(n + s, n + t, out, value) for out, value in _in_basis(metric, even)]
            for b, unit in zip(bivectors, units, strict=True):
                value = float((odd * unit).sum() / 2)
                if abs(value) > ZERO:
                    others.append((n + s, n + t, b, value))
    return {
        "1 S": tuple((0, n + s, n + s, 1) for s in range(size)),
        "S 1": tuple((n + s, 0, n + s, 1) for s in range(size)),
        "v S": tuple((b, s, c, v) for s, b, c, v in on_vectors),
        "S v": tuple(on_vectors),
        "form": tuple((n + s, n + s, 0, sign) for s, sign in enumerate(signs)),
        "to S": tuple(to_s),
        "other": tuple(others),
    }


def _derivation(metric: tuple[int, ...], tensor: Array) -> Array:
    """D_T on multivectors, (blades, blades): sum_ij T^ij e_i∧(e_j⌟X)."""
    masks = [bit_mask(axes) for axes in ordered_blades(len(metric))]
    index = {mask: i for i, mask in enumerate(masks)}
    result = np.zeros((len(masks), len(masks)))
    for i, j in zip(*np.nonzero(tensor), strict=True):
        for column, mask in enumerate(masks):
            rest = mask ^ (1 << int(j))
            if rest < mask and not rest >> int(i) & 1:
                sign = product_sign(metric, 1 << int(j), mask)
                sign *= product_sign(metric, 1 << int(i), rest)
                result[index[rest | 1 << int(i)], column] += sign * tensor[i, j]
    return result


def _blade_form(metric: tuple[int, ...]) -> list[int]:
    result = []
    for axes in ordered_blades(len(metric)):
        square = 1
        for axis in axes:
            square *= metric[axis]
        result.append(square)
    return result


def _bivector_matrices(d: int) -> list[Array]:
    """e_i⊗e_j - e_j⊗e_i for each bivector."""
    units = []
    for i, j in combinations(range(d), 2):
        unit = np.zeros((d, d))
        unit[i, j], unit[j, i] = 1, -1
        units.append(unit)
    return units


def _in_basis(metric: tuple[int, ...], matrix: Array) -> list[tuple[int, float]]:
    """Numbers and values of the components of the traceless part that are not zero."""
    values = np.tensordot(components(metric), matrix, 2)
    n = 2 ** len(metric)
    return [(n + s, float(v)) for s, v in enumerate(values) if abs(v) > ZERO]


# --- on torch tensors -----------------------------------------------------------------------------


def from_matrix(matrix: Tensor, metric: tuple[int, ...]) -> Tensor:
    """See `CliffordAlgebra.embed`: matrices T^ij (..., d²) -> (..., blades and tensors)."""
    d = len(metric)
    check_symmetric(matrix, d)
    trace = matrix.new_tensor(np.diag(np.array(metric)).ravel() / np.sqrt(d))
    traceless = constant(_rows(metric, "components"), matrix.dtype, matrix.device)
    scalar = (matrix @ trace).unsqueeze(-1)
    return torch.cat([pad(scalar, (0, 2**d - 1)), matrix @ traceless.T], -1)


def to_matrix(x: Tensor, metric: tuple[int, ...]) -> Tensor:
    """Inverse of `from_matrix`, of scalar and tensor: (..., blades and tensors) -> (..., d²)."""
    d = len(metric)
    unit = x.new_tensor(np.diag(np.array(metric)).ravel() / np.sqrt(d))
    return x[..., :1] * unit + x[..., 2**d :] @ constant(_rows(metric, "basis"), x.dtype, x.device)


def check_symmetric(matrix: Tensor, dim: int) -> None:
    """Raise unless matrices (..., d²) are symmetric, up to rounding of the largest."""
    if tracing():
        return
    square = matrix.detach().unflatten(-1, (dim, dim))
    bad = (square - square.mT).abs()
    size = square.abs().amax((-1, -2), keepdim=True)
    bad = bad > 100 * torch.finfo(matrix.dtype).eps * torch.maximum(size, size.new_tensor(1e-30))
    if bad.any():
        worst = square[bad.any(-1).any(-1)][0]
        raise ValueError(
            f"a symmetric tensor must equal its transpose, got {worst.tolist()}; for the symmetric "
            "part use (T + T.mT) / 2, and a bivector for the other"
        )


def action_on_matrices(metric: tuple[int, ...], g: Tensor) -> Tensor:
    """g⊗g, which takes T to g T gᵀ: (..., d, d) -> (..., d², d²)."""
    check_matrix(metric, g)
    return torch.einsum("...ik,...jl->...ijkl", g, g).flatten(-2).flatten(-3, -2)


def append_action(metric: tuple[int, ...], g: Tensor, rho: Tensor) -> Tensor:
    """ρ(g) of multivectors (..., n, n) with the block of tensors behind."""
    rows, columns = (constant(_rows(metric, k), g.dtype, g.device) for k in ("components", "basis"))
    block = rows @ action_on_matrices(metric, g) @ columns.T
    return torch.cat([pad(rho, (0, len(rows))), pad(block, (rho.shape[-1], 0))], -2)


@cache
def _rows(metric: tuple[int, ...], what: str) -> tuple[tuple[float, ...], ...]:
    """`components` or `basis` with matrices as rows, as `constant` takes them."""
    array = components(metric) if what == "components" else basis(metric)
    return tuple(map(tuple, array.reshape(len(array), -1).tolist()))
