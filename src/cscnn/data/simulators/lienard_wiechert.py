"""Fields of moving point charges, exactly: Liénard and Wiechert's, written without a frame.

A charge moves along the events X(s). Its field at the event x is determined by the one event
X(s) on the past light cone of x: with K = x - X(s), U = X'(s), A = X''(s),

    F = q V ∧ K,    V = A / (K·U)² + U (U·U - K·A) / (K·U)³

in units with c = 1 and 4πε₀ = 1, and with the Minkowski product +, -, ..., -. The formula does not
depend on the parameter s, so it holds for boosted sources as it stands. Components of F on e_0i are
E_i; those on e_12, e_13, e_23 are B_z, -B_y, B_x.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import torch
from torch import Tensor

from cscnn.data.simulators.exact import check_orthochronous

#: Points that are computed together: enough to keep a processor busy, few enough for its cache.
CHUNK = 2**14

#: Largest relative error of the light cone condition.
TOLERANCE = 1e-13


@dataclass(frozen=True)
class Charges:
    """Point charges that drift and oscillate: X(s) = o + v s + a cos ωs + b sin ωs.

    Attributes:
        charge: (n,)
        origin, drift, cosine, sine: events o, v, a, b, (n, 1 + d) with time first. A charge with
            velocity w in this frame has drift (1, w) and no time in the others.
        frequency: ω, (n,)
    """

    charge: Tensor
    origin: Tensor
    drift: Tensor
    cosine: Tensor
    sine: Tensor
    frequency: Tensor

    def transformed(self, g: Tensor) -> Charges:
        """The same charges after a Lorentz transformation, (1 + d, 1 + d), see `Solution`."""
        check_orthochronous(g, self.origin.shape[1])
        o, v, a, b = (t @ g.mT.to(t) for t in (self.origin, self.drift, self.cosine, self.sine))
        return Charges(self.charge, o, v, a, b, self.frequency)

    def translated(self, shift: Tensor) -> Charges:
        """The same charges displaced by a vector of spacetime, (1 + d,)."""
        return replace(self, origin=self.origin + shift.to(self.origin))

    def to(self, device: torch.device | str) -> Charges:
        """On another device."""
        return Charges(*(getattr(self, name).to(device) for name in self.__dataclass_fields__))

    def motion(self, s: Tensor, derivatives: int) -> Tensor:
        """X and its derivatives at parameters (n, N), as (n, 1 + derivatives, 1 + d, N)."""
        w = self.frequency[:, None]
        basis = torch.stack([torch.ones_like(s), s, *_cos_sin(w * s)], 1)  # (n, 4, N)
        a, b, zero = self.cosine, self.sine, torch.zeros_like(self.origin)
        rows = [
            torch.stack([self.origin, self.drift, a, b], -1),
            torch.stack([self.drift, zero, w * b, -w * a], -1),
            torch.stack([zero, zero, -w * w * a, -w * w * b], -1),
        ]
        matrix = torch.cat(rows[: 1 + derivatives], 1)
        return torch.bmm(matrix, basis).unflatten(1, (1 + derivatives, -1))

    def positions(self, s: Tensor) -> Tensor:
        """X at parameters (m,), as (n, m, 1 + d)."""
        return self.motion(s.expand(len(self.charge), -1), 0)[:, 0].mT


def faraday(
    charges: Charges, points: Tensor, height: float = 0.0, guess: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The field of all charges together.

    Args:
        charges: n of them, in 1 + d dimensions.
        points: events (N, 1 + d).
        height: how far the points are off the space of the charges, in a further direction. The
            components in that direction are left out: this is the field on a plane above.
        guess: parameters (n, N) near the past light cone, for speed.

    Returns:
        F, (N, d (d + 1) / 2), on the planes (0, 1), (0, 2), ..., (d - 1, d); and the parameters of
        the events on the past light cone, (n, N).
    """
    if points.dim() != 2 or points.shape[1] != charges.origin.shape[1]:
        raise ValueError(
            f"points must be events (N, {charges.origin.shape[1]}), got {tuple(points.shape)}"
        )
    fields, parameters = [], []
    for low in range(0, len(points), CHUNK):
        part = points[low : low + CHUNK].mT.contiguous()
        s = None if guess is None else guess[:, low : low + CHUNK]
        s = retarded(charges, part, height, s)
        fields.append(_field(charges, part, height, s))
        parameters.append(s)
    return torch.cat(fields), torch.cat(parameters, 1)


def retarded(
    charges: Charges, points: Tensor, height: float = 0.0, guess: Tensor | None = None
) -> Tensor:
    """Parameters (n, N) where the charges meet the past light cones of points (1 + d, N).

    Newton's method on f(s) = t - T(s) - |x - R(s)|. Charges are slower than light, so f falls
    strictly from +∞ to -∞; what Newton does not finish, bisection does.
    """
    t = points[0]
    s = t.expand(len(charges.charge), -1) if guess is None else guess
    for _ in range(12):
        gap, slope, distance = _gap(charges, points, height, s)
        s = s - gap.div_(slope)
        # Newton doubles the digits: what has eight before a step has all of them after it
        if bool((gap.abs_() <= 1e-8 * distance).all()):
            return s
    return _bisect(charges, points, height, s)


def _bisect(charges: Charges, points: Tensor, height: float, s: Tensor) -> Tensor:
    """Newton inside a bracket that is halved where Newton leaves it."""
    reach = torch.ones_like(s)
    low, high = s - reach, s + reach
    for _ in range(200):
        below = _gap(charges, points, height, low)[0] < 0
        above = _gap(charges, points, height, high)[0] > 0
        if not bool((below | above).any()):
            break
        reach = reach * 2
        low, high = torch.where(below, low - reach, low), torch.where(above, high + reach, high)
    for _ in range(200):
        gap, slope, distance = _gap(charges, points, height, s)
        if bool((gap.abs() <= TOLERANCE * (points[0].abs() + distance)).all()):
            return s
        low, high = torch.where(gap > 0, s, low), torch.where(gap < 0, s, high)
        newton = s - gap / slope
        s = torch.where((newton > low) & (newton < high), newton, (low + high) / 2)
    raise ArithmeticError(
        "no retarded time found: is a charge faster than light? Largest miss "
        f"{gap.abs().max().item():.3g}"
    )


def _gap(
    charges: Charges, points: Tensor, height: float, s: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """f, f' and the distance |x - R(s)|, each (n, N)."""
    motion = charges.motion(s, 1)
    k = points[1:] - motion[:, 0, 1:]
    distance = _squares(k).add_(height * height).sqrt_()
    slope = _dot(k, motion[:, 1, 1:]).div_(distance).sub_(motion[:, 1, 0])
    return points[0] - motion[:, 0, 0] - distance, slope, distance


def _cos_sin(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.cos(), x.sin()


def _dot(a: Tensor, b: Tensor) -> Tensor:
    """Sum over the middle axis of (n, d, N), Euclidean."""
    result = a[:, 0] * b[:, 0]
    for i in range(1, a.shape[1]):
        result.addcmul_(a[:, i], b[:, i])
    return result


def _squares(a: Tensor) -> Tensor:
    return _dot(a, a)


def _field(charges: Charges, points: Tensor, height: float, s: Tensor) -> Tensor:
    """The sum of V ∧ K over the charges, (N, planes)."""
    x, u, acceleration = charges.motion(s, 2).unbind(1)
    k = points - x
    k[:, 0] = _squares(k[:, 1:]).add_(height * height).sqrt_()
    ku, ka, uu = (_product(a, b) for a, b in ((k, u), (k, acceleration), (u, u)))
    first = charges.charge[:, None] / (ku * ku)
    second = first * (uu - ka) / ku
    v = (first[:, None] * acceleration).addcmul_(second[:, None], u)
    planes = combinations(range(k.shape[1]), 2)
    return torch.stack([(_cross(v, k, i, j)).sum(0) for i, j in planes], -1)


def _product(a: Tensor, b: Tensor) -> Tensor:
    """Minkowski product over the middle axis of (n, 1 + d, N)."""
    return _dot(a[:, 1:], b[:, 1:]).neg_().addcmul_(a[:, 0], b[:, 0])


def _cross(a: Tensor, b: Tensor, i: int, j: int) -> Tensor:
    return (a[:, i] * b[:, j]).addcmul_(a[:, j], b[:, i], value=-1)
