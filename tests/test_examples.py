"""The exact solutions that the examples learn from do solve their equations.

That the examples run is tested with all others in test_package.py.
"""

import importlib.util
import sys
from pathlib import Path

import torch

FOLDER = Path(__file__).parents[1] / "examples"


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


def test_turned_fields_are_turned():
    example = load("sphere")
    sphere = example.Sphere(40)
    plain, turned = (sphere.trajectories(3, seed=1, turned=t) for t in (False, True))
    assert plain.shape == turned.shape == (3, example.FRAMES, 40, 1, 4)
    assert not torch.allclose(plain, turned)
    assert abs(float(plain.norm() / turned.norm()) - 1) < 0.1


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
    boost = example.boosts(5, 1.0, torch.Generator().manual_seed(0))
    form = torch.diag(example.METRIC)
    torch.testing.assert_close(boost.mT @ form @ boost, form.expand(5, 4, 4))
    torch.testing.assert_close(boost[:, 0, 0].acosh(), torch.ones(5).double())
