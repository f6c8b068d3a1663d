"""Coarser and finer grids: definitions as loops, symmetries, orders of convergence."""

import math

import pytest
import torch

from cscnn import CliffordAlgebra
from cscnn.conv import Downsample, Upsample, downsample, upsample
from cscnn.conv.padding import COMPONENT_MODES, MODES, pad_axis
from cscnn.conv.resample import linear_weights, mean_weights
from cscnn.testing import grid_equivariance_errors, relative_error

PLANE = CliffordAlgebra((1, 1))
F64 = torch.float64


def line(values):
    """Values along an axis as a field of scalars."""
    return torch.as_tensor(values, dtype=F64).reshape(1, 1, -1, 1)


def nearest(x, grid):
    """Each point as often as needed: the control."""
    for axis, n in enumerate(grid, start=2):
        x = x.repeat_interleave(n // x.shape[axis], axis)
    return x


def off_centre(x):
    """Means over cells, but of points that lie half a cell to the right of them."""
    return downsample(x + x.roll(-1, 2)) / 2


# --- against loops --------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "cells"), [(8, 4), (7, 4), (9, 3), (5, 3), (10, 4), (1, 1), (3, 2)])
def test_means_over_cells(n, cells):
    """The integral of a step function over each cell, by a fine subdivision of the box."""
    x = torch.randn(n, dtype=F64)
    expected = x.repeat_interleave(cells).reshape(cells, n).mean(1)
    factor = math.ceil(n / cells)
    y = downsample(line(x), factor).flatten()
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-14)
    torch.testing.assert_close(y.mean(), x.mean(), rtol=0, atol=1e-14)
    torch.testing.assert_close(mean_weights(n, cells, x) @ x, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("mode", COMPONENT_MODES)
@pytest.mark.parametrize(("cells", "n"), [(4, 8), (4, 7), (3, 9), (3, 5), (2, 8), (4, 10)])
def test_linear_interpolation(cells, n, mode):
    x = torch.randn(cells, dtype=F64)
    known = pad_axis(x[None, None], 2, 1, mode).flatten()
    expected = []
    for i in range(n):
        place = (i + 0.5) * cells / n + 0.5  # among the known points
        k = min(int(place), cells)
        expected.append((k + 1 - place) * known[k] + (place - k) * known[k + 1])
    y = upsample(line(x), [n], mode).flatten()
    torch.testing.assert_close(y, torch.stack(expected), rtol=0, atol=1e-14)
    torch.testing.assert_close(linear_weights(cells, n, x) @ known, y, rtol=0, atol=1e-14)


def test_weights_of_factor_two():
    assert upsample(line([0, 4, 8]), [6], "zeros").flatten().tolist() == [0, 1, 3, 5, 7, 6]
    assert downsample(line([0, 4, 8])).flatten().tolist() == pytest.approx([4 / 3, 20 / 3])


# --- symmetry -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("metric", [(1,), (1, 1), (1, -1), (1, 1, 1), (1, -1, -1)])
@pytest.mark.parametrize("size", [8, 7, 6])
def test_commutes_with_the_symmetries_of_the_grid(metric, mode, size):
    """Reflections and quarter turns at any size, translations by cells if they fit."""

    def both(x):
        return upsample(downsample(x), x.shape[2:-1], mode)

    algebra = CliffordAlgebra(metric)
    errors = grid_equivariance_errors(both, algebra, (1, 2, *(size,) * algebra.dim), step=2)
    assert errors["point group"] < 1e-12
    assert (errors["translation"] < 1e-12) == (mode == "circular" and size % 2 == 0)


def test_controls_of_symmetry():
    def skewed(x):
        return upsample(off_centre(x), x.shape[2:-1], "circular")

    assert grid_equivariance_errors(skewed, PLANE, (1, 2, 8, 8), step=2)["point group"] > 0.1

    x = torch.randn(1, 2, 8, 8, 4, dtype=F64)
    by_a_point, moved = (downsample(y) for y in (x.roll(1, 2), x))
    moved, by_a_point = (upsample(y, (8, 8), "circular") for y in (moved, by_a_point))
    assert relative_error(by_a_point, moved.roll(1, 2)) > 0.1


def test_axes_that_are_left_alone():
    """A factor of one, and an axis of one point."""
    x = torch.randn(2, 3, 5, 8, 1, 8, dtype=F64)
    y = downsample(x, (1, 2, 2))
    assert y.shape == (2, 3, 5, 4, 1, 8)
    assert torch.equal(y, (x[:, :, :, ::2] + x[:, :, :, 1::2]) / 2)
    assert upsample(y, (5, 8, 1), "reflect").shape == x.shape


# --- order of convergence -------------------------------------------------------------------------


def errors_of(interpolate, sizes, mode, phase):
    """Largest errors of a wave that is averaged and interpolated back."""
    errors = []
    for n in sizes:
        t = (torch.arange(n, dtype=F64) + 0.5) / n
        x = line(torch.sin(2 * math.pi * t + phase))
        errors.append((interpolate(downsample(x), [n], mode) - x).abs().max().item())
    return errors


def rate(errors):
    return math.log2(errors[0] / errors[1])


def test_second_order_where_nearest_is_of_first():
    for mode, phase in (("circular", 0.3), ("extrapolate", 0.3), ("symmetric", math.pi / 2)):
        assert rate(errors_of(upsample, (64, 128), mode, phase)) == pytest.approx(2, abs=0.1)
        assert rate(errors_of(upsample, (65, 129), mode, phase)) == pytest.approx(2, abs=0.15)
    first = errors_of(lambda x, grid, _: nearest(x, grid), (64, 128), "circular", 0.3)
    assert rate(first) == pytest.approx(1, abs=0.1)
    wrong = errors_of(upsample, (64, 128), "replicate", 0.3)  # a slope at the border
    assert rate(wrong) == pytest.approx(1, abs=0.1)


# --- as modules -----------------------------------------------------------------------------------


@pytest.mark.parametrize("grid", [(8, 12), (7, 10)])
def test_modules(grid):
    x = torch.randn(2, 3, *grid, 4, dtype=F64, requires_grad=True)
    down, up = Downsample(), Upsample(padding_mode=("circular", "zeros"))
    y = down(x)
    assert y.shape[2:-1] == tuple(math.ceil(n / 2) for n in grid)
    assert up(y).shape[2:-1] == tuple(2 * n for n in y.shape[2:-1])
    z = up(y, grid)
    assert torch.equal(z, upsample(downsample(x), grid, ("circular", "zeros")))
    beside = x.detach().movedim(-1, 2).contiguous().movedim(2, -1)
    for f in (down, up):  # the memory order is kept
        assert f(x).stride(-1) == 1
        assert f(beside).stride(-1) > 1
        assert relative_error(f(beside), f(x)) < 1e-15
    assert up(down(x[:0]), grid).shape == (0, 3, *grid, 4)
    assert torch.autograd.gradcheck(lambda t: up(down(t), grid), x[:1, :1])


@pytest.mark.usefixtures("fresh_compiler")
def test_compiles():
    """Odd sizes too; networks compile even ones."""

    def both(x):
        return upsample(downsample(x), x.shape[2:-1], "circular")

    x = torch.randn(1, 2, 7, 10, 4)
    compiled = torch.compile(both, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), both(x))


def test_bad_options():
    x = torch.randn(1, 1, 4, 4, 4)
    with pytest.raises(ValueError, match="factors must be at least 1, got 0"):
        downsample(x, 0)
    with pytest.raises(ValueError, match=r"factors needs one value per axis, 2 in all, got \(2,\)"):
        downsample(x, (2,))
    with pytest.raises(ValueError, match=r"grid needs one size per axis, 2 in all, got \(8,\)"):
        upsample(x, (8,))
    with pytest.raises(ValueError, match=r"padding_mode must be one of zeros.*got 'periodic'"):
        upsample(x, (8, 8), "periodic")
