"""Convolution with a differential kernel: differentiate, combine blades, mix channels.

1. Derivatives ∂^e □^m of all channels and blades: a few dozen, by short differences along one axis
   at a time, each a product with a small matrix.
2. Operators E_j(∇) □^m: signed sums of derivatives of blades. What they do to channels is not in
   them, so they serve all outputs.
3. Channels: for each grade one product of the weights with the operators that lead to it.

    y[o]  =  sum_j sum_i  w[o, i, j]  (E_j(∇) □^m f)[i]

Dense taps do all three at once, with a matrix of channels and blades for every tap.

The grid is cut into boxes and the channels into groups, so that memory is bounded and stays in the
processor's cache. Nothing is kept for the backward pass but the field. It applies the adjoint
operators to the gradient, once for both results:

    grad f = sum_j w_j^T (E_j^T g)        grad w_j = sum_x (E_j^T g) f^T
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import torch
from torch import Tensor

from cscnn.conv.derivatives.axes import Piece, piece
from cscnn.conv.derivatives.plan import BladePlan, Differences, Level, Term
from cscnn.conv.precision import full_precision

#: Points of a box along one axis, at most: longer pieces have larger matrices.
LONGEST_PIECE = 32
#: Points of a box, all samples together: fewer have much overhead.
BOX_POINTS = 2048
#: Numbers of a derivative on a box: what caches hold several dozens of, or enough for a GPU.
BOX_VALUES = {"cpu": 131072}
BOX_VALUES_ELSEWHERE = 1 << 21


class Box(NamedTuple):
    """Part of a batch of grids: which samples, and a range of points for each axis."""

    samples: slice
    ranges: tuple[tuple[int, int], ...]

    @property
    def inside(self) -> tuple[slice, ...]:
        """As an index of the grid."""
        return tuple(slice(*r) for r in self.ranges)


class Cut(NamedTuple):
    """How fields are cut: points of a box along each axis, its samples, its channels, at most."""

    sizes: tuple[int, ...]
    samples: int
    channels: int


def cut_field(grid: Sequence[int], batch: int, channels: int, device: str) -> Cut:
    """A good size of boxes."""
    values = BOX_VALUES.get(device, BOX_VALUES_ELSEWHERE)
    points = max(BOX_POINTS, values // channels)
    sizes = [_even(n, math.ceil(n / LONGEST_PIECE)) for n in grid]
    while math.prod(sizes) > points:
        axis = sizes.index(max(sizes))
        sizes[axis] = _even(sizes[axis], 2)
    samples = min(batch, max(1, points // math.prod(sizes)))
    groups = math.ceil(channels * samples * math.prod(sizes) / values)
    return Cut(
        tuple(sizes),
        _even(batch, math.ceil(batch / samples)),
        _even(channels, min(groups, channels)),
    )


def _even(size: int, parts: int) -> int:
    """Length of pieces that are as equal as can be."""
    return math.ceil(size / parts)


def boxes(grid: Sequence[int], batch: int, cut: Cut) -> Iterator[Box]:
    """All boxes of a batch of grids."""
    starts = (range(0, n, size) for n, size in zip(grid, cut.sizes, strict=True))
    corners = list(product(*starts))
    for first in range(0, batch, cut.samples):
        for corner in corners:
            rows = zip(corner, cut.sizes, grid, strict=True)
            ranges = tuple((start, min(start + size, n)) for start, size, n in rows)
            yield Box(slice(first, min(first + cut.samples, batch)), ranges)


class _Operators:
    """Operators of a kernel applied to fields (batch, c, n, *grid) on boxes.

    Args:
        differences: which operators.
        grid: points of the field that is convolved.
        adjoint: whether to apply the adjoint operators, from derivatives to the field.
        like: a tensor of the dtype and device to compute in.
    """

    def __init__(self, differences: Differences, grid: Sequence[int], adjoint: bool, like: Tensor):
        self.axes = differences.axes(grid)
        self.plan = differences.plan(adjoint)
        self.adjoint, self.like = adjoint, like
        self._memory: dict[str, Tensor] = {}
        self._buffers: dict[tuple[str, tuple[int, ...]], Tensor] = {}

    @property
    def grid(self) -> tuple[int, ...]:
        """Points of the results."""
        return tuple(axis.size if self.adjoint else axis.out for axis in self.axes)

    def weights(self, weights: Tensor, group: slice) -> list[Tensor]:
        """Weights (c, c', operators) for each grade: (c, operators·c' of the group)."""
        chosen = weights[:, group].transpose(1, 2)
        return [chosen[:, list(operators)].flatten(1) for operators in self.plan.operators]

    def __call__(self, field: Tensor, box: Box, group: slice) -> list[Tensor]:
        """For each grade the operators that lead to it: (blades, operators·channels, points)."""
        pieces = [
            piece(axis, *ends, self.adjoint, self.like.dtype, str(self.like.device))
            for axis, ends in zip(self.axes, box.ranges, strict=True)
        ]
        source = self._collect(field[box.samples, group], pieces)
        channels, samples = source.shape[1:3]
        rows, *others = (p.matrices.shape[1] for p in pieces)
        shape = (channels * samples, rows, math.prod(others))
        results = [
            self._buffer(f"grade {k}", g.stop - g.start, len(operators), *shape)
            for k, (g, operators) in enumerate(
                zip(self.plan.grades, self.plan.operators, strict=True)
            )
        ]
        targets = [[blade.unbind(0) for blade in result.unbind(0)] for result in results]
        for blade, plan in zip(source.unbind(0), self.plan.blades, strict=True):
            fields = self._before_first_axis(blade, plan, pieces)
            for terms, sums in zip(plan.levels[0], plan.uses, strict=True):
                made = None
                if len(sums) > 1:
                    made = self._buffer("derivative", *shape)
                    _add_differences(made, terms, pieces[0], fields, 1, first=True)
                for grade, to, operator, factor, first in sums:
                    target = targets[grade][to][operator]
                    if made is None:
                        _add_differences(target, terms, pieces[0], fields, factor, first=first)
                    else:
                        _add(target, made, factor, first=first)
        points = samples * shape[1] * shape[2]
        return [result.view(len(result), -1, points) for result in results]

    def _collect(self, field: Tensor, pieces: Sequence[Piece]) -> Tensor:
        """The points of a field (batch, c, n, *grid) that pieces need: (n, c, batch, *points)."""
        every = slice(None)
        field = field[(every, every, every, *(p.nearby for p in pieces))]
        for axis, p in enumerate(pieces):
            if p.chosen is not None:
                field = field.index_select(3 + axis, p.chosen)
        field = field.transpose(0, 2)
        return self._buffer("source", *field.shape).copy_(field)

    def _buffer(self, name: str, *shape: int) -> Tensor:
        """Memory that is used again for every box."""
        buffer = self._buffers.get((name, shape))
        if buffer is None:
            size = math.prod(shape)
            memory = self._memory.get(name)
            if memory is None or memory.numel() < size:
                memory = self._memory[name] = self.like.new_empty(size)
            buffer = self._buffers[name, shape] = memory[:size].view(shape)
        return buffer

    def _before_first_axis(
        self, blade: Tensor, plan: BladePlan, pieces: Sequence[Piece]
    ) -> list[Tensor]:
        """What is differentiated along axis 0 in the end, made of a blade (c, batch, *points).

        Returns:
            fields (c·batch, points along axis 0, other points)
        """
        fields, trail = [blade], 1
        for axis in reversed(range(1, len(pieces))):
            rows, columns = pieces[axis].matrices.shape[1:]
            fields = [field.reshape(-1, columns, trail) for field in fields]
            values = self._along(axis, fields, plan.orders[axis], pieces[axis])
            fields = self._sums(axis, plan.levels[axis], values)
            trail *= rows
        return [field.reshape(-1, pieces[0].matrices.shape[2], trail) for field in fields]

    def _along(
        self,
        axis: int,
        fields: Sequence[Tensor],
        orders: Sequence[Sequence[int]],
        along: Piece,
    ) -> dict[tuple[int, int], Tensor]:
        """Differences of fields (lead, columns, trail): (source, order) -> (lead, rows, trail)."""
        rows, (lead, _, trail) = along.matrices.shape[1], fields[0].shape
        values: dict[tuple[int, int], Tensor] = {}
        for source, (field, of_source) in enumerate(zip(fields, orders, strict=True)):
            wanted = list(of_source)
            if wanted[0] == 0 and along.start is not None:
                values[source, wanted.pop(0)] = field.narrow(1, along.start, rows)
            if trail == 1:
                for order in wanted:
                    made = self._buffer(f"axis {axis}, {source}, {order}", lead, rows)
                    torch.mm(field[..., 0], along.matrices[order].T, out=made)
                    values[source, order] = made[..., None]
            elif wanted:  # all orders at once, side by side
                matrices = along.matrices[wanted[0] : wanted[-1] + 1].flatten(0, 1)
                made = self._buffer(f"axis {axis}, {source}", lead, len(matrices), trail)
                torch.bmm(matrices.expand(lead, -1, -1), field, out=made)
                split = made.unflatten(1, (-1, rows))
                values.update({(source, o): split[:, o - wanted[0]] for o in wanted})
        return values

    def _sums(
        self, axis: int, level: Level, values: Mapping[tuple[int, int], Tensor]
    ) -> list[Tensor]:
        """The fields that a level makes, from differences of its sources."""
        results = []
        for number, terms in enumerate(level):
            source, order, factor = terms[0]
            result = values[source, order]
            if len(terms) > 1 or factor != 1:
                total = self._buffer(f"axis {axis}, sum {number}", *result.shape)
                _add(total, result, factor, first=True)
                for source, order, factor in terms[1:]:
                    total.add_(values[source, order], alpha=factor)
                result = total
            results.append(result)
        return results

    def keep(self, result: Tensor, box: Box, mixed: Sequence[Tensor]) -> None:
        """Put grades (blades, c, points) where they belong in a field (batch, c, n, *grid)."""
        target = result[(box.samples, slice(None), slice(None), *box.inside)]
        samples, channels, _, *points = target.shape
        for blades, values in zip(self.plan.grades, mixed, strict=True):
            part = values.view(-1, channels, samples, *points)
            target[:, :, blades].copy_(part.transpose(0, 2))


def _add_differences(
    target: Tensor,
    terms: Sequence[Term],
    along: Piece,
    fields: Sequence[Tensor],
    factor: float,
    *,
    first: bool,
) -> None:
    """Add factor · (the sum of differences) to the target, or write it if it is the first."""
    lead, rows, trail = target.shape
    for source, order, own in terms:
        field, alpha = fields[source], own * factor
        if order == 0 and along.start is not None:
            _add(target, field.narrow(1, along.start, rows), alpha, first=first)
        elif trail == 1:
            flat, matrix = target.view(lead, rows), along.matrices[order]
            flat.addmm_(field[..., 0], matrix.T, beta=not first, alpha=alpha)
        else:
            matrix = along.matrices[order].expand(lead, -1, -1)
            target.baddbmm_(matrix, field, beta=not first, alpha=alpha)
        first = False


def _add(target: Tensor, value: Tensor, factor: float, *, first: bool) -> None:
    if not first:
        target.add_(value, alpha=factor)
    elif factor == 1:
        target.copy_(value)
    else:
        torch.mul(value, factor, out=target)


# --- convolution ----------------------------------------------------------------------------------


def _like(x: Tensor) -> Tensor:
    """An empty tensor of the dtype to compute in: half precision is too coarse for differences."""
    dtype = x.dtype if x.dtype in (torch.float32, torch.float64) else torch.float32
    return x.new_empty(0, dtype=dtype)


def _mix(weights: Sequence[Tensor], columns: Sequence[Tensor], mixed: list[Tensor]) -> list[Tensor]:
    """Add what a group of channels contributes to each grade."""
    pairs = [(w.expand(len(c), -1, -1), c) for w, c in zip(weights, columns, strict=True)]
    if not mixed:
        return [w.bmm(c) for w, c in pairs]
    return [m.baddbmm_(w, c) for m, (w, c) in zip(mixed, pairs, strict=True)]


def convolve(x: Tensor, weights: Tensor, bias: Tensor | None, differences: Differences) -> Tensor:
    """Convolution of a field with a differential kernel.

    Args:
        x: (batch, c_in·n, *grid).
        weights: (c_out, c_in, operators).
        bias: (c_out·n,) or None.
        differences: the operators.

    Returns:
        (batch, c_out·n, *grid)
    """
    with full_precision(x.device.type):
        like = _like(x)
        apply = _Operators(differences, x.shape[2:], False, like)
        batch, c_in, c_out = x.shape[0], weights.shape[1], weights.shape[0]
        field = x.unflatten(1, (c_in, -1))
        cut = cut_field(apply.grid, batch, c_in, x.device.type)
        groups = [slice(i, min(i + cut.channels, c_in)) for i in range(0, c_in, cut.channels)]
        by_group = [apply.weights(weights.to(like.dtype), group) for group in groups]
        result = like.new_empty(batch, c_out, field.shape[2], *apply.grid)
        for box in boxes(apply.grid, batch, cut):
            mixed: list[Tensor] = []
            for group, w in zip(groups, by_group, strict=True):
                mixed = _mix(w, apply(field, box, group), mixed)
            apply.keep(result, box, mixed)
        result = result.flatten(1, 2)
        if bias is not None:
            result.add_(bias.to(like.dtype).reshape(-1, *(1,) * len(apply.grid)))
        return result.to(x.dtype)


def gradients(
    g: Tensor, x: Tensor, weights: Tensor, differences: Differences, needs_x: bool, needs_w: bool
) -> tuple[Tensor, Tensor]:
    """Gradients of field and weights; an empty tensor for one that is not needed."""
    with full_precision(x.device.type):
        like = _like(x)
        apply = _Operators(differences, x.shape[2:], True, like)
        batch, c_in, c_out = x.shape[0], weights.shape[1], weights.shape[0]
        field, gradient = x.unflatten(1, (c_in, -1)), g.unflatten(1, (c_out, -1))
        cut = cut_field(apply.grid, batch, c_out, x.device.type)
        groups = [slice(i, min(i + cut.channels, c_out)) for i in range(0, c_out, cut.channels)]
        adjoint = weights.to(like.dtype).transpose(0, 1)
        by_group = [apply.weights(adjoint, group) for group in groups]
        products = [[torch.zeros_like(w) for w in ws] for ws in by_group] if needs_w else []
        result = x.new_empty(field.shape) if needs_x else x.new_empty(0)
        for box in boxes(apply.grid, batch, cut):
            values = _by_grade(field, box, apply, like) if needs_w else []
            mixed: list[Tensor] = []
            for i, group in enumerate(groups):
                columns = apply(gradient, box, group)
                if needs_w:
                    for total, v, c in zip(products[i], values, columns, strict=True):
                        total.addbmm_(v, c.mT)
                if needs_x:
                    mixed = _mix(by_group[i], columns, mixed)
            if needs_x:
                apply.keep(result, box, mixed)
        grad_x = result.flatten(1, 2) if needs_x else result
        if not needs_w:
            return grad_x, x.new_empty(0)
        grad_weights = like.new_zeros(c_in, c_out, weights.shape[2])
        for group, totals in zip(groups, products, strict=True):
            for operators, total in zip(apply.plan.operators, totals, strict=True):
                rows = total.unflatten(1, (len(operators), -1)).transpose(1, 2)
                grad_weights[:, group, list(operators)] = rows
        return grad_x, grad_weights.transpose(0, 1).to(weights.dtype).contiguous()


def _by_grade(field: Tensor, box: Box, apply: _Operators, like: Tensor) -> list[Tensor]:
    """Values of a field (batch, c, n, *grid) on a box: (blades, c, points) for each grade."""
    part = field[(box.samples, slice(None), slice(None), *box.inside)].transpose(0, 2)
    values = part.to(like.dtype).contiguous().flatten(2)
    return [values[blades] for blades in apply.plan.grades]
