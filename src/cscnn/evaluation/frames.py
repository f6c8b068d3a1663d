"""The same events seen by other observers: an equivariant model must forecast them equally well.

In Euclidean space windows of the test data are turned by the symmetries of their grid. In spacetime
boosts do not map a grid to itself, but some simulators know their solutions in every frame.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cscnn.conv.symmetry import transform_on_grid
from cscnn.data import Header, RandomSymmetry, Scaling
from cscnn.data.simulators import SIMULATORS, SineGordon, create, stream
from cscnn.data.simulators.charges import PointCharges, squash
from cscnn.data.simulators.lienard_wiechert import Charges
from cscnn.data.simulators.sine_gordon import Solitons
from cscnn.data.windows import average_cells
from cscnn.evaluation import metrics
from cscnn.evaluation.rollout import forecast
from cscnn.evaluation.symmetry import boost
from cscnn.models import FieldModel

RAPIDITIES = (0.0, 0.25, 0.5, 0.75)

Fields = dict[str, Tensor]
Progress = Callable[[Iterable[Any]], Iterable[Any]]


@dataclass(frozen=True)
class FramesError:
    """Errors in physical units, for each observer.

    Attributes:
        kind: ``"rotated"`` or ``"boosted"``.
        values: the coordinates of each observer, e.g. "(y, -x)", or rapidities.
        mse, relative_l2: see `cscnn.evaluation.metrics`.
    """

    kind: str
    values: list[Any]
    mse: list[float]
    relative_l2: list[float]

    def to_dict(self) -> dict[str, Any]:
        """JSON form, with the worst and the mean of the mean square errors."""
        summary = {"worst": max(self.mse), "mean": sum(self.mse) / len(self.mse)}
        return dataclasses.asdict(self) | summary


def frames_error(
    model: FieldModel,
    header: Header,
    scaling: Scaling,
    frames: tuple[Fields, Fields],
    *,
    count: int = 4,
    coarsen: int = 1,
    progress: Progress = lambda items: items,
) -> FramesError | None:
    """`rotated_error` in Euclidean space, `boosted_error` where solutions are known, else None."""
    if len(set(header.metric)) == 1 and header.time_axis is None:
        return rotated_error(model, scaling, *frames, axes=header.axes, progress=progress)
    if not knows_frames(header):
        return None
    return boosted_error(model, header, scaling, count=count, coarsen=coarsen, progress=progress)


@torch.no_grad()
def rotated_error(
    model: FieldModel,
    scaling: Scaling,
    known: Fields,
    target: Fields,
    *,
    axes: Sequence[str] = ("x", "y", "z"),
    limit: int = 16,
    progress: Progress = lambda items: items,
) -> FramesError:
    """Test error on windows turned and reflected by the symmetries of their grid.

    Args:
        model: the model.
        scaling: its units.
        known, target: frames in and out, field name -> (batch, frames, *space, components).
        axes: names of the axes.
        limit: try at most so many symmetries, the identity first.
    """
    task = model.task
    grid = next(iter(known.values())).shape[2:-1]
    elements = RandomSymmetry(task).elements(grid)
    order = np.random.default_rng(0).permutation(len(elements) - 1)[: limit - 1] + 1
    result = FramesError("rotated", [], [], [])
    for g in progress([elements[0], *(elements[i] for i in order)]):
        turned = [_turned(model, g, fields) for fields in (known, target)]
        _add(result, _coordinates(g, axes), model, scaling, turned[0], turned[1], g)
    return result


def _turned(model: FieldModel, g: Tensor, fields: Fields) -> Fields:
    x = model.task.pack(fields)
    return model.task.unpack(transform_on_grid(model.algebra, g.to(x), x))


def _coordinates(g: Tensor, axes: Sequence[str]) -> str:
    """The new coordinates in terms of the old ones, e.g. (y, -x)."""
    rows = [(int(row.abs().argmax()), row) for row in g]
    return f"({', '.join(('-' if row[i] < 0 else '') + axes[i] for i, row in rows)})"


def _add(
    result: FramesError,
    value: Any,
    model: FieldModel,
    scaling: Scaling,
    known: Fields,
    target: Fields,
    g: Tensor,
) -> None:
    """Forecast, compare, and append the errors."""
    background = None
    if model.task.backgrounds:
        constants = model.background
        background = model.algebra.transform(g.to(constants), constants)
    predicted = forecast(model, known, scaling, background)
    numbers = {name: x[0].numel() for name, x in target.items()}
    share = sum(numbers.values())
    errors = {name: metrics.mean(metrics.mse(predicted[name], target[name])) for name in target}
    relative = [metrics.relative_l2(predicted[name], target[name]) for name in target]
    result.values.append(value)
    result.mse.append(sum(numbers[name] / share * error for name, error in errors.items()))
    result.relative_l2.append(metrics.mean(torch.stack(relative)))


# --- boosts ---------------------------------------------------------------------------------------


def knows_frames(header: Header) -> bool:
    """Whether these data come from a simulator, as it is now, that knows solutions in any frame."""
    kind = SIMULATORS.get(header.generator)
    known = kind is not None and issubclass(kind, PointCharges | SineGordon)
    return known and kind is not None and kind.version == header.generator_version


def boosted_error(
    model: FieldModel,
    header: Header,
    scaling: Scaling,
    *,
    rapidities: Sequence[float] = RAPIDITIES,
    count: int = 4,
    coarsen: int = 1,
    progress: Progress = lambda items: items,
) -> FramesError:
    """Test error on the same solutions seen from moving frames, with no interpolation.

    The forecast is that of a displaced grid. In the boosted frame the displacement is boosted too:
    the model is told so by its background, and the target is the solution on that grid. A model
    without this background is asked for the displacement along its own time axis.

    Args:
        model: the model.
        header: of the data; its seed, split and options choose the solutions.
        scaling: the units of the model.
        rapidities: of the frames.
        count: number of solutions.
        coarsen: see `cscnn.data.Windows`.
    """
    if not knows_frames(header):
        raise ValueError(
            f"solutions in every frame are known for {SineGordon.name} and moving charges, of "
            f"the current version; the data come from {header.generator!r} version "
            f"{header.generator_version}"
        )
    simulator = create(header.generator, **header.parameters)
    assert isinstance(simulator, PointCharges | SineGordon)
    observer = _Observer(simulator, model, coarsen)
    jobs = [(theta, number) for theta in rapidities for number in range(count)]
    solutions = observer.solutions(header, count, max(rapidities, default=0.0))
    like = next(model.parameters(), model.background)
    result = FramesError("boosted", [], [], [])
    for theta, number in progress(jobs):
        g = boost(header.algebra, theta, seed=number)
        # solution by solution, as each has its own direction and so its own background
        views = observer.views(solutions[number], g)
        known, target = ({n: x[None].to(like) for n, x in view.items()} for view in views)
        part = FramesError("boosted", [], [], [])
        _add(part, theta, model, scaling, known, target, g)
        if number == 0:
            result.values.append(theta)
            result.mse.append(0.0)
            result.relative_l2.append(0.0)
        result.mse[-1] += part.mse[0] / count
        result.relative_l2[-1] += part.relative_l2[0] / count
    return result


class _Observer:
    """Looks at solutions on the grid of a window, in the middle of their trajectory."""

    def __init__(
        self, simulator: PointCharges | SineGordon, model: FieldModel, coarsen: int
    ) -> None:
        self.whole, self.coarsen = simulator, coarsen
        self.length = model.task.frames_in * coarsen
        self.window = dataclasses.replace(simulator, frames=self.length)
        self.told = any(b.name == "displacement" for b in model.task.backgrounds)
        self.step = torch.zeros(simulator.header().algebra.dim, dtype=torch.float64)
        self.step[0] = self.length * simulator.spacing
        #: the first event of the target, about which frames are boosted
        self.centre = torch.zeros_like(self.step)
        self.centre[0] = simulator.frames * simulator.spacing / 2

    def solutions(self, header: Header, count: int, rapidity: float) -> list[Charges | Solitons]:
        """Those of the data's seed and split that can be seen from all frames."""
        found: list[Charges | Solitons] = []
        for index in range(100 * count):
            rng = stream(header.generator, header.seed, header.split, index)
            solution = self.whole.draw(rng)
            if self._suits(solution, boost(header.algebra, rapidity, seed=len(found)), rapidity):
                found.append(solution)
            if len(found) == count:
                return found
        raise ValueError(
            f"only {len(found)} of {100 * count} solutions of {header.generator} can be seen from "
            f"a frame of rapidity {rapidity}: try smaller rapidities"
        )

    def _suits(self, solution: Charges | Solitons, g: Tensor, rapidity: float) -> bool:
        if not isinstance(solution, Charges) or not isinstance(self.window, PointCharges):
            return True
        wide = dataclasses.replace(self.window, rapidity=max(rapidity, self.window.rapidity))
        if not all(wide.keeps_clear(s) for s in self._moved(solution, g) if isinstance(s, Charges)):
            return False
        view = self._fields(solution.translated(self.step - self.centre))
        return float(view["faraday"].std()) <= self.window.max_std

    def _moved(self, solution: Charges | Solitons, g: Tensor) -> tuple[Charges | Solitons, ...]:
        """The solution relative to the first event of input and target."""
        about = solution.translated(-self.centre)
        if isinstance(about, Solitons):
            moved: Charges | Solitons = about.boosted(float(torch.asinh(g[1, 0])))
        else:
            moved = about.transformed(g)
        step = g @ self.step if self.told else self.step
        return moved.translated(self.step), moved.translated(self.step - step)

    def _fields(self, solution: Charges | Solitons) -> Fields:
        if isinstance(self.window, SineGordon):
            assert isinstance(solution, Solitons)
            fields = self.window.observe(solution)
        else:
            assert isinstance(solution, Charges)
            field = self.window.observe(solution)
            if self.window.normalise == "log":
                field = squash(field, self.window.header().algebra)
            fields = {"faraday": field}
        if self.coarsen == 1:
            return fields
        return {name: average_cells(x, self.coarsen, time=True) for name, x in fields.items()}

    def views(self, solution: Charges | Solitons, g: Tensor) -> tuple[Fields, Fields]:
        """Input and target, field name -> (frames, *space, components)."""
        known, target = self._moved(solution, g)
        return self._fields(known), self._fields(target)
