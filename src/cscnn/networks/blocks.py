"""What Clifford-steerable networks on grids and on edges share: gates and residual blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from cscnn._util.checks import check_choice, check_int
from cscnn._util.torch_private import forward_hooks, global_hooks
from cscnn.algebra import CliffordAlgebra
from cscnn.nn import MVGELU, MVLayerNorm, MVLinear
from cscnn.nn.functional import check_field
from cscnn.nn.fused import normed_gate, product_gate

ACTIVATIONS = ("gate", "product")


class ProductGate(nn.Module):
    """gate(x) + weighted geometric product of x with a bounded channel mix of itself.

    The product brings the bilinear interactions of advection and forces. Its weights, one for each
    channel and grade, start at zero: a gate that learns. In spacetime the mix is bounded only as
    far as its grades are not null: no invariant is large for all large null vectors.

    Commutes with ρ(g) for every g of the group. For SO the mix has terms with the pseudoscalar.

    Args:
        algebra: the Clifford algebra.
        channels: number of channels.
        group: of the mix, see `MVLinear`.

    Shape:
        (batch, channels, *space, blades), unchanged.
    """

    def __init__(self, algebra: CliffordAlgebra, channels: int, group: str = "O"):
        super().__init__()
        self.algebra = algebra
        self.mix = MVLinear(algebra, channels, channels, bias=False, group=group)
        self.weight = nn.Parameter(torch.zeros(channels, algebra.n_grades))

    def forward(self, x: Tensor) -> Tensor:
        check_field(x, self.algebra, self.mix.c_in, self.weight)
        return product_gate(x, self.mix.weight, self.weight, self.algebra)


def normed_activation(
    x: Tensor, norm: nn.Module, act: nn.Module, shortcut: Tensor | None = None
) -> Tensor:
    """act(norm(x) + shortcut), one operation for the layers of our networks."""
    if isinstance(norm, MVLayerNorm) and norm.absolute and _nobody_looks(norm, act):
        check_field(x, norm.algebra)
        if isinstance(act, ProductGate):
            check_field(x, act.algebra, act.mix.c_in, act.weight)
            return normed_gate(x, act.algebra, (act.mix.weight, act.weight), shortcut)
        if isinstance(act, MVGELU) and act.approximate == "tanh":
            return normed_gate(x, act.algebra, None, shortcut)
    y = norm(x)
    y = act(y if shortcut is None else shortcut + y)
    assert isinstance(y, Tensor)
    return y


def _nobody_looks(*modules: nn.Module) -> bool:
    """Whether what is between modules may stay unknown, because no hooks wait for it."""
    return not (any(d for module in modules for d in forward_hooks(module)) or global_hooks())


class ResidualBlock(nn.Module):
    """Base of blocks that may be computed again in the backward pass, see `recompute_blocks`.

    Attributes:
        recompute: compute it again in the backward pass instead of storing.
    """

    def __init__(self) -> None:
        super().__init__()
        self.recompute = False

    def compute(self, x: Tensor, *edges: Any) -> Tensor:
        """The block itself."""
        raise NotImplementedError

    def forward(self, x: Tensor, *edges: Any) -> Tensor:
        """Whatever follows the field goes to the convolutions: on point sets the edges."""
        if not (self.recompute and torch.is_grad_enabled()):
            return self.compute(x, *edges)
        result = checkpoint(self.compute, x, *edges, use_reentrant=False)
        assert isinstance(result, Tensor)
        return result


class CSBlock(ResidualBlock):
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

    def compute(self, x: Tensor, *edges: Any) -> Tensor:
        y = normed_activation(self.convs[0](x, *edges), self.norms[0], self.acts[0])
        return normed_activation(self.convs[1](y, *edges), self.norms[1], self.acts[1], x)


class PreActivationBlock(ResidualBlock):
    """Residual block x + f(x), f two times activation, conv, norm: nothing is on the shortcut.

    Norms follow the convolutions as in `CSBlock`: before the activations they would hide the sizes
    of multivectors, which products and gates need, from every convolution of a network.

    Args:
        algebra: the Clifford algebra.
        convs: the two convolutions.
        norm: normalise after each convolution, by absolute squares.
        acts: the two activations before them.
    """

    def __init__(
        self,
        algebra: CliffordAlgebra,
        convs: Sequence[nn.Module],
        norm: bool,
        acts: Sequence[nn.Module],
    ):
        super().__init__()
        self.acts = nn.ModuleList(acts)
        self.convs = nn.ModuleList(convs)
        self.norm = MVLayerNorm(algebra, absolute=True) if norm else nn.Identity()

    def compute(self, x: Tensor, *edges: Any) -> Tensor:
        y = self.convs[0](self.acts[0](x), *edges)
        y = self.convs[1](normed_activation(y, self.norm, self.acts[1]), *edges)
        z = x + self.norm(y)
        assert isinstance(z, Tensor)
        return z


def recompute_blocks(network: nn.Module, recompute: bool = True) -> None:
    """Let residual blocks be computed again in the backward pass: less memory, more time."""
    for module in network.modules():
        if isinstance(module, ResidualBlock):
            module.recompute = recompute


def activation_layer(
    name: str, algebra: CliffordAlgebra, channels: int, group: str = "O"
) -> nn.Module:
    """``"gate"``, or ``"product"`` with the terms of a group."""
    if check_choice("activation", name, ACTIVATIONS) == "gate":
        return MVGELU(algebra)
    return ProductGate(algebra, channels, group)


def split_width(width: int | Sequence[int]) -> tuple[int, int]:
    """Channels of a network, and those between the two convolutions of its blocks."""
    pair = tuple(width) if isinstance(width, Sequence) else (width, width)
    if len(pair) != 2:
        raise ValueError(
            f"width is a number of channels, or that and the one within blocks, got {width}"
        )
    return check_int("width", pair[0], low=1), check_int("width", pair[1], low=1)
