"""Networks without steerable kernels, for deployment."""

from __future__ import annotations

import copy
from typing import TypeGuard

from torch import nn

from cscnn.conv import CliffordSteerableConv
from cscnn.conv.export import PlainFieldConv
from cscnn.networks.recipe import ATTRIBUTE


def plain_convolutions(network: nn.Module) -> nn.Module:
    """A copy in eval mode that is the same map, with torch's convolutions instead of ours.

    Convolutions with conditional kernels stay: they have another kernel for each field.
    """
    copied = copy.deepcopy(network).eval()
    vars(copied).pop(ATTRIBUTE, None)  # it is no longer what that makes
    if _is_plain(copied):
        return PlainFieldConv(copied.export(), copied.algebra.n_blades)
    for parent in list(copied.modules()):
        for name, child in parent.named_children():
            if _is_plain(child):
                setattr(parent, name, PlainFieldConv(child.export(), child.algebra.n_blades))
    return copied


def _is_plain(module: nn.Module) -> TypeGuard[CliffordSteerableConv]:
    """Whether it is one of our convolutions, and always with the same kernel."""
    return isinstance(module, CliffordSteerableConv) and not module.kernel.condition
