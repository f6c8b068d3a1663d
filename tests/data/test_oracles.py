"""Our solvers against the packages that made the published data, each in a process of its own."""

import dataclasses
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from cscnn.data.simulators import Maxwell3D, MaxwellSpacetime, MaxwellSpacetime4D, NavierStokes
from cscnn.data.simulators.lienard_wiechert import faraday
from cscnn.data.simulators.maxwell3d import YeeGrid

pytestmark = pytest.mark.external

FOLDER = Path(__file__).parent / "oracles"


def run(package: str, script: str, *arguments: object) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"the original needs {package}: pip install 'cscnn[oracles]'")
    command = [sys.executable, "-W", "ignore", str(FOLDER / script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_smoke_is_that_of_phiflow(tmp_path: Path) -> None:
    simulator = NavierStokes(grid=(32, 32))
    start = simulator.noise(np.random.default_rng(0))
    np.save(tmp_path / "start.npy", start)
    run("phi", "run_phiflow.py", tmp_path / "start.npy", 8, tmp_path / "result.npz")
    expected = np.load(tmp_path / "result.npz")
    smoke = torch.as_tensor(start)[None]
    flow = simulator.at_rest(smoke)
    for _ in range(8):
        smoke, flow = simulator.step(smoke, flow)
    assert np.abs(expected["v"]).max() > 1  # it moves
    for ours, theirs in zip((smoke, *flow), ("smoke", "u", "v"), strict=True):
        assert np.abs(ours[0].numpy() - expected[theirs]).max() < 1e-10


def test_light_is_that_of_fdtd(tmp_path: Path) -> None:
    simulator = Maxwell3D(cells=48, keep=16)
    sources = simulator.draw(np.random.default_rng(1))
    rows = [dataclasses.asdict(source) for source in sources]
    (tmp_path / "sources.json").write_text(json.dumps(rows))
    run("fdtd", "run_fdtd.py", tmp_path / "sources.json", 48, 60, tmp_path / "result.npz")
    expected = np.load(tmp_path / "result.npz")
    yee = YeeGrid(simulator, sources)
    yee.run(60)
    for name in ("electric", "magnetic"):
        assert np.abs(expected[name]).max() > 0.5
        assert np.abs(getattr(yee, name).numpy() - expected[name]).max() < 1e-13


@pytest.mark.parametrize("kind", [MaxwellSpacetime, MaxwellSpacetime4D])
def test_charges_are_those_of_pycharge(kind: type, tmp_path: Path) -> None:
    simulator = kind()
    charges = simulator.draw(np.random.default_rng(2))
    rng = np.random.default_rng(3)
    points = rng.uniform(-8, 8, (200, 1 + simulator.dim))
    arrays = {f.name: getattr(charges, f.name).numpy() for f in dataclasses.fields(charges)}
    np.savez(tmp_path / "in.npz", **arrays, points=points, height=simulator.height)
    run("pycharge", "run_pycharge.py", tmp_path / "in.npz", tmp_path / "out.npz")
    theirs = np.load(tmp_path / "out.npz")
    e, b = theirs["electric"], theirs["magnetic"]
    if simulator.dim == 2:
        expected = np.stack([e[:, 0], e[:, 1], b[:, 2]], -1)
    else:
        expected = np.concatenate([e, np.stack([b[:, 2], -b[:, 1], b[:, 0]], -1)], -1)
    ours, _ = faraday(charges, torch.as_tensor(points), simulator.height)
    assert np.abs(ours.numpy() - expected).max() < 1e-10 * np.abs(expected).max()
