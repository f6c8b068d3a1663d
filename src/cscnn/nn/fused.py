"""Layer norm, gate and product of multivectors as one operation, for CPUs.

The backward pass is written by hand and computes again what the forward pass had, so that nothing
but the input is stored. Both work on parts of the field that fit into the cache: the formulas and
the passes are in `cscnn.nn.passes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cscnn._util.torch_private import (
    dispatch_mode_active,
    exporting,
    forward_derivatives_active,
    tracing,
)
from cscnn.algebra import CliffordAlgebra
from cscnn.nn import passes
from cscnn.nn.compiled import normed_gate_by_planes
from cscnn.nn.functional import (
    LARGE,
    from_planes,
    gate,
    layer_norm,
    mix_channels,
    smooth_norm,
    to_planes,
    widened,
)
from cscnn.nn.scratch import empty_like, scratch

#: Entries of a plane in each part of a field: a call takes longer than its work on fewer, and
#: more leave the cache (measured).
PART = 1 << 17


class Steps(NamedTuple):
    """What one operation does: a gate has a product if there are weights for it."""

    norm: bool
    gate: bool


def fused_layer_norm(x: Tensor, algebra: CliffordAlgebra, absolute: bool = False) -> Tensor:
    """The same as `layer_norm`, by hand-written passes where they apply, see `can_fuse`.

    In spacetime these are for ``absolute`` alone.
    """
    definite = min(algebra.metric) > 0
    if not ((definite or absolute) and can_fuse(x)):
        return layer_norm(x, algebra, absolute)
    return _fused(x, None, None, None, algebra, Steps(norm=True, gate=False))


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
    steps = Steps(norm=False, gate=True)
    if not can_fuse(x, mix):
        return plain(x, None, mix, weight, algebra, steps)
    return _fused(x, None, mix, weight, algebra, steps)


def normed_gate(
    x: Tensor,
    algebra: CliffordAlgebra,
    product: tuple[Tensor, Tensor] | None = None,
    shortcut: Tensor | None = None,
) -> Tensor:
    """The gate, or product gate, of layer_norm(x) + shortcut; the norm is by absolute squares.

    Args:
        x: field (batch, channels, *space, blades).
        algebra: the Clifford algebra.
        product: mix and weight of `product_gate`.
        shortcut: field of the shape of x.
    """
    mix, weight = product or (None, None)
    steps = Steps(norm=True, gate=True)
    if not (can_fuse(x, mix) and (shortcut is None or can_fuse(shortcut, mix))):
        return plain(x, shortcut, mix, weight, algebra, steps)
    return _fused(x, shortcut, mix, weight, algebra, steps)


def plain(
    x: Tensor,
    shortcut: Tensor | None,
    mix: Tensor | None,
    weight: Tensor | None,
    algebra: CliffordAlgebra,
    steps: Steps,
) -> Tensor:
    """The same by operations that torch knows: the reference, and for all that cannot be fused."""
    if torch.compiler.is_compiling() and steps.gate and x.dim() > 3 and x.stride(-1) != 1:
        return normed_gate_by_planes(x, shortcut, mix, weight, algebra, steps.norm)
    if steps.norm:
        x = layer_norm(x, algebra, absolute=True)
    if shortcut is not None:
        x = shortcut + x
    if mix is not None and weight is not None:
        return plain_product_gate(x, mix, weight, algebra)
    return gate(x) if steps.gate else x


def plain_product_gate(x: Tensor, mix: Tensor, weight: Tensor, algebra: CliffordAlgebra) -> Tensor:
    """`product_gate` by operations that torch knows."""
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


def _fused(
    x: Tensor,
    shortcut: Tensor | None,
    mix: Tensor | None,
    weight: Tensor | None,
    algebra: CliffordAlgebra,
    steps: Steps,
) -> Tensor:
    """On fields, see `plain`."""
    y: Tensor = _Fused.apply(x, shortcut, mix, weight, algebra, steps)
    return y


class _Fused(torch.autograd.Function):
    """`plain` by hand-written passes over planes (batch, channels, blades, points)."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        shortcut: Tensor | None,
        mix: Tensor | None,
        weight: Tensor | None,
        algebra: CliffordAlgebra,
        steps: Steps,
    ) -> Tensor:
        ctx.save_for_backward(x, shortcut, mix, weight)
        ctx.algebra, ctx.steps = algebra, steps
        y = _room(x)
        weights = _per_blade(mix, weight, algebra)
        for part, z, out in _parts(x, shortcut, y):
            if not steps.gate:
                passes.Norm(part, algebra).forward(out, z)
                continue
            normed, _ = _normed(part, z, algebra, steps)
            _gate(normed, weights, algebra).forward(out)
        return y.contiguous() if x.stride(-1) == 1 else y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        inputs, algebra, steps = ctx.saved_tensors, ctx.algebra, ctx.steps
        field, shortcut, mix, weight = inputs
        if torch.is_grad_enabled():  # derivatives of derivatives
            y = plain(field, shortcut, mix, weight, algebra, steps)
            return *gradients(y, inputs, grad), None, None
        by_x = _room(field)
        by_shortcut = None if shortcut is None else _room(field)
        weights = _per_blade(mix, weight, algebra)
        by_weights = [torch.zeros_like(t) for t in weights]
        for x, z, g, to_x, to_z in _parts(field, shortcut, grad, by_x, by_shortcut):
            if not steps.gate:
                passes.Norm(x, algebra).backward(g, to_x)
                continue
            normed, norm = _normed(x, z, algebra, steps)
            activation = _gate(normed, weights, algebra)
            by_normed = to_x if norm is None else empty_like(normed) if to_z is None else to_z
            activation.backward(g, by_normed)
            if isinstance(activation, passes.ProductGate):
                by_weights[0] += activation.by_mix
                by_weights[1] += activation.by_weight.view_as(by_weights[1])
            if norm is not None:
                norm.backward(by_normed, to_x)
        if mix is None:
            return by_x, by_shortcut, None, None, None, None
        by_mix, by_weight = (_by_grade(t, algebra) for t in by_weights)
        by_mix, by_weight = by_mix.permute(1, 2, 0), by_weight.flatten(1).T
        return by_x, by_shortcut, by_mix, by_weight, None, None


def _normed(
    x: Tensor, shortcut: Tensor | None, algebra: CliffordAlgebra, steps: Steps
) -> tuple[Tensor, passes.Norm | None]:
    """What enters the gate, contiguous, and the norm before it."""
    if not steps.norm:
        return empty_like(x).copy_(x), None
    norm, normed = passes.Norm(x, algebra), empty_like(x)
    norm.forward(normed, shortcut)
    return normed, norm


def _gate(x: Tensor, weights: tuple[Tensor, ...], algebra: CliffordAlgebra) -> passes.Gate:
    if not weights:
        return passes.Gate(x)
    mix, weight = weights
    return passes.ProductGate(x, mix, weight, algebra)


def _room(x: Tensor) -> Tensor:
    """An empty field of the shape of x, in planes, and no view: compilers look where views are."""
    last = x.dim() - 1
    order = (1, last, 0) if x.dim() == 3 else (0, 1, last, *range(2, last))
    return torch.empty_permuted(x.shape, order, dtype=x.dtype)


def _parts(*fields: Tensor | None) -> Iterator[tuple[Any, ...]]:
    """Parts (blades, batch, channels, points) of fields, in turn; None has None for its parts."""
    planes = [t if t is None else to_planes(t) for t in fields]
    assert planes[0] is not None
    batch, channels, _, points = planes[0].shape
    samples = _equal_steps(batch, PART // (channels * points))
    stretch = _equal_steps(points, PART // channels) if samples == 1 else points
    for i in range(0, batch, samples):
        for j in range(0, points, stretch):
            scratch.clear()
            parts = (t if t is None else t[i : i + samples, ..., j : j + stretch] for t in planes)
            yield tuple(t if t is None else _rows(t.permute(2, 0, 1, 3)) for t in parts)


def _equal_steps(count: int, limit: int) -> int:
    """The length of steps below a limit that make up a count, as equal as can be."""
    return -(-count // -(-count // max(limit, 1)))


def _rows(part: Tensor) -> Tensor:
    """The part with its points innermost in memory."""
    return part if part.stride(-1) == 1 else empty_like(part).copy_(part)


def _per_blade(
    mix: Tensor | None, weight: Tensor | None, algebra: CliffordAlgebra
) -> tuple[Tensor, ...]:
    """Weights of each blade: (blades, channels, channels or more) and (blades, 1, channels, 1)."""
    if mix is None or weight is None:
        return ()
    grades = list(algebra.grades)
    return (
        mix[..., grades].permute(2, 0, 1).contiguous(),
        weight[:, grades].T.contiguous()[:, None, :, None],
    )


def _by_grade(per_blade: Tensor, algebra: CliffordAlgebra) -> Tensor:
    """Sums over the blades of each grade: (blades, ...) -> (grades, ...)."""
    result = per_blade.new_zeros(algebra.n_grades, *per_blade.shape[1:])
    return result.index_add_(0, torch.tensor(algebra.grades), per_blade)


def gradients(y: Tensor, inputs: tuple[Tensor | None, ...], grad: Tensor) -> tuple[Any, ...]:
    """Derivatives by those inputs that have them, which can be differentiated again."""
    wanted = [t for t in inputs if t is not None and t.requires_grad]
    gradients = iter(torch.autograd.grad(y, wanted, grad, create_graph=True))
    return tuple(next(gradients) if t is not None and t.requires_grad else None for t in inputs)
