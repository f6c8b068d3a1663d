"""Equivariance of maps between fields on grids, to the symmetries that are exact there."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
from torch import nn

from cscnn._util.checks import check_int
from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.clifford import check_algebra
from cscnn.algebra.grids import grid_symmetries, transform_on_grid
from cscnn.testing.errors import relative_error
from cscnn.testing.values import Field


def grid_equivariance_errors(
    module: Field,
    algebra: CliffordAlgebra,
    shape: Sequence[int],
    *,
    spacing: Sequence[float] | None = None,
    group: str = "O",
    step: int = 1,
    seed: int = 0,
) -> dict[str, float]:
    """Violations of the symmetries that are exact on grids, in float64.

    Args:
        module: maps fields (batch, channels, *grid, blades) to fields on the same grid.
        shape: (batch, channels, *grid).
        spacing: of the grid, if it differs between axes.
        group: ``"O"``, ``"SO"``, ``"O+"`` or ``"SO+"``, for networks of such kernels.
        step: translations are by multiples of it, for networks with coarser grids inside.

    Returns:
        ``"translation"``: cyclic shifts by a random number of points along each axis (expect it to
        hold for circular padding only); ``"point group"``: the rotations by 90 degrees, flips
        and permutations of axes in `grid_symmetries`.
    """
    check_algebra(algebra)
    check_int("step", step, low=1)
    if not isinstance(shape, Sequence) or len(shape) != 2 + algebra.dim:
        stars = ", *" * algebra.dim
        raise ValueError(f"shape must be (batch, channels{stars}) for {algebra}, got {shape!r}")
    if isinstance(module, nn.Module):
        module = copy.deepcopy(module).to("cpu", torch.float64)
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(*shape, algebra.n_blades, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        y = module(x)
        if y.shape[2:-1] != x.shape[2:-1]:
            raise ValueError(
                f"the module must keep the grid, it maps {tuple(x.shape[2:-1])} to "
                f"{tuple(y.shape[2:-1])}"
            )
        shifts = [
            step * int(torch.randint(1, max(n // step, 2), (), generator=generator))
            for n in shape[2:]
        ]
        axes = tuple(range(2, 2 + algebra.dim))
        translation = relative_error(module(x.roll(shifts, axes)), y.roll(shifts, axes))
        point_group = max(
            relative_error(
                module(transform_on_grid(algebra, g, x)), transform_on_grid(algebra, g, y)
            )
            for g in grid_symmetries(algebra, shape[2:], spacing, group)
        )
    return {"translation": translation, "point group": point_group}
