"""Losses: what training minimises, in the scaled units of the network.

A loss is a pure function (prediction, target, task) -> number of two fields of multivectors (batch,
channels, *grid, blades), as the network predicts them. Only components with data count. It is a
mean over the samples of a batch, so that batches may be split. It treats the components of a field
alike: a symmetry of the grid that acts on prediction and target does not change it.

A new loss is a function with a `loss` above it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from cscnn._util.checks import check_choice
from cscnn._util.registry import Registry
from cscnn.forecasting.task import Task

Loss = Callable[[Tensor, Tensor, Task], Tensor]

#: `relative` takes smaller fields for as large as this, in units of the training data.
SMALLEST = 1e-2


LOSSES: Registry[Loss] = Registry("loss")  #: by name, filled by `loss`


def loss(function: Loss) -> Loss:
    """Decorator that registers a function as the loss of its name."""
    LOSSES.add(function.__name__, function)
    return function


@loss
def mse(prediction: Tensor, target: Tensor, task: Task) -> Tensor:
    """Mean square error of all components, as in the paper."""
    return task.output_type.extract(prediction - target).square().mean()


@loss
def relative(prediction: Tensor, target: Tensor, task: Task) -> Tensor:
    """|prediction - target| / |target| of each sample and field, over its frames; their mean.

    Samples and fields count alike, however large they are. The norm is the root of the mean square
    over frames, space and components.
    """
    errors, truths = task.unpack(prediction - target), task.unpack(target)
    ratios = [_size(errors[name]) / _size(x).clamp(min=SMALLEST) for name, x in truths.items()]
    return torch.stack(ratios).mean()


def _size(x: Tensor) -> Tensor:
    """Root mean square of each sample, (batch,); its gradient at zero is zero."""
    flat = x.flatten(1)
    return torch.linalg.vector_norm(flat, dim=1) / flat.shape[1] ** 0.5


def get_loss(name: str) -> Loss:
    """A loss by name, or an error that lists the names."""
    return LOSSES[check_choice("loss", name, tuple(LOSSES))]
