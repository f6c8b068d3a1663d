"""Sparse bilinear maps on blades: the engine under every product of multivectors.

A product of two multivectors has one term per pair of blades, z_c += s x_a y_b, so a table of
n^2 terms says everything; the dense n x n x n Cayley tensor is never built. There are four ways to
run a table, equal up to rounding:

- `gathered`: two gathers, two products, one sum. Few operations; for small inputs, and as the
  reference.
- `by_planes`: one fused multiply-add per term over whole coefficient planes, all outputs of a
  round in one call. No intermediates; for large inputs.
- `by_blocks`: one product per left blade over the part of a matrix that it fills; for large
  matrices whose right factor is the same along all batch axes but the last.
- `unrolled`: the same arithmetic written as one expression per output blade, for
  ``torch.compile``, which fuses it into one loop without intermediates.

The derivative of a bilinear map is again bilinear with the roles of the slots exchanged, so
`_Bilinear` is its own backward, to any order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import permutations
from typing import Any

import torch
from torch import Tensor

from cscnn._util.torch_private import add_products_
from cscnn.algebra.blades import Term
from cscnn.algebra.blocks import Blocks
from cscnn.algebra.constants import constant

#: From this many entries on, planes beat gathers in eager mode (measured on a CPU).
PLANES_FROM = 1 << 15
#: Points per block when the memory order changes.
PLANES_BLOCK = 1 << 14


class BilinearTable:
    """Terms z_c += s x_a y_b, prepared for all six roles (input, input, output) of the slots.

    Slot 0 is the left factor, 1 the right factor, 2 the output.

    Args:
        terms: (left, right, out, coefficient) each.
        sizes: number of blades in the left, right and output slot.
        matrix: if given, the output is a matrix with rows of this length: its slot is two axes
            (..., rows, columns), and in memory the rows come one batch axis before the columns, as
            in the weights of a convolution.
        recipe: a cached function and its arguments that make this very table. Copies and pickles of
            modules then share it instead of carrying it along.
    """

    def __init__(
        self,
        terms: Iterable[Term],
        sizes: tuple[int, int, int],
        recipe: tuple[Callable[..., BilinearTable], tuple[Any, ...]],
        matrix: int | None = None,
    ):
        terms = tuple(terms)
        self.sizes = sizes
        self.recipe = recipe
        self.matrix = matrix
        #: roles -> the terms of every output
        self.rows: dict[tuple[int, ...], list[list[Term]]] = {}
        #: roles -> rounds of terms; within a round every output occurs at most once
        self.rounds: dict[tuple[int, ...], list[list[Term]]] = {}
        #: roles -> left index, right index, coefficient: a row per output, padded with zeros
        self.padded: dict[tuple[int, ...], tuple[tuple[tuple[Any, ...], ...], ...]] = {}
        for roles in permutations(range(3)):
            rows: list[list[Term]] = [[] for _ in range(sizes[roles[2]])]
            for *slots, coefficient in terms:
                left, right, out = (int(slots[role]) for role in roles)
                rows[out].append((left, right, out, coefficient))
            for row in rows:
                row.sort()  # a round then shares its left plane, which stays in the cache
            self.rows[roles] = rows
            width = max(len(row) for row in rows)
            self.rounds[roles] = [[row[r] for row in rows if r < len(row)] for r in range(width)]
            full = [row + [(0, 0, 0, 0)] * (width - len(row)) for row in rows]
            self.padded[roles] = tuple(
                tuple(tuple(t[i] for t in row) for row in full) for i in (0, 1, 3)
            )

        self.blocks: Blocks | None = (
            Blocks(terms, sizes[1], (sizes[2] // matrix, matrix)) if matrix else None
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return self.recipe

    def slot_axes(self, slot: int) -> int:
        """How many trailing axes hold the blades of a slot."""
        return 2 if slot == 2 and self.matrix else 1

    def planes(self, x: Tensor, slot: int) -> list[Tensor]:
        """x (..., blades of the slot) as one tensor for each blade."""
        rows = x.unbind(-2) if self.slot_axes(slot) == 2 else (x,)
        return [plane for row in rows for plane in row.unbind(-1)]

    def flat(self, x: Tensor, slot: int) -> Tensor:
        """x with the blades of the slot on one axis."""
        return x.flatten(-self.slot_axes(slot))

    def shaped(self, x: Tensor, slot: int) -> Tensor:
        """Inverse of `flat`."""
        return x.unflatten(-1, (-1, self.matrix)) if self.slot_axes(slot) == 2 else x

    def empty(self, like: Tensor, slot_like: int, slot: int) -> Tensor:
        """Room for the blades of ``slot``, as far from the innermost axis in memory as those of
        ``like``, which holds the blades of ``slot_like``."""
        axes = self.slot_axes(slot_like)
        batch = like.shape[:-axes]
        order = sorted(range(len(batch)), key=like.stride, reverse=True)
        place = sum(like.stride(axis) > like.stride(-1) for axis in order)
        shape = [batch[axis] for axis in order]
        columns = self.matrix if slot == 2 and self.matrix else self.sizes[slot]
        shape.insert(place, columns)
        position = {axis: i + (i >= place) for i, axis in enumerate(order)}
        slots = [place]
        if self.slot_axes(slot) == 2:
            before = max(place - 1, 0)
            shape.insert(before, self.sizes[slot] // columns)
            position = {axis: i + (i >= before) for axis, i in position.items()}
            slots = [before, place + 1]
        return like.new_empty(shape).permute(*(position[a] for a in range(len(batch))), *slots)


def bilinear(x: Tensor, y: Tensor, table: BilinearTable) -> Tensor:
    """z with z_c = sum of s x_a y_b over the terms of ``table``; batch axes broadcast.

    Args:
        x: (..., left blades).
        y: (..., right blades).

    Returns:
        (..., output blades), in memory where the larger factor has its blades, innermost or not.
        Tables with a ``matrix`` have an order of their own.
    """
    if x.device != y.device:
        raise ValueError(f"both factors must be on one device, got {x.device} and {y.device}")
    dtype = torch.promote_types(x.dtype, y.dtype)
    shape = torch.broadcast_shapes(x.shape[:-1], y.shape[:-1])
    x, y = x.to(dtype), y.to(dtype)
    swap = y.shape[:-1] == shape != x.shape[:-1] and not table.matrix
    larger, planes = y if swap else x, _use_planes(math.prod(shape) * x.shape[-1])
    if planes:
        x, y = _as_planes(x), _as_planes(y)  # before they are expanded: a small factor stays small
    x, y = (t.expand(*shape, t.shape[-1]) for t in (x, y))
    z = _apply(y, x, table, (1, 0, 2)) if swap else _apply(x, y, table, (0, 1, 2))
    place = _place_of_blades(larger)
    if table.matrix or torch.compiler.is_compiling() or (planes and place < larger.dim() - 1):
        return z  # it is there already
    # A copy of two axes would take a slow path of torch: pretend there are three.
    return z.movedim(-1, place).unsqueeze(0).contiguous().squeeze(0).movedim(place, -1)


def _place_of_blades(x: Tensor) -> int:
    """Which axis the blades of x (..., blades) are in memory, the last if they are innermost."""
    if x.stride(-1) in (0, 1):
        return x.dim() - 1
    outside = [a for a in range(x.dim() - 1) if x.shape[a] > 1 and x.stride(a) > x.stride(-1)]
    return max(outside, default=-1) + 1


def _use_planes(entries: int) -> bool:
    return not torch.compiler.is_compiling() and entries >= PLANES_FROM


def _as_planes(x: Tensor) -> Tensor:
    """The same values with the blades outside the innermost memory axis."""
    return _Planes.apply(x) if x.stride(-1) in (0, 1) else x


class _Planes(torch.autograd.Function):
    """The same tensor with the blades outermost in memory.

    Written out because copying in blocks that fit the cache is about twice as fast as
    ``contiguous()``. Its gradient needs no copy back: any memory order will do.
    """

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])
        planes = x.new_empty(x.shape[-1], rows.shape[0])
        for start in range(0, rows.shape[0], PLANES_BLOCK):
            block = slice(start, start + PLANES_BLOCK)
            planes[:, block].copy_(rows[block].T)
        return planes.unflatten(1, x.shape[:-1]).movedim(0, -1)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad

    @staticmethod
    def jvp(ctx: Any, dx: Tensor) -> Tensor:
        return _Planes.apply(dx)  # a tangent must have the strides of its primal

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], x: Tensor) -> tuple[Tensor, int]:
        assert in_dims[0] is not None
        return _Planes.apply(x.movedim(in_dims[0], 0)), 0


class _Bilinear(torch.autograd.Function):
    """`bilinear` for factors of equal batch shape, in any assignment of the slots."""

    @staticmethod
    def forward(x: Tensor, y: Tensor, table: BilinearTable, roles: tuple[int, int, int]) -> Tensor:
        dtype = x.dtype
        if dtype in (torch.bfloat16, torch.float16):  # sums of up to n terms: accumulate in float32
            x, y = x.float(), y.float()
        if torch.compiler.is_compiling():
            run = unrolled
        elif not _use_planes(x.numel()):
            run = gathered
        else:
            run = by_blocks if table.blocks and roles[1] == 1 and _shared(y) else by_planes
        return run(x, y, table, roles).to(dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, y, ctx.table, ctx.roles = inputs
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(x, y)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        x, y = ctx.saved_tensors
        a, b, c = ctx.roles
        if _use_planes(x.numel()) and ctx.table.slot_axes(c) == 1:
            grad = _as_planes(grad)
        grad_x = _apply(grad, y, ctx.table, (c, b, a)) if ctx.needs_input_grad[0] else None
        grad_y = _apply(grad, x, ctx.table, (c, a, b)) if ctx.needs_input_grad[1] else None
        return grad_x, grad_y, None, None

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        x: Tensor,
        y: Tensor,
        table: BilinearTable,
        roles: tuple[int, int, int],
    ) -> tuple[Tensor, int]:
        x, y = (
            t.movedim(dim, 0) if dim is not None else t.expand(info.batch_size, *t.shape)
            for t, dim in zip((x, y), in_dims[:2], strict=True)
        )
        return _apply(x, y, table, roles), 0


class _BilinearWithForwardMode(_Bilinear):
    """`_Bilinear` with forward-mode derivatives, which ``torch.compile`` does not accept."""

    @staticmethod
    def jvp(ctx: Any, dx: Tensor, dy: Tensor, *_: None) -> Tensor:
        x, y = ctx.saved_tensors
        return _apply(dx, y, ctx.table, ctx.roles) + _apply(x, dy, ctx.table, ctx.roles)


def _apply(x: Tensor, y: Tensor, table: BilinearTable, roles: tuple[int, int, int]) -> Tensor:
    compiling = torch.compiler.is_compiling()
    return (_Bilinear if compiling else _BilinearWithForwardMode).apply(x, y, table, roles)


def gathered(x: Tensor, y: Tensor, table: BilinearTable, roles: tuple[int, int, int]) -> Tensor:
    """Reference: all terms of an output blade side by side, then summed."""
    left, right, coefficient = table.padded[roles]
    products = table.flat(x, roles[0])[..., constant(left, torch.int64, x.device)]
    products = products * table.flat(y, roles[1])[..., constant(right, torch.int64, x.device)]
    z = (products * constant(coefficient, x.dtype, x.device)).sum(-1)
    return table.shaped(z, roles[2])


def by_planes(x: Tensor, y: Tensor, table: BilinearTable, roles: tuple[int, int, int]) -> Tensor:
    """One multiply-add per term, each over the coefficient planes of all points at once."""
    z = table.empty(x, roles[0], roles[2])
    xs, ys, zs = (table.planes(t, slot) for t, slot in zip((x, y, z), roles, strict=True))
    fill_planes(xs, ys, zs, table, roles)
    return z


def fill_planes(
    xs: Sequence[Tensor],
    ys: Sequence[Tensor],
    zs: Sequence[Tensor],
    table: BilinearTable,
    roles: tuple[int, int, int],
) -> None:
    """`by_planes` into planes that are there already."""
    first, *others = table.rounds[roles]
    nothing = zs[0].new_zeros(())
    for a, b, c, coefficient in first:
        if coefficient == 1:
            torch.mul(xs[a], ys[b], out=zs[c])
        else:
            torch.addcmul(nothing, xs[a], ys[b], value=float(coefficient), out=zs[c])
    for c in set(range(len(zs))) - {term[2] for term in first}:
        zs[c].zero_()
    for terms in others:
        add_products_(
            [zs[c] for _, _, c, _ in terms],
            [xs[a] for a, _, _, _ in terms],
            [ys[b] for _, b, _, _ in terms],
            [float(coefficient) for _, _, _, coefficient in terms],
        )


def by_blocks(x: Tensor, y: Tensor, table: BilinearTable, roles: tuple[int, int, int]) -> Tensor:
    """The matrix of a shared right factor, or with roles (2, 1, 0) the adjoint of that map."""
    assert table.blocks is not None
    z = table.empty(x, roles[0], roles[2])
    y = y[(0,) * (y.dim() - 2)]
    if roles[2] == 2:
        table.blocks.fill(x, y, z)
        return z
    xs, ys = table.planes(x, 2), y.unbind(-1)
    nothing = z.new_zeros(())
    for out, terms in zip(z.unbind(-1), table.rows[roles], strict=True):
        total = nothing  # the first term overwrites, the others add; one plane at a time in cache
        for a, b, _, coefficient in terms:
            total = torch.addcmul(total, xs[a], ys[b], value=coefficient, out=out)
    return z


def _shared(y: Tensor) -> bool:
    """Whether y (..., points, blades) is the same along all axes but the last two."""
    return y.dim() > 2 and not any(y.stride()[:-2])


def unrolled(x: Tensor, y: Tensor, table: BilinearTable, roles: tuple[int, int, int]) -> Tensor:
    """One sum of products per output blade, without in-place operations."""
    xs, ys = table.planes(x, roles[0]), table.planes(y, roles[1])
    planes = unrolled_planes(xs, ys, table, roles)
    if table.slot_axes(roles[0]) == table.slot_axes(roles[2]) == 1:
        # With the blades where x has them in memory, the fused loop runs along the innermost axis.
        place = _place_of_blades(x)
        return torch.stack(planes, place).movedim(place, -1)
    return table.shaped(torch.stack(planes, -1), roles[2])


def unrolled_planes(
    xs: Sequence[Tensor], ys: Sequence[Tensor], table: BilinearTable, roles: tuple[int, int, int]
) -> list[Tensor]:
    """`unrolled` from and to one tensor for each blade."""
    planes = []
    for row in zip(*table.padded[roles], strict=True):
        total = torch.zeros_like(xs[0])
        for a, b, coefficient in zip(*row, strict=True):
            if coefficient == 1:
                total = total + xs[a] * ys[b]
            elif coefficient == -1:
                total = total - xs[a] * ys[b]
            elif coefficient:
                total = total + coefficient * (xs[a] * ys[b])
        planes.append(total)
    return planes
