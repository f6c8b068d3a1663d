"""Charged particles in space: the simulator of the benchmark, from its equations.

Particles of unit mass and charges q = ±1 feel the forces

    F_i = sum_j  q_i q_j (x_i - x_j) / |x_i - x_j|³,

and each component of F_i is clipped to ±0.1 / dt: that alone keeps close encounters finite, there
is no softening and no box. Leapfrog steps are

    v(t + dt/2) = v(t - dt/2) + dt F(x(t)),    x(t + dt) = x(t) + dt v(t + dt/2),

and the drawn velocities count as those at -dt/2. Clipping keeps neither the momentum nor rotations:
where it acts the benchmark commutes with permuted and reflected axes only.

The benchmark (Satorras, Hoogeboom and Welling 2021, after Kipf et al. 2018, who gave the simulator)
asks for the positions after 4,100 steps, given positions, velocities and charges after 3,100.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from cscnn._util.files import replacing
from cscnn._util.progress import Bar

#: Raised when other numbers come out.
VERSION = 1
DT = 1e-3
LARGEST = 0.1 / DT  #: that a component of a force may be
SPEED = 0.5  #: of all particles at first
BODIES = 5
#: Steps before the input, and from there to the target.
BEFORE, AHEAD = 3100, 1000
#: Simulations that are evolved together: their forces fit into a cache.
TOGETHER = 500
#: Numbers of a stored trajectory of the public generator: positions and velocities at 49 times.
STORED = 2 * 49 * 3 * BODIES


class Particles(NamedTuple):
    """Sets of particles.

    Attributes:
        positions: (sets, particles, 3)
        velocities: (sets, particles, 3), half a step earlier.
        charges: (sets, particles)
    """

    positions: Tensor
    velocities: Tensor
    charges: Tensor


def forces(positions: Tensor, pairs: Tensor, largest: float = LARGEST) -> Tensor:
    """Forces (3, particles, sets).

    Args:
        positions: (3, particles, sets): the sets last, so that inner loops are long.
        pairs: (particles, particles, sets), products of charges.
        largest: each component is clipped to this.
    """
    apart = positions[:, :, None] - positions[:, None]
    squares = apart.square().sum(0)
    squares.diagonal(dim1=0, dim2=1).fill_(1)  # of a particle and itself, which are 0 apart
    return (apart * (pairs / (squares * squares.sqrt()))).sum(2).clamp_(-largest, largest)


def evolve(start: Particles, steps: int, dt: float = DT, largest: float | None = None) -> Particles:
    """The particles some leapfrog steps later.

    Args:
        start: float64.
        steps: how many.
        dt: of a step.
        largest: component of a force; by default 0.1 / dt.
    """
    bound = 0.1 / dt if largest is None else largest
    x, v = (a.permute(2, 1, 0).clone(memory_format=torch.contiguous_format) for a in start[:2])
    charges = start.charges.T
    pairs = (charges[:, None] * charges).contiguous()
    for _ in range(steps):
        v.add_(forces(x, pairs, bound), alpha=dt)
        x.add_(v, alpha=dt)
    return Particles(x.permute(2, 1, 0), v.permute(2, 1, 0), start.charges)


def reverse(state: Particles, dt: float = DT) -> Particles:
    """The same with time running backwards: `evolve` goes back to where it came from."""
    charges = state.charges.T
    force = forces(state.positions.permute(2, 1, 0), charges[:, None] * charges, 0.1 / dt)
    return state._replace(velocities=-(state.velocities + dt * force.permute(2, 1, 0)))


def energy(state: Particles, dt: float = DT) -> Tensor:
    """(sets,), with velocities of the time of the positions, to second order in dt."""
    now = (state.velocities - reverse(state, dt).velocities) / 2
    apart = (state.positions[:, :, None] - state.positions[:, None]).norm(dim=-1)
    apart.diagonal(dim1=1, dim2=2).fill_(math.inf)
    potential = state.charges[:, :, None] * state.charges[:, None] / apart
    return now.square().sum((1, 2)) / 2 + potential.sum((1, 2)) / 2


def draw(rng: np.random.RandomState, count: int) -> Particles:
    """Particles with normal positions, speeds of 1/2 in all directions, and random charges."""
    sets = [_draw_one(rng) for _ in range(count)]
    positions, velocities, charges = (
        torch.from_numpy(np.array([one[i] for one in sets])) for i in range(3)
    )
    velocities = velocities * SPEED / velocities.norm(dim=1, keepdim=True)
    return Particles(positions.mT.contiguous(), velocities.mT.contiguous(), charges)


def _draw_one(rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """In the order of the public generator, so that its seeds give its simulations."""
    charges = rng.choice([-1.0, 0.0, 1.0], size=BODIES, p=[0.5, 0.0, 0.5])
    positions, velocities = rng.randn(3, BODIES), rng.randn(3, BODIES)
    rng.randn(STORED)  # noise of measurements, which the benchmark sets to zero
    return positions, velocities, charges


@dataclass(frozen=True)
class Sizes:
    """Of the splits.

    Attributes:
        train, valid, test: simulations of each.
        drawn: simulations that are drawn for training, of which the first are used.
        seed: of the published data set.
    """

    train: int = 3000
    valid: int = 2000
    test: int = 2000
    drawn: int = 10_000
    seed: int = 43


PUBLISHED_SIZES = Sizes()


@dataclass(frozen=True)
class Samples:
    """Inputs and targets.

    Attributes:
        start: what a network is given.
        end: (sets, particles, 3), positions 1,000 steps later.
    """

    start: Particles
    end: Tensor

    def __len__(self) -> int:
        return len(self.end)

    def select(self, index: Tensor | slice) -> Samples:
        """Some of them."""
        return Samples(Particles(*(x[index] for x in self.start)), self.end[index])

    def float(self) -> Samples:
        """In single precision."""
        return Samples(Particles(*(x.float() for x in self.start)), self.end.float())


def simulate(sizes: Sizes, quiet: bool = False) -> dict[str, Samples]:
    """All splits."""
    rng = np.random.RandomState(sizes.seed)
    drawn = {"train": sizes.drawn, "valid": sizes.valid, "test": sizes.test}
    starts = {split: draw(rng, count) for split, count in drawn.items()}
    bar = Bar("simulations", quiet=quiet)
    result = {}
    for split, start in starts.items():
        count = getattr(sizes, split)
        parts = []
        for first in range(0, count, TOGETHER):
            bar(split, first, count)
            rows = slice(first, min(first + TOGETHER, count))
            seen = evolve(Particles(*(x[rows] for x in start)), BEFORE)
            parts.append((*seen, evolve(seen, AHEAD).positions))
        bar(split, count, count)
        *seen_all, end = (torch.cat(column).contiguous() for column in zip(*parts, strict=True))
        result[split] = Samples(Particles(*seen_all), end)
    return result


def open_data(path: Path, sizes: Sizes, quiet: bool = False) -> dict[str, Samples]:
    """All splits from a file, which is written if it is not there or has others."""
    form = json.dumps({**asdict(sizes), "version": VERSION}, sort_keys=True)
    if (known := _read(path, form)) is not None:
        return known
    splits = simulate(sizes, quiet)
    arrays = {
        f"{split}_{name}": array.numpy()
        for split, samples in splits.items()
        for name, array in (*samples.start._asdict().items(), ("end", samples.end))
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez(file, form=np.array(form), **arrays)
    return splits


def _read(path: Path, form: str) -> dict[str, Samples] | None:
    if not path.is_file():
        return None
    with np.load(path) as file:
        if str(file["form"]) != form:
            return None
        return {
            split: Samples(
                Particles(
                    *(torch.from_numpy(file[f"{split}_{name}"]) for name in Particles._fields)
                ),
                torch.from_numpy(file[f"{split}_end"]),
            )
            for split in ("train", "valid", "test")
        }
