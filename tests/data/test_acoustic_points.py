"""Sound at random points solves its equations, in every dimension."""

import math

import numpy as np
import pytest
import torch

from cscnn.data import FieldFile
from cscnn.data.generate import generate, plans
from cscnn.data.simulators import AcousticPoints, create


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_the_equations_of_sound(dim: int) -> None:
    """∂ₜ v + ∇p = 0 and ∂ₜ p + c² ∇⌟v = 0, by automatic differentiation."""
    simulator = AcousticPoints(dim=dim, speed=1.7, size=2.0, waves=5)
    rng = np.random.default_rng(0)
    waves = simulator.draw(rng)

    def field(event: torch.Tensor) -> torch.Tensor:
        pressure, velocity = simulator.observe(waves, event[:1], event[None, 1:])
        return torch.cat([pressure.flatten(), velocity.flatten()])

    for event in torch.from_numpy(rng.uniform(0, 2, (10, 1 + dim))):
        jacobian = torch.autograd.functional.jacobian(field, event)  # (p, v) by (t, x)
        momentum = jacobian[1:, 0] + jacobian[0, 1:]
        mass = jacobian[0, 0] + 1.7**2 * jacobian[1:, 1:].trace()
        assert momentum.abs().max() < 1e-12 * jacobian.abs().max()
        assert mass.abs() < 1e-12 * jacobian.abs().max()
        assert jacobian.abs().max() > 0.1


def test_the_box_is_periodic() -> None:
    simulator = AcousticPoints(size=2.0)
    waves = simulator.draw(np.random.default_rng(0))
    times, x = torch.zeros(1, dtype=torch.float64), torch.rand(5, 2, dtype=torch.float64)
    first = simulator.observe(waves, times, x)
    again = simulator.observe(waves, times, x + torch.tensor([2.0, -4.0]))
    for a, b in zip(first, again, strict=True):
        assert torch.allclose(a, b, atol=1e-12)


def test_sizes_differ_and_are_within_the_range(tmp_path) -> None:
    simulator = create("acoustic_points", points=(5, 30), frames=3)
    (plan,) = plans(simulator, tmp_path, {"train": 12})
    generate([plan])
    with FieldFile(plan.path) as file:
        assert len(set(file.sizes)) > 4
        assert 5 <= min(file.sizes) <= max(file.sizes) <= 30
        assert all(
            ((x := file.place(n)["positions"]) >= 0).all() and (x < 1).all() for n in range(12)
        )
    assert not any(generate([plan]).values())  # it is there


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"points": (5, 3)}, r"points must be \(fewest, most\), got \(5, 3\)"),
        ({"waves": 0}, "waves must be positive, got 0"),
        ({"speed": -1.0}, "speed must be positive, got -1.0"),
        ({"frame_spacing": math.inf}, "frame_spacing must be positive, got inf"),
        ({"shortest": 2.0}, "a fraction of the side of the box, got 2.0"),
    ],
)
def test_wrong_options(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        create("acoustic_points", **options)
