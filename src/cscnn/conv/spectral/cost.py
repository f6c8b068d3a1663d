"""Which convolution is fastest: direct, or spectral with tiles of which size.

Both are predicted by counting the work of a training step (forward and backward) and dividing by
rates of the machine. The rates below were measured on the machine of ``docs/benchmarks.md``;
`cscnn.conv.spectral.tune` measures yours and keeps them in a file that is read once per process.
"""

from __future__ import annotations

import json
import math
import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from itertools import product
from pathlib import Path

from cscnn.conv.sizes import ConvSizes
from cscnn.conv.spectral.overlap import AxisTiles, cut_axis
from cscnn.conv.spectral.tiles import chunk_bytes


@dataclass(frozen=True)
class Rates:
    """What a device does per second.

    Attributes:
        direct: operations of torch's convolution, by the number of dimensions (one to four).
        matmul: operations of the matrix products of spectral convolution.
        memory: bytes that they read and write.
        call: seconds of a call that does nothing.
    """

    direct: tuple[float, float, float, float]
    matmul: float
    memory: float
    call: float

    def __post_init__(self) -> None:
        values = (*self.direct, self.matmul, self.memory, self.call)
        if len(self.direct) != 4 or not all(0 < v < math.inf for v in values):
            raise ValueError(f"rates must be positive, four of them for direct, got {self}")


DEFAULT_RATES = Rates(
    direct=(1.1e11, 1.5e11, 1.8e11, 2.0e11), matmul=2.1e11, memory=2.3e10, call=2.2e-5
)
#: Not measured: a guess for accelerators until they are tuned.
ACCELERATOR_RATES = Rates(direct=(5e12,) * 4, matmul=8e12, memory=6e11, call=1e-5)

#: Outputs per tile that are tried along each axis, beside a single tile.
STEPS = (4, 6, 8, 11, 16, 22, 32)
#: Longest tile that is tried, unless an axis has no shorter one.
MAX_TILE = 80
#: (batch, *grid) by which a compiled graph for all sizes chooses its backend, by dimensions.
TYPICAL_SIZES = {1: (8, 512), 2: (4, 64, 64), 3: (2, 32, 32, 32), 4: (1, 12, 12, 12, 12)}
#: Spectral convolution is chosen if it is predicted to take less than this part of the direct time.
MARGIN = 0.9


@dataclass(frozen=True)
class Work:
    """Calls, operations and bytes of spectral convolution."""

    calls: float = 0.0
    operations: float = 0.0
    moved: float = 0.0

    def __add__(self, other: Work) -> Work:
        return Work(
            self.calls + other.calls,
            self.operations + other.operations,
            self.moved + other.moved,
        )

    def seconds(self, rates: Rates) -> float:
        """Predicted duration."""
        return self.calls * rates.call + self.operations / rates.matmul + self.moved / rates.memory


def direct_operations(sizes: ConvSizes) -> float:
    """Operations of a training step by direct convolution."""
    points = sizes.batch * math.prod(sizes.out)
    return 6.0 * points * math.prod(sizes.kernel) * sizes.c_in * sizes.c_out


def spectral_work(axes: Sequence[AxisTiles], sizes: ConvSizes) -> Work:
    """Work of a training step by spectral convolution on these tiles."""
    batch, c_in, c_out, itemsize = sizes.batch, sizes.c_in, sizes.c_out, sizes.itemsize
    tiles = batch * math.prod(a.count for a in axes)
    seen = [a.tile for a in axes]
    kept = [a.step for a in axes]
    taps = [2 * a.half + 1 for a in axes]
    frequencies = axes[0].frequencies * math.prod(a.tile for a in axes[1:])
    parts = 1 if sizes.parity else 2

    total = Work(calls=150)
    for widths, columns, rows in (
        (seen, c_in, 2),  # forward: the field
        (kept, c_out, 2),  # and back
        (seen, c_out, 2),  # backward: the gradient
        (kept, c_in, 2),  # to the field
        (kept, c_in, 2),  # and the field for the kernel's gradient
    ):
        total += _transform(axes, widths, tiles * columns, rows, itemsize)
        moved = 2 * itemsize * tiles * columns * math.prod(widths)  # cut or keep, spread or gather
        total += Work(moved=2 * moved)
    for _ in range(3):  # the kernel forward, transposed, and its gradient
        total += _transform(axes, taps, parts * c_in * c_out, 1, itemsize)
        total += Work(
            operations=4 * parts * frequencies * tiles * c_in * c_out,
            moved=itemsize * frequencies * (4 * tiles * (c_in + c_out) + parts * c_in * c_out),
        )
    chunks = math.ceil(
        itemsize * tiles * math.prod(seen) * max(c_in, c_out) / 2 / chunk_bytes(sizes.device)
    )
    return total + Work(calls=60 * min(chunks, batch * axes[0].count))


def _transform(
    axes: Sequence[AxisTiles], widths: Sequence[int], columns: int, rows: int, itemsize: int
) -> Work:
    """Transforms of values at ``widths`` positions of each axis."""
    size = columns * math.prod(widths)
    operations = moved = 0.0
    for i, (axis, width) in enumerate(zip(axes, widths, strict=True)):
        n_in = width * (2 if i else 1)
        n_out = (axis.tile if i else axis.frequencies) * (rows if i == len(axes) - 1 else 2)
        operations += 2.0 * size * n_out
        moved += itemsize * size * (1 + n_out / n_in)
        size = size * n_out // n_in
    return Work(operations=operations, moved=moved)


def candidate_cuts(
    size: int, shift: int, circular: bool, half: int, steps: Sequence[int] = STEPS
) -> list[AxisTiles]:
    """Ways to cut an axis that are worth a prediction."""
    one_tile = cut_axis(size, shift, circular, half, 1)
    by_count = {one_tile.count: one_tile}
    for step in (*steps, 2 * half, 4 * half) if half > max(steps) / 2 else steps:
        axis = cut_axis(size, shift, circular, half, math.ceil(one_tile.out / step))
        if axis.count > 1:
            by_count[axis.count] = axis
    short = [a for a in by_count.values() if a.tile <= MAX_TILE]
    return short or [min(by_count.values(), key=lambda a: (a.tile, a.count))]


def plan_tiles(sizes: ConvSizes, backend: str) -> tuple[int, ...] | None:
    """Number of tiles along each axis for spectral convolution, or None for direct convolution.

    Args:
        sizes: of the convolution.
        backend: ``"auto"``, or ``"spectral"`` to exclude direct convolution.
    """
    return plan_backend(sizes, backend)[0]


@cache
def plan_backend(sizes: ConvSizes, backend: str) -> tuple[tuple[int, ...] | None, float]:
    """What `plan_tiles` returns, and the predicted seconds of a training step."""
    rates = device_rates(sizes.device)
    steps = STEPS if len(sizes.grid) < 4 else STEPS[::2]  # fewer combinations
    options = [
        candidate_cuts(n, s, c, k // 2, steps)
        for n, s, c, k in zip(sizes.grid, sizes.shift, sizes.circular, sizes.kernel, strict=True)
    ]
    small = [axes for axes in product(*options) if _fits(axes, sizes)]
    spectral, best = min(
        ((spectral_work(axes, sizes).seconds(rates), axes) for axes in small or product(*options)),
        key=lambda option: option[0],
    )
    rate = rates.direct[len(sizes.grid) - 1] * 4 / sizes.itemsize
    direct = direct_operations(sizes) / rate + 20 * rates.call
    if backend == "spectral" or spectral < MARGIN * direct:
        return tuple(a.count for a in best), spectral
    return None, direct


def _fits(axes: Sequence[AxisTiles], sizes: ConvSizes) -> bool:
    """Whether the kernel's matrices are not too large beside fields and kernel."""
    frequencies = axes[0].frequencies * math.prod(a.tile for a in axes[1:])
    fields = sizes.batch * (sizes.c_in * math.prod(sizes.grid) + sizes.c_out * math.prod(sizes.out))
    pairs = sizes.c_in * sizes.c_out
    return frequencies * pairs <= fields + 2 * math.prod(sizes.kernel) * pairs


# --- the rates of this machine --------------------------------------------------------------------


def tuning_file() -> Path:
    """Where measured rates are kept: ``$CSCNN_TUNING``, or a file in the user's cache folder."""
    if given := os.environ.get("CSCNN_TUNING"):
        return Path(given)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return base / "cscnn" / "tuning.json"


@cache
def device_rates(device: str) -> Rates:
    """Rates of a type of device: measured ones if there are any, read once per process."""
    default = DEFAULT_RATES if device == "cpu" else ACCELERATOR_RATES
    path = tuning_file()
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(data, dict):
            raise ValueError(f"expected rates by device, got {data}")
        return rates_from_json(data[device]) if device in data else default
    except FileNotFoundError:
        return default
    except (OSError, ValueError, TypeError, AttributeError) as error:
        warnings.warn(
            f"ignoring the measured rates in {path} ({error}): delete the file or measure again",
            stacklevel=2,
        )
        return default


def rates_from_json(data: dict[str, object]) -> Rates:
    """Rates from their JSON form."""
    names = {f.name for f in fields(Rates)}
    if not isinstance(data, dict) or set(data) != names:
        raise ValueError(f"expected {', '.join(sorted(names))}, got {data}")
    values = dict(data)
    direct = values.pop("direct")
    if not isinstance(direct, list):
        raise ValueError(f"direct must be a list, got {direct!r}")
    return Rates(tuple(direct), **values)  # type: ignore[arg-type]


def rates_to_json(rates: Rates) -> dict[str, object]:
    """JSON form of rates."""
    return {**asdict(rates), "direct": list(rates.direct)}


def reload_rates() -> None:
    """Read the rates anew and plan anew, after tuning."""
    device_rates.cache_clear()
    plan_backend.cache_clear()
