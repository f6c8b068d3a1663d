"""One training at rest: a task on a grid, a network, and how they make a configuration."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
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

#: Raised when the same plan would give other numbers: old records are then not reused.
VERSION = 1

#: Attributes of `Setting` that say what is run, not what comes out of a training.
SCHEDULING = (
    "seeds", "rates", "paddings", "models", "refined", "refinements", "displacements",
    "prolongations",
)  # fmt: skip


@dataclass(frozen=True)
class Model:
    """A network of the comparison.

    Attributes:
        label: for people.
        name: in the registry of networks.
        options: of the network.
        variants: name -> further options, of which the best are chosen.
        shares: whether it takes the options that networks share: blocks and taps.
    """

    label: str
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"usual": {}})
    shares: bool = True


@dataclass(frozen=True)
class Setting:
    """A task, and how networks learn it; the same for all models.

    Sizes are those of the coarsest grid. A grid that is finer by a factor has as many more points
    in the same region of spacetime, and the same taps.

    Attributes:
        name: of the task.
        simulator: that makes the data.
        spacing: of the coarsest grid.
        frames, grid: of a trajectory.
        frames_in: frames that are seen.
        frames_out: frames by which the forecast is later.
        margin: points at the borders of space that do not count.
        options: further ones of the simulator.
        splits: trajectories of train, valid and test.
        params: budget of parameters of every model.
        network: options that networks share, see `Model.shares`.
        steps: of the optimiser.
        batch: windows of a step.
        rates: learning rates to choose from, ascending.
        paddings: what networks may see beyond open borders.
        models: keys of the models that are compared.
        refinement: of the grid on which they are.
        refined: keys of the models that are trained on further grids and displacements, and with
            more steps.
        refinements: of further grids.
        displacements: factors of further displacements.
        prolongations: factors of further numbers of steps.
        seeds: how many.
        checks: how often it is validated on the way.
        warmup: steps over which the learning rate rises from zero.
        rapidities: of the observers, that at rest first.
        observed: test solutions that each observer looks at.
    """

    name: str
    simulator: str
    spacing: float
    frames: int
    grid: tuple[int, ...]
    frames_in: int
    frames_out: int
    margin: int
    splits: Mapping[str, int]
    params: int
    network: Mapping[str, Any]
    steps: int
    rates: tuple[float, ...]
    models: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    batch: int = 4
    paddings: tuple[str, ...] = ("extrapolate", "replicate", "zeros")
    refinement: int = 1
    refined: tuple[str, ...] = ()
    refinements: tuple[int, ...] = ()
    displacements: tuple[int, ...] = ()
    prolongations: tuple[int, ...] = ()
    seeds: int = 3
    checks: int = 5
    warmup: int = 20
    rapidities: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 1.0)
    observed: int = 32

    def spacing_at(self, refinement: int) -> float:
        """Distance of points of a finer grid."""
        return self.spacing / refinement

    def files(self, folder: Path, refinement: int) -> list[Plan]:
        """The data to make."""
        simulator = create(
            self.simulator,
            spacing=self.spacing_at(refinement),
            frames=self.frames * refinement,
            grid=tuple(n * refinement for n in self.grid),
            **self.options,
        )
        return plans(simulator, data_folder(folder, self.name, refinement), self.splits)


def data_folder(folder: Path, task: str, refinement: int) -> Path:
    """Where the data of a task on a grid are."""
    return folder / f"{task}-grid{refinement}"


@dataclass(frozen=True)
class Trial:
    """One training.

    Attributes:
        setting: the task.
        key: of the model.
        model: the network.
        variant: of its options.
        padding: of open borders.
        rate: learning rate.
        seed: of weights and of the order of the data.
        refinement: of the grid.
        displacement: factor of the setting's.
        prolongation: factor of the setting's number of steps.
    """

    setting: Setting
    key: str
    model: Model
    variant: str
    padding: str
    rate: float
    seed: int
    refinement: int
    displacement: int = 1
    prolongation: int = 1

    @property
    def name(self) -> str:
        """Of its folder and its record."""
        variant = self.variant.replace(" ", "_")
        longer = f"-n{self.steps}" if self.prolongation > 1 else ""
        return (
            f"{self.setting.name}-{self.key}-{variant}-grid{self.refinement}-"
            f"later{self.displacement}-{self.padding}-lr{self.rate:g}{longer}-s{self.seed}"
        )

    @property
    def later(self) -> int:
        """Frames by which the forecast is later."""
        return self.setting.frames_out * self.displacement * self.refinement

    @property
    def steps(self) -> int:
        """Of the optimiser."""
        return self.setting.steps * self.prolongation

    @property
    def options(self) -> dict[str, Any]:
        """Of the network."""
        model = self.model
        shared = self.setting.network if model.shares else {}
        return {**shared, **model.options, **model.variants[self.variant]}

    def config(self, data: Path, runs: Path) -> TrainConfig:
        """The configuration of the training.

        Args:
            data: folder of the folders of data.
            runs: folder of the folders of runs.
        """
        setting, finer = self.setting, self.refinement
        folder = data_folder(data, setting.name, finer)
        files: dict[str, Any] = {split: str(folder / f"{split}.h5") for split in SPLITS}
        per_check = math.ceil(self.steps / setting.checks)
        return TrainConfig(
            out=str(runs / self.name),
            seed=self.seed,
            data=DataConfig(
                **files,
                frames_in=setting.frames_in * finer,
                frames_out=self.later,
                margin=setting.margin * finer,
                open_padding=self.padding,
                batch=setting.batch,
                per_trajectory=math.ceil(per_check * setting.batch / setting.splits["train"]),
                valid_windows=48,
            ),
            model=ModelConfig(
                name=self.model.name,
                params=setting.params,
                options=self.options,
            ),
            optimizer=OptimizerConfig(
                lr=self.rate, schedule="cosine", final_lr=1e-2, warmup=setting.warmup
            ),
            trainer=TrainerConfig(epochs=setting.checks, steps=per_check, progress=False),
        )

    def plan(self) -> dict[str, Any]:
        """All that the result depends on, as JSON."""
        setting = {k: v for k, v in to_json(self.setting).items() if k not in SCHEDULING}
        network = {"name": self.model.name, "options": to_json(self.options)}
        return {
            "version": VERSION,
            "setting": setting,
            "network": network,
            "padding": self.padding,
            "rate": self.rate,
            "seed": self.seed,
            "refinement": self.refinement,
            "displacement": self.displacement,
        } | ({"prolongation": self.prolongation} if self.prolongation > 1 else {})
