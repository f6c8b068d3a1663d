"""What a training run is told: typed, with the published protocol as default."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cscnn._util.checks import check_choice, check_int
from cscnn._util.jsonform import from_json, to_json
from cscnn.data.strided import Strides
from cscnn.forecasting.constraints import read_constraints
from cscnn.forecasting.forecaster import PREDICTIONS
from cscnn.forecasting.training.learning import LearningConfig
from cscnn.forecasting.training.loggerconfig import read_loggers
from cscnn.networks.recipe import json_options

#: What numpy takes.
MAX_SEED = 2**32 - 1

PRECISIONS = ("32", "64", "bf16-mixed", "16-mixed", "bf16-true")

UNUSED = "ddp_find_unused_parameters_true"
STRATEGIES = ("auto", "ddp", UNUSED, "fsdp")


@dataclass
class DataConfig:
    """Which data, and how windows are cut from them.

    Args:
        train: the training split: a file, a folder, a pattern such as 'data/train_*.h5', or a list
            of these (in YAML, with commas, or by --data.train+ FILE for each). Several files must
            hold the same fields on the same grid.
        valid: the validation split, in the same form; without it the training loss selects the best
            weights.
        test: the test split, in the same form, for cscnn evaluate.
        frames_in: frames that the model sees; by default 4, or with time as an axis of the grid
            half a trajectory, at most 16.
        frames_out: frames that it predicts; by default 1. With time as an axis of the grid the
            forecast is later by as many frames; by default frames_in.
        coarsen: points per axis that are joined to a cell, of which the model sees the mean.
        stride: stored frames from one frame of a window to the next: with 2 every other frame is
            left out, and forecasts go in steps twice as long. A range such as [1, 4] draws a stride
            for each training window, and the model is told the time between frames, so that one
            model forecasts in steps of several lengths. Validation has the smallest.
        gap: frames (after the stride) between the newest that the model sees and the first that it
            predicts, for direct forecasts of a later time. Such forecasts cannot be fed back.
        per_trajectory: random windows per trajectory and epoch; by default as many as there are.
        trajectories: number of training trajectories to use, from the first on.
        valid_windows: largest number of validation windows, evenly spread.
        augment: turn and reflect training windows by random symmetries of the grid.
        open_padding: what the network sees beyond open borders: zeros, replicate, or extrapolate,
            which differential kernels need.
        wall_padding: what the network sees beyond walls: wall, the mirror image, in which vectors
            lose their normal part at the wall (equivariant networks; others repeat all components);
            conductor, for electric fields; symmetric repeats all components for every network.
        margin: points at open borders of space that losses and metrics leave out. With time as an
            axis of the grid by default as many as the network sees, at most a quarter of the
            grid, else none.
        constants: tell the network what is known beside the fields: what the data are given
            (obstacles, forcing, viscosity), the direction of gravity, by how much the forecast is
            later, or the time between frames if data.stride is a range. false trains one that is
            not told, for comparison.
        batch: windows per step, over all devices.
        workers: processes that load data, per device.
        radius: of data on points: neighbours of a point are those within this distance. By
            default it has about 24 of them.
        neighbours: of data on points: number of nearest neighbours instead, itself included.
    """

    train: list[str] | str = ""
    valid: list[str] | str = ""
    test: list[str] | str = ""
    frames_in: int | None = None
    frames_out: int | None = None
    coarsen: int = 1
    stride: int | list[int] = 1
    gap: int = 0
    per_trajectory: int | None = None
    trajectories: int | None = None
    valid_windows: int | None = None
    augment: bool = False
    open_padding: str = "zeros"
    wall_padding: str = "wall"
    margin: int | None = None
    constants: bool = True
    batch: int = 8
    workers: int = 0
    radius: float | None = None
    neighbours: int | None = None

    def __post_init__(self) -> None:
        for split in ("train", "valid", "test"):
            if isinstance(paths := getattr(self, split), list):
                # --data.train+ FILE appends to the default, which is no file
                setattr(self, split, [path for path in paths if path])


@dataclass
class ModelConfig:
    """Which network, and its size.

    Args:
        name: of the network, e.g. cs_resnet, cs_unet or resnet (cscnn.networks.names lists all).
        width: channels; or give params.
        params: budget of parameters, for which the width is found.
        options: further options of the network, e.g. {blocks: 4, kernel: complete} or
            {kernel: {name: complete, group: O+}}. Products and biases of steerable networks follow
            the group of the kernel, unless the options have a group.
        predict: state, or change: then the output of the network is added to the newest known
            frame, so that it need not learn to copy it. Losses are those of the state with both.
        calibrate: set initial scales of steerable networks by a pass of noise; without it they
            are as drawn.
        recompute: compute residual blocks again in the backward pass, for less memory.
        constraints: what predicted states obey, by field: {velocity: divergence_free, smoke:
            keep_mean}, {magnetic: closed}. They should hold for the data, in their discretisation:
            {velocity: {kind: divergence_free, scheme: spectral}} for data of spectral solvers;
            staggered, the default, for solvers with velocities on faces, stored at centres (all of
            cscnn generate, PhiFlow); differences for central differences. --dry-run prints by how
            much they change the data. Axes must be periodic or walls.
    """

    name: str = "cs_resnet"
    width: int | None = None
    params: int | None = None
    options: dict[str, Any] = field(default_factory=dict)
    predict: str = "state"
    calibrate: bool = True
    recompute: bool = False
    constraints: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.options = json_options(self.options)  # so that typed kernels keep their names in files
        self.constraints = json_options(self.constraints)


@dataclass
class OptimizerConfig:
    """How it learns.

    Args:
        lr: learning rate of AdamW.
        weight_decay: of AdamW.
        clip: largest global norm of the gradient; 0 for none.
        schedule: constant or cosine.
        final_lr: what cosine ends at, as a fraction of lr.
        warmup: steps over which the rate rises from zero.
        ema: decay of the average of weights that is validated and saved, e.g. 0.999; 0 for none.
    """

    lr: float = 1e-3
    weight_decay: float = 0.0
    clip: float = 1.0
    schedule: str = "constant"
    final_lr: float = 1e-3
    warmup: int = 0
    ema: float = 0.0


@dataclass
class TrainerConfig:
    """How long and on what.

    Args:
        epochs: passes over the training windows.
        steps: steps per epoch, if not all windows shall be seen; the state is saved after each.
        accumulate: batches whose gradients are added up for one step.
        precision: 32, 64, bf16-mixed, 16-mixed or bf16-true, which has weights and frames of 16
            bits too, for model.predict=state.
        compile: torch.compile the network, block by block.
        patience: number of epochs without improvement after which training stops.
        accelerator: cpu, gpu, mps or auto.
        devices: per node.
        nodes: machines.
        strategy: ddp, fsdp, which splits the parameters over the devices, or auto: ddp if several.
            ddp_find_unused_parameters_true is for networks that leave some out in a step.
        logger: write a log beside metrics.csv: csv, tensorboard, wandb, mlflow, a class of
            Lightning's loggers as {class_path: ..., init_args: {...}}, or a list of these. They
            write into the folder of the run, wandb offline, and count epochs from 0.
        progress: show a progress bar.
    """

    epochs: int = 50
    steps: int | None = None
    accumulate: int = 1
    precision: str = "32"
    compile: bool = False
    patience: int | None = None
    accelerator: str = "auto"
    devices: int = 1
    nodes: int = 1
    strategy: str = "auto"
    logger: list[Any] | dict[str, Any] | str | None = None
    progress: bool = True


@dataclass
class TrainConfig:
    """A training run.

    Args:
        out: folder of the run; if it holds an unfinished run of the same configuration, go on.
        seed: of weights, windows and their order.
        data: which data.
        model: which model.
        optimizer: how it learns.
        trainer: how long and on what.
        training: what is minimised, and training for rollouts.
    """

    out: str = ""
    seed: int = 0
    data: DataConfig = field(default_factory=DataConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    trainer: TrainerConfig = field(default_factory=TrainerConfig)
    training: LearningConfig = field(default_factory=LearningConfig)

    def check(self) -> None:
        """Raise for what is missing or impossible."""
        if not self.out:
            raise ValueError("the run needs a folder: --out RUN")
        if not self.data.train:
            raise ValueError("the run needs training data: --data.train FILE")
        read_constraints(self.model.constraints)
        read_loggers(self.trainer.logger)
        Strides.read(self.data.stride, "data.stride")
        if self.data.gap and self.training.unroll > 1:
            raise ValueError(
                f"data.gap={self.data.gap} does not go with training.unroll={self.training.unroll}"
                ": a forecast after a gap cannot be fed back. For longer steps take data.stride"
            )
        self.training.check(self.trainer.epochs)
        check_choice("model.predict", self.model.predict, PREDICTIONS)
        if self.model.predict == "change" and self.trainer.precision == "bf16-true":
            raise ValueError(
                "model.predict=change does not go with trainer.precision=bf16-true: frames of 16 "
                "bits have three digits, and what changes in a step is lost in their rounding. "
                "Take bf16-mixed"
            )
        self._check_numbers()
        self._check_devices()
        self._check_optimizer()
        width, params = self.model.width, self.model.params
        if width is None and params is None:
            raise ValueError("how large? Give either model.width or model.params")
        if width is not None and params is not None:
            raise ValueError(
                f"give either model.width or model.params, got {width} and {params}: if a preset "
                "gives the other one, --model.params null removes it"
            )

    def _check_numbers(self) -> None:
        least = {
            "seed": 0, "data.workers": 0, "data.gap": 0, "optimizer.warmup": 0,
            "data.coarsen": 1, "data.batch": 1, "trainer.epochs": 1,
            "trainer.accumulate": 1, "trainer.devices": 1, "trainer.nodes": 1,
        }  # fmt: skip
        optional = ("data.frames_in", "data.frames_out", "data.per_trajectory", "data.trajectories",
                    "data.valid_windows", "data.neighbours", "trainer.steps",
                    "trainer.patience")  # fmt: skip
        for name in (*least, *optional):
            value: Any = self
            for part in name.split("."):
                value = getattr(value, part)
            if value is not None or name in least:
                check_int(name, value, low=least.get(name, 1))
        if self.data.margin is not None:
            check_int("data.margin", self.data.margin, low=0)
        if self.data.radius is not None and not 0 < self.data.radius < math.inf:
            raise ValueError(f"data.radius must be positive, got {self.data.radius}")
        if self.seed > MAX_SEED:
            raise ValueError(f"seed must be at most {MAX_SEED} (32 bits), got {self.seed}")
        if self.trainer.precision not in PRECISIONS:
            raise ValueError(
                f"trainer.precision must be one of {', '.join(PRECISIONS)}, got "
                f"{self.trainer.precision!r}"
            )

    def _check_devices(self) -> None:
        trainer = self.trainer
        world = trainer.devices * trainer.nodes
        if self.data.batch % world:
            raise ValueError(
                f"data.batch={self.data.batch} is not divisible by {world} devices "
                f"({trainer.nodes} nodes of {trainer.devices})"
            )
        if trainer.strategy not in STRATEGIES:
            raise ValueError(
                f"trainer.strategy must be one of {', '.join(STRATEGIES)}, got {trainer.strategy!r}"
            )
        if trainer.strategy == "fsdp" and trainer.precision not in ("32", "bf16-mixed"):
            raise ValueError(
                "trainer.strategy=fsdp goes with trainer.precision 32 or bf16-mixed, got "
                f"{trainer.precision!r}"
            )
        if trainer.strategy == "fsdp" and world == 1:
            raise ValueError("trainer.strategy=fsdp needs several devices, got trainer.devices=1")

    def _check_optimizer(self) -> None:
        options = self.optimizer
        if options.schedule not in ("constant", "cosine"):
            raise ValueError(
                f"optimizer.schedule must be constant or cosine, got {options.schedule!r}"
            )
        if not 0 <= options.ema < 1:
            raise ValueError(f"optimizer.ema must be in [0, 1), got {options.ema}")
        if not 0 < options.lr < math.inf:
            raise ValueError(f"optimizer.lr must be positive and finite, got {options.lr}")
        for name in ("clip", "weight_decay", "final_lr"):
            if not 0 <= getattr(options, name) < math.inf:
                raise ValueError(
                    f"optimizer.{name} must be at least 0 and finite, got {getattr(options, name)}"
                )

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return dict(to_json(self))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> TrainConfig:
        """Inverse of `to_dict`."""
        return from_json(cls, data, "configuration")

    @property
    def folder(self) -> Path:
        """Of the run."""
        return Path(self.out)
