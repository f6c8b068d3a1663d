"""Where the terms of a bilinear map with matrices as output are: one rectangle per left blade.

Kernels are such maps: of radial functions, one set per channel pair, and of monomials of the
sampling points, the same for all of them. A radial function fills the block between two grades, so
a few large products make the matrix, and its zeros on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, product

import torch
from torch import Tensor

from cscnn.algebra.blades import Term
from cscnn.algebra.constants import constant


@dataclass(frozen=True)
class Block:
    """The smallest rectangle that holds all terms of one left blade.

    Attributes:
        left: the blade.
        rows, columns: where the rectangle is.
        fresh: whether none of its entries is in a block before it, nor among the blanks.
    """

    left: int
    rows: range
    columns: range
    fresh: bool


class Blocks:
    """All blocks of a table.

    Args:
        terms: (left, right, out, coefficient) each, the output in row-major order.
        n_right: number of blades in the right slot.
        shape: rows and columns of the output.

    Attributes:
        blocks: in the order to write them.
        blanks: (row, columns), entries to set to zero first.
    """

    def __init__(self, terms: Sequence[Term], n_right: int, shape: tuple[int, int]):
        self.blocks: list[Block] = []
        factors: list[list[float]] = []  # for every entry of every block, its sum of right blades
        seen: set[tuple[int, int]] = set()
        blank = {(row, column) for row in range(shape[0]) for column in range(shape[1])}
        # In order of their first entries, row by row, as the matrix lies in memory.
        for left in dict.fromkeys(a for a, *_ in sorted(terms, key=lambda term: term[2])):
            mine = [(*divmod(out, shape[1]), b, s) for a, b, out, s in terms if a == left]
            rows, columns = (
                range(min(i), max(i) + 1) for i in zip(*(m[:2] for m in mine), strict=True)
            )
            entries = {entry: [0.0] * n_right for entry in product(rows, columns)}
            for row, column, right, sign in mine:
                entries[row, column][right] += sign
            fresh = seen.isdisjoint(entries)
            blank -= entries.keys() if fresh else set()
            seen.update(entries)
            self.blocks.append(Block(left, rows, columns, fresh))
            factors += entries.values()
        self._factors = tuple(map(tuple, factors))
        self.blanks: list[tuple[int, slice]] = []
        for _, run in groupby(enumerate(sorted(blank)), lambda e: (e[1][0], e[1][1] - e[0])):
            (_, (row, start)), *others = run
            self.blanks.append((row, slice(start, start + 1 + len(others))))

    def fill(self, x: Tensor, y: Tensor, z: Tensor) -> None:
        """Write the bilinear map of x and y into z.

        Args:
            x: (..., points, left blades).
            y: (points, right blades).
            z: (..., points, rows, columns), in any memory order.
        """
        for row, run in self.blanks:
            z[..., row, run].zero_()
        factors = constant(self._factors, y.dtype, y.device) @ y.T
        sizes = [len(block.rows) * len(block.columns) for block in self.blocks]
        for block, planes in zip(self.blocks, factors.split(sizes), strict=True):
            rows, columns = block.rows, block.columns
            left = x[..., block.left, None, None]
            right = planes.unflatten(0, (len(rows), len(columns))).movedim(-1, 0)
            target = z[..., rows.start : rows.stop, columns.start : columns.stop]
            if block.fresh:
                torch.mul(left, right, out=target)
            else:
                target.addcmul_(left, right)
