"""Every simulator obeys its laws; other fields do not."""

import math

import numpy as np
import pytest
import torch

from cscnn.calculus import curl, divergence
from cscnn.data import Field, Header
from cscnn.data.laws import Law, Residual, measure, residuals, total
from cscnn.data.simulators import ON_GRIDS, SIMULATORS, SineGordon, create, laws_of
from tests.data.tiny_simulators import tiny

#: Largest relative residuals of the small presets in float32, measured for three seeds and rounded
#: up. Those of solvers on cells are rounding, the others are errors of the differences.
RESIDUALS = {
    "navier_stokes-incompressible": 1e-6,
    "maxwell3d-no_magnetic_charge": 1e-6,
    "maxwell3d-no_charge": 1e-6,
    "maxwell_spacetime-faraday": 0.12,
    "maxwell_spacetime4d-maxwell": 0.1,
    "sine_gordon-sine_gordon": 0.03,
    "sine_gordon-gradient": 0.02,
    "elastodynamics-compatible": 0.03,
    "viscoelastic-incompressible": 5e-4,
}
CASES = [(name, law) for name, simulator in SIMULATORS.items() for law in simulator.laws]
NAMES = [f"{name}-{law.name}" for name, law in CASES]


def small(name, seed=0, **options):
    """A trajectory in float32, as stored, and its header."""
    simulator = create(name, "small", **options)
    fields = simulator.simulate([np.random.default_rng(seed)])
    return {n: x.float() for n, x in fields.items()}, simulator.describe(seed, "test")


def test_every_simulator_has_laws():
    assert all(SIMULATORS[name].laws for name in ON_GRIDS)
    assert set(NAMES) == set(RESIDUALS)
    for name, simulator in SIMULATORS.items():
        assert laws_of(tiny(name).describe(0, "test")) == simulator.laws
    assert laws_of(tiny("navier_stokes").header().replace(generator="pdearena")) == ()


@pytest.mark.parametrize(("name", "law"), CASES, ids=NAMES)
def test_simulators_obey_their_laws(name, law):
    for seed in range(2):
        residual = measure(law, *small(name, seed))
        assert not residual.violated, residual.sentence()
        assert residual.relative < RESIDUALS[f"{name}-{law.name}"]
        assert law.equation in residual.sentence()
        assert "far above" not in residual.sentence()


def negated(field):
    """The field with the wrong sign of its last component."""
    signs = torch.ones(field.shape[-1])
    signs[-1] = -1
    return field * signs


def shuffled(field):
    """The same values at other points."""
    flat = field.flatten(0, -2)
    return flat[torch.randperm(len(flat))].view_as(field)


def stretched(field):
    """The first component twice too large, as with a wrong unit."""
    signs = torch.ones(field.shape[-1])
    signs[0] = 2
    return field * signs


@pytest.mark.parametrize("wrong", [negated, shuffled, stretched])
@pytest.mark.parametrize(("name", "law"), CASES, ids=NAMES)
def test_other_fields_violate_them(name, law, wrong):
    fields, header = small(name)
    residual = measure(law, {**fields, law.field: wrong(fields[law.field])}, header)
    assert residual.violated
    assert residual.relative > 2 * measure(law, fields, header).relative
    assert "are fields, signs, units and spacing what the header says" in residual.sentence()


def test_another_source_violates_it():
    fields, header = small("sine_gordon")
    law = SineGordon.laws[0]
    assert measure(law, {**fields, "sine": fields["cosine"]}, header).violated
    assert measure(law, {**fields, "sine": -fields["sine"]}, header).violated


@pytest.mark.parametrize("name", ["maxwell_spacetime", "maxwell_spacetime4d", "sine_gordon"])
def test_residuals_of_exact_fields_fall_at_fourth_order(name):
    """The same solution on a finer grid, measured on the same region: two points are cut off."""
    solution = create(name, "small").draw(np.random.default_rng(4))
    dim = len(create(name).grid)
    for law in SIMULATORS[name].laws:
        sizes = []
        for points, h in ((9, 0.2), (13, 0.1)):
            fine = create(name, spacing=h, frames=points, grid=(points,) * dim)
            shift = torch.tensor([2 * h - 0.4] + [0.0] * dim, dtype=torch.float64)
            fields = fine.observe(solution.translated(shift))
            batch = {n: x[None] for n, x in fields.items()}
            sizes.append(measure(law, batch, fine.header()).relative)
        assert abs(math.log2(sizes[0] / sizes[1]) - 4) < 0.3, (law.name, sizes)


def test_is_the_formula_on_a_grid_of_numpy():
    header = Header(
        (1, 1), ("x", "y"), (0.5, 0.3), ("open", "wall"), (Field("v", 1), Field("s", 0)),
        frames=2, grid=(6, 7),
    )  # fmt: skip
    law = Law("balance", "∇⌟v + s = 0", "", "v", divergence, source="s", place="edges")
    rng = np.random.default_rng(0)
    fields = {n: rng.standard_normal((3, *header.shape(n))) for n in ("v", "s")}
    v, s = fields["v"], fields["s"][..., 0]
    slopes = [np.gradient(v, h, axis=2 + i)[:, :, 1:-1, 1:-1] for i, h in enumerate((0.5, 0.3))]
    residual = slopes[0][..., 0] + slopes[1][..., 1] + s[:, :, 1:-1, 1:-1]
    scale = sum((x**2).sum() for x in (*slopes, s[:, :, 1:-1, 1:-1]))
    measured = measure(law, {n: torch.as_tensor(x) for n, x in fields.items()}, header)
    assert measured.relative == pytest.approx(math.sqrt((residual**2).sum() / scale), rel=1e-12)
    parts = [
        measure(law, {n: torch.as_tensor(x[i : i + 1]) for n, x in fields.items()}, header)
        for i in range(3)
    ]
    assert total([*parts, None]).relative == pytest.approx(measured.relative, rel=1e-12)


def test_periodic_axes_are_measured_to_their_ends():
    """A flow without divergence that jumps where the ends of the axes meet."""
    header = Header((1, 1), ("x", "y"), (1.0, 1.0), ("open", "open"), (Field("v", 1),),
                    frames=1, grid=(16, 16))  # fmt: skip
    x = torch.arange(16).double()
    v = torch.stack([x[:, None].expand(16, 16), -x.expand(16, 16)], -1)[None, None]
    law = Law("free", "∇⌟v = 0", "", "v", divergence)
    assert measure(law, {"v": v}, header).relative < 1e-12
    assert measure(law, {"v": v}, header.replace(boundary=("periodic",) * 2)).relative > 0.5


def test_squashed_fields_are_unsquashed():
    plain, header = small("maxwell_spacetime", max_charge=30)
    law = laws_of(header)[0]
    squashed, told = small("maxwell_spacetime", max_charge=30, normalise="log")
    expected = measure(law, plain, header).relative
    assert measure(law, squashed, told).relative == pytest.approx(expected, rel=1e-4)
    assert measure(law, squashed, header).relative != pytest.approx(expected, rel=1e-2)


def test_small_grids_and_constant_fields():
    fields, header = small("sine_gordon")
    law = SineGordon.laws[1]
    few = {n: x[:, :4] for n, x in fields.items()}
    assert measure(law, few, header) is None
    assert total([None]) is None
    five = {n: x[:, :5] for n, x in fields.items()}
    assert measure(law, five, header) is not None
    for value in (0.0, 0.3):
        assert not measure(law, {n: value + 0 * x for n, x in fields.items()}, header).violated
    nan = measure(law, {n: x * math.nan for n, x in fields.items()}, header)
    assert nan.violated
    assert Residual(law, squares=1.0, scale=0.0, error=0.0, rounding=0.0).violated


def test_residuals_of_a_source_are_those_of_its_trajectories():
    class Memory:
        header = small("sine_gordon")[1]
        trajectories = tuple(small("sine_gordon", seed)[0] for seed in range(5))

        def __len__(self):
            return len(self.trajectories)

        def read(self, number):
            return {n: x[0].numpy() for n, x in self.trajectories[number].items()}

    source, laws = Memory(), SineGordon.laws
    for count, used in ((8, range(5)), (2, (0, 2))):
        found = residuals(laws, source, count)
        assert [r.law for r in found] == list(laws)
        parts = [measure(laws[0], source.trajectories[i], source.header) for i in used]
        assert found[0].relative == pytest.approx(total(parts).relative)
    assert residuals((), source) == []


def test_mistakes_are_explained():
    with pytest.raises(ValueError, match="place must be one of points, faces, edges, got 'nodes'"):
        Law("a", "b", "c", "d", curl, place="nodes")
    with pytest.raises(ValueError, match="order must be at least 1, got 0"):
        Law("a", "b", "c", "d", curl, order=0)
