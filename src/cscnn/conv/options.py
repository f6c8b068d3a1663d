"""Options of a convolution on a grid: one value for all axes or one per axis, checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from cscnn._util.checks import check_int, check_positive
from cscnn.conv.padding import MODES


class GridOptions(NamedTuple):
    """Options of `CliffordSteerableConv`, one value per axis."""

    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    padding_mode: tuple[str, ...]
    spacing: tuple[float, ...]


def check_options(
    dim: int, kernel_size: Any, stride: Any, padding: Any, padding_mode: Any, spacing: Any
) -> GridOptions:
    """The options of a grid of ``dim`` axes, or an error about the first that is wrong."""
    sizes = per_axis("kernel_size", kernel_size, dim)
    for size in sizes:
        if check_int("kernel_size", size, low=1) % 2 == 0:
            raise ValueError(
                f"kernel sizes must be odd, got {sizes}: an even kernel has no centre, so flipping "
                "it moves it off the grid and the symmetry is lost"
            )
    if padding is None or padding == "same":
        padding = tuple(size // 2 for size in sizes)
    modes = check_padding_modes(padding_mode, dim)
    spacings = tuple(float(s) for s in per_axis("spacing", spacing, dim))
    check_positive(spacing=spacings)
    return GridOptions(
        sizes,
        _integers("stride", per_axis("stride", stride, dim), low=1),
        _integers("padding", per_axis("padding", padding, dim), low=0),
        modes,
        spacings,
    )


def check_padding_modes(padding_mode: Any, dim: int) -> tuple[str, ...]:
    """The padding mode of each axis."""
    modes = per_axis("padding_mode", padding_mode, dim)
    for mode in modes:
        if mode not in MODES:
            raise ValueError(
                f"padding_mode must be one of {', '.join(MODES)}, got {mode!r}: circular for "
                "periodic axes, wall or conductor for walls, else what lies beyond an open border"
            )
    return modes


def check_causal_padding(time: int, padding: Sequence[int], modes: Sequence[str]) -> None:
    """Raise if a causal kernel would see the future beyond the borders of its time axis."""
    if modes[time] == "circular" and padding[time] > 0:
        others = tuple("zeros" if axis == time else mode for axis, mode in enumerate(modes))
        raise ValueError(
            f"circular padding along the time axis {time} shows the future to a causal kernel: "
            f"choose another mode for that axis, e.g. padding_mode={others}"
        )


def per_axis(name: str, value: Any, dim: int) -> tuple[Any, ...]:
    """One value per axis, from one for all of them or a sequence."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        return (value,) * dim
    if len(value) != dim:
        raise ValueError(f"{name} needs one value per axis, {dim} in all, got {tuple(value)}")
    return tuple(value)


def _integers(name: str, values: tuple[Any, ...], low: int) -> tuple[int, ...]:
    if any(isinstance(v, bool) or not isinstance(v, int) or v < low for v in values):
        raise ValueError(f"{name} must consist of integers of at least {low}, got {values}")
    return values


def grid_points(kernel_size: Sequence[int], spacing: Sequence[float]) -> Tensor:
    """Offsets of the kernel grid in C order, (N, d) float64, scaled into [-1, 1].

    One factor for all axes, so that the metric keeps its shape on anisotropic grids.
    """
    axes = [
        torch.arange(-(size // 2), size // 2 + 1, dtype=torch.float64, device="cpu") * step
        for size, step in zip(kernel_size, spacing, strict=True)
    ]
    largest = max(float(axis[-1]) for axis in axes)
    points = torch.cartesian_prod(*axes).reshape(-1, len(axes))
    return points / (largest or 1.0)
