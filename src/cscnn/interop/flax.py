"""Weights of the published JAX/Flax code in our modules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cscnn.conv import CliffordSteerableConv
from cscnn.kernels import ImplicitKernel
from cscnn.networks.blocks import CSBlock
from cscnn.networks.resnet import CSResNet
from cscnn.nn import CGENN, GeometricProductLayer, GradeNorm


def load_flax_params(module: nn.Module, params: Mapping[str, Any]) -> None:
    """Copy parameters of the published implementation into one of our modules, in place.

    Args:
        module: a `CSResNet`, a `CliffordSteerableConv` with implicit kernels, an `ImplicitKernel`
            or a `CGENN`, built with the same sizes.
        params: nested dict of arrays, or flat with names such as
            ``"CliffordSteerableKernel_0/rel_pos_sigma"``; an outer ``"params"`` is peeled off.

    Raises:
        ValueError: if names are unknown or missing (all are listed), or a shape does not fit.
            Nothing is copied then.
    """
    flat = {name.removeprefix("params/"): value for name, value in _flatten(params)}
    expected = dict(_names(module))
    unknown, missing = sorted(flat.keys() - expected.keys()), sorted(expected.keys() - flat.keys())
    if unknown or missing:
        raise ValueError(
            f"parameters do not fit {type(module).__name__}: missing {missing}, unknown {unknown}"
        )
    values = {}
    for name, target in expected.items():
        value = torch.from_numpy(np.array(flat[name]))
        if not _fits(tuple(value.shape), tuple(target.shape)):
            raise ValueError(
                f"{name} has shape {tuple(value.shape)}, the module expects {tuple(target.shape)}"
            )
        values[name] = value.reshape(target.shape)
    with torch.no_grad():
        for name, target in expected.items():
            target.copy_(values[name])
        for part in module.modules():
            if isinstance(part, ImplicitKernel):
                part.gain.fill_(1.0)  # published kernels know no other size than that of weights


def _flatten(params: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in params.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{name}/")
        else:
            yield f"{prefix}{name}", value


def _fits(published: tuple[int, ...], ours: tuple[int, ...]) -> bool:
    """Whether shapes agree, up to the axes of size one that the published code puts around ours."""
    end = 1 + len(ours)
    inner, outer = published[1:end], published[:1] + published[end:]
    return published == ours or (inner == ours and set(outer) <= {1})


def _names(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Flax name -> our parameter, for one module and all inside it."""
    if isinstance(module, CSResNet):
        convolutions = [
            m
            for part in (module.embedding, module.output)
            for m in part
            if isinstance(m, CliffordSteerableConv)
        ]
        for i, conv in enumerate(convolutions):
            yield from _prefixed(f"CliffordSteerableConv_{i}", conv)
        for i, block in enumerate(module.blocks):
            assert isinstance(block, CSBlock)
            for j, inner in enumerate(block.convs):
                yield from _prefixed(f"CSBasicBlock_{i}/CliffordSteerableConv_{j}", inner)
    elif isinstance(module, CliffordSteerableConv):
        if module.bias is not None:
            yield "bias", module.bias
        yield from _prefixed("CliffordSteerableKernel_0", module.kernel)
    elif isinstance(module, ImplicitKernel):
        yield "rel_pos_sigma", module.position_width
        if module.mask_width is not None:
            yield "ScalarShell_0/kernel_width", module.mask_width
        if isinstance(module.head, nn.Parameter):
            yield "WeightedCayley_0/weight", module.head
        yield from _prefixed("KernelNetwork_0", module.network)
    elif isinstance(module, CGENN):
        for i, norm in enumerate(module.norms):
            assert isinstance(norm, GradeNorm)
            yield f"GradeNorm_{i}/factor", norm.factor
        for i, layer in enumerate(module.products):
            yield from _prefixed(f"FullyConnectedSteerableGeometricProductLayer_{i}", layer)
    elif isinstance(module, GeometricProductLayer):
        yield "WeightedCayley_0/weight", module.weight
        yield "MVLinear_0/weight", module.right.weight
        yield "GradeNorm_0/factor", module.norm.factor
        if module.linear is not None:
            yield "MVLinear_1/weight", module.linear.weight
            if module.linear.bias is not None:
                yield "MVLinear_1/bias", module.linear.bias
    else:
        raise TypeError(f"no published counterpart is known for {type(module).__name__}")


def _prefixed(prefix: str, module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    for name, parameter in _names(module):
        yield f"{prefix}/{name}", parameter
