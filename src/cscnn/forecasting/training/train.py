"""Run a training: from a configuration to a folder with the trained model."""

from __future__ import annotations

import contextlib
import math
import os
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.utilities import rank_zero_only
from rich.console import Console

from cscnn._util.files import remove_leftovers
from cscnn._util.jsonform import from_json, write_json
from cscnn._util.locks import locked
from cscnn._util.progress import Bar
from cscnn.forecasting.augment import RandomNoise
from cscnn.forecasting.forecaster import Forecaster
from cscnn.forecasting.losses import check_loss, check_weights
from cscnn.forecasting.receptive_field import default_margin
from cscnn.forecasting.runs import TRAINED, Run, remove_run
from cscnn.forecasting.training import doubts
from cscnn.forecasting.training.callbacks import (
    FORMAT,
    AtomicCheckpoint,
    EpochLines,
    RunFolder,
    TrainingBar,
    WeightAverage,
)
from cscnn.forecasting.training.config import TrainConfig
from cscnn.forecasting.training.identity import DataIdentity
from cscnn.forecasting.training.launch import Signals, Terminated, follow_parent, let_parent_tell
from cscnn.forecasting.training.loader import WindowData
from cscnn.forecasting.training.loggerconfig import read_loggers
from cscnn.forecasting.training.loggers import Version, make_loggers
from cscnn.forecasting.training.module import TrainingModule
from cscnn.forecasting.training.quiet import quietly
from cscnn.forecasting.training.room import check_budget, check_precision, check_room
from cscnn.forecasting.training.sharding import connection_lost, strategy
from cscnn.forecasting.units import Units
from cscnn.networks import recompute_blocks

#: What may change between a run and its continuation.
FREE = ("accelerator", "devices", "nodes", "strategy", "epochs", "progress", "logger")


def train(config: TrainConfig, units: Units | None = None, *, overwrite: bool = False) -> Run:
    """Train, or resume an interrupted run of the same configuration.

    Checkpoints are written after each epoch. A run that was killed repeats the epoch it was in; on
    the same machine the final weights are the same to the last bit.

    Args:
        config: what to do.
        units: in which the network shall compute; by default fitted to the training data.
        overwrite: start over, in place of a run that is in the folder. Its files are removed when
            all is ready.
    """
    config.check()
    follow_parent()
    restarted = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0"  # by torchrun: go on
    with quietly(), _alone(config):
        return _train(config, units, overwrite and not restarted)


@contextlib.contextmanager
def _alone(config: TrainConfig) -> Iterator[None]:
    """No other run writes into the folder meanwhile; the first process of a run sees to it."""
    folder = config.folder
    if folder.is_file():
        raise FileExistsError(f"--out {folder} is a file: a run needs a folder of its own")
    new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with locked(folder / ".lock", str(folder)) if _writes() else contextlib.nullcontext():
            yield
    finally:
        if new and _writes():
            with contextlib.suppress(OSError):  # it is not empty: the run has begun
                folder.rmdir()


def _writes() -> bool:
    """Whether this process of a run is the one that writes files."""
    return int(getattr(rank_zero_only, "rank", 0)) == 0


def _train(config: TrainConfig, units: Units | None, overwrite: bool) -> Run:
    progress = None if overwrite else prepare(config)
    lightning.seed_everything(config.seed, workers=True, verbose=False)
    epoch = 0 if progress is None else progress.epochs
    data = open_data(config, epoch)
    with contextlib.closing(data):
        identity = data.identity()
        if progress is not None:
            progress.data.check(identity, config.folder, config.data.train, config.data.valid)
        given = units if overwrite else _given_units(config, progress, units)
        bar = Bar("trajectories", quiet=not config.trainer.progress)
        module = TrainingModule(
            build_forecaster(config, data, given or data.fit_units(bar)),
            config.optimizer,
            total_steps=optimizer_steps(config, data),
            compile=config.trainer.compile,
            training=config.training,
        )
        if config.training.noise:
            data.noise = RandomNoise(
                module.forecaster.task, module.forecaster.units, config.training.noise
            )
        data.check_splits()
        check_precision(config, module.forecaster, data)
        check_room(config, module.network, data)
        if progress is None and _writes():
            doubts.warn(module.forecaster, data)
        if config.trainer.compile and config.trainer.progress and _writes():
            print("the first step compiles the network: a minute or more", file=sys.stderr)
        signals = Signals()
        trainer = make_trainer(config, identity, [signals], progress)
        if overwrite and _writes():
            remove_run(config.folder)
        begin(config, given if progress is None else None)
        if progress is None:
            for logger in trainer.loggers:
                logger.log_hyperparams(config.to_dict())
        with signals.installed(trainer):
            _fit(config, trainer, module, data, None if progress is None else _state(config))
    return Run(config.folder)


def _given_units(
    config: TrainConfig, progress: Progress | None, units: Units | None
) -> Units | None:
    """Units that the run has, or that the caller gives; None if they are to be fitted."""
    given = Run(config.folder).given_units() if progress is None else progress.units
    if given is not None and units not in (None, given):
        raise ValueError(f"{config.folder} learns in units {given}, got {units}")
    return units if given is None else given


def _fit(
    config: TrainConfig,
    trainer: lightning.Trainer,
    module: TrainingModule,
    data: WindowData,
    state: Path | None,
) -> None:
    """Lightning's fit, with its errors and interruptions told once and for users."""
    try:
        trainer.fit(module, datamodule=data, ckpt_path=state, weights_only=True)
    except Terminated:
        raise
    except SystemExit:  # what Lightning makes of Ctrl-C
        if trainer.interrupted:
            raise KeyboardInterrupt from None
        raise
    except Exception as error:
        let_parent_tell()
        if trainer.world_size == 1 or not connection_lost(error):
            raise
        raise ConnectionError(_lost(config, trainer, error)) from error


def _state(config: TrainConfig) -> Path:
    return config.folder / "state.ckpt"


def _lost(config: TrainConfig, trainer: lightning.Trainer, error: Exception) -> str:
    """What to say if one of several processes died."""
    state = _state(config)
    try:
        epochs = read_progress(state).epochs if state.exists() else 0
        rest = f"{config.folder} has the state after {epochs} epochs; the same command goes on"
    except (ValueError, OSError) as damage:
        rest = str(damage)
    reason = next(iter(str(error).splitlines()), "")
    return (
        f"process {trainer.global_rank} of {trainer.world_size} lost the others: one of them died, "
        f"or the network failed. {rest} ({type(error).__name__}: {reason})"
    )


def open_data(config: TrainConfig, epoch: int = 0) -> WindowData:
    """The windows of a run, from an epoch on."""
    return WindowData(config.data, config.seed, config.trainer.steps, epoch, config.training.unroll)


def optimizer_steps(config: TrainConfig, data: WindowData) -> int:
    """Steps of the whole run; the last of an epoch may have fewer batches than the others."""
    return math.ceil(data.steps_per_epoch() / config.trainer.accumulate) * config.trainer.epochs


@dataclass(frozen=True)
class Progress:
    """How far a run has come: finished epochs, the units in which it learns, and from what.

    Attributes:
        epochs, steps: that are finished.
        units: in which it learns.
        data: from which it learns.
        loggers: classes and names of the logs to go on in.
    """

    epochs: int
    units: Units
    data: DataIdentity
    steps: int = 0
    loggers: tuple[Version, ...] = ()


def prepare(config: TrainConfig) -> Progress | None:
    """Check that a folder is empty or of the same run; how far that is, if it began."""
    folder = config.folder
    if (folder / "config.json").exists():
        old, new = _fixed(Run(folder).config().to_dict()), _fixed(config.to_dict())
        if old != new:
            key, before, now = next(
                (k, old.get(k), new.get(k)) for k in {**old, **new} if old.get(k) != new.get(k)
            )
            raise ValueError(
                f"{folder} holds a run with {key}={before}, not {now}: choose another --out, or "
                "add --overwrite"
            )
    state = _state(config)
    if not state.exists():
        _check_no_state_was_lost(folder)
        return None
    progress = read_progress(state)
    if not (folder / "model.safetensors").is_file():
        raise ValueError(
            f"{folder} has lost its best weights, model.safetensors: put the file back, or choose "
            "another --out"
        )
    if config.trainer.epochs < progress.epochs:
        raise ValueError(
            f"{folder} has trained for {progress.epochs} epochs already, got trainer.epochs="
            f"{config.trainer.epochs}"
        )
    return progress


def _check_no_state_was_lost(folder: Path) -> None:
    """Raise if a run without a state had finished epochs, which starting anew would replace."""
    if (folder / "metrics.csv").is_file() and len(Run(folder).metrics()) > 1:  # one: killed in it
        raise ValueError(
            f"{folder} has weights and metrics, but its state.ckpt is gone: put the file back, or "
            "choose another --out"
        )


def begin(config: TrainConfig, units: Units | None = None) -> None:
    """The folder is this run's from now on; not before data and model are known to be possible.

    Args:
        config: of the run.
        units: that the caller gave, so that a run that is killed in its first epoch keeps them.
    """
    if _writes():
        remove_leftovers(*(config.folder / name for name in TRAINED))
        if units is not None:
            # first: with a config it can be resumed
            write_json(config.folder / "units.json", units)
        write_json(config.folder / "config.json", config)


def read_progress(state: Path) -> Progress:
    """Read a state, executing nothing in it, or say that it is damaged or of another version.

    It is a zip archive, which has a checksum of each of its parts; torch does not look at them.
    """
    try:
        with zipfile.ZipFile(state) as archive:
            if (part := archive.testzip()) is not None:
                raise ValueError(f"the checksum of {part} is wrong")
        content = torch.load(state, map_location="cpu", weights_only=True)
        saved = content["callbacks"][RunFolder.__qualname__]
        written = saved.get("format", 0)
        if written == FORMAT:
            return Progress(
                int(content["epoch"]) + 1,
                from_json(Units, saved["units"]),
                from_json(DataIdentity, saved["data"]),
                int(content["global_step"]),
                tuple(saved.get("loggers", ())),
            )
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        raise ValueError(
            f"{state} is damaged or not a state of a run: put back a copy of it, or choose another "
            f"--out to start anew ({reason})"
        ) from error
    raise ValueError(
        f"{state} was written by {'an older' if written < FORMAT else 'a newer'} cscnn: it has "
        f"format {written}, expected {FORMAT}; go on with that version, or choose another --out"
    )


def _fixed(config: dict[str, Any]) -> dict[str, Any]:
    """Dotted names -> values of all that must not change."""
    flat: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, dict):
            flat.update({f"{name}.{key}": v for key, v in value.items()})
        else:
            flat[name] = value
    free = {"out", "data.workers", "data.test", *(f"trainer.{name}" for name in FREE)}
    if flat.get("optimizer.schedule") == "cosine":  # it depends on the length of the run
        free.remove("trainer.epochs")
    return {name: value for name, value in flat.items() if name not in free}


def build_forecaster(config: TrainConfig, data: WindowData, units: Units) -> Forecaster:
    """The forecaster of a run, with fresh weights."""
    check_budget(config)
    check_loss(config.training.loss, data.task)
    check_weights(config.training.weights, data.task)
    model = config.model
    width = {} if model.width is None else {"width": model.width}
    forecaster = Forecaster.build(
        model.name,
        data.task,
        units,
        config.data.coarsen,
        model.predict,
        model.constraints,
        config.data.stride,
        params=model.params,
        calibrate=model.calibrate,
        **{**model.options, **width},
    )
    recompute_blocks(forecaster, model.recompute)
    if config.data.margin is None:
        margin = default_margin(forecaster, data.grid())
        forecaster.task = forecaster.task.replace(margin=margin)
    return forecaster


def make_trainer(
    config: TrainConfig,
    data: DataIdentity,
    more: Sequence[Callback] = (),
    progress: Progress | None = None,
) -> lightning.Trainer:
    """Lightning's trainer for a run, with further callbacks; data are remembered in the state.

    Args:
        config: of the run.
        data: what it learns from.
        more: further callbacks.
        progress: of the run, if it goes on; its loggers then go on too.
    """
    options = config.trainer
    callbacks: list[Any] = []
    if config.optimizer.ema:
        callbacks.append(WeightAverage(config.optimizer.ema))
    callbacks.append(RunFolder(config.folder, data, options.patience))
    if options.progress:
        callbacks.append(TrainingBar() if Console().is_terminal else EpochLines())
    callbacks += more
    steps, versions = (0, ()) if progress is None else (progress.steps, progress.loggers)
    loggers = make_loggers(read_loggers(options.logger), config.folder, steps, versions)
    precision: Any = {"32": "32-true", "64": "64-true"}.get(options.precision, options.precision)
    return lightning.Trainer(
        accelerator=options.accelerator,
        devices=options.devices,
        num_nodes=options.nodes,
        strategy=strategy(options.strategy, options.devices * options.nodes),
        plugins=[AtomicCheckpoint()],
        precision=precision,
        max_epochs=options.epochs,
        accumulate_grad_batches=options.accumulate,
        gradient_clip_val=config.optimizer.clip or None,
        callbacks=callbacks,
        logger=loggers or False,
        enable_progress_bar=any(isinstance(c, TrainingBar) for c in callbacks),
        enable_model_summary=False,
        num_sanity_val_steps=0,
        use_distributed_sampler=False,
        default_root_dir=str(config.folder),
    )
