"""What the examples on point sets share: a network ready to learn, and the loop it learns in."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from cscnn import CliffordAlgebra
from cscnn._util.progress import Bar
from cscnn.networks import CSPointNet, Neighbourhood, calibrate_, noise_edges

POINTS = 256  # of the noise that sets initial scales


def point_network(
    algebra: CliffordAlgebra, c_in: int, c_out: int, neighbourhood: Neighbourhood, **options: Any
) -> CSPointNet:
    """A `CSPointNet` with fresh weights, whose initial scales are set by a pass of noise."""
    net = CSPointNet(algebra, c_in, c_out, neighbourhood=neighbourhood, **options)
    generator = torch.Generator().manual_seed(0)
    noise, other = torch.randn(2, POINTS, c_in, algebra.n_blades, generator=generator)
    calibrate_(net, noise, noise_edges(algebra.dim, POINTS, neighbourhood), other=other)
    return net


def fit(name: str, network: nn.Module, loss: Callable[[], Tensor], steps: int, rate: float) -> None:
    """Adam with a one-cycle schedule.

    Args:
        name: for the progress bar.
        network: whose parameters learn.
        loss: draws a batch and returns its loss.
        steps: number of batches.
        rate: largest learning rate.
    """
    optimiser = torch.optim.Adam(network.parameters(), rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, steps)
    for _ in Bar("steps").over(name, range(steps)):
        optimiser.zero_grad()
        loss().backward()
        optimiser.step()
        schedule.step()
