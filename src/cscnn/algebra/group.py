"""The group O(p, q): random elements, membership, the action on multivectors, versors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from cscnn._util.torch_private import tracing
from cscnn.algebra.blades import MAX_DIM
from cscnn.algebra.constants import constant

if TYPE_CHECKING:
    from cscnn.algebra.clifford import CliffordAlgebra

KINDS = ("rotation", "boost", "reflection", "any")

#: O(p, q), its elements of determinant 1, and those that keep the direction of time.
GROUPS = ("O", "SO", "O+", "SO+")


def kinds(metric: tuple[int, ...]) -> tuple[str, ...]:
    """Kinds of elements that differ from the identity in this signature."""
    p, q = metric.count(1), metric.count(-1)
    exists = {"rotation": max(p, q) > 1, "boost": p > 0 and q > 0}
    return tuple(kind for kind in KINDS if exists.get(kind, True))


def random_orthogonal(
    metric: tuple[int, ...],
    kind: str,
    batch: int | Sequence[int],
    rapidity: float | tuple[float, float],
    generator: torch.Generator | None,
    dtype: torch.dtype | None,
    device: torch.device | str | None,
) -> Tensor:
    """See `CliffordAlgebra.random_orthogonal`. Drawn in float64 on the CPU or the generator's
    device, then cast and moved, so that a seed means the same everywhere."""
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    if kind not in kinds(metric):
        raise ValueError(f"there is no {kind} for metric {metric}: choose from {kinds(metric)}")
    low, high = (0.0, rapidity) if isinstance(rapidity, int | float) else rapidity
    if not 0 <= low <= high < math.inf:
        raise ValueError(f"rapidity must be finite and non-negative, got {rapidity}")
    dtype = dtype or torch.get_default_dtype()
    if not dtype.is_floating_point:
        raise TypeError(f"group elements need a real floating dtype, got {dtype}")
    shape = (batch,) if isinstance(batch, int) else tuple(batch)
    with torch.device("cpu" if generator is None else generator.device):
        g = getattr(_Draw(metric, math.prod(shape), (low, high), generator), kind)()
    return g.reshape(*shape, len(metric), len(metric)).to(dtype=dtype, device=device or "cpu")


class _Draw:
    """Random matrices (count, d, d) of each kind from one generator."""

    def __init__(
        self,
        metric: tuple[int, ...],
        count: int,
        rapidity: tuple[float, float],
        generator: torch.Generator | None,
    ):
        self.metric, self.count, self.rapidity, self.generator = metric, count, rapidity, generator
        self.axes = [[i for i, s in enumerate(metric) if s == sign] for sign in (1, -1)]

    def _normal(self, *shape: int) -> Tensor:
        return torch.randn(self.count, *shape, dtype=torch.float64, generator=self.generator)

    def _uniform(self, *shape: int) -> Tensor:
        return torch.rand(self.count, *shape, dtype=torch.float64, generator=self.generator)

    def _identity(self) -> Tensor:
        return torch.eye(len(self.metric), dtype=torch.float64).repeat(self.count, 1, 1)

    def _unit(self, axes: list[int]) -> Tensor:
        """Uniform unit vectors in the span of some axes, (count, d)."""
        vector = torch.zeros(self.count, len(self.metric), dtype=torch.float64)
        vector[:, axes] = torch.nn.functional.normalize(self._normal(len(axes)), dim=-1)
        return vector

    def rotation(self) -> Tensor:
        g = self._identity()
        for axes in self.axes:
            if len(axes) > 1:
                q, r = torch.linalg.qr(self._normal(len(axes), len(axes)))
                q = q * r.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)  # Haar measure on O(n)
                q[:, :, 0] = q[:, :, 0] * torch.linalg.det(q).sign().unsqueeze(-1)
                g[:, torch.tensor(axes)[:, None], torch.tensor(axes)] = q
        return g

    def boost(self) -> Tensor:
        plus, minus = (self._unit(axes) for axes in self.axes)
        low, high = self.rapidity
        angle = (low + (high - low) * self._uniform(1, 1)) * (self._uniform(1, 1) - 0.5).sign()
        outer = plus.unsqueeze(-1) * minus.unsqueeze(-2)
        in_plane = plus.unsqueeze(-1) * plus.unsqueeze(-2) + minus.unsqueeze(-1) * minus.unsqueeze(
            -2
        )
        return self._identity() + (angle.cosh() - 1) * in_plane + angle.sinh() * (outer + outer.mT)

    def reflection(self) -> Tensor:
        """1 - 2 n η(n, .) / η(n, n), with n at most rapidity/2 away from the coordinate planes."""
        available = [axes for axes in self.axes if axes]
        normal = self._unit(available[0])
        if len(available) == 2:
            choose = self._uniform(1) < 0.5
            limit = (0.0, self.rapidity[1] / 2)
            half = _Draw(self.metric, self.count, limit, self.generator).boost()
            normal = torch.where(choose, normal, self._unit(available[1]))
            normal = (half @ normal.unsqueeze(-1)).squeeze(-1)
        return self._identity() - 2 * _reflection_dyad(self.metric, normal)

    def any(self) -> Tensor:
        g = self.rotation()
        if all(self.axes):
            g = g @ self.boost()
        for axes in self.axes:  # flip one axis of either sign half of the time
            if axes:
                flip = torch.ones(self.count, len(self.metric), dtype=torch.float64)
                flip[:, axes[0]] = 1 - 2 * (self._uniform() < 0.5).double()
                g = g * flip.unsqueeze(-2)
        return g


def _reflection_dyad(metric: tuple[int, ...], normal: Tensor) -> Tensor:
    """n η(n, .) / η(n, n) for vectors (..., d) -> (..., d, d)."""
    lowered = normal * torch.tensor(metric, dtype=normal.dtype, device=normal.device)
    square = (normal * lowered).sum(-1)[..., None, None]
    return normal.unsqueeze(-1) * lowered.unsqueeze(-2) / square


def check_matrix(metric: tuple[int, ...], g: Tensor) -> None:
    """Raise unless g is a real floating tensor (..., d, d)."""
    d = len(metric)
    if not isinstance(g, Tensor) or not g.is_floating_point():
        what = g.dtype if isinstance(g, Tensor) else type(g).__name__
        raise TypeError(f"g must be a real floating tensor of shape (..., {d}, {d}), got {what}")
    if g.shape[-2:] != (d, d):
        raise ValueError(
            f"g must have shape (..., {d}, {d}) for metric {metric}, got {tuple(g.shape)}"
        )


def is_orthogonal(metric: tuple[int, ...], g: Tensor, tol: float | None = None) -> Tensor:
    """See `CliffordAlgebra.is_orthogonal`."""
    check_matrix(metric, g)
    limit = min(100 * torch.finfo(g.dtype).eps, 0.03) if tol is None else tol
    wide = g if g.dtype == torch.float64 else g.float()
    form = torch.diag(torch.tensor(metric, dtype=wide.dtype, device=g.device))
    deviation = (wide.mT @ form @ wide - form).abs().amax((-2, -1))
    return deviation <= limit * wide.square().sum((-2, -1))


def action(metric: tuple[int, ...], g: Tensor) -> Tensor:
    """See `CliffordAlgebra.action`. Minors by Laplace expansion, grade by grade."""
    check_matrix(metric, g)
    d = len(metric)
    minors = [torch.ones_like(g[..., :1, :1])]
    for k in range(1, d + 1):
        first, rest, column, column_rest = (
            constant(rows, torch.int64, g.device) for rows in _LAPLACE[d, k]
        )
        # minor[A, B] = sum_j (-1)^j g[A_0, B_j] minor[A without A_0, B without B_j]
        entries = g[..., first[:, None, None], column]
        smaller = minors[-1][..., rest[:, None, None], column_rest]
        signs = torch.tensor([(-1) ** j for j in range(k)], dtype=g.dtype, device=g.device)
        minors.append((entries * smaller * signs).sum(-1))
    rows = []
    for k, block in enumerate(minors):
        before = sum(m.shape[-1] for m in minors[:k])
        after = 2**d - before - block.shape[-1]
        rows.append(torch.nn.functional.pad(block, (before, after)))
    return torch.cat(rows, -2)


def _laplace_tables(d: int, k: int) -> tuple[tuple[Any, ...], ...]:
    """Indices of the expansion of k x k minors along their first row.

    For each row set A: its first axis, and the index of A without it among the (k-1)-sets.
    For each column set B and position j: axis B_j, and the index of B without B_j.
    """
    sets = list(combinations(range(d), k))
    index = {s: i for i, s in enumerate(combinations(range(d), k - 1))}
    first = tuple(s[0] for s in sets)
    rest = tuple(index[s[1:]] for s in sets)
    column_rest = tuple(tuple(index[s[:j] + s[j + 1 :]] for j in range(k)) for s in sets)
    return first, rest, tuple(sets), column_rest


_LAPLACE = {(d, k): _laplace_tables(d, k) for d in range(1, MAX_DIM + 1) for k in range(1, d + 1)}


def versor(algebra: CliffordAlgebra, g: Tensor) -> Tensor:
    """See `CliffordAlgebra.versor`. Cartan-Dieudonné: at most two reflections per axis.

    For u = e_j and w = g u, η(u - w) + η(u + w) = 4 η(u), so one of the two is at least 2 in
    size. Reflecting along u - w takes w to u; reflecting along u + w takes w to -u, and a second
    reflection along u finishes. Axes fixed before stay fixed, being orthogonal to both.
    """
    metric = algebra.metric
    check_matrix(metric, g)
    if not tracing():
        member = is_orthogonal(metric, g, tol=min(1e4 * torch.finfo(g.dtype).eps, 0.03))
        if not member.all():
            worst = g.reshape(-1, *g.shape[-2:])[~member.reshape(-1)][0]
            raise ValueError(f"g is not in O{algebra.signature}: g^T Δ g != Δ for {worst.tolist()}")
    form = torch.tensor(metric, dtype=g.dtype, device=g.device)
    axes = torch.eye(algebra.dim, dtype=g.dtype, device=g.device)
    result = torch.zeros_like(g[..., 0, :1]) + algebra.embed(g.new_ones(1), 0)
    for j in range(algebra.dim):
        u, w = axes[j], g[..., :, j]
        direct = ((u - w).square() @ form).abs() >= ((u + w).square() @ form).abs()
        direct = direct.unsqueeze(-1)
        normal = torch.where(direct, u - w, u + w)
        normal = normal / (normal.square() @ form).abs().sqrt().unsqueeze(-1)
        g = g - 2 * _reflection_dyad(metric, normal) @ g
        second = torch.where(direct, algebra.embed(g.new_ones(1), 0), algebra.embed(u, 1))
        back = torch.eye(algebra.dim, dtype=g.dtype, device=g.device)
        back = back - 2 * _reflection_dyad(metric, u)
        g = torch.where(direct.unsqueeze(-1), g, back @ g)
        result = algebra.geometric_product(result, algebra.embed(normal, 1))
        result = algebra.geometric_product(result, second)
    return result


def sandwich(algebra: CliffordAlgebra, v: Tensor, x: Tensor) -> Tensor:
    """See `CliffordAlgebra.sandwich`."""
    odd = (v - algebra.grade_involution(v)) / 2
    image = algebra.geometric_product(v - odd, x)
    image = image + algebra.geometric_product(odd, algebra.grade_involution(x))
    return algebra.geometric_product(image, algebra.versor_inverse(v))


def check_group(algebra: CliffordAlgebra, group: str) -> str:
    """``group`` if it is one of the four and exists in this signature, else an error."""
    if group not in GROUPS:
        raise ValueError(f"group must be one of {', '.join(GROUPS)}, got {group!r}")
    if group.endswith("+"):
        try:
            time_axis(algebra)
        except ValueError as error:
            raise ValueError(f"there is no group {group!r} here: {error}") from None
    return group


def keeps_orientation(group: str) -> bool:
    """Whether all its elements have determinant 1, so that pseudoscalars are invariant."""
    return group.startswith("SO")


def common_group(groups: Iterable[str]) -> str:
    """The elements that all of some groups in `GROUPS` have; O for no groups.

    Example:
        >>> common_group(["SO", "O+"])
        'SO+'
    """
    groups = tuple(groups)
    special = any(keeps_orientation(group) for group in groups)
    return "S" * special + "O" + "+" * any(group.endswith("+") for group in groups)


def in_group(algebra: CliffordAlgebra, g: Tensor, group: str) -> bool:
    """Whether an element g (dim, dim) of O(p, q) belongs to one of its subgroups in `GROUPS`."""
    if keeps_orientation(group) and torch.linalg.det(g) < 0:
        return False
    return not group.endswith("+") or bool(g[(time_axis(algebra),) * 2] > 0)


def time_axis(algebra: CliffordAlgebra) -> int:
    """The axis whose sign occurs once; in R^{1,1} the first."""
    if algebra.dim > 1:
        for axis, sign in enumerate(algebra.metric):
            if algebra.metric.count(sign) == 1:
                return axis
    raise ValueError(
        "past and future need one time axis, i.e. an axis whose sign no other axis has; there is "
        f"none in metric {algebra.metric}"
    )


def boost(algebra: CliffordAlgebra, rapidity: float, direction: Sequence[float]) -> Tensor:
    """The Lorentz boost (dim, dim) by a rapidity along a direction of space, in float64.

    Args:
        algebra: of a spacetime with one time axis.
        rapidity: artanh of the velocity.
        direction: a unit vector of space, without the time axis.

    Example:
        >>> from cscnn import CliffordAlgebra
        >>> boost(CliffordAlgebra((1, -1)), 0.5, [1.0])
        tensor([[1.1276, 0.5211],
                [0.5211, 1.1276]], dtype=torch.float64)
    """
    time = time_axis(algebra)
    space = [axis for axis in range(algebra.dim) if axis != time]
    if len(direction) != len(space):
        raise ValueError(f"direction needs {len(space)} components, got {direction}")
    rate = torch.zeros(algebra.dim, algebra.dim, dtype=torch.float64)
    unit = torch.tensor(_unit_vector("direction", direction), dtype=torch.float64)
    rate[time, space] = rate[space, time] = unit
    one = torch.eye(algebra.dim, dtype=torch.float64)
    # not matrix_exp, whose errors reach 2e-10 for small rapidities
    return one + math.sinh(rapidity) * rate + (math.cosh(rapidity) - 1) * rate @ rate


def rotation(angle: float, axis: Sequence[float] | None = None) -> Tensor:
    """The rotation by an angle (radians) of the plane, or about an axis of space, in float64.

    Args:
        angle: in radians.
        axis: a unit vector of space (3,); without it a rotation (2, 2) of the plane.
    """
    if axis is None:
        rate = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    else:
        x, y, z = _unit_vector("axis", axis)
        rate = torch.tensor([[0, -z, y], [z, 0, -x], [-y, x, 0]], dtype=torch.float64)
    one = torch.eye(len(rate), dtype=torch.float64)
    return one + math.sin(angle) * rate + (1 - math.cos(angle)) * rate @ rate


def _unit_vector(name: str, vector: Sequence[float]) -> list[float]:
    """The vector with its length rounded to 1; raise if it is another."""
    size = math.hypot(*vector)
    if not abs(size - 1) < 1e-6:
        raise ValueError(f"{name} must be a unit vector, got {list(vector)} of length {size:g}")
    return [x / size for x in vector]
