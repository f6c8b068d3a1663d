"""`ParticleNet`: forecasts of charged particles by a `CSPointNet`."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from cscnn import CliffordAlgebra
from cscnn.geometry import Edges
from cscnn.kernels import Complete
from cscnn.networks import CSPointNet
from cscnn.networks.blocks import split_width
from cscnn.networks.pointnet import Neighbourhood
from cscnn.nn import MVLinear
from experiments.nbody.simulate import Particles

#: Typical distances of particles, which kernels see as 1.
RADIUS = 4.0


class ParticleNet(nn.Module):
    """Positions of particles after a unit of time: x + v + a vector of a `CSPointNet`.

    Each particle is a point that all others of its set send to. Products of two charges are made by
    products of features: the network is given the charges of the points. Forces between particles
    do not move their centre, so the network does not either. It commutes with all isometries of
    space and with changes of the observer's velocity, as forces do that are not clipped:
    f(R x + t, R v + u, q) = R f(x, v, q) + t + u.

    Args:
        width, blocks, options: of the `CSPointNet`.
        moves: move the particles between its blocks, so that later kernels see where they will be.
    """

    def __init__(self, width: int = 16, blocks: int = 4, *, moves: bool = False, **options: Any):
        super().__init__()
        self.algebra = CliffordAlgebra((1, 1, 1))
        near = Neighbourhood(radius=RADIUS, neighbours=4)
        options = {"kernel": Complete(), "neighbourhood": near, **options}
        self.net = CSPointNet(self.algebra, 4, 1, width, blocks, **options)
        outer, _ = split_width(width)
        moved = [
            MVLinear(self.algebra, outer, 1, bias=False) for _ in range(blocks - 1 if moves else 0)
        ]
        for move in moved:  # straight on at first
            nn.init.zeros_(move.weight)
        self.moves = nn.ModuleList(moved)

    def forward(self, particles: Particles) -> Tensor:
        """Particles -> positions (sets, particles, 3)"""
        x, v, charges = particles
        pairs = all_pairs(*charges.shape)
        y = self.net.embedding(self.features(particles).flatten(0, 1))
        points, bent = x.flatten(0, 1), torch.zeros_like(x).flatten(0, 1)
        edges = Edges.from_edge_index(pairs, points)
        for i, block in enumerate(self.net.blocks):
            y = block(y, edges)
            if i < len(self.moves):
                bent = bent + self._vector(self.moves[i](y))
                straight = (i + 1) / len(self.net.blocks) * v.flatten(0, 1)
                edges = Edges.from_edge_index(pairs, points + straight + bent)
        change = (bent + self._vector(self.net.output(y))).view_as(x)
        return x + v + change - change.mean(1, keepdim=True)

    def _vector(self, y: Tensor) -> Tensor:
        return self.algebra.grade(y[:, 0], 1)

    def features(self, particles: Particles) -> Tensor:
        """(sets, particles, 4, 8): position and velocity as seen from the centre, both times the
        charge; with the charge, two squares, and the charge times one of these as scalars.
        """
        x, v, charges = particles
        q = charges.unsqueeze(-1)
        centred = (x - x.mean(1, keepdim=True)) / RADIUS
        v = v - v.mean(1, keepdim=True)
        vectors = torch.stack([centred, v, q * centred, q * v], 2)
        speed = v.square().sum(-1)
        scalars = torch.stack([charges, speed, centred.square().sum(-1), charges * speed], 2)
        return self.algebra.embed(vectors, 1) + self.algebra.embed(scalars.unsqueeze(-1), 0)


@cache
def all_pairs(sets: int, particles: int) -> Tensor:
    """(2, pairs): each particle sends to each other one of its set."""
    one = torch.tensor([(i, j) for j in range(particles) for i in range(particles) if i != j])
    first = particles * torch.arange(sets)
    return (one.T[:, None] + first[:, None]).flatten(1)
