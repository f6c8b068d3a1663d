"""Elastic waves in a periodic box, in two and three dimensions: exact in time.

Velocity v and stress σ of a linear, isotropic solid obey

    ρ ∂v/∂t = ∇·σ,    ∂σ/∂t = λ tr(ε̇) 1 + 2μ ε̇,    ε̇_ij = (∂_i v_j + ∂_j v_i) / 2

A Fourier mode of wave vector k splits into a pressure wave (v along k, speed c_P) and shear waves
(v across k, speed c_S), with λ + 2μ = ρ c_P² and μ = ρ c_S². Each is a harmonic oscillator: with a
the force per density at the start and ω = c|k|,

    v(t) = v cos ωt + a sin(ωt)/ω,    w(t) = v sin(ωt)/ω + a (1 - cos ωt)/ω²

where w is the displacement since the start; σ changes by what w strains. So there are no time
steps: a frame is computed from the first one, and solves the equations of the Fourier series to
rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from cscnn._util.checks import check_int, check_positive
from cscnn.algebra import CliffordAlgebra
from cscnn.calculus import Differences, divergence, gradient, laplacian, strain_rate
from cscnn.data.fields import Field
from cscnn.data.header import Header
from cscnn.data.laws import Law
from cscnn.data.simulators.base import Presets, Simulator


def incompatibility(f: Tensor, algebra: CliffordAlgebra, scheme: Differences) -> Tensor:
    """∇²ε + ∇∇ tr ε - 2 sym ∇(∇·ε), zero if and only if ε is the strain of a displacement.

    In two and three dimensions it is zero where the curl of both indices is, ∇∧ε∧∇ = 0.

    Args:
        f: ε as a multivector: its trace divided by √dim is the scalar.
        algebra, scheme: as in `cscnn.calculus.divergence`.
    """
    root = math.sqrt(algebra.dim)
    trace = gradient(algebra.embed(algebra.grade(f, 0), 0), algebra, scheme) * root  # ∇ tr ε
    slope = trace - 2 * (divergence(f, algebra, scheme) + trace / algebra.dim)
    bent = strain_rate(slope, algebra, scheme) + divergence(slope, algebra, scheme) / root
    return laplacian(f, algebra, scheme) + bent


def strain_of(stress: Tensor, header: Header) -> Tensor:
    """ε = (σ - λ/(dλ + 2μ) tr σ 1) / 2μ, (..., dim²), with the moduli of the simulator's header."""
    dim = len(header.metric)
    first, second = moduli(header.parameters)
    identity = torch.eye(dim, dtype=stress.dtype, device=stress.device).flatten()
    trace = (stress * identity).sum(-1, keepdim=True)
    return (stress - first / (dim * first + 2 * second) * trace * identity) / (2 * second)


def moduli(parameters: Mapping[str, Any]) -> tuple[float, float]:
    """Lamé's constants λ and μ of options or of the parameters of a header."""
    density, fast, slow = (parameters[n] for n in ("density", "pressure_speed", "shear_speed"))
    return density * (fast**2 - 2 * slow**2), density * slow**2


def directions(k: Tensor) -> Tensor:
    """k / |k|, and 0 of the mean, (*modes, dim)."""
    return k / k.norm(dim=-1, keepdim=True).clamp_min(torch.finfo(k.dtype).tiny)


@dataclass(frozen=True)
class Elastodynamics(Simulator):
    """Elastic waves in a periodic solid: velocity and stress, exact in time.

    At the start displacement and velocity are smooth noise. Pressure and shear waves both have as
    much kinetic as elastic energy on average.

    Attributes:
        dim: 2 or 3 axes of space.
        cells: points along each axis.
        size: side of the box.
        density: ρ.
        pressure_speed: c_P, of waves that move along their direction.
        shear_speed: c_S, of waves that move across it.
        smoothness: length over which the noise at the start is smooth.
        speed: standard deviation of the components of the velocity at the start.
        focus: how much waves prefer one axis: the noise is weighted by this power of the cosine of
            the angle between wave vector and axis. With 0 all directions are alike.
        direction: of that axis, an angle in degrees from x towards y.
        frames: number of frames.
        frame_spacing: time between them.
    """

    name = "elastodynamics"
    presets: ClassVar[Presets] = {"full": {}, "small": {"cells": 32, "frames": 16}}
    frames_in = 1  # velocity and stress are the whole state
    laws = (
        Law(
            "compatible", "∇∧ε∧∇ = 0", "strain of a displacement", "stress",
            incompatibility, physical=strain_of, order=2,
        ),
    )  # fmt: skip

    dim: int = 2
    cells: int = 64
    size: float = 1.0
    density: float = 1.0
    pressure_speed: float = 2.0
    shear_speed: float = 1.0
    smoothness: float = 0.08
    speed: float = 1.0
    focus: float = 0.0
    direction: float = 0.0
    frames: int = 32
    frame_spacing: float = 0.02

    def __post_init__(self) -> None:
        if self.dim not in (2, 3):
            raise ValueError(f"dim must be 2 or 3, got {self.dim}")
        check_int("cells", self.cells, low=3)  # two have no wave with a derivative
        check_positive(
            size=self.size, density=self.density, speed=self.speed,
            pressure_speed=self.pressure_speed, shear_speed=self.shear_speed,
            smoothness=self.smoothness, frames=self.frames, frame_spacing=self.frame_spacing,
        )  # fmt: skip
        if not 0 <= self.focus < math.inf:
            raise ValueError(f"focus must be finite and not negative, got {self.focus}")
        if not math.isfinite(self.direction):
            raise ValueError(f"direction must be an angle in degrees, got {self.direction}")
        lowest = self.shear_speed * math.sqrt(2 - 2 / self.dim)
        if self.pressure_speed <= lowest:
            raise ValueError(
                f"pressure_speed must exceed {lowest:.4g}, √(2 - 2/dim) times shear_speed, or the "
                f"solid would expand under pressure: got {self.pressure_speed}"
            )
        if self.smoothness < self.spacing:
            raise ValueError(
                f"smoothness must be at least the spacing of the grid, {self.spacing:.4g}, got "
                f"{self.smoothness}: take more cells or smoother noise"
            )
        if self.smoothness > self.size:
            raise ValueError(
                f"smoothness must be at most the size of the box, {self.size:g}, or no wave is "
                f"left at the start: got {self.smoothness}"
            )

    @property
    def spacing(self) -> float:
        """Distance of neighbouring points."""
        return self.size / self.cells

    @property
    def moduli(self) -> tuple[float, float]:
        """Lamé's constants λ and μ."""
        return moduli(self.parameters())

    def header(self) -> Header:
        return Header(
            metric=(1,) * self.dim,
            axes=("x", "y", "z")[: self.dim],
            spacing=(self.spacing,) * self.dim,
            boundary=("periodic",) * self.dim,
            fields=(Field("velocity", 1, "m/s"), Field("stress", "symmetric", "Pa")),
            frames=self.frames,
            grid=(self.cells,) * self.dim,
            frame_spacing=self.frame_spacing,
            units={"length": "m", "time": "s"},
        )

    def simulate(
        self, rngs: Sequence[np.random.Generator], device: torch.device | str = "cpu"
    ) -> dict[str, Tensor]:
        velocities, stresses = [], []
        for rng in rngs:
            start = self.draw(rng, device)
            times = (frame * self.frame_spacing for frame in range(self.frames))
            velocity, stress = zip(*(self.propagate(*start, t) for t in times), strict=True)
            velocities.append(torch.stack(velocity))
            stresses.append(torch.stack(stress))
        return {"velocity": torch.stack(velocities), "stress": torch.stack(stresses)}

    def draw(
        self, rng: np.random.Generator, device: torch.device | str = "cpu"
    ) -> tuple[Tensor, Tensor]:
        """Velocity (*grid, dim) and stress (*grid, dim²) of smooth noise, of zero mean."""
        noise = torch.from_numpy(rng.standard_normal((2, *(self.cells,) * self.dim, self.dim)))
        k, full = (self._wave_vectors(noise, cut).to(device) for cut in (True, False))
        length = k.norm(dim=-1, keepdim=True)
        # what has no derivative on the grid is left out: means and the highest frequencies
        resolved = (k == full).all(-1, True) & (length > 0)
        smooth = torch.exp(-((length * self.smoothness) ** 2) / 2) * resolved * self._preferred(k)
        velocity, moved = self._forward(noise.to(device)) * smooth
        stress = torch.zeros_like(self._hooke(moved, k))
        for speed, part in self._parts(moved, k):
            stress += self._hooke(part / torch.where(resolved, speed * length, 1.0), k)
        deviation = self._backward(velocity).std()
        if not deviation > 0:
            raise ValueError(
                f"no wave is left at the start: focus={self.focus:g} is too large for "
                f"direction={self.direction:g} on cells={self.cells}"
            )
        scale = self.speed / deviation
        return self._backward(velocity) * scale, self._backward(stress) * scale

    def propagate(self, velocity: Tensor, stress: Tensor, time: float) -> tuple[Tensor, Tensor]:
        """The state at another time, exactly. Any state will do, also one that cannot move.

        Args:
            velocity: (..., *grid, dim).
            stress: (..., *grid, dim²).
            time: later than that of the state, or if it is negative earlier.
        """
        k = self._wave_vectors(velocity)
        v, s = self._forward(velocity), self._forward(stress)
        matrix = s.unflatten(-1, (self.dim, self.dim))
        force = 1j / self.density * (matrix * k.unsqueeze(-2)).sum(-1)
        later, displacement = torch.zeros_like(v), torch.zeros_like(v)
        for (speed, start), (_, pull) in zip(self._parts(v, k), self._parts(force, k), strict=True):
            angle = speed * time * k.norm(dim=-1, keepdim=True)
            rise = time * torch.sinc(angle / math.pi)  # sin(ωt)/ω
            fall = (time * torch.sinc(angle / (2 * math.pi))) ** 2 / 2  # (1 - cos ωt)/ω²
            later += torch.cos(angle) * start + rise * pull
            displacement += rise * start + fall * pull
        return self._backward(later), self._backward(s + self._hooke(displacement, k))

    @property
    def _axes(self) -> tuple[int, ...]:
        """Axes of the grid, before that of components."""
        return tuple(range(-1 - self.dim, -1))

    def _forward(self, x: Tensor) -> Tensor:
        return torch.fft.rfftn(x, dim=self._axes)

    def _backward(self, x: Tensor) -> Tensor:
        return torch.fft.irfftn(x, s=(self.cells,) * self.dim, dim=self._axes)

    def _wave_vectors(self, like: Tensor, cut: bool = True) -> Tensor:
        """k (*modes, dim). The highest of an even grid has no first derivative: cut makes it 0."""
        options = {"dtype": like.dtype, "device": like.device}
        unit = self.spacing / (2 * math.pi)
        axes = [torch.fft.fftfreq(self.cells, unit, **options)] * (self.dim - 1)
        axes.append(torch.fft.rfftfreq(self.cells, unit, **options))
        k = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1)
        highest = math.pi / self.spacing * (1 - 1e-6)
        return torch.where(k.abs() < highest, k, 0.0) if cut else k

    def _preferred(self, k: Tensor) -> Tensor:
        """|cos θ|^focus, (*modes, 1)."""
        angle = math.radians(self.direction)
        axis = k.new_tensor([math.cos(angle), math.sin(angle), 0.0][: self.dim])
        return (directions(k) @ axis).abs().unsqueeze(-1) ** self.focus

    def _parts(self, x: Tensor, k: Tensor) -> Iterator[tuple[float, Tensor]]:
        """Speeds of waves, and what moves with them: vectors along k, and those across it."""
        unit = directions(k)
        along = (x * unit).sum(-1, keepdim=True) * unit
        yield self.pressure_speed, along
        yield self.shear_speed, x - along

    def _hooke(self, displacement: Tensor, k: Tensor) -> Tensor:
        """λ tr ε 1 + 2μ ε, (*modes, dim²), of the strain of a displacement (*modes, dim)."""
        first, second = self.moduli
        slope = 1j * displacement.unsqueeze(-1) * k.unsqueeze(-2)
        trace = slope.diagonal(dim1=-2, dim2=-1).sum(-1)[..., None, None]
        identity = torch.eye(self.dim, dtype=k.dtype, device=k.device)
        stress = first * trace * identity + second * (slope + slope.mT)
        return stress.flatten(-2)
