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
from cscnn.forecasting.given import split
from cscnn.forecasting.neighbours import default_task, edge_store, points_of
from cscnn.forecasting.points import Points, stack_points
from cscnn.forecasting.task import Task


class Window(NamedTuple):
    """What a forecaster is given and what it shall predict.

    Attributes:
        known: field name -> (frames_in, *space, components)
        target: field name -> (unroll * frames_out, *space, components)
        constants: what it is told beside, (constants, blades), see `Task.constants`
        given: what it is told of this trajectory, see `Task.given`: a forcing has the frames of
            known and target, (frames_in + unroll * frames_out, *space, components), a static field
            is (*space, components), a constant (components,)
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
    function of (seed, epoch, index), whoever asks and in whatever order. In mode ``"all"`` every
    window is there once, in order. With time as an axis of the grid a frame is a slice of it.

    Args:
        source: trajectories, e.g. a `FieldFile`, or a coarse view of one.
        task: what to predict; by default the task of the data, see `Task.from_header`.
        mode: ``"random"`` or ``"all"``.
        per_trajectory: windows per trajectory and epoch; by default as many as there are.
        trajectories: use the first so many only.
        unroll: forecasts in a row that the target serves.
        seed: of the random starts and of the transform.
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
        seed: int = 0,
        transform: Transform | None = None,
        dtype: torch.dtype = torch.float32,
    ):
        check_choice("mode", mode, ("random", "all"))
        if mode == "all" and per_trajectory is not None:
            raise ValueError("per_trajectory goes with mode 'random'")
        self.source = source
        self.task = default_task(source) if task is None else task
        self.task.check_data(source.header)
        self._edges = edge_store(source, self.task)
        self.mode, self.seed = mode, seed
        self.transform, self.dtype = transform, dtype
        self.unroll = check_int("unroll", unroll, low=1)
        self.length = self.task.frames_in + self.unroll * self.task.frames_out
        self.starts = source.header.frames - self.length + 1
        if self.starts < 1:
            raise ValueError(
                f"a window needs {self.length} frames, the trajectories have {source.header.frames}"
                + (f": unroll fewer steps than {unroll}" if unroll > 1 else "")
            )
        self.per_trajectory = self.starts
        if per_trajectory is not None:
            self.per_trajectory = check_int("per_trajectory", per_trajectory, low=1)
        self._constants = self.task.constant_multivectors().to(dtype)
        self.count = len(source)
        if trajectories is not None:
            self.count = min(self.count, check_int("trajectories", trajectories, low=1))
        self._epoch = torch.zeros((), dtype=torch.int64).share_memory_()  # seen by all workers

    def set_epoch(self, epoch: int) -> None:
        """Choose other random windows; workers that are already running follow."""
        self._epoch.fill_(epoch)

    def __len__(self) -> int:
        return self.count * self.per_trajectory

    def locate(self, index: int) -> tuple[int, int]:
        """Trajectory and first frame of a window."""
        if not 0 <= index < len(self):
            raise IndexError(f"there are {len(self)} windows, got {index}")
        if self.mode == "all":
            return divmod(index, self.starts)
        start = int(self._rng(index).integers(self.starts))
        return index % self.count, start

    def points(self, number: int) -> Points | None:
        """Where the points of a trajectory are; None for data on a grid."""
        return None if self._edges is None else points_of(self._edges, number).to(self.dtype)

    def _rng(self, index: int) -> np.random.Generator:
        return np.random.default_rng((self.seed, int(self._epoch), index))

    def __getitem__(self, index: int) -> Window:
        number, start = self.locate(index)
        arrays = self.source.read(number, start, start + self.length)
        fields = {name: torch.as_tensor(a).to(self.dtype) for name, a in arrays.items()}
        fields, others = split(self.task, fields)
        seen = self.task.frames_in
        window = Window(
            {name: x[:seen] for name, x in fields.items()},
            {name: x[seen:] for name, x in fields.items()},
            self._constants.clone(),
            {given.name: others[given.name] for given in self.task.given},
            self.points(number),
        )
        if self.transform is not None:
            rng = self._rng(index)
            rng.integers(self.starts)  # the start has been drawn from this one
            window = self.transform(window, rng)
        return window


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
