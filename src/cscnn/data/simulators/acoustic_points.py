"""Sound in a periodic box, seen by microphones at random points: a closed form, in any dimension.

Linear acoustics for the pressure p (per density) and the velocity v,

    ∂ₜ v = -∇p,    ∂ₜ p = -c² ∇⌟v,

is solved by plane waves p = A cos(k·x - ωt + φ), v = A k/ω cos(k·x - ωt + φ) with ω = c|k|. A
trajectory is a sum of some of them, with wave vectors of the box, at points of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from cscnn.data.fields import Field
from cscnn.data.header import Header
from cscnn.data.simulators.base import Presets, Simulator


@dataclass(frozen=True)
class AcousticPoints(Simulator):
    """Pressure and velocity of sound waves, exact, at random points of a periodic box.

    Attributes:
        dim: axes of space.
        points: (fewest, most) of a trajectory.
        size: side of the box.
        speed: of sound.
        waves: plane waves of a trajectory.
        shortest: wave length, as a fraction of the side: wave numbers along an axis are at most
            1 / shortest.
        frames: times of a trajectory.
        frame_spacing: time between them.
    """

    name: ClassVar[str] = "acoustic_points"
    presets: ClassVar[Presets] = {
        "full": {},
        "small": {"points": (150, 300), "frames": 12},
    }
    frames_in: ClassVar[int] = 2
    on_points: ClassVar[bool] = True

    dim: int = 2
    points: tuple[int, int] = (1000, 2000)
    size: float = 1.0
    speed: float = 1.0
    waves: int = 6
    shortest: float = 0.5
    frames: int = 24
    frame_spacing: float = 0.04

    def __post_init__(self) -> None:
        low, high = self.points
        if not 1 <= low <= high:
            raise ValueError(f"points must be (fewest, most), got {self.points}")
        for name in ("dim", "waves", "frames"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")
        for name in ("size", "speed", "frame_spacing"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")
        if not 0 < self.shortest <= 1:
            raise ValueError(
                f"shortest must be a fraction of the side of the box, got {self.shortest}"
            )

    def header(self) -> Header:
        return Header.of_points(
            (1,) * self.dim,
            (Field("pressure", 0, "m²/s²"), Field("velocity", 1, "m/s")),
            self.frames,
            period=(self.size,) * self.dim,
            frame_spacing=self.frame_spacing,
            units={"length": "m", "time": "s"},
        )

    def simulate(
        self, rngs: Sequence[np.random.Generator], device: torch.device | str = "cpu"
    ) -> dict[str, list[Tensor]]:
        trajectories = [self._trajectory(rng, device) for rng in rngs]
        return {name: [t[name] for t in trajectories] for name in trajectories[0]}

    def _trajectory(
        self, rng: np.random.Generator, device: torch.device | str
    ) -> dict[str, Tensor]:
        count = int(rng.integers(self.points[0], self.points[1] + 1))
        positions = torch.from_numpy(rng.uniform(0, self.size, (count, self.dim))).to(device)
        waves = self.draw(rng)
        times = self.frame_spacing * torch.arange(self.frames, dtype=torch.float64, device=device)
        pressure, velocity = self.observe(waves.to(device), times, positions)
        return {"positions": positions, "pressure": pressure, "velocity": velocity}

    def draw(self, rng: np.random.Generator) -> Tensor:
        """Random waves (waves, dim + 2): wave vector, amplitude and phase of each."""
        most = int(1 / self.shortest)
        numbers = np.zeros((self.waves, self.dim))
        for row in numbers:
            while not row.any():
                row[:] = rng.integers(-most, most + 1, self.dim)
        amplitude = rng.standard_normal(self.waves) / math.sqrt(self.waves / 2)
        phase = rng.uniform(0, 2 * math.pi, self.waves)
        return torch.from_numpy(np.c_[2 * math.pi / self.size * numbers, amplitude, phase])

    def observe(self, waves: Tensor, times: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Pressure and velocity at times (frames,) and positions (points, dim).

        Args:
            waves: from `draw`.
        """
        k, amplitude, phase = waves[:, : self.dim], waves[:, self.dim], waves[:, self.dim + 1]
        omega = self.speed * k.norm(dim=1)
        angle = positions @ k.T - times[:, None, None] * omega + phase  # (frames, points, waves)
        p = amplitude * angle.cos()
        return p.sum(-1, keepdim=True), p @ (k / omega[:, None])
