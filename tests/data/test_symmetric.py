"""Symmetric tensors in headers and files: every component is there, and none that is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from cscnn.algebra import CliffordAlgebra
from cscnn.calculus import Differences, divergence, gradient
from cscnn.cli import main
from cscnn.data import Background, Field, FieldFile, Given, Header, open_fields
from cscnn.data.files import checksum, find_damage, write
from cscnn.data.laws import Law, measure
from tests.data.tensors import SOLID, solid, solid_file, trajectory


def test_headers_have_the_algebra_of_their_fields() -> None:
    assert SOLID.algebra.symmetric
    assert SOLID.algebra.metric == (1, 1)
    assert not SOLID.replace(fields=SOLID.fields[:1], backgrounds=(), given=()).algebra.symmetric
    only = SOLID.replace(fields=SOLID.fields[:1], backgrounds=())
    assert only.algebra.symmetric  # by what is given
    assert SOLID.shape("stress") == (6, 8, 8, 4)
    assert SOLID.shape("stiffness") == (8, 8, 4)
    assert SOLID.components("symmetric") == ("xx", "xy", "yx", "yy")
    assert SOLID.replace(axes=("lon", "h")).components("symmetric")[1] == "lon_h"
    assert SOLID.components(1) == ("e1", "e2")
    assert Header.from_dict(json.loads(json.dumps(SOLID.to_dict()))) == SOLID


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"fields": (Field("s", "tensor"),)}, TypeError, "integer or 'symmetric', got 'tensor'"),
        ({"fields": (Field("s", 3),)}, ValueError, "s has grade 3, .*tensor has 'symmetric'"),
        (
            {"backgrounds": (Background("s", "symmetric", (1.0, 2.0, 3.0, 4.0)),)},
            ValueError,
            r"background s: .*equal its transpose, got \[\[1.0, 2.0\], \[3.0, 4.0\]\]",
        ),
        (
            {"backgrounds": (Background("s", "symmetric", (1.0, 2.0, 3.0)),)},
            ValueError,
            r"s of grade symmetric has 4 components, got \(1.0, 2.0, 3.0\)",
        ),
    ],
)
def test_impossible_tensors(changes: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        SOLID.replace(**changes)


def test_on_a_line_a_tensor_is_a_scalar() -> None:
    with pytest.raises(ValueError, match=r"stress is a symmetric tensor on one axis, .* \(1,\)"):
        solid(1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_number_comes_back(tmp_path: Path, dtype: str) -> None:
    path = solid_file(tmp_path / "train.h5", dtype=dtype)
    with FieldFile(path) as file:
        assert file.header == Header.from_dict(SOLID.to_dict())
        for number in range(2):
            for name, expected in trajectory(number).items():
                kept = "float64" if name == "heating" else dtype
                assert np.array_equal(file.read(number)[name], expected.astype(kept))
    assert not list(find_damage(path))
    with h5py.File(path) as stored:
        assert stored["symmetric/stress"].shape == (2, 6, 8, 8, 4)
        assert list(stored["symmetric/stress"].attrs["components"]) == ["xx", "xy", "yx", "yy"]
        assert stored["symmetric/stress"].dims[4].keys() == ["component_symmetric"]
        assert stored["static/symmetric/stiffness"].shape == (2, 8, 8, 4)
        assert list(stored["backgrounds/symmetric/load"]) == [1.0, 0.5, 0.5, -2.0]


def test_points_and_spacetime(tmp_path: Path) -> None:
    fluid = Header.of_points((1, 1, 1), [Field("stress", "symmetric")], 3)
    arrays = {
        "positions": np.random.default_rng(0).random((5, 3)),
        "stress": np.ones(fluid.shape("stress", 5)),
    }
    write(tmp_path / "points.h5", fluid, [arrays], [0])
    with FieldFile(tmp_path / "points.h5") as file:
        assert file.read(0)["stress"].shape == (3, 5, 9)
    light = solid(2).replace(metric=(1, -1), axes=("t", "x"), grid=(8,), time_axis=0)
    with FieldFile(solid_file(tmp_path / "light.h5", header=light)) as file:
        assert file.header.components("symmetric") == ("tt", "tx", "xt", "xx")
        assert file.header.shape("stress") == (6, 8, 4)


def test_what_is_not_symmetric_is_refused(tmp_path: Path) -> None:
    bad = trajectory(1)
    bad["stress"][3, 4, 5] = 1.0, 2.0, 3.0, 4.0
    message = (
        r"trajectory 7, field stress: .* got \[\[1.0, 2.0\], \[3.0, 4.0\]\] in frame 3 at \(4, 5\)"
    )
    with pytest.raises(ValueError, match=message):
        write(tmp_path / "train.h5", SOLID, [trajectory(0), bad], [3, 7])
    bad = trajectory(1)
    bad["stiffness"][4, 5, 1] = 9.0
    with pytest.raises(ValueError, match=r"field stiffness: .* got \[\[.*9.0.*\]\] at \(4, 5\)"):
        write(tmp_path / "train.h5", SOLID, [bad], [0])
    assert not list(tmp_path.iterdir())
    three = trajectory(0)
    three["stress"] = three["stress"][..., [0, 1, 3]]
    with pytest.raises(
        ValueError,
        match=r"field stress: shape \(6, 8, 8, 3\), expected \(6, 8, 8, 4\); .* row by row",
    ):
        write(tmp_path / "train.h5", SOLID, [three], [0])


def test_rounding_is_taken_out(tmp_path: Path) -> None:
    """Files hold matrices that are symmetric to the last bit."""
    rough = trajectory(0)
    rough["stress"][..., 1] += 1e-7
    write(tmp_path / "train.h5", SOLID, [rough], [0], dtype="float64")
    with FieldFile(tmp_path / "train.h5") as file:
        stress = file.read(0)["stress"]
    assert np.array_equal(stress[..., 1], stress[..., 2])
    assert np.allclose(stress[..., 1], trajectory(0)["stress"][..., 1] + 5e-8, atol=1e-15)
    rough["stress"][..., 1] += 1e-3
    with pytest.raises(ValueError, match="equal its transpose"):
        write(tmp_path / "train.h5", SOLID, [rough], [0])


def test_check_finds_what_was_changed_later(tmp_path: Path, capsys) -> None:
    path = solid_file(tmp_path / "train.h5")
    assert main(["data", "check", str(path), "--quiet"]) == 0
    with h5py.File(path, "a") as file:
        file["symmetric/stress"][1, 2, 3, 4, 1] += 0.5
        arrays = {q.name: FieldFile(path).read(1)[q.name] for q in SOLID.quantities}
        file["checksum"][1] = checksum(arrays)
    capsys.readouterr()
    assert main(["data", "check", str(path), "--quiet"]) == 1
    said = capsys.readouterr().out
    assert "trajectory 1, field stress: a symmetric tensor must equal its transpose" in said
    assert "in frame 2 at (3, 4)" in said


def test_info_and_damage(tmp_path: Path, capsys) -> None:
    path = solid_file(tmp_path / "train.h5")
    main(["data", "info", str(path)])
    said = capsys.readouterr().out
    assert "stress: symmetric tensor, Pa" in said
    assert "background  load: symmetric tensor, (1.0, 0.5, 0.5, -2.0)" in said
    with h5py.File(path, "a") as file:
        file["symmetric/stress"].attrs["components"] = ["xx", "yy", "xy", "yx"]
    with pytest.raises(
        ValueError, match=r"but symmetric tensor of metric .* has .'xx', 'xy', 'yx'"
    ):
        FieldFile(path)


def test_files_join(tmp_path: Path) -> None:
    other = Background("load", "symmetric", (0.0, 0.0, 0.0, 1.0))
    header = SOLID.replace(backgrounds=(other,))
    solid_file(tmp_path / "a.h5")
    arrays = [trajectory(n, header) for n in (2, 3)]
    write(tmp_path / "b.h5", header, arrays, (2, 3), dtype="float64")
    with open_fields(tmp_path) as source:
        assert Given("load", "symmetric", "constant") in source.header.given
        assert source.read(3)["load"].tolist() == [0.0, 0.0, 0.0, 1.0]


def force(f: torch.Tensor, algebra: CliffordAlgebra, scheme: Differences) -> torch.Tensor:
    """∂_j T^ij: of the traceless part, and of the trace, which is the scalar times 1/√d."""
    scalar = algebra.embed(algebra.grade(f, 0) / algebra.dim**0.5, 0)
    return divergence(f, algebra, scheme) + gradient(scalar, algebra, scheme)


def test_laws_of_tensors() -> None:
    """A stress in equilibrium has no divergence: that of an Airy function, here a wave."""
    header = solid(2, 32).replace(fields=(Field("stress", "symmetric"),), spacing=(1 / 32,) * 2)
    x, y = (np.indices((32, 32)) + 0.5) / 32
    wave = np.sin(2 * np.pi * (x + 2 * y))[None, None, ..., None]
    stress = torch.from_numpy(wave * np.array([4.0, -2.0, -2.0, 1.0]))
    law = Law("equilibrium", "∇·σ = 0", "forces balance", "stress", force)
    found = measure(law, {"stress": stress}, header)
    assert found is not None
    assert found.relative < 1e-2  # of differences
    assert not found.violated
    stress[..., 1:3] *= -1
    broken = measure(law, {"stress": stress}, header)
    assert broken is not None
    assert broken.violated
