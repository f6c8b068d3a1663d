"""One training of a study: a task at a size, a network, and how they make a configuration."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cscnn._util.jsonform import to_json
from cscnn.data.generate import Plan, plans
from cscnn.data.simulators import create
from cscnn.forecasting.runs import SPLITS
from cscnn.forecasting.training.config import (
    DataConfig,
    ModelConfig,
    OptimizerConfig,
    TrainConfig,
    TrainerConfig,
)
from experiments.paper.records import TrialPlan

#: Raised when the same plan would give other numbers: old records are then not reused.
VERSION = 2

#: Attributes of `Setting` and `Contender` that say what is run, not what comes out of it.
SCHEDULING = ("sizes", "seeds", "rates", "further_rates", "step_factors", "label", "rate_of")
#: Younger attributes: plans leave them out where they are empty, as records of before have none.
YOUNGER = ("open_padding",)


@dataclass(frozen=True)
class Setting:
    """A task at a size, and how long models are trained on it. The same for all models.

    Attributes:
        task: name of the simulator.
        simulator: its options; ``preset`` among them.
        splits: trajectories of train, valid and test.
        sizes: numbers of training trajectories to compare.
        seeds: how many.
        params: budget of parameters of every model.
        options: those that all convolutional networks share, e.g. blocks and kernel_size.
        data: options of `DataConfig`.
        steps: optimiser steps of a training, whatever the number of trajectories.
        rates: learning rates to choose from, on the validation split.
        further_rates: more of them, tried one after the other for models whose best is the least
            or the largest so far.
        checks: how often it is validated on the way.
        test_windows: windows of the test split that errors are averaged over.
        hidden_dim: width of the networks that make steerable kernels, by ``"implicit"`` and
            ``"complete"``; without it the usual ones. With small budgets and few taps, wide ones
            leave too little for channels.
        step_factors: how many times the steps of our network others take in the same time.
        own_options: further options of single networks, by their names in the registry.
        warmup: steps over which the learning rate rises from zero.
    """

    task: str
    simulator: Mapping[str, Any]
    splits: Mapping[str, int]
    sizes: tuple[int, ...]
    seeds: int
    params: int
    options: Mapping[str, Any]
    data: Mapping[str, Any]
    steps: int
    rates: tuple[float, ...]
    further_rates: tuple[float, ...] = ()
    checks: int = 10
    test_windows: int = 128
    hidden_dim: Mapping[str, int] = field(default_factory=dict)
    step_factors: Mapping[str, float] = field(default_factory=dict)
    own_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    warmup: int = 0

    def __post_init__(self) -> None:
        if not self.rates or sorted({*self.rates}) != list(self.rates):
            raise ValueError(f"learning rates must be different and ascending, got {self.rates}")
        low, high = self.rates[0], self.rates[-1]
        if inside := [rate for rate in self.further_rates if low <= rate <= high]:
            raise ValueError(f"further rate {inside[0]} is not beyond {self.rates}")

    @property
    def tuned_on(self) -> int:
        """Training trajectories with which learning rates are chosen: the middle size."""
        return self.sizes[len(self.sizes) // 2]

    def rates_to_try(self, errors: Mapping[float, float]) -> tuple[float, ...]:
        """Learning rates of the search for the best of a model: as far as errors say, and the next.

        Args:
            errors: of the rates that were tried, on the validation split; infinite if training
                diverged.
        """
        tried = list(self.rates)
        while all(rate in errors for rate in tried):
            best = min(tried, key=lambda rate: errors[rate])
            less = [rate for rate in self.further_rates if rate < tried[0]]
            more = [rate for rate in self.further_rates if rate > tried[-1]]
            if best == tried[0] and less:
                tried.insert(0, max(less))
            elif best == tried[-1] and more:
                tried.append(min(more))
            else:
                break
        return tuple(tried)

    def files(self, folder: Path) -> list[Plan]:
        """The data to make."""
        options = dict(self.simulator)
        simulator = create(self.task, options.pop("preset", None), **options)
        return plans(simulator, folder / self.task, self.splits)


@dataclass(frozen=True)
class Contender:
    """A network of the comparison.

    Attributes:
        label: for people.
        name: in the registry of networks.
        options: of the network.
        constants: whether it is told the known constants of the task.
        rate_of: key of the contender whose learning rate it uses; by default its own is searched.
        convolutional: whether the options that convolutional networks share are for it.
        open_padding: what it sees beyond open borders; by default that of the setting.
    """

    label: str
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    constants: bool = False
    rate_of: str = ""
    convolutional: bool = True
    open_padding: str = ""


@dataclass(frozen=True)
class Trial:
    """One training.

    Attributes:
        setting: task and size.
        key: of the contender.
        contender: the network.
        trajectories: of the training split.
        rate: learning rate.
        seed: of weights and of the order of the data.
        step_factor: how many times the steps of the setting it takes.
    """

    setting: Setting
    key: str
    contender: Contender
    trajectories: int
    rate: float
    seed: int
    step_factor: float = 1

    @property
    def name(self) -> str:
        """Of its folder."""
        name = f"{self.setting.task}-{self.key}-n{self.trajectories}-lr{self.rate:g}-s{self.seed}"
        return name if self.step_factor == 1 else f"{name}-x{self.step_factor:g}"

    @property
    def detailed(self) -> bool:
        """Whether rollouts, pictures and all symmetries are measured: one run for each model."""
        largest = self.trajectories == max(self.setting.sizes)
        return largest and self.seed == 0 and self.step_factor == 1

    def options(self) -> dict[str, Any]:
        """Of the network: the contender's own come before those of the setting."""
        setting, contender = self.setting, self.contender
        options = {
            **(setting.options if contender.convolutional else {}),
            **setting.own_options.get(contender.name, {}),
            **contender.options,
        }
        kernel = options.get("kernel", "implicit")
        choice = {"name": kernel} if isinstance(kernel, str) else dict(kernel)
        name = choice.pop("name")
        if contender.name == "cs_resnet" and name in setting.hidden_dim:
            options["kernel"] = {"name": name, "hidden_dim": setting.hidden_dim[name], **choice}
        return options

    def config(self, data: Path, runs: Path) -> TrainConfig:
        """The configuration of the training.

        Args:
            data: folder of the folders of tasks.
            runs: folder of the folders of runs.
        """
        setting = self.setting
        per_check = round(self.step_factor * setting.steps / setting.checks)
        # as in the published records: all of the grid counts, and walls repeat all components
        data_options = DataConfig(**{"margin": 0, "wall_padding": "symmetric", **setting.data})
        open_padding = self.contender.open_padding or data_options.open_padding
        files: dict[str, Any] = {
            split: str(data / setting.task / f"{split}.h5") for split in SPLITS
        }
        return TrainConfig(
            out=str(runs / self.name),
            seed=self.seed,
            data=replace(
                data_options,
                **files,
                trajectories=self.trajectories,
                per_trajectory=math.ceil(per_check * data_options.batch / self.trajectories),
                constants=self.contender.constants,
                open_padding=open_padding,
                wall_padding=data_options.wall_padding,
            ),
            model=ModelConfig(
                name=self.contender.name, params=setting.params, options=self.options()
            ),
            optimizer=OptimizerConfig(
                lr=self.rate, schedule="cosine", final_lr=1e-2, warmup=setting.warmup
            ),
            trainer=TrainerConfig(epochs=setting.checks, steps=per_check, progress=False),
        )

    def plan(self) -> TrialPlan:
        """All that the result depends on."""
        setting, contender = (
            {
                name: value
                for name, value in to_json(part).items()
                if name not in SCHEDULING and (value or name not in YOUNGER)
            }
            for part in (self.setting, self.contender)
        )
        return TrialPlan(
            version=VERSION,
            setting=setting,
            contender=contender,
            trajectories=self.trajectories,
            rate=self.rate,
            seed=self.seed,
            step_factor=self.step_factor,
            detailed=self.detailed,
        )
