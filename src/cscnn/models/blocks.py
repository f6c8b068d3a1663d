"""What Clifford-steerable networks on grids and on edges share: gates, blocks, initialisation."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from cscnn.algebra import CliffordAlgebra
from cscnn.nn import MVGELU, MVLayerNorm, MVLinear
from cscnn.nn.functional import absolute_square, smooth_norm
from cscnn.nn.linear import add_scalar_bias

ACTIVATIONS = ("gate", "product")
#: Initial mean of the scalars that enter a chain of residual blocks: its gates start 84 % open.
OPEN = 1.0


class ProductGate(nn.Module):
    """gate(x) + weighted geometric product of x with a bounded channel mix of itself.

    The product brings the bilinear interactions of advection and forces. Its weights, one for each
    channel and grade, start at zero: a gate that learns. In spacetime the mix is bounded only as
    far as its grades are not null: no invariant is large for all large null vectors.
    """

    def __init__(self, algebra: CliffordAlgebra, channels: int):
        super().__init__()
        self.algebra = algebra
        self.gate = MVGELU(algebra)
        self.mix = MVLinear(algebra, channels, channels, bias=False)
        self.weight = nn.Parameter(torch.zeros(channels, algebra.n_grades))

    def forward(self, x: Tensor) -> Tensor:
        mixed = self.mix(x)
        size = smooth_norm(absolute_square(mixed, self.algebra)).unsqueeze(-1)
        product = self.algebra.geometric_product(x, mixed / (1 + size))
        weight = self.weight[:, list(self.algebra.grades)]
        weight = weight.reshape(len(weight), *(1,) * (x.dim() - 3), -1)
        return self.gate(x) + weight * product


class CSBlock(nn.Module):
    """Residual block: conv, norm, activation, conv, norm, shortcut, activation.

    Args:
        algebra: the Clifford algebra.
        convs: the two convolutions, between fields, or along edges.
        norm: normalise after each convolution, by absolute squares.
        acts: the two activations.
    """

    def __init__(
        self,
        algebra: CliffordAlgebra,
        convs: Sequence[nn.Module],
        norm: bool,
        acts: Sequence[nn.Module],
    ):
        super().__init__()
        self.convs = nn.ModuleList(convs)
        self.norms = nn.ModuleList(
            MVLayerNorm(algebra, absolute=True) if norm else nn.Identity() for _ in range(2)
        )
        self.acts = nn.ModuleList(acts)

    def forward(self, x: Tensor, *where: Any) -> Tensor:
        """Whatever follows the field goes to the convolutions: on point sets the edges."""
        y = self.acts[0](self.norms[0](self.convs[0](x, *where)))
        y = self.norms[1](self.convs[1](y, *where))
        result = self.acts[1](x + y)
        assert isinstance(result, Tensor)
        return result


def check_activation(name: str) -> str:
    """Raise for an activation that there is not."""
    if name not in ACTIVATIONS:
        raise ValueError(f"activation must be 'gate' or 'product', got {name!r}")
    return name


def activation_layer(name: str, algebra: CliffordAlgebra, channels: int) -> nn.Module:
    """``"gate"`` or ``"product"``."""
    if check_activation(name) == "gate":
        return MVGELU(algebra)
    return ProductGate(algebra, channels)


def apply_block(block: nn.Module, x: Tensor, *where: Any, frugal: bool) -> Tensor:
    """A block's output; if ``frugal`` the block is computed again in the backward pass."""
    if frugal and torch.is_grad_enabled():
        y = checkpoint(block, x, *where, use_reentrant=False)
    else:
        y = block(x, *where)
    assert isinstance(y, Tensor)
    return y


@torch.no_grad()
def calibrate_(
    model: nn.Module,
    shape: Sequence[int],
    *where: Any,
    blades: Sequence[int],
    layers: Collection[nn.Module],
    entries: Collection[nn.Module],
    last: nn.Module,
) -> None:
    """Set initial scales and scalar biases so that signals and gradients keep their size.

    Noise is passed, and every layer in turn is given outputs of unit variance with scalars of zero
    mean; else the mean that gates give to scalars grows from block to block and drowns the signal.
    What enters a chain of blocks gets scalars of mean `OPEN` instead: closed gates would halve the
    shortcut at each block and leave chaos. Last, the output, of variance V and with squared
    gradients G, is scaled such that V G = 1: nonlinear maps amplify small changes more than the
    whole, so V and G cannot both be 1.

    Args:
        model: called with noise and ``where``.
        shape: of the noise.
        blades: those that carry data.
        layers: convolutions and `MVLinear`, which are linear.
        entries: those whose outputs enter a chain of residual blocks.
        last: the one that makes the output.
    """
    blades = list(blades)
    generator = torch.Generator().manual_seed(0)
    x, change = torch.zeros(2, *shape)
    for noise, spread in ((x, 1.0), (change, 1e-3)):
        values = torch.randn(noise[..., blades].shape, generator=generator)
        noise[..., blades] = spread * values
    hooks = [
        layer.register_forward_hook(partial(standardise_, mean=OPEN if layer in entries else 0.0))
        for layer in layers
    ]
    y = model(x, *where)[..., blades]
    for hook in hooks:
        hook.remove()
    gradients = (model(x + change, *where)[..., blades] - y).square().mean() / 1e-6
    scale_(last, float(y.var() * gradients) ** -0.25)


def standardise_(layer: Any, _: Any, y: Tensor, *, mean: float) -> Tensor:
    """Forward hook: give y, and outputs to come, unit variance and scalars of a certain mean."""
    shift = -y[..., 0].mean((0, *range(2, y.dim() - 1)))
    centred = add_scalar_bias(y, shift)
    scale = 1 / float(centred.square().mean().sqrt())
    layer.bias.add_(shift)
    scale_(layer, scale)
    layer.bias.add_(mean)
    return add_scalar_bias(scale * centred, torch.full_like(shift, mean))


def scale_(layer: Any, factor: float) -> None:
    """Multiply the output of a convolution or `MVLinear` to come."""
    if isinstance(layer, MVLinear):
        layer.weight.mul_(factor)
    else:
        layer.kernel.scale_output_(torch.full((layer.algebra.n_grades,), factor))
    if layer.bias is not None:
        layer.bias.mul_(factor)
