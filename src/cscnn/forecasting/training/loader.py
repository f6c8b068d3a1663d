"""Windows as batches, split over devices so that the number of devices does not matter."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from typing import Any

import lightning
import numpy as np
import torch
from torch.utils.data import DataLoader, Sampler, Subset

from cscnn._util.progress import Bar
from cscnn.data import FieldSource, open_fields
from cscnn.data.coarse import coarse
from cscnn.data.stated import stated
from cscnn.data.strided import Strides
from cscnn.forecasting.augment import InTurn, RandomNoise, RandomSymmetry
from cscnn.forecasting.neighbours import find_neighbours
from cscnn.forecasting.spaces import check_own_spacings
from cscnn.forecasting.task import Task
from cscnn.forecasting.training.config import DataConfig
from cscnn.forecasting.training.identity import DataIdentity, FileIdentity
from cscnn.forecasting.training.launch import start_loader
from cscnn.forecasting.units import Units
from cscnn.forecasting.windows import Windows, collate
from cscnn.geometry.search import NeighbourSearch


class GlobalBatches(Sampler[list[int]]):
    """Batches of indices: a permutation that depends on (seed, epoch), cut into batches.

    Of every batch each of ``world`` devices gets an equal share, so that the gradient of a step is
    the same for any number of devices. The last, smaller batch is left out when shuffling.

    Args:
        windows: told the epoch as well.
        batch: indices per batch, over all devices.
        seed: of the permutation; None for the order of the data, with the last batch.
        rank, world: which device of how many.
        steps: batches per epoch, at most.
        epoch: the first one. A loader with processes of its own asks for batches as soon as it is
            iterated over, before Lightning tells the epoch.
    """

    def __init__(
        self,
        windows: Windows | Subset[Any],
        batch: int,
        seed: int | None,
        rank: int = 0,
        world: int = 1,
        steps: int | None = None,
        epoch: int = 0,
    ):
        self.windows, self.batch, self.seed = windows, batch, seed
        self.rank, self.world, self.steps = rank, world, steps
        self.set_epoch(epoch)
        self.sampler = self  # Lightning tells the epoch to the sampler of a batch sampler

    def set_epoch(self, epoch: int) -> None:
        """Choose another permutation, and other windows."""
        self.epoch = epoch
        if isinstance(self.windows, Windows):
            self.windows.set_epoch(epoch)

    def __len__(self) -> int:
        count = len(self.windows)
        if self.seed is None:  # a last batch that is too small for all devices joins the one before
            full, rest = divmod(count, self.batch)
            return max(1, full + (rest >= self.world))
        return min(max(1, count // self.batch), self.steps or count)

    def __iter__(self) -> Iterator[list[int]]:
        count = len(self.windows)
        order = np.arange(count)
        if self.seed is not None:
            order = np.random.default_rng((self.seed, self.epoch)).permutation(count)
        for number in range(len(self)):
            batch = order[number * self.batch : (number + 1) * self.batch]
            if self.seed is None:
                last = number == len(self) - 1
                batch = order[number * self.batch :] if last else batch
                indices = batch[self.rank :: self.world]
            else:
                share = len(batch) // self.world
                indices = batch[self.rank * share : (self.rank + 1) * share]
            yield indices.tolist()


class WindowData(lightning.LightningDataModule):
    """Training and validation windows of files.

    Args:
        config: which.
        seed: of windows and their order.
        steps: batches per epoch, at most.
        epoch: with which training begins, or goes on.
        unroll: forecasts in a row that the targets of training windows serve.

    Attributes:
        source: the training data as they are stored.
        task: what the windows are about.
        strides: stored frames from one frame of a window to the next.
        noise: on the inputs of training windows, or None.
    """

    noise: RandomNoise | None = None

    def __init__(
        self,
        config: DataConfig,
        seed: int = 0,
        steps: int | None = None,
        epoch: int = 0,
        unroll: int = 1,
    ):
        super().__init__()
        self.unroll = unroll
        self.config, self.seed, self.steps, self.epoch = config, seed, steps, epoch
        self._opened: dict[str, FieldSource] = {}
        self.source = self._open("train", "learn from")
        limit = config.trajectories
        if limit is not None and not 1 <= limit <= len(self.source):
            raise ValueError(
                f"data.trajectories={limit}, but {self.source.path} has {len(self.source)}"
            )
        self.strides = Strides.read(config.stride, "data.stride")
        header = coarse(self.source, config.coarsen).header
        self.task = Task.from_header(
            self.strides.seen(header),
            frames_in=config.frames_in,
            frames_out=config.frames_out,
            constants=config.constants,
            open_padding=config.open_padding,
            wall_padding=config.wall_padding,
            margin=config.margin or 0,
            gap=config.gap,
            points=self._search(),
        )

    def _search(self) -> NeighbourSearch | None:
        """How neighbours are found in data on points; None on a grid."""
        config, on_points = self.config, self.source.header.cloud is not None
        if on_points and config.augment:
            raise ValueError(
                f"data.augment turns windows by the symmetries of a grid, but {self.source.path} "
                "is on points: networks along edges have these symmetries without it"
            )
        if not on_points and config.radius is None and config.neighbours is None:
            return None
        return find_neighbours(self.source, radius=config.radius, neighbours=config.neighbours)

    def _open(self, split: str, purpose: str) -> FieldSource:
        """The data of a split, opened once."""
        if split not in self._opened:
            self._opened[split] = open_fields(getattr(self.config, split))
        source = self._opened[split]
        if not len(source):
            raise ValueError(f"{source.path} has no trajectories: nothing to {purpose}")
        return source

    def close(self) -> None:
        """Close the files."""
        for source in self._opened.values():
            source.close()

    def identity(self) -> DataIdentity:
        """By which a run that goes on knows its data again."""
        valid = self._open("valid", "validate with") if self.config.valid else None
        return DataIdentity(
            FileIdentity.of(self.source), None if valid is None else FileIdentity.of(valid)
        )

    def check_splits(self) -> None:
        """Raise if validation or test data are missing or of another task: now, not after hours."""
        self.valid_windows()
        if self.config.valid:
            valid = coarse(self._open("valid", "validate with"), self.config.coarsen)
            check_own_spacings(self.task, valid.header, self.strides)
        if self.config.test:
            source = stated(open_fields(self.config.test), self.task.given)
            with coarse(source, self.config.coarsen) as test:
                self.task.check_data(test.header, self.strides)
                check_own_spacings(self.task, test.header, self.strides)

    def grid(self) -> tuple[int, ...]:
        """Points along each axis of the network's input."""
        grid = coarse(self.source, self.config.coarsen).header.grid
        return grid if self.task.time_axis is None else (self.task.frames_in, *grid)

    def fit_units(self, bar: Bar) -> Units:
        """The units in which a network shall learn from these data."""
        joined = 1 if self.task.time_axis is None else self.config.coarsen  # frames of the files
        return Units.fit(
            self.source,
            trajectories=self.config.trajectories,
            displacements=[joined * frames for frames in self.task.displacements],
            stride=self.strides,
            progress=lambda numbers: bar.over("fitting units", list(numbers)),
        )

    def _windows(self, source: FieldSource, **options: Any) -> Windows:
        """Windows of a source, as the network sees it."""
        seen = coarse(stated(source, self.task.given), self.config.coarsen)
        return Windows(seen, self.task, stride=self.strides, **options)

    def train_windows(self) -> Windows:
        """The training windows."""
        symmetry = RandomSymmetry(self.task) if self.config.augment else None
        transforms = tuple(t for t in (symmetry, self.noise) if t is not None)
        return self._windows(
            self.source,
            per_trajectory=self.config.per_trajectory,
            trajectories=self.config.trajectories,
            seed=self.seed,
            unroll=self.unroll,
            transform=InTurn(transforms) if transforms else None,
        )

    def all_windows(self) -> Windows:
        """Every training window once, as it is stored: not transformed, without noise."""
        return self._windows(self.source, mode="all", trajectories=self.config.trajectories)

    def valid_windows(self) -> Windows | Subset[Any] | None:
        """The validation windows."""
        if not self.config.valid:
            return None
        source = self._open("valid", "validate with")
        windows = self._windows(source, mode="all", unroll=self.unroll)
        most = self.config.valid_windows
        if most is None or most >= len(windows):
            return windows
        return Subset(windows, np.linspace(0, len(windows) - 1, most).astype(int).tolist())

    def steps_per_epoch(self) -> int:
        """Batches per epoch."""
        return len(GlobalBatches(self.train_windows(), self.config.batch, 0, steps=self.steps))

    def train_dataloader(self) -> DataLoader[Any]:
        return self._loader(self.train_windows(), self.seed)

    def val_dataloader(self) -> DataLoader[Any] | list[Any]:
        windows = self.valid_windows()
        return [] if windows is None else self._loader(windows, None)

    def _loader(self, windows: Windows | Subset[Any], seed: int | None) -> DataLoader[Any]:
        rank, world = 0, 1
        if self.trainer is not None:
            rank, world = self.trainer.global_rank, self.trainer.world_size
        if len(windows) < world:
            raise ValueError(
                f"{world} devices need at least as many windows, got {len(windows)}: use fewer "
                "devices or more data"
            )
        workers = self.config.workers
        return DataLoader(
            windows,
            batch_sampler=GlobalBatches(
                windows, self.config.batch, seed, rank, world, self.steps, self.epoch
            ),
            collate_fn=collate,
            num_workers=workers,
            persistent_workers=workers > 0,
            worker_init_fn=partial(start_loader, os.getpid()) if workers else None,
            pin_memory=torch.accelerator.is_available(),
        )
