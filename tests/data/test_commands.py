"""The commands ``cscnn generate`` and ``cscnn data``."""

from pathlib import Path

import numpy as np
import pytest

from cscnn.data.files import write
from tests.data.command import command
from tests.data.tiny_simulators import tiny


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    smoke = ["navier_stokes", "--out", str(tmp_path), "--set", "grid=8,8", "frames=2"]
    assert command("generate", *smoke, "--split", "train=3", "--compression", "gzip") == 0
    assert command("generate", *smoke, "--split", "train=3") == 0
    assert "already complete" in capsys.readouterr().out
    file = str(tmp_path / "train.h5")
    assert command("data", "info", file) == 0
    text = capsys.readouterr().out
    for expected in ("3 trajectories", "metric      ++ on axes x, y", "velocity: grade 1, m/s",
                     "wall, wall", "compression gzip", "buoyancy"):  # fmt: skip
        assert expected in text
    assert command("data", "info", "--json", file) == 0
    assert '"metric": [' in capsys.readouterr().out
    assert command("data", "check", file) == 0
    text = capsys.readouterr().out
    assert "all well\n  no divergence, ∇⌟v = 0: residual " in text
    assert "warning" not in text
    for i in range(2):
        assert command("generate", *smoke, "--split", "test=4", "--shard", f"{i}/2") == 0
    shards = [str(tmp_path / f"test.shard-{i}-of-2.h5") for i in range(2)]
    assert command("data", "merge", *shards, "--out", str(tmp_path / "test.h5")) == 0
    with pytest.raises(FileExistsError, match=r"test\.h5 exists: .* --overwrite"):
        command("data", "merge", *shards, "--out", str(tmp_path / "test.h5"))
    assert command("data", "merge", *shards, "--out", str(tmp_path / "test.h5"), "--overwrite") == 0
    (tmp_path / "train.h5").write_bytes(b"nothing")
    assert command("data", "check", file) == 1
    assert "train.h5 is no HDF5 file" in capsys.readouterr().out


def test_check_warns_of_data_that_break_their_laws(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file whose numbers are intact, but whose velocity has a wrong sign."""
    simulator = tiny("navier_stokes")
    fields = simulator.simulate([np.random.default_rng(0)])
    trajectory = {name: x[0].numpy() for name, x in fields.items()}
    trajectory["velocity"] = trajectory["velocity"] * np.array([1, -1])
    write(tmp_path / "wrong.h5", simulator.describe(0, "test"), [trajectory], [0])
    assert command("data", "check", str(tmp_path / "wrong.h5")) == 0
    text = capsys.readouterr().out
    assert "all well\n  warning: no divergence, ∇⌟v = 0: residual " in text
    assert "far above rounding: are fields, signs, units and spacing what the header says" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["navier_stokes"], "needs a task and --out FOLDER"),
        (["euler", "--out", "X"], "unknown task 'euler'"),
        (["navier_stokes", "--out", "X", "--split", "train"], "NAME=COUNT, e.g. train=512"),
        (["navier_stokes", "--out", "X", "--shard", "1"], "I/N, e.g. 0/8, got '1'"),
        (["navier_stokes", "--out", "X", "--set", "grid"], "OPTION=VALUE, got 'grid'"),
        (["navier_stokes", "--out", "X", "--set", "grid=a"], "grid takes 2 values"),
        (["navier_stokes", "--out", "X", "--preset", "tiny"], "unknown preset 'tiny'"),
    ],
)
def test_bad_commands(arguments: list[str], message: str, tmp_path: Path) -> None:
    arguments = [str(tmp_path) if a == "X" else a for a in arguments]
    with pytest.raises(ValueError, match=message):
        command("generate", *arguments)
    assert list(tmp_path.iterdir()) == []


def test_list_shows_tasks_and_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert command("generate", "--list") == 0
    text = capsys.readouterr().out
    assert "navier_stokes: Smoke that rises" in text
    assert "viscosity=0.01" in text
    assert "grid=128,128 (small 64,64)" in text
    assert "Presets: paper, small." in text
    assert "Presets: full, small." in text
