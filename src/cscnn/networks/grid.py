"""`Grid`: what a network on grids knows of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from cscnn.conv.options import check_padding_modes
from cscnn.conv.padding import WALLS

T = TypeVar("T")


@dataclass(frozen=True)
class Grid:
    """Distances of points, and what lies beyond the borders.

    Args:
        spacing: distance of neighbouring points, one for all axes or one per axis, in units in
            which the metric is ±1 (for spacetime c Δt and Δx).
        padding_mode: ``"zeros"``, ``"circular"``, ``"reflect"``, ``"replicate"``, ``"symmetric"``,
            ``"extrapolate"`` (one-sided differences), ``"wall"`` or ``"conductor"`` (mirrors of
            multivectors, see `cscnn.conv.padding`), one for all axes or one per axis. Which to
            take: docs/howto/walls.md.
    """

    spacing: float | tuple[float, ...] = 1.0
    padding_mode: str | tuple[str, ...] = "zeros"

    def __post_init__(self) -> None:
        for name in ("spacing", "padding_mode"):
            value = getattr(self, name)
            if isinstance(value, Sequence) and not isinstance(value, str):
                object.__setattr__(self, name, tuple(value))
        modes = self.padding_mode
        check_padding_modes(modes, 1 if isinstance(modes, str) else len(modes))

    def spacings(self, dim: int) -> tuple[float, ...]:
        """The distance of points along each axis."""
        return _per_axis("spacing", self.spacing, dim)

    def padding_modes(self, dim: int) -> tuple[str, ...]:
        """The padding mode of each axis."""
        return _per_axis("padding_mode", self.padding_mode, dim)

    def component_modes(self, dim: int) -> tuple[str, ...]:
        """The same for channels that do not know how they transform: at walls they repeat."""
        modes = self.padding_modes(dim)
        return tuple("symmetric" if mode in WALLS else mode for mode in modes)


def _per_axis(name: str, value: T | tuple[T, ...], dim: int) -> tuple[T, ...]:
    values = value if isinstance(value, tuple) else (value,) * dim
    if len(values) != dim:
        raise ValueError(f"{name} needs one value or one for each of {dim} axes, got {value}")
    return values
