"""The examples run, and the exact solutions that they learn from do solve their equations."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

FOLDER = Path(__file__).parents[1] / "examples"
#: Options of a quick run.
SHORT = {
    "anti_de_sitter": ["--quick"],
    "compare_kernels": ["--steps", "2", "--seeds", "1", "--size", "16"],
    "data_figures": ["figures", "--no-times"],
    "demo": ["--epochs", "1", "--train", "2"],
    "explorer_data": ["explorer", "--steps", "2"],
    "lorentz_events": ["--quick"],
    "sphere": ["--quick"],
}
SLOW = ("anti_de_sitter", "data_figures", "demo", "explorer_data", "lorentz_events", "sphere")
SCRIPTS = [
    pytest.param(path, marks=[pytest.mark.slow] if path.stem in SLOW else [], id=path.stem)
    for path in sorted(FOLDER.glob("[!_]*.py"))
]


@pytest.mark.parametrize("script", SCRIPTS)
def test_examples_run(script, tmp_path):
    result = subprocess.run(
        [sys.executable, "-W", "error", script, *SHORT.get(script.stem, [])],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},  # pytest-xdist uses the cores
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout


@pytest.fixture(autouse=True)
def _shared_modules(monkeypatch):
    """What examples import from their own folder."""
    monkeypatch.syspath_prepend(FOLDER)


def load(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def unit(x):
    return x / x.norm()


def test_burgers_on_the_sphere():
    """w = -∇log φ obeys ∂w/∂s = ∇(div w - |w|²).

    Functions on the sphere are extended to be constant along rays: their gradient and divergence
    are then those of the space around.
    """
    example = load("sphere")
    centres, strengths = (x[:1] for x in example.sources(1, seed=0))

    def w(x, spread=0.1):
        return example.velocity(unit(x)[None], centres, strengths, spread)[0, 0]

    def right(x):
        return torch.func.jacrev(w)(unit(x)).trace() - w(x).square().sum()

    torch.manual_seed(0)
    for x in torch.randn(3, 3, dtype=torch.float64):
        step = 1e-4
        left = (w(x, 0.1 + step) - w(x, 0.1 - step)) / (2 * step)
        expected = torch.func.grad(right)(unit(x))
        torch.testing.assert_close(left, expected, atol=1e-5, rtol=1e-5)
        assert abs(float(w(x) @ unit(x))) < 1e-12
        assert left.norm() > 1e-2


def test_rotated_fields_on_the_sphere():
    example = load("sphere")
    sphere = example.Sphere(40)
    equator, rotated = (sphere.trajectories(3, seed=1, rotated=r) for r in (False, True))
    assert equator.shape == rotated.shape == (3, example.FRAMES, 40, 1, 4)
    assert not torch.allclose(equator, rotated)
    assert abs(float(equator.norm() / rotated.norm()) - 1) < 0.1


def test_klein_gordon_on_anti_de_sitter_space():
    example = load("anti_de_sitter")
    sample = example.samples(1, seed=0)[0]
    z = torch.tensor([[1.25, 1j, 0.75]], dtype=torch.complex128)  # null
    c = torch.tensor([1 + 2j], dtype=torch.complex128)
    form = example.SPACE.form(sample.events)
    assert abs(complex((z @ form.to(z) @ z.T).squeeze())) < 1e-12

    def value(x):
        return example.packets(example.SPACE.project(x[None]), z, c)[0][0]

    for x in sample.events[::20]:
        wave = (torch.func.hessian(value)(x) @ form).trace()
        mass = example.WEIGHT * (example.WEIGHT - 1)
        torch.testing.assert_close(wave, -mass * value(x))
        gradient = form @ torch.func.grad(value)(x)
        torch.testing.assert_close(example.packets(x[None], z, c)[1][0], gradient)


def test_isometries_of_anti_de_sitter_space():
    example = load("anti_de_sitter")
    g = example.isometry(0.8, seed=3)
    form = example.SPACE.form(g)
    torch.testing.assert_close(g.mT @ form @ g, form)
    sample = example.samples(1, seed=0)[0]
    moved = sample.moved(g)
    example.SPACE.check(moved.events)
    size = [(s.gradient @ form * s.gradient).sum(-1) for s in (sample, moved)]
    torch.testing.assert_close(*size)


def test_flashes_and_boosts():
    example = load("lorentz_events")
    satellites, flash = example.flashes(50, seed=0)
    events, velocity = satellites.unbind(1)
    away = events - flash.unsqueeze(1)
    interval = (away.square() * example.METRIC).sum(-1)
    assert interval.abs().max() < 0.3  # on the light cone, but for the clocks
    speed = (velocity.square() * example.METRIC).sum(-1)
    torch.testing.assert_close(speed, torch.ones_like(speed))
    satellites[:, 0, :, 0] = away[..., 1:].norm(dim=-1)
    assert (example.least_squares(satellites) - flash).abs().max() < 1e-6
    generator = torch.Generator().manual_seed(0)
    rapidities = example.boosts(50, (0.0, 0.3), generator)[:, 0, 0].acosh()
    assert 0 <= rapidities.min() < rapidities.max() <= 0.3
    boost = example.boosts(5, 1.0, generator)
    form = torch.diag(example.METRIC)
    torch.testing.assert_close(boost.mT @ form @ boost, form.expand(5, 4, 4))
    torch.testing.assert_close(boost[:, 0, 0].acosh(), torch.ones(5).double())
