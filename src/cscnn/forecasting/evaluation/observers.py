"""The same events seen by other observers: an equivariant network forecasts them equally well.

In Euclidean space windows of the data are rotated and reflected by the symmetries of their grid. In
spacetime boosts do not map a grid to itself, but some simulators know their solutions in every
frame, see `cscnn.data.simulators.exact`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cscnn.data import Header
from cscnn.data.coarse import average_cells
from cscnn.data.simulators import ExactSimulator, Solution, exact_simulator, stream
from cscnn.forecasting.augment import (
    grid_of,
    task_symmetries,
    transform_fields,
    transform_given,
)
from cscnn.forecasting.evaluation import metrics
from cscnn.forecasting.evaluation.results import ObserverErrors
from cscnn.forecasting.evaluation.symmetry import random_boost, transformed_constants
from cscnn.forecasting.forecaster import Forecaster
from cscnn.forecasting.windows import Window

RAPIDITIES = (0.0, 0.25, 0.5, 0.75)

#: Largest number of solutions drawn for each that is wanted.
TRIES = 100

Fields = dict[str, Tensor]
Progress = Callable[[Sequence[Any]], Iterable[Any]]


def observer_errors(
    forecaster: Forecaster,
    header: Header,
    window: Window,
    *,
    count: int = 4,
    progress: Progress = lambda items: items,
) -> ObserverErrors | None:
    """`rotated_errors` in Euclidean space, `boosted_errors` where solutions are known, else None.

    Args:
        forecaster: in physical units.
        header: of the data, or of a coarse view of them.
        window: a batch of the data, as the network sees them.
        count: number of solutions to boost.
        progress: wraps the sequence of observations, for a progress bar.
    """
    if len(set(header.metric)) == 1 and header.time_axis is None:
        return rotated_errors(forecaster, window, axes=header.axes, progress=progress)
    if exact_simulator(header) is None:
        return None
    return boosted_errors(forecaster, header, count=count, progress=progress)


@torch.no_grad()
def rotated_errors(
    forecaster: Forecaster,
    window: Window,
    *,
    axes: Sequence[str] = ("x", "y", "z"),
    limit: int = 16,
    progress: Progress = lambda items: items,
) -> ObserverErrors:
    """Test errors on windows rotated and reflected by the symmetries of their grid.

    Args:
        forecaster: in physical units.
        window: a batch of data.
        axes: names of the axes.
        limit: largest number of symmetries to try, the identity first.
        progress: wraps the sequence of symmetries.
    """
    task = forecaster.task
    identity, *others = task_symmetries(task, grid_of(task, window.known))
    order = np.random.default_rng(0).permutation(len(others))[: limit - 1]
    observers: list[str | float] = []
    errors: list[tuple[float, float]] = []
    for g in progress([identity, *(others[i] for i in order)]):
        observers.append(_coordinates(g, axes))
        rotated = Window(
            transform_fields(task, g, window.known),
            transform_fields(task, g, window.target),
            transformed_constants(forecaster, g),
            transform_given(task, g, window.given),
        )
        errors.append(_errors(forecaster, rotated))
    mse, relative_l2 = (list(column) for column in zip(*errors, strict=True))
    windows = len(next(iter(window.known.values())))
    return ObserverErrors("rotated", observers, mse, relative_l2, windows)


def _coordinates(g: Tensor, axes: Sequence[str]) -> str:
    """The new coordinates in terms of the old ones, e.g. (y, -x)."""
    rows = [(int(row.abs().argmax()), row) for row in g]
    return f"({', '.join(('-' if row[i] < 0 else '') + axes[i] for i, row in rows)})"


def _errors(forecaster: Forecaster, window: Window) -> tuple[float, float]:
    """Mean square and relative error of the forecasts of one observer."""
    predicted = forecaster(window.known, constants=window.constants, given=window.given)
    predicted, target = (forecaster.task.inside(x) for x in (predicted, window.target))
    sizes = {name: x[0].numel() for name, x in target.items()}
    squares = sum(
        sizes[name] * metrics.mean(metrics.mse(predicted[name], x)) for name, x in target.items()
    )
    relative = [metrics.relative_l2(predicted[name], x) for name, x in target.items()]
    return squares / sum(sizes.values()), metrics.mean(torch.stack(relative))


# --- boosts ---------------------------------------------------------------------------------------


@torch.no_grad()
def boosted_errors(
    forecaster: Forecaster,
    header: Header,
    *,
    rapidities: Sequence[float] = RAPIDITIES,
    count: int = 4,
    progress: Progress = lambda items: items,
) -> ObserverErrors:
    """Test errors on the same solutions seen from moving frames, with no interpolation.

    The forecast is that of a displaced grid. In the boosted frame the displacement is boosted too:
    the network is told so by its constants, and the target is the solution on that grid. A task
    without displacement is asked for the one along its own time axis.

    Args:
        forecaster: in physical units.
        header: of the data; its seed, split and options choose the solutions.
        rapidities: of the frames.
        count: number of solutions.
        progress: wraps the sequence of observations.
    """
    simulator = exact_simulator(header)
    if simulator is None:
        raise ValueError(
            "solutions in every frame are known for data of an exact simulator, as it is now; "
            f"these data come from {header.generator!r} version {header.generator_version}"
        )
    observer = Observer(simulator, forecaster)
    solutions = observer.draw(header, count, max(rapidities, default=0.0))
    errors: dict[float, list[tuple[float, float]]] = {rapidity: [] for rapidity in rapidities}
    for rapidity, number in progress([(r, n) for r in rapidities for n in range(count)]):
        # each solution has its own direction and so its own constants
        g = random_boost(header.algebra, rapidity, seed=number)
        errors[rapidity].append(_errors(forecaster, observer.window(solutions[number], g)))
    mse, relative_l2 = (
        [sum(pair[column] for pair in pairs) / count for pairs in errors.values()]
        for column in (0, 1)
    )
    return ObserverErrors("boosted", list(errors), mse, relative_l2, count)


class Observer:
    """Looks at exact solutions on the grid of a window, in the middle of their trajectory.

    Args:
        simulator: of the data, on their own grid.
        forecaster: whose task and cells say what is looked at.
    """

    def __init__(self, simulator: ExactSimulator[Any], forecaster: Forecaster) -> None:
        task, header = forecaster.task, simulator.header()
        self.forecaster, self.simulator = forecaster, simulator
        #: stored frames from one frame of the network to the next
        self.every = round(task.frame_spacing / header.frame_spacing)
        self.block = simulator.with_frames(task.frames_in * self.every)
        unit = torch.zeros(header.algebra.dim, dtype=torch.float64)
        unit[0] = header.frame_spacing
        #: from the first event of the input to the first new one, about which frames are boosted
        self.past = self.block.header().frames * unit
        #: from the input to the output, for an observer at rest
        self.displacement = task.frames_out * self.every * unit
        self.centre = header.frames / 2 * unit  #: the first new event of the solution

    def draw(self, header: Header, count: int, rapidity: float) -> list[Solution]:
        """Solutions of the data's seed and split that can be seen from all frames.

        Args:
            header: of the data.
            count: number of solutions.
            rapidity: the largest of the frames.
        """
        solutions: list[Solution] = []
        for index in range(TRIES * count):
            solution = self.simulator.draw(
                stream(header.generator, header.seed, header.split, index)
            )
            g = random_boost(header.algebra, rapidity, seed=len(solutions))
            if self._sees(solution, g, rapidity):
                solutions.append(solution)
            if len(solutions) == count:
                return solutions
        raise ValueError(
            f"only {len(solutions)} of {TRIES * count} solutions of {header.generator} can be seen "
            f"from a frame of rapidity {rapidity}: try smaller rapidities"
        )

    def _sees(self, solution: Solution, g: Tensor, rapidity: float) -> bool:
        """Whether nothing singular is near in the boosted frame, and the field is a usual one."""
        if not all(self.block.keeps_clear(s, rapidity) for s in self._transformed(solution, g)):
            return False
        at_rest = solution.translated(self.past - self.centre)
        return self.block.accepts(self.block.observe(at_rest))

    def _transformed(self, solution: Solution, g: Tensor) -> tuple[Solution, Solution]:
        """The solution relative to the first event of input and output."""
        moved = solution.translated(-self.centre).transformed(g)
        told = self.forecaster.task.displacement
        displacement = g @ self.displacement if told else self.displacement
        return moved.translated(self.past), moved.translated(self.past - displacement)

    def window(self, solution: Solution, g: Tensor) -> Window:
        """A batch of one for an observer moved by g (dim, dim), as the network sees it."""
        known, later = (self._fields(s) for s in self._transformed(solution, g))
        new = self.forecaster.task.frames_out
        target = {name: x[:, -new:] for name, x in later.items()}
        return Window(known, target, transformed_constants(self.forecaster, g))

    def _fields(self, solution: Solution) -> Fields:
        """(1, frames, *space, components), in the precision of the network."""
        made = self.forecaster
        cells = {
            name: average_cells(x, made.coarsen, time=True)
            for name, x in self.block.observe(solution).items()
        }
        stride = self.every // made.coarsen
        return {name: x[None, ::stride].to(made.device, made.dtype) for name, x in cells.items()}
