"""The tensors of a network as files keep them: plain names and values, and their checksum."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from itertools import chain

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm

from cscnn._util.torch_private import cast_, forward_hooks

COMPILED = "_orig_mod."  #: what torch.compile puts into the names of tensors


@torch.no_grad()
def plain_weights(network: nn.Module) -> dict[str, Tensor]:
    """The state of a network as if it had just been built, neither compiled nor parametrised.

    Tensors that are computed from others, by ``torch.nn.utils.parametrize``, ``weight_norm``
    or ``spectral_norm``, take the place of those others.
    """
    state = dict(network.state_dict())
    for prefix, module in network.named_modules(remove_duplicate=False):
        dot = f"{prefix}." if prefix else ""
        computed: dict[str, Tensor] = {}
        if parametrize.is_parametrized(module):
            computed.update({name: getattr(module, name) for name in module.parametrizations})
        for hook in chain.from_iterable(hooks.values() for hooks in forward_hooks(module)):
            if isinstance(hook, WeightNorm):
                computed[hook.name] = hook.compute_weight(module)
                del state[f"{dot}{hook.name}_g"], state[f"{dot}{hook.name}_v"]
            elif isinstance(hook, SpectralNorm):
                computed[hook.name] = hook.compute_weight(module, do_power_iteration=False)
                for part in ("orig", "u", "v"):
                    del state[f"{dot}{hook.name}_{part}"]
        parts = tuple(f"{dot}parametrizations.{name}." for name in computed)
        state = {name: tensor for name, tensor in state.items() if not name.startswith(parts)}
        state.update({f"{dot}{name}": tensor for name, tensor in computed.items()})
    return {name.replace(COMPILED, ""): tensor for name, tensor in state.items()}


def to_file(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors that safetensors can write: on the CPU, complex ones as pairs of real ones.

    It refuses tensors that share memory, so all but the first of those are copied.
    """
    written, seen = {}, set()
    for name, t in weights.items():
        t = (torch.view_as_real(t) if t.is_complex() else t).detach().cpu().contiguous()
        memory = t.untyped_storage().data_ptr()
        written[name] = t.clone() if memory in seen else t
        seen.add(memory)
    return written


def check_weights(network: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Raise if a file has not the tensors of a network: it was written by another version."""
    expected = set(network.state_dict())
    missing, unknown = sorted(expected - set(tensors)), sorted(set(tensors) - expected)
    if missing or unknown:
        lists = [
            f"{len(names)} {kind}, the first {names[0]}"
            for kind, names in (("absent", missing), ("unknown", unknown))
            if names
        ]
        raise ValueError(
            f"its weights are not those of this network: {'; '.join(lists)}. The network has "
            "changed since: train it again, or read it with the version of cscnn that wrote it"
        )


def load_(network: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Inverse of `to_file`: give a network the tensors of a file, in their precision.

    Complex parameters stay complex, and parameters with several names stay one.
    """
    targets = network.state_dict(keep_vars=True)
    built = {name: t.dtype.to_real() for name, t in targets.items() if _is_float(t)}
    floating = {name: t.dtype for name, t in tensors.items() if t.is_floating_point()}
    changed = [dtype for name, dtype in floating.items() if dtype != built.get(name, dtype)]
    if changed:
        cast_(network, changed[0])  # for buffers that are not in files
    state: dict[str, Tensor] = {}
    values: dict[int, Tensor] = {}  # by the identity of what they replace
    for name, t in tensors.items():
        target = targets.get(name)
        if target is not None:
            t = torch.view_as_complex(t) if target.is_complex() else t
            t = nn.Parameter(t, target.requires_grad) if isinstance(target, nn.Parameter) else t
            t = values.setdefault(id(target), t)
        state[name] = t
    network.load_state_dict(state, assign=True)


def _is_float(t: Tensor) -> bool:
    return t.is_floating_point() or t.is_complex()


def checksum(metadata: Mapping[str, str], tensors: Mapping[str, Tensor]) -> str:
    """A hash of texts and of tensors: names, types, shapes, and every bit."""
    digest = hashlib.blake2b(repr(sorted(metadata.items())).encode(), digest_size=16)
    for name, tensor in sorted(tensors.items()):
        digest.update(f"\n{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
