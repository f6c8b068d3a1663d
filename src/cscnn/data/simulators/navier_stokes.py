"""Buoyant smoke in a box: the incompressible Navier-Stokes equations in the plane.

    ∂v/∂t + (v·∇)v = ν ∇²v - ∇p + b s,    ∇·v = 0,    ∂s/∂t + (v·∇)s = 0

with velocity zero on the walls. Velocities live on the faces between cells, smoke in the cells. A
step is: smoke follows the flow back in time (semi-Lagrangian); so does velocity, plus the force;
explicit diffusion; projection on divergence-free flows. The step is that of PhiFlow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import grid_sample, pad

from cscnn._util.checks import check_positive
from cscnn.calculus import divergence
from cscnn.data.fields import Background, Field, Given
from cscnn.data.header import Header
from cscnn.data.laws import Law
from cscnn.data.simulators.base import Presets, Range, Simulator, bounds, draw


class Medium(NamedTuple):
    """What differs between the trajectories of a batch: numbers, or tensors (batch, 1, 1)."""

    viscosity: float | Tensor
    buoyancy: tuple[float | Tensor, float | Tensor]


@dataclass(frozen=True)
class NavierStokes(Simulator):
    """Smoke that rises in a closed box.

    Viscosity and buoyancy are the same in all trajectories, or are drawn for each of them; then the
    data say so as given constants.

    Attributes:
        grid: cells along x and y.
        size: lengths of the box.
        viscosity: ν, or (low, high) between which it is drawn.
        buoyancy: b, the force per smoke density; each component may be (low, high).
        time_step: of the solver.
        warmup: steps before the first frame.
        every: steps between frames.
        frames: number of frames.
        noise_scale, noise_smoothness: of the smoke at the start.
    """

    name = "navier_stokes"
    presets: ClassVar[Presets] = {"paper": {}, "small": {"grid": (64, 64)}}
    batch = 8
    ranges = ("viscosity", "buoyancy")
    laws = (
        Law("incompressible", "∇⌟v = 0", "no divergence", "velocity", divergence, place="faces"),
    )

    grid: tuple[int, int] = (128, 128)
    size: tuple[float, float] = (32.0, 32.0)
    viscosity: Range = 0.01
    buoyancy: tuple[Range, Range] = (0.0, 0.5)
    time_step: float = 1.5
    warmup: int = 8
    every: int = 4
    frames: int = 14
    noise_scale: float = 11.0
    noise_smoothness: float = 6.0

    def __post_init__(self) -> None:
        check_positive(
            size=self.size, time_step=self.time_step, every=self.every, frames=self.frames
        )
        if any(n < 4 for n in self.grid):
            raise ValueError(f"grid needs at least 4 cells per axis, got {self.grid}")
        lowest, highest = bounds(self.viscosity)
        if lowest < 0 or self.warmup < 0:
            raise ValueError(
                f"viscosity and warmup must not be negative, got {self.viscosity}, {self.warmup}"
            )
        limit = highest * self.time_step * sum(1 / h**2 for h in self.spacing)
        if limit > 0.5:
            raise ValueError(
                f"explicit diffusion is unstable: viscosity · time_step · Σ 1/h² = {limit:.3g} "
                "exceeds 1/2; take a smaller time_step or a coarser grid"
            )

    @property
    def spacing(self) -> tuple[float, float]:
        """Sizes of a cell."""
        return (self.size[0] / self.grid[0], self.size[1] / self.grid[1])

    @property
    def given(self) -> tuple[Given, ...]:
        """What is drawn for each trajectory."""
        viscosity = Given("viscosity", 0, "constant", "m²/s")
        buoyancy = Given("buoyancy", 1, "constant", "m/s²")
        drawn = isinstance(self.viscosity, tuple), any(isinstance(b, tuple) for b in self.buoyancy)
        return tuple(g for g, varies in zip((viscosity, buoyancy), drawn, strict=True) if varies)

    def header(self) -> Header:
        fixed = [b for b in self.buoyancy if not isinstance(b, tuple)]
        return Header(
            metric=(1, 1),
            axes=("x", "y"),
            spacing=self.spacing,
            boundary=("wall", "wall"),
            fields=(Field("smoke", 0, "1"), Field("velocity", 1, "m/s")),
            frames=self.frames,
            grid=self.grid,
            frame_spacing=self.time_step * self.every,
            units={"length": "m", "time": "s"},
            backgrounds=(Background("buoyancy", 1, tuple(fixed)),) if len(fixed) == 2 else (),
            given=self.given,
        )

    def simulate(
        self, rngs: Sequence[np.random.Generator], device: torch.device | str = "cpu"
    ) -> dict[str, Tensor]:
        smoke = torch.stack([torch.as_tensor(self.noise(rng)) for rng in rngs]).to(device)
        viscosity, *buoyancy = (
            torch.tensor([draw(value, rng) for rng in rngs], dtype=smoke.dtype, device=device)
            for value in (self.viscosity, *self.buoyancy)
        )
        medium = Medium(_spread(viscosity), (_spread(buoyancy[0]), _spread(buoyancy[1])))
        flow = self.at_rest(smoke)
        smokes, velocities = [], []
        for step in range(self.warmup + 1 + self.every * (self.frames - 1)):
            smoke, flow = self.step(smoke, flow, medium)
            if step >= self.warmup and (step - self.warmup) % self.every == 0:
                smokes.append(smoke.unsqueeze(-1))
                velocities.append(to_centres(flow))
        constants = {"viscosity": viscosity[:, None], "buoyancy": torch.stack(buoyancy, 1)}
        return {
            "smoke": torch.stack(smokes, 1),
            "velocity": torch.stack(velocities, 1),
            **{given.name: constants[given.name] for given in self.given},
        }

    def noise(self, rng: np.random.Generator) -> np.ndarray:
        """Smoke at the start: the size of smooth noise, (x, y)."""
        real, imaginary = rng.standard_normal((2, *self.grid))
        axes = (
            np.fft.fftfreq(n) * n / length * self.noise_scale
            for n, length in zip(self.grid, self.size, strict=True)
        )
        square = sum(k**2 for k in np.meshgrid(*axes, indexing="ij"))
        weight = np.zeros(self.grid)
        weight[square > 0.1] = square[square > 0.1] ** -self.noise_smoothness
        noise = np.fft.ifft2((real + 1j * imaginary) * weight).real
        return np.abs(noise / noise.std() - (noise / noise.std()).mean())

    def at_rest(self, smoke: Tensor) -> tuple[Tensor, Tensor]:
        """No flow: zero on the inner faces, (batch, x - 1, y) and (batch, x, y - 1)."""
        return torch.zeros_like(smoke[:, 1:]), torch.zeros_like(smoke[:, :, 1:])

    @property
    def medium(self) -> Medium:
        """Viscosity and buoyancy, if they are not drawn for each trajectory."""
        x, y = self.buoyancy
        if isinstance(self.viscosity, tuple) or isinstance(x, tuple) or isinstance(y, tuple):
            raise ValueError(
                f"viscosity {self.viscosity} and buoyancy {self.buoyancy} are drawn for each "
                "trajectory: give step the medium of yours"
            )
        return Medium(self.viscosity, (x, y))

    def step(
        self, smoke: Tensor, flow: tuple[Tensor, Tensor], medium: Medium | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """One step of smoke (batch, x, y) and of the flow through the inner faces."""
        viscosity, buoyancy = self.medium if medium is None else medium
        u, v = flow
        centre = to_centres(flow)
        smoke = self._carry(smoke, centre[..., 0], centre[..., 1], "border")
        # each component, and where the other one is needed, the mean of its four neighbours
        other_u, other_v = (_middle(pad(u, (0, 0, 1, 1))), _middle(pad(v, (1, 1))))
        force = self.time_step / 2
        moved_u = self._carry(u, u, other_v, "zeros")
        moved_v = self._carry(v, other_u, v, "zeros")
        moved_u = moved_u + force * buoyancy[0] * (smoke[:, 1:] + smoke[:, :-1])
        moved_v = moved_v + force * buoyancy[1] * (smoke[:, :, 1:] + smoke[:, :, :-1])
        diffused = self._diffuse(moved_u, viscosity), self._diffuse(moved_v, viscosity)
        return smoke, self.project(diffused)

    def _carry(self, x: Tensor, u: Tensor, v: Tensor, outside: str) -> Tensor:
        """Values of x where the flow (u, v) at its points came from, one step ago."""
        rows, columns = x.shape[1:]
        # grid_sample counts from -1 at the first point to 1 at the last, columns before rows
        origins = _points(rows, columns).to(x).expand(len(x), -1, -1, -1).clone()
        origins[..., 0].add_(v, alpha=-2 * self.time_step / self.spacing[1] / (columns - 1))
        origins[..., 1].add_(u, alpha=-2 * self.time_step / self.spacing[0] / (rows - 1))
        y = grid_sample(x.unsqueeze(1), origins, padding_mode=outside, align_corners=True)
        return y.squeeze(1)

    def _diffuse(self, x: Tensor, viscosity: float | Tensor) -> Tensor:
        """x + ν Δt ∇²x, with zeros outside."""
        wide = pad(x, (1, 1, 1, 1))
        factor = [viscosity * self.time_step / h**2 for h in self.spacing]
        return (
            (1 - 2 * sum(factor)) * x
            + factor[0] * (wide[:, 2:, 1:-1] + wide[:, :-2, 1:-1])
            + factor[1] * (wide[:, 1:-1, 2:] + wide[:, 1:-1, :-2])
        )

    def project(self, flow: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Subtract the gradient that makes the flow free of divergence, exactly.

        The Laplacian of cells between walls is diagonal in cosines (DCT-II along both axes).
        """
        u, v = flow
        hx, hy = self.spacing
        divergence = divergence_of(flow, self.spacing)
        cx, cy, inverse = (t.to(u) for t in _cosines(self.grid, self.spacing))
        # one product per trajectory: the last bit of a batched one may depend on the batch
        pressure = torch.stack(
            [cx.T @ ((cx @ d @ cy.T) * inverse) @ cy for d in divergence.unbind()]
        )
        return (
            u.sub(pressure[:, 1:] - pressure[:, :-1], alpha=1 / hx),
            v.sub(pressure[:, :, 1:] - pressure[:, :, :-1], alpha=1 / hy),
        )


def _spread(values: Tensor) -> Tensor:
    """One number for each trajectory, (batch,), beside its fields: (batch, 1, 1)."""
    return values[:, None, None]


def divergence_of(flow: tuple[Tensor, Tensor], spacing: tuple[float, float]) -> Tensor:
    """Flow out of each cell per area, (batch, x, y)."""
    u, v = pad(flow[0], (0, 0, 1, 1)), pad(flow[1], (1, 1))
    divergence = (u[:, 1:] - u[:, :-1]) * (1 / spacing[0])
    return divergence.add_(v[:, :, 1:] - v[:, :, :-1], alpha=1 / spacing[1])


def to_centres(flow: tuple[Tensor, Tensor]) -> Tensor:
    """Velocity in the middle of the cells, (batch, x, y, 2): the mean of opposite faces."""
    u, v = pad(flow[0], (0, 0, 1, 1)), pad(flow[1], (1, 1))
    centre = torch.stack([u[:, 1:] + u[:, :-1], v[:, :, 1:] + v[:, :, :-1]], 1)
    return centre.mul_(0.5).movedim(1, -1)


def _middle(x: Tensor) -> Tensor:
    """Means of four neighbours, (batch, x, y) -> (batch, x - 1, y - 1)."""
    pairs = x[:, 1:] + x[:, :-1]
    return (pairs[:, :, 1:] + pairs[:, :, :-1]).mul_(0.25)


@lru_cache(maxsize=8)
def _points(rows: int, columns: int) -> Tensor:
    """The coordinates of `grid_sample`, (rows, columns, 2)."""
    i, j = (torch.linspace(-1, 1, n, dtype=torch.float64) for n in (rows, columns))
    return torch.stack([j.expand(rows, -1), i[:, None].expand(-1, columns)], -1)


@lru_cache(maxsize=4)
def _cosines(grid: tuple[int, int], spacing: tuple[float, float]) -> tuple[Tensor, Tensor, Tensor]:
    """The orthonormal DCT-II of both axes, and the inverse Laplacian in these coordinates."""
    matrices, values = [], []
    for n, h in zip(grid, spacing, strict=True):
        k = torch.arange(n, dtype=torch.float64)
        matrix = torch.cos(math.pi / n * k[:, None] * (k + 0.5)) * math.sqrt(2 / n)
        matrix[0] /= math.sqrt(2)
        matrices.append(matrix)
        values.append((2 * torch.sin(math.pi * k / (2 * n)) / h) ** 2)
    inverse = -1 / (values[0][:, None] + values[1])
    inverse[0, 0] = 0.0  # the mean pressure is free
    return matrices[0], matrices[1], inverse
