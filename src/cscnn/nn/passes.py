"""Layer norm, gate and product as passes over planes, with derivatives written by hand.

A plane is one blade of all channels and points of a part of a field. Parts are
(blades, batch, channels, points), and so small that they stay in the cache from pass to pass, see
`cscnn.nn.fused`, which puts the stages together. Written as modules they are some hundred passes
over the field in training, most of them for derivatives, and each result is stored.

The norm. With s_c = |x_c| of channel c (see `smooth_norm`), m their mean over C channels and
r = 1 / (m + 1e-6)

    y_c = r x_c,

and for the derivative g of a loss by y, with D = sum over channels of g_c·x_c,

    by x_c:  r g_c - r² D / (C s_c) x_c,

where x_c has the signs of its grades' squares in spacetime, and where the second term is absent if
the norm is bounded below.

The gate with a product. With m = mix(x), s = |m| and r = 1 / (1 + s)

    y = Φ(x^(0)) x + w r (x m),

and with t = w r g

    by m:  h = x ⌟ t - r (m·h') m / s  where h' = x ⌟ t and ⌟ is the adjoint of the product,
    by x:  Φ g + Φ' (g·x) e_0 + t ⌞ m + mixᵀ(h).

A mix of x and x I is one of twice as many channels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from cscnn._util.torch_private import sigmoid_slope_
from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.bilinear import fill_planes
from cscnn.nn.functional import GELU_CUBE, GELU_SCALE, SMALLEST_SQUARE
from cscnn.nn.scratch import empty_like


class Size:
    """Norms |x| of a part, see `smooth_norm`, and their derivatives.

    Args:
        x: (blades, batch, channels, points).
        algebra: the Clifford algebra. In spacetime squares of grades count by absolute value.
    """

    def __init__(self, x: Tensor, algebra: CliffordAlgebra):
        self.x, self.algebra = x, algebra
        self.definite = min(algebra.metric) > 0
        if self.definite:
            self.squares = [dot(x, x)]
        else:
            grades = [algebra.grade_slice(k) for k in range(algebra.n_grades)]
            parts = [dot(x[k], x[k], algebra.form[k]) for k in grades]
            total = torch.abs(parts[0], out=empty_like(parts[0]))
            absolute = empty_like(total)
            for part in parts[1:]:
                total += torch.abs(part, out=absolute)
            self.squares = [*parts, total]

        # 1 / |x|, and 0 where the norm is bounded below and has no derivative. On CPUs a root takes
        # longer than its reciprocal.
        self.inverse = torch.threshold(
            self.squares[-1], SMALLEST_SQUARE, torch.inf, out=empty_like(self.squares[-1])
        ).rsqrt_()

    def value_(self) -> Tensor:
        """|x|, (batch, channels, points), in the place of its square."""
        return self.squares.pop().mul_(self.inverse).clamp_(math.sqrt(SMALLEST_SQUARE))

    def subtract_slope_(self, h: Tensor, factor: Tensor) -> None:
        """h -= factor |x| d|x|/dx: the blades of x with the signs of their grades' squares."""
        if self.definite:
            h.addcmul_(self.x, factor, value=-1)
            return
        signed = [square.sign_().mul_(factor) for square in self.squares]
        blades = zip(h, self.x, self.algebra.grades, self.algebra.form, strict=True)
        for plane, blade, grade, sign in blades:
            plane.addcmul_(blade, signed[grade], value=-sign)


class Norm:
    """`layer_norm` of a part.

    Args:
        x: (blades, batch, channels, points).
        algebra: the Clifford algebra.
    """

    def __init__(self, x: Tensor, algebra: CliffordAlgebra):
        self.x = x
        self.size = Size(x, algebra)
        # (batch, 1, points)
        self.share = self.size.value_().mean(1, keepdim=True).add_(1e-6).reciprocal_()

    def forward(self, out: Tensor, shortcut: Tensor | None) -> None:
        """Write the norm, plus a shortcut."""
        if shortcut is None:
            torch.mul(self.x, self.share, out=out)
        else:
            torch.addcmul(shortcut, self.x, self.share, out=out)

    def backward(self, grad: Tensor, out: Tensor) -> None:
        """Write the derivative by x."""
        factor = dot(grad, self.x).sum(1, keepdim=True)
        factor.mul_(self.share).mul_(self.share).div_(self.x.shape[2])
        torch.mul(grad, self.share, out=out)
        self.size.subtract_slope_(out, self.size.inverse.mul_(factor))


class Gate:
    """`gate` of a part.

    Args:
        x: (blades, batch, channels, points).
    """

    def __init__(self, x: Tensor):
        self.x = x
        self.phi = self._polynomial(GELU_CUBE).mul_(x[0]).sigmoid_()

    def _polynomial(self, cube: float) -> Tensor:
        """A number plus another times the square of the scalar part."""
        scalar, scale = self.x[0], self.x.new_full((), GELU_SCALE)
        return torch.addcmul(scale, scalar, scalar, value=cube, out=empty_like(scalar))

    def forward(self, out: Tensor) -> None:
        """Write the gate."""
        torch.mul(self.x, self.phi, out=out)

    def backward(self, grad: Tensor, out: Tensor) -> None:
        """Write the derivative by x."""
        torch.mul(grad, self.phi, out=out)
        out[0] += self._by_phi(grad)

    def _by_phi(self, grad: Tensor) -> Tensor:
        """Φ' (g·x)"""
        slope = self._polynomial(3 * GELU_CUBE).mul_(dot(grad, self.x))
        return sigmoid_slope_(slope, self.phi)


class ProductGate(Gate):
    """`product_gate` of a part.

    Args:
        x: (blades, batch, channels, points), contiguous.
        mix: (blades, channels, channels or twice as many), of each blade.
        weight: (blades, 1, channels, 1).
        algebra: the Clifford algebra.
    """

    def __init__(self, x: Tensor, mix: Tensor, weight: Tensor, algebra: CliffordAlgebra):
        super().__init__(x)
        self.algebra, self.weight = algebra, weight
        batch, channels = x.shape[1:3]
        self.special = mix.shape[2] > channels
        self.mix = mix.repeat_interleave(batch, 0)
        self.mixed = self._with_undual() if self.special else x
        self.m = empty_like(x)
        torch.bmm(self.mix, self.mixed.flatten(0, 1), out=self.m.flatten(0, 1))
        self.size = Size(self.m, algebra)
        self.share = self.size.value_().add_(1).reciprocal_()  # r
        self.planes = {"x": x.unbind(), "m": self.m.unbind()}

    def _with_undual(self) -> Tensor:
        """x and x I, as twice as many channels."""
        return torch.cat([self.x, self.algebra.undual(self.x.movedim(0, -1)).movedim(-1, 0)], 2)

    def _multiply(
        self,
        left: Sequence[Tensor],
        right: Sequence[Tensor],
        out: Tensor,
        roles: tuple[int, int, int],
    ) -> Tensor:
        """The geometric product, or its adjoints, see `cscnn.algebra.bilinear`."""
        fill_planes(left, right, out.unbind(), self.algebra.tables["geometric"], roles)
        return out

    def _product(self) -> Tensor:
        """x m"""
        x, m = self.planes["x"], self.planes["m"]
        return self._multiply(x, m, empty_like(self.m), (0, 1, 2))

    def forward(self, out: Tensor) -> None:
        """Write the gate with its product."""
        super().forward(out)
        out.addcmul_(self._product().mul_(self.share), self.weight)

    def backward(self, grad: Tensor, out: Tensor) -> None:
        """Write the derivative by x; `by_mix` and `by_weight` hold the others."""
        t = torch.mul(grad, self.share, out=empty_like(self.x))
        room = self._product()
        self.by_weight = room.mul_(t).sum((1, 3))  # (blades, channels)
        ts = t.mul_(self.weight).unbind()
        h = self._multiply(ts, self.planes["x"], room, (2, 0, 1))
        factor = dot(self.m, h).mul_(self.share).mul_(self.size.inverse)
        self.size.subtract_slope_(h, factor)
        flat, channels = h.flatten(0, 1), self.x.shape[2]
        by_mix = torch.bmm(flat, self.mixed.flatten(0, 1).mT)
        self.by_mix = by_mix.unflatten(0, (len(self.x), -1)).sum(1)
        by_x = self._multiply(ts, self.planes["m"], empty_like(self.m), (2, 1, 0))
        by_x.flatten(0, 1).baddbmm_(self.mix[..., :channels].mT, flat)
        if self.special:
            by_undual = torch.bmm(self.mix[..., channels:].mT, flat).view_as(by_x)
            # The adjoint of a permutation with signs is its inverse.
            by_x += self.algebra.dual(by_undual.movedim(0, -1)).movedim(-1, 0)
        by_x[0] += self._by_phi(grad)
        torch.addcmul(by_x, grad, self.phi, out=out)


def dot(x: Tensor, y: Tensor, signs: tuple[int, ...] | None = None) -> Tensor:
    """Sum over blades of sign x y: (blades, ...) -> (...)."""
    signs = signs or (1,) * len(x)
    xs, ys = x.unbind(), y.unbind()
    total = torch.mul(xs[0], ys[0], out=empty_like(xs[0]))
    if signs[0] < 0:
        total.neg_()
    for a, b, sign in zip(xs[1:], ys[1:], signs[1:], strict=True):
        total.addcmul_(a, b, value=sign)
    return total
