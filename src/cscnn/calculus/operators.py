"""The vector derivative ∇ and its parts, for multivector fields of every signature.

    ∇ = sum_i η_i e_i ∂_i,    ∇f = ∇∧f + ∇⌟f,    ∇∇ = □ = sum_i η_i ∂_i²

A field is (..., *grid, blades), for instance (batch, channels, *grid, blades); axis i of the grid
carries the basis vector e_i. With [(t, g).f](x) = ρ(g) f(g^-1 (x - t)) every operator here commutes
with E(p, q): exactly with the symmetries of the grid, and with rotations and boosts up to the error
of the scheme.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import torch
from torch import Tensor

from cscnn._util.torch_private import constant_for_compilers
from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.checks import check_dtype, same_device
from cscnn.algebra.clifford import check_algebra
from cscnn.algebra.constants import constant
from cscnn.algebra.tables import product_terms
from cscnn.calculus.schemes import Differences, Scheme, Spectral
from cscnn.calculus.walls import mirror
from cscnn.conv.options import per_axis
from cscnn.conv.padding import WALLS

Schemes = Scheme | Sequence[Scheme]  #: one for all axes of the grid, or one per axis


def vector_derivative(
    f: Tensor, algebra: CliffordAlgebra, scheme: Schemes = Differences()
) -> Tensor:
    """∇f = ∇∧f + ∇⌟f. Maxwell's equations are ∇F = J for the bivector F of spacetime.

    Args:
        f: (..., *grid, blades).
        algebra: the Clifford algebra, one axis of the grid for each of its dimensions.
        scheme: `Differences` or `Spectral`, one for all axes or one per axis.

    Returns:
        (..., *grid, blades)

    Example:
        >>> algebra = CliffordAlgebra((1, -1))
        >>> t, x = torch.meshgrid(torch.arange(5.0), torch.arange(5.0), indexing="ij")
        >>> f = algebra.embed((3 * t + 2 * x)[..., None], grade=0)
        >>> vector_derivative(f, algebra)[2, 2]  # ∂_t f e1 - ∂_x f e2
        tensor([ 0.,  3., -2.,  0.])
    """
    return _nabla(f, algebra, scheme, "both")


def exterior_derivative(
    f: Tensor, algebra: CliffordAlgebra, scheme: Schemes = Differences()
) -> Tensor:
    """∇∧f, which raises the grade: `gradient` of scalars, `curl` of vectors. ∇∧(∇∧f) = 0.

    Arguments and shapes are those of `vector_derivative`.
    """
    return _nabla(f, algebra, scheme, "wedge")


def interior_derivative(
    f: Tensor, algebra: CliffordAlgebra, scheme: Schemes = Differences()
) -> Tensor:
    """∇⌟f, which lowers the grade: the `divergence` of vectors. ∇⌟(∇⌟f) = 0.

    Of a traceless tensor T it is the vector ∂_j T^ij. A trace t is the scalar t / √d, on which it
    is zero; it adds the `gradient` of this scalar, divided by √d.

    Arguments and shapes are those of `vector_derivative`.
    """
    return _nabla(f, algebra, scheme, "left_contraction")


def symmetric_derivative(
    f: Tensor, algebra: CliffordAlgebra, scheme: Schemes = Differences()
) -> Tensor:
    """∇⊙f, of a vector field v the traceless part of (∂_i v_j + ∂_j v_i) / 2, its strain rate.

    The trace of that is the `divergence`; as a scalar of the whole tensor, divided by √d. It needs
    an algebra with ``symmetric=True``; arguments and shapes are those of `vector_derivative`.

    Example:
        >>> algebra = CliffordAlgebra((1, 1), symmetric=True)
        >>> x, y = torch.meshgrid(torch.arange(5.0), torch.arange(5.0), indexing="ij")
        >>> shear = algebra.embed(torch.stack([y, 0 * y], -1), grade=1)
        >>> rate = symmetric_derivative(shear, algebra)[2, 2]
        >>> algebra.grade(rate, "symmetric").reshape(2, 2)
        tensor([[0.0000, 0.5000],
                [0.5000, 0.0000]])
    """
    if not check_algebra(algebra).symmetric:
        raise ValueError(f"{algebra} has no tensors: make it with symmetric=True")
    return _nabla(f, algebra, scheme, "symmetric")


gradient = vector_derivative  #: of a scalar field, the vector ∇f
divergence = interior_derivative  #: of vectors the scalar ∇⌟v, of traceless tensors the force ∇⌟T
strain_rate = symmetric_derivative  #: of a velocity, up to its trace
curl = exterior_derivative  #: of a vector field, the bivector ∇∧v; `algebra.dual` of it is ∇×v


def dalembertian(f: Tensor, algebra: CliffordAlgebra, scheme: Schemes = Differences()) -> Tensor:
    """□f = sum_i η_i ∂_i² f, by second derivatives of the scheme.

    For `Spectral` it is ∇(∇f) up to rounding, but for the Nyquist modes of even grids; for
    `Differences`, whose second differences are not first ones twice, up to their error. Arguments
    and shapes are those of `vector_derivative`.
    """
    f, schemes, inside = _extended(f, algebra, scheme)
    total = torch.zeros_like(f)
    for axis, sign in enumerate(algebra.metric):
        total.add_(schemes[axis].partial(f, axis, algebra.dim, 2), alpha=sign)
    return inside(total)


def laplacian(f: Tensor, algebra: CliffordAlgebra, scheme: Schemes = Differences()) -> Tensor:
    """∇²f = sum_i ∂_i² f in Euclidean space, where it is the `dalembertian`."""
    if min(check_algebra(algebra).metric) < 0:
        raise ValueError(
            f"the Laplacian is for Euclidean space, got {algebra}: use dalembertian, □ = Σ η_i ∂_i²"
        )
    return dalembertian(f, algebra, scheme)


def directional_derivative(
    f: Tensor, v: Tensor, algebra: CliffordAlgebra, scheme: Schemes = Differences()
) -> Tensor:
    """(v·∇)f = sum_i v^i ∂_i f, the change of f along v.

    Args:
        f: (..., *grid, blades).
        v: components of a constant vector (dim,), or of a field of vectors, (..., *grid, dim) that
            broadcasts with f; ``algebra.grade(x, 1)`` of a multivector.
        algebra, scheme: as in `vector_derivative`.
    """
    check_dtype(v, "v")
    same_device(f, v, "f", "v")
    if v.dim() == 0 or v.shape[-1] != algebra.dim:
        raise ValueError(
            f"v must have the {algebra.dim} components of a vector of {algebra} on its last axis, "
            f"got shape {tuple(v.shape)}: take algebra.grade(v, 1) of a multivector"
        )
    total = torch.zeros_like(f)
    f, schemes, inside = _extended(f, algebra, scheme)
    for axis, component in enumerate(v.split(1, -1)):
        total = total + component * inside(schemes[axis].partial(f, axis, algebra.dim))
    return total


def partial_derivative(
    f: Tensor,
    axis: int,
    algebra: CliffordAlgebra,
    scheme: Schemes = Differences(),
    order: int = 1,
) -> Tensor:
    """∂_i^order f along axis i of the grid, counted from 0; no operator of E(p, q) by itself."""
    f, schemes, inside = _extended(f, algebra, scheme)
    if not 0 <= axis < algebra.dim:
        raise ValueError(f"axis must be from 0 to {algebra.dim - 1}, got {axis}")
    return inside(schemes[axis].partial(f, axis, algebra.dim, order))


def _nabla(f: Tensor, algebra: CliffordAlgebra, scheme: Schemes, kind: str) -> Tensor:
    """The part of ∇f that `_steps` knows by this name; differentiates what it needs, no more."""
    f, schemes, inside = _extended(f, algebra, scheme)
    total, steps = torch.zeros_like(f), _steps(algebra.metric, algebra.symmetric, kind)
    for axis, (source, target, factors) in enumerate(steps):
        chosen = f.index_select(-1, constant(source, torch.int64, f.device))
        term = schemes[axis].partial(chosen, axis, algebra.dim)
        term = term * constant(factors, f.dtype, f.device)
        if target == tuple(range(algebra.n_blades)):
            total.add_(term)
        else:
            total.index_add_(-1, constant(target, torch.int64, f.device), term)
    return inside(total)


def _extended(
    f: Tensor, algebra: CliffordAlgebra, scheme: Schemes
) -> tuple[Tensor, tuple[Scheme, ...], Callable[[Tensor], Tensor]]:
    """The field with its mirror images at walls, schemes for it, and what takes out the grid."""
    check_field(f, algebra)
    schemes = per_axis("scheme", scheme, algebra.dim)
    boundary = boundaries(schemes)
    walls = [axis for axis, mode in enumerate(boundary) if mode in WALLS]
    if not walls:
        return f, schemes, lambda y: y
    sizes, first = f.shape, f.dim() - 1 - algebra.dim
    periodic = tuple("circular" if mode in WALLS else mode for mode in boundary)

    def inside(y: Tensor) -> Tensor:
        for place in (first + axis for axis in walls):
            y = y.narrow(place, 0, sizes[place])
        return y

    schemes = tuple(_with_boundary(s, periodic) for s in schemes)
    return mirror(f, algebra, boundary), schemes, inside


def _with_boundary(scheme: Scheme, boundary: tuple[str, ...]) -> Scheme:
    if isinstance(scheme, Spectral):
        return replace(scheme, boundary="circular")
    return replace(scheme, boundary=boundary) if isinstance(scheme, Differences) else scheme


def boundaries(schemes: tuple[Scheme, ...]) -> tuple[str, ...]:
    """What is beyond each axis, as its own scheme says."""
    dim = len(schemes)
    told = [per_axis("boundary", getattr(s, "boundary", ""), dim) for s in schemes]
    own = tuple(told[axis][axis] for axis in range(dim))
    for scheme, modes in zip(schemes, told, strict=True):
        if isinstance(scheme, Differences) and scheme.staggered and modes != own:
            raise ValueError(
                "staggered differences average along all axes, so all schemes must have the same "
                f"boundaries: got {modes} and {own}"
            )
    return own


def check_field(f: Tensor, algebra: CliffordAlgebra) -> None:
    """Raise unless f is a field of the algebra, (..., *grid, blades)."""
    check_algebra(algebra).check(f, "f")
    if f.dim() < algebra.dim + 1:
        raise ValueError(
            f"a field of {algebra} has shape (..., {'*, ' * algebra.dim}{algebra.n_blades}) with "
            f"{algebra.dim} axes of the grid, got {tuple(f.shape)}"
        )


@constant_for_compilers
@cache
def _steps(
    metric: tuple[int, ...], symmetric: bool, kind: str
) -> tuple[tuple[tuple[int, ...], tuple[int, ...], tuple[float, ...]], ...]:
    """η_i e_i times a component, for each axis i: components it takes, it makes, factors.

    Args:
        kind: ``"wedge"``, ``"left_contraction"``, ``"symmetric"``, or ``"both"`` of the first two.
    """
    kinds = ("wedge", "left_contraction") if kind == "both" else (kind,)
    steps = []
    for axis, square in enumerate(metric):
        made = sorted(
            (target, source, square * factor)
            for product in kinds
            for vector, source, target, factor in product_terms(metric, symmetric, product)
            if vector == 1 + axis
        )
        targets, sources, factors = zip(*made, strict=True)
        steps.append((sources, targets, factors))
    return tuple(steps)
