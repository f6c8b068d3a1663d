"""What a study consists of: tasks at a size, models to compare, and the trainings to run."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from cscnn.data.generate import Plan, plans
from cscnn.data.simulators import create
from cscnn.training.config import (
    DataConfig,
    ModelConfig,
    OptimizerConfig,
    TrainConfig,
    TrainerConfig,
)

#: Raised when the same plan would give other numbers: old records are then not reused.
VERSION = 1
SPLITS = ("train", "valid", "test")


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
        model: options that all convolutional networks share, e.g. blocks and kernel_size.
        data: options of `DataConfig`.
        steps: optimiser steps of a training, whatever the number of trajectories.
        rates: learning rates to choose from, on the validation split.
        further_rates: more of them, tried one after the other for models whose best is the least
            or the largest so far.
        checks: how often it is validated on the way.
        test_windows: windows of the test split that errors are averaged over.
        kernel_width: width of the networks that make steerable kernels, by ``"implicit"`` and
            ``"complete"``; without it the usual ones. With small budgets and few taps, wide ones
            leave too little for channels.
        longer: how many times the steps of our network others take in the same time.
        own: further options of single models, by their names in the registry.
        warmup: steps over which the learning rate rises from zero.
    """

    task: str
    simulator: Mapping[str, Any]
    splits: Mapping[str, int]
    sizes: tuple[int, ...]
    seeds: int
    params: int
    model: Mapping[str, Any]
    data: Mapping[str, Any]
    steps: int
    rates: tuple[float, ...]
    further_rates: tuple[float, ...] = ()
    checks: int = 10
    test_windows: int = 128
    kernel_width: Mapping[str, int] = field(default_factory=dict)
    longer: Mapping[str, float] = field(default_factory=dict)
    own: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
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
        simulator = create(self.task, options.pop("preset", "paper"), **options)
        return plans(simulator, folder / self.task, self.splits)


@dataclass(frozen=True)
class Contender:
    """A model of the comparison.

    Attributes:
        label: for people.
        name: in the registry of models.
        options: of the model.
        backgrounds: whether it is told the known constants of the task.
        like: name of the contender whose learning rate it uses; by default its own is found.
        plain: it is no convolutional network: the setting's options are not for it.
    """

    label: str
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    backgrounds: bool = False
    like: str = ""
    plain: bool = False


@dataclass(frozen=True)
class Trial:
    """One training.

    Attributes:
        setting: task and size.
        key: name of the contender.
        contender: the model.
        trajectories: of the training split.
        rate: learning rate.
        seed: of weights and of the order of the data.
        longer: it takes so many times the steps of the setting.
    """

    setting: Setting
    key: str
    contender: Contender
    trajectories: int
    rate: float
    seed: int
    longer: float = 1

    @property
    def name(self) -> str:
        """Of its folder."""
        name = f"{self.setting.task}-{self.key}-n{self.trajectories}-lr{self.rate:g}-s{self.seed}"
        return name if self.longer == 1 else f"{name}-x{self.longer:g}"

    @property
    def detailed(self) -> bool:
        """Whether rollouts, pictures and all symmetries are measured: one run for each model."""
        largest = self.trajectories == max(self.setting.sizes)
        return largest and self.seed == 0 and self.longer == 1

    def config(self, data: Path, runs: Path) -> TrainConfig:
        """The configuration of the training."""
        setting = self.setting
        per_check = round(self.longer * setting.steps / setting.checks)
        data_options = DataConfig(**setting.data)
        batch = data_options.batch
        files = {split: str(data / setting.task / f"{split}.h5") for split in SPLITS}
        options: dict[str, Any] = {} if self.contender.plain else dict(setting.model)
        options |= {**setting.own.get(self.contender.name, {}), **self.contender.options}
        kernel = options.get("kernel", "implicit")
        if self.contender.name == "cs_resnet" and kernel in setting.kernel_width:
            made_by = options.get("kernel_options", {})
            options["kernel_options"] = {"hidden_dim": setting.kernel_width[kernel], **made_by}
        return TrainConfig(
            out=str(runs / self.name),
            seed=self.seed,
            data=replace(
                data_options,
                train=files["train"],
                valid=files["valid"],
                test=files["test"],
                trajectories=self.trajectories,
                per_trajectory=math.ceil(per_check * batch / self.trajectories),
                backgrounds=self.contender.backgrounds,
            ),
            model=ModelConfig(
                name=self.contender.name,
                params=setting.params,
                options=options,
            ),
            optimizer=OptimizerConfig(
                lr=self.rate, schedule="cosine", final_lr=1e-2, warmup=setting.warmup
            ),
            trainer=TrainerConfig(epochs=setting.checks, steps=per_check, progress=False),
        )

    def model_plan(self) -> dict[str, Any]:
        """The part of the fingerprint that the cost of a step depends on."""
        whole = self.fingerprint()
        return {name: whole[name] for name in ("setting", "contender")}

    def fingerprint(self) -> dict[str, Any]:
        """All that the result depends on, without names and the places of files."""
        setting, contender = asdict(self.setting), asdict(self.contender)
        for name in ("sizes", "seeds", "rates", "further_rates", "longer"):
            del setting[name]
        for name in ("label", "like"):
            del contender[name]
        described = {
            "version": VERSION,
            "setting": setting,
            "contender": contender,
            "trajectories": self.trajectories,
            "rate": self.rate,
            "seed": self.seed,
            "longer": self.longer,
            "detailed": self.detailed,
        }
        return json.loads(json.dumps(described))


@dataclass(frozen=True)
class Study:
    """A list of comparisons.

    Attributes:
        name: of the preset.
        settings: task -> setting.
        contenders: name -> model.
        scaling: task -> contenders that are compared for all sizes and seeds.
        ablations: task -> contenders that are compared at the middle size.
    """

    name: str
    settings: Mapping[str, Setting]
    contenders: Mapping[str, Contender]
    scaling: Mapping[str, tuple[str, ...]]
    ablations: Mapping[str, tuple[str, ...]]

    def only(self, keys: Sequence[str]) -> Study:
        """The same study of some contenders; those whose learning rates they use come along."""
        if unknown := [key for key in keys if key not in self.contenders]:
            raise ValueError(
                f"unknown model {unknown[0]!r} of the study: choose from "
                f"{', '.join(self.contenders)}"
            )
        wanted = {*keys, *(self.contenders[key].like for key in keys)}

        def some(parts: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
            return {task: tuple(k for k in found if k in wanted) for task, found in parts.items()}

        return replace(self, scaling=some(self.scaling), ablations=some(self.ablations))

    def tuning(
        self,
        task: str,
        errors: Mapping[str, Mapping[float, float]] | None = None,
        parts: Collection[str] = ("scaling", "ablations"),
    ) -> list[Trial]:
        """The trainings by which learning rates are chosen.

        Args:
            task: which.
            errors: contender -> rate -> error on the validation split, of those that were tried.
                What has to be tried next depends on them.
            parts: of the study, for whose contenders rates are needed.
        """
        setting, errors = self.settings[task], errors or {}
        keys = list(self.scaling[task])
        keys += self.ablations.get(task, ()) if "ablations" in parts else ()
        own = [key for key in dict.fromkeys(keys) if not self.contenders[key].like]
        return [
            Trial(setting, key, self.contenders[key], setting.tuned_on, rate, 0)
            for key in own
            for rate in setting.rates_to_try(errors.get(key, {}))
        ]

    def trials(self, task: str, rates: Mapping[str, float], part: str) -> list[Trial]:
        """The trainings of a part, of the contenders whose learning rates are known.

        Args:
            task: which.
            rates: contender -> learning rate.
            part: one of `cscnn.study.PARTS`.
        """
        setting = self.settings[task]
        keys, sizes = self.scaling[task], setting.sizes
        if part == "ablations":
            keys, sizes = self.ablations.get(task, ()), (setting.tuned_on,)
        elif part == "time":
            keys, sizes = tuple(k for k in keys if k in setting.longer), (max(sizes),)
        keys = tuple(k for k in keys if (self.contenders[k].like or k) in rates)
        return [
            Trial(
                setting,
                key,
                self.contenders[key],
                size,
                rates[self.contenders[key].like or key],
                seed,
                setting.longer[key] if part == "time" else 1,
            )
            for seed in range(setting.seeds)
            for size in sizes
            for key in keys
        ]
