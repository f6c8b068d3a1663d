"""What all simulators share: options, presets, random streams."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from cscnn._util.suggest import check_known
from cscnn.data.header import Header
from cscnn.data.laws import Law

Presets = Mapping[str, Mapping[str, Any]]  #: name -> options that differ from the defaults
Range = float | tuple[float, float]  #: a number, or (low, high) between which it is drawn


@dataclass(frozen=True)
class Simulator:
    """Makes trajectories; its options are the fields of a dataclass, with the full-size values.

    Subclasses are frozen dataclasses that implement `header` and `simulate`.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1  #: raised when the same options give other numbers
    presets: ClassVar[Presets] = {"full": {}}  #: the first one is the default
    batch: ClassVar[int] = 1  #: trajectories to simulate together, for speed
    frames_in: ClassVar[int] = 4  #: frames that a forecast usually sees
    laws: ClassVar[tuple[Law, ...]] = ()  #: equations that the fields obey
    on_points: ClassVar[bool] = False  #: instead of a grid
    ranges: ClassVar[tuple[str, ...]] = ()  #: options that take a `Range` in place of a number

    def header(self) -> Header:
        """What the trajectories are."""
        raise NotImplementedError

    def simulate(
        self, rngs: Sequence[np.random.Generator], device: torch.device | str = "cpu"
    ) -> Mapping[str, Tensor | Sequence[Tensor]]:
        """One trajectory for each random stream.

        A trajectory depends on its own stream only, to the last bit, whatever is simulated with it.

        Returns:
            name -> (trajectories, *shape), with the shapes of the header: of fields and of what is
            given. On points a list of tensors, one for each trajectory, with their positions.
        """
        raise NotImplementedError

    @classmethod
    def create(cls, preset: str | None = None, **options: Any) -> Self:
        """A simulator with the options of a preset, by default the first, and these changes."""
        preset = next(iter(cls.presets)) if preset is None else preset
        check_known("preset", preset, cls.presets, cls.name)
        for name in options:
            check_known("option", name, [f.name for f in dataclasses.fields(cls)], cls.name)
        defaults = {f.name: f.default for f in dataclasses.fields(cls)}
        given = {
            name: _like(name, value, defaults[name], name in cls.ranges)
            for name, value in options.items()
        }
        return cls(**{**cls.presets[preset], **given})

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


def draw(value: Range, rng: np.random.Generator) -> float:
    """A number of a range; a fixed one takes nothing from the stream."""
    return float(rng.uniform(*value)) if isinstance(value, tuple) else value


def bounds(value: Range) -> tuple[float, float]:
    """Smallest and largest number of a range."""
    return value if isinstance(value, tuple) else (value, value)


def _like(name: str, value: Any, default: Any, ranges: bool = False) -> Any:
    """An option of the type of its default, or of ranges in place of its numbers, or an error."""
    if isinstance(default, tuple) and isinstance(value, tuple | list):
        if len(value) != len(default):
            raise ValueError(f"{name} takes {len(default)} values, got {value}")
        return tuple(_like(name, v, d, ranges) for v, d in zip(value, default, strict=True))
    if ranges and isinstance(default, float) and isinstance(value, tuple | list):
        low, high = _like(name, value, (default, default))
        if not low <= high:
            raise ValueError(f"{name} takes a number or a range (low, high), got {(low, high)}")
        return low, high
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not type(default):
        expected = type(default).__name__
        if isinstance(default, tuple):
            expected = f"{len(default)} values"
        raise ValueError(f"{name} takes {expected}, e.g. {default}, got {value!r}")
    return value


def stream(name: str, seed: int, split: str, index: int) -> np.random.Generator:
    """The random numbers of one trajectory: a function of simulator, seed, split and index."""
    digest = hashlib.blake2b(f"{name}/{seed}/{split}/{index}".encode(), digest_size=16).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "little")))
