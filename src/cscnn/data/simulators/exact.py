"""Simulators whose solutions have a closed form: they can be observed from every frame.

A *solution* fills all of spacetime. A Lorentz transformation or a displacement of the solution is
again a solution, so it can be observed on the grid of a moving observer without interpolation.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from cscnn.algebra import CliffordAlgebra
from cscnn.data.simulators.base import Simulator


class Solution(Protocol):
    """A solution in 1 + d dimensions of spacetime, with time first."""

    def transformed(self, g: Tensor) -> Self:
        """The solution with all events moved by g, (1 + d, 1 + d): the field is ρ(g) f(g⁻¹ x).

        ``g`` is in O(1, d) and keeps the direction of time.
        """

    def translated(self, shift: Tensor) -> Self:
        """The solution with all events displaced by a vector of spacetime, (1 + d,)."""

    def to(self, device: torch.device | str) -> Self:
        """The solution on another device."""


S = TypeVar("S", bound=Solution)


@dataclass(frozen=True)
class ExactSimulator(Simulator, Generic[S]):
    """A simulator that draws solutions and observes them on its grid.

    Its header has time as axis 0. Point 0 of the frames is at time 0; the grid is centred in
    space. Subclasses implement `header`, `draw` and `observe`, and have an option ``frames``.
    """

    def draw(self, rng: np.random.Generator) -> S:
        """A random solution, in float64 on the CPU."""
        raise NotImplementedError

    def observe(self, solution: S) -> dict[str, Tensor]:
        """The fields of the header on the grid, field name -> (frames, *grid, components)."""
        raise NotImplementedError

    def keeps_clear(self, solution: S, rapidity: float = 0.0) -> bool:
        """Whether the solution has no singularity on the grid or too near to it.

        Args:
            solution: in the frame of the observer.
            rapidity: by which it was transformed since it was drawn, at most.
        """
        return True

    def accepts(self, fields: dict[str, Tensor]) -> bool:
        """Whether observed fields are typical enough to be part of a data set."""
        return True

    def with_frames(self, frames: int) -> Self:
        """The same simulator for another number of frames."""
        return dataclasses.replace(self, **{"frames": frames})

    def simulate(
        self, rngs: Sequence[np.random.Generator], device: torch.device | str = "cpu"
    ) -> dict[str, Tensor]:
        trajectories = [self._trajectory(rng, device) for rng in rngs]
        return {name: torch.stack([t[name] for t in trajectories]) for name in trajectories[0]}

    def _trajectory(
        self, rng: np.random.Generator, device: torch.device | str
    ) -> dict[str, Tensor]:
        return self.observe(self.draw(rng).to(device))


def check_orthochronous(g: Tensor, dim: int) -> None:
    """Raise unless g is in O(1, dim - 1), (dim, dim), and keeps the direction of time."""
    if not CliffordAlgebra((1, *(-1,) * (dim - 1))).is_orthogonal(g) or g[0, 0] <= 0:
        raise ValueError(
            f"g must be in O(1, {dim - 1}) and keep the direction of time, got {g.tolist()}"
        )


def check_motion(speed_limit: float, rapidity: float, **counts: tuple[int, int]) -> None:
    """Raise unless speeds are below that of light and counts are (fewest, most)."""
    if not 0 < speed_limit < 1:
        raise ValueError(
            f"speed_limit must be between 0 and 1, the speed of light, got {speed_limit}"
        )
    if not 0 <= rapidity < math.inf:
        raise ValueError(f"rapidity must not be negative, got {rapidity}")
    for name, (low, high) in counts.items():
        if not 0 <= low <= high:
            raise ValueError(f"{name} must be (fewest, most), got {(low, high)}")
