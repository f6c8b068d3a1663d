"""Initial scales, set by a pass of noise."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from cscnn.conv import CliffordSteerableConv, CliffordSteerablePointConv
from cscnn.kernels import SteerableKernel
from cscnn.nn import MVLinear
from cscnn.nn.linear import add_bias, constant_blades

#: Initial mean of the scalars that enter a chain of residual blocks: its gates start 84 % open.
OPEN = 1.0

#: Size of the change by which gradients are measured.
STEP = 1e-3

LINEAR = (CliffordSteerableConv, CliffordSteerablePointConv, MVLinear)


@runtime_checkable
class Calibrated(Protocol):
    """A network that `calibrate_` serves: it tells which of its layers play a special role."""

    def entries(self) -> list[nn.Module]:
        """The layers whose outputs enter a chain of residual blocks."""

    def last(self) -> nn.Module:
        """The layer that makes the output."""


@torch.no_grad()
def calibrate_(
    network: nn.Module,
    noise: Tensor,
    *edges: Any,
    other: Tensor | None = None,
    counted: Tensor | None = None,
) -> None:
    """Set initial scales and biases so that signals and gradients keep their size.

    Noise is passed, and every layer in turn is given outputs of unit variance with scalars of zero
    mean; else the mean that gates give to scalars grows from block to block and drowns the signal.
    What enters a chain of blocks gets scalars of mean `OPEN` instead: closed gates would halve the
    shortcut at each block and leave chaos. Last, the output, of variance V and with squared
    gradients G, is scaled such that V G = 1: nonlinear maps amplify small changes more than the
    whole, so V and G cannot both be 1.

    Args:
        network: with fresh weights; one of `cscnn.networks`, or your own `Calibrated`.
        noise: an input of unit variance, e.g. ``torch.randn(2, c_in, 32, 32, 4)``.
        edges: what else the network takes.
        other: more noise of that kind, in whose direction gradients are measured; by default drawn
            where the first is not zero.
        counted: which outputs count, a mask (channels, blades); by default all.

    Example:
        >>> from cscnn import CliffordAlgebra
        >>> from cscnn.networks import CSResNet
        >>> net = CSResNet(CliffordAlgebra((1, 1)), 2, 1, width=4, blocks=2, kernel_size=3)
        >>> calibrate_(net, torch.randn(2, 2, 16, 16, 4))
    """
    if not isinstance(network, Calibrated):
        raise TypeError(
            f"calibrate_ needs a network that has the methods entries and last, as those of "
            f"cscnn.networks have, got {type(network).__name__}"
        )
    if other is None:
        generator = torch.Generator().manual_seed(1_000_003)  # not one that noise was drawn from
        other = torch.randn(noise.shape, generator=generator).to(noise) * (noise != 0)
    entries = network.entries()
    hooks = [
        layer.register_forward_hook(partial(standardise_, mean=OPEN if layer in entries else 0.0))
        for layer in _linear_layers(network)
    ]
    try:
        y = _select(network(noise, *edges), counted)
    finally:
        for hook in hooks:
            hook.remove()
    moved = _select(network(noise + STEP * other, *edges), counted)
    gradients = (moved - y).square().mean() / STEP**2
    scale_(network.last(), float(y.var() * gradients) ** -0.25)


def _select(y: Tensor, counted: Tensor | None) -> Tensor:
    """The outputs that count, as a flat list of numbers."""
    return y if counted is None else y.movedim(-1, 2)[:, counted.to(y.device)]


def _linear_layers(module: nn.Module) -> Iterator[nn.Module]:
    """Layers with a bias, but for those that make kernels."""
    for child in module.children():
        if isinstance(child, LINEAR):
            if child.bias is not None:
                yield child
        elif not isinstance(child, SteerableKernel):
            yield from _linear_layers(child)


def standardise_(layer: Any, _: Any, y: Tensor, *, mean: float) -> Tensor:
    """Forward hook: give y, and outputs to come, unit variance and scalars of a certain mean.

    Pseudoscalars that have a bias get mean zero.
    """
    blades = constant_blades(layer.algebra, "SO")[: layer.bias.dim()]
    means = [y[..., blade].mean((0, *range(2, y.dim() - 1))) for blade in blades]
    shift = -torch.stack(means, -1).view_as(layer.bias)
    centred = add_bias(y, shift, layer.algebra)
    scale = 1 / float(centred.square().mean().sqrt())
    layer.bias.add_(shift)
    scale_(layer, scale)
    new = torch.zeros_like(shift)
    new.view(len(new), -1)[:, 0] = mean
    layer.bias.add_(new)
    return add_bias(scale * centred, new, layer.algebra)


def scale_(layer: Any, factor: float) -> None:
    """Multiply the output of a convolution or `MVLinear` to come."""
    if isinstance(layer, MVLinear):
        layer.weight.mul_(factor)
    else:
        layer.kernel.scale_output_(torch.full((layer.algebra.n_grades,), factor))
    if layer.bias is not None:
        layer.bias.mul_(factor)
