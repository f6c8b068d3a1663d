"""Whether convolution by derivatives is faster than direct and spectral convolution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

from cscnn.conv._torch import constant_for_compilers
from cscnn.conv.derivatives.engine import cut_field
from cscnn.conv.derivatives.plan import make_plan
from cscnn.conv.spectral.cost import MARGIN, Rates, Work, device_rates, plan_backend

#: Time of a call inside a box, relative to the calls that `Rates` counts, which move much data.
CALL = 0.1
#: Time of a byte in cache, relative to one in memory.
CACHED = 0.2
#: Time of an operation with the small matrices of differences, relative to large ones.
SMALL = 1.6


def derivative_work(
    signature: tuple[tuple[int, ...], str, int],
    grid: Sequence[int],
    out: Sequence[int],
    kernel: Sequence[int],
    batch: int,
    c_in: int,
    c_out: int,
    *,
    itemsize: int,
    device: str = "cpu",
) -> Work:
    """Work of a training step by derivatives.

    Args:
        signature: metric, group and order of the kernel.
        grid, out: points along each axis, of the input and of the output.
        kernel: kernel size.
        batch: number of samples.
        c_in, c_out: channels, not flattened.
        itemsize: bytes per number.
        device: type of the device.
    """
    plan = make_plan(*signature, False)
    sums = sum(len(uses) for blade in plan.blades for uses in blade.uses)
    grades = zip(plan.operators, plan.grades, strict=True)
    operators = sum(len(numbers) * (g.stop - g.start) for numbers, g in grades)
    total = Work(calls=50)
    for channels, points in ((c_in, out), (c_out, grid)):  # forward, and the adjoint backward
        cut = cut_field(points, batch, channels, device)
        n_boxes = math.prod(math.ceil(n / size) for n, size in zip(points, cut.sizes, strict=True))
        n_boxes *= math.ceil(batch / cut.samples)
        calls, operations = _differences(signature, cut.sizes, kernel)
        values = batch * math.prod(points) * channels
        groups = math.ceil(channels / cut.channels)
        total += Work(
            calls=CALL * n_boxes * groups * (calls + sums),
            operations=SMALL * values * operations,
            moved=itemsize * values * (CACHED * 3 * sums + 4 * len(plan.blades)),
        )
    points = batch * math.prod(grid)
    return total + Work(
        operations=3 * 2 * points * c_in * c_out * operators,
        moved=3 * CACHED * itemsize * points * (c_in + c_out) * operators,
    )


def _differences(
    signature: tuple[tuple[int, ...], str, int], sizes: Sequence[int], kernel: Sequence[int]
) -> tuple[int, float]:
    """Differences on a box: number of calls, and operations per value of the result."""
    calls, operations = 0, 0.0
    for blade in make_plan(*signature, False).blades:
        halo = 1.0
        for level, size, taps in zip(blade.levels, sizes, kernel, strict=True):
            columns = size + taps - 1
            terms = sum(len(terms) for terms in level)
            matrices = sum(term.order > 0 for terms in level for term in terms)
            calls += terms
            operations += 2 * matrices * columns * halo
            halo *= columns / size
    return calls, operations


@constant_for_compilers
def derivatives_are_faster(
    signature: tuple[tuple[int, ...], str, int],
    grid: tuple[int, ...],
    kernel: tuple[int, ...],
    shift: tuple[int, ...],
    circular: tuple[bool, ...],
    batch: int,
    c_in: int,
    c_out: int,
    parity: bool,
    itemsize: int,
    device: str,
) -> bool:
    """Whether derivatives are predicted to be faster than the better of the other backends.

    Args:
        signature: metric, group and order of the kernel.
        c_in, c_out: flattened channels, c·n.
        grid, kernel, shift, circular, batch, parity, itemsize, device: see `plan_tiles`.
    """
    options = (grid, kernel, shift, circular, batch, c_in, c_out, parity, itemsize, device)
    others = plan_backend(*options, "auto")[1]
    return _seconds(signature, *options, device_rates(device)) < MARGIN * others


@cache
def _seconds(
    signature: tuple[tuple[int, ...], str, int],
    grid: tuple[int, ...],
    kernel: tuple[int, ...],
    shift: tuple[int, ...],
    circular: tuple[bool, ...],
    batch: int,
    c_in: int,
    c_out: int,
    parity: bool,
    itemsize: int,
    device: str,
    rates: Rates,
) -> float:
    out = [n if c else n - 2 * s for n, s, c in zip(grid, shift, circular, strict=True)]
    n = 1 << len(grid)
    work = derivative_work(
        signature, grid, out, kernel, batch, c_in // n, c_out // n, itemsize=itemsize, device=device
    )
    return work.seconds(rates)
