"""The command ``python -m experiments.scheme_error``: how well smoke data solve their equation.

The simulator ``navier_stokes`` takes the steps of PhiFlow, which are 1.5 s long in the published
data. Here the same flow is computed by a method that shares nothing with it: a spectral
Galerkin method whose stream functions satisfy the boundary conditions exactly,

    ψ = Σ a_ij φ_i(x) φ_j(y),    v = (∂ψ/∂y, -∂ψ/∂x),    φ = φ' = 0 on the walls.

Velocities are then free of divergence and zero on the walls. Tested with such velocities, the
pressure drops out of the equation:

    (∇ψ_t, ∇φ) = (b s - ω × v, curl φ) - ν (Δψ, Δφ)

Smoke is a polynomial on the Gauss points, whose highest orders are damped by an exponential filter:
without it they grow. Time steps are those of Runge and Kutta's method of fourth order, as long as
viscosity allows.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.polynomial import legendre
from torch import Tensor

from cscnn._util.command import run_command
from cscnn.data.simulators import NavierStokes
from cscnn.data.simulators.navier_stokes import to_centres

PROGRAM = "python -m experiments.scheme_error"
STEPS = 4  #: between two frames of the paper's data
#: Where the comparison begins, and after how many steps from rest that is.
STARTS = {"from rest": 0, "from the first frame": NavierStokes.warmup + 1}
#: Cells per axis, and how many steps the simulator takes for one of the paper's.
RESOLUTIONS = ((64, 1), (128, 1), (128, 4), (256, 8), (512, 16))
MODES = 8  #: of the smoke at the start; the amplitudes of higher ones are below 1e-9
DAMPING = 360.0  #: rate at which the highest order of the smoke decays, per second

Smoke = Callable[[np.ndarray, np.ndarray], np.ndarray]
State = tuple[np.ndarray, np.ndarray]  #: coefficients of ψ, smoke at the Gauss points


def smoke_at_start(box: NavierStokes, seed: int) -> Smoke:
    """Smoke like that of `NavierStokes.noise`, as a function of x and y instead of a grid."""
    rng = np.random.default_rng(seed)
    waves = np.arange(-MODES, MODES + 1)
    kx, ky = (waves / length * box.noise_scale for length in box.size)
    square = kx[:, None] ** 2 + ky**2
    weight = np.zeros_like(square)
    weight[square > 0.1] = square[square > 0.1] ** -box.noise_smoothness
    real, imaginary = rng.standard_normal((2, *square.shape))
    amplitudes = (real + 1j * imaginary) * weight
    amplitudes /= np.sqrt(np.square(np.abs(amplitudes + amplitudes[::-1, ::-1].conj())).sum()) / 2

    def smoke(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        a, b = (
            np.exp(2j * np.pi * np.multiply.outer(points, waves) / length)
            for points, length in zip((x, y), box.size, strict=True)
        )
        return np.abs((a @ amplitudes @ b.T).real)

    return smoke


class Galerkin:
    """A viscous fluid with smoke in a square box, see the head of this file.

    Args:
        box: size, viscosity and buoyancy.
        order: number of functions φ along each axis.
    """

    def __init__(self, box: NavierStokes, order: int):
        if box.size[0] != box.size[1]:
            raise ValueError(f"the spectral method takes square boxes, got size {box.size}")
        self.box, self.half = box, box.size[0] / 2
        # Products of two functions are integrated exactly with this many points.
        nodes, weights = legendre.leggauss(3 * order // 2 + 6)
        self.points, self.weights = (nodes + 1) * self.half, weights * self.half
        self.change = _shen(order)
        mass, stiffness = (self._gram(self.basis(self.points, d)) for d in (0, 1))
        # Functions for which (φ_i, φ_j) = δ_ij and (φ_i', φ_j') = λ_i δ_ij.
        lower = np.linalg.inv(np.linalg.cholesky(mass))
        values, vectors = np.linalg.eigh(lower @ stiffness @ lower.T)
        self.change = self.change @ lower.T @ vectors
        self.laplace = values[:, None] + values
        self.values = [self.basis(self.points, d) for d in (0, 1, 2)]
        self.tests = [b.T * self.weights for b in self.values]
        orders = np.arange(len(nodes))
        self.legendre = legendre.legvander(nodes, orders[-1])  # from coefficients to values
        slopes = legendre.legval(nodes, legendre.legder(np.eye(len(nodes)))).T
        self.derivative = self._of_values(slopes) / self.half
        self.damping = DAMPING * (orders / orders[-1]) ** 16
        bending = self._gram(self.values[2]) / np.sqrt(np.multiply.outer(values, values))
        self.stiffest = float(box.medium.viscosity) * 2 * float(np.linalg.eigvalsh(bending)[-1])

    def _of_values(self, operator: np.ndarray) -> np.ndarray:
        """An operator on Legendre coefficients as one on values at the points."""
        return np.linalg.solve(self.legendre.T, operator.T).T

    def _gram(self, functions: np.ndarray) -> np.ndarray:
        return (functions.T * self.weights) @ functions

    def basis(self, points: np.ndarray, derivative: int) -> np.ndarray:
        """Derivatives of all φ at points of the box, (points, functions)."""
        coefficients = legendre.legder(self.change, derivative) if derivative else self.change
        return legendre.legval(points / self.half - 1, coefficients).T / self.half**derivative

    def velocity(self, a: np.ndarray, points: np.ndarray) -> np.ndarray:
        """At a grid of points of the box, (x, y, 2)."""
        value, slope = self.basis(points, 0), self.basis(points, 1)
        return np.stack([value @ a @ slope.T, -slope @ a @ value.T], -1)

    def rates(self, a: np.ndarray, smoke: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Time derivatives of the stream function's coefficients and of the smoke at the points."""
        value, slope, bend = self.values
        u, v = value @ a @ slope.T, -slope @ a @ value.T
        laplacian = bend @ a @ value.T + value @ a @ bend.T  # minus the vorticity
        force = [b * smoke for b in self.box.medium.buoyancy]
        t0, t1, t2 = self.tests
        change = t0 @ (force[0] - laplacian * v) @ t1.T - t1 @ (force[1] + laplacian * u) @ t0.T
        viscous = t2 @ laplacian @ t0.T + t0 @ laplacian @ t2.T
        d = self.derivative
        # The mean of v·∇s and ∇·(v s), which keeps the mean square of the smoke.
        carried = u * (d @ smoke) + v * (smoke @ d.T) + d @ (u * smoke) + (v * smoke) @ d.T
        return (change - self.box.medium.viscosity * viscous) / self.laplace, -carried / 2

    def start(self, smoke: Smoke) -> State:
        """At rest, with that smoke."""
        return np.zeros_like(self.laplace), smoke(self.points, self.points)

    def solve(self, state: State, duration: float) -> State:
        """What becomes of the stream function's coefficients and of the smoke at the points."""
        steps = int(np.ceil(duration * max(self.stiffest / 2.5, len(self.laplace))))
        dt = duration / steps
        damp = self._of_values(self.legendre * np.exp(-dt * self.damping))
        for _ in range(steps):
            k1 = self.rates(*state)
            k2 = self.rates(*_advance(state, k1, dt / 2))
            k3 = self.rates(*_advance(state, k2, dt / 2))
            k4 = self.rates(*_advance(state, k3, dt))
            for k, part in ((k1, 1), (k2, 2), (k3, 2), (k4, 1)):
                state = _advance(state, k, dt * part / 6)
            state = (state[0], damp @ state[1] @ damp.T)
        return state

    def on_cells(self, state: State, box: NavierStokes) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Smoke in the cells of the simulator, and the flow through its inner faces."""
        (cells, _), (h, _) = box.grid, box.spacing
        corners = self.basis(np.arange(cells + 1) * h, 0)
        stream = corners @ state[0] @ corners.T
        u, v = np.diff(stream, axis=1)[1:-1] / h, -np.diff(stream, axis=0)[:, 1:-1] / h
        centres = legendre.legvander(_centres(box) / self.half - 1, len(self.points) - 1)
        to_cells = self._of_values(centres)
        smoke = to_cells @ state[1] @ to_cells.T
        return torch.as_tensor(smoke)[None], (torch.as_tensor(u)[None], torch.as_tensor(v)[None])


def _centres(box: NavierStokes) -> np.ndarray:
    return (np.arange(box.grid[0]) + 0.5) * box.spacing[0]


def _advance(state: State, rates: State, dt: float) -> State:
    return state[0] + dt * rates[0], state[1] + dt * rates[1]


def _shen(order: int) -> np.ndarray:
    """Legendre coefficients (order + 4, order) of functions that vanish with their slopes at ±1."""
    coefficients = np.zeros((order + 4, order))
    for k in range(order):
        coefficients[k, k] = 1.0
        coefficients[k + 2, k] = -2 * (2 * k + 5) / (2 * k + 7)
        coefficients[k + 4, k] = (2 * k + 3) / (2 * k + 7)
        coefficients[:, k] /= np.sqrt(2 * (2 * k + 3) ** 2 * (2 * k + 5))
    return coefficients


@dataclass(frozen=True)
class Reference:
    """Solutions of the spectral method for one random start.

    Attributes:
        solver: the method.
        states: number of the paper's steps since the start -> solution.
    """

    solver: Galerkin
    states: dict[int, State]

    @classmethod
    def compute(cls, box: NavierStokes, seed: int, order: int) -> Reference:
        """By a method of that order."""
        solver = Galerkin(box, order)
        now, state = 0, solver.start(smoke_at_start(box, seed))
        states = {now: state}
        for step in sorted({start + more for start in STARTS.values() for more in (0, STEPS)}):
            if step > now:
                state = solver.solve(state, (step - now) * box.time_step)
                now, states[step] = step, state
        return cls(solver, states)

    def velocity(self, box: NavierStokes, steps: int) -> np.ndarray:
        """In the middle of the cells of a grid, (x, y, 2)."""
        return self.solver.velocity(self.states[steps][0], _centres(box))

    def error(self, start: int, cells: int, refine: int) -> float:
        """Relative error of the simulator's velocity, the paper's `STEPS` after a start.

        Args:
            start: number of the paper's steps from which the simulator goes on.
            cells: per axis.
            refine: number of steps that it takes for one of the paper's.
        """
        box = self.solver.box
        box = replace(box, grid=(cells, cells), time_step=box.time_step / refine)
        smoke, flow = self.solver.on_cells(self.states[start], box)
        for _ in range(STEPS * refine):
            smoke, flow = box.step(smoke, flow)
        return relative(to_centres(flow)[0].numpy(), self.velocity(box, start + STEPS))


def relative(velocity: np.ndarray, truth: np.ndarray) -> float:
    """|velocity - truth| / |truth|."""
    return float(np.linalg.norm(velocity - truth) / np.linalg.norm(truth))


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Compares the simulator of smoke with a spectral solution of its equations, "
        f"{STEPS} steps of the paper after a common state.",
        epilog="example: python -m experiments.scheme_error --starts 1 --order 64",
    )
    parser.add_argument(
        "--starts", type=int, default=4, help="random starts (default: %(default)s)"
    )
    parser.add_argument(
        "--order", type=int, default=96, help="of the spectral method (default: %(default)s)"
    )
    parser.add_argument("--debug", action="store_true", help="show the traceback of errors")
    args = parser.parse_args(argv)
    return run_command(PROGRAM, lambda: _print(args.starts, args.order), debug=args.debug)


def _print(starts: int, order: int) -> int:
    if starts < 1 or order < 8:
        raise ValueError(f"--starts must be at least 1 and --order 8, got {starts} and {order}")
    box = NavierStokes()
    references = [Reference.compute(box, seed, order) for seed in range(starts)]
    coarse = [Reference.compute(box, seed, 2 * order // 3) for seed in range(starts)]
    print(f"Relative error of the velocity after {STEPS} steps, mean of {starts} starts\n")
    print(f"| cells | time step | {' | '.join(STARTS)} |\n|---|---:|---:|---:|")
    for cells, refine in RESOLUTIONS:
        errors = [
            np.mean([reference.error(start, cells, refine) for reference in references])
            for start in STARTS.values()
        ]
        numbers = " | ".join(f"{error:.2f}" for error in errors)
        print(f"| {cells}² | {box.time_step / refine:.2g} s | {numbers} |", flush=True)
    own = [
        np.mean([
            relative(c.velocity(box, start + STEPS), r.velocity(box, start + STEPS))
            for c, r in zip(coarse, references, strict=True)
        ])
        for start in STARTS.values()
    ]  # fmt: skip
    numbers = " | ".join(f"{error:.3f}" for error in own)
    print(f"| spectral, order {2 * order // 3} instead of {order} | | {numbers} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
