"""Fields of moving charges: closed forms, Maxwell's equations, covariance."""

import dataclasses
import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from cscnn import CliffordAlgebra
from cscnn.data.simulators import (
    MaxwellSpacetime,
    MaxwellSpacetime4D,
)
from cscnn.data.simulators.charges import squash, unsquash
from cscnn.data.simulators.lienard_wiechert import Charges, faraday, retarded
from tests.data.tiny_simulators import tiny


def moving(velocity: list[float], charge: float = 2.0) -> Charges:
    """A charge in uniform motion through (0, 1, -1, ...)."""
    d = len(velocity)
    zero = torch.zeros(1, 1 + d, dtype=torch.float64)
    origin = torch.tensor([[0.0, 1.0, -1.0, 0.5][: 1 + d]], dtype=torch.float64)
    drift = torch.tensor([[1.0, *velocity]], dtype=torch.float64)
    return Charges(
        torch.tensor([charge]).double(), origin, drift, zero, zero, torch.ones(1).double()
    )


@pytest.mark.parametrize("speed", [0.0, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("dim", [2, 3])
def test_uniform_motion_has_a_closed_form(speed: float, dim: int) -> None:
    direction = np.array([0.6, -0.8, 0.0]) if dim == 2 else np.array([0.36, 0.48, 0.8])
    velocity = speed * direction
    height = 0.7 if dim == 2 else 0.0
    points = torch.as_tensor(np.random.default_rng(0).uniform(-3, 3, (500, 1 + dim)))
    field, _ = faraday(moving(velocity[:dim].tolist()), points, height)
    space = np.zeros((500, 3))
    space[:, :dim] = points[:, 1:]
    space[:, 2] += height if dim == 2 else 0.0
    start = np.array([1.0, -1.0, 0.5 if dim == 3 else 0.0])
    r = space - start - velocity * points[:, :1].numpy()
    gamma = 1 / math.sqrt(1 - speed**2)
    along = r @ direction
    denominator = (gamma**2 * along**2 + (r**2).sum(1) - along**2) ** 1.5
    e = 2 * gamma * r / denominator[:, None]
    b = np.cross(np.broadcast_to(velocity, e.shape), e)
    if dim == 2:
        expected = np.stack([e[:, 0], e[:, 1], b[:, 2]], -1)
    else:
        expected = np.concatenate([e, np.stack([b[:, 2], -b[:, 1], b[:, 0]], -1)], -1)
    size = np.linalg.norm(expected, axis=1, keepdims=True)
    assert (np.abs(field.numpy() - expected) / size).max() < 1e-12


@pytest.mark.parametrize("kind", [MaxwellSpacetime, MaxwellSpacetime4D])
def test_boosted_charges_have_the_boosted_field(kind: type) -> None:
    """Data and algebra agree on conventions: F(gx) of g-moved charges is ρ(g) F(x)."""
    simulator = kind()
    charges = simulator.draw(np.random.default_rng(5))
    algebra = CliffordAlgebra((1, *(-1,) * simulator.dim))
    points = torch.as_tensor(np.random.default_rng(1).uniform(-8, 8, (300, 1 + simulator.dim)))
    field, _ = faraday(charges, points, simulator.height)
    generator = torch.Generator().manual_seed(0)
    for kind_of_g in ("boost", "rotation", "spatial reflection"):
        if kind_of_g == "spatial reflection":
            g = torch.eye(1 + simulator.dim, dtype=torch.float64)
            g[1, 1] = -1
        else:
            g = algebra.random_orthogonal(kind_of_g, generator=generator, dtype=torch.float64)
        moved, _ = faraday(charges.transformed(g), points @ g.mT, simulator.height)
        expected = algebra.grade(algebra.transform(g, algebra.embed(field, 2)), 2)
        assert (moved - expected).abs().max() < 1e-10 * expected.abs().max()
        wrong = (moved - field).abs().max()
        assert wrong > 1e-3 * expected.abs().max()


def residuals(field: torch.Tensor, h: float) -> torch.Tensor:
    """Central differences of dF (and in 3 + 1 dimensions of d*F), (equations, *inner grid)."""

    def d(axis: int, component: torch.Tensor) -> torch.Tensor:
        size = component.dim()
        inner = [slice(1, -1)] * size
        up, down = list(inner), list(inner)
        up[axis], down[axis] = slice(2, None), slice(None, -2)
        return (component[tuple(up)] - component[tuple(down)]) / (2 * h)

    f = field.unbind(-1)
    if len(f) == 3:
        ex, ey, bz = f
        return torch.stack([d(0, bz) + d(1, ey) - d(2, ex)])
    ex, ey, ez, bz, by, bx = f[0], f[1], f[2], f[3], -f[4], f[5]
    return torch.stack([
        d(0, bx) + d(2, ez) - d(3, ey), d(0, by) + d(3, ex) - d(1, ez),
        d(0, bz) + d(1, ey) - d(2, ex), d(1, bx) + d(2, by) + d(3, bz),
        d(0, ex) - d(2, bz) + d(3, by), d(0, ey) - d(3, bx) + d(1, bz),
        d(0, ez) - d(1, by) + d(2, bx), d(1, ex) + d(2, ey) + d(3, ez),
    ])  # fmt: skip


@pytest.mark.parametrize("kind", [MaxwellSpacetime, MaxwellSpacetime4D])
def test_fields_solve_maxwells_equations_at_second_order(kind: type) -> None:
    charges = kind().draw(np.random.default_rng(4))
    errors = []
    for h in (0.2, 0.1, 0.05):
        simulator = kind(frames=3, grid=(3,) * kind.dim, spacing=h)
        offset = torch.zeros_like(charges.origin)
        offset[:, 0] = h  # so that the middle of the three times is always time 0
        charges_there = dataclasses.replace(charges, origin=charges.origin + offset)
        field = simulator.observe(charges_there)["faraday"]
        errors.append(residuals(field, h).abs().max().item() / field.abs().max().item())
    rates = [math.log2(a / b) for a, b in pairwise(errors)]
    assert errors[-1] < 0.02
    assert all(1.7 < rate < 2.3 for rate in rates), (errors, rates)


def test_charges_obey_their_options() -> None:
    simulator = MaxwellSpacetime(distance=20.0, speed_limit=0.6)
    for seed in range(5):
        charges = simulator.draw(np.random.default_rng(seed))
        assert 3 <= len(charges.charge) <= 6
        assert set(charges.charge.abs().tolist()) <= {1.0, 2.0, 3.0}
        s = torch.linspace(-200, 200, 2000, dtype=torch.float64)
        path = charges.positions(s)
        speed = path[:, 1:, 1:].sub(path[:, :-1, 1:]).norm(dim=-1) / (s[1] - s[0])
        assert speed.max() < 0.6
        assert torch.pdist(charges.origin).min() >= 20


@pytest.mark.parametrize("rapidity", [0.0, 1.0])
def test_charges_stay_out_of_the_box(rapidity: float) -> None:
    simulator = MaxwellSpacetime4D(clearance=3.0, rapidity=rapidity)
    for seed in range(6):
        charges = simulator.draw(np.random.default_rng(seed))
        events = charges.positions(torch.linspace(-400, 100, 8000, dtype=torch.float64))
        path = events[events[..., 0] < 32][:, 1:]
        assert (path.abs() - 7.5).clamp(min=0).norm(dim=-1).min() > 2.8


def test_no_room_and_no_charges_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cscnn.data.simulators.charges.TRIES", 20)
    with pytest.raises(ValueError, match="no room for charge"):
        MaxwellSpacetime(distance=1e4).draw(np.random.default_rng(0))
    with pytest.raises(ValueError, match="no charges"):
        MaxwellSpacetime(oscillating=(0, 0), orbiting=(0, 0)).draw(np.random.default_rng(0))
    with pytest.raises(ValueError, match="standard deviation above 1e-09"):
        tiny("maxwell_spacetime", max_std=1e-9, frames=1).simulate([np.random.default_rng(0)])


def test_faster_than_light_is_an_error() -> None:
    points = torch.zeros(3, 4, dtype=torch.float64)
    with pytest.raises(ArithmeticError, match="faster than light"):
        retarded(moving([1.5, 0.0]), points)


def test_bad_guesses_do_not_matter() -> None:
    """Newton from far away goes astray for a violently shaken charge; bisection does not."""
    charges = MaxwellSpacetime(speed_limit=0.99, amplitude=(0.05, 0.1)).draw(
        np.random.default_rng(0)
    )
    points = torch.as_tensor(np.random.default_rng(1).uniform(-20, 20, (50, 3)))
    field, s = faraday(charges, points, 1.0)
    guess = s + 30 * torch.randn_like(s)
    again, found = faraday(charges, points, 1.0, guess)
    assert (found - s).abs().max() < 1e-9
    assert (again - field).abs().max() < 1e-7 * field.abs().max()


@pytest.mark.parametrize("metric", [(1, -1, -1), (1, -1, -1, -1)])
def test_squash_commutes_with_the_group_and_has_an_inverse(metric: tuple[int, ...]) -> None:
    algebra = CliffordAlgebra(metric)
    field = 10 * torch.randn(1000, algebra.grade_sizes[2], dtype=torch.float64)
    field[0] = 0
    field[1] = 0
    field[1, 0] = field[1, -1] = 1.0  # null in 1 + 2 dimensions
    size = algebra.norm_squared(algebra.embed(field, 2))
    assert (size > 0).any()
    assert (size < 0).any()
    small = squash(field, algebra)
    assert torch.allclose(unsquash(small, algebra), field, rtol=1e-12, atol=1e-12)
    g = algebra.random_orthogonal("any", dtype=torch.float64)

    def act(x: torch.Tensor) -> torch.Tensor:
        return algebra.grade(algebra.transform(g, algebra.embed(x, 2)), 2)

    error = (squash(act(field), algebra) - act(small)).abs().amax(-1)
    far = size.abs() > 1
    assert error[far].max() < 1e-9
    assert error.max() < 1e-5  # near null fields the root of <F, F> magnifies rounding


def test_normalised_and_boosted_trajectories() -> None:
    plain = tiny("maxwell_spacetime").simulate([np.random.default_rng(0)])["faraday"]
    small = tiny("maxwell_spacetime", normalise="log").simulate([np.random.default_rng(0)])
    algebra = CliffordAlgebra((1, -1, -1))
    assert torch.allclose(unsquash(small["faraday"], algebra), plain, rtol=1e-10, atol=1e-12)
    seen = tiny("maxwell_spacetime", rapidity=1.0).simulate([np.random.default_rng(0)])["faraday"]
    assert seen.isfinite().all()
    assert not torch.allclose(seen, plain)
