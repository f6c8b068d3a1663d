"""Fields, models without weights, and a tiny run."""

import json

import torch

from cscnn import models
from cscnn.data import FieldFile, Scaling, coarse_task
from cscnn.data.generate import generate, plans
from cscnn.evaluation.resample import positions
from cscnn.models import Background, Field, FieldModel, Task

KERNEL = {"num_layers": 2, "hidden_dim": 4}
TINY = {"width": 2, "blocks": 1, "kernel_size": 3}


def plane(n=24, boundary="open", **changes):
    """Scalar and vector in the plane, on a square of fixed size, with a constant vector."""
    values = {
        "frames_in": 2,
        "boundary": boundary,
        "spacing": (24 / n, 24 / n),
        "backgrounds": (Background("down", 1, (0.0, 0.5)),),
    }
    return Task("plane", (1, 1), (Field("smoke", 0), Field("wind", 1)), **{**values, **changes})


def network(name, task, **options):
    options = {**TINY, **options}
    if name == "cs_resnet":
        options.setdefault("kernel_options", KERNEL)
    torch.manual_seed(0)
    return models.build(name, task, **options).double().eval()


def blobs(task, grid, width=2.5, batch=2):
    """A smooth field of Gaussian bells about the centre, in the components with data."""
    generator = torch.Generator().manual_seed(1)
    where = positions(grid, task.grid_spacing)
    half = min(n * h for n, h in zip(grid, task.grid_spacing, strict=True)) / 2
    x = torch.zeros(batch, task.in_channels, *grid, 2**task.dim, dtype=torch.float64)
    for _ in range(12):
        centre = (torch.rand(task.dim, generator=generator, dtype=torch.float64) - 0.5) * half
        shape = (batch, task.in_channels, *(1,) * task.dim, 2**task.dim)
        size = torch.randn(shape, generator=generator, dtype=torch.float64)
        x += size * (-((where - centre) ** 2).sum(-1) / (2 * width**2)).exp()[..., None]
    return task.pack(task.unpack(x))


class Stub(FieldModel):
    """A given function of the input, without the backgrounds."""

    def __init__(self, task, function):
        super().__init__(task)
        self.function = function

    def compute(self, x):
        return self.function(x[:, : self.task.in_channels])


def make_run(folder, simulator, name="cs_resnet", coarsen=1, **changes):
    """A folder as training leaves it, with an untrained model."""
    splits = plans(simulator, folder / "data", {"train": 2, "test": 3})
    generate(splits)
    run = folder / "run"
    run.mkdir()
    with FieldFile(splits[0].path) as source:
        task = coarse_task(source.header, coarsen, **changes)
        scaling = Scaling.fit(source)
    model = models.build(name, task, **TINY)
    models.save(model, run / "model.safetensors")
    scaling.save(run / "scaling.json")
    config = {"data": {plan.split: str(plan.path) for plan in splits} | {"coarsen": coarsen}}
    (run / "config.json").write_text(json.dumps(config))
    return run
