"""The U-Nets of PDEArena and The Well: their formulas, published sizes, grids of any size."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from cscnn import CliffordAlgebra
from cscnn.networks import FieldType, Grid, build, count_parameters, fit_budget
from cscnn.networks.baselines import ConvNeXtUNet, ResNet, UNet
from cscnn.networks.baselines.sampling import complete_cells, extend_axis
from cscnn.testing import relative_error

SMALL = {
    UNet: {"width": (4, 3), "multipliers": (1, 2, 3), "blocks_per_level": 2},
    ConvNeXtUNet: {"width": 4, "hidden": 6, "levels": 2, "blocks_per_level": 2},
}
BOTH = pytest.mark.parametrize("cls", SMALL)


def small(cls, dim=2, mode="circular", c_in=3, c_out=2):
    """In float64, with parameters at random, also those that begin as constants."""
    network = cls(dim, c_in, c_out, **SMALL[cls], grid=Grid(padding_mode=mode)).double()
    for p in network.parameters():
        nn.init.normal_(p, std=0.3)
    return network


# --- the published networks -----------------------------------------------------------------------


def unet_count(dim, c_in, c_out, width, multipliers, blocks):
    def conv(a, b, taps=3):
        return taps**dim * a * b + b

    def block(a, b):
        return 2 * a + conv(a, b) + 2 * b + conv(b, b) + (conv(a, b, 1) if a != b else 0)

    count, above = conv(c_in, width) + 2 * width + conv(width, c_out), width
    for level, factor in enumerate(multipliers):
        here = above * factor
        count += block(above, here) + (blocks - 1) * block(here, here)
        count += blocks * block(2 * here, here) + block(here + above, above)
        if level > 0:
            count += conv(above, above) + conv(above, above, 4)
        above = here
    return count + 2 * block(above, above)


def convnext_count(dim, c_in, c_out, width, levels, blocks):
    def block(c):
        return (7**dim * c + c) + 2 * c + (4 * c * c + 4 * c) + (4 * c * c + c) + c

    count = 3**dim * width * (c_in + c_out) + width + c_out + block(2**levels * width)
    for level in range(levels):
        c = 2**level * width
        count += blocks * (block(c) + block(2 * c))
        count += 2**dim * c * 2 * c + 2 * c + c  # halving, and its norm
        count += 2**dim * c * 2 * c + c + 2 * c  # doubling, and its norm
        count += 2 * c * c + c if level > 0 else 0
    return count


def test_published_sizes():
    """Of ``Unetmod-64`` and of ``UNetConvNext``, whose norms have 1890 biases that are not used."""
    with torch.device("meta"):
        unet, convnext = UNet(2, 12, 3), ConvNeXtUNet(2, 12, 3)
    assert count_parameters(unet) == 144_263_683 == unet_count(2, 12, 3, 64, (1, 2, 2, 4), 2)
    assert count_parameters(convnext) == 18_573_453 - 1890 == convnext_count(2, 12, 3, 42, 4, 2)
    assert unet.output[0].num_groups == 8


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_sizes_in_all_dimensions(dim):
    unet = UNet(dim, 3, 2, 4, (2, 3), 3)
    assert count_parameters(unet) == unet_count(dim, 3, 2, 4, (2, 3), 3)
    convnext = ConvNeXtUNet(dim, 3, 2, 4, levels=3, blocks_per_level=1)
    assert count_parameters(convnext) == convnext_count(dim, 3, 2, 4, 3, 1)


def parameters_of(network):
    """Module by name -> its own parameters."""
    return {name: list(part.parameters(recurse=False)) for name, part in network.named_modules()}


def padded(x, before, after, mode):
    return F.pad(x, (before, after) * 2, mode={"zeros": "constant"}.get(mode, mode))


def convolve(weights, x, mode, stride=1, groups=1):
    weight, bias = weights
    reach = weight.shape[-1] // 2
    return F.conv2d(padded(x, reach, reach, mode), weight, bias, stride=stride, groups=groups)


def spread(weights, x, mode):
    """A transposed convolution as a convolution of points with zeros between them."""
    weight, bias = weights
    height, width = 2 * x.shape[2], 2 * x.shape[3]
    apart = x.new_zeros(*x.shape[:2], height + 4, width + 4)
    apart[..., ::2, ::2] = padded(x, 1, 1, mode)
    first = 2 - weight.shape[-1] // 2
    y = F.conv2d(apart[..., first:, first:], weight.transpose(0, 1).flip(2, 3), bias)
    return y[..., :height, :width]


def standardised(weights, x, groups=1):
    parts = x.unflatten(1, (groups, -1))
    axes = (2, 3, 4)
    mean, var = parts.mean(axes, keepdim=True), parts.var(axes, keepdim=True, correction=0)
    y = ((parts - mean) / (var + 1e-5).sqrt()).flatten(1, 2)
    return y * weights[0][:, None, None] + weights[1][:, None, None]


def naive_unet(network, x, mode):
    """Three levels of two blocks, by the description of the architecture."""
    w = parameters_of(network)

    def block(name, x):
        h = convolve(
            w[f"{name}.layers.2.conv"], F.gelu(standardised(w[f"{name}.layers.0"], x)), mode
        )
        h = convolve(
            w[f"{name}.layers.5.conv"], F.gelu(standardised(w[f"{name}.layers.3"], h)), mode
        )
        shortcut = w.get(f"{name}.shortcut.conv")
        return h + (x if shortcut is None else convolve(shortcut, x, mode))

    kept = [convolve(w["embedding.conv"], x, mode)]
    for i in range(8):
        if i in (2, 5):
            kept.append(convolve(w[f"down.{i}.conv"], kept[-1], mode, stride=2))
        else:
            kept.append(block(f"down.{i}", kept[-1]))
    x = block("middle.1", block("middle.0", kept[-1]))
    for i in range(11):
        if i in (3, 7):
            x = spread(w[f"up.{i}.conv"], x, mode)
        else:
            x = block(f"up.{i}", torch.cat([x, kept.pop()], 1))
    assert not kept
    return convolve(w["output.2.conv"], F.gelu(standardised(w["output.0"], x)), mode)


def naive_convnext(network, x, mode):
    """Two levels of two blocks, by the description of the architecture."""
    w = parameters_of(network)

    def block(name, x):
        h = convolve(w[f"{name}.depthwise.conv"], x, mode, groups=x.shape[1])
        gain, offset = (p[:, None, None] for p in w[f"{name}.norm.norm"])
        deviation = h - h.mean(1, keepdim=True)
        h = deviation / (deviation.square().mean(1, keepdim=True) + 1e-6).sqrt() * gain + offset
        h = convolve(
            w[f"{name}.mlp.2.conv"], F.gelu(convolve(w[f"{name}.mlp.0.conv"], h, mode)), mode
        )
        return x + w[name][0] * h

    def unit(name, x):
        return x / x.square().sum(1, keepdim=True).sqrt() * w[f"{name}.norm"][0]

    first = convolve(w["embedding.conv"], x, mode)
    h = unit("shrink.0", block("down.0.1", block("down.0.0", first)))
    second = F.conv2d(h, *w["shrink.0.conv"], stride=2)
    h = unit("shrink.1", block("down.1.1", block("down.1.0", second)))
    h = block("middle.0", F.conv2d(h, *w["shrink.1.conv"], stride=2))
    h = spread(w["grow.1.conv"], unit("grow.1", block("up.1.1", block("up.1.0", h))), mode)
    h = convolve(w["merge.0.conv"], torch.cat([h, second], 1), mode)
    h = spread(w["grow.0.conv"], unit("grow.0", block("up.0.1", block("up.0.0", h))), mode)
    return convolve(w["output.conv"], h, mode)


@BOTH
@pytest.mark.parametrize("mode", ["zeros", "circular", "replicate"])
def test_networks_are_their_definitions(cls, mode):
    network = small(cls, mode=mode)
    naive = {UNet: naive_unet, ConvNeXtUNet: naive_convnext}[cls]
    x = torch.randn(2, 3, 16, 24, dtype=torch.float64)
    assert relative_error(network(x), naive(network, x, mode)) < 1e-12


# --- grids ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "numpys"),
    [
        ("zeros", "constant"),
        ("circular", "wrap"),
        ("reflect", "reflect"),
        ("replicate", "edge"),
        ("symmetric", "symmetric"),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_axes_are_extended_beyond_their_length(mode, numpys, size):
    x = torch.arange(1.0, size + 1).reshape(1, 1, size)
    for amount in range(8):
        expected = np.pad(x.flatten().numpy(), amount, mode=numpys)
        assert extend_axis(x, 2, amount, mode).flatten().tolist() == expected.tolist()


def test_lines_are_extrapolated_beyond_their_length():
    for size in (2, 3, 5):
        line = torch.arange(float(size)).reshape(1, 1, size)
        assert torch.allclose(extend_axis(line, 2, 6, "extrapolate"), torch.arange(-6.0, size + 6))
    assert extend_axis(torch.ones(1, 1, 1), 2, 3, "extrapolate").flatten().tolist() == [1] * 7


def test_odd_grids_get_one_more_point():
    x = torch.arange(15.0).reshape(1, 1, 3, 5)
    y = complete_cells(x, ("circular", "zeros"))
    assert torch.equal(y[..., :3, :5], x)
    assert torch.equal(y[..., 3, :5], x[..., 0, :])
    assert y[..., 5].abs().max() == 0
    assert complete_cells(y, ("circular", "zeros")) is y


@BOTH
@pytest.mark.parametrize(
    ("grid", "mode"),
    [
        ((13,), "symmetric"),
        ((1,), "extrapolate"),
        ((7, 10), ("circular", "replicate")),
        ((1, 9), ("reflect", "zeros")),
        ((5, 3, 6), ("circular", "zeros", "extrapolate")),
    ],
)
def test_any_size_and_padding(cls, grid, mode):
    network = small(cls, len(grid), mode)
    x = torch.randn(2, 3, *grid, dtype=torch.float64)
    y = network(x)
    assert y.shape == (2, 2, *grid)
    assert y.isfinite().all()
    assert network(x[:0]).shape == (0, 2, *grid)


def test_resnets_take_grids_smaller_than_their_kernels():
    """A field on two points is one of period two on six points."""
    network = ResNet(1, 1, 1, 2, 1, kernel_size=7, grid=Grid(padding_mode="circular")).double()
    x = torch.randn(1, 1, 2, dtype=torch.float64)
    assert relative_error(network(x).repeat(1, 1, 3), network(x.repeat(1, 1, 3))) < 1e-12


@BOTH
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_commute_with_translations_by_coarse_cells(cls, dim):
    network = small(cls, dim)
    x = torch.randn(1, 3, *(8, 12, 4)[:dim], dtype=torch.float64)
    y = network(x)
    for axis in range(2, x.dim()):
        assert relative_error(network(x.roll(4, axis)), y.roll(4, axis)) < 1e-12
    assert relative_error(network(x.roll(1, 2)), y.roll(1, 2)) > 1e-3  # the control


@BOTH
def test_padding_of_one_axis_is_its_own(cls):
    """Periodic along the first axis only."""
    network = small(cls, mode=("circular", "zeros"))
    x = torch.randn(1, 3, 8, 8, dtype=torch.float64)
    y = network(x)
    assert relative_error(network(x.roll(4, 2)), y.roll(4, 2)) < 1e-12
    assert relative_error(network(x.roll(4, 3)), y.roll(4, 3)) > 1e-3


# --- training, budgets ----------------------------------------------------------------------------


@BOTH
def test_gradients_reach_all_weights(cls):
    network = cls(2, 3, 2, **SMALL[cls], grid=Grid(padding_mode="circular")).double()
    network(torch.randn(2, 3, 16, 16, dtype=torch.float64)).square().mean().backward()
    for name, p in network.named_parameters():
        assert (p.grad != 0).all(), name


@BOTH
def test_a_few_steps_reduce_the_loss(cls):
    torch.manual_seed(0)
    few = {"multipliers": (1, 2)} if cls is UNet else {"levels": 2}
    network = cls(2, 1, 1, 8, **few, blocks_per_level=1, grid=Grid(padding_mode="circular"))
    x = torch.randn(2, 1, 8, 8)
    target = x.roll(1, 2) - x
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-2)
    losses = []
    for _ in range(40):
        optimiser.zero_grad()
        loss = (network(x) - target).square().mean()
        loss.backward()
        losses.append(loss.item())
        optimiser.step()
    assert losses[-1] < 0.25 * losses[0], losses


def flow(dim):
    algebra = CliffordAlgebra((1,) * dim)
    return FieldType(algebra, ((0, 1),) * 4), FieldType(algebra, ((0, 1),))


@pytest.mark.parametrize("name", ["unet", "convnext_unet"])
@pytest.mark.parametrize(
    ("dim", "params", "least"),
    [
        (1, 30_000, 8),
        (2, 30_000, 6),
        (2, 100_000, 8),
        (3, 25_500, 3),
    ],
)
def test_small_budgets_have_fewer_levels_before_few_channels(name, dim, params, least):
    types = flow(dim)
    options = fit_budget(name, *types, params)
    network = build(name, *types, **options)
    assert abs(count_parameters(network) - params) <= 0.03 * params
    width = options["width"]
    assert (width[0] if isinstance(width, list) else width) >= least
    assert len(options.get("multipliers", ())) in (0, 2, 3)
    assert options.get("levels", 2) >= 2


def test_large_budgets_have_the_published_form():
    assert fit_budget("unet", *flow(2), 144_000_000) == {"width": 64}
    options = fit_budget("convnext_unet", *flow(2), 18_570_000)
    assert options == {"width": 42, "hidden": 168}
    assert fit_budget("convnext_unet", *flow(2), 30_000, hidden=27)["hidden"] == 27


def test_given_levels_stay_even_if_channels_are_few():
    options = fit_budget("unet", *flow(2), 36_000, multipliers=[1, 2, 2, 4], blocks_per_level=2)
    assert options == {"multipliers": [1, 2, 2, 4], "blocks_per_level": 2, "width": 1}


def test_narrow_networks_normalise_groups_of_channels():
    for width, groups in {1: 1, 8: 1, 12: 1, 16: 2, 24: 3, 44: 4, 64: 8, 128: 8}.items():
        with torch.device("meta"):
            assert UNet(2, 1, 1, width, (1, 2)).output[0].num_groups == groups


@pytest.mark.parametrize(
    ("cls", "options", "message"),
    [
        (UNet, {"multipliers": ()}, r"multipliers needs one number for each level, got \(\)"),
        (UNet, {"multipliers": 4}, "multipliers needs one number for each level, got 4"),
        (UNet, {"multipliers": (1, 0)}, "multipliers must be at least 1, got 0"),
        (UNet, {"blocks_per_level": 0}, "blocks_per_level must be at least 1, got 0"),
        (ConvNeXtUNet, {"levels": 0}, "levels must be at least 1, got 0"),
        (ConvNeXtUNet, {"kernel_size": 4}, "kernel_size must be odd, got 4"),
        (ResNet, {"kernel_size": 4}, "kernel_size must be odd, got 4"),
    ],
)
def test_wrong_options_are_refused(cls, options, message):
    with pytest.raises(ValueError, match=message):
        cls(2, 1, 1, **options)
