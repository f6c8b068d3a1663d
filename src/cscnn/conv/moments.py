"""Sums of messages over edges, as moments: one operation with a derivative by hand, for CPUs.

With a kernel whose radial functions are weights W times features φ of an edge,

    M_n = sum over edges e at n of  (E(v_e) f_m(e)) ⊗ φ_e,        y_n = W · M_n.

The messages E(v) f are some multiply-adds per channel, so that both passes compute them from the
features of the senders and store none of them. They lie in memory as planes: one component of all
channels and edges of a group, which makes moments one matrix product for each receiver.

With g the derivative of a loss by y, and G_n = Wᵀ g_n,

    by W:  sum over n of g_n M_nᵀ        by φ_e:  (E(v_e) f)·G_n        by f:  E(v_e)ᵀ (G_n φ_e).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from cscnn.algebra.bilinear import by_planes
from cscnn.geometry.edges import Group
from cscnn.kernels.messages import MessageTable
from cscnn.nn.fused import gradients

#: Loops over a plane of one receiver, c_in times its edges, that are long enough.
LONG = 64


@dataclass(frozen=True)
class Sums:
    """Which edges are summed, and what their messages are.

    Attributes:
        table: of the messages.
        sender: (E,)
        groups: of the edges, at least one.
        n_receivers: number of receivers.
        again: whether messages are computed again for derivatives. By hand they always are.
    """

    table: MessageTable
    sender: Tensor
    groups: tuple[Group, ...]
    n_receivers: int
    again: bool


def summed(
    x: Tensor,
    features: Tensor,
    mixing: Tensor,
    points: Tensor,
    transport: Tensor | None,
    sums: Sums,
) -> Tensor:
    """The sum over the edges of each receiver, (receivers, c_out, blades), by hand.

    Args:
        x: (senders, c_in, blades).
        features: (E, F), with the weights of the edges.
        mixing: (c_out, c_in, basis elements, F).
        points: (E, d), relative positions.
        transport: (E, d, d), changes of frames, or None.
        sums: what is summed.
    """
    y: Tensor = _Sum.apply(x, features, mixing, points, transport, sums)
    return y.mT


def rows_of_edges(
    x: Tensor, points: Tensor, transport: Tensor | None, table: MessageTable
) -> Tensor:
    """Messages by operations that torch knows: (E, rows, c_in).

    Args:
        x: (E, c_in, blades), of the senders of the edges.
        The others as for `summed`.
    """
    operators = table.operators(points)
    if transport is not None:
        operators = operators @ table.algebra.action(transport)
    return torch.bmm(operators, x.mT)


def mixed_moments(rows: Tensor, features: Tensor, mixing: Tensor, table: MessageTable) -> Tensor:
    """The sum over k edges of each of n receivers: (n, blades, c_out).

    Args:
        rows: messages (n, k, rows, c_in).
        features: (n, k, F).
        mixing: (c_out, c_in, basis elements, F).
        table: of the messages.
    """
    moments = torch.bmm(rows.flatten(2).mT, features).unflatten(1, rows.shape[2:])
    # Together, since the gradient of a slice is a copy of the whole with zeros elsewhere.
    grades = table.components(moments).split([part.stop - part.start for part in table.parts], 1)
    outputs = []
    for part, grade in zip(table.parts, grades, strict=True):
        own = grade.flatten(1).unflatten(1, (part.blades, -1))
        outputs.append(own @ _weights(mixing, part.elements))
    return torch.cat(outputs, 1)


def plain(
    x: Tensor,
    features: Tensor,
    mixing: Tensor,
    points: Tensor,
    transport: Tensor | None,
    sums: Sums,
) -> Tensor:
    """`summed` by operations that torch knows: the reference, and for all that is not by hand."""

    def of_group(x: Tensor, features: Tensor, mixing: Tensor, group: Group) -> Tensor:
        index = group.edges.flatten()
        sent = x.index_select(0, sums.sender[index])
        moved = None if transport is None else transport[index]
        rows = rows_of_edges(sent, points[index], moved, sums.table)
        rows = rows.unflatten(0, group.edges.shape)
        own = masked(features[index].unflatten(0, group.edges.shape), group)
        return mixed_moments(rows, own, mixing, sums.table).mT

    return each_group(of_group, (x, features, mixing), sums)


def each_group(function: Callable[..., Tensor], inputs: tuple[Tensor, ...], sums: Sums) -> Tensor:
    """What a function (*inputs, group) -> (n, ...) makes of all groups: (receivers, ...).

    It is computed again for derivatives if there are many edges.
    """
    parts = []
    for group in sums.groups:
        if sums.again:
            part = checkpoint(
                function, *inputs, group, use_reentrant=False, preserve_rng_state=False
            )
        else:
            part = function(*inputs, group)
        parts.append(part)
    receivers = torch.cat([group.receivers for group in sums.groups])
    if len(receivers) == sums.n_receivers:
        return torch.cat(parts)[torch.argsort(receivers)]
    together = torch.cat(parts)
    shape = (sums.n_receivers, *together.shape[1:])
    return together.new_zeros(shape).index_copy(0, receivers, together)


def masked(values: Tensor, group: Group) -> Tensor:
    """Values (n, k, ...) of the edges of a group, zero where there is none."""
    if group.present is None:
        return values
    present = group.present.view(*group.present.shape, *(1,) * (values.dim() - 2))
    return torch.where(present, values, torch.zeros_like(values))


def _weights(mixing: Tensor, elements: tuple[int, ...]) -> Tensor:
    """What takes moments of one output blade to channels, (elements c_in F, c_out)."""
    return mixing[:, :, list(elements)].permute(2, 1, 3, 0).flatten(0, 2)


class _Passes:
    """What forward and backward pass share: see `summed` for the arguments."""

    def __init__(
        self,
        x: Tensor,
        features: Tensor,
        mixing: Tensor,
        points: Tensor,
        transport: Tensor | None,
        sums: Sums,
    ):
        self.features, self.mixing, self.points = features, mixing, points
        self.transport, self.sums, self.table = transport, sums, sums.table
        self.c_out, self.c_in, _, self.width = mixing.shape
        self.blades = x.shape[-1]
        # The blades first, since copying two axes is faster than copying three.
        self.x = x.mT.reshape(len(x), -1)
        self.weights = [_weights(mixing, part.elements) for part in self.table.parts]

    def forward(self) -> Tensor:
        y = self.x.new_zeros(self.sums.n_receivers, self.blades, self.c_out)
        for group in self.sums.groups:
            y.index_copy_(0, group.receivers, _GroupPasses(self, group).forward())
        return y

    def backward(self, grad: Tensor, needed: tuple[bool, ...]) -> list[Tensor | None]:
        """Derivatives by x, features, mixing, points and transport, as far as needed."""
        inputs = self.x, self.features, self.mixing, self.points, self.transport
        totals = [
            torch.zeros_like(t) if t is not None and wanted else None
            for t, wanted in zip(inputs, needed, strict=True)
        ]
        by_weights = [torch.zeros_like(w) for w in self.weights] if needed[2] else None
        for group in self.sums.groups:
            _GroupPasses(self, group).backward(grad, totals, by_weights)
        if totals[0] is not None:
            totals[0] = totals[0].unflatten(1, (self.blades, self.c_in)).mT
        if by_weights is not None and totals[2] is not None:
            for part, by in zip(self.table.parts, by_weights, strict=True):
                shape = (len(part.elements), self.c_in, self.width, self.c_out)
                totals[2][:, :, list(part.elements)] = by.view(shape).permute(3, 1, 0, 2)
        return totals


class _GroupPasses:
    """The same for one group, with what both passes compute."""

    def __init__(self, passes: _Passes, group: Group):
        self.passes, self.group = passes, group
        self.n, self.k = group.edges.shape
        self.index = group.edges.flatten()
        self.sender = passes.sums.sender.index_select(0, self.index)
        features = passes.features.index_select(0, self.index).view(self.n, self.k, -1)
        if group.present is not None:
            features.masked_fill_(~group.present.unsqueeze(-1), 0)
        self.features = features
        self.points = passes.points.index_select(0, self.index)
        # Loops over a plane should be long, and matrix products read what lies together.
        one_by_one = passes.c_in * self.k >= LONG
        self.tiles = (self.n, self.k) if one_by_one else (1, self.n * self.k)
        monomials = self._to_planes(passes.table.monomials(self.points), 1)
        if one_by_one:  # the same for all channels, so that a plane is one loop
            monomials = monomials.expand(-1, passes.c_in, -1, -1).movedim(-1, 1).contiguous()
            monomials = monomials.movedim(1, -1)
        self.monomials = monomials

    def _to_planes(self, values: Tensor, channels: int) -> Tensor:
        """(edges, numbers channels) -> (tiles, channels, edges of a tile, numbers)."""
        planes = values.unflatten(0, self.tiles).mT.contiguous()
        return planes.unflatten(1, (-1, channels)).movedim(1, -1)

    def _from_planes(self, planes: Tensor) -> Tensor:
        """The inverse of `_to_planes`."""
        return planes.movedim(-1, 1).flatten(1, 2).mT.flatten(0, 1)

    @cached_property
    def action(self) -> Tensor | None:
        """(edges, blades, blades)"""
        if self.passes.transport is None:
            return None
        return self.passes.table.algebra.action(self.passes.transport.index_select(0, self.index))

    @cached_property
    def sent(self) -> Tensor:
        """Features of the senders in their frames, (edges, blades, c_in)."""
        return self.passes.x.index_select(0, self.sender).unflatten(1, (self.passes.blades, -1))

    @cached_property
    def seen(self) -> Tensor:
        """The same in the frames of the receivers, as planes."""
        seen = self.sent if self.action is None else torch.bmm(self.action, self.sent)
        return self._to_planes(seen.flatten(1), self.passes.c_in)

    def _rows(self) -> Tensor:
        """Messages, (n, rows c_in, k)."""
        rows = by_planes(self.seen, self.monomials, self.passes.table.products, (1, 0, 2))
        rows = rows.movedim(-1, 1).flatten(1, 2)
        if self.tiles[0] == self.n:
            return rows
        return rows.squeeze(0).unflatten(1, (self.n, self.k)).transpose(0, 1)

    def _moments(self, rows: Tensor) -> list[Tensor]:
        """For each part (n, blades, elements c_in F)."""
        table = self.passes.table
        moments = torch.bmm(rows, self.features).unflatten(1, (table.count, -1))
        moments = table.components(moments)
        return [
            moments[:, part.start : part.stop].flatten(1).unflatten(1, (part.blades, -1))
            for part in table.parts
        ]

    def forward(self) -> Tensor:
        """(n, blades, c_out)"""
        moments = self._moments(self._rows())
        y = moments[0].new_empty(self.n, self.passes.blades, self.passes.c_out)
        start = 0
        for own, weights in zip(moments, self.passes.weights, strict=True):
            stop = start + own.shape[1]
            mixed = torch.bmm(weights.T.expand(own.shape[1], -1, -1), own.permute(1, 2, 0))
            y[:, start:stop] = mixed.permute(2, 0, 1)
            start = stop
        return y

    def backward(
        self, grad: Tensor, totals: list[Tensor | None], by_weights: list[Tensor] | None
    ) -> None:
        """Add the derivatives of this group to those that are not None.

        Args:
            grad: of all receivers, (receivers, blades, c_out).
            totals: see `_Passes.backward`; of x with the blades first.
            by_weights: by the weights of each part.
        """
        table, passes = self.passes.table, self.passes
        by_x, by_features, _, by_points, by_transport = totals
        grads = grad.index_select(0, self.group.receivers).split(
            [part.blades for part in table.parts], 1
        )
        rows = self._rows()
        if by_weights is not None:
            moments = self._moments(rows)
            for total, g, own in zip(by_weights, grads, moments, strict=True):
                total += torch.bmm(g.permute(1, 2, 0), own.transpose(0, 1)).sum(0).T
        if by_x is None and by_features is None and by_points is None and by_transport is None:
            return
        by_moments = self._by_moments(grads)
        if by_features is not None:
            own = masked(torch.bmm(rows.mT, by_moments), self.group)
            by_features.index_add_(0, self.index, own.flatten(0, 1))
        by_rows = torch.bmm(by_moments, self.features.mT)
        if self.tiles[0] != self.n:
            by_rows = by_rows.transpose(0, 1).flatten(1).unsqueeze(0)
        by_rows = by_rows.unflatten(1, (table.count, -1)).movedim(1, -1)
        if by_points is not None:
            by_monomials = by_planes(by_rows, self.seen, table.products, (2, 1, 0))
            by_monomials = self._from_planes(by_monomials.sum(1, keepdim=True))
            with torch.enable_grad():
                points = self.points.detach().requires_grad_()
                monomials = table.monomials(points)
            by_points.index_add_(
                0, self.index, *torch.autograd.grad(monomials, points, by_monomials)
            )
        if by_x is None and by_transport is None:
            return
        by_seen = by_planes(by_rows, self.monomials, table.products, (2, 0, 1))
        by_sent = self._from_planes(by_seen)
        if self.action is not None:
            by_sent = by_sent.unflatten(1, (passes.blades, -1))
            if by_transport is not None:
                self._add_by_transport(by_transport, torch.bmm(by_sent, self.sent.mT))
            by_sent = torch.bmm(self.action.mT, by_sent).flatten(1)
        if by_x is not None:
            by_x.index_add_(0, self.sender, by_sent)

    def _by_moments(self, grads: tuple[Tensor, ...]) -> Tensor:
        """(n, rows c_in, F)"""
        table, passes = self.passes.table, self.passes
        by_components = grads[0].new_empty(self.n, table.size, passes.c_in * passes.width)
        for part, g, weights in zip(table.parts, grads, passes.weights, strict=True):
            own = torch.bmm(g.transpose(0, 1), weights.T.expand(part.blades, -1, -1))
            place = by_components[:, part.start : part.stop].flatten(1)
            place.unflatten(1, (part.blades, -1)).copy_(own.transpose(0, 1))
        by_moments = by_components
        if table.repeated:
            by_moments = by_components.new_zeros(self.n, table.count, by_components.shape[-1])
            for component, (row, sign) in enumerate(zip(table.rows, table.signs, strict=True)):
                by_moments[:, row].add_(by_components[:, component], alpha=sign)
        return by_moments.view(self.n, -1, passes.width)

    def _add_by_transport(self, total: Tensor, by_action: Tensor) -> None:
        assert self.passes.transport is not None
        with torch.enable_grad():
            transport = self.passes.transport.index_select(0, self.index).requires_grad_()
            action = self.passes.table.algebra.action(transport)
        total.index_add_(0, self.index, *torch.autograd.grad(action, transport, by_action))


class _Sum(torch.autograd.Function):
    """`summed`, as (receivers, blades, c_out)."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        features: Tensor,
        mixing: Tensor,
        points: Tensor,
        transport: Tensor | None,
        sums: Sums,
    ) -> Tensor:
        ctx.save_for_backward(x, features, mixing, points, transport)
        ctx.sums = sums
        return _Passes(x, features, mixing, points, transport, sums).forward()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        x, features, mixing, points, transport = ctx.saved_tensors
        if torch.is_grad_enabled():  # derivatives of derivatives
            inputs = (x, features, mixing, points) + (() if transport is None else (transport,))
            y = plain(x, features, mixing, points, transport, ctx.sums).mT
            by = gradients(y, inputs, grad)
            return *by, *(None,) * (6 - len(by))
        passes = _Passes(x, features, mixing, points, transport, ctx.sums)
        return *passes.backward(grad, ctx.needs_input_grad[:5]), None
