"""Checks on files that others wrote. Messages name dataset and value; the caller adds the path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

SPLITS = ("train", "valid", "test")
UNEVEN = 0.01  #: largest distance of a coordinate from where an even grid has it, in steps


def dataset(group: Any, name: str) -> Any:
    """A dataset of real numbers in a group, or an error that names it."""
    item = group.get(name)
    if not hasattr(item, "shape"):
        raise ValueError(f"dataset {group.name.rstrip('/')}/{name} is missing")
    if item.dtype.kind not in "fiub":
        raise ValueError(f"dataset {item.name} must hold real numbers, got {item.dtype}")
    return item


def check_shape(data: Any, shape: tuple[int, ...]) -> None:
    """Raise unless a dataset has this shape."""
    if data.shape != shape:
        raise ValueError(f"dataset {data.name} has shape {data.shape}, expected {shape}")


def constant(data: Any, reason: str) -> float:
    """The one value of a dataset that has one value per trajectory."""
    values = np.asarray(data[()], np.float64)
    if values.size and np.isfinite(values).all() and (values == values.flat[0]).all():
        return float(values.flat[0])
    raise ValueError(
        f"dataset {data.name} must have one finite value for all trajectories, got "
        f"{values.min(initial=np.inf)} to {values.max(initial=-np.inf)}: {reason}"
    )


def by_trajectory(data: Any) -> np.ndarray:
    """The finite values of a dataset that has one value per trajectory, in float64."""
    values = np.asarray(data[()], np.float64)
    if not np.isfinite(values).all():
        raise ValueError(f"dataset {data.name} must have finite values, got {values.tolist()}")
    return values


def even_step(values: np.ndarray, name: str) -> float:
    """The distance of neighbours in a row of coordinates that ascend evenly."""
    x = np.asarray(values, np.float64)
    if len(x) < 2 or not np.isfinite(x).all():
        raise ValueError(f"dataset {name} must have two or more finite coordinates, got {values}")
    step = float(x[-1] - x[0]) / (len(x) - 1)
    if step <= 0:
        raise ValueError(f"coordinates {name} must ascend, got {x[0]} to {x[-1]}")
    off = np.abs(x - (x[0] + step * np.arange(len(x))))
    precision = np.finfo(values.dtype).eps if values.dtype.kind == "f" else 0.0
    if off.max() > UNEVEN * step + 4 * precision * np.abs(x).max():
        worst = int(off.argmax())
        raise ValueError(
            f"coordinates {name} are not evenly spaced: number {worst} is {x[worst]}, an even grid "
            f"has {x[0] + step * worst}. Convolutions need one distance along an axis; resample "
            "the data first"
        )
    return step


def check_finite(path: Path, field: str, number: int, start: int, array: np.ndarray) -> None:
    """Raise if frames (frames, ...), counted from start, hold NaN or infinity."""
    bad = ~np.isfinite(array)
    if bad.any():
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(
            f"{path}: trajectory {number}, field {field}: {int(bad.sum())} of {array.size} numbers "
            f"are NaN or infinite, the first is {array[first]} in frame {start + first[0]} at "
            f"{first[1:]}"
        )
