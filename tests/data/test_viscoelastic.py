"""A polymer solution: shear flows in closed form, energy, symmetries, order of the scheme."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch

from cscnn.algebra.grids import grid_symmetries, transform_on_grid
from cscnn.calculus import Spectral, divergence, gradient
from cscnn.data import FieldFile
from cscnn.data.generate import generate, plans
from cscnn.data.simulators import Viscoelastic, create
from cscnn.data.simulators.viscoelastic import Flow

BOX = Viscoelastic(
    cells=16, size=2.0, viscosity=0.05, polymer_viscosity=0.2, relaxation=0.7, diffusion=0.02,
    smoothness=0.3, time_step=0.02,
)  # fmt: skip
WAVE = 2 * 2 * math.pi / BOX.size  #: two periods along y
Fields = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def heights(box: Viscoelastic) -> torch.Tensor:
    """y of all points, (x, y)."""
    y = torch.arange(box.cells, dtype=torch.float64) * box.spacing
    return y.expand(box.cells, box.cells)


def along(x: torch.Tensor) -> torch.Tensor:
    """Vectors that point along x."""
    return torch.stack([x, torch.zeros_like(x)], -1)


def steady_shear(box: Viscoelastic, speed: float) -> Fields:
    """v = (U sin ky, 0), its conformation tensor and its force, in closed form."""
    y, tau, kappa = heights(box), box.relaxation, box.diffusion
    damping = 1 / tau + kappa * WAVE**2
    shear = speed * WAVE / damping  # C_xy is this times cos ky
    square = speed * WAVE * shear  # (∂v_x/∂y) C_xy is this times (1 + cos 2ky)/2
    double = square / (1 / tau + kappa * (2 * WAVE) ** 2) * torch.cos(2 * WAVE * y)
    xy, yy = shear * torch.cos(WAVE * y), torch.ones_like(y)
    conformation = torch.stack([1 + tau * square + double, xy, xy, yy], -1)
    pull = box.viscosity * WAVE**2 * speed + box.polymer_viscosity / tau * WAVE * shear
    velocity = along(speed * torch.sin(WAVE * y))
    return velocity, conformation, velocity * (pull / speed)


def random_state(box: Viscoelastic) -> Fields:
    """Smooth, with polymers that are stretched, and a force."""
    rng = np.random.default_rng(0)
    velocity, force, root = (box.draw(rng) for _ in range(3))
    zero = torch.zeros_like(root[..., 0])
    rows = [1.5 + root[..., 0], root[..., 1], zero, 1 + zero]
    matrix = torch.stack(rows, -1).unflatten(-1, (2, 2))
    return velocity, (matrix @ matrix.mT).flatten(-2), force


def run(box: Viscoelastic, fields: Fields, time: float) -> Flow:
    flow = Flow(box, *fields)
    flow.run(round(time / box.time_step))
    return flow


def difference(a: Flow, b: Flow) -> float:
    return float((a.state - b.state).norm() / b.state.norm())


def test_steady_shear() -> None:
    """The closed form has no change in time; that without diffusion has the well-known numbers."""
    fields = steady_shear(BOX, 0.8)
    flow = Flow(BOX, *fields)
    change = flow.change(flow.state) + flow.rates * flow.state
    assert change.abs().max() < 1e-11 * flow.state.abs().max()
    for made, known in zip((flow.velocity, flow.conformation), fields, strict=False):
        assert torch.allclose(made, known, atol=1e-12)
    plain = dataclasses.replace(BOX, diffusion=0.0)
    velocity, conformation, force = steady_shear(plain, 0.8)
    rate = plain.relaxation * 0.8 * WAVE * torch.cos(WAVE * heights(plain))  # τ ∂v_x/∂y
    assert torch.allclose(conformation[..., 0], 1 + 2 * rate.square())
    assert torch.allclose(conformation[..., 1], rate)
    assert torch.allclose(force, (0.05 + 0.2) * WAVE**2 * velocity)
    wrong = Flow(BOX, velocity, conformation, force)
    change = wrong.change(wrong.state) + wrong.rates * wrong.state
    assert change.abs().max() > 1e-3 * wrong.state.abs().max()


def test_starting_and_decaying_shear_at_fourth_order() -> None:
    """v_x = u(t) sin ky and C_xy = a(t) cos ky obey two linear equations, from any start."""
    y, tau = heights(BOX), BOX.relaxation
    damping = 1 / tau + BOX.diffusion * WAVE**2
    pull = BOX.polymer_viscosity / tau * WAVE
    matrix = torch.tensor([[-BOX.viscosity * WAVE**2, -pull], [WAVE, -damping]]).double()
    for start, force in ((0.0, 1.5), (0.9, 0.0)):
        source = torch.tensor([force, 0.0], dtype=torch.float64)
        first = torch.tensor([start, 0.0], dtype=torch.float64)
        rest = torch.linalg.solve(matrix, -source)
        u, a = rest + torch.linalg.matrix_exp(matrix * 0.8) @ (first - rest)
        errors = []
        for step in (0.1, 0.05):
            box = dataclasses.replace(BOX, time_step=step)
            identity = torch.eye(2).double().flatten().expand(16, 16, 4)
            wave = torch.sin(WAVE * y)
            flow = run(box, (along(start * wave), identity, along(force * wave)), 0.8)
            missed = flow.velocity - along(u * wave)
            shear = flow.conformation[..., 1] - a * torch.cos(WAVE * y)
            errors.append(float(missed.abs().max() + shear.abs().max()))
        assert errors[0] < 1e-3
        assert abs(math.log2(errors[0] / errors[1]) - 4) < 0.3, errors


def test_the_scheme_is_of_fourth_order() -> None:
    fields = random_state(BOX)
    exact = run(dataclasses.replace(BOX, time_step=0.0025), fields, 0.4)
    errors = [
        difference(run(dataclasses.replace(BOX, time_step=step), fields, 0.4), exact)
        for step in (0.04, 0.02)
    ]
    assert abs(math.log2(errors[0] / errors[1]) - 4) < 0.3, errors


def test_polymers_relax_at_rest() -> None:
    """C - 1 of a fluid that does not move decays by exp(-t/τ), exactly."""
    still = torch.zeros(16, 16, 2, dtype=torch.float64)
    stretched = torch.tensor([3.0, 0.5, 0.5, 1.5], dtype=torch.float64)
    flow = run(BOX, (still, stretched.expand(16, 16, 4), still), 0.4)
    identity = torch.eye(2, dtype=torch.float64).flatten()
    expected = identity + (stretched - identity) * math.exp(-0.4 / 0.7)
    assert torch.allclose(flow.conformation, expected.expand(16, 16, 4), rtol=1e-13)


def test_energy_changes_by_force_and_friction() -> None:
    """d/dt ⟨½v² + (ν_p/2τ) tr C⟩ = ⟨f·v⟩ - ν ⟨|∇v|²⟩ - (ν_p/2τ²)⟨tr C - 2⟩, to rounding."""
    fields = random_state(BOX)
    flow = Flow(BOX, *fields)
    rate = Flow(BOX, *fields)
    rate.state = flow.change(flow.state) + flow.rates * flow.state
    velocity, spring = flow.velocity, BOX.polymer_viscosity / (2 * BOX.relaxation)
    stretch = (flow.conformation[..., [0, 3]] - 1).sum(-1).mean()
    power = (velocity * rate.velocity).sum(-1).mean()
    power += spring * (rate.conformation[..., [0, 3]] - 1).sum(-1).mean()
    algebra, scheme = BOX.header().algebra, Spectral(BOX.spacing)
    slopes = [
        gradient(algebra.embed(v[..., None], 0), algebra, scheme) for v in velocity.unbind(-1)
    ]
    friction = BOX.viscosity * sum(slope.square().sum(-1).mean() for slope in slopes)
    friction += spring / BOX.relaxation * stretch
    made = (velocity * fields[2]).sum(-1).mean()
    assert power == pytest.approx(float(made - friction), rel=1e-10)
    assert float(friction) > 0.1 * abs(float(power))


def test_no_divergence() -> None:
    """By `cscnn.calculus`, also if the given velocity has one."""
    velocity, conformation, force = random_state(BOX)
    velocity[..., 0] += torch.sin(math.pi * heights(BOX).T)
    algebra = BOX.header().algebra
    for made, free in ((velocity, False), (run(BOX, (velocity, conformation, force), 0.1), True)):
        v = made.velocity if isinstance(made, Flow) else made
        size = divergence(algebra.embed(v, 1), algebra, Spectral(BOX.spacing)).abs().max()
        assert (size < 1e-12) == free


def test_symmetries() -> None:
    """Rotations and reflections of a state and its force commute with the solver, not without."""
    algebra, fields = BOX.header().algebra, random_state(BOX)
    grades = (1, "symmetric", 1)

    def moved(g: torch.Tensor, *parts: torch.Tensor) -> Fields:
        return tuple(
            algebra.grade(transform_on_grid(algebra, g, algebra.embed(x, k)[None, None]), k)[0, 0]
            for x, k in zip(parts, grades, strict=False)
        )

    later = run(BOX, fields, 0.2)
    for g in list(grid_symmetries(algebra, (16, 16)))[1:]:
        expected = moved(g, later.velocity, later.conformation)
        made = run(BOX, moved(g, *fields), 0.2)
        for a, b in zip((made.velocity, made.conformation), expected, strict=True):
            assert (a - b).abs().max() < 1e-12
        wrong = run(BOX, (*moved(g, *fields)[:2], fields[2]), 0.2)
        assert (wrong.velocity - expected[0]).abs().max() > 1e-3


def test_polymers_that_are_only_carried() -> None:
    """Without their viscosity the flow does not know of them."""
    velocity, conformation, force = random_state(BOX)
    identity = torch.eye(2).double().flatten().expand(16, 16, 4)
    for box, same in ((dataclasses.replace(BOX, polymer_viscosity=0.0), True), (BOX, False)):
        flows = [run(box, (velocity, c, force), 0.1) for c in (conformation, identity)]
        assert torch.equal(flows[0].velocity, flows[1].velocity) == same


def test_a_step_too_large_is_an_error(tmp_path) -> None:
    """With the number, its time, what to change, and which trajectory it was."""
    simulator = create("viscoelastic", "small", cells=16, speed=30.0, frames=2)
    message = (
        r"trajectory 0: the conformation tensor must be positive definite, but at time 0\.3 "
        r"its smallest eigenvalue is \S+: take a smaller time_step than 0\.005, more cells than 16"
    )
    with pytest.raises(ValueError, match=message):
        generate(plans(simulator, tmp_path, {"train": 1}))
    flow = Flow(BOX, *random_state(BOX))
    flow.check()
    flow.state[2:4] -= flow.modes.forward(torch.ones(16, 16).double()) * 3
    with pytest.raises(ValueError, match="smallest eigenvalue is -"):
        flow.check()


def test_a_force_is_given(tmp_path) -> None:
    """To each trajectory its own; the same data without it have no given quantity."""
    box = create("viscoelastic", "small", cells=12, frames=2, warmup=2, force=0.3, rolls=2)
    (plan,) = plans(box, tmp_path, {"train": 2})
    generate([plan])
    with FieldFile(plan.path) as file:
        assert [(g.name, g.grade, g.kind) for g in file.header.given] == [("force", 1, "static")]
        first, second = (file.read(number)["force"] for number in range(2))
    assert first.shape == (12, 12, 2)
    assert np.abs(first).max() == pytest.approx(0.3, rel=0.1)
    assert not np.allclose(first, second)
    algebra = box.header().algebra
    force = algebra.embed(torch.from_numpy(first).double(), 1)
    assert divergence(force, algebra, Spectral(box.spacing)).abs().max() < 1e-5
    free = dataclasses.replace(box, force=0.0)
    assert not free.header().given
    a, b = (s.simulate([np.random.default_rng(0)])["velocity"] for s in (box, free))
    assert not torch.allclose(a, b)
