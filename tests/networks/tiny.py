"""Small networks of every kind, on every kind of space, and inputs for them."""

from dataclasses import dataclass
from importlib.util import find_spec

import pytest
import torch

from cscnn import CliffordAlgebra
from cscnn.networks import Calibrated, FieldType, Grid, build, calibrate_

KERNEL = {"name": "implicit", "num_layers": 2, "hidden_dim": 4}
COMPLETE = {"name": "complete", "hidden_dim": 4}
OPTIONS = {
    "cs_resnet": {"blocks": 2, "kernel_size": 3, "kernel": KERNEL},
    "cs_unet": {"kernel_size": 3, "kernel": KERNEL},
    "steerable_resnet": {"blocks": 2, "kernel_size": 3},
    "resnet": {"blocks": 2, "kernel_size": 3},
    "unet": {"multipliers": [1, 2], "blocks_per_level": 1},
    "convnext_unet": {"levels": 2, "blocks_per_level": 1, "kernel_size": 3},
    "clifford_resnet": {"blocks": 2, "kernel_size": 3},
    "fno": {"modes": 4, "layers": 2},
    "gfno": {"modes": 2, "layers": 2},
}
NEEDS = {"fno": "neuralop", "clifford_resnet": "cliffordlayers"}
OWN = tuple(OPTIONS)


@dataclass(frozen=True)
class Space:
    """A space with fields on it: input and output, the grid, and a size for tests."""

    input_type: FieldType
    output_type: FieldType
    grid: Grid
    shape: tuple[int, ...]

    @property
    def algebra(self):
        return self.input_type.algebra


def space(metric, known, predicted, shape, mode="zeros"):
    algebra = CliffordAlgebra(metric)
    types = FieldType(algebra, known), FieldType(algebra, predicted)
    return Space(*types, Grid(padding_mode=mode), shape)


#: Frames of a fluid with gravity, of light, and blocks of spacetime with a displacement.
SPACES = {
    "plane": space((1, 1), ((0, 1),) * 4 + ((1,),), ((0, 1),), (8, 12), "symmetric"),
    "space": space((1, 1, 1), ((1, 2),) * 4, ((1, 2),), (4, 8, 8)),
    "line": space((1, -1), ((0, 1), (0,), (1,)), ((0, 1), (0,)), (8, 12)),
    "spacetime": space((1, -1, -1), ((2,), (1,)), ((2,),), (4, 8, 8)),
    "spacetime4d": space((1, -1, -1, -1), ((2,), (1,)), ((2,),), (4, 4, 8, 4)),
}
#: The same on tori, without constants.
PERIODIC = {
    "plane": space((1, 1), ((0, 1),) * 2, ((0, 1),), (6, 6), "circular"),
    "space": space((1, 1, 1), ((1, 2),) * 2, ((1, 2),), (6, 6, 6), "circular"),
    "spacetime": space((1, -1, -1), ((2,),) * 2, ((2,),), (6, 6, 6), "circular"),
    "spacetime4d": space((1, -1, -1, -1), ((2,),) * 2, ((2,),), (3, 3, 3, 3), "circular"),
}
UNSUPPORTED = {
    ("steerable_resnet", "line"): "is for O",
    ("steerable_resnet", "spacetime"): "is for O",
    ("steerable_resnet", "spacetime4d"): "is for O",
    ("resnet", "spacetime4d"): "1 to 3 dimensions",
    ("unet", "spacetime4d"): "1 to 3 dimensions",
    ("convnext_unet", "spacetime4d"): "1 to 3 dimensions",
    ("clifford_resnet", "spacetime4d"): "2 and 3 dimensions",
    ("fno", "spacetime4d"): "1 to 3 dimensions",
}
SERVED = [(n, s) for n in OWN for s in SPACES if (n, s) not in UNSUPPORTED]


def need(name):
    """Skip a test of a network whose package is absent."""
    if name in NEEDS and find_spec(NEEDS[name]) is None:
        pytest.skip(f"{name} needs the package {NEEDS[name]}")


def tiny(name, on, width=2, **options):
    """A small network for a `Space`, calibrated if it can be."""
    need(name)
    network = build(
        name, on.input_type, on.output_type, on.grid, width=width, **{**OPTIONS[name], **options}
    )
    if isinstance(network, Calibrated):
        multiple = getattr(network, "grid_multiple", 2)
        shape = [multiple * -(-n // multiple) for n in on.shape]
        calibrate_(network, on.input_type.noise((2, *shape)), counted=on.output_type.mask)
    return network


def sample(on, batch=1, dtype=torch.float32, shape=None):
    """Noise in the components that carry data."""
    return on.input_type.noise((batch, *(shape or on.shape))).to(dtype)


def briefly_trained(network, on, shape):
    """Three steps of Adam."""
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
    for _ in range(3):
        optimiser.zero_grad()
        x = sample(on, dtype=torch.float64, shape=shape)
        (network(x) - 0.5 * x[:, : on.output_type.channels]).square().mean().backward()
        optimiser.step()
    return network
