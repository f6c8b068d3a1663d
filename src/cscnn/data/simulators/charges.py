"""Electromagnetic fields of moving charges, sampled on a grid of spacetime.

Units: c = 1, 4πε₀ = 1, charges in multiples of the elementary one, lengths and times alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from cscnn._util.checks import check_choice, check_positive
from cscnn.algebra import CliffordAlgebra
from cscnn.algebra.group import boost
from cscnn.calculus import curl, vector_derivative
from cscnn.data.fields import Field
from cscnn.data.header import Header
from cscnn.data.laws import Law
from cscnn.data.simulators.base import Presets
from cscnn.data.simulators.exact import ExactSimulator, check_motion
from cscnn.data.simulators.lienard_wiechert import Charges, faraday

TRIES = 1000


@dataclass(frozen=True)
class PointCharges(ExactSimulator[Charges]):
    """The exact field of oscillating and orbiting charges, in 1 + 2 or 1 + 3 dimensions.

    In 1 + 2 dimensions the charges move in a plane and the field (E_x, E_y, B_z) is observed at a
    ``height`` above it: there it is smooth, and still a closed 2-form that transforms under
    O(1, 2). In 1 + 3 dimensions the charges stay outside of the observed box, at least
    ``clearance`` away.

    Attributes:
        frames: times.
        grid: points per axis of space.
        spacing: distance of points, in space and time alike.
        oscillating, orbiting: fewest and most charges of either kind.
        max_charge: charges are integers up to this, without 0.
        speed_limit: no charge is faster; must be below 1.
        amplitude: smallest and largest extent of the motion around its drifting centre.
        distance: of the centres from each other at time 0, at least.
        height: of the observed plane over that of the charges (1 + 2 dimensions only).
        clearance: of the charges from the box (1 + 3 dimensions only).
        rapidity: the charges are seen from a frame with random velocity, up to this rapidity.
        normalise: ``"none"``, or ``"log"`` for `squash`.
        max_std: a trajectory with a larger standard deviation is drawn anew.
    """

    dim: ClassVar[int] = 2

    frames: int = 128
    grid: tuple[int, ...] = (128, 128)
    spacing: float = 1.0
    oscillating: tuple[int, int] = (2, 4)
    orbiting: tuple[int, int] = (1, 2)
    max_charge: int = 3
    speed_limit: float = 0.85
    amplitude: tuple[float, float] = (2.0, 10.0)
    distance: float = 8.0
    height: float = 1.5
    clearance: float = 0.0
    rapidity: float = 0.0
    normalise: str = "none"
    max_std: float = 20.0

    def __post_init__(self) -> None:
        check_positive(
            frames=self.frames, grid=self.grid, spacing=self.spacing, max_std=self.max_std,
            max_charge=self.max_charge, amplitude=self.amplitude,
        )  # fmt: skip
        if len(self.grid) != self.dim:
            raise ValueError(f"{self.name} needs {self.dim} axes of space, got grid {self.grid}")
        check_motion(
            self.speed_limit, self.rapidity, oscillating=self.oscillating, orbiting=self.orbiting
        )
        if self.amplitude[0] > self.amplitude[1]:
            raise ValueError(f"amplitude must be (smallest, largest), got {self.amplitude}")
        for name in ("height", "clearance", "distance"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")
        if self.height and self.dim != 2:
            raise ValueError(
                f"height={self.height} is for charges in a plane: in 1 + {self.dim} dimensions use "
                "clearance"
            )
        check_choice("normalise", self.normalise, ("none", "log"))

    def header(self) -> Header:
        metric = (1, *(-1,) * self.dim)
        return Header(
            metric=metric,
            axes=("t", "x", "y", "z")[: len(metric)],
            spacing=(self.spacing,) * len(metric),
            boundary=("open",) * len(metric),
            fields=(Field("faraday", 2, "e/length²"),),
            frames=self.frames,
            grid=self.grid,
            frame_spacing=self.spacing,
            time_axis=0,
            units={"length": "1", "time": "length/c"},
        )

    def _trajectory(
        self, rng: np.random.Generator, device: torch.device | str
    ) -> dict[str, Tensor]:
        for _ in range(TRIES):
            fields = super()._trajectory(rng, device)
            if self.accepts(fields):
                return fields
        raise ValueError(
            f"{TRIES} trajectories in a row had a standard deviation above {self.max_std}: raise "
            "max_std, height or clearance"
        )

    def accepts(self, fields: dict[str, Tensor]) -> bool:
        """Whether the standard deviation of the field is at most ``max_std``."""
        return bool(fields["faraday"].std() <= self.max_std)

    def observe(self, solution: Charges) -> dict[str, Tensor]:
        """The field on the grid, (frames, *grid, planes), squashed if ``normalise`` says so."""
        device = solution.charge.device
        axes = [
            (torch.arange(n, dtype=torch.float64, device=device) - (n - 1) / 2) * self.spacing
            for n in self.grid
        ]
        space = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1).flatten(0, -2)
        frames: list[Tensor] = []
        now: Tensor | None = None
        before: Tensor | None = None
        for frame in range(self.frames):
            time = torch.full_like(space[:, :1], frame * self.spacing)
            guess = now if now is None or before is None else 2 * now - before
            field, emitted = faraday(solution, torch.cat([time, space], 1), self.height, guess)
            frames.append(field)
            now, before = emitted, now
        field = torch.stack(frames).unflatten(1, self.grid)
        if self.normalise == "log":
            field = squash(field, self.header().algebra)
        return {"faraday": field}

    def draw(self, rng: np.random.Generator) -> Charges:
        """Random charges, in the frame of the observer."""
        for _ in range(TRIES):
            charges = self._draw(rng)
            if not self.rapidity:
                return charges
            direction = _direction(rng, self.dim).tolist()
            g = boost(self.header().algebra, rng.uniform(0, self.rapidity), direction)
            charges = charges.transformed(g)
            if self.keeps_clear(charges):
                return charges
        raise ValueError(
            f"in {TRIES} tries no boosted charges kept the clearance {self.clearance}: lower "
            f"rapidity={self.rapidity} or clearance"
        )

    def _draw(self, rng: np.random.Generator) -> Charges:
        counts = [
            int(rng.integers(low, high + 1)) for low, high in (self.oscillating, self.orbiting)
        ]
        if sum(counts) == 0:
            raise ValueError(
                f"no charges: oscillating={self.oscillating}, orbiting={self.orbiting}"
            )
        rows: list[dict[str, np.ndarray | float]] = []
        for number in range(sum(counts)):
            orbiting = number >= counts[0]
            for _ in range(TRIES):
                row = self._draw_one(rng, orbiting)
                others = [np.linalg.norm(row["origin"] - other["origin"]) for other in rows]
                if min(others, default=math.inf) >= self.distance and self._clear(row):
                    rows.append(row)
                    break
            else:
                raise ValueError(
                    f"no room for charge {number + 1} in {TRIES} tries: distance={self.distance}, "
                    f"clearance={self.clearance}, amplitude={self.amplitude}, grid={self.grid}"
                )
        space = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        zero, one = np.zeros((len(rows), 1)), np.ones((len(rows), 1))
        return Charges(
            *(
                torch.as_tensor(array)
                for array in (
                    space["charge"],
                    np.hstack([zero, space["origin"]]),
                    np.hstack([one, space["drift"]]),
                    np.hstack([zero, space["cosine"]]),
                    np.hstack([zero, space["sine"]]),
                    space["frequency"],
                )
            )
        )

    def _draw_one(self, rng: np.random.Generator, orbiting: bool) -> dict[str, np.ndarray | float]:
        """A charge whose drift and oscillation together stay below the speed limit."""
        charge = int(rng.integers(1, self.max_charge + 1)) * (1 if rng.uniform() < 0.5 else -1)
        speed = self.speed_limit * rng.uniform(0.2, 1.0)
        share = rng.uniform(0.0, 0.5)
        amplitude = rng.uniform(*self.amplitude)
        phase = rng.uniform(0, 2 * math.pi)
        a = _direction(rng, self.dim)
        b = _direction(rng, self.dim)
        b = b - (a @ b) * a
        b /= np.linalg.norm(b)
        across = amplitude * b if orbiting else np.zeros(self.dim)
        reach = self.amplitude[1] + self.clearance if self.clearance else 0.0
        extent = (np.array(self.grid) - 1) * self.spacing + 2 * reach
        return {
            "charge": float(charge),
            "origin": (rng.uniform(size=self.dim) - 0.5) * extent,
            "drift": share * speed * _direction(rng, self.dim),
            "cosine": amplitude * math.cos(phase) * a + math.sin(phase) * across,
            "sine": -amplitude * math.sin(phase) * a + math.cos(phase) * across,
            "frequency": (1 - share) * speed / amplitude,
        }

    def _clear(self, row: dict[str, np.ndarray | float]) -> bool:
        """Whether a charge stays away from the box while it can be seen there."""
        if not self.clearance:
            return True
        s = self._visible()[:, None]
        phase = row["frequency"] * s
        positions = (
            row["origin"]
            + row["drift"] * s
            + row["cosine"] * np.cos(phase)
            + row["sine"] * np.sin(phase)
        )
        return self._distance(positions) >= self.clearance

    def keeps_clear(self, solution: Charges, rapidity: float = 0.0) -> bool:
        """Whether charges in any frame stay clear of the box as long as they are seen in it."""
        if not self.clearance:
            return True
        # their parameter is not the observer's time
        stretch = math.exp(max(rapidity, self.rapidity))
        events = solution.positions(torch.as_tensor(self._visible() * stretch)).flatten(0, 1)
        seen = events[events[:, 0] <= self.frames * self.spacing]
        return self._distance(seen[:, 1:].numpy()) >= self.clearance

    def _visible(self) -> np.ndarray:
        """Times at which a charge near the box may be seen in it."""
        half = (np.array(self.grid) - 1) * self.spacing / 2
        past = 4 * np.linalg.norm(half) / (1 - self.speed_limit)
        return np.linspace(-past, self.frames * self.spacing, 2000)

    def _distance(self, positions: np.ndarray) -> float:
        """Smallest distance of positions (N, d) from the box."""
        half = (np.array(self.grid) - 1) * self.spacing / 2
        return float(np.linalg.norm(np.maximum(np.abs(positions) - half, 0), axis=1).min())


def physical_field(field: Tensor, header: Header) -> Tensor:
    """The field itself, also of files that hold `squash` of it."""
    return unsquash(field, header.algebra) if header.parameters.get("normalise") == "log" else field


class MaxwellSpacetime(PointCharges):
    """Charges in a plane, one bivector field of R^{1,2}."""

    name = "maxwell_spacetime"
    presets: ClassVar[Presets] = {"paper": {}, "small": {"frames": 64, "grid": (32, 32)}}
    frames_in = 16
    laws = (Law("faraday", "∇∧F = 0", "Faraday's law", "faraday", curl, physical=physical_field),)


@dataclass(frozen=True)
class MaxwellSpacetime4D(PointCharges):
    """Charges in space, one bivector field of R^{1,3}: the whole electromagnetic field."""

    name = "maxwell_spacetime4d"
    presets: ClassVar[Presets] = {"full": {}, "small": {"frames": 16, "grid": (12, 12, 12)}}
    frames_in = 8
    laws = (
        Law(
            "maxwell",
            "∇F = 0",
            "Maxwell's equations without charges",
            "faraday",
            vector_derivative,
            physical=physical_field,
        ),
    )
    dim = 3

    frames: int = 32
    grid: tuple[int, ...] = (16, 16, 16)
    height: float = 0.0
    clearance: float = 2.0


def _direction(rng: np.random.Generator, dim: int) -> np.ndarray:
    """A random unit vector."""
    vector = rng.standard_normal(dim)
    return vector / np.linalg.norm(vector)


def squash(field: Tensor, algebra: CliffordAlgebra) -> Tensor:
    """F log(1 + |F|) / |F| with |F| = √|<F, F>|: commutes with O(p, q), inverted by `unsquash`.

    The paper's normalisation, F log|F| / |F|, has no inverse where |F| < 1, and none is defined for
    null fields. Here |F| becomes log(1 + |F|), and null fields stay as they are.

    Args:
        field: bivectors (..., planes).
    """
    size = _size(field, algebra)
    return field * torch.where(size > 1e-30, torch.log1p(size) / size.clamp(min=1e-30), 1.0)


def unsquash(field: Tensor, algebra: CliffordAlgebra) -> Tensor:
    """Inverse of `squash`."""
    size = _size(field, algebra)
    return field * torch.where(size > 1e-30, torch.expm1(size) / size.clamp(min=1e-30), 1.0)


def _size(field: Tensor, algebra: CliffordAlgebra) -> Tensor:
    return algebra.norm_squared(algebra.embed(field, 2)).abs().sqrt().unsqueeze(-1)
