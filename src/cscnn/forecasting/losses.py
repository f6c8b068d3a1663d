"""Losses: what training minimises, in the scaled units of the network.

A loss is a pure function (prediction, target, task, weights) -> number of two fields of
multivectors (batch, channels, *grid, blades), as the network predicts them. Only components with
data count. It is a mean over the samples of a batch, so that batches may be split. It treats the
components of a field alike: a symmetry of the grid that acts on prediction and target does not
change it. On points it must be made of mean squares over samples, which `Points.counted` weights.

Weights are those of fields, by name, 1 for fields that are not named. `weighted_mean` takes them.

A new loss is a function with a `loss` above it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from cscnn._util.checks import check_choice
from cscnn._util.registry import Registry
from cscnn._util.suggest import did_you_mean
from cscnn.forecasting.task import Task

Weights = Mapping[str, float] | None
Loss = Callable[[Tensor, Tensor, Task, Weights], Tensor]

#: `relative` takes smaller fields for as large as this, in units of the training data.
SMALLEST = 1e-2


LOSSES: Registry[Loss] = Registry("loss")  #: by name, filled by `loss`
ON_GRID = ("h1",)  #: losses that need the neighbours of a grid


def loss(function: Loss) -> Loss:
    """Decorator that registers a function as the loss of its name."""
    LOSSES.add(function.__name__, function)
    return function


def check_weights(weights: Weights, task: Task) -> None:
    """Raise unless weights of fields are of these fields, not negative and not all zero."""
    names = [f.name for f in task.fields]
    for name, weight in (weights or {}).items():
        if name not in names:
            raise ValueError(
                f"training.weights has a weight for {name!r}, but the fields of task {task.name} "
                f"are {', '.join(names)}" + did_you_mean(name, names, otherwise="")
            )
        if not 0 <= weight < math.inf:
            raise ValueError(f"the weight of {name} must be at least 0 and finite, got {weight}")
    if weights and not any(weights.get(name, 1.0) for name in names):
        raise ValueError(f"all fields have weight 0, got {dict(weights)}: nothing would be learned")


def check_loss(name: str, task: Task) -> None:
    """Raise unless a loss is there, and goes with the fields of a task."""
    get_loss(name)
    if name in ON_GRID and task.points is not None:
        others = ", ".join(other for other in LOSSES if other not in ON_GRID)
        raise ValueError(
            f"the loss {name} compares neighbours on a grid, but task {task.name} is on points: "
            f"choose from {others}"
        )


def weighted_mean(
    values: Mapping[str, Tensor], task: Task, weights: Weights, *, by_components: bool
) -> Tensor:
    """The mean over fields.

    Args:
        values: field name -> number.
        task: whose fields they are.
        weights: of the fields.
        by_components: a field counts as often as it has components, else once.
    """
    shares = {
        f.name: (weights or {}).get(f.name, 1.0)
        * (task.algebra.size(f.grade) if by_components else 1)
        for f in task.fields
    }
    norm = sum(shares.values())
    return torch.stack([share / norm * values[name] for name, share in shares.items()]).sum()


@loss
def mse(prediction: Tensor, target: Tensor, task: Task, weights: Weights = None) -> Tensor:
    """Mean square error of all components, as in the paper."""
    errors = task.unpack(prediction - target)
    squares = {name: x.square().mean() for name, x in errors.items()}
    return weighted_mean(squares, task, weights, by_components=True)


@loss
def relative(prediction: Tensor, target: Tensor, task: Task, weights: Weights = None) -> Tensor:
    """|prediction - target| / |target| of each sample and field, over its frames; their mean.

    Samples and fields count alike, however large they are. The norm is the root of the mean square
    over frames, space and components.
    """
    errors, truths = task.unpack(prediction - target), task.unpack(target)
    ratios = {
        name: (_size(errors[name]) / _size(x).clamp(min=SMALLEST)).mean()
        for name, x in truths.items()
    }
    return weighted_mean(ratios, task, weights, by_components=False)


@loss
def h1(prediction: Tensor, target: Tensor, task: Task, weights: Weights = None) -> Tensor:
    """Mean square error of all components, and of their derivatives in comparable units.

    For each sample and field with error e and target f it is

        |e|² + L² |∇e|²,  |∇e|² = sum over axes of the mean of ((e(x + h) - e(x)) / h)²,

    with differences of neighbours on the grid. L² = |f|² / |∇f|² is the length over which the
    target varies, at most the longest wave on the grid / 2π. So an error as rough as the target
    counts twice, a rougher one more.

    Squares are those of components, without signs of the metric. They are invariant under the
    symmetries of the grid; in the limit of a fine grid under O(p) × O(q), i.e. under rotations and
    reflections, but not under boosts.
    """
    error = prediction - target
    errors, truths = task.unpack(error), task.unpack(target)
    slopes, true_slopes = _slopes(error, task), _slopes(target, task)
    spacing = task.grid_spacing
    longest = max(n * h for n, h in zip(target.shape[2:-1], spacing, strict=True)) / (2 * math.pi)
    values = {}
    for name, e in errors.items():
        size = _mean_square(truths[name])
        slope = torch.maximum(true_slopes[name], size / longest**2).clamp(min=1e-30)
        values[name] = (_mean_square(e) + size / slope * slopes[name]).mean()
    return weighted_mean(values, task, weights, by_components=True)


def _slopes(x: Tensor, task: Task) -> dict[str, Tensor]:
    """|∇x|² of each field and sample of multivectors (batch, channels, *grid, blades)."""
    total = {f.name: x.new_zeros(len(x)) for f in task.fields}
    for axis, (h, mode) in enumerate(zip(task.grid_spacing, task.padding_mode, strict=True), 2):
        if x.shape[axis] < 2:
            continue
        around = torch.cat([x, x.narrow(axis, 0, 1)], axis) if mode == "circular" else x
        for name, difference in task.unpack(around.diff(dim=axis)).items():
            total[name] = total[name] + _mean_square(difference) / h**2
    return total


def _mean_square(x: Tensor) -> Tensor:
    """Of each sample, (batch,)."""
    return x.square().flatten(1).mean(1)


def _size(x: Tensor) -> Tensor:
    """Root mean square of each sample, (batch,); its gradient at zero is zero."""
    flat = x.flatten(1)
    return torch.linalg.vector_norm(flat, dim=1) / flat.shape[1] ** 0.5


def get_loss(name: str) -> Loss:
    """A loss by name, or an error that lists the names."""
    return LOSSES[check_choice("loss", name, tuple(LOSSES))]
