"""Physics that needs no other package: conservation, convergence, covariance, closed forms."""

import dataclasses
import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from cscnn import CliffordAlgebra
from cscnn.data.simulators import (
    SIMULATORS,
    Maxwell3D,
    MaxwellSpacetime,
    MaxwellSpacetime4D,
    NavierStokes,
    SineGordon,
    create,
    stream,
)
from cscnn.data.simulators.charges import boost, squash, unsquash
from cscnn.data.simulators.lienard_wiechert import Charges, faraday, retarded
from cscnn.data.simulators.maxwell3d import YeeGrid
from cscnn.data.simulators.navier_stokes import divergence_of

TINY = {
    "navier_stokes": {"grid": (12, 10), "frames": 3},
    "maxwell3d": {"cells": 22, "keep": 6, "warmup": 8, "every": 3, "frames": 3},
    "maxwell_spacetime": {"grid": (7, 6), "frames": 5, "distance": 1.0},
    "maxwell_spacetime4d": {"grid": (4, 5, 4), "frames": 4, "distance": 1.0},
    "sine_gordon": {"grid": (6,), "frames": 5},
}


def tiny(name: str, **options: object):
    return create(name, **{**TINY[name], **options})


# --- all simulators -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SIMULATORS)
def test_shapes_are_those_of_the_header(name: str) -> None:
    simulator = tiny(name)
    header = simulator.describe(3, "train")
    result = simulator.simulate([stream(name, 3, "train", i) for i in range(2)])
    assert {f.name: (2, *header.shape(f.name)) for f in header.fields} == {
        key: tuple(x.shape) for key, x in result.items()
    }
    assert all(x.dtype == torch.float64 and x.isfinite().all() for x in result.values())
    assert header.seed == 3
    assert header.parameters["frames"] == simulator.frames


@pytest.mark.parametrize("name", SIMULATORS)
def test_a_trajectory_does_not_know_its_batch(name: str) -> None:
    simulator = tiny(name)
    together = simulator.simulate([stream(name, 0, "train", i) for i in range(3)])
    alone = simulator.simulate([stream(name, 0, "train", 2)])
    for key, x in together.items():
        assert torch.equal(x[2:], alone[key])
        assert not torch.equal(x[0], x[1])


def test_random_streams_differ_by_name_seed_split_and_index() -> None:
    keys = [("a", 0, "train", 0), ("b", 0, "train", 0), ("a", 1, "train", 0),
            ("a", 0, "test", 0), ("a", 0, "train", 1)]  # fmt: skip
    draws = {stream(*key).random() for key in keys}
    assert len(draws) == len(keys)
    assert stream(*keys[0]).random() == stream(*keys[0]).random()


@pytest.mark.parametrize("name", SIMULATORS)
@pytest.mark.parametrize("preset", ["paper", "small"])
def test_presets(name: str, preset: str) -> None:
    header = create(name, preset).header()
    assert header.algebra.dim == len(header.axes)


def test_paper_preset_is_the_papers_size() -> None:
    assert create("navier_stokes").header().shape("velocity") == (14, 128, 128, 2)
    assert create("maxwell3d").header().shape("magnetic") == (8, 32, 32, 32, 3)
    assert create("maxwell_spacetime").header().shape("faraday") == (128, 128, 128, 3)
    assert create("sine_gordon").header().shape("gradient") == (96, 96, 2)
    assert create("maxwell_spacetime4d").header().shape("faraday") == (32, 16, 16, 16, 6)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("navier_stokes", {"grid": (2, 2)}, r"at least 4 cells per axis, got \(2, 2\)"),
        ("navier_stokes", {"viscosity": 5.0}, "unstable"),
        ("navier_stokes", {"viscosity": -1.0}, "viscosity"),
        ("navier_stokes", {"frames": 0}, "frames must be positive, got 0"),
        ("navier_stokes", {"grid": 64}, r"grid takes 2 values, e.g. \(128, 128\), got 64"),
        ("navier_stokes", {"colour": 1}, "unknown option 'colour' of navier_stokes"),
        ("maxwell3d", {"courant": 5.0}, "unstable: courant must be at most"),
        ("maxwell3d", {"keep": 60}, "margin"),
        ("maxwell3d", {"dtype": "int8"}, "int8"),
        ("maxwell_spacetime", {"speed_limit": 1.0}, "speed of light, got 1.0"),
        ("maxwell_spacetime", {"normalise": "tanh"}, "tanh"),
        ("maxwell_spacetime", {"amplitude": (5.0, 2.0)}, "smallest, largest"),
        ("sine_gordon", {"kinks": (0, 0)}, "at least one kink or one breather"),
        ("sine_gordon", {"speed_limit": 1.5}, "speed of light, got 1.5"),
        ("maxwell_spacetime4d", {"height": 1.0}, "use clearance"),
        ("maxwell_spacetime4d", {"grid": (8, 8)}, "grid takes 3 values"),
    ],
)
def test_impossible_options(name: str, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        create(name, **options)


def test_unknown_names() -> None:
    with pytest.raises(ValueError, match="unknown task 'euler': choose from navier_stokes"):
        create("euler")
    with pytest.raises(ValueError, match="unknown preset 'huge' of maxwell3d"):
        create("maxwell3d", "huge")


# --- smoke ----------------------------------------------------------------------------------------


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


# --- light ----------------------------------------------------------------------------------------


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


# --- charges --------------------------------------------------------------------------------------


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
        field = simulator.observe(charges_there)
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


def test_boost_is_a_lorentz_transformation() -> None:
    g = boost(np.array([0.6, 0.8]), 0.7)
    assert CliffordAlgebra((1, -1, -1)).is_orthogonal(g)
    assert g[0, 0] > 1


# --- solitons -------------------------------------------------------------------------------------

MIXTURES = [((1, 1), (0, 0)), ((3, 3), (0, 0)), ((0, 0), (1, 1)), ((2, 2), (2, 2))]


def soliton_points() -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(200, 2, dtype=torch.float64, generator=generator) * 5
    return points + torch.tensor([19.0, 0.0])


@pytest.mark.parametrize(("kinks", "breathers"), MIXTURES)
def test_solitons_solve_the_sine_gordon_equation(kinks: tuple, breathers: tuple) -> None:
    """At fourth order in the step, by differences of the exact gradient."""
    solitons = SineGordon(kinks=kinks, breathers=breathers).draw(np.random.default_rng(0))
    points, errors = soliton_points(), []
    phase, gradient = solitons.field(points)
    for h in (0.04, 0.02):
        second = []
        for axis in range(2):
            step = torch.zeros(2, dtype=torch.float64)
            step[axis] = h
            near, far = (
                solitons.field(points + k * step)[1][:, axis]
                - solitons.field(points - k * step)[1][:, axis]
                for k in (1, 2)
            )
            second.append((8 * near - far) / (12 * h))
        errors.append((second[0] - second[1] + phase.sin()).abs().max().item())
    assert phase.sin().abs().max() > 0.9
    assert errors[1] < 1e-4
    assert errors[0] / errors[1] > 12
    step = torch.tensor([1e-4, 0.0], dtype=torch.float64)
    change = solitons.field(points + step)[0].sin() - solitons.field(points - step)[0].sin()
    assert torch.allclose(change / 2e-4, phase.cos() * gradient[:, 0], atol=1e-5)


@pytest.mark.parametrize(("kinks", "breathers"), MIXTURES)
def test_boosted_solitons_have_the_boosted_fields(kinks: tuple, breathers: tuple) -> None:
    solitons = SineGordon(kinks=kinks, breathers=breathers).draw(np.random.default_rng(1))
    points = soliton_points()
    g = boost(np.array([1.0]), 0.7)
    phase, gradient = solitons.field(points)
    moved, moved_gradient = solitons.boosted(0.7).field(points @ g.mT)
    assert (moved.cos() - phase.cos()).abs().max() < 1e-11
    assert (moved.sin() - phase.sin()).abs().max() < 1e-11
    lift = torch.tensor([1.0, -1.0], dtype=torch.float64)
    assert ((gradient * lift) @ g.mT - moved_gradient * lift).abs().max() < 1e-10
    assert (moved_gradient - gradient).abs().max() > 0.1


def test_a_kink_is_a_kink() -> None:
    solitons = SineGordon(kinks=(1, 1), breathers=(0, 0)).draw(np.random.default_rng(0))
    x = torch.linspace(-60, 60, 400, dtype=torch.float64)
    points = torch.stack([torch.full_like(x, 3.0), x], -1)
    _, gradient = solitons.field(points)
    turned = torch.trapezoid(gradient[:, 1], x)
    assert abs(abs(turned) - 2 * math.pi) < 1e-6
    velocity = -gradient[:, 0] / gradient[:, 1]
    middle = gradient[:, 1].abs() > 0.1
    assert velocity[middle].std() < 1e-9
    assert velocity[middle].abs().max() <= 0.8
