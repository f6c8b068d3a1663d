"""Hodge projections: the nearest field without divergence, without curl, or with neither.

Every field on a grid is a sum of three that are orthogonal to each other,

    f = ∇∧a + ∇⌟b + h,    ∇∧h = 0, ∇⌟h = 0:    exact, co-exact and harmonic part.

Closed fields (∇∧f = 0) are exact + harmonic, co-closed ones (∇⌟f = 0) co-exact + harmonic. Harmonic
are constants, and the modes that a scheme takes for constants (the highest of even grids).

How it is computed. 1. The difference ∂ of an axis has a singular value decomposition: orthonormal
rows E, and O for what ∂ makes of them, with O ∂ E^T = s and E ∂ O^T = -s. On periodic axes both are
cosines and sines, at a wall E are cosines and O are sines. 2. Blades with e_i are written in the
rows O of axis i, the others in the rows E. There ∇∧ is σ∧ and ∇⌟ is -σ⌟ with a real vector σ.
3. The exact part is σ∧(σ⌟f)/σ², the harmonic part is where σ = 0. Products with small matrices do
all of it, so that it is exact for every scheme, real, and can be exported.

With [(t, g).f](x) = ρ(g) f(g^-1 (x - t)) projections commute with translations of periodic axes and
with the symmetries of the grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import torch
from torch import Tensor, nn

from cscnn._util.checks import check_choice
from cscnn._util.torch_private import constant_for_compilers
from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.blades import ordered_blades
from cscnn.algebra.clifford import check_algebra
from cscnn.algebra.constants import constant
from cscnn.calculus.hodge import Plan, tables
from cscnn.calculus.operators import Schemes, boundaries, check_field
from cscnn.calculus.schemes import Differences, Spectral
from cscnn.calculus.walls import even_components
from cscnn.conv.options import per_axis
from cscnn.conv.padding import WALLS
from cscnn.conv.precision import full_precision

#: Fields that are projected on, and the parts that they consist of.
PARTS = {
    "closed": ("exact", "harmonic"),
    "coclosed": ("coexact", "harmonic"),
    "divergence_free": ("coexact", "harmonic"),
    "curl_free": ("exact", "harmonic"),
    "exact": ("exact",),
    "coexact": ("coexact",),
    "harmonic": ("harmonic",),
}


def project(
    f: Tensor,
    algebra: CliffordAlgebra,
    onto: str,
    scheme: Schemes = Differences(boundary="circular"),
    *,
    grades: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
) -> Tensor:
    """The nearest field that is closed, co-closed, ... in the differences of a scheme.

    Linear, idempotent, self-adjoint. The matching operator with the same scheme is zero on the
    result, to rounding: `divergence` after ``"divergence_free"``.

    Args:
        f: (..., *grid, blades).
        algebra: the Clifford algebra, one axis of the grid for each of its dimensions.
        onto: ``"closed"`` (∇∧f = 0; ``"curl_free"`` is the same), ``"coclosed"`` (∇⌟f = 0;
            ``"divergence_free"`` is the same), ``"harmonic"``, ``"exact"`` or ``"coexact"``.
        scheme: `Differences` or `Spectral`, one for all axes or one per axis, of which every axis
            is ``"circular"``, a ``"wall"`` or a ``"conductor"``.
        grades: which to project; others stay as they are. By default all but symmetric tensors,
            of which there is no such projection.
        axes: those of ∇, of one sign. By default all. Else the field is projected on each slice of
            the other axes, and components with other axes stay as they are: with time as an axis,
            that is the magnetic part of F, for which ∇∧B = 0 holds at each time, and not the
            electric part, for which it does not.

    Returns:
        (..., *grid, blades)

    Example:
        >>> plane, periodic = CliffordAlgebra((1, 1)), Spectral()
        >>> v = plane.embed(torch.randn(16, 16, 2, dtype=torch.float64), grade=1)
        >>> flow = project(v, plane, "divergence_free", periodic)
        >>> from cscnn.calculus import divergence
        >>> bool(divergence(flow, plane, periodic).abs().max() < 1e-12)
        True
    """
    check_field(f, algebra)
    return _apply(_plan(algebra, onto, scheme, grades, axes), f, algebra)


class Projection(nn.Module):
    """`project` as a layer, on grids of any size; arguments as there.

    Example:
        >>> plane = CliffordAlgebra((1, 1))
        >>> walls = Differences(0.5, boundary="wall")
        >>> layer = Projection(plane, "divergence_free", walls, grades=(1,))
        >>> layer(torch.randn(2, 3, 9, 8, 4)).shape  # the scalar and the bivector stay
        torch.Size([2, 3, 9, 8, 4])
    """

    def __init__(
        self,
        algebra: CliffordAlgebra,
        onto: str,
        scheme: Schemes = Differences(boundary="circular"),
        *,
        grades: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
    ):
        super().__init__()
        self.algebra: CliffordAlgebra = check_algebra(algebra)
        self.onto = onto
        self.scheme = scheme
        self._plan = _plan(algebra, onto, scheme, grades, axes)

    def forward(self, f: Tensor) -> Tensor:
        """(..., *grid, blades) -> (..., *grid, blades)"""
        check_field(f, self.algebra)
        return _apply(self._plan, f, self.algebra)

    def extra_repr(self) -> str:
        """For print."""
        return f"{self.algebra}, {self.onto}, {self.scheme}"


def with_mean(
    f: Tensor,
    reference: Tensor,
    algebra: CliffordAlgebra,
    boundary: str | Sequence[str] = "circular",
    *,
    grades: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
) -> Tensor:
    """f plus a constant, so that its mean over the grid is that of a reference.

    The nearest such field. Components that are odd at a wall, see `mirror`, stay as they are: a
    constant would not be a mirror image of itself. On other grids it keeps closed fields closed.

    Args:
        f: (..., *grid, blades).
        reference: with the same axes of the grid, e.g. the field a time step earlier.
        algebra: the Clifford algebra, one axis of the grid for each of its dimensions.
        boundary: ``"wall"``, ``"conductor"`` or anything else, for all axes or one per axis.
        grades: which to change; others stay as they are. By default all.
        axes: of the grid to take the mean over. By default all.

    Returns:
        (..., *grid, blades)
    """
    for name, x in (("f", f), ("reference", reference)):
        check_algebra(algebra).check(x, name)
    modes = per_axis("boundary", boundary, algebra.dim)
    chosen = range(algebra.dim) if axes is None else axes
    even = even_components(algebra, {axis: modes[axis] for axis in chosen})
    free = [
        (grades is None or grade in grades) and constant_part
        for grade, constant_part in zip(algebra.grades, even, strict=True)
    ]
    grid = tuple(axis - 1 - algebra.dim for axis in chosen)
    missing = reference.mean(grid, keepdim=True) - f.mean(grid, keepdim=True)
    return f + missing * missing.new_tensor(free)


def _plan(
    algebra: CliffordAlgebra,
    onto: str,
    scheme: Schemes,
    grades: Sequence[int] | None,
    axes: Sequence[int] | None,
) -> Plan:
    """What is to be done, or an error about what is wrong."""
    dim = algebra.dim
    check_choice("onto", onto, tuple(PARTS))
    chosen = tuple(range(dim)) if axes is None else tuple(axes)
    if len({*chosen}) < len(chosen) or not {*chosen} <= {*range(dim)}:
        raise ValueError(f"axes must be different ones from 0 to {dim - 1}, got {chosen}")
    if len({algebra.metric[axis] for axis in chosen}) > 1:
        raise ValueError(
            f"{algebra} has no orthogonal projection: □ of mixed signs has waves as zeros. Give "
            "axes of one sign, e.g. those of space, and each slice in time is projected"
        )
    schemes = per_axis("scheme", scheme, dim)
    boundary = boundaries(schemes)
    for axis in chosen:
        if not isinstance(schemes[axis], Differences | Spectral):
            raise TypeError(f"projections know Differences and Spectral, got {schemes[axis]!r}")
        if boundary[axis] not in ("circular", *WALLS):
            raise ValueError(
                f"axis {axis} has boundary {boundary[axis]!r}: a projection needs to know the "
                "field beyond the grid. Periodic axes are 'circular', walls 'wall' or "
                "'conductor'; for open borders there is none"
            )
    wanted = range(dim + 1) if grades is None else tuple(grades)
    if bad := [k for k in wanted if k not in range(dim + 1)]:
        raise ValueError(f"grades of {algebra} that can be projected are 0 to {dim}, got {bad[0]}")
    spacings = (per_axis("spacing", getattr(s, "spacing", 1.0), dim) for s in schemes)
    return Plan(
        PARTS[onto],
        boundary,
        tuple(float(spacing[axis]) for axis, spacing in enumerate(spacings)),
        tuple(s.weights if isinstance(s, Differences) else () for s in schemes),
        tuple(isinstance(s, Differences) and s.staggered for s in schemes),
        tuple(b for b in algebra.blades if len(b) in wanted and {*b} <= {*chosen}),
        chosen,
    )


def _apply(plan: Plan, f: Tensor, algebra: CliffordAlgebra) -> Tensor:
    """The projection of a field."""
    if not plan.blades:
        return f
    chosen = constant(_numbers(algebra.dim, plan.blades), torch.int64, f.device)
    wide = torch.promote_types(f.dtype, torch.float32)
    sizes = tuple(f.shape[-1 - algebra.dim : -1])
    with full_precision(f.device.type):
        *bases, symbol = tables(tuple(plan), sizes, wide, f.device)
        part = f.index_select(-1, chosen).to(wide).movedim(-1, 0)
        x = part.flatten(1, -1 - algebra.dim) if f.dim() > algebra.dim + 1 else part[:, None]
        x = torch.einsum("ab...,bn...->an...", symbol, _change_basis(x, bases))
        x = _change_basis(x, [None if basis is None else basis.mT for basis in bases])
        x = x.reshape(part.shape).movedim(0, -1).to(f.dtype)
    return x if len(plan.blades) == algebra.n_blades else f.index_copy(-1, chosen, x)


@constant_for_compilers
@cache
def _numbers(dim: int, blades: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """Where blades are in a multivector: one tuple for all equal ones, as `constant` asks for."""
    return tuple(ordered_blades(dim).index(blade) for blade in blades)


def _change_basis(x: Tensor, bases: Sequence[Tensor | None]) -> Tensor:
    """Every axis of (blades, batch, *grid) times its matrices (blades, points, rows)."""
    for basis in bases:
        x = x.movedim(2, -1)  # after all axes they are in order again
        if basis is not None:
            shape = x.shape
            x = torch.bmm(x.reshape(shape[0], -1, shape[-1]), basis)
            x = x.reshape(*shape[:-1], basis.shape[-1])
    return x
