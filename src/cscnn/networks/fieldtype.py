"""`FieldType`: which components of each channel carry data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import torch
from torch import Tensor

from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.clifford import check_algebra
from cscnn.algebra.constants import constant


@dataclass(frozen=True)
class FieldType:
    """What the channels of a field hold: for each channel the grades that carry data.

    Components of other grades are zero in the data. Networks of multivectors need not know that,
    but losses must not count them, and networks of components are neither given nor asked for them.

    Args:
        algebra: the Clifford algebra.
        grades: one tuple of grades for each channel.

    Example:
        >>> smoke = FieldType(CliffordAlgebra((1, 1)), ((0, 1), (0,)))  # two scalars, one vector
        >>> smoke.channels, smoke.components
        (2, 4)
    """

    algebra: CliffordAlgebra
    grades: tuple[tuple[int, ...], ...]
    #: where components with data are in flattened channels and blades
    _positions: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_algebra(self.algebra)
        channels = tuple(self.grades)
        if not all(isinstance(grades, Sequence) for grades in channels):
            raise TypeError(
                f"grades must be one tuple of grades for each channel, such as ((0, 1),), "
                f"got {channels}"
            )
        object.__setattr__(self, "grades", tuple(map(tuple, channels)))
        top = self.algebra.n_grades - 1
        for channel, grades in enumerate(self.grades):
            if bad := [k for k in grades if not 0 <= k <= top]:
                raise ValueError(
                    f"channel {channel} has grade {bad[0]}, {self.algebra} has 0..{top}"
                )
        object.__setattr__(self, "_positions", _positions(self.algebra, self.grades))

    @classmethod
    def full(cls, algebra: CliffordAlgebra, channels: int) -> FieldType:
        """Channels in which every component carries data."""
        return cls(algebra, (tuple(range(algebra.n_grades)),) * channels)

    @property
    def channels(self) -> int:
        """Number of multivectors at each point."""
        return len(self.grades)

    @property
    def components(self) -> int:
        """Number of components that carry data at each point."""
        return len(self._positions)

    @property
    def mask(self) -> Tensor:
        """Where there are data: (channels, blades), boolean."""
        mask = torch.zeros(self.channels * self.algebra.n_blades, dtype=torch.bool)
        mask[list(self._positions)] = True
        return mask.unflatten(0, (self.channels, self.algebra.n_blades))

    def extract(self, x: Tensor) -> Tensor:
        """What carries data of (batch, channels, *grid, blades): (batch, components, *grid)."""
        flat = x.movedim(-1, 2).flatten(1, 2)
        if self.components == flat.shape[1]:
            return flat
        return flat.index_select(1, constant(self._positions, torch.int64, x.device))

    def insert(self, y: Tensor) -> Tensor:
        """Inverse of `extract`, with zeros elsewhere."""
        full = y.new_zeros(y.shape[0], self.channels * self.algebra.n_blades, *y.shape[2:])
        full = full.index_copy(1, constant(self._positions, torch.int64, y.device), y)
        return full.unflatten(1, (self.channels, self.algebra.n_blades)).movedim(2, -1)

    def noise(self, shape: Sequence[int], generator: torch.Generator | None = None) -> Tensor:
        """Unit white noise where there are data: (batch, channels, *grid, blades).

        Args:
            shape: (batch, *grid).
            generator: of random numbers.
        """
        batch, *grid = shape
        present = {k for grades in self.grades for k in grades}
        blades = [i for i, k in enumerate(self.algebra.grades) if k in present]
        x = torch.zeros(batch, self.channels, *grid, self.algebra.n_blades)
        x[..., blades] = torch.randn(batch, self.channels, *grid, len(blades), generator=generator)
        return x * self.mask.reshape(self.channels, *(1,) * len(grid), -1)

    def __add__(self, other: FieldType) -> FieldType:
        """The channels of both, one after the other."""
        if other.algebra != self.algebra:
            raise ValueError(f"cannot join fields of {self.algebra} and {other.algebra}")
        return FieldType(self.algebra, self.grades + other.grades)


@cache
def _positions(algebra: CliffordAlgebra, grades: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """Where components with data are: one tuple for all equal types, as `constant` asks for."""
    return tuple(
        channel * algebra.n_blades + blade
        for channel, present in enumerate(grades)
        for blade, grade in enumerate(algebra.grades)
        if grade in present
    )
