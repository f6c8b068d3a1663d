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
from cscnn.conv import CliffordSteerableConv
from cscnn.conv.options import check_padding_modes
from cscnn.testing.errors import relative_error
from cscnn.testing.values import Field


def grid_equivariance_errors(
    module: Field,
    algebra: CliffordAlgebra,
    shape: Sequence[int],
    *,
    spacing: Sequence[float] | None = None,
    padding_mode: str | Sequence[str] | None = None,
    group: str = "O",
    step: int = 1,
    seed: int = 0,
) -> dict[str, float]:
    """Violations of the symmetries that are exact on grids, in float64.

    Args:
        module: maps fields (batch, channels, *grid, blades) to fields on the same grid.
        shape: (batch, channels, *grid).
        spacing: of the grid, if it differs between axes.
        padding_mode: what lies beyond the borders, one for all axes or one per axis; by default
            that of the steerable convolutions in the module. Axes with different modes cannot be
            exchanged.
        group: ``"O"``, ``"SO"``, ``"O+"`` or ``"SO+"``, for networks of such kernels.
        step: translations are by multiples of it, for networks with coarser grids inside.

    Returns:
        ``"translation"``: cyclic shifts by a random number of points along each axis that is
        circular, or along all if none is: they do not hold then. ``"point group"``: the rotations
        by 90 degrees, flips and permutations of axes in `grid_symmetries`; they hold at walls
        and open borders too.
    """
    check_algebra(algebra)
    check_int("step", step, low=1)
    if not isinstance(shape, Sequence) or len(shape) != 2 + algebra.dim:
        stars = ", *" * algebra.dim
        raise ValueError(f"shape must be (batch, channels{stars}) for {algebra}, got {shape!r}")
    modes = _modes(module, padding_mode, algebra.dim)
    periodic = [set(own) == {"circular"} for own in modes]
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
        drawn = [torch.randint(1, max(n // step, 2), (), generator=generator) for n in shape[2:]]
        moved = [along or not any(periodic) for along in periodic]
        shifts = [step * int(n) * m for n, m in zip(drawn, moved, strict=True)]
        axes = tuple(range(2, 2 + algebra.dim))
        translation = relative_error(module(x.roll(shifts, axes)), y.roll(shifts, axes))
        point_group = max(
            relative_error(
                module(transform_on_grid(algebra, g, x)), transform_on_grid(algebra, g, y)
            )
            for g in grid_symmetries(algebra, shape[2:], spacing, group, modes)
        )
    return {"translation": translation, "point group": point_group}


def _modes(
    module: Field, padding_mode: str | Sequence[str] | None, dim: int
) -> list[tuple[str, ...]]:
    """For each axis its padding modes: one, or that of each convolution."""
    if padding_mode is not None:
        return [(mode,) for mode in check_padding_modes(padding_mode, dim)]
    modules = module.modules() if isinstance(module, nn.Module) else ()
    convolutions = [m.padding_mode for m in modules if isinstance(m, CliffordSteerableConv)]
    return list(zip(*convolutions, strict=True)) or [()] * dim
