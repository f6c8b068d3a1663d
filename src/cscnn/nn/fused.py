"""`product_gate`: a gate and a geometric product as one operation, for CPUs.

Written as modules it is some hundred passes over the field in training, most of them for
derivatives. Here the backward pass is written by hand. It computes the mixed channels again
instead of storing them, and all passes run over planes: one blade of all channels and points, in
the order (batch, blades, channels, points) in memory.

With m = mix(x), s = |m| (see `smooth_norm`) and r = 1 / (1 + s)

    y = Φ(x^(0)) x + w r (x m),

and for the derivative g of a loss by y, with t = w r g,

    by m:  h = x ⌟ t - r (m·h') m / s  where h' = x ⌟ t and ⌟ is the adjoint of the product,
    by x:  Φ g + Φ' (g·x) e_0 + t ⌞ m + mixᵀ(h).

A mix of x and x I is one of twice as many channels.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from cscnn._util.torch_private import (
    dispatch_mode_active,
    exporting,
    forward_derivatives_active,
    tracing,
)
from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.bilinear import by_planes
from cscnn.algebra.tables import product_table
from cscnn.nn.functional import (
    GELU_CUBE,
    GELU_SCALE,
    LARGE,
    SMALLEST_SQUARE,
    from_planes,
    gate,
    mix_channels,
    smooth_norm,
    to_planes,
    widened,
)


def product_gate(x: Tensor, mix: Tensor, weight: Tensor, algebra: CliffordAlgebra) -> Tensor:
    """gate(x) + weight · x m / (1 + |m|), m the channels of x mixed by ``mix``.

    Commutes with ρ(g): mixing, products and norms do.

    Args:
        x: field (batch, channels, *space, blades).
        mix: (channels, channels or twice as many, grades), see `mix_channels`; the latter commutes
            with SO(p, q) only.
        weight: (channels, grades).
        algebra: the Clifford algebra.
    """
    if not can_fuse(x, mix):
        return plain_product_gate(x, mix, weight, algebra)
    y: Tensor = _ProductGate.apply(to_planes(x), mix, weight, algebra)
    return from_planes(y, like=x)


def plain_product_gate(x: Tensor, mix: Tensor, weight: Tensor, algebra: CliffordAlgebra) -> Tensor:
    """The same by operations that torch knows: the reference, and for all that cannot be fused."""
    mixed = from_planes(mix_channels(to_planes(x), mix, algebra), like=x)
    size = smooth_norm(widened(mixed), algebra, absolute=True).unsqueeze(-1)
    product = algebra.geometric_product(x, (mixed / (1 + size)).to(x.dtype))
    per_blade = weight[:, list(algebra.grades)]
    per_blade = per_blade.reshape(len(per_blade), *(1,) * (x.dim() - 3), -1)
    return gate(x) + per_blade * product


def can_fuse(x: Tensor, mix: Tensor | None = None) -> bool:
    """Whether the hand-written passes apply to this field, see `by_hand`.

    Huge numbers, whose squares overflow, take the plain form.
    """
    if not by_hand(x):
        return False
    with torch.no_grad():
        bound = torch.linalg.vector_norm(x)
        if mix is not None:
            bound = bound * torch.linalg.vector_norm(mix)
    return x.numel() > 0 and float(bound) <= LARGE


def by_hand(x: Tensor) -> bool:
    """Whether there can be hand-written passes: on a CPU, in full precision, without transforms.

    Compilers fuse the plain form by themselves. Fake tensors, whose values cannot be asked for,
    take it too.
    """
    if tracing() or exporting() or dispatch_mode_active() or forward_derivatives_active():
        return False
    if not x.is_cpu:
        return False
    return x.dtype in (torch.float32, torch.float64) and not torch.is_autocast_enabled("cpu")


class _Passes:
    """What forward and backward pass share.

    Args:
        planes: (batch, channels, blades, points).
        mix, weight: see `product_gate`.
        algebra: the Clifford algebra.
    """

    def __init__(self, planes: Tensor, mix: Tensor, weight: Tensor, algebra: CliffordAlgebra):
        self.algebra, self.grades = algebra, list(algebra.grades)
        self.batch, self.channels, self.blades, self.points = planes.shape
        self.x = planes.transpose(1, 2).contiguous()  # (batch, blades, channels, points)
        per_blade = mix[..., self.grades].permute(2, 0, 1).repeat(self.batch, 1, 1)
        self.mix = per_blade  # (batch * blades, channels, channels or twice as many)
        self.special = mix.shape[1] > self.channels
        self.mixed = self._with_undual() if self.special else self.x
        self.m = torch.bmm(per_blade, self.mixed.flatten(0, 1)).view_as(self.x)
        self.weight = weight[:, self.grades].T.unsqueeze(-1)  # (blades, channels, 1)
        self.squares = sum_of_squares(self.m, algebra)
        self.size = self.squares[-1].clamp(SMALLEST_SQUARE).sqrt_()
        self.share = (1 + self.size).reciprocal_()  # r
        self.phi = self._phi()

    def _with_undual(self) -> Tensor:
        """x and x I, as twice as many channels."""
        return torch.cat([self.x, self.algebra.undual(self.x.movedim(1, -1)).movedim(-1, 1)], 2)

    def _phi(self) -> Tensor:
        scalar = self.x[:, 0]
        return (scalar.square().mul_(GELU_CUBE).add_(GELU_SCALE)).mul_(scalar).sigmoid_()

    def phi_slope(self) -> Tensor:
        """Derivative of Φ by the scalar part."""
        slope = self.x[:, 0].square().mul_(3 * GELU_CUBE).add_(GELU_SCALE)
        return slope.mul_(self.phi).mul_(1 - self.phi)

    def product(self, left: Tensor, right: Tensor, roles: tuple[int, int, int]) -> Tensor:
        """The geometric product, or its adjoints, see `cscnn.algebra.bilinear`."""
        table = product_table(self.algebra.metric, self.algebra.symmetric, "geometric")
        return by_planes(left.movedim(1, -1), right.movedim(1, -1), table, roles).movedim(-1, 1)

    def forward(self) -> Tensor:
        """(batch, channels, blades, points)"""
        product = self.product(self.x, self.m, (0, 1, 2)).mul_(self.share.unsqueeze(1))
        y = self.x.new_empty(self.batch, self.channels, self.blades, self.points)
        result = y.transpose(1, 2)
        torch.mul(self.x, self.phi.unsqueeze(1), out=result)
        result.addcmul_(product, self.weight)
        return y

    def backward(self, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Derivatives by planes, mix and weight."""
        grad = grad.transpose(1, 2).contiguous()
        share = grad * self.share.unsqueeze(1)
        product = self.product(self.x, self.m, (0, 1, 2))
        by_weight = product.mul_(share).sum((0, -1))  # (blades, channels)
        t = share.mul_(self.weight)
        by_x = self.product(t, self.m, (2, 1, 0))
        h = self.product(t, self.x, (2, 0, 1))
        self._subtract_slope_of_share(h)
        flat = h.flatten(0, 1)
        by_x.flatten(0, 1).baddbmm_(self.mix[..., : self.channels].mT, flat)
        if self.special:
            by_undual = torch.bmm(self.mix[..., self.channels :].mT, flat).view_as(self.x)
            # The adjoint of a permutation with signs is its inverse.
            by_x += self.algebra.dual(by_undual.movedim(1, -1)).movedim(-1, 1)
        by_mix = torch.bmm(flat, self.mixed.flatten(0, 1).mT)
        by_mix = by_mix.unflatten(0, (self.batch, self.blades)).sum(0)
        by_x[:, 0].addcmul_(dot(grad, self.x), self.phi_slope())
        by_planes_ = self.x.new_empty(self.batch, self.channels, self.blades, self.points)
        torch.addcmul(by_x, grad, self.phi.unsqueeze(1), out=by_planes_.transpose(1, 2))
        return by_planes_, self._by_grade(by_mix).permute(1, 2, 0), self._by_grade(by_weight).T

    def _subtract_slope_of_share(self, h: Tensor) -> None:
        """h -= r (m·h) ds/dm, zero where the norm is bounded below."""
        factor = dot(self.m, h).mul_(self.share).div_(self.size)
        factor.masked_fill_(self.squares[-1] <= SMALLEST_SQUARE, 0)
        subtract_slope_(h, self.m, factor, self.squares, self.algebra)

    def _by_grade(self, per_blade: Tensor) -> Tensor:
        """Sums over the blades of each grade: (blades, ...) -> (grades, ...)."""
        result = per_blade.new_zeros(self.algebra.n_grades, *per_blade.shape[1:])
        index = torch.tensor(self.grades, device=per_blade.device)
        return result.index_add_(0, index, per_blade)


def dot(x: Tensor, y: Tensor, signs: tuple[int, ...] | None = None) -> Tensor:
    """Sum over blades of sign x y: (batch, blades, channels, points) -> without the blades."""
    signs = signs or (1,) * x.shape[1]
    total = x[:, 0] * y[:, 0]
    if signs[0] < 0:
        total.neg_()
    for blade, sign in enumerate(signs[1:], 1):
        total.addcmul_(x[:, blade], y[:, blade], value=sign)
    return total


def sum_of_squares(x: Tensor, algebra: CliffordAlgebra) -> list[Tensor]:
    """<x_k, x_k> for each grade in spacetime, and last the sum of their absolute values.

    Args:
        x: (batch, blades, channels, points).
        algebra: the Clifford algebra.
    """
    if min(algebra.metric) > 0:
        return [dot(x, x)]
    grades = [algebra.grade_slice(k) for k in range(algebra.n_grades)]
    parts = [dot(x[:, k], x[:, k], algebra.form[k]) for k in grades]
    total = parts[0].abs()
    for part in parts[1:]:
        total += part.abs()
    return [*parts, total]


def subtract_slope_(
    h: Tensor, x: Tensor, factor: Tensor, squares: list[Tensor], algebra: CliffordAlgebra
) -> None:
    """h -= factor s ds/dx, s the norm of x: its blades with the signs of their grades' squares.

    Args:
        h, x: (batch, blades, channels, points).
        factor: (batch, channels, points).
        squares: of x, see `sum_of_squares`.
        algebra: the Clifford algebra.
    """
    if min(algebra.metric) > 0:
        h.addcmul_(x, factor.unsqueeze(1), value=-1)
        return
    for blade, (grade, sign) in enumerate(zip(algebra.grades, algebra.form, strict=True)):
        signed = factor * squares[grade].sign()
        h[:, blade].addcmul_(x[:, blade], signed, value=-sign)


class _ProductGate(torch.autograd.Function):
    """`product_gate` on planes (batch, channels, blades, points)."""

    @staticmethod
    def forward(
        ctx: Any, planes: Tensor, mix: Tensor, weight: Tensor, algebra: CliffordAlgebra
    ) -> Tensor:
        ctx.save_for_backward(planes, mix, weight)
        ctx.algebra = algebra
        return _Passes(planes, mix, weight, algebra).forward()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        inputs, algebra = ctx.saved_tensors, ctx.algebra
        planes, mix, weight = inputs
        if torch.is_grad_enabled():  # derivatives of derivatives
            y = plain_product_gate(planes.movedim(2, -1), mix, weight, algebra)
            return *gradients(y, inputs, grad.movedim(2, -1)), None
        return *_Passes(planes, mix, weight, algebra).backward(grad), None


def gradients(y: Tensor, inputs: tuple[Tensor, ...], grad: Tensor) -> tuple[Any, ...]:
    """Derivatives by those inputs that have them, which can be differentiated again."""
    wanted = [t for t in inputs if t.requires_grad]
    gradients = iter(torch.autograd.grad(y, wanted, grad, create_graph=True))
    return tuple(next(gradients) if t.requires_grad else None for t in inputs)
