"""Which models commute with which symmetries, untrained and briefly trained."""

import pytest
import torch
from tiny_models import briefly_trained, periodic, sample, tiny

from cscnn.models import Background
from cscnn.testing import (
    grid_equivariance_errors,
    grid_symmetries,
    relative_error,
    transform_on_grid,
)

pytest.importorskip("cliffordlayers", reason="the extra 'baselines' is not installed")
pytest.importorskip("neuralop", reason="the extra 'baselines' is not installed")

PERIODIC = {
    "plane": periodic((1, 1)),
    "space": periodic((1, 1, 1)),
    "spacetime": periodic((1, -1, -1)),
    "spacetime4d": periodic((1, -1, -1, -1)),
}


COMPLETE = {"kernel": "complete", "kernel_options": {"hidden_dim": 4}}


def symmetry_errors(model, grid):
    """Violations on noise in the components that the task has, in float64."""
    blades = list(model.task.blades)

    def restricted(x):
        kept = torch.zeros_like(x)
        kept[..., blades] = x[..., blades]
        return model(kept)

    shape = (1, model.task.in_channels, *grid)
    return grid_equivariance_errors(restricted, model.algebra, shape)


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize(
    ("name", "task", "options"),
    [
        ("cs_resnet", "plane", {}),
        ("cs_resnet", "plane", COMPLETE),
        ("cs_resnet", "plane", {"activation": "product"}),
        ("cs_resnet", "space", {}),
        ("cs_resnet", "space", COMPLETE),
        ("cs_resnet", "spacetime", {}),
        ("cs_resnet", "spacetime", COMPLETE),
        ("cs_resnet", "spacetime4d", {"blocks": 1, "width": 1}),
        ("steerable_resnet", "plane", {}),
        ("steerable_resnet", "space", {}),
    ],
)
def test_equivariant_models(name, task, options, trained):
    model = tiny(name, PERIODIC[task], **options).double()
    grid = (6, 6, 6)[: model.task.dim] if model.task.dim < 4 else (3, 3, 3, 3)
    if trained:
        briefly_trained(model, grid)
    errors = symmetry_errors(model, grid)
    assert errors["translation"] < 1e-9
    assert errors["point group"] < 1e-9


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize("task", ["plane", "space", "spacetime"])
def test_unet_commutes_with_the_point_group_and_coarse_translations(task, trained):
    model = tiny("cs_unet", PERIODIC[task], levels=1).double()
    grid = (8, 8, 8)[: model.task.dim]
    if trained:
        briefly_trained(model, grid)
    assert symmetry_errors(model, grid)["point group"] < 1e-9
    x = sample(model.task, dtype=torch.float64, grid=grid)
    axes = tuple(range(2, 2 + model.task.dim))
    shifts = (2, 4, 6)[: model.task.dim]
    assert relative_error(model(x.roll(shifts, axes)), model(x).roll(shifts, axes)) < 1e-9
    odd = relative_error(model(x.roll(1, 2)), model(x).roll(1, 2))
    assert odd > 1e-6  # the control


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize("task", ["plane", "space", "spacetime"])
@pytest.mark.parametrize("name", ["resnet", "clifford_resnet", "fno", "gfno"])
def test_baselines_commute_with_translations_only(name, task, trained):
    """The last one because of its ends; see test_gfno for what lies between them."""
    model = tiny(name, PERIODIC[task], width=4 if name != "gfno" else 1).double()
    grid = (6, 6, 6)[: model.task.dim]
    if trained:
        briefly_trained(model, grid)
    errors = symmetry_errors(model, grid)
    assert errors["translation"] < (1e-7 if name == "fno" else 1e-9)  # its spectra are float32
    assert errors["point group"] > 0.1


def test_backgrounds_transform_with_the_field():
    task = PERIODIC["plane"].replace(backgrounds=(Background("gravity", 1, (0.0, 1.0)),))
    model = tiny("cs_resnet", task).double()
    x = sample(task, dtype=torch.float64, grid=(6, 6))
    y = model(x)
    assert relative_error(model(x, model.background), y) < 1e-12
    broken = 0.0
    for g in grid_symmetries(model.algebra, (6, 6)):
        moved, known = transform_on_grid(model.algebra, g, x), model.background
        expected = transform_on_grid(model.algebra, g, y)
        turned = model.algebra.transform(g, known.double())
        assert relative_error(model(moved, turned), expected) < 1e-9
        assert relative_error(model(moved, turned.expand(1, 1, 4)), expected) < 1e-9
        broken = max(broken, relative_error(model(moved), expected))
    assert broken > 1e-3  # gravity that does not turn breaks the symmetry
    with pytest.raises(ValueError, match=r"has 1 backgrounds, i.e. a tensor \(1, 4\)"):
        model(x, torch.zeros(2, 4))
    with pytest.raises(ValueError, match="has no backgrounds"):
        tiny("resnet", PERIODIC["plane"])(x.float(), torch.zeros(1, 4))


def test_windows_without_backgrounds_give_an_empty_one():
    model = tiny("cs_resnet", PERIODIC["plane"])
    x = sample(model.task, grid=(6, 6))
    assert torch.equal(model(x, torch.empty(len(x), 0, 4)), model(x))
