"""How far a forecaster sees, and the margin at open borders that follows from it."""

from __future__ import annotations

import copy
import logging
from collections.abc import Sequence

import numpy as np
import torch

from cscnn.forecasting.forecaster import Forecaster


def receptive_field(forecaster: Forecaster, grid: Sequence[int], seed: int = 0) -> tuple[int, ...]:
    """Distance in points, along each axis, up to which the input matters for the output.

    Found from the gradient of the central output of a random input; parts below 1e-10 of its
    largest entry are rounding of spectral convolutions, if the forecaster is in float64.
    """
    task = forecaster.task
    shape = (1, task.in_channels, *grid, task.algebra.n_blades)
    noise = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    x = noise.to(forecaster.device, forecaster.dtype).requires_grad_()
    centre = tuple(n // 2 for n in grid)
    with torch.enable_grad():
        y = task.output_type.extract(forecaster.predict(x)).flatten(2)
        y = y[..., int(np.ravel_multi_index(centre, tuple(grid)))]
        if not y.requires_grad:
            return (0,) * task.dim
        (gradient,) = torch.autograd.grad(y.square().sum(), x)
    size = gradient.abs().amax((0, 1, -1))
    seen = (size > 1e-10 * size.max()).nonzero()
    radii = []
    for axis, (n, mode) in enumerate(zip(grid, task.padding_mode, strict=True)):
        distance = (seen[:, axis] - centre[axis]).abs()
        if mode == "circular":
            distance = torch.minimum(distance, n - distance)
        radii.append(int(distance.max()) if len(distance) else 0)
    return tuple(radii)


def default_margin(forecaster: Forecaster, grid: Sequence[int]) -> int:
    """Points at open borders of space from which a forecaster sees a border, for `Task.margin`.

    At most a quarter of the grid, so that half of it counts, which is logged. Zero unless time is
    an axis of the grid: forecasts of single frames are needed everywhere.

    Args:
        forecaster: whose borders are meant.
        grid: points along each axis, time included.
    """
    task = forecaster.task
    if task.time_axis is None:
        return 0
    open_axes = [axis for axis, m in enumerate(task.replace(margin=1).margins) if m]
    if not open_axes:
        return 0
    precise = copy.deepcopy(forecaster).to("cpu", torch.float64)
    seen = receptive_field(precise, grid)
    margin, most = max(seen[axis] for axis in open_axes), min(grid[a] for a in open_axes) // 4
    if margin > most:
        logging.getLogger("cscnn").warning(
            "the network sees %d points to each side, the grid has %s: only %d points at open "
            "borders are left out of losses and metrics. Take a larger grid, a smaller network, or "
            "set data.margin",
            margin, tuple(grid), most,
        )  # fmt: skip
    return min(margin, most)
