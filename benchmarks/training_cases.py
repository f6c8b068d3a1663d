"""What the training framework adds to a bare loop of forward, backward and optimiser."""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import io
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.registry import Case, Work, benchmark
from cscnn.data.generate import generate, plans
from cscnn.data.simulators import ON_GRIDS, create
from cscnn.forecasting import Forecaster, Task, Window
from cscnn.forecasting.unroll import Unroll

OURS, BARE = "cscnn train, with data loading and bar", "bare loop, data in memory"
LOAD, STEP = "load a batch", "training step"
UNROLLED, SINGLE = "unrolled steps, one backward pass", "as many single steps"
#: Steps before the measured ones.
WARM = 3


@benchmark(
    "training",
    "A training step of small presets, each followed by one of a bare loop",
    "The ratio is what loading of data, hooks and the progress bar add to the bare step.",
    packages=("lightning",),
)
def training() -> Iterator[Case]:
    if importlib.util.find_spec("lightning") is None:
        return
    for task in ("sine_gordon", "navier_stokes"):
        yield Case(
            f"{task}_small",
            {OURS: tuple, BARE: tuple},
            reference=BARE,
            speedup=1 / 1.05,
            timed=partial(alternate, task),
        )


@benchmark(
    "loading",
    "A batch of windows from a file, beside the training step that uses it",
    "A ratio below 1 means that one loader process keeps up with training.",
    packages=("lightning",),
)
def loading() -> Iterator[Case]:
    if importlib.util.find_spec("lightning") is None:
        return
    for task in ON_GRIDS:
        yield Case(
            f"{task}_small",
            {LOAD: tuple, STEP: tuple},
            reference=STEP,
            speedup=4,
            timed=partial(load_and_step, task),
        )


@benchmark(
    "unrolling",
    "Loss and gradients of 3 unrolled steps, beside those of 3 single steps",
    "The ratio is what feeding forecasts back adds; with pushforward one step has a backward pass.",
)
def unrolling() -> Iterator[Case]:
    for label, unroll in (("all steps learn", Unroll(3)), ("pushforward", Unroll(3, True))):
        for name in ("cs_resnet", "resnet"):
            works = unrolled_works(name, unroll)
            yield Case(f"{name}, {label}", works, SINGLE, compare=(), speedup=1 / 1.1)


def unrolled_works(name: str, unroll: Unroll, params: int = 30_000) -> dict[str, Work]:
    """Gradients of unrolled steps, and of as many single ones: smoke on 32² cells."""
    header = create("navier_stokes", "small").header()
    task = Task.from_header(header)
    forecaster = Forecaster.build(name, task, params=params)
    parameters = list(forecaster.network.parameters())
    generator = torch.Generator().manual_seed(0)
    fields = {
        f.name: torch.randn(
            8, task.frames_in + unroll.steps, 32, 32, task.algebra.size(f.grade),
            generator=generator,
        )
        for f in task.fields
    }  # fmt: skip
    constants = task.constant_multivectors().expand(8, -1, -1)
    window = Window(
        {name: x[:, : task.frames_in] for name, x in fields.items()},
        {name: x[:, task.frames_in :] for name, x in fields.items()},
        constants,
    )

    def gradients(unroll: Unroll) -> Sequence[torch.Tensor]:
        loss = forecaster.loss(window, unroll=unroll)
        return [
            g for g in torch.autograd.grad(loss, parameters, allow_unused=True) if g is not None
        ]

    def single() -> Sequence[torch.Tensor]:
        return [g for _ in range(unroll.steps) for g in gradients(Unroll())]

    return {UNROLLED: partial(gradients, unroll), SINGLE: single}


def alternate(task: str, repeats: int) -> Mapping[str, Sequence[float]]:
    """Seconds of steps by ``cscnn train`` and, one by one in between, of a bare loop.

    Same model, data, clipping and optimiser. Ours begins where the bare step ends: it loads data,
    calls hooks and draws the progress bar.
    """
    from lightning.pytorch.callbacks import Callback

    from cscnn.forecasting.training.quiet import quietly
    from cscnn.forecasting.training.train import make_trainer

    times: dict[str, list[float]] = {OURS: [], BARE: []}

    class Bare(Callback):
        """After each step of the trainer one of its own."""

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            self.module = copy.deepcopy(pl_module)
            self.optimizer = self.module.configure_optimizers()["optimizer"]
            self.before = time.perf_counter()

        def on_train_batch_end(
            self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int
        ) -> None:
            start = time.perf_counter()
            times[OURS].append(start - self.before)
            _step(self.module, self.optimizer, batch)
            self.before = time.perf_counter()
            times[BARE].append(self.before - start)

    with _preset(task, repeats + WARM) as config, quietly(), _terminal():
        data, module = _prepare(config)
        make_trainer(config, data.identity(), [Bare()]).fit(module, datamodule=data)
        data.source.close()
    return {variant: values[WARM:] for variant, values in times.items()}


def load_and_step(task: str, repeats: int) -> Mapping[str, Sequence[float]]:
    """Seconds to load batches in this process, and of the steps that use them."""
    times: dict[str, list[float]] = {LOAD: [], STEP: []}
    with _preset(task, repeats + 1) as config:
        data, module = _prepare(config)
        optimizer = module.configure_optimizers()["optimizer"]
        batches = iter(data.train_dataloader())
        for _ in range(repeats + 1):
            start = time.perf_counter()
            batch = next(batches)
            loaded = time.perf_counter()
            _step(module, optimizer, batch)
            times[LOAD].append(loaded - start)
            times[STEP].append(time.perf_counter() - loaded)
        data.source.close()
    return {variant: values[1:] for variant, values in times.items()}


def _prepare(config: Any) -> tuple[Any, Any]:
    """The data and the module of a run."""
    from cscnn._util.progress import Bar
    from cscnn.forecasting.training.loader import WindowData
    from cscnn.forecasting.training.module import TrainingModule
    from cscnn.forecasting.training.train import build_forecaster, optimizer_steps

    data = WindowData(config.data, config.seed, config.trainer.steps)
    units = data.fit_units(Bar("trajectories", quiet=True))
    forecaster = build_forecaster(config, data, units)
    return data, TrainingModule(forecaster, config.optimizer, optimizer_steps(config, data))


def _step(module: Any, optimizer: torch.optim.Optimizer, batch: Any) -> None:
    optimizer.zero_grad()
    module(batch).backward()
    torch.nn.utils.clip_grad_norm_(module.network.parameters(), 1.0)
    optimizer.step()


@contextlib.contextmanager
def _preset(task: str, steps: int) -> Iterator[Any]:
    """The configuration of a small preset, with data for it."""
    from cscnn.forecasting.training.command import parse

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (plan,) = plans(create(task, "small"), folder, {"train": 2})
        generate([plan])
        config, _ = parse(
            [f"--preset={task}_small", f"--out={folder / 'run'}", f"--data.train={plan.path}",
             "--data.per_trajectory=200", "--trainer.epochs=1", f"--trainer.steps={steps}",
             "--trainer.accelerator=cpu"]
        )  # fmt: skip
        config.folder.mkdir()
        yield config


@contextlib.contextmanager
def _terminal() -> Iterator[None]:
    """A terminal that nobody sees, so that progress bars are drawn."""
    before = os.environ.get("FORCE_COLOR")
    os.environ["FORCE_COLOR"] = "1"
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        os.environ.pop("FORCE_COLOR")
        if before is not None:
            os.environ["FORCE_COLOR"] = before
