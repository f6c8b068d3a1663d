"""Convolutions of other libraries at the same shapes, for those that are installed.

Each takes a field (batch, channels, *grid, blades) and is measured forward and backward, with
gradients of field and parameters.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks.registry import Work
from benchmarks.work import forward_backward
from cscnn.conv.export import TORCH_CONVS, PlainFieldConv

#: Checkout of the published JAX code, if there is one to measure (``python -m benchmarks --jax``).
jax_checkout: Path | None = None


def torch_conv(dim: int, channels: int, kernel_size: int) -> PlainFieldConv:
    """``nn.ConvNd`` on flattened channels and blades: what an equivariant layer replaces."""
    blades = 2**dim
    flat = channels * blades
    conv = TORCH_CONVS[dim](flat, flat, kernel_size, padding=kernel_size // 2)
    return PlainFieldConv(conv, blades)


def other_libraries(
    metric: Sequence[int], channels: int, kernel_size: int, x: Tensor
) -> dict[str, Work]:
    """Name -> work, for every competitor that is at hand and serves these dimensions."""
    works: dict[str, Work] = {}
    for name, build in (("cliffordlayers", _cliffordlayers), ("escnn", _escnn)):
        if importlib.util.find_spec(name) is not None:
            module = build(metric, channels, kernel_size)
            if module is not None:
                function, field = module
                works[name] = forward_backward(
                    lambda field, *_, f=function: f(field),
                    [field(x).detach().requires_grad_(), *function.parameters()],
                )
    if jax_checkout is not None:
        works["published JAX code"] = _published(jax_checkout, metric, channels, kernel_size, x)
    return works


def _cliffordlayers(
    metric: Sequence[int], channels: int, kernel_size: int
) -> tuple[nn.Module, Callable[[Tensor], Tensor]] | None:
    from cliffordlayers.nn.modules import cliffordconv

    convolutions = {2: cliffordconv.CliffordConv2d, 3: cliffordconv.CliffordConv3d}
    if len(metric) not in convolutions:
        return None
    conv = convolutions[len(metric)](
        tuple(metric), channels, channels, kernel_size, padding=kernel_size // 2
    )
    return conv, lambda x: x.contiguous()


def _escnn(
    metric: Sequence[int], channels: int, kernel_size: int
) -> tuple[nn.Module, Callable[[Tensor], Tensor]] | None:
    """R2Conv or R3Conv on multivectors of O(2) or O(3); escnn knows definite metrics only."""
    if len(set(metric)) != 1 or len(metric) not in (2, 3):
        return None
    from escnn import gspaces
    from escnn import nn as enn

    if len(metric) == 2:
        space = gspaces.flipRot2dOnR2(-1)
        group = space.fibergroup
        blades = [group.trivial_representation, group.irrep(1, 1), group.irrep(1, 0)]
        convolution = enn.R2Conv
    else:
        space = gspaces.flipRot3dOnR3()
        group = space.fibergroup
        blades = [group.irrep(0, 0), group.irrep(1, 1), group.irrep(0, 1), group.irrep(1, 0)]
        convolution = enn.R3Conv
    fields = enn.FieldType(space, blades * channels)
    conv = convolution(fields, fields, kernel_size, padding=kernel_size // 2)

    class Unwrapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = conv

        def forward(self, x: Tensor) -> Tensor:
            y = self.conv(enn.GeometricTensor(x, fields)).tensor
            assert isinstance(y, Tensor)
            return y

    return Unwrapped(), lambda x: x.movedim(-1, 2).flatten(1, 2)


def check_jax(checkout: Path) -> None:
    """Raise unless a folder holds the published JAX code and JAX can be imported."""
    if not (checkout / "modules" / "conv" / "convolution.py").is_file():
        raise FileNotFoundError(
            f"{checkout} is not a checkout of the published code: it has no "
            "modules/conv/convolution.py"
        )
    if missing := [name for name in ("jax", "flax") if importlib.util.find_spec(name) is None]:
        raise ImportError(f"--jax needs the packages jax and flax: there is no {missing[0]}")


def _published(
    checkout: Path, metric: Sequence[int], channels: int, kernel_size: int, x: Tensor
) -> Work:
    """The authors' convolution, compiled by JAX, with gradients of field and parameters."""
    check_jax(checkout)
    if str(checkout) not in sys.path:
        sys.path.insert(0, str(checkout))
    import jax
    import jax.numpy as jnp
    from algebra.cliffordalgebra import CliffordAlgebra as JaxAlgebra
    from modules.conv.convolution import CliffordSteerableConv as JaxConv

    algebra = JaxAlgebra(tuple(metric))
    conv = JaxConv(
        algebra=algebra,
        c_in=channels,
        c_out=channels,
        kernel_size=kernel_size,
        bias_dims=(0,),
        product_paths_sum=int(algebra.geometric_product_paths.sum().item()),
        num_layers=4,
        hidden_dim=12,
    )
    field = jnp.asarray(x.detach().contiguous().numpy())
    parameters = conv.init(jax.random.PRNGKey(0), field)
    step = jax.jit(jax.value_and_grad(lambda p, f: (conv.apply(p, f) ** 2).sum(), argnums=(0, 1)))

    def work() -> Sequence[Tensor]:
        jax.block_until_ready(step(parameters, field))
        return [torch.empty(0)]

    return work
