"""Networks without steerable kernels, for deployment."""

from __future__ import annotations

import copy

from torch import nn

from cscnn.conv import CliffordSteerableConv
from cscnn.conv.export import PlainFieldConv
from cscnn.networks.recipe import ATTRIBUTE


def plain_convolutions(network: nn.Module) -> nn.Module:
    """A copy in eval mode that is the same map, with torch's convolutions instead of ours."""
    copied = copy.deepcopy(network).eval()
    vars(copied).pop(ATTRIBUTE, None)  # it is no longer what that makes
    if isinstance(copied, CliffordSteerableConv):
        return PlainFieldConv(copied.export(), copied.algebra.n_blades)
    for parent in list(copied.modules()):
        for name, child in parent.named_children():
            if isinstance(child, CliffordSteerableConv):
                setattr(parent, name, PlainFieldConv(child.export(), child.algebra.n_blades))
    return copied
