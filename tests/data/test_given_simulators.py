"""Simulators whose trajectories differ in what is given: viscosity, buoyancy, dielectric bodies."""

import dataclasses

import numpy as np
import pytest
import torch

from cscnn.data import FieldFile
from cscnn.data.files import write
from cscnn.data.generate import generate, plans
from cscnn.data.laws import measure
from cscnn.data.simulators import Maxwell3D, NavierStokes, create, stream
from cscnn.data.simulators.maxwell3d import YeeGrid
from tests.data.command import command
from tests.data.tiny_simulators import tiny

VARIED = {"viscosity": (0.005, 0.02), "buoyancy": ((-0.1, 0.1), (0.2, 0.5))}
BODIES = {"cells": 24, "keep": 8, "warmup": 60, "frames": 2, "bodies": 2}


def streams(name, count):
    return [stream(name, 0, "train", i) for i in range(count)]


def test_a_varied_trajectory_is_the_one_of_its_own_constants():
    """To the last bit: smoke at the start does not depend on what is drawn afterwards."""
    simulator = tiny("navier_stokes", **VARIED)
    varied = simulator.simulate(streams("navier_stokes", 3))
    header = simulator.header()
    assert {g.name: (g.grade, g.kind) for g in header.given} == {
        "viscosity": (0, "constant"),
        "buoyancy": (1, "constant"),
    }
    assert not header.backgrounds
    for number, rng in enumerate(streams("navier_stokes", 3)):
        (viscosity,), (x, y) = varied["viscosity"][number], varied["buoyancy"][number]
        assert 0.005 <= viscosity <= 0.02
        assert -0.1 <= x <= 0.1
        assert 0.2 <= y <= 0.5
        fixed = dataclasses.replace(
            simulator, viscosity=float(viscosity), buoyancy=(float(x), float(y))
        )
        expected = fixed.simulate([rng])
        assert set(expected) == {"smoke", "velocity"}
        for name, values in expected.items():
            assert torch.equal(varied[name][number], values[0])


def test_one_of_the_two_may_vary():
    header = tiny("navier_stokes", viscosity=(0.01, 0.02)).header()
    assert [g.name for g in header.given] == ["viscosity"]
    assert header.backgrounds[0].components == (0.0, 0.5)
    header = tiny("navier_stokes", buoyancy=(0, (0.1, 0.5))).header()
    assert [g.name for g in header.given] == ["buoyancy"]
    assert not header.backgrounds


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"viscosity": (0.2, 0.1)}, r"viscosity takes a number or a range .* got \(0.2, 0.1\)"),
        ({"viscosity": (0.1, 5.0)}, "unstable"),
        ({"viscosity": (0.1, 0.2, 0.3)}, "viscosity takes 2 values"),
        ({"viscosity": ("low", "high")}, "viscosity takes float"),
        ({"time_step": (1.0, 2.0)}, "time_step takes float"),
    ],
)
def test_bad_ranges(options, message):
    with pytest.raises(ValueError, match=message):
        create("navier_stokes", **options)


def test_a_step_of_varied_smoke_needs_its_medium():
    simulator = NavierStokes(grid=(8, 8), **VARIED)
    smoke = torch.zeros(1, 8, 8, dtype=torch.float64)
    with pytest.raises(ValueError, match="give step the medium of yours"):
        simulator.step(smoke, simulator.at_rest(smoke))


def test_varied_data_by_the_command(tmp_path, capsys):
    options = ["grid=12,12", "frames=2", "viscosity=0.005,0.02", "buoyancy=0,(0.2,0.5)"]
    assert command("generate", "navier_stokes", "--out", str(tmp_path), "--split", "train=3",
                   "--batch", "2", "--set", *options) == 0  # fmt: skip
    path = tmp_path / "train.h5"
    with FieldFile(path) as file:
        values = {float(file.read(number)["buoyancy"][1]) for number in range(3)}
    assert len(values) == 3
    assert command("data", "check", str(path)) == 0
    assert "all well" in capsys.readouterr().out


# --- dielectric bodies ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
def test_displacement_has_no_divergence(seed):
    """To rounding, with bodies that have edges; E alone has one, as the control shows."""
    simulator = Maxwell3D(**BODIES)
    fields = simulator.simulate([np.random.default_rng(seed)])
    permittivity = fields["permittivity"]
    assert tuple(permittivity.shape) == (1, *simulator.header().shape("permittivity"))
    assert float(permittivity.max() - permittivity.min()) > 2
    stored = {name: x.float() for name, x in fields.items()}
    law = simulator.laws[1]
    assert law.factor == "permittivity"
    assert measure(law, stored, simulator.header()).relative < 1e-6
    del stored["permittivity"]
    residual = measure(law, stored, simulator.header())
    assert residual.relative > 0.01
    assert residual.violated


def test_bodies_leave_the_sources_alone():
    simulator = Maxwell3D(**BODIES)
    plain = dataclasses.replace(simulator, bodies=0)
    draws = [s.draw(np.random.default_rng(0)) for s in (simulator, plain)]
    assert draws[0] == draws[1]
    assert plain.draw_medium(np.random.default_rng(0)) is None
    assert not plain.header().given


def test_a_body_that_fills_the_box_is_another_medium():
    box, other = (Maxwell3D(cells=20, keep=6, permittivity=value) for value in (4.0, 10.0))
    sources = box.draw(np.random.default_rng(0))
    filled = YeeGrid(other, sources, medium=torch.full((20,) * 3, 4.0, dtype=torch.float64))
    expected = YeeGrid(box, sources)
    for yee in (filled, expected):
        yee.run(40)
    assert expected.electric.abs().max() > 0.1
    assert (filled.electric - expected.electric).abs().max() < 1e-13
    assert (filled.magnetic - expected.magnetic).abs().max() < 1e-13


def test_light_among_turned_bodies_is_turned_light():
    """A third of a turn about the diagonal, of medium and field together; not of the field."""
    simulator = Maxwell3D(cells=21, keep=7, bodies=2, sources=0)
    medium = simulator.draw_medium(np.random.default_rng(1))
    medium = medium[:-1, :-1, :-1]  # cells of one period; then a copy of the first
    start = torch.randn(3, 20, 20, 20, dtype=torch.float64)

    def evolved(medium, start):
        yee = YeeGrid(simulator, [], medium=torch.nn.functional.pad(
            medium[None], (0, 1) * 3, mode="circular")[0])  # fmt: skip
        yee.electric[:, 1:, 1:, 1:] = start
        for axis in (1, 2, 3):
            yee.electric.select(axis, 0).copy_(yee.electric.select(axis, -1))
        yee.run(12)
        return yee.electric[:, 1:, 1:, 1:]

    swap = lambda x: x.movedim(-3, -1)  # noqa: E731, the cyclic permutation of axes
    cycle = lambda e: torch.stack([swap(e[i]) for i in (1, 2, 0)])  # noqa: E731
    moved = evolved(swap(medium), cycle(start))
    assert (moved - cycle(evolved(medium, start))).abs().max() < 1e-11
    assert (evolved(medium, cycle(start)) - moved).abs().max() > 1e-3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bodies": -1}, "bodies must not be negative, got -1"),
        ({"bodies": 1, "body_radius": (2.0, 30.0)}, r"up to 14 cells.* got \(2.0, 30.0\)"),
        ({"bodies": 1, "body_permittivity": (9.0, 2.0)}, "smallest and the largest value"),
        (
            {"bodies": 1, "body_permittivity": (0.5, 2.0)},
            "unstable: courant must be at most 0.4082",
        ),
    ],
)
def test_bad_bodies(options, message):
    with pytest.raises(ValueError, match=message):
        create("maxwell3d", **options)


def test_files_made_before_there_were_bodies_are_still_complete(tmp_path):
    (plan,) = plans(tiny("maxwell3d"), tmp_path, {"train": 1})
    header = plan.header
    old = {k: v for k, v in header.parameters.items() if "bod" not in k}
    assert len(old) == len(header.parameters) - 3
    fields = plan.simulator.simulate(streams("maxwell3d", 1))
    rows = [{name: x[0].numpy() for name, x in fields.items()}]
    write(plan.path, header.replace(parameters=old), rows, [0])
    assert generate([plan]) == {plan.path: False}
    (other,) = plans(tiny("maxwell3d", bodies=1), tmp_path, {"train": 1})
    with pytest.raises(ValueError, match="bodies is 0, not 1"):
        generate([other])
