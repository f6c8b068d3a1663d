"""Smoke and light: conservation, closed forms, symmetry."""

import dataclasses
import math

import numpy as np
import torch

from cscnn.data.simulators import (
    Maxwell3D,
    NavierStokes,
)
from cscnn.data.simulators.maxwell3d import YeeGrid
from cscnn.data.simulators.navier_stokes import divergence_of
from tests.data.tiny_simulators import tiny


def run_smoke(simulator: NavierStokes, smoke: torch.Tensor, steps: int):
    flow = simulator.at_rest(smoke)
    for _ in range(steps):
        smoke, flow = simulator.step(smoke, flow)
    return smoke, flow


def smoke_at_start(simulator: NavierStokes, seed: int = 0) -> torch.Tensor:
    return torch.as_tensor(simulator.noise(np.random.default_rng(seed)))[None]


def test_flow_has_no_divergence_and_smoke_stays_in_its_range() -> None:
    simulator = NavierStokes(grid=(24, 20), size=(30.0, 20.0))
    start = smoke_at_start(simulator)
    smoke, flow = run_smoke(simulator, start, 12)
    assert max(x.abs().max() for x in flow) > 0.5
    assert divergence_of(flow, simulator.spacing).abs().max() < 1e-13
    assert start.min() <= smoke.min()
    assert smoke.max() <= start.max()


def test_projection_removes_exactly_a_gradient() -> None:
    simulator = NavierStokes(grid=(9, 7), size=(3.0, 2.0))
    free = simulator.project((torch.randn(1, 8, 7).double(), torch.randn(1, 9, 6).double()))
    pressure = torch.randn(1, 9, 7).double()
    hx, hy = simulator.spacing
    gradient = (pressure.diff(dim=1) / hx, pressure.diff(dim=2) / hy)
    again = simulator.project((free[0] + gradient[0], free[1] + gradient[1]))
    assert max((a - b).abs().max() for a, b in zip(free, again, strict=True)) < 1e-12


def test_smoke_in_a_turned_box_is_turned_smoke() -> None:
    """Quarter turn and reflection of box, smoke and buoyancy together; walls do not care."""
    simulator = NavierStokes(grid=(16, 16), buoyancy=(0.2, 0.5))
    start = smoke_at_start(simulator)
    smoke, _ = run_smoke(simulator, start, 6)
    turned = dataclasses.replace(simulator, buoyancy=(-0.5, 0.2))
    result, _ = run_smoke(turned, torch.rot90(start, 1, (1, 2)), 6)
    assert (result - torch.rot90(smoke, 1, (1, 2))).abs().max() < 1e-11
    wrong, _ = run_smoke(simulator, torch.rot90(start, 1, (1, 2)), 6)
    assert (wrong - torch.rot90(smoke, 1, (1, 2))).abs().max() > 0.1


def divergence_at_inner_faces(h: torch.Tensor) -> torch.Tensor:
    inner = h[:, :-1, :-1, :-1]
    return (h[0, 1:, :-1, :-1] - inner[0] + h[1, :-1, 1:, :-1] - inner[1]
            + h[2, :-1, :-1, 1:] - inner[2])  # fmt: skip


def test_light_keeps_its_energy_and_makes_no_magnetic_charge() -> None:
    simulator = Maxwell3D(cells=24, keep=8)
    yee = YeeGrid(simulator, simulator.draw(np.random.default_rng(0)))
    yee.run(30)
    free = YeeGrid(simulator, [])
    free.electric.copy_(yee.electric)
    free.magnetic.copy_(yee.magnetic)
    before = divergence_at_inner_faces(free.magnetic)
    energies = []
    for _ in range(200):
        old = free.magnetic.clone()
        free.run(1)
        e, h = (x[:, 1:, 1:, 1:] for x in (free.electric, old))
        # exact invariant: H of both half steps around the time of E
        energies.append((10 * e.square() + h * free.magnetic[:, 1:, 1:, 1:]).sum().item())
    assert (divergence_at_inner_faces(free.magnetic) - before)[1:-1, 1:-1, 1:-1].abs().max() < 1e-12
    assert before.abs().max() > 0.1  # sources are hard: they leave charges behind
    assert 0 < max(energies) < 1.5 * energies[0]


def test_plane_wave_travels_at_the_speed_of_light_in_the_medium() -> None:
    simulator = Maxwell3D(cells=65, keep=8, courant=0.5)
    yee = YeeGrid(simulator, [])
    x = torch.arange(65, dtype=torch.float64)
    k, index = 2 * math.pi / 64, math.sqrt(10)
    speed = 0.5 / index  # cells per step
    yee.electric[1] = torch.cos(k * x)[:, None, None]
    yee.magnetic[2] = index * torch.cos(k * (x + 0.5 - speed / 2))[:, None, None]
    yee.run(100)
    expected = torch.cos(k * (x - 100 * speed))
    assert (yee.electric[1, :, 3, 5] - expected).abs().max() < 5e-3
    assert yee.electric[0].abs().max() < 1e-12


def test_stored_fields_are_centred_in_space_and_time() -> None:
    """A standing wave has E and H out of phase by a quarter: staggered times would show."""
    simulator = Maxwell3D(cells=33, keep=8, sources=0, permittivity=1.0, courant=0.5)
    n, k = 33, 2 * math.pi / 32
    yee = YeeGrid(simulator, [])
    x = torch.arange(n, dtype=torch.float64)
    omega = 2 * math.asin(0.5 * math.sin(k / 2))  # of the scheme, per step
    yee.electric[1] = torch.sin(k * x)[:, None, None]
    yee.magnetic[2] = (-torch.cos(k * (x + 0.5)) * math.sin(omega / 2))[:, None, None]
    steps = 28
    yee.run(steps - 1)
    before = yee.magnetic.clone()
    yee.run(1)
    low = simulator.margin
    centre = low + torch.arange(8, dtype=torch.float64) + 0.5
    e = simulator._centred(yee.electric, edges=True)
    h = simulator._centred((before + yee.magnetic) / 2, edges=False)
    wave_e = torch.sin(k * centre) * math.cos(omega * steps)
    wave_h = -torch.cos(k * centre) * math.sin(omega * steps)
    assert (e[:, 2, 3, 1] - wave_e).abs().max() < 1e-2
    assert (h[:, 2, 3, 2] - wave_h).abs().max() < 1e-2
    assert (yee.magnetic[2, low : low + 8, 3, 4] - wave_h).abs().max() > 2e-2


def test_float32_light_is_float64_light() -> None:
    results = [
        tiny("maxwell3d", dtype=dtype).simulate([np.random.default_rng(0)])["electric"]
        for dtype in ("float32", "float64")
    ]
    assert results[0].dtype == torch.float32
    assert (results[0] - results[1]).abs().max() < 1e-5
