"""Numbers about random kernels: radial functions and angular frequencies.

A kernel of O(2) that maps vectors to vectors has the angular frequencies 0 and 2. The implicit one
has 0 only; two of them in a row have both (paper, App. B).
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

import torch
from torch import Tensor

from cscnn.algebra import CliffordAlgebra
from cscnn.kernels import CompleteKernel, ImplicitKernel, SteerableKernel
from cscnn.kernels.orbits import invariants

SEED = 1
RADIUS = 0.5  #: of the ring on which kernels are split into angular frequencies
ANGLES = 16  #: points of the ring
FREQUENCIES = 5  #: of interest: 0, 1, ...
NAMES = {"project": "α", "stretch": "β", "wedge": "γ", "contract": "δ"}


def random_kernels(metric: tuple[int, ...], seed: int = SEED) -> dict[str, SteerableKernel]:
    """An implicit and a complete kernel between single channels, in float64.

    Weights are as drawn for a new network; the random numbers of the caller are left alone.
    """
    algebra = CliffordAlgebra(metric)
    axis = torch.linspace(-1, 1, 15)
    points = torch.cartesian_prod(*[axis] * len(metric))
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        implicit = ImplicitKernel(algebra, 1, 1)
        complete = CompleteKernel(algebra, 1, 1, points=points)
    return {"implicit": implicit.double(), "complete": complete.double()}


@dataclass(frozen=True)
class Radial:
    """Radial functions of a kernel.

    Attributes:
        names: of each function, e.g. ``α0``.
        kinds: of each function, see `cscnn.kernels.basis.KINDS`.
        at: (points,) |v|, with the sign of η(v, v).
        values: (functions, points).
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    at: Tensor
    values: Tensor

    @property
    def rank(self) -> int:
        """How many of the functions are independent."""
        return int(torch.linalg.matrix_rank(self.values, rtol=1e-9))


def radial_functions(kernel: SteerableKernel, count: int = 100) -> Radial:
    """The radial functions of a kernel between its first channels, up to |η| = 1.

    In mixed signature half of the points are on either side of the light cone.
    """
    algebra = kernel.algebra
    like = next(kernel.parameters())
    length = (torch.arange(count, dtype=like.dtype, device=like.device) + 0.5) / count
    metric = algebra.metric
    points = length.new_zeros(0, algebra.dim)
    at = length[:0]
    for sign in sorted(set(metric)):
        ray = length.new_zeros(count, algebra.dim)
        ray[:, metric.index(sign)] = length
        ray, signed = (ray.flip(0), -length.flip(0)) if sign < 0 else (ray, length)
        points, at = torch.cat([points, ray]), torch.cat([at, signed])
    with torch.no_grad():
        values = kernel.coefficients(invariants(points, algebra, kernel.group))[0, 0]
    kinds = tuple(kind for kind, _, _ in kernel.basis.elements)
    names = tuple(f"{NAMES[kind]}{k}" for kind, k, _ in kernel.basis.elements)
    return Radial(names, kinds, at, values)


def ring(radius: float = RADIUS, count: int = ANGLES) -> Tensor:
    """Points (count, 2) on a circle, from the first axis on."""
    angle = torch.arange(count, dtype=torch.float64) * (2 * math.pi / count)
    return radius * torch.stack([angle.cos(), angle.sin()], -1)


def angular_content(block: Tensor) -> Tensor:
    """Sizes of the angular frequencies 0, 1, ... of matrices on a ring, relative to all together.

    Args:
        block: (angles, rows, columns).

    Returns:
        (angles // 2,); their squares add up to 1, but for the highest frequency.
    """
    power = torch.fft.fft(block, dim=0, norm="forward").abs().square().sum((1, 2))
    both = torch.cat([power[:1], power[1:] + power[1:].flip(0)])  # frequencies m and -m
    return (both[: len(block) // 2] / power.sum()).sqrt()


def compose(
    second: SteerableKernel,
    first: SteerableKernel,
    points: Tensor,
    reach: float = 2.5,
    radii: int = 20,
    angles: int = 2 * ANGLES,
) -> Tensor:
    """The kernel of one convolution of the plane after another: ∫ K2(v - w) K1(w) dw.

    The integral runs over rings of w, so that it commutes with rotations by 2π / angles exactly.

    Args:
        second, first: kernels of O(2); their first channels count. They must decay.
        points: (N, 2).
        reach: how far w goes.
        radii, angles: rings, and points of each.

    Returns:
        (grades, N, blades, blades): what goes through each grade of the field between the two.
        The kernel is the sum over the first axis.
    """
    sizes = first.algebra.grade_sizes
    step = reach / radii
    lengths = (torch.arange(radii, dtype=points.dtype) + 0.5) * step
    w = torch.cat([ring(float(r), angles) for r in lengths])
    area = (lengths * step * 2 * math.pi / angles).repeat_interleave(angles)
    matrices = []
    with torch.no_grad():
        inner = (first(w)[:, 0, :, 0] * area[:, None, None]).split(sizes, 1)
        for v in points:  # one after the other: all at once would need N times the memory
            outer = second(v - w)[:, 0, :, 0].split(sizes, 2)
            parts = zip(outer, inner, strict=True)
            matrices.append(torch.stack([torch.einsum("wcm,wmb->cb", k, x) for k, x in parts]))
    return torch.stack(matrices, 1)


def frequency_contents(count: int = 16, seed: int = SEED) -> dict[str, Tensor]:
    """Angular frequencies of vectors to vectors on a ring, of random kernels of O(2).

    Returns:
        (count, FREQUENCIES) for ``implicit``, ``complete`` and ``two`` (implicit ones in a row),
        and for ``two`` by what is between: ``two through vectors``, ``two through others``.
    """
    points = ring()
    on_ring: dict[str, list[Tensor]] = defaultdict(list)
    for number in range(count):
        for name, kernel in random_kernels((1, 1), seed + number).items():
            with torch.no_grad():
                on_ring[name].append(kernel(points)[:, 0, :, 0])
        scalars, vectors, bivectors = compose(*random_pair(number, seed), points)
        on_ring["two"].append(scalars + vectors + bivectors)
        on_ring["two through vectors"].append(vectors)
        on_ring["two through others"].append(scalars + bivectors)
    return {
        name: torch.stack([angular_content(m[:, 1:3, 1:3])[:FREQUENCIES] for m in matrices])
        for name, matrices in on_ring.items()
    }


def random_pair(number: int, seed: int = SEED) -> tuple[SteerableKernel, SteerableKernel]:
    """Two implicit kernels of O(2)."""
    seeds = (seed + number, seed + number + 1000)
    second, first = (random_kernels((1, 1), s)["implicit"] for s in seeds)
    return second, first
