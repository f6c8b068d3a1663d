"""What all simulators promise: shapes, streams, presets, errors."""

import pytest
import torch

from cscnn.data.simulators import (
    SIMULATORS,
    create,
    stream,
)
from tests.data.tiny_simulators import tiny


@pytest.mark.parametrize("name", SIMULATORS)
def test_shapes_are_those_of_the_header(name: str) -> None:
    simulator = tiny(name)
    header = simulator.describe(3, "train")
    result = simulator.simulate([stream(name, 3, "train", i) for i in range(2)])
    assert set(result) == {*(f.name for f in header.fields), *header.place}
    for i in range(2):
        points = len(result["positions"][i]) if header.place else 1
        for key, rows in result.items():
            assert len(rows) == 2
            assert tuple(rows[i].shape) == header.shape(key, points)
            assert rows[i].dtype == torch.float64
            assert rows[i].isfinite().all()
    assert header.seed == 3
    assert header.parameters["frames"] == simulator.frames


@pytest.mark.parametrize("name", SIMULATORS)
def test_a_trajectory_does_not_know_its_batch(name: str) -> None:
    simulator = tiny(name)
    together = simulator.simulate([stream(name, 0, "train", i) for i in range(3)])
    alone = simulator.simulate([stream(name, 0, "train", 2)])
    for key, x in together.items():
        assert torch.equal(x[2], alone[key][0])
        assert not torch.equal(x[0], x[1])


def test_random_streams_differ_by_name_seed_split_and_index() -> None:
    keys = [("a", 0, "train", 0), ("b", 0, "train", 0), ("a", 1, "train", 0),
            ("a", 0, "test", 0), ("a", 0, "train", 1)]  # fmt: skip
    draws = {stream(*key).random() for key in keys}
    assert len(draws) == len(keys)
    assert stream(*keys[0]).random() == stream(*keys[0]).random()


FULL = (  # none of the paper's
    "acoustic_points", "elastodynamics", "maxwell_spacetime4d", "sine_gordon", "viscoelastic",
)  # fmt: skip


@pytest.mark.parametrize("name", SIMULATORS)
def test_presets(name: str) -> None:
    full, small = SIMULATORS[name].presets
    assert full == ("full" if name in FULL else "paper")
    assert small == "small"
    assert create(name) == create(name, full) == SIMULATORS[name].create() == SIMULATORS[name]()
    assert create(name, small) != create(name)
    for preset in (full, small):
        header = create(name, preset).header()
        assert header.algebra.dim == len(header.axes)
        assert SIMULATORS[name].frames_in < header.frames


def test_usual_forecasts() -> None:
    assert {name: simulator.frames_in for name, simulator in SIMULATORS.items()} == {
        "navier_stokes": 4,
        "maxwell3d": 4,
        "maxwell_spacetime": 16,
        "maxwell_spacetime4d": 8,
        "sine_gordon": 16,
        "acoustic_points": 2,
        "elastodynamics": 1,
        "viscoelastic": 1,
    }


def test_default_presets_are_of_full_size() -> None:
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
        ("elastodynamics", {"dim": 4}, "dim must be 2 or 3, got 4"),
        ("elastodynamics", {"pressure_speed": 0.9}, r"must exceed 1, .* got 0.9"),
        ("elastodynamics", {"smoothness": 0.001}, r"spacing of the grid, 0.01562, got 0.001"),
        ("elastodynamics", {"frame_spacing": 0.0}, "frame_spacing must be positive, got 0.0"),
        ("elastodynamics", {"cells": -3}, "cells must be at least 3, got -3"),
        ("elastodynamics", {"smoothness": 2.0}, "at most the size of the box, 1, .* got 2.0"),
        ("elastodynamics", {"focus": -1.0}, "focus must be finite and not negative, got -1.0"),
        ("elastodynamics", {"direction": float("nan")}, "an angle in degrees, got nan"),
        (
            "viscoelastic",
            {"viscosity": -0.1},
            "viscosity must be finite and not negative, got -0.1",
        ),
        ("viscoelastic", {"force": float("inf")}, "force must be finite and not negative, got inf"),
        ("viscoelastic", {"smoothness": 2.0}, "at most the size of the square, 1, .* got 2.0"),
        ("viscoelastic", {"relaxation": 0.0}, "relaxation must be positive, got 0.0"),
        ("viscoelastic", {"cells": 3}, "cells must be at least 4, got 3"),
        ("viscoelastic", {"cells": 8, "rolls": 3}, "got rolls=3 on cells=8"),
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
    with pytest.raises(
        ValueError, match="unknown task 'euler': choose from acoustic_points, elastodynamics"
    ):
        create("euler")
    with pytest.raises(ValueError, match="unknown preset 'huge' of maxwell3d"):
        create("maxwell3d", "huge")
