"""The spectral solution that the smoke simulator is compared with."""

from dataclasses import replace

import numpy as np
import pytest

from cscnn.data.simulators import NavierStokes
from experiments import scheme_error
from experiments.scheme_error import Galerkin, Reference, main, relative, smoke_at_start

BOX = NavierStokes()


def gentle(x, y):
    """Smoke without kinks, which few functions resolve."""
    return np.multiply.outer(np.sin(np.pi * x / 32), 1 + np.sin(np.pi * y / 16) / 2)


def energy(solver, state):
    return (solver.laplace * state[0] ** 2).sum() / 2


def test_velocity_has_no_divergence_and_stops_at_the_walls():
    solver = Galerkin(BOX, 12)
    a = np.random.default_rng(0).standard_normal(solver.laplace.shape)
    v = solver.velocity(a, np.array([0.0, 11.0, 32.0]))
    assert np.abs(v[[0, 2]]).max() < 1e-9
    assert np.abs(v[:, [0, 2]]).max() < 1e-9
    assert np.abs(v[1, 1]).min() > 1e-3
    h, x = 1e-4, 9.0
    near = np.array([x - h, x, x + h])
    u = solver.velocity(a, near)
    divergence = (u[2, 1, 0] - u[0, 1, 0] + u[1, 2, 1] - u[1, 0, 1]) / (2 * h)
    assert abs(divergence) < 1e-5 * np.abs(u[2, 1, 0] - u[0, 1, 0]) / h


def test_energy_is_the_integral_of_the_velocity():
    solver = Galerkin(BOX, 10)
    state = solver.solve(solver.start(gentle), 3.0)
    square = solver.velocity(state[0], solver.points) ** 2
    integral = np.einsum("i,j,ijc->", solver.weights, solver.weights, square) / 2
    assert energy(solver, state) == pytest.approx(integral, rel=1e-10)


def test_energy_changes_by_buoyancy_and_viscosity_alone():
    """At any moment: dE/dt is the work of the force minus ν times the squared vorticity."""
    solver = Galerkin(BOX, 16)
    state = solver.solve(solver.start(gentle), 6.0)
    rate = (solver.laplace * state[0] * solver.rates(*state)[0]).sum()
    v = solver.velocity(state[0], solver.points)
    values, _, bend = solver.values
    vorticity = bend @ state[0] @ values.T + values @ state[0] @ bend.T
    power = BOX.buoyancy[1] * state[1] * v[..., 1] - BOX.viscosity * vorticity**2
    assert rate == pytest.approx(np.einsum("i,j,ij->", solver.weights, solver.weights, power))


def test_it_converges():
    solutions = [Galerkin(BOX, order) for order in (12, 24, 36)]
    points = np.linspace(0, 32, 17)
    coarse, middle, fine = (s.velocity(s.solve(s.start(gentle), 3.0)[0], points) for s in solutions)
    assert relative(middle, fine) < min(0.01, relative(coarse, fine) / 5)


def test_the_simulator_converges_to_it(monkeypatch):
    """At first order, in the end: the two have nothing in common but the equation."""
    monkeypatch.setattr(scheme_error, "smoke_at_start", lambda box, seed: gentle)
    reference = Reference.compute(replace(BOX, viscosity=0.1, grid=(32, 32)), 0, 32)
    errors = [reference.error(0, cells, refine) for cells, refine in ((32, 1), (64, 4), (128, 16))]
    assert errors[0] > 1.3 * errors[1]
    assert errors[1] > 1.6 * errors[2]
    assert errors[2] < 0.07


def test_smoke_at_the_start_is_like_the_simulators():
    """The absolute value of noise of unit variance, on any grid the same."""
    smoke = smoke_at_start(BOX, 3)
    x = (np.arange(32) + 0.5) / 32 * 32
    values = smoke(x, x)
    assert np.square(values).mean() == pytest.approx(1.0, rel=1e-6)
    np.testing.assert_allclose(smoke(x[::2], x[::2]), values[::2, ::2])
    ours = BOX.noise(np.random.default_rng(3))
    assert np.square(ours).mean() == pytest.approx(1.0, rel=1e-6)


def test_the_command_prints_a_table(monkeypatch, capsys):
    monkeypatch.setattr(scheme_error, "RESOLUTIONS", ((16, 1),))
    monkeypatch.setattr(scheme_error, "STARTS", {"from rest": 0})
    assert main(["--starts", "1", "--order", "12"]) == 0
    assert "| 16² | 1.5 s | 0." in capsys.readouterr().out
    assert main(["--order", "2"]) == 1
    assert "--order 8, got 4 and 2" in capsys.readouterr().err


def test_the_box_is_square():
    with pytest.raises(ValueError, match=r"square boxes, got size \(32.0, 16.0\)"):
        Galerkin(NavierStokes(size=(32.0, 16.0), grid=(32, 16)), 8)
