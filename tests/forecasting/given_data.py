"""Data with all that can be given, and tasks and forecasters for them."""

import numpy as np
import torch
from torch import nn

from cscnn.data import Field, Given, Header
from cscnn.data.files import write
from cscnn.forecasting import Forecaster, Task, Units
from cscnn.kernels import Implicit

HEADER = Header(
    metric=(1, 1),
    axes=("x", "y"),
    spacing=(1.0, 1.0),
    boundary=("periodic", "periodic"),
    fields=(Field("smoke", 0), Field("velocity", 1)),
    frames=9,
    grid=(6, 6),
    given=(
        Given("stirring", 1, "forcing"),
        Given("normals", 1, "static"),
        Given("mask", 0, "static"),
        Given("viscosity", 0, "constant"),
        Given("wind", 1, "constant"),
    ),
    split="train",
)
TASK = Task.from_header(HEADER, frames_in=2)


def trajectory(seed, header=HEADER):
    rng = np.random.default_rng(seed)
    return {q.name: 3 * rng.standard_normal(header.shape(q.name)) + 1 for q in header.quantities}


def make_files(folder, header=HEADER, count=3, splits=("train", "valid", "test")):
    for offset, split in enumerate(splits):
        rows = (trajectory(offset * count + i, header) for i in range(count))
        write(folder / f"{split}.h5", header.replace(split=split), rows, range(count))
    return folder


def batch(header=HEADER, count=2, dtype=torch.float64):
    """All quantities of a few trajectories, fields and what is given."""
    rows = [trajectory(i, header) for i in range(count)]
    tensors = {n: torch.as_tensor(np.stack([r[n] for r in rows])).to(dtype) for n in rows[0]}
    names = {f.name for f in header.fields}
    fields = {n: x for n, x in tensors.items() if n in names}
    return fields, {n: x for n, x in tensors.items() if n not in names}


def forecaster(task=TASK, name="cs_resnet", units=None, **options):
    """With random weights, in float64, and scales that are not one."""
    scales = {q.name: 2.0 + i for i, q in enumerate((*task.fields, *task.given))}
    units = Units(scales, {"smoke": 0.5, "mask": 0.25}, scales) if units is None else units
    options = {"width": 2, "blocks": 1, "kernel_size": 3, **options}
    if name == "cs_resnet":
        options.setdefault("kernel", Implicit(num_layers=2, hidden_dim=4))
    torch.manual_seed(0)
    return Forecaster.build(name, task, units, **options).double().eval()


class Last(nn.Module):
    """A network that says what it is given at some channels."""

    def __init__(self, channels):
        super().__init__()
        self.channels = channels

    def forward(self, x):
        return x[:, self.channels]
