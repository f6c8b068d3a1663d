"""Units in which networks compute: a factor for each field, never for each component."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from cscnn.data.fields import FRAME_SPACING, Field, Given
from cscnn.data.source import Source
from cscnn.data.strided import StrideLike, Strides, has_spacings, spacings


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
        stride: StrideLike = 1,
        progress: Callable[[Iterable[int]], Iterable[int]] = lambda items: items,
    ) -> Units:
        """Standard deviation of each field (about zero for all but scalars), mean of scalars.

        What is given is scaled in the same way; if it never varies it has scale 1.

        Args:
            source: trajectories of the training split.
            trajectories: number of trajectories to use, from the first on.
            displacements: frames over which changes are measured, see `Task.displacements`.
            stride: stored frames from one of these frames to the next, or a range. In a range the
                time between frames is given, and scaled for strides that are all as frequent.
            progress: wraps the sequence of trajectories, for a progress bar.
        """
        strides, path = Strides.read(stride), getattr(source, "path", "the source")
        header = strides.seen(source.header)
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
        later = [n * frames for n in strides.values for frames in displacements]
        for number in progress(range(count)):
            arrays = source.read(number)
            if has_spacings(header):
                arrays[FRAME_SPACING] = spacings(source.header, arrays, strides.values)
            for name, array in arrays.items():
                wide = array.astype(np.float64)
                first[name] += float(wide.sum())
                second[name] += float(np.square(wide).sum())
                numbers[name] += wide.size
                for frames in later if name in changes else ():
                    changes[name].add(wide[frames:] - wide[:-frames])
        scale, means = {}, {}
        for quantity in header.quantities:
            mean, square = (
                sums[quantity.name] / numbers[quantity.name] for sums in (first, second)
            )
            if quantity.grade == 0:
                means[quantity.name] = mean
            scale[quantity.name] = _deviation(quantity, path, mean, square)
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


def _deviation(quantity: Field | Given, path: object, mean: float, square: float) -> float:
    """Standard deviation from the mean and the mean square; about zero for all but scalars."""
    variance = square if quantity.grade else square - mean**2
    noise = 1e-12 * square  # of subtracting the mean
    if isinstance(quantity, Given) and variance <= noise:
        return 1.0
    if not noise < variance < math.inf:
        raise ValueError(
            f"{path}: field {quantity.name} has variance {variance}: nothing to scale by"
        )
    return math.sqrt(variance)


class _MeanSquare:
    """Of numbers that come in parts."""

    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def add(self, part: np.ndarray) -> None:
        self.total += float(np.square(part).sum())
        self.count += part.size

    def root(self) -> float:
        return math.sqrt(self.total / self.count)
