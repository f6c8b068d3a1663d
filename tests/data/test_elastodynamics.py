"""Elastic waves: plane waves, energy, symmetries, and the operators of `cscnn.calculus`."""

import math

import numpy as np
import pytest
import torch

from cscnn.algebra.grids import grid_symmetries, transform_on_grid
from cscnn.calculus import Spectral, divergence, gradient, strain_rate
from cscnn.data.laws import measure
from cscnn.data.simulators import Elastodynamics, create
from cscnn.data.simulators.elastodynamics import incompatibility, strain_of

SOLIDS = {2: {"dim": 2, "cells": 16}, 3: {"dim": 3, "cells": 9}}


def solid(dim: int, **options: object) -> Elastodynamics:
    settings = {**SOLIDS[dim], "size": 2.0, "density": 3.0, "smoothness": 0.3, **options}
    return Elastodynamics.create(**settings)


def state(simulator: Elastodynamics, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    return simulator.draw(np.random.default_rng(seed))


def any_state(simulator: Elastodynamics) -> tuple[torch.Tensor, torch.Tensor]:
    """With means, incompatible stress, and the highest frequencies of the grid."""
    generator = torch.Generator().manual_seed(0)
    grid = simulator.header().grid
    velocity = torch.randn(*grid, simulator.dim, generator=generator, dtype=torch.float64)
    shape = (*grid, simulator.dim, simulator.dim)
    stress = torch.randn(shape, generator=generator, dtype=torch.float64)
    return velocity, (stress + stress.mT).flatten(-2)


def packed(simulator: Elastodynamics, velocity: torch.Tensor, stress: torch.Tensor) -> torch.Tensor:
    algebra = simulator.header().algebra
    x = algebra.embed(velocity, 1) + algebra.embed(stress, "symmetric")
    return x[None, None]  # (batch, channels, *grid, components)


def plane_wave(
    simulator: Elastodynamics, numbers: tuple[int, ...], across: bool, time: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """v = p cos(k·x - ωt) with p along k or across it, and its stress, by hand."""
    k = 2 * math.pi / simulator.size * torch.tensor(numbers, dtype=torch.float64)
    along = k / k.norm()
    identity = torch.eye(simulator.dim, dtype=torch.float64)
    polarisation = identity[0] - along[0] * along if across else along
    omega = k.norm() * (simulator.shear_speed if across else simulator.pressure_speed)
    points = torch.arange(simulator.cells, dtype=torch.float64) * simulator.spacing
    x = torch.stack(torch.meshgrid(*[points] * simulator.dim, indexing="ij"), -1)
    wave = torch.cos(x @ k - omega * time)[..., None]
    outer = torch.outer(polarisation, k)
    first, second = simulator.moduli
    matrix = first * outer.trace() * identity + second * (outer + outer.T)
    return wave * polarisation, -wave * matrix.flatten() / omega


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("across", [False, True])
def test_plane_waves(dim: int, across: bool) -> None:
    """To rounding at any time; at the other speed they are not solutions."""
    simulator = solid(dim)
    numbers = (2, 1, -1)[:dim]
    start = plane_wave(simulator, numbers, across, 0.0)
    for time in (0.3, 7.0, -2.0):
        expected = plane_wave(simulator, numbers, across, time)
        for made, known in zip(simulator.propagate(*start, time), expected, strict=True):
            assert (made - known).abs().max() < 1e-12 * known.abs().max()
    other = solid(dim, pressure_speed=2.1, shear_speed=1.1).propagate(*start, 0.3)
    assert (other[0] - plane_wave(simulator, numbers, across, 0.3)[0]).abs().max() > 0.01


@pytest.mark.parametrize("dim", [2, 3])
def test_the_equations(dim: int) -> None:
    """ρ ∂v/∂t = ∇·σ and ∂σ/∂t = λ tr(ε̇) 1 + 2μ ε̇ by `cscnn.calculus`, for any state."""
    simulator = solid(dim)
    algebra, scheme = simulator.header().algebra, Spectral(simulator.spacing)
    first, second = simulator.moduli
    velocity, stress = simulator.propagate(*any_state(simulator), 0.05)
    step = 1e-4
    later, before = (simulator.propagate(velocity, stress, t) for t in (step, -step))
    rate = [(a - b) / (2 * step) for a, b in zip(later, before, strict=True)]

    sigma = algebra.embed(stress, "symmetric")
    trace = gradient(algebra.embed(algebra.grade(sigma, 0), 0), algebra, scheme)
    force = divergence(sigma, algebra, scheme) + trace / math.sqrt(dim)
    expected = algebra.grade(force, 1) / simulator.density
    assert (rate[0] - expected).norm() < 1e-5 * expected.norm()

    v = algebra.embed(velocity, 1)
    expansion = algebra.grade(divergence(v, algebra, scheme), 0)
    bulk = first + 2 * second / dim
    pressure = bulk * expansion * torch.eye(dim, dtype=torch.float64).flatten()
    shear = 2 * second * algebra.grade(strain_rate(v, algebra, scheme), "symmetric")
    assert (rate[1] - pressure - shear).norm() < 1e-5 * rate[1].norm()


@pytest.mark.parametrize("dim", [2, 3])
def test_energy_momentum_and_time(dim: int) -> None:
    simulator = solid(dim)
    header = simulator.describe(0, "test")

    def energy(velocity: torch.Tensor, stress: torch.Tensor) -> float:
        work = (stress * strain_of(stress, header)).sum()
        return float(simulator.density * velocity.square().sum() + work) / 2

    start = any_state(simulator)
    once, twice = simulator.propagate(*start, 1.5), simulator.propagate(*start, 0.5)
    assert energy(*once) == pytest.approx(energy(*start), rel=1e-13)
    assert energy(once[0], start[1]) != pytest.approx(energy(*start), rel=1e-3)
    means = [velocity.flatten(0, -2).mean(0) for velocity in (start[0], once[0])]
    assert torch.allclose(*means, atol=1e-14)
    for a, b in zip(once, simulator.propagate(*twice, 1.0), strict=True):
        assert torch.allclose(a, b, atol=1e-11)


def test_states_in_single_precision() -> None:
    """Those of files: as in double precision, also the mean, which no wave moves."""
    simulator = solid(2)
    start = any_state(simulator)
    later = simulator.propagate(*start, 0.4)
    for made, known in zip(
        simulator.propagate(*(x.float() for x in start), 0.4), later, strict=True
    ):
        assert made.dtype == torch.float32
        assert (made - known).abs().max() < 1e-5 * known.abs().max()


@pytest.mark.parametrize("dim", [2, 3])
def test_symmetries(dim: int) -> None:
    """Rotations and reflections of a state commute with the simulator; not if stress stays."""
    simulator = solid(dim, cells=8)
    algebra, start = simulator.header().algebra, any_state(simulator)
    later = packed(simulator, *simulator.propagate(*start, 0.4))
    symmetries = list(grid_symmetries(algebra, start[0].shape[:dim]))
    assert len(symmetries) == {2: 8, 3: 48}[dim]
    for number, g in enumerate(symmetries[1 :: 1 if dim == 2 else 6]):
        moved = transform_on_grid(algebra, g.double(), packed(simulator, *start))
        velocity, stress = (algebra.grade(moved[0, 0], grade) for grade in (1, "symmetric"))
        expected = transform_on_grid(algebra, g.double(), later)
        made = packed(simulator, *simulator.propagate(velocity, stress, 0.4))
        assert (made - expected).abs().max() < 1e-11, number
        wrong = packed(simulator, *simulator.propagate(velocity, start[1], 0.4))
        assert (wrong - expected).abs().max() > 0.1, number


@pytest.mark.parametrize("dim", [2, 3])
def test_starts_have_equal_energies_and_a_compatible_strain(dim: int) -> None:
    """As much kinetic as elastic energy on average; the curl of both indices is rounding."""
    simulator = solid(dim, smoothness=0.25)
    header = simulator.describe(0, "test")
    algebra, scheme = header.algebra, Spectral(simulator.spacing)
    kinetic = elastic = 0.0
    for seed in range(20):
        velocity, stress = state(simulator, seed)
        strain = strain_of(stress, header)
        kinetic += float(simulator.density * velocity.square().sum())
        elastic += float((stress * strain).sum())
    assert elastic == pytest.approx(kinetic, rel=0.15)
    bent = incompatibility(algebra.embed(strain, "symmetric"), algebra, scheme)
    assert bent.norm() < 1e-10 * strain.norm() / simulator.smoothness**2
    _, broken = any_state(simulator)
    broken = algebra.embed(strain_of(broken, header), "symmetric")
    assert incompatibility(broken, algebra, scheme).norm() > broken.norm()


def test_a_focus_on_no_wave_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"focus=1e\+09 is too large for direction=10"):
        state(solid(2, focus=1e9, direction=10.0))


def test_trajectories_have_no_means_and_the_speed_that_was_asked_for() -> None:
    simulator = create("elastodynamics", "small", speed=3.0)
    velocity, stress = state(simulator)
    assert velocity.std().item() == pytest.approx(3.0)
    assert velocity.mean((0, 1)).abs().max() < 1e-14
    assert stress.mean((0, 1)).abs().max() < 1e-13
    made = simulator.simulate([np.random.default_rng(0)])
    assert torch.allclose(made["velocity"][0, 0], velocity, atol=1e-13)
    assert torch.allclose(
        made["stress"][0, 3], simulator.propagate(velocity, stress, 0.06)[1], atol=1e-12
    )


@pytest.mark.parametrize("dim", [2, 3])
def test_residuals_of_the_law_fall_at_fourth_order(dim: int) -> None:
    sizes = []
    for cells in (12, 24):
        simulator = solid(dim, cells=cells)
        wave = [plane_wave(simulator, (1, 1, -1)[:dim], across, 0.0)[1] for across in (0, 1)]
        header = simulator.describe(0, "test")
        residual = measure(simulator.laws[0], {"stress": sum(wave)[None, None]}, header)
        sizes.append(residual.relative)
        _, broken = any_state(simulator)
        assert measure(simulator.laws[0], {"stress": broken[None, None]}, header).violated
    assert abs(math.log2(sizes[0] / sizes[1]) - 4) < 0.3, sizes


@pytest.mark.parametrize("direction", [0.0, 60.0])
def test_waves_along_an_axis(direction: float) -> None:
    """A state with a focus has its slopes along the axis."""
    any_way, focused = (
        solid(2, focus=focus, direction=direction, cells=32) for focus in (0.0, 8.0)
    )
    turn = math.radians(direction)
    along = torch.tensor([math.cos(turn), math.sin(turn)], dtype=torch.float64)
    shares = []
    for simulator in (any_way, focused):
        algebra = simulator.header().algebra
        f = algebra.embed(state(simulator)[1][..., :1], 0)
        slope = algebra.grade(gradient(f[None, None], algebra, Spectral(simulator.spacing)), 1)
        shares.append(float((slope @ along).square().sum() / slope.square().sum()))
    assert shares[0] + 0.1 < shares[1] > 0.9
