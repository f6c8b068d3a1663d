"""What a convolution computes, and what it refuses."""

import copy
import itertools

import numpy as np
import pytest
import torch

from cscnn import CliffordAlgebra, CliffordSteerableConv
from cscnn.conv import direct
from cscnn.conv.padding import COMPONENT_MODES, pad
from cscnn.kernels import Implicit
from cscnn.testing import relative_error
from tests.conftest import metric_name
from tests.conv import paper
from tests.conv.builders import build


@pytest.mark.parametrize("metric", [(1,), (1, 1), (1, -1), (-1, 1, 1)], ids=metric_name)
def test_is_the_papers_algorithm(metric):
    d = len(metric)
    published = Implicit(num_layers=3, hidden_dim=4, unit_variance=False)
    conv = build(metric, 2, 2, kernel_size=3, kernel=published).double()
    algebra = paper.Algebra(metric)
    p = {name: value.detach().numpy() for name, value in conv.kernel.named_parameters()}
    offsets = list(itertools.product((-1, 0, 1), repeat=d))
    scale = 20 / 3 ** (d - 1)
    matrices = [paper.kernel_matrix(algebra, p, v, scale, 2, 2, 3) for v in offsets]
    expected = torch.tensor(np.stack(matrices, -1)).flatten(2, 3).flatten(0, 1)
    expected = expected.reshape(2 * 2**d, 2 * 2**d, *[3] * d)
    assert relative_error(conv.expanded_kernel(), expected) < 1e-12
    x = np.random.default_rng(0).normal(size=(2, *(4, 3, 2)[:d], 2**d))
    y = paper.convolve(x, matrices, offsets, conv.bias.detach().numpy())
    assert relative_error(conv(torch.tensor(x)[None])[0], torch.tensor(y)) < 1e-12


@pytest.mark.parametrize("metric", [(1, -1), (1, 1, 1), (1, -1, -1, -1)], ids=metric_name)
def test_strides_padding_and_sizes_in_every_dimension(metric):
    """Against the definition, with everything different along every axis."""
    d = len(metric)
    size, stride, padding = (3, 1, 5, 3)[:d], (1, 2, 2, 1)[:d], (0, 2, 1, 3)[:d]
    conv = build(
        metric, 1, 2, kernel_size=size, kernel="complete", stride=stride, padding=padding
    ).double()
    grid = (5, 4, 6, 3)[:d]
    x = torch.randn(2, 1, *grid, 2**d, dtype=torch.float64)
    y = conv(x)
    kernel = conv.expanded_kernel().reshape(2, 2**d, 1, 2**d, *size)
    padded = torch.zeros(
        2, 1, *(n + 2 * p for n, p in zip(grid, padding, strict=True)), 2**d
    ).double()
    inner = tuple(slice(p, p + n) for n, p in zip(grid, padding, strict=True))
    padded[(slice(None), slice(None), *inner)] = x
    out = tuple(
        (n + 2 * p - k) // s + 1 for n, p, k, s in zip(grid, padding, size, stride, strict=True)
    )
    assert y.shape == (2, 2, *out, 2**d)
    for point in [(0,) * d, tuple(n - 1 for n in out), tuple(n // 2 for n in out)]:
        window = tuple(slice(i * s, i * s + k) for i, s, k in zip(point, stride, size, strict=True))
        patch = padded[(slice(None), slice(None), *window)]
        expected = torch.einsum(
            "ocibn,zinb->zoc", kernel.flatten(4), patch.flatten(2, -2)
        ) + torch.nn.functional.pad(conv.bias[:, None], (0, 2**d - 1))
        assert relative_error(y[(slice(None), slice(None), *point)], expected) < 1e-12


@pytest.mark.parametrize("mode", [mode for mode in COMPONENT_MODES if mode != "extrapolate"])
def test_padding_modes_are_numpys(mode):
    names = {"zeros": "constant", "circular": "wrap", "replicate": "edge"}
    x = torch.randn(1, 2, 5, 4)
    ours = pad(x, (2, 3), (mode, mode))
    theirs = np.pad(x.numpy(), ((0, 0), (0, 0), (2, 2), (3, 3)), mode=names.get(mode, mode))
    assert torch.equal(ours, torch.from_numpy(theirs))


def test_extrapolation_continues_polynomials():
    """Up to the degree of the amount, along each axis; so derivatives at borders are exact too."""
    a, b = torch.meshgrid(torch.arange(-2.0, 8), torch.arange(-1.0, 6), indexing="ij")
    polynomial = (a**2 * b - 3 * a + 1).double()[None, None]
    inside = polynomial[..., 2:-2, 1:-1]
    assert torch.allclose(pad(inside, (2, 1), ("extrapolate",) * 2), polynomial)
    with pytest.raises(ValueError, match=r"by 3 needs at least 4 points, grid axis 1 has 3"):
        pad(torch.zeros(1, 1, 4, 3), (0, 3), ("extrapolate",) * 2)


def test_padding_mode_per_axis():
    conv = build((1, 1), padding_mode=("circular", "reflect")).double()
    x = torch.randn(1, 2, 6, 5, 4, dtype=torch.float64)
    padded = np.pad(x.numpy(), ((0, 0), (0, 0), (1, 1), (0, 0), (0, 0)), mode="wrap")
    padded = np.pad(padded, ((0, 0), (0, 0), (0, 0), (1, 1), (0, 0)), mode="reflect")
    valid = copy.deepcopy(conv)
    valid.padding, valid.padding_mode = (0, 0), ("zeros", "zeros")
    assert relative_error(conv(x), valid(torch.from_numpy(padded))) < 1e-13


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel_size": 4}, r"must be odd, got \(4, 4\): an even kernel has no centre"),
        ({"kernel_size": (3, 3, 3)}, r"one value per axis, 2 in all, got \(3, 3, 3\)"),
        ({"kernel_size": 0}, "kernel_size must be at least 1, got 0"),
        ({"stride": 0}, r"stride must consist of integers of at least 1, got \(0, 0\)"),
        ({"padding": -1}, r"padding must consist of integers of at least 0, got \(-1, -1\)"),
        ({"padding_mode": "mirror"}, r"zeros, circular, .* got 'mirror'"),
        ({"spacing": (1.0, 0.0)}, r"spacing must be positive, got \(1\.0, 0\.0\)"),
        (
            {"kernel": "spline"},
            "one of the names complete, differential, implicit, got",
        ),
        ({"bias": (1,)}, r"blades \[1\] \(\['e1'\]\) is not invariant"),
        ({"c_in": 0}, "c_in must be at least 1, got 0"),
        (
            {"kernel": {"name": "implicit", "hiden": 3}},
            "implicit kernel are num_layers, .*; got hiden",
        ),
        ({"kernel": {"name": "implicit", "group": "SO"}}, "the complete kernel knows group"),
    ],
)
def test_bad_options(options, message):
    arguments = {"algebra": CliffordAlgebra((1, 1)), "c_in": 2, "c_out": 2, "kernel_size": 3}
    with pytest.raises((ValueError, TypeError), match=message):
        CliffordSteerableConv(**{**arguments, **options})
    assert CliffordSteerableConv(**arguments, padding="same").padding == (1, 1)


def test_bad_fields():
    conv = build((1, 1), padding_mode="reflect", kernel_size=5)
    for shape, message in (
        ((1, 3, 8, 8, 4), r"expected 2 channel\(s\) on axis 1"),
        ((1, 2, 8, 8, 8), r"4 blades of .* got shape \(1, 2, 8, 8, 8\)"),
        ((2, 8, 8, 4), r"shape \(batch, 2, \*, \*, 4\), got \(2, 8, 8, 4\): is the channel axis"),
        ((1, 2, 2, 8, 4), "reflect padding by 2 needs at least 3 points, grid axis 0 has 2"),
    ):
        with pytest.raises(ValueError, match=message):
            conv(torch.zeros(shape))
    with pytest.raises(ValueError, match=r"grid \(2, 8\) is smaller than the kernel \(5, 5\)"):
        build((1, 1), kernel_size=5, padding=0)(torch.zeros(1, 2, 2, 8, 4))
    with pytest.raises(TypeError, match=r"field is torch\.float64 but the layer's weights"):
        conv(torch.zeros(1, 2, 8, 8, 4).double())
    with pytest.raises(ValueError, match="no plain convolution in 4 dimensions"):
        build((1, 1, 1, 1)).export()
    with pytest.raises(ValueError, match="the kernel is for"):
        CliffordSteerableConv(conv.algebra, 3, 3, 3, kernel=conv.kernel)
    with pytest.raises(ValueError, match="at most 4 dimensions"):
        CliffordSteerableConv(CliffordAlgebra((1,) * 5), 1, 1, 3)


@pytest.mark.parametrize("padding", [(0, 0, 0), (1, 1, 1), (2, 0, 1)])
@pytest.mark.parametrize(("grid", "kernel"), [((5, 6, 7), (3, 3, 3)), ((4, 5, 5), (3, 1, 5))])
def test_small_samples_in_three_dimensions(grid, kernel, padding, generator, monkeypatch):
    """Alone as a batch of two halves, with the values and gradients of torch's convolution."""
    x = torch.randn((1, 2, *grid), generator=generator, requires_grad=True)
    weight = torch.randn((3, 2, *kernel), generator=generator, requires_grad=True)
    bias = torch.randn(3, generator=generator, requires_grad=True)
    calls, in_two = [], direct._in_two
    monkeypatch.setattr(direct, "_in_two", lambda *a: calls.append(1) or in_two(*a))
    mine = direct.conv_nd(x, weight, bias, (1, 1, 1), padding)
    assert calls
    other = torch.nn.functional.conv3d(x, weight, bias, 1, padding)
    assert mine.shape == other.shape
    assert relative_error(mine, other) < 1e-5
    grad = torch.randn(mine.shape, generator=generator)
    for a, b in zip(
        *(torch.autograd.grad(y, (x, weight, bias), grad) for y in (mine, other)), strict=True
    ):
        assert relative_error(a, b) < 1e-5
    for stride, samples in (((2, 2, 2), x), ((1, 1, 1), torch.cat([x, x]))):
        direct.conv_nd(samples, weight, bias, stride, padding)
    direct.conv_nd(x.double(), weight.double(), bias.double(), (1, 1, 1), padding)
    assert len(calls) == 1
