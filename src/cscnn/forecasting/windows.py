"""Windows of frames, cut from long simulations, in physical units."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from cscnn._util.checks import check_choice, check_int
from cscnn.data.source import Source
from cscnn.data.strided import StrideLike, Strides, read_strided
from cscnn.forecasting.fits import check_steps
from cscnn.forecasting.given import split
from cscnn.forecasting.neighbours import default_task, edge_store, points_of
from cscnn.forecasting.points import Points, stack_points
from cscnn.forecasting.task import Task


class Window(NamedTuple):
    """One training example: what a forecaster is given, and what it has to predict.

    Attributes:
        known: field name -> (frames_in, *space, components)
        target: field name -> (unroll * frames_out, *space, components), after the gap of the task
        constants: those of the task, (constants, blades), see `Task.constants`
        given: known inputs of this trajectory, see `Task.given`: a forcing has all frames from
            the first known to the last of the target, ``frames_in + gap + unroll * frames_out``
            of them; a static field is ``(*space, components)``, a constant ``(components,)``
        points: where the points are, of fields on points
    """

    known: dict[str, Tensor]
    target: dict[str, Tensor]
    constants: Tensor
    given: dict[str, Tensor] = {}  # noqa: RUF012, nobody changes a window
    points: Points | None = None


Transform = Callable[[Window, np.random.Generator], Window]


class Windows(Dataset[Window]):
    """Pairs of known and target frames.

    In mode ``"random"`` every trajectory gives ``per_trajectory`` windows that start at random: a
    function of (seed, epoch, index), in any process and any order. In mode ``"all"`` every
    window is there once, in order. With time as an axis of the grid a frame is a slice of it.

    With a stride, windows begin at any stored frame. If strides are a range, a random window draws
    one of them, all as likely, and mode ``"all"`` has the smallest. The time between frames is then
    given, see `cscnn.data.Strided`.

    Args:
        source: trajectories, e.g. a `FieldFile`, or a coarse view of one.
        task: what to predict; by default the task of the data, see `Task.from_header`.
        mode: ``"random"`` or ``"all"``.
        per_trajectory: windows per trajectory and epoch; by default as many as there are.
        trajectories: number of trajectories to use, from the first on.
        unroll: forecasts in a row that the target serves.
        stride: stored frames from one frame of a window to the next, or a range ``(low, high)``.
        seed: of the random starts and strides, and of the transform.
        transform: e.g. `RandomSymmetry`; gets the random numbers of (seed, epoch, index).
        dtype: of the result.

    Example::

        train = Windows(FieldFile("data/train.h5"), transform=RandomSymmetry(task))
        for epoch in range(10):
            train.set_epoch(epoch)
            for window in DataLoader(train, batch_size=8, shuffle=True):
                loss = forecaster.loss(window)
    """

    def __init__(
        self,
        source: Source,
        task: Task | None = None,
        *,
        mode: str = "random",
        per_trajectory: int | None = None,
        trajectories: int | None = None,
        unroll: int = 1,
        stride: StrideLike = 1,
        seed: int = 0,
        transform: Transform | None = None,
        dtype: torch.dtype = torch.float32,
    ):
        check_choice("mode", mode, ("random", "all"))
        if mode == "all" and per_trajectory is not None:
            raise ValueError("per_trajectory goes with mode 'random'")
        self.source = source
        self.strides: Strides = Strides.read(stride)
        self.task: Task = default_task(source, self.strides) if task is None else task
        self.task.check_data(source.header, self.strides)
        self._edges = edge_store(source, self.task)
        self.mode = mode
        self.seed = seed
        self.transform = transform
        self.dtype = dtype
        self.unroll: int = check_int("unroll", unroll, low=1)
        check_steps(self.task, self.unroll * self.task.frames_out)
        self.length: int = self.task.span + (self.unroll - 1) * self.task.frames_out
        self._check_length()
        self.starts: int = self._starts(self.strides.low)
        self.per_trajectory: int = self.starts
        if per_trajectory is not None:
            self.per_trajectory = check_int("per_trajectory", per_trajectory, low=1)
        self._constants = self.task.constant_multivectors().to(dtype)
        self.count: int = len(source)
        if trajectories is not None:
            self.count = min(self.count, check_int("trajectories", trajectories, low=1))
        self._epoch = torch.zeros((), dtype=torch.int64).share_memory_()  # seen by all workers

    def _check_length(self) -> None:
        """Raise if the longest windows do not fit into a trajectory."""
        need, frames = self.strides.span(self.length), self.source.header.frames
        if need > frames:
            high, unroll = self.strides.high, self.unroll
            detail = f" ({self.length} with stride {high})" if high > 1 else ""
            advice = f": unroll fewer steps than {unroll}" if unroll > 1 else ""
            raise ValueError(
                f"a window needs {need} frames{detail}, the trajectories have {frames}{advice}"
            )

    def _starts(self, stride: int) -> int:
        """Stored frames at which a window can begin."""
        return self.source.header.frames - (self.length - 1) * stride

    def set_epoch(self, epoch: int) -> None:
        """Choose other random windows; workers that are already running follow."""
        self._epoch.fill_(epoch)

    def __len__(self) -> int:
        return self.count * self.per_trajectory

    def locate(self, index: int) -> tuple[int, int]:
        """Trajectory and first stored frame of a window."""
        return self._place(index)[:2]

    def _place(self, index: int) -> tuple[int, int, int, np.random.Generator]:
        """Trajectory, first stored frame and stride of a window, and the random numbers left."""
        if not 0 <= index < len(self):
            raise IndexError(f"there are {len(self)} windows, got {index}")
        rng = np.random.default_rng((self.seed, int(self._epoch), index))
        stride = self.strides.low
        if self.mode == "random" and self.strides.varies:
            stride = int(rng.integers(stride, self.strides.high + 1))
        number, start = index % self.count, int(rng.integers(self._starts(stride)))
        if self.mode == "all":
            number, start = divmod(index, self.starts)
        return number, start, stride, rng

    def points(self, number: int) -> Points | None:
        """Where the points of a trajectory are; None for data on a grid."""
        return None if self._edges is None else points_of(self._edges, number).to(self.dtype)

    def __getitem__(self, index: int) -> Window:
        number, start, stride, rng = self._place(index)
        arrays = read_strided(self.source, number, start, self.length, stride, self.strides.varies)
        fields = {name: torch.as_tensor(a).to(self.dtype) for name, a in arrays.items()}
        fields, others = split(self.task, fields)
        seen = self.task.frames_in
        window = Window(
            {name: x[:seen] for name, x in fields.items()},
            {name: x[seen + self.task.gap :] for name, x in fields.items()},
            self._constants.clone(),
            {given.name: others[given.name] for given in self.task.given},
            self.points(number),
        )
        return window if self.transform is None else self.transform(window, rng)


def collate(windows: list[Window]) -> Window:
    """Windows as one batch: each tensor gets a first axis, smaller sets of points are padded."""
    first = windows[0]
    clouds = [w.points for w in windows if w.points is not None]
    points = Points.cat(clouds) if clouds else None

    def stack(part: str, name: str) -> Tensor:
        return stack_points([getattr(window, part)[name] for window in windows], points)

    return Window(
        {name: stack("known", name) for name in first.known},
        {name: stack("target", name) for name in first.target},
        torch.stack([w.constants for w in windows]),
        {name: stack("given", name) for name in first.given},
        points,
    )
