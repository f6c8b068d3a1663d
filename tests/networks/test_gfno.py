"""The group-equivariant Fourier neural operator: its groups, its layer as loops, its symmetries."""

import itertools

import pytest
import torch
from torch import nn

from cscnn.networks.baselines import FNO, GFNO
from cscnn.networks.baselines.gfno import GroupSpectralConv, move_features, point_group
from cscnn.testing import relative_error
from tests.networks.tiny import need

SPACES = {
    "line": ((1, -1), (5, 7)),
    "plane": ((1, 1), (6, 6)),
    "space": ((1, 1, 1), (5, 5, 5)),
    "spacetime": ((1, -1, -1), (4, 5, 5)),
    "spacetime4d": ((1, -1, -1, -1), (3, 3, 3, 3)),
}


@pytest.mark.parametrize(
    ("metric", "spacing", "group", "order"),
    [
        ((1,), (1.0,), "O", 2),
        ((1, 1), (1.0, 1.0), "O", 8),
        ((1, 1), (1.0, 1.0), "SO", 4),
        ((1, 1), (1.0, 2.0), "O", 4),  # points that are farther apart along one axis: no turns
        ((1, 1, 1), (1.0,) * 3, "O", 48),
        ((1, 1, 1), (1.0,) * 3, "SO", 24),
        ((1, -1, -1), (1.0,) * 3, "O", 16),
        ((1, -1, -1), (1.0,) * 3, "O+", 8),
        ((1, -1, -1, -1), (1.0,) * 4, "O", 96),
    ],
)
def test_point_groups(metric, spacing, group, order):
    found = point_group(metric, spacing, group)
    assert len(found.elements) == order
    k = torch.randint(-9, 9, (len(metric),))
    for h, g in itertools.product(range(order), range(0, order, 1 + order // 8)):
        assert torch.equal(
            found.elements[h] @ found.elements[found.relative[h, g]], found.elements[g]
        )
        inverse = found.sign[h] * k[found.source[h]]
        assert torch.equal((found.elements[h] * inverse).sum(-1), k)


@pytest.mark.parametrize(
    ("metric", "modes", "c_in"), [((1, 1), 2, 1), ((1, -1), 2, 2), ((1, -1, -1), 1, 1)]
)
def test_layer_is_its_definition(metric, modes, c_in):
    """Loops over orientations, channels and modes, with Fourier transforms of the whole grid."""
    group = point_group(metric, (1.0,) * len(metric), "O")
    order, grid = len(group.elements), (4, 5, 3)[: len(metric)]
    layer = GroupSpectralConv(group, c_in, 1, modes).double()
    nn.init.normal_(layer.bias)
    x = torch.randn(2, c_in, order, *grid, dtype=torch.float64)
    axes = tuple(range(-len(grid), 0))
    spectrum, expected = torch.fft.fftn(x, dim=axes), torch.zeros(2, 1, order, *grid).cdouble()
    middle = torch.full((len(grid),), modes)
    kept = [range(-m, m + 1) for m in (min(modes, (n - 1) // 2) for n in grid)]
    for h, g, i in itertools.product(range(order), range(order), range(c_in)):
        weight = layer.weight[0, i, group.relative[h, g]].detach()
        for k in itertools.product(*kept):
            back = group.elements[h].T @ torch.tensor(k)
            a, b = weight[tuple(middle + back)], weight[tuple(middle - back)]
            factor = torch.complex(a + b, a - b) / 2
            expected[(slice(None), 0, h, *k)] += factor * spectrum[(slice(None), i, g, *k)]
    expected = torch.fft.ifftn(expected, dim=axes)
    assert expected.imag.abs().max() < 1e-12
    expected = expected.real + layer.bias.detach()
    for h, g, i in itertools.product(range(order), range(order), range(c_in)):
        expected[:, 0, h] += layer.local[0, i, group.relative[h, g]].detach() * x[:, i, g]
    y = layer(x.flatten(1, 2).flatten(2), grid).unflatten(-1, grid)
    assert relative_error(y, expected.flatten(1, 2)) < 1e-12


def test_no_parameter_is_redundant():
    group = point_group((1, 1), (1.0, 1.0), "O")
    layer = GroupSpectralConv(group, 1, 1, modes=1).double()
    x = torch.randn(4, 8, 25, dtype=torch.float64)

    def run(parameters):
        return torch.func.functional_call(layer, parameters, (x, (5, 5))).flatten()

    parameters = {name: p.detach() for name, p in layer.named_parameters()}
    columns = [j.flatten(1) for j in torch.func.jacrev(run)(parameters).values()]
    count = sum(p.numel() for p in parameters.values())
    assert torch.linalg.matrix_rank(torch.cat(columns, 1)) == count == 8 * 9 + 8 + 1


def between(model, grid):
    """The part between lifting and projection, on (batch, channels, order, *grid)."""
    order = len(model.group.elements)

    def run(x):
        y = model.between(x.flatten(1, 2).flatten(2), grid)
        return y.unflatten(1, (-1, order)).unflatten(-1, grid).detach()

    return run, order


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize("where", SPACES)
def test_commutes_with_the_group_between_its_ends(where, trained):
    metric, grid = SPACES[where]
    model = GFNO(metric, 3, 3, width=1, modes=1 if len(metric) > 3 else 2, layers=2).double()
    if trained:
        optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
        for _ in range(3):
            optimiser.zero_grad()
            noise = torch.randn(1, 3, *grid, dtype=torch.float64)
            (model(noise) - 0.5 * noise).square().mean().backward()
            optimiser.step()
    run, order = between(model, grid)
    x = torch.randn(1, 1, order, *grid, dtype=torch.float64)
    y = run(x)
    axes = tuple(range(3, x.dim()))
    shifts = (1, 3, 2, 1)[: len(grid)]
    assert relative_error(run(x.roll(shifts, axes)), y.roll(shifts, axes)) < 1e-9
    for h in range(0, order, 1 + order // 8):
        moved, expected = move_features(model.group, h, x), move_features(model.group, h, y)
        assert relative_error(run(moved), expected) < 1e-9
        # The control: turned features that keep their place in the group.
        wrong = moved[:, :, model.group.relative[h].argsort()]
        assert (relative_error(wrong, moved) == 0) or relative_error(run(wrong), expected) > 0.1


def test_grids_with_sides_of_different_lengths_keep_what_they_have():
    model = GFNO((1, 1, 1), 3, 3, width=2, modes=2, layers=2).double()
    grid = (4, 6, 6)
    run, order = between(model, grid)
    x = torch.randn(1, 2, order, *grid, dtype=torch.float64)
    y, kept = run(x), 0
    for h in range(order):
        moved = move_features(model.group, h, x)
        if moved.shape == x.shape:
            kept += 1
            assert relative_error(run(moved), move_features(model.group, h, y)) < 1e-9
    assert kept == 16  # signs of three axes, times the exchange of two


@pytest.mark.parametrize("metric", [(1, 1), (1, 1, 1)])
def test_plain_fourier_layers_do_not_commute(metric):
    """The control: layers of the plain FNO with as many channels."""
    need("fno")
    group = point_group(metric, (1.0,) * len(metric), "O")
    order, grid = len(group.elements), (5,) * len(metric)
    operator = FNO(len(metric), 3, 3, width=2 * order, modes=3, layers=2)
    blocks = operator.double().network.fno_blocks
    x = torch.randn(1, 2, order, *grid, dtype=torch.float64)

    def run(x):
        return blocks(x.flatten(1, 2).contiguous()).unflatten(1, (2, order)).detach()

    y = run(x)
    shifted = relative_error(run(x.roll(2, -1)), y.roll(2, -1))
    assert shifted < 1e-6  # neuralop's spectra are in single precision
    for h in (1, order - 1):
        moved = run(move_features(group, h, x))
        assert relative_error(moved, move_features(group, h, y)) > 0.1


def test_says_what_it_cannot_do():
    with pytest.raises(ValueError, match="1 to 4 dimensions, got 5"):
        GFNO((1,) * 5, 1, 1)


def test_after_inference_mode_gradients_still_work():
    """The group is kept for all models of a process, whoever asked for it first."""
    point_group.cache_clear()
    with torch.inference_mode():
        GFNO((1, 1), 1, 1, width=1, modes=1, layers=1)
    model = GFNO((1, 1), 1, 1, width=1, modes=1, layers=1)
    model(torch.randn(1, 1, 4, 4)).sum().backward()
    assert model.lifting.weight.grad is not None


def test_works_under_autocast():
    model = GFNO((1, 1), 3, 3, width=2, modes=2, layers=2)
    x = torch.randn(1, 3, 6, 6)
    with torch.autocast("cpu", torch.bfloat16):
        y = model(x)
    assert relative_error(y.float(), model(x)) < 0.1
