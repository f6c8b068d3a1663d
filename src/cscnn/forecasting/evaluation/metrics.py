"""How far a forecast is from the truth: pure functions of a field's physical components.

A field is a tensor (batch, frames, *space, components). All functions return one number for each
sample and frame, (batch, frames), in float64. Components are pooled, so that the result does not
depend on the direction of the axes. Where a relative error has no meaning, because the target is
zero or constant in space, it is NaN; `mean` leaves those out.

A new metric is a function with a `metric` above it. Evaluations, tables and reports then have it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor

from cscnn._util.registry import Registry

#: Squares below this part of the target's are rounding of single precision, not a signal.
NEGLIGIBLE = 1e-12

Function = TypeVar("Function", bound=Callable[..., Tensor])
Score = Callable[[Tensor, Tensor], Tensor]  #: (prediction, target) -> (batch, frames)


@dataclass(frozen=True)
class Metric:
    """A registered metric.

    Attributes:
        function: (prediction, target, **needs) -> (batch, frames).
        title: what reports call it.
        needs: which arguments it takes beside: ``"spacing"`` and ``"periodic"``, those of each axis
            of space, which only grids have; ``"weights"`` of points, by which means over space
            count them, or None.
        pooled: the number for all fields is the mean over their components; else, for metrics
            without units, over fields.
        percent: reports show it in per cent.
        better: -1 if low is good, 1 if high is.
    """

    function: Callable[..., Tensor]
    title: str
    needs: tuple[str, ...] = ()
    pooled: bool = False
    percent: bool = False
    better: int = -1


#: By name, filled by `metric`.
METRICS: Registry[Metric] = Registry("metric", source=lambda entry: entry.function)


def metric(title: str, **options: Any) -> Callable[[Function], Function]:
    """Decorator that registers a function as the metric of its name; arguments as of `Metric`."""

    def add(function: Function) -> Function:
        METRICS.add(function.__name__, Metric(function, title, **options))
        return function

    return add


def on_grid(**space: Sequence[Any]) -> dict[str, Score]:
    """All metrics by name, for data on a grid.

    Args:
        space: ``spacing`` and ``periodic`` of each axis of space.
    """
    return {
        name: partial(
            entry.function, **{need: space[need] for need in entry.needs if need in space}
        )
        for name, entry in METRICS.items()
    }


def on_points(weights: Tensor | None = None) -> dict[str, Score]:
    """All metrics by name that need no grid, for data on points.

    Args:
        weights: (points,), by which they count in means over space.
    """
    return {
        name: partial(METRICS[name].function, weights=weights)
        if "weights" in METRICS[name].needs
        else METRICS[name].function
        for name in on_points_names()
    }


def on_points_names() -> tuple[str, ...]:
    """Metrics that need no grid."""
    return tuple(name for name, entry in METRICS.items() if set(entry.needs) <= {"weights"})


@metric("mean square error", pooled=True, needs=("weights",))
def mse(prediction: Tensor, target: Tensor, weights: Tensor | None = None) -> Tensor:
    """Mean square of the error over space and components."""
    p, t = _pair(prediction, target)
    return space_mean((p - t).square(), weights)


@metric("relative L² error", percent=True, needs=("weights",))
def relative_l2(prediction: Tensor, target: Tensor, weights: Tensor | None = None) -> Tensor:
    """|prediction - target| / |target|."""
    p, t = _pair(prediction, target)
    return _ratio(space_mean((p - t).square(), weights), space_mean(t.square(), weights)).sqrt()


@metric("error by standard deviation (VRMSE)", needs=("weights",))
def vrmse(prediction: Tensor, target: Tensor, weights: Tensor | None = None) -> Tensor:
    """Root mean square error over the target's standard deviation about its mean over space.

    The definition of The Well, with the components of a field pooled. A forecast by the mean of the
    target has 1.
    """
    p, t = _pair(prediction, target)
    variance = space_mean(_about_mean(t, weights).square(), weights)
    size = space_mean(t.square(), weights)
    return _ratio(space_mean((p - t).square(), weights), variance, size).sqrt()


@metric("correlation", better=1, needs=("weights",))
def correlation(prediction: Tensor, target: Tensor, weights: Tensor | None = None) -> Tensor:
    """Pearson's correlation of prediction and target, each about its mean over space."""
    p, t = _pair(prediction, target)
    a, b = _about_mean(p, weights), _about_mean(t, weights)
    squares = [space_mean(x.square(), weights) for x in (a, b)]
    known = squares[1] > NEGLIGIBLE * space_mean(t.square(), weights)
    value = space_mean(a * b, weights) / (squares[0] * squares[1]).sqrt().clamp(min=1e-300)
    return torch.where(known, value, math.nan)


def spectrum(
    field: Tensor, spacing: Sequence[float] | None = None, periodic: Sequence[bool] | None = None
) -> Tensor:
    """Power in shells of equal wave number, summed over components: (batch, frames, shells).

    Shells are as wide as the largest of the axes' lowest wave numbers, and end where the first axis
    cannot resolve them. Axes that are not periodic are faded out at their ends (Hann).

    Args:
        field: (batch, frames, *space, components).
        spacing: distance of points, for each axis of space.
        periodic: which axes are periodic; by default all.
    """
    space = field.shape[2:-1]
    spacing = spacing or (1.0,) * len(space)
    periodic = (True,) * len(space) if periodic is None else periodic
    if not len(spacing) == len(periodic) == len(space):
        raise ValueError(
            f"expected a spacing and a boundary for each of {len(space)} axes of space, got "
            f"{tuple(spacing)} and {tuple(periodic)}"
        )
    x = wide(field)
    for axis, (n, wraps) in enumerate(zip(space, periodic, strict=True)):
        if not wraps:
            fade = torch.hann_window(n + 2, periodic=False, dtype=x.dtype, device=x.device)[1:-1]
            x = x * fade.reshape(-1, *(1,) * (len(space) - axis))
    axes = tuple(range(2, 2 + len(space)))
    power = torch.fft.fftn(x, dim=axes).abs().square().sum(-1).flatten(2)
    waves = [
        torch.fft.fftfreq(n, h, dtype=x.dtype, device=x.device)
        for n, h in zip(space, spacing, strict=True)
    ]
    size = sum(k.square() for k in torch.meshgrid(*waves, indexing="ij"))
    assert isinstance(size, Tensor)
    width = max(1 / (n * h) for n, h in zip(space, spacing, strict=True))
    shells = int(min(0.5 / h for h in spacing) / width + 1e-9) + 1
    number = (size.sqrt() / width + 0.5 - 1e-9).floor().long().flatten()
    kept = number < shells
    result = x.new_zeros(*power.shape[:2], shells)
    return result.index_add_(2, number[kept], power[:, :, kept])


@metric("error of the spectrum", needs=("spacing", "periodic"))
def spectrum_error(
    prediction: Tensor,
    target: Tensor,
    spacing: Sequence[float] | None = None,
    periodic: Sequence[bool] | None = None,
) -> Tensor:
    """Mean over shells of |P - T| / (P + T) between the power spectra P and T: from 0 to 1.

    All scales count equally: a blurred forecast has a large error here, and a small mean square
    error. Shells in which both have no power to speak of are left out.
    """
    p, t = (spectrum(x, spacing, periodic) for x in _pair(prediction, target))
    floor = NEGLIGIBLE * t.sum(-1, keepdim=True)
    counts = (p > floor) | (t > floor)
    difference = torch.where(counts, (p - t).abs() / (p + t).clamp(min=1e-300), 0.0)
    number = counts.sum(-1)
    return torch.where(number > 0, difference.sum(-1) / number.clamp(min=1), math.nan)


def scores(
    prediction: Mapping[str, Tensor],
    target: Mapping[str, Tensor],
    functions: Mapping[str, Score],
) -> dict[str, dict[str, Tensor]]:
    """Metrics of all fields: field -> metric -> (batch, frames).

    Args:
        prediction, target: field name -> (batch, frames, *space, components).
        functions: metric name -> function.
    """
    return {
        field: {
            name: function(prediction[field], target[field]) for name, function in functions.items()
        }
        for field in target
    }


def total(
    fields: Mapping[str, Mapping[str, Tensor]], components: Mapping[str, int]
) -> dict[str, Tensor]:
    """One number for all fields: metric -> (batch, frames).

    The mean square error is the mean over all components, as in the paper; see `Metric.pooled`.

    Args:
        fields: from `scores`.
        components: field name -> number of components.
    """
    share = sum(components.values())
    first = next(iter(fields.values()))
    result = {}
    for name in first:
        values = torch.stack([numbers[name] for numbers in fields.values()])
        if METRICS[name].pooled:
            weights = [components[field] / share for field in fields]
            result[name] = torch.einsum("f,fbt->bt", values.new_tensor(weights), values)
        else:
            result[name] = values.nanmean(0)
    return result


def has_float64(device: torch.device) -> bool:
    """Whether a device computes in float64; Apple's GPUs do not."""
    return device.type != "mps"


def wide(x: Tensor) -> Tensor:
    """In float64, on the CPU if need be."""
    return x.double() if has_float64(x.device) else x.cpu().double()


def mean(values: Tensor) -> float:
    """The mean without NaN; NaN if nothing is left."""
    return float(wide(values).nanmean())


def _pair(prediction: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    if prediction.shape != target.shape or target.dim() < 4:
        raise ValueError(
            "expected two fields (batch, frames, *space, components), got shapes "
            f"{tuple(prediction.shape)} and {tuple(target.shape)}"
        )
    return wide(prediction), wide(target)


def space_mean(x: Tensor, weights: Tensor | None = None) -> Tensor:
    """Mean over space and components: (batch, frames, *space, components) -> (batch, frames).

    Args:
        x: numbers.
        weights: (points,), if space is one axis of points that count by them.
    """
    if weights is None:
        return x.flatten(2).mean(2)
    return x.mean(-1) @ (weights / weights.sum()).to(x)


def _about_mean(x: Tensor, weights: Tensor | None = None) -> Tensor:
    if weights is not None:
        return x - torch.einsum("btpc,p->btc", x, (weights / weights.sum()).to(x)).unsqueeze(2)
    return x - x.mean(tuple(range(2, x.dim() - 1)), keepdim=True)


def _ratio(error: Tensor, scale: Tensor, size: Tensor | None = None) -> Tensor:
    """error / scale, NaN where the scale is zero or rounding."""
    known = scale > (0 if size is None else NEGLIGIBLE * size)
    return torch.where(known, error / scale.clamp(min=1e-300), math.nan)
