"""Windows of frames, cut from long simulations, as pairs of multivector fields."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from cscnn.algebra.blades import check_int
from cscnn.conv.symmetry import grid_symmetries, transform_on_grid
from cscnn.data.header import Header
from cscnn.data.scaling import Scaling
from cscnn.models.tasks import Task


class Source(Protocol):
    """Trajectories from which windows are cut: `FieldFile` and the readers of other formats."""

    header: Header

    def __len__(self) -> int: ...

    def read(self, number: int, start: int = 0, stop: int | None = None) -> dict[str, Any]:
        """Frames of a trajectory, field name -> (frames, *grid, components)."""


class Window(NamedTuple):
    """What a model is given and what it shall predict.

    Attributes:
        input: (in_channels, *grid, blades)
        target: (out_channels, *grid, blades)
        background: (backgrounds, blades)
    """

    input: Tensor
    target: Tensor
    background: Tensor


Transform = Callable[[Window, np.random.Generator], Window]


class Windows(Dataset[Window]):
    """Pairs of input and target frames.

    In mode ``"random"`` every trajectory gives ``per_trajectory`` windows that start at random: a
    function of (seed, epoch, index), whoever asks and in whatever order. In mode ``"all"`` every
    window is there once, in order. With time as an axis of the grid a frame is a slice of it.

    Args:
        source: trajectories.
        task: what to predict; by default the task of the data, see `Header.task`.
        mode: ``"random"`` or ``"all"``.
        per_trajectory: windows per trajectory and epoch; by default as many as there are.
        trajectories: use the first so many only.
        seed: of the random starts and of the transform.
        scaling: to numbers of order one.
        transform: e.g. `RandomSymmetry`; gets the random numbers of (seed, epoch, index).
        coarsen: average cells of so many points per axis. The task must have the coarse spacing.
        dtype: of the result.

    Example::

        train = Windows(FieldFile("data/train.h5"), scaling=scaling, transform=RandomSymmetry(task))
        for epoch in range(10):
            train.set_epoch(epoch)
            for x, y, background in DataLoader(train, batch_size=8, shuffle=True):
                loss = (model(x, background) - y)[..., task.blades].square().mean()
    """

    def __init__(
        self,
        source: Source,
        task: Task | None = None,
        *,
        mode: str = "random",
        per_trajectory: int | None = None,
        trajectories: int | None = None,
        seed: int = 0,
        scaling: Scaling | None = None,
        transform: Transform | None = None,
        coarsen: int = 1,
        dtype: torch.dtype = torch.float32,
    ):
        if mode not in ("random", "all"):
            raise ValueError(f"mode must be 'random' or 'all', got {mode!r}")
        if mode == "all" and per_trajectory is not None:
            raise ValueError("per_trajectory goes with mode 'random'")
        self.source = source
        self.coarsen = check_int("coarsen", coarsen, low=1)
        self.task = coarse_task(source.header, coarsen) if task is None else task
        check_task(self.task, source.header, coarsen)
        self.mode, self.seed = mode, seed
        self.scaling, self.transform, self.dtype = scaling, transform, dtype
        self.steps = coarsen if source.header.time_axis is not None else 1
        self.length = (self.task.frames_in + self.task.frames_out) * self.steps
        self.starts = source.header.frames - self.length + 1
        if self.starts < 1:
            raise ValueError(
                f"a window needs {self.length} frames, the trajectories have {source.header.frames}"
            )
        self.per_trajectory = self.starts
        if per_trajectory is not None:
            self.per_trajectory = check_int("per_trajectory", per_trajectory, low=1)
        self._background = self.task.background(torch.empty(0, dtype=dtype))
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

    def _rng(self, index: int) -> np.random.Generator:
        return np.random.default_rng((self.seed, int(self._epoch), index))

    def __getitem__(self, index: int) -> Window:
        number, start = self.locate(index)
        arrays = self.source.read(number, start, start + self.length)
        fields = {name: torch.as_tensor(a).to(self.dtype) for name, a in arrays.items()}
        if self.coarsen > 1:
            time = self.steps > 1
            fields = {name: average_cells(x, self.coarsen, time) for name, x in fields.items()}
        if self.scaling is not None:
            fields = self.scaling.apply(fields)
        split = self.task.frames_in
        window = Window(
            self._pack({name: x[:split] for name, x in fields.items()}),
            self._pack({name: x[split:] for name, x in fields.items()}),
            self._background.clone(),
        )
        if self.transform is not None:
            rng = self._rng(index)
            rng.integers(self.starts)  # the start has been drawn from this one
            window = self.transform(window, rng)
        return window

    def _pack(self, fields: dict[str, Tensor]) -> Tensor:
        return self.task.pack({name: x.unsqueeze(0) for name, x in fields.items()})[0]


def average_cells(x: Tensor, cells: int, time: bool) -> Tensor:
    """Means over cells of ``cells`` points per axis of (frames, *space, components).

    Args:
        time: whether frames are joined too, because time is an axis of the grid.
    """
    for axis in range(0 if time else 1, x.dim() - 1):
        x = x.unflatten(axis, (-1, cells)).mean(axis + 1)
    return x


def coarse_task(header: Header, coarsen: int = 1, **changes: Any) -> Task:
    """The task of the data on a grid whose cells join ``coarsen`` points per axis."""
    spacing = tuple(h * coarsen for h in header.spacing)
    frame = header.frame_spacing * (coarsen if header.time_axis is not None else 1)
    return header.task(**{"spacing": spacing, "frame_spacing": frame, **changes})


def check_task(task: Task, header: Header, coarsen: int = 1) -> None:
    """Raise unless the task is about these data."""
    own = coarse_task(header, coarsen)
    for name, mine, theirs in (
        ("metric", task.metric, header.metric),
        ("time_axis", task.time_axis, header.time_axis),
        (
            "fields",
            [(f.name, f.grade) for f in task.fields],
            [(f.name, f.grade) for f in header.fields],
        ),
        ("padding", task.padding_mode, own.padding_mode),
        # A model need not be told the constants, but it must not be told other ones.
        ("backgrounds", _known(task), _known(own) if task.backgrounds else _known(task)),
    ):
        if mine != theirs:
            raise ValueError(f"task {task.name} has {name} {mine}, the data have {theirs}")
    if not math.isclose(task.frame_spacing, own.frame_spacing, rel_tol=1e-3):
        raise ValueError(
            f"task {task.name} has frames {task.frame_spacing} apart, the data {own.frame_spacing}"
        )
    if any(n % coarsen for n in header.grid):
        raise ValueError(f"coarsen={coarsen} does not divide the grid {header.grid}")
    ratios = [a / (b * coarsen) for a, b in zip(task.grid_spacing, header.spacing, strict=True)]
    if max(ratios) > 1.001 * min(ratios):
        raise ValueError(
            f"task {task.name} has spacing {task.grid_spacing}, the data have {header.spacing}: "
            "their ratios differ"
        )


def _known(task: Task) -> list[tuple[str, int, tuple[float, ...]]]:
    """The backgrounds of the data; the displacement belongs to the forecast."""
    return [
        (b.name, b.grade, tuple(map(float, b.components)))
        for b in task.backgrounds
        if b.name != "displacement"
    ]


class RandomSymmetry:
    """A transform: turns and reflects windows by a random symmetry of their grid, exactly.

    Signed permutations of the axes that preserve metric, spacing, boundary and the size of the
    grid; fields, backgrounds and the grid are transformed together. Other rotations and boosts do
    not map a grid to itself. For boosted data give the simulator of charges a ``rapidity``.

    Args:
        task: whose metric, spacing and boundary count.
        group: ``"O"``, ``"SO"``, ``"O+"`` or ``"SO+"``.
    """

    def __init__(self, task: Task, group: str = "O"):
        self.task, self.group = task, group
        self._elements: dict[tuple[int, ...], list[Tensor]] = {}

    def elements(self, grid: Sequence[int]) -> list[Tensor]:
        """The symmetries of a grid."""
        key = tuple(grid)
        if key not in self._elements:
            modes = self.task.padding_mode
            self._elements[key] = [
                g
                for g in grid_symmetries(
                    self.task.algebra, grid, self.task.grid_spacing, self.group
                )
                if all(modes[i] == modes[int(row.abs().argmax())] for i, row in enumerate(g))
            ]
        return self._elements[key]

    def __call__(self, window: Window, rng: np.random.Generator) -> Window:
        elements = self.elements(window.input.shape[1:-1])
        g = elements[int(rng.integers(len(elements)))].to(window.input.dtype)
        algebra = self.task.algebra
        return Window(
            transform_on_grid(algebra, g, window.input[None])[0],
            transform_on_grid(algebra, g, window.target[None])[0],
            algebra.transform(g, window.background)
            if len(window.background)
            else window.background,
        )
