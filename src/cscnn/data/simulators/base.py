"""What all simulators share: options, presets, random streams."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from cscnn.data.header import Header

Presets = Mapping[str, Mapping[str, Any]]  #: name -> options that differ from the defaults


@dataclass(frozen=True)
class Simulator:
    """Makes trajectories; its options are the fields of a dataclass, with the paper's values.

    Subclasses are frozen dataclasses that implement `header` and `simulate`.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1  #: raised when the same options give other numbers
    presets: ClassVar[Presets] = {"paper": {}}
    batch: ClassVar[int] = 1  #: trajectories to simulate together, for speed

    def header(self) -> Header:
        """What the trajectories are."""
        raise NotImplementedError

    def simulate(
        self, rngs: Sequence[np.random.Generator], device: torch.device | str = "cpu"
    ) -> dict[str, Tensor]:
        """One trajectory for each random stream.

        A trajectory depends on its own stream only, to the last bit, whatever is simulated with it.

        Returns:
            field name -> (trajectories, frames, *grid, components).
        """
        raise NotImplementedError

    @classmethod
    def create(cls, preset: str = "paper", **options: Any) -> Simulator:
        """A simulator with the options of a preset, some of them changed."""
        if preset not in cls.presets:
            raise ValueError(
                f"unknown preset {preset!r} of {cls.name}: choose from {', '.join(cls.presets)}"
            )
        known = [f.name for f in dataclasses.fields(cls)]
        if unknown := [name for name in options if name not in known]:
            raise ValueError(
                f"unknown option {unknown[0]!r} of {cls.name}: choose from {', '.join(known)}"
            )
        return cls(**{**cls.presets[preset], **options})

    def parameters(self) -> dict[str, Any]:
        """All options."""
        return dataclasses.asdict(self)

    def describe(self, seed: int, split: str) -> Header:
        """The header of a file of these trajectories."""
        return self.header().replace(
            generator=self.name,
            generator_version=self.version,
            parameters=self.parameters(),
            seed=seed,
            split=split,
        )


def stream(name: str, seed: int, split: str, index: int) -> np.random.Generator:
    """The random numbers of one trajectory: a function of simulator, seed, split and index."""
    digest = hashlib.blake2b(f"{name}/{seed}/{split}/{index}".encode(), digest_size=16).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "little")))


def check_positive(**values: float | Sequence[float]) -> None:
    """Raise unless all values are positive and finite."""
    for name, value in values.items():
        for entry in value if isinstance(value, Sequence) else (value,):
            if not 0 < entry < float("inf"):
                raise ValueError(f"{name} must be positive, got {value}")
