"""One training: a network, a recipe, and how long."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cscnn._util.jsonform import to_json
from cscnn.data.generate import Plan, plans
from cscnn.data.simulators import Simulator, create
from cscnn.forecasting.runs import SPLITS
from cscnn.forecasting.training import LearningConfig
from cscnn.forecasting.training.config import (
    DataConfig,
    ModelConfig,
    OptimizerConfig,
    TrainConfig,
    TrainerConfig,
)

#: Raised when the same plan would give other numbers: old records are then not reused.
VERSION = 1

#: Parts of a study: learning rates and recipes, then the best of them with more seeds, and with
#: fewer trajectories to learn from.
PARTS = ("levers", "time", "few", "steps")

#: Attributes of `Setting` that say what is run, not what comes out of a training.
SCHEDULING = ("seconds", "longer", "steps", "seeds", "rates", "recipes", "few")


@dataclass(frozen=True)
class Contender:
    """A network of the comparison.

    Attributes:
        label: for people.
        name: in the registry of networks.
        options: of the network.
        ours: whether it is one of this library's own, which the verdicts are about.
        data: options of `DataConfig`, beside those of the setting.
        like: key of the contender of which it is an ablation: it has that one's learning rate, and
            is trained with one recipe and seed.
        tasks: keys of those that it is for; by default all.
    """

    label: str
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    ours: bool = False
    data: Mapping[str, Any] = field(default_factory=dict)
    like: str = ""
    tasks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recipe:
    """How a network is trained for rollouts.

    Attributes:
        label: for people.
        training: options of `LearningConfig`.
        model: further options of `ModelConfig`.
    """

    label: str
    training: Mapping[str, Any] = field(default_factory=dict)
    model: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Setting:
    """A task, and how networks learn it; the same for all of them.

    Attributes:
        name: of the task.
        simulator: that makes the data.
        options: of the simulator; ``preset`` among them.
        splits: trajectories of train, valid and test.
        data: options of `DataConfig`.
        params: budget of parameters of every network.
        steps: of the optimiser, where all contenders take the same number.
        seconds: of a training of the search for learning rate and recipe.
        longer: factor of the time in the comparison.
        seeds: how many.
        rates: learning rates to choose from, ascending.
        horizon: steps of a rollout.
        checks: how often it is validated on the way.
        warmup: share of the steps over which the learning rate rises from zero.
        others: further test splits, name -> options of the simulator.
        recipes: keys of those that are tried, the first in the search for learning rates; by
            default all of the study.
        few: trajectories of the training split in the part of that name; 0 for no such part.
    """

    name: str
    simulator: str
    options: Mapping[str, Any]
    splits: Mapping[str, int]
    data: Mapping[str, Any]
    params: int
    steps: int
    seconds: float
    rates: tuple[float, ...]
    longer: float = 1.0
    horizon: int = 10
    seeds: int = 3
    checks: int = 5
    warmup: float = 0.05
    others: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    recipes: tuple[str, ...] = ()
    few: int = 0

    def files(self, folder: Path) -> list[Plan]:
        """The data to make."""
        found = plans(self._simulator(self.options), folder / self.name, self.splits)
        for name, options in self.others.items():
            found += plans(
                self._simulator(options), folder / self.name, {name: self.splits["test"]}
            )
        return found

    def _simulator(self, options: Mapping[str, Any]) -> Simulator:
        rest = dict(options)
        return create(self.simulator, rest.pop("preset", None), **rest)


@dataclass(frozen=True)
class Trial:
    """One training.

    Attributes:
        setting: the task.
        key, contender: the network.
        lever, recipe: how it is trained.
        rate: learning rate.
        steps: of the optimiser.
        seed: of weights and of the order of the data.
        trajectories: of the training split that are used; 0 for all.
    """

    setting: Setting
    key: str
    contender: Contender
    lever: str
    recipe: Recipe
    rate: float
    steps: int
    seed: int = 0
    trajectories: int = 0

    @property
    def name(self) -> str:
        """Of its folder and its record."""
        few = f"-t{self.trajectories}" if self.trajectories else ""
        return (
            f"{self.setting.name}-{self.key}-{self.lever}-lr{self.rate:g}-n{self.steps}-"
            f"s{self.seed}{few}"
        )

    def config(self, data: Path, runs: Path) -> TrainConfig:
        """The configuration of the training.

        Args:
            data: folder of the folders of data.
            runs: folder of the folders of runs.
        """
        setting = self.setting
        files: dict[str, Any] = {
            split: str(data / setting.name / f"{split}.h5") for split in SPLITS
        }
        per_check = math.ceil(self.steps / setting.checks)
        windows = per_check * int(setting.data["batch"])
        return TrainConfig(
            out=str(runs / self.name),
            seed=self.seed,
            data=DataConfig(
                **files,
                **setting.data,
                **self.contender.data,
                trajectories=self.trajectories or None,
                per_trajectory=math.ceil(windows / (self.trajectories or setting.splits["train"])),
            ),
            model=ModelConfig(
                name=self.contender.name,
                params=setting.params,
                options=dict(self.contender.options),
                **self.recipe.model,
            ),
            training=LearningConfig(**self.recipe.training),
            optimizer=OptimizerConfig(
                lr=self.rate,
                schedule="cosine",
                final_lr=1e-2,
                warmup=round(setting.warmup * self.steps),
            ),
            trainer=TrainerConfig(epochs=setting.checks, steps=per_check, progress=False),
        )

    def plan(self) -> dict[str, Any]:
        """All that the result depends on, as JSON."""
        setting = {k: v for k, v in to_json(self.setting).items() if k not in SCHEDULING}
        if not self.setting.others:
            del setting["others"]
        contender = self.contender
        network = {"name": contender.name, "options": to_json(contender.options)}
        network |= {"data": to_json(contender.data)} if contender.data else {}
        recipe = {"training": to_json(self.recipe.training), "model": to_json(self.recipe.model)}
        few = {"trajectories": self.trajectories} if self.trajectories else {}
        return {
            **few,
            "version": VERSION,
            "setting": setting,
            "network": network,
            "recipe": recipe,
            "rate": self.rate,
            "steps": self.steps,
            "seed": self.seed,
        }
