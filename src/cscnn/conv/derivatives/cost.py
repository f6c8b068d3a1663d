"""Whether convolution by derivatives is faster than direct and spectral convolution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

from cscnn.conv.derivatives.engine import cut_field
from cscnn.conv.derivatives.plan import Plan, make_plan
from cscnn.conv.sizes import ConvSizes
from cscnn.conv.spectral.cost import MARGIN, Rates, Work, device_rates, plan_backend

#: metric, whether there are tensors, group and order of a differential kernel
Operators = tuple[tuple[int, ...], bool, str, int]

#: Time of a call inside a box, relative to the calls that `Rates` counts, which move much data.
CALL = 0.3
#: Time of a byte in cache, relative to one in memory.
CACHED = 0.2
#: Time of an operation with the small matrices of differences, relative to large ones.
SMALL = 1.5


def derivative_work(sizes: ConvSizes, operators: Operators) -> Work:
    """Work of a training step by derivatives."""
    batch, itemsize = sizes.batch, sizes.itemsize
    plan = make_plan(*operators, False)
    c_in, c_out = sizes.c_in // len(plan.blades), sizes.c_out // len(plan.blades)
    grades = zip(plan.operators, plan.grades, strict=True)
    sums = sum(len(numbers) * (g.stop - g.start) for numbers, g in grades)
    total = Work(calls=50)
    for channels, points in (
        (c_in, sizes.out),
        (c_out, sizes.grid),
    ):  # forward, and the adjoint backward
        cut = cut_field(points, batch, channels, sizes.device)
        boxes = math.prod(math.ceil(n / m) for n, m in zip(points, cut.sizes, strict=True))
        boxes *= math.ceil(batch / cut.samples) * math.ceil(channels / cut.channels)
        on_box = _differences(plan, cut.sizes, sizes.kernel)
        values = batch * math.prod(points) * channels
        total += Work(
            calls=CALL * boxes * on_box.calls,
            operations=SMALL * values * on_box.operations,
            moved=itemsize * values * (CACHED * on_box.moved + 4 * len(plan.blades)),
        )
    values = batch * math.prod(sizes.grid)
    return total + Work(
        operations=3 * 2 * values * c_in * c_out * sums,
        moved=3 * CACHED * itemsize * values * (c_in + c_out) * sums,
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


def derivatives_are_faster(sizes: ConvSizes, operators: Operators) -> bool:
    """Whether derivatives are predicted to be faster than the better of the other backends.

    Args:
        sizes: of the convolution.
        operators: of the kernel.
    """
    seconds = _seconds(sizes, operators, device_rates(sizes.device))
    return seconds < MARGIN * plan_backend(sizes, "auto")[1]


@cache
def _seconds(sizes: ConvSizes, operators: Operators, rates: Rates) -> float:
    return derivative_work(sizes, operators).seconds(rates)
