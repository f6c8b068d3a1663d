"""Solitons of the sine-Gordon equation in 1 + 1 dimensions, exactly.

    ∂²φ/∂t² - ∂²φ/∂x² + sin φ = 0

is invariant under Lorentz transformations. Its N-soliton solutions are φ = 4 arg det(1 + i M) with

    M_jk = 2 √(a_j a_k) / (a_j + a_k) √(m_j m_k)
    m_j = c_j exp((a_j + 1/a_j) x / 2 + (a_j - 1/a_j) t / 2)

A real a = exp(-θ) with c = ±1 times a position is a kink or antikink of rapidity θ; a complex a and
its conjugate, with conjugate c, are a breather. Kinks pass through each other and are delayed. A
boost multiplies all a by a factor, and x -> -x maps a to -1/a and c to -c (the rates of x change
sign, those of t and M do not), so solutions are known in every frame.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from cscnn._util.checks import check_positive
from cscnn.calculus import curl, divergence
from cscnn.data.fields import Field
from cscnn.data.header import Header
from cscnn.data.laws import Law
from cscnn.data.simulators.base import Presets
from cscnn.data.simulators.exact import ExactSimulator, check_motion, check_orthochronous


@dataclass(frozen=True)
class Solitons:
    """Poles a and coefficients log c, complex (n,); conjugate pairs are breathers."""

    pole: Tensor
    coefficient: Tensor

    def transformed(self, g: Tensor) -> Solitons:
        """The same solution with events (t, x) moved by a boost or reflection (2, 2)."""
        check_orthochronous(g, 2)
        mirrored = bool(g[1, 1] < 0)  # then g is x -> -x, followed by a boost
        solitons = self._mirrored() if mirrored else self
        return solitons._boosted(float(torch.asinh(g[1, 0])))

    def _mirrored(self) -> Solitons:
        return Solitons(-1 / self.pole, self.coefficient + 1j * math.pi)

    def _boosted(self, rapidity: float) -> Solitons:
        return Solitons(self.pole * math.exp(-rapidity), self.coefficient)

    def translated(self, shift: Tensor) -> Solitons:
        """The same solution with all events (t, x) displaced by a shift (2,)."""
        rates = self._rates
        return Solitons(self.pole, self.coefficient - rates @ shift.to(rates))

    @property
    def _rates(self) -> Tensor:
        """Derivatives of the exponents by t and by x, (n, 2)."""
        a = self.pole
        return torch.stack([(a - 1 / a) / 2, (a + 1 / a) / 2], -1)

    def to(self, device: torch.device | str) -> Solitons:
        """On another device."""
        return Solitons(self.pole.to(device), self.coefficient.to(device))

    def field(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """φ modulo 2π and its derivatives at events (N, 2): (N,) and (N, 2)."""
        a, rates = self.pole, self._rates
        exponent = self.coefficient + points.to(rates.dtype) @ rates.mT  # (N, n)
        # rows and columns are scaled to at most one, which does not change the phase of det
        size = exponent.real.clamp(min=0)
        root = ((exponent - size) / 2).exp()
        mixing = 2 * (a[:, None] * a).sqrt() / (a[:, None] + a)
        m = 1j * mixing * root[:, :, None] * root[:, None, :]
        full = m + torch.diag_embed((-size).exp()).to(m.dtype)
        phase = 4 * torch.linalg.det(full).angle()
        slopes = (rates[:, None] + rates) / 2  # of M_jk, (n, n, 2)
        inverse = torch.linalg.inv(full)
        gradient = 4 * torch.einsum("pkj,pjk,jkd->pd", inverse, m, slopes).imag
        return phase, gradient


@dataclass(frozen=True)
class SineGordon(ExactSimulator[Solitons]):
    """Kinks and breathers that pass through each other, relativistically.

    Attributes:
        frames: times.
        grid: points of space.
        spacing: distance of points, in space and time alike; a kink at rest is about 4 wide.
        kinks, breathers: fewest and most of either.
        speed_limit: no soliton is faster; must be below 1.
        rapidity: the solution is seen from a frame with random velocity, up to this rapidity.
    """

    name = "sine_gordon"
    presets: ClassVar[Presets] = {"full": {}, "small": {"frames": 48, "grid": (48,)}}
    batch = 8
    frames_in = 16
    laws = (
        Law(
            "sine_gordon",
            "∇⌟∇φ + sin φ = 0",
            "the sine-Gordon equation",
            "gradient",
            divergence,
            source="sine",
        ),
        Law("gradient", "∇∧∇φ = 0", "the gradient is one", "gradient", curl),
    )

    frames: int = 96
    grid: tuple[int] = (96,)
    spacing: float = 0.4
    kinks: tuple[int, int] = (1, 3)
    breathers: tuple[int, int] = (0, 2)
    speed_limit: float = 0.8
    rapidity: float = 0.0

    def __post_init__(self) -> None:
        check_positive(frames=self.frames, grid=self.grid, spacing=self.spacing)
        check_motion(self.speed_limit, self.rapidity, kinks=self.kinks, breathers=self.breathers)
        if self.kinks[0] + self.breathers[0] == 0:
            raise ValueError("there must be at least one kink or one breather")

    def header(self) -> Header:
        return Header(
            metric=(1, -1),
            axes=("t", "x"),
            spacing=(self.spacing, self.spacing),
            boundary=("open", "open"),
            fields=(
                Field("sine", 0, "1"),
                Field("cosine", 0, "1"),
                Field("gradient", 1, "1/length"),
            ),
            frames=self.frames,
            grid=self.grid,
            frame_spacing=self.spacing,
            time_axis=0,
            units={"length": "1", "time": "length/c"},
        )

    def draw(self, rng: np.random.Generator) -> Solitons:
        """Random solitons that meet within the grid."""
        poles: list[complex] = []
        coefficients: list[complex] = []
        half = self.grid[0] * self.spacing / 2
        middle = self.frames * self.spacing / 2
        limit = math.atanh(self.speed_limit)
        kinks, breathers = (int(rng.integers(a, b + 1)) for a, b in (self.kinks, self.breathers))
        for number in range(kinks + breathers):
            # rapidities in separate bands: solitons of equal velocity would be one
            bands = kinks + breathers
            low = -limit + 2 * limit * number / bands
            theta = low + 2 * limit / bands * rng.uniform(0.1, 0.9)
            position = rng.uniform(-half, half)
            angle = 0.0 if number < kinks else rng.uniform(0.15, 0.42) * math.pi
            pole = complex(math.exp(-theta) * math.cos(angle), math.exp(-theta) * math.sin(angle))
            start = -(pole + 1 / pole) / 2 * position - (pole - 1 / pole) / 2 * middle
            if number < kinks:
                poles.append(pole)
                coefficients.append(complex(start.real, math.pi * int(rng.integers(2))))
            else:
                start += 1j * rng.uniform(0, 2 * math.pi) + math.log(math.tan(angle))
                poles += [pole, pole.conjugate()]
                coefficients += [start, start.conjugate()]
        solitons = Solitons(
            torch.tensor(poles, dtype=torch.complex128),
            torch.tensor(coefficients, dtype=torch.complex128),
        )
        if not self.rapidity:
            return solitons
        return solitons._boosted(rng.uniform(-self.rapidity, self.rapidity))

    def observe(self, solution: Solitons) -> dict[str, Tensor]:
        """The fields on the grid, (frames, points, components)."""
        device = solution.pole.device
        t = torch.arange(self.frames, dtype=torch.float64, device=device) * self.spacing
        n = self.grid[0]
        x = (torch.arange(n, dtype=torch.float64, device=device) - (n - 1) / 2) * self.spacing
        phase, gradient = solution.field(torch.cartesian_prod(t, x))
        shape = (self.frames, n)
        lifted = torch.stack([gradient[:, 0], -gradient[:, 1]], -1)  # upper index
        return {
            "sine": phase.sin().reshape(*shape, 1),
            "cosine": (1 - phase.cos()).reshape(*shape, 1),
            "gradient": lifted.reshape(*shape, 2),
        }
