"""Physical quantities against closed forms, and under symmetries."""

import math

import numpy as np
import pytest
import torch

from cscnn.algebra.grids import transform_on_grid
from cscnn.data import Field
from cscnn.data.simulators import create
from cscnn.data.simulators.charges import squash
from cscnn.forecasting import Task
from cscnn.forecasting.augment import task_symmetries
from cscnn.forecasting.evaluation.quantities import QUANTITIES, quantities_of, quantity
from cscnn.forecasting.packing import symmetric_part
from tests.forecasting.evaluation.test_curves import evaluate, header, moved, waves


def names(head):
    return [q.name for q in quantities_of(head)]


def means(head, fields):
    return {
        q.name: q.density(fields).flatten(2).mean(2).squeeze().tolist() for q in quantities_of(head)
    }


def described(name, preset="small"):
    return create(name, preset).describe(seed=0, split="test")


def test_which_data_have_what():
    """Nothing is called energy unless it is one."""
    assert names(described("navier_stokes")) == [
        "kinetic_energy(velocity)", "enstrophy(velocity)", "mean(smoke)"
    ]  # fmt: skip
    light = described("maxwell3d")
    assert names(light) == ["electromagnetic_energy(electric, magnetic)"]
    # published files do not tell the medium
    assert names(light.replace(parameters={}, generator="pdearena_maxwell3d")) == [
        "mean_square(electric)", "mean_square(magnetic)"
    ]  # fmt: skip
    body = light.replace(fields=(*light.fields, Field("permittivity", 0)))
    assert names(body)[0] == "mean(permittivity)"
    assert names(described("maxwell_spacetime4d")) == ["faraday_energy(faraday)"]
    assert names(described("maxwell_spacetime")) == ["mean_square(faraday)"]
    assert names(described("sine_gordon")) == [
        "soliton_energy(cosine, gradient)", "mean(sine)", "mean(cosine)"
    ]  # fmt: skip
    solid = described("elastodynamics")
    assert names(solid)[2:] == ["elastic_energy(velocity, stress)"]
    assert names(solid.replace(generator="other"))[2:] == ["mean_square(stress)"]
    fluid = described("viscoelastic")
    assert names(fluid)[2:] == ["polymer_energy(conformation)"]
    assert names(fluid.replace(generator="other"))[2:] == ["mean_square(conformation)"]
    narrow = header().replace(grid=(64, 2))
    assert names(narrow) == ["kinetic_energy(velocity)", "mean(dye)"]
    scalar = header().replace(fields=(Field("velocity", 0),))
    assert names(scalar) == ["mean(velocity)"]


def test_units():
    head = header().replace(fields=(Field("dye", 0), Field("velocity", 1, "m/s")))
    assert [q.units for q in quantities_of(head)] == ["(m/s)²", "", ""]
    head = head.replace(units={"length": "m"})
    assert [q.units for q in quantities_of(head)] == ["(m/s)²", "(m/s)²/m²", ""]


def test_flow_in_closed_form():
    """v = (a sin ky, b cos kx): ½⟨v²⟩ = (a² + b²)/4, and as much times k² is the enstrophy."""
    n, a, b = 256, 2.0, 3.0
    head = header().replace(grid=(n, n), spacing=(2 * math.pi / n,) * 2)
    x, y = torch.meshgrid(*[torch.arange(n).double() * head.spacing[0]] * 2, indexing="ij")
    velocity = torch.stack([a * torch.sin(2 * y), b * torch.cos(2 * x)], -1)[None, None]
    measured = means(head, {"velocity": velocity, "dye": 5 + torch.sin(x)[None, None, ..., None]})
    assert measured["kinetic_energy(velocity)"] == pytest.approx((a**2 + b**2) / 4)
    assert measured["enstrophy(velocity)"] == pytest.approx(4 * (a**2 + b**2) / 4, rel=1e-3)
    assert measured["mean(dye)"] == pytest.approx(5)
    rigid = torch.stack([-y, x], -1)[None, None]  # a rotation: ½|∇∧v|² = 2, also at the borders
    walls = head.replace(boundary=("wall", "wall"))
    enstrophy = means(walls, {"velocity": rigid, "dye": rigid[..., :1]})["enstrophy(velocity)"]
    assert enstrophy == pytest.approx(2)


def test_waves_in_a_medium_have_equal_energies():
    """A plane wave: H = √(ε/μ) E, so half of ½(εE² + μH²) is magnetic."""
    head = described("maxwell3d")
    electric, magnetic = torch.zeros(2, 1, 1, 8, 8, 8, 3)
    electric[..., 1] = 2.0
    magnetic[..., 0] = 2.0 * math.sqrt(10)
    (value,) = means(head, {"electric": electric, "magnetic": magnetic}).values()
    assert value == pytest.approx(10 * 2.0**2)


def test_a_kink_has_its_energy():
    """φ = 4 arctan exp(γ(x - vt)) has the energy 8γ, at every time."""
    head = described("sine_gordon").replace(grid=(400,), spacing=(0.1, 0.1))
    t, x = torch.meshgrid(
        torch.arange(3).double(), (torch.arange(400) - 200).double() * 0.1, indexing="ij"
    )
    speed, gamma = 0.6, 1.25
    s = gamma * (x - speed * t)
    phi, slope = 4 * torch.atan(torch.exp(s)), 2 / torch.cosh(s)
    gradient = torch.stack([-gamma * speed * slope, -gamma * slope], -1)[None]
    fields = {"gradient": gradient, "cosine": torch.cos(phi)[None, ..., None]}
    energy = means(head, {**fields, "sine": fields["cosine"]})["soliton_energy(cosine, gradient)"]
    np.testing.assert_allclose(np.array(energy) * 40, 8 * gamma, rtol=1e-6)


def test_energies_of_uniform_states_of_a_solid():
    """Pressure p has p²/2K, a shear stress τ has τ²/2μ."""
    for dim in (2, 3):
        simulator = create("elastodynamics", dim=dim, density=3.0)
        head = simulator.describe(seed=0, split="test").replace(grid=(4,) * dim)
        first, second = simulator.moduli
        assert (first + 2 * second, second) == pytest.approx((3.0 * 2**2, 3.0))
        velocity = torch.zeros(1, 1, *head.grid, dim)
        velocity[..., 0] = 0.5
        stress = 2.0 * torch.eye(dim).expand(1, 1, *head.grid, dim, dim).clone()
        stress[..., 0, 1] = stress[..., 1, 0] = 5.0
        energy = means(head, {"velocity": velocity, "stress": stress.flatten(-2)})
        bulk = first + 2 * second / dim
        expected = 3.0 * 0.5**2 / 2 + 2.0**2 / (2 * bulk) + 5.0**2 / (2 * second)
        assert energy["elastic_energy(velocity, stress)"] == pytest.approx(expected)


def test_fields_that_are_stored_in_another_form(generator):
    head = described("maxwell_spacetime4d")
    field = torch.randn(1, 2, 4, 4, 4, 6, generator=generator, dtype=torch.float64)
    expected = means(head, {"faraday": field})
    assert expected["faraday_energy(faraday)"] == pytest.approx(
        field.square().sum(-1).flatten(2).mean(2).squeeze() / (8 * math.pi)
    )
    stored = {"faraday": squash(field, head.algebra)}
    told = head.replace(parameters={**head.parameters, "normalise": "log"})
    assert means(told, stored) == {n: pytest.approx(v) for n, v in expected.items()}


@pytest.mark.parametrize("name", ["navier_stokes", "maxwell3d", "elastodynamics", "viscoelastic"])
@pytest.mark.parametrize("boundary", ["periodic", "wall"])
def test_invariance(name, boundary, generator):
    """Under all rotations and reflections of the grid, and translations where it is periodic."""
    head = described(name)
    dim = len(head.metric)
    head = head.replace(boundary=(boundary,) * dim, grid=(6,) * dim, spacing=(0.5,) * dim)
    task = Task.from_header(head.replace(backgrounds=()), frames_in=1)
    fields = {
        f.name: symmetric_part(
            f, torch.randn(1, 1, *head.shape(f.name)[1:], generator=generator, dtype=torch.float64)
        )
        for f in head.fields
    }
    expected = {n: pytest.approx(v) for n, v in means(head, fields).items()}
    symmetries = task_symmetries(task, head.grid)
    assert len(symmetries) == {2: 8, 3: 48}[dim]
    for g in symmetries:
        x = transform_on_grid(head.algebra, g.double(), task.pack(fields))
        assert means(head, task.unpack(x)) == expected
    if boundary == "periodic":
        assert means(head, {n: x.roll((1, 2), (2, 3)) for n, x in fields.items()}) == expected
    else:
        rolled = means(head, {n: x.roll((1, 2), (2, 3)) for n, x in fields.items()})
        assert (rolled != expected) == (name != "maxwell3d")  # the enstrophy knows borders


# --- in rollouts ----------------------------------------------------------------------------------


def test_energy_of_a_forecast_that_grows(tmp_path):
    """By a factor a step: its energy grows by the square, that of the truth stays."""
    head = header(frames=6)
    rollout = evaluate(tmp_path, head, waves(head, (1, 2)), lambda x: 1.1 * x)
    n = np.arange(1, 6)
    energy = rollout.quantities["kinetic_energy(velocity)"]
    assert (energy.title, energy.formula) == ("kinetic energy per mass", "½⟨v²⟩")
    assert energy.known == pytest.approx(0.25)
    np.testing.assert_allclose(energy.curves.prediction.mean, 0.25 * 1.1 ** (2 * n), rtol=1e-5)
    np.testing.assert_allclose(energy.curves.target.mean, 0.25, rtol=1e-5)
    enstrophy = rollout.quantities["enstrophy(velocity)"].curves
    of_waves = np.array([0.25, 1.0])  # k²/4, up to the error of differences
    for step, factor in ((0, 1.1**2), (4, 1.1**10)):
        low, high = np.quantile(factor * of_waves, [0.1, 0.9])
        assert enstrophy.prediction.mean[step] == pytest.approx(factor * of_waves.mean(), rel=0.02)
        assert enstrophy.prediction.low[step] == pytest.approx(low, rel=0.02)
        assert enstrophy.prediction.high[step] == pytest.approx(high, rel=0.02)
        assert enstrophy.target.high[step] == pytest.approx(0.925, rel=0.02)


def test_quantities_leave_out_margins_and_what_is_lost(tmp_path):
    """Where the network sees a border, nothing counts."""
    head = header(frames=4, boundary=("open", "open")).replace(grid=(64, 8))

    def spoil_the_margin(x):
        x = x.clone()
        x[:, :, :2] = 1.0
        return x

    rollout = evaluate(tmp_path, head, waves(head), spoil_the_margin, margin=2)
    energy = rollout.quantities["kinetic_energy(velocity)"].curves
    assert energy.prediction.mean == pytest.approx(energy.target.mean)
    rollout = evaluate(tmp_path, head, waves(head), lambda x: x * math.inf)
    energy = rollout.quantities["kinetic_energy(velocity)"].curves
    assert np.isnan(energy.prediction.mean).all()
    assert np.isfinite(energy.target.mean).all()


def test_a_new_quantity_is_one_function(tmp_path):
    """It is in results, and it is given the fields that its rule names."""
    head = header(frames=4)

    @quantity("largest {0}", "max {0}", applies=lambda header: [("dye",)])
    def peak(dye, header):
        return dye[..., 0].abs()

    try:
        rollout = evaluate(tmp_path, head, waves(head), moved(1))
    finally:
        del QUANTITIES["peak"]
    assert rollout.quantities["peak(dye)"].title == "largest dye"
    assert rollout.quantities["peak(dye)"].curves.target.mean[0] == pytest.approx(
        2 / math.pi, rel=1e-3
    )
