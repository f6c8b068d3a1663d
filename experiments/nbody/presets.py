"""Who takes part, how they are trained, and what others have reported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cscnn._util.jsonform import to_json
from cscnn.kernels import Complete
from experiments.nbody.network import ParticleNet
from experiments.nbody.simulate import PUBLISHED_SIZES, Sizes
from experiments.nbody.simulate import VERSION as DATA_VERSION

#: Raised when the same plan would give other numbers: old records are then not reused.
VERSION = 2


@dataclass(frozen=True)
class Contender:
    """A network of the comparison.

    Attributes:
        label: for people.
        options: of `ParticleNet`; ``hidden_dim`` is that of its kernels.
        rate: highest learning rate.
    """

    label: str
    options: Mapping[str, Any] = field(default_factory=dict)
    rate: float = 1e-2

    def build(self) -> ParticleNet:
        """A fresh network."""
        options = dict(self.options)
        return ParticleNet(kernel=Complete(hidden_dim=options.pop("hidden_dim", 4)), **options)


@dataclass(frozen=True)
class Setting:
    """How networks learn; the same for all of them.

    Attributes:
        sizes: of the splits.
        steps: of a training.
        minutes: of a training, instead of steps, if not zero.
        batch: simulations of a step, as published.
        checks: times that the validation split is looked at.
        warmup: part of a training in which the learning rate rises.
        flip: whether all charges of a simulation change their sign at random, which forces do not
            see.
        scale: standard deviation of the logarithm of a random factor of all lengths and velocities
            of a simulation. Charges have its power 3/2: then motion is the same, but for its size.
        weight_decay, clip: of AdamW, of the norm of gradients.
        seeds: of each network.
    """

    sizes: Sizes = PUBLISHED_SIZES
    steps: int = 16_384
    minutes: float = 0.0
    batch: int = 100
    checks: int = 64
    warmup: float = 0.02
    flip: bool = True
    scale: float = 0.3
    weight_decay: float = 1e-4
    clip: float = 1.0
    seeds: int = 5


@dataclass(frozen=True)
class Trial:
    """A training.

    Attributes:
        key: of the contender.
        contender, setting: what is trained, and how.
        seed: of initial weights and of batches.
    """

    key: str
    contender: Contender
    setting: Setting
    seed: int

    @property
    def name(self) -> str:
        """Of its files. Trainings of other lengths have other names."""
        setting = self.setting
        length = f"{setting.minutes:g}min" if setting.minutes else f"{setting.steps}steps"
        return f"{self.key}-{length}-{self.seed}"

    def plan(self) -> dict[str, Any]:
        """All that the result depends on, as JSON."""
        setting = to_json(replace(self.setting, steps=0) if self.setting.minutes else self.setting)
        del setting["seeds"]
        return {
            "version": [VERSION, DATA_VERSION],
            "options": to_json(self.contender.options),
            "rate": self.contender.rate,
            "setting": setting,
            "seed": self.seed,
        }


NETWORK = {"width": 16, "blocks": 3, "hidden_dim": 4}

CONTENDERS = {
    "gates": Contender("CSPointNet, gates", {**NETWORK, "activation": "gate"}),
    "products": Contender("CSPointNet, products", {**NETWORK, "activation": "product"}),
    "moves": Contender(
        "CSPointNet, products, points that move",
        {**NETWORK, "activation": "product", "moves": True},
    ),
}

SETTING = Setting()

#: Reported mean squared errors of the test split, by their authors; nothing of it was run here.
PUBLISHED = {
    "EGNN (Satorras et al. 2021)": 0.0071,
    "SEGNN (Brandstetter et al. 2022)": 0.0043,
    "CGENN (Ruhe et al. 2023)": 0.0039,
    "Multivector Neurons (Liu et al. 2024)": 0.0035,
}
