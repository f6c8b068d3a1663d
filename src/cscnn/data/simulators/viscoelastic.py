"""A polymer solution in a periodic square: the Oldroyd-B model of a viscoelastic fluid.

The fluid has velocity v. Its polymers have the conformation tensor C, symmetric and positive
definite: the mean of R⊗R over their end-to-end vectors R, and 1 at rest.

    ∂v/∂t + (v·∇)v = -∇p + ν ∇²v + (ν_p/τ) ∇·C + f,    ∇·v = 0
    ∂C/∂t + (v·∇)C = (C·∇)v + ((C·∇)v)ᵀ - (C - 1)/τ + κ ∇²C

The diffusion κ of polymers is artificial, as in most simulations: without it C has ever finer
structures. Space is a Fourier series (pseudo-spectral, products are dealiased by the 2/3 rule).
Viscosity, relaxation and diffusion are integrated exactly, the rest by the Runge-Kutta scheme of
fourth order (Lawson's integrating factor).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from cscnn._util.checks import check_positive
from cscnn.calculus import divergence
from cscnn.data.fields import Field, Given
from cscnn.data.header import Header
from cscnn.data.laws import Law
from cscnn.data.simulators.base import Presets, Simulator


@dataclass(frozen=True)
class Viscoelastic(Simulator):
    """A polymer solution in a periodic square: velocity and conformation tensor (Oldroyd-B).

    At the start the velocity is smooth noise and polymers are at rest. Vortices stretch them and
    decay, or are driven by a force: rolls that turn against their neighbours, as in a four-roll
    mill, at a random place. The data are then given the force.

    Attributes:
        cells: points along each axis.
        size: side of the square.
        viscosity: ν, of the solvent.
        polymer_viscosity: ν_p, what polymers add to it in slow flows; 0 if they are only carried.
        relaxation: τ, the time in which polymers relax.
        diffusion: κ, of polymers; artificial.
        force: largest force per density, 0 for none.
        rolls: periods of the force along each axis.
        speed: standard deviation of the components of the velocity at the start.
        smoothness: length over which the vorticity at the start is smooth.
        time_step: of the solver.
        warmup: steps before the first frame.
        every: steps between frames.
        frames: number of frames.
    """

    name = "viscoelastic"
    presets: ClassVar[Presets] = {
        "full": {},
        "small": {"cells": 64, "frames": 16},
    }
    frames_in = 1  # velocity and conformation are the whole state
    laws = (Law("incompressible", "∇⌟v = 0", "no divergence", "velocity", divergence),)

    cells: int = 128
    size: float = 1.0
    viscosity: float = 0.002
    polymer_viscosity: float = 0.005
    relaxation: float = 0.5
    diffusion: float = 0.002
    force: float = 0.0
    rolls: int = 1
    speed: float = 0.4
    smoothness: float = 0.1
    time_step: float = 0.005
    warmup: int = 60
    every: int = 20
    frames: int = 24

    def __post_init__(self) -> None:
        check_positive(
            size=self.size, relaxation=self.relaxation, rolls=self.rolls, speed=self.speed,
            smoothness=self.smoothness, time_step=self.time_step, every=self.every,
            frames=self.frames,
        )  # fmt: skip
        for name in ("viscosity", "polymer_viscosity", "diffusion", "force", "warmup"):
            if not 0 <= getattr(self, name) < math.inf:
                value = getattr(self, name)
                raise ValueError(f"{name} must be finite and not negative, got {value}")
        if self.cells < 4:
            raise ValueError(f"cells must be at least 4, got {self.cells}")
        if self.smoothness > self.size:
            raise ValueError(
                f"smoothness must be at most the size of the square, {self.size:g}, or no vortex "
                f"is left at the start: got {self.smoothness}"
            )
        if 3 * self.rolls >= self.cells:
            raise ValueError(
                f"the grid resolves less than cells/3 periods, got rolls={self.rolls} on "
                f"cells={self.cells}"
            )

    @property
    def spacing(self) -> float:
        """Distance of neighbouring points."""
        return self.size / self.cells

    def header(self) -> Header:
        return Header(
            metric=(1, 1),
            axes=("x", "y"),
            spacing=(self.spacing,) * 2,
            boundary=("periodic",) * 2,
            fields=(Field("velocity", 1, "m/s"), Field("conformation", "symmetric", "1")),
            frames=self.frames,
            grid=(self.cells,) * 2,
            frame_spacing=self.every * self.time_step,
            units={"length": "m", "time": "s"},
            given=(Given("force", 1, "static", "m/s²"),) if self.force else (),
        )

    def simulate(
        self, rngs: Sequence[np.random.Generator], device: torch.device | str = "cpu"
    ) -> dict[str, Tensor]:
        results = [self._trajectory(rng, device) for rng in rngs]
        return {name: torch.stack([result[name] for result in results]) for name in results[0]}

    def _trajectory(
        self, rng: np.random.Generator, device: torch.device | str
    ) -> dict[str, Tensor]:
        velocity = self.draw(rng)
        force = self.draw_force(rng) if self.force else torch.zeros_like(velocity)
        rest = torch.eye(2, dtype=velocity.dtype).flatten().expand(self.cells, self.cells, 4)
        flow = Flow(self, velocity.to(device), rest.to(device), force.to(device))
        frames = []
        for frame in range(self.frames):
            flow.run(self.every if frame else self.warmup)
            flow.check()
            frames.append((flow.velocity, flow.conformation))
        velocities, conformations = (torch.stack(parts) for parts in zip(*frames, strict=True))
        given = {"force": force.to(device)} if self.force else {}
        return {"velocity": velocities, "conformation": conformations, **given}

    def draw(self, rng: np.random.Generator) -> Tensor:
        """The velocity of smooth random vorticity, (x, y, 2)."""
        modes = Modes(self)
        vorticity = modes.forward(torch.from_numpy(rng.standard_normal((self.cells,) * 2)))
        vorticity = vorticity * torch.exp(-modes.squares * self.smoothness**2 / 2) * modes.kept
        across = torch.stack([modes.vectors[1], -modes.vectors[0]])
        velocity = modes.backward(1j * across * vorticity * modes.inverse_squares)
        return (velocity * (self.speed / velocity.std())).movedim(0, -1)

    def draw_force(self, rng: np.random.Generator) -> Tensor:
        """Rolls at a random place, (x, y, 2): f = F (sin kx cos ky, -cos kx sin ky)."""
        shift = rng.uniform(0, 2 * math.pi, 2).tolist()
        angle = torch.arange(self.cells, dtype=torch.float64) * (2 * math.pi / self.cells)
        x, y = torch.meshgrid(*(self.rolls * angle + s for s in shift), indexing="ij")
        return self.force * torch.stack([x.sin() * y.cos(), -x.cos() * y.sin()], -1)


class Modes:
    """The Fourier series of a simulator: fields (..., x, y) <-> modes (..., k_x, k_y ≥ 0)."""

    def __init__(self, box: Viscoelastic, device: torch.device | str = "cpu"):
        self.cells = box.cells
        numbers = (
            torch.fft.fftfreq(box.cells, 1 / box.cells, dtype=torch.float64, device=device),
            torch.fft.rfftfreq(box.cells, 1 / box.cells, dtype=torch.float64, device=device),
        )
        counts = torch.stack(torch.meshgrid(*numbers, indexing="ij"))
        #: (2, k_x, k_y)
        self.vectors = counts * (2 * math.pi / box.size)
        #: by the 2/3 rule, (k_x, k_y)
        self.kept = (3 * counts.abs() < box.cells).all(0)

    @cached_property
    def squares(self) -> Tensor:
        """k², (k_x, k_y)."""
        return self.vectors.square().sum(0)

    @cached_property
    def inverse_squares(self) -> Tensor:
        """1/k², and 0 of the mean."""
        return torch.where(self.squares > 0, 1 / self.squares, 0.0)

    def forward(self, x: Tensor) -> Tensor:
        """Modes of fields."""
        return torch.fft.rfft2(x)

    def backward(self, x: Tensor) -> Tensor:
        """Fields of modes."""
        return torch.fft.irfft2(x, s=(self.cells, self.cells))

    def project(self, x: Tensor) -> Tensor:
        """Vectors (2, k_x, k_y) without their divergence."""
        return x - self.vectors * ((self.vectors * x).sum(0) * self.inverse_squares)


class Flow:
    """The state of one simulation.

    Args:
        box: the simulator.
        velocity: (x, y, 2); its divergence is taken out, and what the 2/3 rule does not keep.
        conformation: (x, y, 4).
        force: per density, (x, y, 2).

    Attributes:
        state: modes of v_x, v_y and of C - 1: xx, xy, yy; (5, k_x, k_y).
        time: since the start.
    """

    def __init__(self, box: Viscoelastic, velocity: Tensor, conformation: Tensor, force: Tensor):
        self.box = box
        self.modes = modes = Modes(box, velocity.device)
        self.time = 0.0
        stretch = conformation[..., [0, 1, 3]] - conformation.new_tensor([1.0, 0.0, 1.0])
        fields = torch.cat([velocity, stretch, force], -1).movedim(-1, 0)
        start = modes.forward(fields) * modes.kept
        self.state = torch.cat([modes.project(start[:2]), start[2:5]])
        self._force = start[5:]
        flow, polymers = -box.viscosity * modes.squares, -box.diffusion * modes.squares
        #: what is integrated exactly: the state decays by exp(rates · t)
        self.rates = torch.stack([flow] * 2 + [polymers - 1 / box.relaxation] * 3)
        self._half = torch.exp(self.rates * box.time_step / 2)

    @property
    def velocity(self) -> Tensor:
        """(x, y, 2)"""
        return self.modes.backward(self.state[:2]).movedim(0, -1)

    @property
    def conformation(self) -> Tensor:
        """(x, y, 4)"""
        xx, xy, yy = self.modes.backward(self.state[2:])
        return torch.stack([1 + xx, xy, xy, 1 + yy], -1)

    def run(self, steps: int) -> None:
        """Advance."""
        step, half = self.box.time_step, self._half
        for _ in range(steps):
            start = self.state
            first = self.change(start)
            second = self.change(half * (start + step / 2 * first))
            third = self.change(half * start + step / 2 * second)
            fourth = self.change(half * (half * start + step * third))
            inner = half * start + step / 6 * (half * first + 2 * (second + third))
            self.state = half * inner + step / 6 * fourth
        self.time += steps * step

    def change(self, state: Tensor) -> Tensor:
        """∂/∂t of the state (5, k_x, k_y), but for what is integrated exactly."""
        modes, box = self.modes, self.box
        slopes = 1j * modes.vectors[:, None] * state  # of all fields, by direction
        fields = modes.backward(torch.cat([state[None], slopes]))
        velocity, slope = fields[0, :2], fields[1:]
        carried = (velocity[:, None] * slope).sum(0)
        xx, xy, yy = fields[0, 2:]
        conformation = torch.stack([1 + xx, xy, xy, 1 + yy]).unflatten(0, (2, 2))
        turned = torch.einsum("kixy,kjxy->ijxy", slope[:, :2], conformation)  # (C·∇)v transposed
        stretched = (turned + turned.transpose(0, 1)).flatten(0, 1)[[0, 1, 3]]
        made = torch.cat([-carried[:2], stretched - carried[2:]])
        products = modes.forward(made) * modes.kept
        x, y = slopes[:, 2:]  # of C - 1
        pull = box.polymer_viscosity / box.relaxation * torch.stack([x[0] + y[1], x[1] + y[2]])
        return torch.cat([modes.project(products[:2] + pull + self._force), products[2:]])

    def check(self) -> None:
        """Raise unless the conformation tensor is positive definite everywhere."""
        xx, xy, _, yy = self.conformation.unbind(-1)
        lowest = float(((xx + yy) / 2 - (((xx - yy) / 2).square() + xy.square()).sqrt()).min())
        if not lowest > 0:
            raise ValueError(
                f"the conformation tensor must be positive definite, but at time {self.time:.4g} "
                f"its smallest eigenvalue is {lowest:.3g}: take a smaller time_step than "
                f"{self.box.time_step:g}, more cells than {self.box.cells} or more diffusion than "
                f"{self.box.diffusion:g}"
            )
