"""Exact simulators: solutions move as the group does, and observation is complete."""

import numpy as np
import pytest
import torch

from cscnn.algebra.group import boost
from cscnn.data.simulators import (
    SIMULATORS,
    ExactSimulator,
    NavierStokes,
    create,
    exact_simulator,
    stream,
)
from tests.data.tiny_simulators import tiny

EXACT = [name for name, simulator in SIMULATORS.items() if issubclass(simulator, ExactSimulator)]


def moves(simulator) -> dict[str, torch.Tensor]:
    """A boost, a reflection of space, and where there is one a rotation, (1 + d, 1 + d)."""
    algebra = simulator.header().algebra
    direction = torch.nn.functional.normalize(torch.arange(1.0, algebra.dim), dim=0)
    identity = torch.eye(algebra.dim, dtype=torch.float64)
    result = {"boost": boost(algebra, 0.4, direction.double().tolist())}
    result["reflection"] = identity.clone()
    result["reflection"][1, 1] = -1
    if algebra.dim > 2:
        result["rotation"] = identity.clone()
        result["rotation"][1:3, 1:3] = torch.tensor([[0.8, -0.6], [0.6, 0.8]], dtype=torch.float64)
    return result


def at_event(simulator, solution, event: torch.Tensor) -> torch.Tensor:
    """All fields as a multivector (blades,) at one event, by a grid of one point there."""
    point = type(simulator)(
        **{**simulator.parameters(), "frames": 1, "grid": (1,) * len(event[1:])}
    )
    algebra = point.header().algebra
    fields = point.observe(solution.translated(-event))
    parts = [
        algebra.embed(fields[f.name].flatten(0, -2)[0], f.grade) for f in point.header().fields
    ]
    return torch.stack(parts)


def close(a: torch.Tensor, b: torch.Tensor, rtol: float = 1e-9) -> bool:
    return bool((a - b).abs().max() <= rtol * b.abs().max())


@pytest.mark.parametrize("name", EXACT)
def test_moved_solutions_have_the_moved_fields(name: str) -> None:
    """The solution moved by g has ρ(g) f(x) at g x."""
    simulator = create(name)
    algebra = simulator.header().algebra
    solution = simulator.draw(stream(name, 0, "test", 0))
    for label, g in moves(simulator).items():
        moved = solution.transformed(g)
        for seed in range(4):
            event = torch.as_tensor(np.random.default_rng(seed).uniform(-2, 2, algebra.dim))
            here = at_event(simulator, solution, event)
            there = at_event(simulator, moved, g @ event)
            assert close(there, algebra.transform(g, here)), label
            assert not close(at_event(simulator, moved, event), algebra.transform(g, here), 1e-4)


@pytest.mark.parametrize("name", EXACT)
def test_transformations_are_a_group_action(name: str) -> None:
    simulator = tiny(name)
    solution = simulator.draw(stream(name, 0, "test", 1))
    elements = moves(simulator)
    for first, g in elements.items():
        for second, h in elements.items():
            stepwise = simulator.observe(solution.transformed(g).transformed(h))
            for field, x in simulator.observe(solution.transformed(h @ g)).items():
                assert close(stepwise[field], x), (first, second, field)
    shift = torch.linspace(0.5, -1.5, simulator.header().algebra.dim, dtype=torch.float64)
    g = elements["boost"]
    one = simulator.observe(solution.translated(shift).transformed(g))
    other = simulator.observe(solution.transformed(g).translated(g @ shift))
    assert all(close(one[field], x) for field, x in other.items())


@pytest.mark.parametrize("name", EXACT)
def test_displacements_along_time_are_other_frames(name: str) -> None:
    simulator = tiny(name)
    solution = simulator.draw(stream(name, 0, "test", 2))
    shift = torch.zeros(simulator.header().algebra.dim, dtype=torch.float64)
    shift[0] = -2 * simulator.spacing
    later = simulator.with_frames(2).observe(solution.translated(shift))
    for field, x in simulator.observe(solution).items():
        assert later[field].shape[0] == 2
        assert close(later[field], x[2:4])


@pytest.mark.parametrize("name", EXACT)
def test_observed_solutions_are_the_data(name: str) -> None:
    simulator = tiny(name)
    data = simulator.simulate([stream(name, 0, "train", 3)])
    fields = simulator.observe(simulator.draw(stream(name, 0, "train", 3)).to("cpu"))
    assert list(fields) == [f.name for f in simulator.header().fields]
    for field, x in fields.items():
        assert torch.equal(data[field][0], x)


def test_observation_includes_the_normalisation() -> None:
    name = "maxwell_spacetime"
    solution = tiny(name).draw(stream(name, 0, "train", 0))
    strong = tiny(name).observe(solution)["faraday"]
    weak = tiny(name, normalise="log").observe(solution)["faraday"]
    assert weak.abs().max() < strong.abs().max()


@pytest.mark.parametrize("name", EXACT)
def test_only_orthochronous_lorentz_transformations(name: str) -> None:
    simulator = tiny(name)
    solution = simulator.draw(stream(name, 0, "test", 0))
    dim = simulator.header().algebra.dim
    reversal = torch.eye(dim, dtype=torch.float64)
    reversal[0, 0] = -1
    message = rf"g must be in O\(1, {dim - 1}\) and keep the direction of time, got \[\["
    for g in (reversal, 2 * torch.eye(dim, dtype=torch.float64)):
        with pytest.raises(ValueError, match=message):
            solution.transformed(g)


def test_charges_must_keep_clear_also_when_they_are_boosted() -> None:
    simulator = create("maxwell_spacetime4d")
    algebra = simulator.header().algebra
    verdicts = set()
    for index in range(8):
        charges = simulator.draw(stream(simulator.name, 0, "test", index))
        assert simulator.keeps_clear(charges)
        moved = charges.transformed(boost(algebra, 0.9, [1.0, 0.0, 0.0]))
        s = torch.linspace(-400, 400, 40000, dtype=torch.float64)
        events = moved.positions(s).flatten(0, 1)
        seen = events[(events[:, 0] <= 32) & (events[:, 0] >= -180)]
        distance = (seen[:, 1:].abs() - 7.5).clamp(min=0).norm(dim=1).min()
        verdict = simulator.keeps_clear(moved, 0.9)
        verdicts.add(verdict)
        if abs(distance - simulator.clearance) > 0.2:
            assert verdict == (distance > simulator.clearance)
    assert verdicts == {True, False}


def test_acceptance() -> None:
    fields = {"faraday": torch.randn(2, 4, 4, 3)}
    assert tiny("maxwell_spacetime").accepts(fields)
    assert not tiny("maxwell_spacetime", max_std=0.5).accepts(fields)
    waves = tiny("sine_gordon")
    solution = waves.draw(np.random.default_rng(0))
    assert waves.keeps_clear(solution, 2.0)
    assert waves.accepts(waves.observe(solution))


@pytest.mark.parametrize("name", EXACT)
def test_the_simulator_of_a_header(name: str) -> None:
    simulator = tiny(name, rapidity=0.25)
    header = simulator.describe(0, "test")
    assert exact_simulator(header) == simulator
    assert exact_simulator(header.from_dict(header.to_dict())) == simulator  # as from a file
    assert exact_simulator(header.replace(generator_version=99)) is None
    assert exact_simulator(header.replace(generator="somebody")) is None
    assert exact_simulator(NavierStokes(grid=(8, 8)).describe(0, "test")) is None
