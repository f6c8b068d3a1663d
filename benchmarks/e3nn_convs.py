"""Convolutions of e3nn between multivectors of R^3, in its two usual forms and a third.

The grades of Cl(3, 0) are the irreps 0e, 1o, 1e and 0o of O(3). Spherical harmonics up to l = 2
span all kernels between them: 1o ⊗ 1o reaches l = 2 and no further. All forms need the package
e3nn when they are built.

`FullyConnected` and `PerFeature` are as expressive as a complete kernel: each pair of channels has
radial functions of its own, mixed from as many. In `PerChannel`, the cheapest, those of different
output channels are the same up to factors.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from cscnn.geometry import Edges

HIDDEN = 16  #: usual width of the radial network, and number of its rings
GRADES = ("0e", "1o", "1e", "0o")


class E3nnConv(nn.Module):
    """What all forms share: harmonics of the edges, a radial network, the sum over edges.

    Features (points, channels, 8) are read in the memory order of e3nn, i.e. all scalars of a point
    first. Noise is the same in any order.

    Args:
        channels: multivectors per point.
        radius: where the radial embedding ends.
        hidden: width of the radial network.
    """

    product: Any
    radial: Any

    def __init__(self, channels: int, radius: float, hidden: int = HIDDEN):
        from e3nn import o3

        super().__init__()
        self.radius = radius
        self.hidden = hidden
        self.irreps = o3.Irreps("+".join(f"{channels}x{name}" for name in GRADES))
        self.harmonics = o3.Irreps.spherical_harmonics(2)

    def radial_network(self, outputs: int) -> Any:
        """Makes the weights of the product from the length of an edge."""
        from e3nn.nn import FullyConnectedNet

        return FullyConnectedNet([HIDDEN, self.hidden, outputs], torch.nn.functional.silu)

    def paths(self) -> list[tuple[int, int, Any]]:
        """Which features and harmonics make an irrep of the output."""
        paths = [
            (i, j, irrep)
            for i, (_, feature) in enumerate(self.irreps)
            for j, (_, harmonic) in enumerate(self.harmonics)
            for irrep in feature * harmonic
            if irrep in self.irreps
        ]
        # e3nn is fastest if equal irreps are neighbours: number the outputs in sorted order.
        return sorted(paths, key=lambda path: path[2])

    def messages(self, x: Tensor, harmonics: Tensor, radial: Tensor) -> Tensor:
        """What an edge carries, from the sender's features (E, numbers)."""
        made: Tensor = self.product(x, harmonics, radial)
        return made

    def aggregate(self, x: Tensor, edges: Edges) -> Tensor:
        """Products of the senders' features with harmonics, summed for each receiver."""
        from e3nn import o3
        from e3nn.math import soft_one_hot_linspace

        rings = soft_one_hot_linspace(
            edges.position.norm(dim=-1), 0.0, self.radius, HIDDEN, basis="gaussian", cutoff=False
        )
        harmonics = o3.spherical_harmonics(
            self.harmonics, edges.position, normalize=True, normalization="component"
        )
        messages = self.messages(x.flatten(1)[edges.sender], harmonics, self.radial(rings))
        y = messages.new_zeros(edges.n_receivers, messages.shape[1])
        return y.index_add(0, edges.receiver, messages)


class FullyConnected(E3nnConv):
    """Every output channel from every input channel on every edge, with weights of its own.

    The form of e3nn's introductory examples.
    """

    def __init__(self, channels: int, radius: float, hidden: int = HIDDEN):
        from e3nn import o3

        super().__init__(channels, radius, hidden)
        self.product = o3.FullyConnectedTensorProduct(
            self.irreps, self.harmonics, self.irreps, shared_weights=False
        )
        self.radial = self.radial_network(self.product.weight_numel)

    def forward(self, x: Tensor, edges: Edges) -> Tensor:
        return self.aggregate(x, edges).view_as(x)


class PerChannel(E3nnConv):
    """Channel by channel on the edges, then a linear map of channels on the points.

    Its cheapest form: on an edge a weight for each path and input channel (``"uvu"``), and channels
    are mixed once for each receiver. Networks such as NequIP use it.
    """

    def __init__(self, channels: int, radius: float, hidden: int = HIDDEN):
        from e3nn import o3

        super().__init__(channels, radius, hidden)
        paths = self.paths()
        messages = o3.Irreps([(channels, irrep) for _, _, irrep in paths])
        instructions: list[tuple[Any, ...]] = [
            (i, j, out, "uvu", True) for out, (i, j, _) in enumerate(paths)
        ]
        self.product = o3.TensorProduct(
            self.irreps, self.harmonics, messages, instructions,
            internal_weights=False, shared_weights=False,
        )  # fmt: skip
        self.radial = self.radial_network(self.product.weight_numel)
        self.mix = o3.Linear(messages.simplify(), self.irreps)

    def forward(self, x: Tensor, edges: Edges) -> Tensor:
        y: Tensor = self.mix(self.aggregate(x, edges))
        return y.view_as(x)


class PerFeature(E3nnConv):
    """Channel by channel with each radial function on the edges, then a linear map on the points.

    What `PerChannel` becomes if it is to be as expressive as a complete kernel: an edge has a
    message for each path, input channel and radial function (``"uvuv"``).
    """

    def __init__(self, channels: int, radius: float, hidden: int = HIDDEN):
        from e3nn import o3

        super().__init__(channels, radius, hidden)
        paths = self.paths()
        messages = o3.Irreps([(channels * hidden, irrep) for _, _, irrep in paths])
        self.product = o3.TensorProduct(
            self.irreps, o3.Irreps([(hidden, irrep) for _, irrep in self.harmonics]), messages,
            [(i, j, out, "uvuv", False) for out, (i, j, _) in enumerate(paths)],
        )  # fmt: skip
        self.radial = self.radial_network(hidden)
        self.mix = o3.Linear(messages.simplify(), self.irreps)

    def messages(self, x: Tensor, harmonics: Tensor, radial: Tensor) -> Tensor:
        parts = [radial[:, :, None] * harmonics[:, None, span] for span in self.harmonics.slices()]
        made: Tensor = self.product(x, torch.cat([part.flatten(1) for part in parts], 1))
        return made

    def forward(self, x: Tensor, edges: Edges) -> Tensor:
        y: Tensor = self.mix(self.aggregate(x, edges))
        return y.view_as(x)
