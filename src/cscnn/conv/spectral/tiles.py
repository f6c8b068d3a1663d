"""Fields cut into the tiles of `overlap`, even and odd grades apart, and put together again."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from cscnn.conv.spectral.overlap import AxisTiles

#: Bytes of one array of tiles, by device: what a processor's cache holds, or enough for a GPU.
CHUNK_BYTES = {"cpu": 4 << 20}
CHUNK_BYTES_ELSEWHERE = 256 << 20

#: Slices of the batch and of the tiles along the first axis.
Chunk = tuple[slice, slice]


def chunk_bytes(device: str) -> int:
    """Bytes of one array of tiles on a type of device."""
    return CHUNK_BYTES.get(device, CHUNK_BYTES_ELSEWHERE)


class Slot(NamedTuple):
    """Where the blades of one grade are among all of them and among those of the same parity."""

    parity: int
    blades: slice
    slots: slice


@cache
def slots_by_parity(grades: tuple[int, ...]) -> tuple[tuple[Slot, ...], tuple[int, int]]:
    """A slot per grade, and the number of blades of each parity."""
    filled, blade, slots = [0, 0], 0, []
    for k, size in enumerate(grades):
        start = filled[k % 2]
        slots.append(Slot(k % 2, slice(blade, blade + size), slice(start, start + size)))
        filled[k % 2] += size
        blade += size
    return tuple(slots), (filled[0], filled[1])


class FieldTiles:
    """Fields as two arrays of tiles [p1, .., pd, tiles, channels], for even and for odd grades."""

    def __init__(
        self, axes: tuple[AxisTiles, ...], grades: tuple[int, ...], batch: int, like: Tensor
    ):
        self.axes, self.grades, self.batch, self.like = axes, grades, batch, like
        self.slots, self.sizes = slots_by_parity(grades)
        self.n = sum(self.sizes)

    def chunks(self, channels: int) -> Iterator[Chunk]:
        """Slices of the batch and of the tiles along the first axis, of bounded size."""
        limit = chunk_bytes(self.like.device.type)
        row = math.prod(a.count for a in self.axes[1:]) * math.prod(a.tile for a in self.axes)
        row *= channels * max(self.sizes) * self.like.element_size()
        first = self.axes[0].count
        rows = max(1, min(limit // row, self.batch * first))
        if rows < first:
            rows = math.ceil(first / math.ceil(first / rows))  # even pieces
            for b in range(self.batch):
                for start in range(0, first, rows):
                    yield slice(b, b + 1), slice(start, min(start + rows, first))
        else:
            samples = math.ceil(self.batch / math.ceil(self.batch / (rows // first)))
            for start in range(0, self.batch, samples):
                yield slice(start, min(start + samples, self.batch)), slice(0, first)

    def spread(self, x: Tensor, *, overlapping: bool) -> list[Tensor]:
        """Field (batch, c·n, *grid) -> [batch, *line, c·blades] per parity, ready to cut.

        Overlapping lines hold what the tiles see, padded as the axis asks; the others hold what the
        tiles keep of a field on the output grid, zeros behind.
        """
        field = x.unflatten(1, (-1, self.n))
        channels, grid = field.shape[1], field.shape[3:]
        if overlapping:
            lengths, starts = [a.length for a in self.axes], [-a.start for a in self.axes]
        else:
            lengths, starts = [a.count * a.step for a in self.axes], [0] * len(grid)
        new = self.like.new_empty if lengths == list(grid) else self.like.new_zeros
        arrays = [new(self.batch, *lengths, channels, size) for size in self.sizes]
        inside = (slice(None), *(slice(s, s + n) for s, n in zip(starts, grid, strict=True)))
        order = (0, *range(3, field.dim()), 1, 2)
        for slot in self.slots:
            target = arrays[slot.parity][inside][..., slot.slots]
            target.copy_(field[:, :, slot.blades].permute(order))
        if overlapping:
            for array in arrays:
                for i, axis in enumerate(self.axes):
                    if axis.circular:
                        _wrap(array, i + 1, starts[i], axis.size)
        return [a.flatten(-2) for a in arrays]

    def alone(self, x: Tensor, chunk: Chunk, *, overlapping: bool) -> tuple[FieldTiles, Tensor]:
        """A chunk as all there is, and what its tiles see of a field.

        Overlapping tiles see a field on the input grid, the others what they keep of one on the
        output grid.
        """
        samples, rows = chunk
        first, count = self.axes[0], rows.stop - rows.start
        x = x[samples]
        if count < first.count:
            start = rows.start * first.step + (first.start if overlapping else 0)
            stop = start + (
                (count - 1) * first.step + first.tile if overlapping else count * first.step
            )
            if overlapping and first.circular:
                places = torch.arange(start, stop, device=x.device) % first.size
                x, first = x.index_select(2, places), replace(first, start=0, circular=False)
            else:
                first = replace(first, start=min(start, 0))
                x = x[:, :, max(start, 0) : stop]
            first = replace(first, count=count)
        return FieldTiles((first, *self.axes[1:]), self.grades, len(x), self.like), x

    def cut(self, array: Tensor, *, overlapping: bool) -> Tensor:
        """The tiles out of a spread array: [p1, .., pd, tiles, channels]."""
        d = len(self.axes)
        strides = array.stride()
        steps = [a.step * s for a, s in zip(self.axes, strides[1:], strict=False)]
        widths = [a.tile if overlapping else a.step for a in self.axes]
        counts = [a.count for a in self.axes]
        view = array.as_strided(
            (self.batch, *counts, *widths, array.shape[-1]),
            (strides[0], *steps, *strides[1 : 1 + d], 1),
        )
        order = (*range(1 + d, 1 + 2 * d), *range(1 + d), 1 + 2 * d)
        return view.permute(order).contiguous()

    def keep(self, array: Tensor, chunk: Chunk, tiles: Tensor, *, add: bool) -> None:
        """Put the outputs of a chunk, [p1 · .. · pd, tiles · channels], where they belong, or add
        them to what is there."""
        d = len(self.axes)
        split = [n for a in self.axes for n in (a.count, a.step)]
        target = array.view(self.batch, *split, -1)
        # (batch, count1, step1, ..) -> (step1, .., stepd, batch, count1, .., countd, channels)
        order = (*range(2, 2 + 2 * d, 2), 0, *range(1, 1 + 2 * d, 2), 1 + 2 * d)
        part = target[chunk].permute(order)
        if add:
            part.add_(tiles.view(part.shape))
        else:
            part.copy_(tiles.view(part.shape))

    def kept(self, channels: int) -> list[Tensor]:
        """Arrays for `keep`: [batch, *line, c·blades] per parity."""
        lengths = [a.count * a.step for a in self.axes]
        return [self.like.new_empty(self.batch, *lengths, channels * size) for size in self.sizes]

    def gather(self, arrays: Sequence[Tensor], bias: Tensor | None, dtype: torch.dtype) -> Tensor:
        """The field (batch, c·n, *grid) on the output grid from arrays filled by `keep`."""
        grid = [a.out for a in self.axes]
        d, channels = len(grid), arrays[0].shape[-1] // self.sizes[0]
        wide = dtype if bias is None else arrays[0].dtype  # add before rounding
        field = arrays[0].new_empty(self.batch, channels, self.n, *grid, dtype=wide)
        inside = (slice(None), *(slice(n) for n in grid))
        for slot in self.slots:
            source = arrays[slot.parity][inside].unflatten(-1, (channels, -1))[..., slot.slots]
            field[:, :, slot.blades].copy_(source.permute(0, 1 + d, 2 + d, *range(1, 1 + d)))
        field = field.flatten(1, 2)
        if bias is not None:
            field.add_(bias.to(field.dtype).reshape(-1, *(1,) * d))
        return field.to(dtype)


def _wrap(array: Tensor, axis: int, start: int, size: int) -> None:
    """Continue ``size`` points from ``start`` on periodically over the axis, in place."""
    if start:
        array.narrow(axis, 0, start).copy_(array.narrow(axis, size, start))
    done, length = start + size, array.shape[axis]
    while done < length:
        piece = min(size, length - done)
        array.narrow(axis, done, piece).copy_(array.narrow(axis, done - size, piece))
        done += piece
