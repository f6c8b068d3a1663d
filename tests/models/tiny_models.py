"""Small models of every kind, and inputs for them."""

import torch

from cscnn.models import TASKS, Field, Task, build

GRIDS = {2: (8, 12), 3: (4, 8, 8), 4: (4, 4, 8, 4)}
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


def periodic(metric):
    """A task on a torus, without backgrounds: vectors and bivectors, in spacetime the latter."""
    euclidean = len(set(metric)) == 1
    plane = [Field("s", 0), Field("v", 1)]
    space = [Field("e", 1), Field("b", 2)]
    fields = (plane if len(metric) == 2 else space) if euclidean else [Field("f", 2)]
    return Task("periodic", metric, tuple(fields), 2, boundary="periodic")


def briefly_trained(model, grid):
    """Three steps of Adam."""
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(3):
        optimiser.zero_grad()
        x = sample(model.task, dtype=torch.float64, grid=grid)
        (model(x) - 0.5 * x[:, : model.task.out_channels]).square().mean().backward()
        optimiser.step()
    return model
