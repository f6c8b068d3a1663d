"""Units in which networks compute: a factor for each field, never for each component."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from cscnn.data.source import Source


@dataclass(frozen=True)
class Units:
    """x -> (x - shift) / scale for each field, which commutes with O(p, q).

    All components of a field share one scale, and only scalars are shifted: anything else would
    change how the field transforms.

    Attributes:
        scale: field name -> factor.
        shift: field name -> offset, for scalars.
        change: field name -> root mean square of its change until the forecast, for forecasters
            that predict changes. It is one number for all components too.

    Example:
        >>> import torch
        >>> units = Units({"wind": 2.0})
        >>> units.scaled({"wind": torch.tensor([4.0, -2.0])})["wind"].tolist()
        [2.0, -1.0]
    """

    scale: Mapping[str, float]
    shift: Mapping[str, float] = field(default_factory=dict)
    change: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in self.scale.items():
            if not 0 < value < math.inf:
                raise ValueError(f"the scale of {name} must be positive, got {value}")
        for name, value in self.change.items():
            if not 0 <= value < math.inf:
                raise ValueError(f"the change of {name} must be at least 0, got {value}")

    @classmethod
    def physical_units(cls, names: Iterable[str]) -> Units:
        """Those of the data: nothing is scaled."""
        return cls(dict.fromkeys(names, 1.0))

    @classmethod
    def fit(
        cls,
        source: Source,
        *,
        trajectories: int | None = None,
        displacements: Sequence[int] = (1,),
        progress: Callable[[Iterable[int]], Iterable[int]] = lambda items: items,
    ) -> Units:
        """Standard deviation of each field (about zero for all but scalars), mean of scalars.

        What is given is scaled in the same way; if it never varies it has scale 1.

        Args:
            source: trajectories of the training split.
            trajectories: use the first so many only.
            displacements: frames over which changes are measured, see `Task.displacements`.
            progress: wraps the sequence of trajectories, for a progress bar.
        """
        header, path = source.header, getattr(source, "path", "the source")
        if header.split in ("valid", "test"):
            raise ValueError(
                f"{path} is the split {header.split!r}: scaling comes from training data"
            )
        count = min(len(source), trajectories or len(source))
        if not count:
            raise ValueError(f"{path} has no trajectories: nothing to learn from")
        names = [q.name for q in header.quantities]
        numbers = dict.fromkeys(names, 0)
        first, second = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0)
        changes = {f.name: _MeanSquare() for f in header.fields}
        for number in progress(range(count)):
            for name, array in source.read(number).items():
                wide = array.astype(np.float64)
                first[name] += float(wide.sum())
                second[name] += float(np.square(wide).sum())
                numbers[name] += wide.size
                for frames in displacements if name in changes else ():
                    changes[name].add(wide[frames:] - wide[:-frames])
        scale, means = {}, {}
        for quantity in header.quantities:
            mean = first[quantity.name] / numbers[quantity.name]
            square = second[quantity.name] / numbers[quantity.name]
            noise = 1e-12 * square  # of subtracting the mean
            if quantity.grade == 0:
                means[quantity.name] = mean
                square -= mean**2
            if quantity in header.given and square <= noise:
                square = 1.0
            if not noise < square < math.inf:
                raise ValueError(
                    f"{path}: field {quantity.name} has variance {square}: nothing to scale by"
                )
            scale[quantity.name] = math.sqrt(square)
        return cls(scale, means, {n: c.root() for n, c in changes.items() if c.count})

    def _factors(self, name: str) -> tuple[float, float]:
        if name not in self.scale:
            raise ValueError(f"no scale for field {name!r}: there are {', '.join(self.scale)}")
        return self.scale[name], self.shift.get(name, 0.0)

    def scaled(self, fields: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """From physical to scaled units."""
        result = {}
        for name, x in fields.items():
            scale, shift = self._factors(name)
            result[name] = (x - shift) / scale
        return result

    def physical(self, fields: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Inverse of `scaled`."""
        result = {}
        for name, x in fields.items():
            scale, shift = self._factors(name)
            result[name] = x * scale + shift
        return result


class _MeanSquare:
    """Of numbers that come in parts."""

    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def add(self, part: np.ndarray) -> None:
        self.total += float(np.square(part).sum())
        self.count += part.size

    def root(self) -> float:
        return math.sqrt(self.total / self.count)
