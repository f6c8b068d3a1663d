"""The tensors of a network as files keep them: plain names and values, and their checksum."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize
from torch.nn.utils.weight_norm import WeightNorm

COMPILED = "_orig_mod."  #: what torch.compile puts into the names of tensors


@torch.no_grad()
def plain_weights(network: nn.Module) -> dict[str, Tensor]:
    """The state of a network as if it had just been built, neither compiled nor parametrised.

    Tensors that are computed from others, by ``torch.nn.utils.parametrize`` or ``weight_norm``,
    take the place of those others.
    """
    state = dict(network.state_dict())
    for prefix, module in network.named_modules(remove_duplicate=False):
        dot = f"{prefix}." if prefix else ""
        computed: dict[str, Tensor] = {}
        if parametrize.is_parametrized(module):
            computed.update({name: getattr(module, name) for name in module.parametrizations})
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm):
                computed[hook.name] = hook.compute_weight(module)
                del state[f"{dot}{hook.name}_g"], state[f"{dot}{hook.name}_v"]
        parts = tuple(f"{dot}parametrizations.{name}." for name in computed)
        state = {name: tensor for name, tensor in state.items() if not name.startswith(parts)}
        state.update({f"{dot}{name}": tensor for name, tensor in computed.items()})
    return {name.replace(COMPILED, ""): tensor for name, tensor in state.items()}


def to_file(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors that safetensors can write: on the CPU, complex ones as pairs of real ones."""
    return {
        name: (torch.view_as_real(t) if t.is_complex() else t).detach().cpu().contiguous()
        for name, t in weights.items()
    }


def from_file(tensors: Mapping[str, Tensor], network: nn.Module) -> dict[str, Tensor]:
    """Inverse of `to_file`, for a network of which some tensors are complex."""
    pairs = {name for name, t in network.state_dict().items() if t.is_complex()}
    return {name: torch.view_as_complex(t) if name in pairs else t for name, t in tensors.items()}


def checksum(metadata: Mapping[str, str], tensors: Mapping[str, Tensor]) -> str:
    """A hash of texts and of tensors: names, types, shapes, and every bit."""
    digest = hashlib.blake2b(repr(sorted(metadata.items())).encode(), digest_size=16)
    for name, tensor in sorted(tensors.items()):
        digest.update(f"\n{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
