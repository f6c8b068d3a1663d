"""Numbers of order one: a factor for each field, never for each component."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from cscnn.atomic import write_text
from cscnn.models.tasks import Task


@dataclass(frozen=True)
class Scaling:
    """x -> (x - shift) / scale for each field, which commutes with O(p, q).

    All components of a field share one scale, and only scalars are shifted: anything else would
    change how the field transforms.

    Attributes:
        scale: field name -> factor.
        shift: field name -> offset, for scalars.

    Example:
        >>> import torch
        >>> scaling = Scaling({"wind": 2.0})
        >>> scaling.apply({"wind": torch.tensor([4.0, -2.0])})["wind"].tolist()
        [2.0, -1.0]
    """

    scale: Mapping[str, float]
    shift: Mapping[str, float]

    def __init__(self, scale: Mapping[str, float], shift: Mapping[str, float] | None = None):
        object.__setattr__(self, "scale", dict(scale))
        object.__setattr__(self, "shift", dict(shift or {}))
        for name, value in self.scale.items():
            if not 0 < value < math.inf:
                raise ValueError(f"the scale of {name} must be positive, got {value}")

    @classmethod
    def fit(
        cls,
        source: Any,
        *,
        trajectories: int | None = None,
        progress: Callable[[Iterable[int]], Iterable[int]] = lambda items: items,
    ) -> Scaling:
        """Standard deviation of each field (about zero for all but scalars), mean of scalars.

        Args:
            source: trajectories of the training split.
            trajectories: use the first so many only.
            progress: wraps the sequence of trajectories, for a progress bar.
        """
        header = source.header
        if header.split in ("valid", "test"):
            raise ValueError(
                f"{source.path} is the split {header.split!r}: scaling comes from training data"
            )
        count = min(len(source), trajectories or len(source))
        names = [f.name for f in header.fields]
        numbers = dict.fromkeys(names, 0)
        first, second = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0)
        for number in progress(range(count)):
            for name, array in source.read(number).items():
                wide = array.astype(np.float64)
                first[name] += float(wide.sum())
                second[name] += float(np.square(wide).sum())
                numbers[name] += wide.size
        scale, means = {}, {}
        for field in header.fields:
            mean = first[field.name] / numbers[field.name]
            square = second[field.name] / numbers[field.name]
            if field.grade == 0:
                means[field.name] = mean
                square -= mean**2
            noise = 1e-12 * second[field.name] / numbers[field.name]  # of subtracting the mean
            if not noise < square < math.inf:
                raise ValueError(
                    f"{source.path}: field {field.name} has variance {square}: nothing to scale by"
                )
            scale[field.name] = math.sqrt(square)
        return cls(scale, means)

    def _factors(self, name: str) -> tuple[float, float]:
        if name not in self.scale:
            raise ValueError(f"no scale for field {name!r}: there are {', '.join(self.scale)}")
        return self.scale[name], self.shift.get(name, 0.0)

    def apply(self, fields: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """From physical to scaled units."""
        result = {}
        for name, x in fields.items():
            scale, shift = self._factors(name)
            result[name] = (x - shift) / scale
        return result

    def restore(self, fields: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Inverse of `apply`."""
        result = {}
        for name, x in fields.items():
            scale, shift = self._factors(name)
            result[name] = x * scale + shift
        return result

    def restore_field(self, x: Tensor, task: Task) -> Tensor:
        """Inverse of `apply` for a field of multivectors (batch, channels, *grid, blades)."""
        return task.pack(self.restore(task.unpack(x)))

    def to_dict(self) -> dict[str, dict[str, float]]:
        """JSON form."""
        return {"scale": dict(self.scale), "shift": dict(self.shift)}

    def save(self, path: str | Path) -> None:
        """Write as JSON, whole or not at all."""
        write_text(Path(path), json.dumps(self.to_dict(), indent=2) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Scaling:
        """Read what `save` wrote."""
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{path} is damaged: {error}") from error
        if not isinstance(data, dict) or set(data) != {"scale", "shift"}:
            raise ValueError(f"{path} is not a scaling: expected the entries scale and shift")
        return cls(data["scale"], data["shift"])
