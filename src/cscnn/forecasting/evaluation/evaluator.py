"""A forecaster with the data that it is measured on, and the measurements one by one."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from cscnn._util.machine import peak_memory
from cscnn._util.progress import Bar
from cscnn.data import FieldSource
from cscnn.forecasting.evaluation import metrics, symmetry
from cscnn.forecasting.evaluation.curves import RolloutCurves
from cscnn.forecasting.evaluation.observers import observer_errors
from cscnn.forecasting.evaluation.point_symmetry import point_symmetry
from cscnn.forecasting.evaluation.results import (
    Cost,
    Errors,
    OneStepErrors,
    RolloutErrors,
    Samples,
    SymmetryErrors,
)
from cscnn.forecasting.evaluation.rollout import Rollout, persistence, rollout
from cscnn.forecasting.evaluation.scoring import Scores, scoring
from cscnn.forecasting.forecaster import Forecaster, Frames
from cscnn.forecasting.given import split
from cscnn.forecasting.points import Points, stack_points
from cscnn.forecasting.receptive_field import receptive_field
from cscnn.forecasting.windows import Window, Windows, collate

#: Largest cube, in points per axis, on which boosts are tried, by the number of axes.
CUBES = {2: 64, 3: 32, 4: 12}


class NonFinitePrediction(ValueError):
    """A forecaster says NaN or infinity about data that are finite."""


class Evaluator:
    """A forecaster with the data that it is measured on.

    Args:
        forecaster: in eval mode.
        source: data of its task, on their own grid.
        batch: windows that are computed together.
        quiet: show no progress.
        stride: see `Forecaster.view`.
    """

    def __init__(
        self,
        forecaster: Forecaster,
        source: FieldSource,
        batch: int = 8,
        quiet: bool = True,
        stride: int | None = None,
    ):
        self.forecaster, self.task = forecaster, forecaster.task
        self.stride = forecaster.stride.choose(stride)
        self.source = forecaster.view(source, self.stride)
        self.batch, self.quiet = batch, quiet
        self.windows = Windows(self.source, self.task, mode="all")
        header = self.source.header
        self.spacetime = header.time_axis is not None
        self.components = {f.name: header.algebra.size(f.grade) for f in header.fields}
        self.scoring = scoring(self.task, header)

    # --- data -------------------------------------------------------------------------------------

    def choose(self, count: int, seed: int) -> list[int]:
        """Numbers of random windows, in order."""
        rng = np.random.default_rng(seed)
        return sorted(rng.permutation(len(self.windows))[:count].tolist())

    def read(self, numbers: Sequence[int]) -> Window:
        """A batch of windows, on the device of the forecaster."""
        windows = [self.windows[i] for i in numbers]
        for number, window in zip(numbers, windows, strict=True):
            parts = (window.known, window.target, window.given)
            if not all(x.isfinite().all() for part in parts for x in part.values()):
                trajectory, start = self.windows.locate(number)
                raise ValueError(
                    f"{self.source.path}: trajectory {trajectory} has values that are not finite "
                    f"in the window from frame {start}"
                )
        device, batch = self.forecaster.device, collate(windows)
        return Window(
            {name: x.to(device) for name, x in batch.known.items()},
            {name: x.to(device) for name, x in batch.target.items()},
            batch.constants.to(device),
            {name: x.to(device) for name, x in batch.given.items()},
            None if batch.points is None else batch.points.to(device),
        )

    def points(self, numbers: Sequence[int]) -> Points | None:
        """The points of trajectories, on the device of the forecaster; None on a grid."""
        clouds = [points for n in numbers if (points := self.windows.points(n)) is not None]
        return Points.cat(clouds).to(self.forecaster.device) if clouds else None

    def trajectories(
        self, numbers: Sequence[int], frames: int
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """The first frames of trajectories, and what is given to them.

        Returns:
            field name -> (batch, frames, *space, components), and name -> (batch, ...), also of
            what the forecaster is not told.
        """
        parts: dict[str, list[Tensor]] = {q.name: [] for q in self.source.header.quantities}
        for number in numbers:
            for name, array in self.source.read(number, 0, frames).items():
                x = torch.as_tensor(array).float()
                if not x.isfinite().all():
                    raise ValueError(
                        f"{self.source.path}: trajectory {number} has values of {name} that are "
                        "not finite"
                    )
                parts[name].append(x)
        device, points = self.forecaster.device, self.points(numbers)
        stacked = {name: stack_points(xs, points).to(device) for name, xs in parts.items()}
        return split(self.task, stacked)

    def steps(self, wanted: int | None) -> int:
        """Frames of a rollout; by default all there are, or after a gap those of one forecast."""
        start, frames = self.task.frames_in + self.task.gap, self.source.header.frames
        most = min(frames - start, self.task.frames_out) if self.task.gap else frames - start
        if self._forced(most) > most:
            most -= most % self.task.frames_out
        if wanted is not None and not 1 <= wanted <= most:
            raise ValueError(
                f"{self.source.path} has trajectories of {frames} frames, of which the forecaster "
                f"takes {self.task.frames_in}"
                + (f" and leaves out {self.task.gap}" if self.task.gap else "")
                + f": a rollout can have 1 to {most} steps, got {wanted}"
            )
        return most if wanted is None else wanted

    def _forced(self, steps: int) -> int:
        """Frames for which a forcing must be known: those of whole forecasts."""
        if not any(given.kind == "forcing" for given in self.task.given):
            return steps
        return math.ceil(steps / self.task.frames_out) * self.task.frames_out

    # --- errors -----------------------------------------------------------------------------------

    @torch.no_grad()
    def one_step(self, chosen: Sequence[int]) -> OneStepErrors:
        """Errors of one application of the forecaster, beside the persistence forecast.

        Args:
            chosen: numbers of windows.
        """
        scores: list[Scores] = []
        persistent: list[Scores] = []
        starts = range(0, len(chosen), self.batch)
        for start in Bar("batches", quiet=self.quiet).over("one step", starts):
            numbers = chosen[start : start + self.batch]
            known, target, _, given, points = self.read(numbers)
            predicted = self.forecaster(known, given=given, points=points)
            self._check_finite(predicted, numbers[0])
            scores.append(self.scoring.scores(predicted, target, points))
            still = persistence(known, self.task.frames_out)
            persistent.append(self.scoring.scores(still, target, points))
        fields, total = self._means(scores)
        scale = self.forecaster.units.scale
        scaled = sum(
            count * fields[name]["mse"] / scale[name] ** 2
            for name, count in self.components.items()
        )
        return OneStepErrors(
            total=total,
            scaled_mse=scaled / sum(self.components.values()),
            fields=fields,
            persistence=self._means(persistent)[1],
        )

    def _check_finite(self, predicted: Frames, number: int) -> None:
        if bad := [name for name, x in predicted.items() if not x.isfinite().all()]:
            raise NonFinitePrediction(
                f"the prediction of {', '.join(bad)} is not finite for a window from trajectory, "
                f"frame {self.windows.locate(number)}: the weights may be broken, or the data are "
                "not in the units of the training data"
            )

    def _means(self, scores: Sequence[Scores]) -> tuple[dict[str, Errors], Errors]:
        """Means over windows and frames: of each field, and of all."""
        joined = {
            name: {m: torch.cat([batch[name][m] for batch in scores]) for m in self.scoring.names}
            for name in self.components
        }
        total = metrics.total(joined, self.components)
        fields = {name: _errors(values) for name, values in joined.items()}
        return fields, _errors(total)

    # --- rollouts ---------------------------------------------------------------------------------

    def rollouts(self, count: int, steps: int | None = None) -> tuple[RolloutErrors, Samples]:
        """Errors by step, and the first trajectory for pictures.

        Args:
            count: number of trajectories, from the first on.
            steps: frames to forecast; by default all there are to compare with.
        """
        start, steps = self.task.frames_in, self.steps(steps)
        curves = RolloutCurves(self.task, self.source.header)
        samples: Samples | None = None
        begins = range(0, count, self.batch)
        for begin in Bar("batches", quiet=self.quiet).over("rollout", begins):
            numbers = range(begin, min(begin + self.batch, count))
            length = start + self.task.gap + self._forced(steps)
            frames, given = self.trajectories(numbers, length)
            known = {name: x[:, :start] for name, x in frames.items()}
            points = self.points(numbers)
            forecast = rollout(self.forecaster, frames, steps, given=given, points=points)
            curves.add(known, forecast)
            samples = samples or self._samples(known, forecast)
        assert samples is not None
        return curves.results(), samples

    def _samples(self, known: Frames, forecast: Rollout) -> Samples:
        """The first trajectory of a batch."""
        points = forecast.points
        inside = slice(None) if points is None else slice(points.sizes[0])  # without padding
        beginning, target, prediction = (
            {name: x[0, :, inside].cpu().numpy().astype(np.float32) for name, x in fields.items()}
            for fields in (known, forecast.target, forecast.prediction)
        )
        positions = None if points is None else points.positions[inside].cpu().numpy()
        steps = next(iter(forecast.target.values())).shape[1]
        spacing = self.source.header.frame_spacing
        times = spacing * (self.task.gap + np.arange(1, steps + 1, dtype=np.float64))
        return Samples(beginning, target, prediction, times.astype(np.float32), positions)

    # --- symmetry ---------------------------------------------------------------------------------

    def symmetry(self, chosen: Sequence[int], seed: int = 0) -> SymmetryErrors:
        """Violations of symmetries, and errors of forecasts for other observers.

        Args:
            chosen: numbers of windows, of which at most four batches are used.
            seed: of random transformations.
        """
        bar = Bar("transformations", quiet=self.quiet)
        precise = symmetry.in_float64(self.forecaster)
        window = self.read(_spread(chosen, 2))
        x = precise.pack(_double(window.known), _double(window.given))
        if window.points is not None:
            return point_symmetry(precise, x, window.points.to(x), seed)
        cube = precise.pack(*map(_double, self._cube())) if self.spacetime else x
        wide = cube if cube.shape[2] > x.shape[2] else x  # room in time for an interior
        grid = tuple(wide.shape[2:-1])
        radii = receptive_field(precise, grid, seed)
        return SymmetryErrors(
            receptive_field=list(radii),
            interior=symmetry.has_interior(self.task, grid, radii),
            group=symmetry.symmetry_group(precise),
            translation=symmetry.translation_error(precise, wide, radii, seed),
            point_group=symmetry.point_group_error(precise, x, seed=seed),
            rotation=symmetry.motion_errors(
                precise,
                x,
                symmetry.rotations(self.task, seed),
                lambda angles: bar.over("rotations", angles),
            ),
            boost=symmetry.motion_errors(
                precise,
                cube,
                symmetry.boosts(self.task, seed),
                lambda rapidities: bar.over("boosts", rapidities),
            ),
            observers=observer_errors(
                self.forecaster,
                self.source.header,
                self.read(_spread(chosen, 4 * self.batch)),
                progress=lambda views: bar.over("other observers", views),
            ),
        )

    def _cube(self) -> tuple[Frames, Frames]:
        """Fields on a cube of spacetime as large as the data allow: room for boosts.

        And what is given, which are constants.
        """
        header = self.source.header
        size = min(header.frames, *header.grid, CUBES.get(self.task.dim, 8))
        size -= size % (8 if size >= 16 else 2)
        fields, given = self.trajectories(range(min(2, len(self.source))), max(size, 1))
        for axis, n in enumerate(header.grid):
            fields = {name: f.narrow(2 + axis, (n - size) // 2, size) for name, f in fields.items()}
        return fields, given

    # --- cost -------------------------------------------------------------------------------------

    @torch.no_grad()
    def cost(self, chosen: Sequence[int]) -> Cost:
        """Speed and memory of forecasts.

        Args:
            chosen: numbers of windows, of which the first batch is used.
        """
        window = self.read(chosen[: self.batch])
        size = len(window.constants)

        def forecast(window: Window) -> dict[str, Tensor]:
            return self.forecaster(window.known, given=window.given, points=window.points)

        seconds = []
        for _ in range(4):  # the first one warms up
            start = time.perf_counter()
            predicted = forecast(window)
            float(next(iter(predicted.values())).sum())  # waits for the device
            seconds.append(time.perf_counter() - start)
        single = self.read(chosen[:1])
        return Cost(
            windows_per_second=size / min(seconds[1:]),
            batch=size,
            peak_bytes=peak_memory(lambda: forecast(single)),
            parameters=self.forecaster.n_parameters(),
        )


def _errors(scores: dict[str, Tensor]) -> Errors:
    """Means of metric -> (batch, frames)."""
    return {name: metrics.mean(values) for name, values in scores.items()}


def _double(fields: Frames) -> dict[str, Tensor]:
    return {name: x.double() for name, x in fields.items()}


def _spread(chosen: Sequence[int], count: int) -> list[int]:
    """A few of many, from all trajectories and times."""
    places = np.linspace(0, len(chosen) - 1, min(count, len(chosen)))
    return [chosen[round(i)] for i in places]
