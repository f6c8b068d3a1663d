"""Whether convolution by derivatives is faster than direct and spectral convolution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

from cscnn._util.torch_private import constant_for_compilers
from cscnn.conv.derivatives.engine import cut_field
from cscnn.conv.derivatives.plan import Plan, make_plan
from cscnn.conv.spectral.cost import MARGIN, Rates, Work, device_rates, plan_backend

#: Time of a call inside a box, relative to the calls that `Rates` counts, which move much data.
CALL = 0.3
#: Time of a byte in cache, relative to one in memory.
CACHED = 0.2
#: Time of an operation with the small matrices of differences, relative to large ones.
SMALL = 1.5


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
    grades = zip(plan.operators, plan.grades, strict=True)
    operators = sum(len(numbers) * (g.stop - g.start) for numbers, g in grades)
    total = Work(calls=50)
    for channels, points in ((c_in, out), (c_out, grid)):  # forward, and the adjoint backward
        cut = cut_field(points, batch, channels, device)
        boxes = math.prod(math.ceil(n / size) for n, size in zip(points, cut.sizes, strict=True))
        boxes *= math.ceil(batch / cut.samples) * math.ceil(channels / cut.channels)
        on_box = _differences(plan, cut.sizes, kernel)
        values = batch * math.prod(points) * channels
        total += Work(
            calls=CALL * boxes * on_box.calls,
            operations=SMALL * values * on_box.operations,
            moved=itemsize * values * (CACHED * on_box.moved + 4 * len(plan.blades)),
        )
    values = batch * math.prod(grid)
    return total + Work(
        operations=3 * 2 * values * c_in * c_out * operators,
        moved=3 * CACHED * itemsize * values * (c_in + c_out) * operators,
    )


def _differences(plan: Plan, sizes: Sequence[int], kernel: Sequence[int]) -> Work:
    """Differences on a box: calls, and operations and numbers moved per value of the field."""
    total = Work()
    for blade in plan.blades:
        halo = 1.0
        for level, size, taps in zip(blade.levels, sizes, kernel, strict=True):
            columns = size + taps - 1
            terms = [term for terms in level for term in terms]
            products = sum(term.order > 0 for term in terms)
            total += Work(
                calls=len(terms),
                operations=2 * products * columns * halo,
                moved=3 * (len(terms) - products) * halo,
            )
            halo *= columns / size
    return total


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
