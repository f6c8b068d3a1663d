"""Small models of every kind, and inputs for them."""

import torch

from cscnn.models import TASKS, build

GRIDS = {2: (8, 12), 3: (4, 8, 8), 4: (4, 4, 4, 4)}
KERNEL = {"num_layers": 2, "hidden_dim": 4}
OPTIONS = {
    "cs_resnet": {"blocks": 2, "kernel_size": 3, "kernel_options": KERNEL},
    "cs_unet": {"kernel_size": 3, "kernel_options": KERNEL},
    "steerable_resnet": {"blocks": 2, "kernel_size": 3},
    "resnet": {"blocks": 2, "kernel_size": 3},
    "clifford_resnet": {"blocks": 2, "kernel_size": 3},
    "fno": {"modes": 4, "layers": 2},
    "gfno": {"modes": 2, "layers": 2},
}
UNSUPPORTED = {
    ("steerable_resnet", "maxwell_spacetime"): "is for O",
    ("steerable_resnet", "maxwell_spacetime4d"): "is for O",
    ("resnet", "maxwell_spacetime4d"): "1 to 3 dimensions",
    ("clifford_resnet", "maxwell_spacetime4d"): "2 and 3 dimensions",
    ("fno", "maxwell_spacetime4d"): "1 to 3 dimensions",
    ("gfno", "maxwell3d"): "symmetries of the square",
    ("gfno", "maxwell_spacetime"): "symmetries of the square",
    ("gfno", "maxwell_spacetime4d"): "symmetries of the square",
}
OWN = tuple(OPTIONS)
PAIRS = [(n, t) for n in OWN for t in TASKS]
SERVED = [pair for pair in PAIRS if pair not in UNSUPPORTED]


def tiny(name, task, width=2, **options):
    return build(name, task, width=width, **{**OPTIONS[name], **options})


def sample(task, batch=1, dtype=torch.float32, grid=None):
    """Noise in the components that the task has."""
    grid = grid or GRIDS[task.dim]
    x = torch.zeros(batch, task.in_channels, *grid, 2**task.dim, dtype=dtype)
    x[..., list(task.blades)] = torch.randn_like(x[..., list(task.blades)])
    return x
