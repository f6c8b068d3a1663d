"""Fields, forecasters with given networks, and a tiny run."""

import torch
from torch import nn

from cscnn._util.jsonform import write_json
from cscnn.data import Background, Coarse, Field, FieldFile
from cscnn.data.generate import generate, plans
from cscnn.forecasting import Forecaster, Run, Task, TrainConfig, Units
from cscnn.forecasting.evaluation.resample import positions
from cscnn.forecasting.training.config import DataConfig
from cscnn.kernels import Implicit

KERNEL = Implicit(num_layers=2, hidden_dim=4)
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


def forecaster(name, task, units=None, coarsen=1, **options):
    """A forecaster with random weights, in float64."""
    options = {**TINY, **options}
    if name == "cs_resnet":
        options.setdefault("kernel", KERNEL)
    torch.manual_seed(0)
    return Forecaster.build(name, task, units, coarsen, **options).double().eval()


class Function(nn.Module):
    """A network that is a given function of the frames; it does not see the constants."""

    def __init__(self, task, function):
        super().__init__()
        self.task, self.function = task, function

    def forward(self, x):
        return self.function(x[:, : self.task.in_channels])


def stub(task, function, units=None, coarsen=1):
    """A forecaster whose network is a given function of the frames."""
    return Forecaster(Function(task, function), task, units, coarsen).double()


def blobs(task, grid, width=2.5, batch=2):
    """A smooth field of Gaussian bells about the centre, in the components with data."""
    generator = torch.Generator().manual_seed(1)
    points = positions(grid, task.grid_spacing)
    half = min(n * h for n, h in zip(grid, task.grid_spacing, strict=True)) / 2
    x = torch.zeros(batch, task.in_channels, *grid, 2**task.dim, dtype=torch.float64)
    for _ in range(12):
        centre = (torch.rand(task.dim, generator=generator, dtype=torch.float64) - 0.5) * half
        shape = (batch, task.in_channels, *(1,) * task.dim, 2**task.dim)
        size = torch.randn(shape, generator=generator, dtype=torch.float64)
        x += size * (-((points - centre) ** 2).sum(-1) / (2 * width**2)).exp()[..., None]
    return task.pack(task.unpack(x))


def make_run(folder, simulator, name="cs_resnet", coarsen=1, splits=("train", "test"), **frames):
    """A folder as training leaves it, with untrained weights.

    Args:
        folder: where to put data and run.
        simulator: of the data.
        name: of the network.
        coarsen: see `Forecaster`.
        splits: of the data.
        frames: ``frames_in`` and ``frames_out``.
    """
    counts = {"train": 2, "test": 3}
    files = plans(simulator, folder / "data", {split: counts[split] for split in splits})
    generate(files)
    run = folder / "run"
    run.mkdir()
    with FieldFile(files[0].path) as source:
        units = Units.fit(source)
        task = Task.from_header(Coarse(source, coarsen).header, **frames)
    Forecaster.build(name, task, units, coarsen, **TINY).save(run / "model.safetensors")
    paths = {plan.split: str(plan.path) for plan in files}
    config = TrainConfig(out=str(run), data=DataConfig(**paths, coarsen=coarsen, **frames))
    write_json(run / "config.json", config)
    return Run(run)
