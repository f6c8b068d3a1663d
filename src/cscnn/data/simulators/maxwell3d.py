"""Light from random plane sources in three dimensions: Maxwell's equations on a Yee grid.

    ∂E/∂t = (1/ε) ∇ × H,    ∂H/∂t = -(1/μ) ∇ × E

in units with c = 1 and cells of size 1. E_x sits at (i + ½, j, k), H_x at (i, j + ½, k + ½), and so
on cyclically; H is half a step ahead of E. A step is that of the package fdtd: E, its periodic
border, its sources, then the same for H. With dielectric bodies ε is a number for each cell, and on
an edge the mean of the four cells that meet there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from cscnn._util.checks import check_choice, check_positive
from cscnn.calculus import curl, divergence
from cscnn.data.fields import Field, Given
from cscnn.data.header import Header
from cscnn.data.laws import Law
from cscnn.data.simulators.base import Presets, Simulator

SPEED_OF_LIGHT = 299_792_458.0
STRETCH = 2**15  #: numbers that are updated together


@dataclass(frozen=True)
class Source:
    """A plane patch that dictates E and H: amplitude · sin(2π step / period + phase).

    Attributes:
        start, stop: the cells it covers; one of the three axes has a single one.
        electric, magnetic: the axes of E and H, both in the plane.
        amplitude, phase: of the oscillation.
        period: in steps.
    """

    start: tuple[int, int, int]
    stop: tuple[int, int, int]
    electric: int
    magnetic: int
    amplitude: float
    phase: float
    period: int


@dataclass(frozen=True)
class Maxwell3D(Simulator):
    """Electric and magnetic fields in a box beside random sources.

    Attributes:
        cells: simulated cells per axis; the box is periodic, cell 0 being a copy of the last.
        keep: cells per axis that are stored, from the middle of the box.
        cell_size: in metres.
        permittivity, permeability: relative, of the medium.
        courant: c · time step / cell size.
        warmup: steps before the first stretch of ``every`` steps.
        every: steps between frames.
        frames: number of frames.
        bodies: dielectric balls in each trajectory, with centres in the stored cells. With any, the
            permittivity is a static field that is given.
        body_radius: in cells, drawn between these two.
        body_permittivity: relative, drawn between these two for each body.
        sources: plane sources for each of the three orientations of planes.
        amplitude: largest amplitude of a source.
        wavelength: in metres; periods are ``wavelength / c`` times a factor
        period_factors: drawn uniformly between these two.
        dtype: of the simulation, ``"float64"`` or, twice as fast, ``"float32"``.
    """

    name = "maxwell3d"
    presets: ClassVar[Presets] = {
        "paper": {},
        "small": {"cells": 32, "keep": 16, "warmup": 125, "every": 12},
    }
    batch = 1
    laws = (
        Law("no_magnetic_charge", "∇∧B = 0", "no magnetic charge", "magnetic", curl, place="faces"),
        Law(
            "no_charge", "∇⌟(εE) = 0", "no charge here", "electric", divergence,
            place="edges", factor="permittivity",
        ),
    )  # fmt: skip

    cells: int = 64
    keep: int = 32
    cell_size: float = 5e-7
    permittivity: float = 10.0
    permeability: float = 1.0
    courant: float = 0.99 / math.sqrt(3)
    warmup: int = 250
    every: int = 25
    frames: int = 8
    sources: int = 6
    amplitude: float = 1.0
    wavelength: float = 1e-5
    period_factors: tuple[float, float] = (0.001, 1000.0)
    dtype: str = "float64"
    bodies: int = 0
    body_radius: tuple[float, float] = (2.0, 5.0)
    body_permittivity: tuple[float, float] = (2.0, 20.0)

    def __post_init__(self) -> None:
        check_positive(
            cell_size=self.cell_size, permittivity=self.permittivity, every=self.every,
            permeability=self.permeability, courant=self.courant, frames=self.frames,
            wavelength=self.wavelength, period_factors=self.period_factors,
            body_radius=self.body_radius, body_permittivity=self.body_permittivity,
        )  # fmt: skip
        if not 1 <= self.keep <= self.cells - 14:
            raise ValueError(
                "the stored cells must leave a margin of at least 7 cells for the sources: got "
                f"keep={self.keep} of cells={self.cells}"
            )
        smallest = min([self.permittivity, *(self.body_permittivity if self.bodies else ())])
        limit = math.sqrt(smallest * self.permeability / 3)
        if self.courant > limit:
            raise ValueError(f"unstable: courant must be at most {limit:.4f}, got {self.courant}")
        check_choice("dtype", self.dtype, ("float32", "float64"))
        for name in ("warmup", "sources", "bodies"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")
        if self.body_permittivity[0] > self.body_permittivity[1]:
            raise ValueError(
                "body_permittivity takes the smallest and the largest value, got "
                f"{self.body_permittivity}"
            )
        if self.bodies and not self.body_radius[0] <= self.body_radius[1] <= self.margin - 2:
            raise ValueError(
                f"body_radius takes smallest and largest radius, up to {self.margin - 2} cells, so "
                f"that bodies do not reach the ends of the box, got {self.body_radius}"
            )

    @property
    def time_step(self) -> float:
        """In seconds."""
        return self.courant * self.cell_size / SPEED_OF_LIGHT

    @property
    def margin(self) -> int:
        """Cells before the stored ones, where the sources are."""
        return (self.cells - self.keep) // 2

    def header(self) -> Header:
        return Header(
            metric=(1, 1, 1),
            axes=("x", "y", "z"),
            spacing=(self.cell_size,) * 3,
            boundary=("open",) * 3,
            fields=(Field("electric", 1, "E/E0"), Field("magnetic", 2, "H/H0")),
            frames=self.frames,
            grid=(self.keep,) * 3,
            frame_spacing=self.every * self.time_step,
            units={"length": "m", "time": "s"},
            given=(Given("permittivity", 0, "static", "ε/ε0"),) if self.bodies else (),
        )

    def simulate(
        self, rngs: Sequence[np.random.Generator], device: torch.device | str = "cpu"
    ) -> dict[str, Tensor]:
        results = [self._trajectory(self.draw(rng), self.draw_medium(rng), device) for rng in rngs]
        return {name: torch.stack([result[name] for result in results]) for name in results[0]}

    def draw(self, rng: np.random.Generator) -> list[Source]:
        """Random sources in the corner next to the stored cells."""
        sources = []
        for flat in (2, 1, 0):
            plane = [axis for axis in range(3) if axis != flat]
            for _ in range(self.sources):
                start, stop = [0, 0, 0], [0, 0, 0]
                for axis in range(3):
                    length = 1 if axis == flat else int(rng.integers(2, 6))
                    start[axis] = int(rng.integers(0, self.margin - length + (axis == flat)))
                    stop[axis] = start[axis] + length
                amplitude = rng.uniform() * self.amplitude
                phase = rng.uniform(0, 2 * math.pi)
                electric, magnetic = rng.permutation(plane).tolist()
                seconds = self.wavelength / SPEED_OF_LIGHT * rng.uniform(*self.period_factors)
                period = max(1, int(seconds / self.time_step + 0.5))
                corners = ((start[0], start[1], start[2]), (stop[0], stop[1], stop[2]))
                sources.append(Source(*corners, electric, magnetic, amplitude, phase, period))
        return sources

    def draw_medium(self, rng: np.random.Generator) -> Tensor | None:
        """The permittivity of all cells (x, y, z), with random balls in it; None if it is uniform.

        A ball's permittivity falls to that of the medium over one cell. Later balls win.
        """
        if not self.bodies:
            return None
        medium = torch.full((self.cells,) * 3, self.permittivity, dtype=torch.float64)
        centres = torch.arange(self.cells, dtype=torch.float64) + 0.5
        for _ in range(self.bodies):
            middle = rng.uniform(self.margin, self.margin + self.keep, 3).tolist()
            radius, value = rng.uniform(*self.body_radius), rng.uniform(*self.body_permittivity)
            x, y, z = torch.meshgrid(*(centres - m for m in middle), indexing="ij")
            inside = (radius + 0.5 - (x**2 + y**2 + z**2).sqrt()).clamp(0, 1)
            medium += inside * (value - medium)
        return medium

    def _trajectory(
        self, sources: Sequence[Source], medium: Tensor | None, device: torch.device | str
    ) -> dict[str, Tensor]:
        yee = YeeGrid(self, sources, device, medium)
        low, high = self.margin, self.margin + self.keep
        inside = None if medium is None else medium[(slice(low, high),) * 3].unsqueeze(-1)
        yee.run(self.warmup)
        electric, magnetic = [], []
        for _ in range(self.frames):
            yee.run(self.every - 1)
            before = yee.magnetic.clone()
            yee.run(1)
            if inside is None:
                electric.append(self._centred(yee.electric, edges=True))
            else:  # E = D / ε, with the mean of D, so that D has no divergence in the data either
                displacement = self._centred(yee.permittivity * yee.electric, edges=True)
                electric.append(displacement / inside.to(displacement))
            magnetic.append(self._centred((before + yee.magnetic) / 2, edges=False))
        e, h = torch.stack(electric), torch.stack(magnetic)
        bivector = torch.stack([h[..., 2], -h[..., 1], h[..., 0]], -1)
        given = {} if inside is None else {"permittivity": inside.to(e)}
        return {"electric": e, "magnetic": bivector, **given}

    def _centred(self, x: Tensor, edges: bool) -> Tensor:
        """Components (3, x, y, z) on edges or faces, at the centres of the stored cells."""
        low, high = self.margin, self.margin + self.keep
        components = []
        for axis, component in enumerate(x.unbind()):
            part = component[low : high + 1, low : high + 1, low : high + 1]
            for other in range(3):
                first = part.narrow(other, 0, self.keep)
                if (other != axis) == edges:
                    part = (first + part.narrow(other, 1, self.keep)) / 2
                else:
                    part = first
            components.append(part)
        return torch.stack(components, -1)


class YeeGrid:
    """The state of one simulation.

    Attributes:
        electric, magnetic: (3, x, y, z), staggered.
        permittivity: where the electric field is, (3, x, y, z), or one number.
        steps: how many were made.
    """

    def __init__(
        self,
        box: Maxwell3D,
        sources: Sequence[Source],
        device: torch.device | str = "cpu",
        medium: Tensor | None = None,
    ):
        dtype = getattr(torch, box.dtype)
        self.electric = torch.zeros(3, box.cells, box.cells, box.cells, dtype=dtype, device=device)
        self.magnetic = torch.zeros_like(self.electric)
        self.steps = 0
        self.permittivity: float | Tensor = box.permittivity
        if medium is not None:
            self.permittivity = _on_edges(medium).to(self.electric)
        self._electric_terms = _curl(
            self.electric, self.magnetic, box.courant / self.permittivity, back=True
        )
        self._magnetic_terms = _curl(
            self.magnetic, self.electric, -box.courant / box.permeability, back=False
        )
        self._sources = list(sources)
        self._electric_cells = self._cells(box.cells, [s.electric for s in sources])
        self._magnetic_cells = self._cells(box.cells, [s.magnetic for s in sources])

    def _cells(self, n: int, axes: list[int]) -> tuple[Tensor, Tensor]:
        """Flat indices that sources dictate, and which source; later sources win."""
        owner: dict[int, int] = {}
        for number, (source, axis) in enumerate(zip(self._sources, axes, strict=True)):
            ranges = [np.arange(a, b) for a, b in zip(source.start, source.stop, strict=True)]
            i, j, k = np.meshgrid(*ranges, indexing="ij")
            flat = ((axis * n + i) * n + j) * n + k
            owner.update(dict.fromkeys(flat.ravel().tolist(), number))
        device = self.electric.device
        return (
            torch.tensor(list(owner), dtype=torch.int64, device=device),
            torch.tensor(list(owner.values()), dtype=torch.int64, device=device),
        )

    def _waves(self, steps: int) -> Tensor:
        """What the sources emit in the coming steps, (steps, sources)."""
        q = torch.arange(self.steps, self.steps + steps, dtype=torch.float64)[:, None]
        period, phase, amplitude = (
            torch.tensor([getattr(s, name) for s in self._sources], dtype=torch.float64)
            for name in ("period", "phase", "amplitude")
        )
        return (amplitude * torch.sin(2 * math.pi * q / period + phase)).to(self.electric)

    def run(self, steps: int) -> None:
        """Advance."""
        waves = self._waves(steps)
        electric_waves = waves[:, self._electric_cells[1]]
        magnetic_waves = waves[:, self._magnetic_cells[1]]
        for i in range(steps):
            _add(self._electric_terms)
            for axis in (1, 2, 3):
                self.electric.select(axis, 0).copy_(self.electric.select(axis, -1))
            self.electric.view(-1).index_copy_(0, self._electric_cells[0], electric_waves[i])
            _add(self._magnetic_terms)
            for axis in (1, 2, 3):
                self.magnetic.select(axis, -1).copy_(self.magnetic.select(axis, 0))
            self.magnetic.view(-1).index_copy_(0, self._magnetic_cells[0], magnetic_waves[i])
        self.steps += steps


#: target += gain · (plus - minus), with one gain or one for each number
Term = tuple[Tensor, Tensor, Tensor, float | Tensor]


def _add(terms: Sequence[Term]) -> None:
    for target, plus, minus, gain in terms:
        if isinstance(gain, Tensor):
            target.addcmul_(plus, gain).addcmul_(minus, gain, value=-1)
        else:
            target.add_(plus, alpha=gain).sub_(minus, alpha=gain)


def _on_edges(cells: Tensor) -> Tensor:
    """Means of the four cells (x, y, z) that meet on the edges along each axis: (3, x, y, z)."""
    return torch.stack(
        [
            (cells + cells.roll(1, a) + cells.roll(1, b) + cells.roll((1, 1), (a, b))) / 4
            for a, b in ((1, 2), (0, 2), (0, 1))
        ]
    )


def _curl(x: Tensor, y: Tensor, gain: float | Tensor, back: bool) -> list[Term]:
    """x += gain ∇ × y as a list of terms.

    Differences look back or ahead. They are taken between shifted stretches of the flat arrays,
    which is several times faster than between slices; where a shift runs over an edge of the box
    the result is wrong, but there the periodic border overwrites it. Short stretches stay in the
    processor's cache for all terms.
    """
    n = x.shape[1]
    strides = (n * n, n, 1)
    terms: list[Term] = []
    stretch = STRETCH if x.device.type == "cpu" else n**3
    for low in range(0, n**3, stretch):
        for axis in range(3):
            for step, sign in ((1, 1), (2, -1)):
                stride = strides[(axis + step) % 3]
                source = y[(axis + 3 - step) % 3].view(-1)
                first = max(low, stride) if back else low
                last = min(low + stretch, n**3 if back else n**3 - stride)
                if first < last:
                    ahead = 0 if back else stride
                    plus = source[first + ahead : last + ahead]
                    minus = source[first + ahead - stride : last + ahead - stride]
                    here = gain[axis].view(-1)[first:last] if isinstance(gain, Tensor) else gain
                    terms.append((x[axis].view(-1)[first:last], plus, minus, sign * here))
    return terms
