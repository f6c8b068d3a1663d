"""`ComponentsResNet`: a CS-ResNet that does not know that tensors are tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from cscnn import CliffordAlgebra
from cscnn.networks import CSResNet, register
from cscnn.networks.steerable import SIZES


class ComponentsResNet(CSResNet):
    """A CS-ResNet of multivectors that is fed the components of tensors as scalars.

    Each traceless component becomes a channel of its own, in which it is the scalar part. So the
    network commutes with translations, but with rotations only where there are no tensors.

    Args:
        algebra: multivectors with tensors.
        c_in, c_out: channels of these.
        width, blocks, options: as for `CSResNet`.
    """

    def __init__(
        self,
        algebra: CliffordAlgebra,
        c_in: int,
        c_out: int,
        width: int | Sequence[int] = 16,
        blocks: int = 8,
        **options: Any,
    ):
        plain = CliffordAlgebra(algebra.metric)
        each = 1 + algebra.n_blades - plain.n_blades  # channels that one becomes
        super().__init__(plain, each * c_in, each * c_out, width, blocks, **options)
        self.fields = c_out

    def forward(self, x: Tensor) -> Tensor:
        """(batch, c_in, *grid, components) -> (batch, c_out, *grid, components)"""
        blades, algebra = self.algebra.n_blades, self.algebra
        scalars = x[..., blades:].movedim(-1, 1).flatten(1, 2).unsqueeze(-1)
        y = super().forward(torch.cat([x[..., :blades], algebra.embed(scalars, 0)], 1))
        scalars = algebra.grade(y[:, self.fields :], 0).squeeze(-1)
        tensors = scalars.unflatten(1, (-1, self.fields)).movedim(1, -1)
        return torch.cat([y[:, : self.fields], tensors], -1)


def add_networks() -> None:
    """Register what the library does not have; when asked, so that imports change no tables."""
    register("cs_resnet_components", sizes=SIZES)(ComponentsResNet)
