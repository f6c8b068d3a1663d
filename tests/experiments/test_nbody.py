"""Charged particles: the simulator against its laws, networks, and a study of seconds."""

import importlib.util
import os
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from cscnn._util.jsonform import write_json
from cscnn.geometry import Edges
from experiments.nbody import __main__ as command
from experiments.nbody import beside, page, training
from experiments.nbody.network import ParticleNet, all_pairs
from experiments.nbody.page import write_page
from experiments.nbody.presets import CONTENDERS, Contender, Setting, Trial
from experiments.nbody.records import Results, load
from experiments.nbody.simulate import (
    Particles,
    Samples,
    Sizes,
    draw,
    energy,
    evolve,
    forces,
    open_data,
    reverse,
    simulate,
)
from experiments.nbody.training import Training, run_trial, scaled, schedule

TINY = Sizes(train=12, valid=4, test=4, drawn=14)
SETTING = Setting(TINY, steps=6, batch=4, checks=3, seeds=1)
SMALL = {"width": 2, "blocks": 2, "hidden_dim": 2}
CONTENDER = Contender("small", {**SMALL, "activation": "product"})


def particles(count: int = 20, seed: int = 0) -> Particles:
    return draw(np.random.RandomState(seed), count)


def far_apart() -> Particles:
    """Particles that stay so far apart for a while that nothing is clipped."""
    start = particles(200)
    apart = (start.positions[:, :, None] - start.positions[:, None]).norm(dim=-1)
    apart += 9 * torch.eye(5)
    return Particles(*(x[apart.amin((1, 2)) > 0.9] for x in start))


def test_motion_is_the_same_at_all_sizes() -> None:
    """The augmentation shows exact solutions; with the charges as they were it would not."""
    start = far_apart()
    samples = Samples(start, evolve(start, 200).positions)
    factors = torch.linspace(0.6, 1.6, len(samples), dtype=torch.float64)
    larger = scaled(samples, factors)
    assert (evolve(larger.start, 200).positions - larger.end).abs().max() < 1e-12
    wrong = larger.start._replace(charges=start.charges)
    assert (evolve(wrong, 200).positions - larger.end).abs().max() > 1e-3


def rotation(seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.linalg.qr(torch.randn(3, 3, generator=generator, dtype=torch.float64))[0]


def rotated(state: Particles, matrix: torch.Tensor) -> Particles:
    x, v, charges = state
    return Particles(x @ matrix.T, v @ matrix.T, charges)


def naive(state: Particles) -> torch.Tensor:
    """Forces as loops."""
    x, _, q = state
    result = torch.zeros_like(x)
    for s in range(len(x)):
        for i in range(5):
            for j in range(5):
                if i != j:
                    r = x[s, i] - x[s, j]
                    result[s, i] += q[s, i] * q[s, j] * r / r.norm() ** 3
    return result


def test_drawn_particles():
    state = particles(400)
    assert state.positions.shape == state.velocities.shape == (400, 5, 3)
    torch.testing.assert_close(state.velocities.norm(dim=-1), torch.full((400, 5), 0.5).double())
    assert set(state.charges.unique().tolist()) == {-1.0, 1.0}
    assert abs(state.charges.mean()) < 0.1
    assert abs(state.positions.std() - 1) < 0.05


def test_forces_are_loops_and_clipped():
    state = particles(8)
    x, q = state.positions.permute(2, 1, 0), state.charges.T
    ours = forces(x, q[:, None] * q, torch.inf).permute(2, 1, 0)
    torch.testing.assert_close(ours, naive(state), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(
        forces(x, q[:, None] * q, 0.3).permute(2, 1, 0), naive(state).clamp(-0.3, 0.3)
    )


def test_a_step_is_leapfrog():
    state, dt = far_apart(), 1e-3
    later = evolve(state, 1)
    velocities = state.velocities + dt * naive(state)
    torch.testing.assert_close(later.velocities, velocities, rtol=1e-13, atol=1e-13)
    torch.testing.assert_close(later.positions, state.positions + dt * velocities)


def test_momentum_is_kept_where_nothing_is_clipped():
    start = far_apart()
    drift = (evolve(start, 400).velocities - start.velocities).sum(1)
    assert drift.abs().max() < 1e-12
    clipped = (evolve(start, 400, largest=0.5).velocities - start.velocities).sum(1)
    assert clipped.abs().max() > 1e-3


def test_energy_is_kept_to_second_order():
    start = far_apart()
    errors = []
    for dt in (8e-3, 4e-3, 2e-3):
        first = evolve(start, 1, dt, torch.inf)  # velocities of half a step earlier
        later = evolve(first, round(0.32 / dt), dt, torch.inf)
        errors.append((energy(later, dt) - energy(first, dt)).abs().mean())
    rates = [float(torch.log2(a / b)) for a, b in pairwise(errors)]
    assert all(1.8 < rate < 2.3 for rate in rates), rates


def test_time_runs_backwards():
    """Also where forces are clipped; close encounters amplify rounding."""
    start = particles(20)
    back = reverse(evolve(reverse(evolve(start, 300)), 300))
    torch.testing.assert_close(back.positions, start.positions, rtol=0, atol=1e-9)
    torch.testing.assert_close(back.velocities, start.velocities, rtol=0, atol=1e-7)
    forgot = evolve(evolve(start, 300), 300)
    assert (forgot.positions - start.positions).abs().max() > 0.1


def test_symmetries_of_the_simulator():
    start, order = far_apart(), torch.tensor([3, 0, 4, 1, 2])
    later = evolve(start, 300)
    turned = evolve(rotated(start, rotation()), 300)
    torch.testing.assert_close(turned.positions, later.positions @ rotation().T, atol=1e-11, rtol=0)
    permuted = evolve(Particles(*(x[:, order] for x in start)), 300)
    torch.testing.assert_close(permuted.positions, later.positions[:, order], atol=1e-11, rtol=0)
    # The control: forces that are clipped know the axes.
    clipped = evolve(start, 300, largest=0.3).positions @ rotation().T
    other = evolve(rotated(start, rotation()), 300, largest=0.3).positions
    assert (other - clipped).abs().max() > 1e-3


def test_data_come_back_from_their_file(tmp_path: Path):
    file = tmp_path / "data.npz"
    made = open_data(file, TINY, quiet=True)
    written = file.stat().st_mtime_ns
    again = open_data(file, TINY, quiet=True)
    assert file.stat().st_mtime_ns == written
    for split, samples in made.items():
        assert len(samples) == getattr(TINY, split)
        torch.testing.assert_close(again[split].end, samples.end, rtol=0, atol=0)
        for a, b in zip(again[split].start, samples.start, strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=0)
    fewer = open_data(file, replace(TINY, test=2), quiet=True)
    assert len(fewer["test"]) == 2
    torch.testing.assert_close(fewer["test"].end, made["test"].end[:2], rtol=0, atol=1e-12)


def test_sizes_of_one_split_do_not_change_others():
    small = simulate(replace(TINY, train=3), quiet=True)
    whole = simulate(TINY, quiet=True)
    torch.testing.assert_close(small["valid"].end, whole["valid"].end)
    torch.testing.assert_close(small["train"].end, whole["train"].end[:3])


@pytest.mark.external
def test_the_public_generator():
    """Set CSCNN_NBODY to a file ``n_body_system/dataset/synthetic_sim.py`` of EGNN."""
    file = os.environ.get("CSCNN_NBODY", "")
    if not Path(file).is_file():
        pytest.skip("needs the public generator: its file in the variable CSCNN_NBODY")
    spec = importlib.util.spec_from_file_location("synthetic_sim", file)
    original = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(original)
    simulator = original.ChargedParticlesSim(n_balls=5, vel_norm=0.5)
    np.random.seed(43)  # noqa: NPY002
    with np.errstate(all="ignore"):
        trajectories = [simulator.sample_trajectory(5000, 100) for _ in range(24)]
    start = particles(24, seed=43)
    for frame, steps, most in ((0, 100, 1e-13), (9, 1000, 1e-10), (40, 4100, None)):
        theirs = torch.from_numpy(np.stack([t[0][frame].T for t in trajectories]))
        errors = (evolve(start, steps).positions - theirs).abs().amax((1, 2))
        assert errors.median() < 1e-12
        assert most is None or errors.max() < most  # later, close encounters amplify rounding
    charges = torch.from_numpy(np.stack([t[3][:, 0] for t in trajectories]))
    torch.testing.assert_close(start.charges, charges)


@pytest.mark.parametrize("key", CONTENDERS)
def test_networks_are_equivariant(key: str):
    torch.manual_seed(0)
    contender = CONTENDERS[key]
    net = replace(contender, options={**contender.options, **SMALL}).build().double()
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    state, shift = particles(3), torch.tensor([0.3, -1.2, 0.7]).double()
    x, v, charges = state
    for seed in range(3):
        matrix = rotation(seed)
        for g in (matrix, -matrix):  # one of them is a reflection
            expected = net(state) @ g.T
            torch.testing.assert_close(net(rotated(state, g)), expected, atol=1e-9, rtol=1e-9)
    moved = net(Particles(x + shift, v, charges))
    torch.testing.assert_close(moved, net(state) + shift, atol=1e-9, rtol=1e-9)
    faster = net(Particles(x, v + shift, charges))
    torch.testing.assert_close(faster, net(state) + shift, atol=1e-9, rtol=1e-9)
    torch.testing.assert_close(net(state).mean(1), (x + v).mean(1))
    order = torch.tensor([3, 0, 4, 1, 2])
    permuted = net(Particles(*(a[:, order] for a in state)))
    torch.testing.assert_close(permuted, net(state)[:, order], atol=1e-9, rtol=1e-9)
    # Controls: a shear, charges that stay behind, and particles of another set.
    shear = torch.eye(3).double() + torch.diag(torch.ones(2), 1)
    assert (net(rotated(state, shear)) - net(state) @ shear.T).abs().max() > 1e-3
    assert (net(state._replace(charges=charges[:, order])) - net(state)).abs().max() > 1e-3
    other = Particles(
        *(torch.cat([a[:1], b[1:]]) for a, b in zip(state, particles(3, 1), strict=True))
    )
    torch.testing.assert_close(net(other)[:1], net(state)[:1])


def test_pairs_join_the_particles_of_a_set():
    pairs = all_pairs(2, 3)
    assert sorted(map(tuple, pairs.T.tolist())) == sorted(
        (s + i, s + j) for s in (0, 3) for i in range(3) for j in range(3) if i != j
    )


def test_points_that_move_see_other_edges():
    torch.manual_seed(0)
    net = ParticleNet(2, 2, moves=True).double()
    state = particles(2)
    before = net(state)
    torch.nn.init.ones_(net.moves[0].weight)
    assert (net(state) - before).abs().max() > 1e-6


def test_points_that_stay_are_a_pointnet():
    torch.manual_seed(0)
    net, state = ParticleNet(2, 2).double(), particles(2)
    edges = Edges.from_edge_index(all_pairs(2, 5), state.positions.flatten(0, 1))
    y = net.net(net.features(state).flatten(0, 1), edges)[:, 0, 1:4].reshape(2, 5, 3)
    expected = state.positions + state.velocities + y - y.mean(1, keepdim=True)
    order = net.algebra.grade(torch.arange(8.0)[None], 1)
    assert order.flatten().tolist() == [1, 2, 3]
    torch.testing.assert_close(net(state), expected)


def test_the_learning_rate_rises_and_falls():
    assert schedule(0, 0) == 1
    assert schedule(0, 0.1) == pytest.approx(0.01)
    assert schedule(0.5, 0.1) == pytest.approx(0.5)
    assert schedule(1, 0.1) == pytest.approx(0, abs=1e-15)


def trial(**changes: object) -> Trial:
    return Trial("small", CONTENDER, replace(SETTING, **changes), seed=0)


@pytest.fixture(scope="module")
def data():
    return {split: samples.float() for split, samples in simulate(TINY, quiet=True).items()}


def test_a_training_goes_on_where_it_stopped(data, tmp_path: Path, monkeypatch):
    whole = Training(trial(), data)
    whole.run(tmp_path / "whole.pt", quiet=True)
    file = tmp_path / "parts.pt"
    original = Training.learn

    def interrupted(self: Training) -> None:
        if self.step == 3:
            raise KeyboardInterrupt
        original(self)

    monkeypatch.setattr(Training, "learn", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Training(trial(), data).run(file, quiet=True)
    monkeypatch.undo()
    assert torch.load(file, weights_only=True)["step"] == 2
    rest = Training(trial(), data)
    rest.run(file, quiet=True)
    assert rest.step == whole.step == 6
    assert rest.best.valid == whole.best.valid
    for a, b in zip(rest.network.parameters(), whole.network.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)
    other = Training(trial(steps=7), data)
    other.run(file, quiet=True)  # of another plan: begins anew
    assert other.step == 7


def test_a_training_learns(data, tmp_path: Path):
    wider = replace(CONTENDER, options={**CONTENDER.options, "width": 8})
    run = Training(replace(trial(steps=80, checks=1), contender=wider), data)
    before = training.mean_square(run.network, data["train"])
    run.run(tmp_path / "run.pt", quiet=True)
    assert training.mean_square(run.network, data["train"]) < before / 2


def test_charges_change_their_signs_in_training(data):
    plain, flipped = (Training(trial(flip=flip, scale=0.0), data) for flip in (False, True))
    pairs = [(a._batch(), b._batch()) for a, b in ((plain, flipped), (flipped, flipped))]
    (a, b), (c, d) = pairs
    torch.testing.assert_close(a.end, b.end)
    signs = (b.start.charges / a.start.charges).unique(dim=1)
    assert signs.shape == (4, 1)
    assert {-1.0, 1.0} >= set(signs.flatten().tolist())
    assert not torch.equal(a.start.charges, b.start.charges)
    torch.testing.assert_close(c.start.charges, d.start.charges)  # the same for the same step
    start = far_apart()
    other = evolve(start._replace(charges=-start.charges), 100)
    torch.testing.assert_close(other.positions, evolve(start, 100).positions)


def test_time_can_be_given_instead_of_steps(data, tmp_path: Path):
    run = Training(trial(minutes=0.005), data)
    run.run(tmp_path / "run.pt", quiet=True)
    assert run.done == 1
    assert run.seconds >= 0.3
    assert run.step > 0


def test_divergence_is_a_record(tmp_path: Path, monkeypatch):
    results = Results(SETTING, {"small": CONTENDER}, tmp_path)
    monkeypatch.setattr(ParticleNet, "forward", lambda self, p: p.positions * torch.nan)
    record = run_trial(trial(), results, quiet=True)
    assert record.test is None
    assert results.missing() == []
    assert "diverged" in write_page(results, tmp_path / "docs").read_text(encoding="utf-8")


def test_command_and_page(tmp_path: Path, monkeypatch, capsys):
    small = {k: replace(c, options={**c.options, **SMALL}) for k, c in CONTENDERS.items()}
    monkeypatch.setattr(command, "CONTENDERS", small)
    out, docs = str(tmp_path / "out"), str(tmp_path / "docs")
    options = ["--only", "products", "--steps", "6", "--seeds", "2"]
    assert command.main([*options, "--out", out, "--page", docs], SETTING) == 0
    page = (tmp_path / "docs" / "nbody.md").read_text(encoding="utf-8")
    for text in ("CSPointNet, products | ", "*published* | 0.0039", "±", "6 steps", "x + t v"):
        assert text in page
    assert "CSPointNet, gates |" not in page  # of which there are no records
    assert not list((tmp_path / "out" / "runs").iterdir())
    assert {record.seed for record in load(tmp_path / "docs")} == {0, 1}

    def train(*_: object) -> None:
        raise AssertionError("must not be called")

    monkeypatch.setattr(command, "run_trials", train)
    assert command.main([*options, "--out", out], SETTING) == 0  # all is there
    again = ["--out", str(tmp_path / "again"), "--known", docs, "--page", str(tmp_path / "more")]
    assert command.main([*options, *again], SETTING) == 0
    assert (tmp_path / "more" / "nbody.md").read_text(encoding="utf-8") == page
    capsys.readouterr()
    empty = ["--draw", "--out", str(tmp_path / "none"), "--page", docs]
    assert command.main(empty, SETTING) != 0
    assert "run without --draw" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "nonsense"], "unknown network 'nonsense'"),
        (["--seeds", "0"], "--seeds must be positive"),
        (["--minutes", "-1"], "--minutes must not be negative"),
        (["--known", "nowhere"], "there are no records"),
    ],
)
def test_bad_arguments(arguments, message, capsys, tmp_path: Path):
    assert command.main([*arguments, "--out", str(tmp_path / "x")]) != 0
    assert message in capsys.readouterr().err


PUBLIC = """
import torch

class NBodyCGGNN(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.times = torch.nn.Parameter(torch.zeros(2))

    def forward(self, batch, step):
        x, v, products, charges, end, edges = batch
        assert products.shape == (len(x), 20, 1) and edges.shape == (len(x), 2, 20)
        i, j = edges[0]
        assert torch.equal(products[..., 0], charges[:, i, 0] * charges[:, j, 0])
        loss = (x + self.times[0] * v + self.times[1] * charges - end).square().mean()
        return loss, {}
"""


def test_public_code_beside_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """With a network in the place of the public one; it gets what that one takes."""
    for name in [name for name in sys.modules if name.split(".")[0] == "models"]:
        monkeypatch.delitem(sys.modules, name)
    checkout = tmp_path / "cgenn"
    (checkout / "models").mkdir(parents=True)
    (checkout / "models" / "nbody_cggnn.py").write_text(PUBLIC, encoding="utf-8")
    found = beside.compare(checkout, 3, tmp_path, "gates", SETTING)
    ours, theirs = found.rows
    assert (ours.label, theirs.label) == (CONTENDERS["gates"].label, "CGENN")
    assert theirs.parameters == 2
    assert min(ours.seconds, theirs.seconds, ours.valid, theirs.valid) > 0
    write_json(tmp_path / beside.FILE, found)
    assert f"| CGENN | 2 | {1e3 * theirs.seconds:.0f} ms |" in "\n".join(page._beside(tmp_path))
    assert page._beside(checkout) == []
    sys.modules.pop("models.nbody_cggnn")
    sys.modules.pop("models")
    with pytest.raises(FileNotFoundError, match="is no checkout of CGENN"):
        beside.compare(tmp_path, 3, tmp_path, "gates", SETTING)
