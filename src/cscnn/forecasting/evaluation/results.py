"""What an evaluation finds: typed, with one JSON form."""

from __future__ import annotations

import io
import math
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cscnn._util.files import write_bytes
from cscnn._util.jsonform import from_json, read_json, to_json, write_json
from cscnn.forecasting.task import Task

FORMAT = 3  #: of evaluation.json; raised when names in it change their meaning


#: Name of a metric -> mean over windows and frames, see `cscnn.forecasting.evaluation.metrics`.
Errors = dict[str, float]


@dataclass(frozen=True)
class OneStepErrors:
    """Errors of one application of a forecaster.

    Attributes:
        total: of all fields together, see `Metric.pooled`.
        scaled_mse: mean square error in the units of the forecaster: the loss ``"mse"``.
        fields: of each field.
        persistence: of the persistence forecast, which repeats the last known frame.
    """

    total: Errors
    scaled_mse: float
    fields: dict[str, Errors]
    persistence: Errors


@dataclass(frozen=True)
class Spread:
    """Quantiles over trajectories, by step: a tenth is below ``low``, a tenth above ``high``."""

    low: list[float]
    high: list[float]


@dataclass(frozen=True)
class Curve:
    """Mean and quantiles over trajectories by step; NaN where `ErrorCurves` have it."""

    mean: list[float]
    low: list[float]
    high: list[float]


@dataclass(frozen=True)
class Curves:
    """A number of the forecasts and of the truth."""

    prediction: Curve
    target: Curve


@dataclass(frozen=True)
class PhysicalQuantity:
    """See `cscnn.forecasting.evaluation.quantities`.

    Attributes:
        title, formula: what it is.
        units: empty if the data do not tell theirs.
        known: of the last frame that the forecasts were given, the mean over trajectories.
        curves: by step.
    """

    title: str
    formula: str
    units: str
    known: float
    curves: Curves


@dataclass(frozen=True)
class LawResidual:
    """By how much forecasts and truth miss an equation, see `cscnn.data.laws.Residual.relative`.

    Attributes:
        meaning, equation: of the law.
        prediction: residual of the forecasts.
        target: of the truth on the same frames: errors of finite differences, or rounding.
        curves: both by step.
    """

    meaning: str
    equation: str
    prediction: float
    target: float
    curves: Curves | None = None


@dataclass(frozen=True, kw_only=True)
class ErrorCurves:
    """Errors by step, of one field or of all together.

    Attributes:
        mse, relative_l2, correlation: means over trajectories; NaN from the step on at which the
            first of them was given up.
        persistence: relative_l2 of the persistence forecast.
        spread: of each of these over trajectories, by name.
        correlation_frames: steps until the mean correlation falls below 0.8; None if it does not.
        persistence_frames: until the mean relative_l2 exceeds that of persistence; None if it
            does not.
        lifetimes: ``"correlation"`` and ``"persistence"`` -> the same for each trajectory.
    """

    mse: list[float]
    relative_l2: list[float]
    correlation: list[float]
    persistence: list[float]
    spread: dict[str, Spread] = field(default_factory=dict)
    correlation_frames: float | None
    persistence_frames: float | None = None
    lifetimes: dict[str, list[float | None]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RolloutErrors(ErrorCurves):
    """Errors by step of forecasts that are fed back, of all fields together.

    Attributes:
        steps: 1, 2, ...
        times: since the last known frame.
        correlation_time: ``correlation_frames`` in units of time.
        stable_steps: steps before the first trajectory was given up.
        stable: the same for each trajectory.
        fields: errors of each field.
        laws: residuals of the equations behind the data, over all steps before a trajectory was
            given up; none if none are known, or if the grid is too small for differences.
        quantities: physical ones of forecasts and truth, by name.
    """

    steps: list[int]
    times: list[float]
    correlation_time: float | None
    stable_steps: int
    stable: list[int]
    fields: dict[str, ErrorCurves] = field(default_factory=dict)
    laws: dict[str, LawResidual] = field(default_factory=dict)
    quantities: dict[str, PhysicalQuantity] = field(default_factory=dict)

    @property
    def lost(self) -> int:
        """Trajectories that were given up before the last step."""
        return sum(steps < len(self.steps) for steps in self.stable)


@dataclass(frozen=True)
class MotionErrors:
    """Violations |f(gx) - g f(x)| / |f(gx) + g f(x)| under transformations of one kind.

    Attributes:
        values: angles in degrees, or rapidities.
        errors: of the forecaster.
        floors: of the interpolation alone.
    """

    values: list[float]
    errors: list[float]
    floors: list[float]


@dataclass(frozen=True)
class ObserverErrors:
    """Errors, in physical units, of forecasts of the same events seen by other observers.

    Attributes:
        kind: ``"rotated"`` or ``"boosted"``.
        observers: coordinates of each, e.g. "(y, -x)", or rapidities.
        mse, relative_l2: for each observer. The first observer is that of the data.
        windows: how many each of them forecast, which may be fewer than for `OneStepErrors`; of
            boosted observers the number of solutions.
    """

    kind: str
    observers: list[str | float]
    mse: list[float]
    relative_l2: list[float]
    windows: int | None = None

    @property
    def worst(self) -> float:
        """Largest mean square error."""
        return max(self.mse)

    @property
    def mean(self) -> float:
        """Mean of the mean square errors."""
        return sum(self.mse) / len(self.mse)


@dataclass(frozen=True)
class SymmetryErrors:
    """How well a forecaster commutes with the symmetries of its task.

    Attributes:
        receptive_field: points that the output sees to each side, for each axis of a grid.
        interior: whether there are points from which no border is seen.
        group: of the kernels.
        translation, point_group: violations.
        rotation, boost: violations; None where there are none, or no room on the grid.
        observers: None where solutions are not known for other observers.
    """

    receptive_field: list[int]
    interior: bool
    group: str
    translation: float
    point_group: float
    rotation: MotionErrors | None = None
    boost: MotionErrors | None = None
    observers: ObserverErrors | None = None


@dataclass(frozen=True)
class Cost:
    """Speed and memory of forecasts."""

    windows_per_second: float
    batch: int
    peak_bytes: int
    parameters: int


@dataclass(frozen=True)
class ModelInfo:
    """Which network was measured."""

    name: str
    parameters: int
    options: dict[str, Any]


@dataclass(frozen=True)
class DataInfo:
    """On which data: the file, how many windows and rollouts, and the stride between frames.

    ``time_unit`` is that of all times, such as ``"s"``; empty if the file does not state it.
    """

    path: str
    split: str
    trajectories: int
    windows: int
    rollouts: int
    stride: int = 1
    time_unit: str = ""


@dataclass(frozen=True)
class Samples:
    """The rollout of one trajectory, for pictures.

    Attributes:
        known, target, prediction: field name -> (frames, *space, components).
        times: of the predicted frames, since the last known one.
        positions: (points, dim) of fields on points.
    """

    known: dict[str, np.ndarray]
    target: dict[str, np.ndarray]
    prediction: dict[str, np.ndarray]
    times: np.ndarray
    positions: np.ndarray | None = None

    @property
    def space(self) -> int:
        """Axes of space."""
        return next(iter(self.target.values())).ndim - 2

    def save(self, path: Path) -> None:
        """Write a file of arrays, whole or not at all."""
        arrays: dict[str, Any] = {"times": self.times}
        if self.positions is not None:
            arrays["positions"] = self.positions
        for part in ("known", "target", "prediction"):
            for name, array in getattr(self, part).items():
                arrays[f"{part}/{name}"] = array
        packed = io.BytesIO()
        np.savez_compressed(packed, **arrays)
        write_bytes(path, packed.getvalue())

    @classmethod
    def load(cls, path: Path, task: Task) -> Samples:
        """Read what `save` wrote, and check that it is of a task."""
        try:
            with np.load(path, allow_pickle=False) as stored:
                arrays = {name: np.asarray(stored[name]) for name in stored.files}
        except (ValueError, OSError, zipfile.BadZipFile) as error:
            raise ValueError(f"{path} is no file of arrays: {error}") from error
        parts: dict[str, dict[str, np.ndarray]] = {"known": {}, "target": {}, "prediction": {}}
        times = arrays.get("times", np.empty(0))
        for quantity in task.fields:
            for part, fields in parts.items():
                name = f"{part}/{quantity.name}"
                if name not in arrays:
                    raise ValueError(
                        f"{path} has no array {name}, only {', '.join(sorted(arrays))}"
                    )
                fields[quantity.name] = arrays[name]
        samples = cls(**parts, times=times, positions=arrays.get("positions"))
        samples._check(path, task)
        return samples

    def _check(self, path: Path, task: Task) -> None:
        space = task.grid_axes - (task.time_axis is not None)
        points = None if self.positions is None else len(self.positions)
        if points != (None if task.points is None else next(iter(self.target.values())).shape[1]):
            raise ValueError(f"{path} must have a position for each point, got {points}")
        for quantity in task.fields:
            size = task.algebra.size(quantity.grade)
            shapes = [part[quantity.name].shape for part in (self.target, self.prediction)]
            wanted = (len(self.times), *shapes[0][1:-1], size)
            if shapes != [wanted] * 2 or len(wanted) != space + 2 or not len(self.times):
                raise ValueError(
                    f"{path}: target and prediction of {quantity.name} must be (steps, *space, "
                    f"components) with {len(self.times)} steps, {space} axes of space and {size} "
                    f"components, got {shapes[0]} and {shapes[1]}"
                )


@dataclass(frozen=True)
class Evaluation:
    """Everything that ``cscnn evaluate`` measures, as written to evaluation.json."""

    run: str
    model: ModelInfo
    task: Task
    data: DataInfo
    one_step: OneStepErrors
    rollout: RolloutErrors
    symmetry: SymmetryErrors
    cost: Cost
    machine: dict[str, str]
    format: int = field(default=FORMAT)

    def save(self, path: Path) -> None:
        """Write a JSON file, whole or not at all."""
        write_json(path, self)

    @classmethod
    def load(cls, path: Path) -> Evaluation:
        """Read what `save` wrote; old and foreign files are told in one line."""
        data = read_json(path)
        version = data.get("format") if isinstance(data, dict) else None
        if version != FORMAT:
            raise ValueError(f"{path} must have format {FORMAT}, got {version!r}: evaluate again")
        return from_json(cls, data, str(path))

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return dict(to_json(self))


def known(value: float | None) -> float | None:
    """A number, or None for what was not measured or is not finite."""
    return None if value is None or not math.isfinite(value) else value
