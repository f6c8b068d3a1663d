"""Trajectories in memory: whether they are what a header says, before and after they are stored."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from cscnn.algebra.clifford import SYMMETRIC
from cscnn.algebra.tensors import size_hint
from cscnn.data.header import Header
from cscnn.data.source import Trajectory

#: Part of the largest number by which T^ij and T^ji may differ when they are written.
ROUNDING = 1e-5


def as_arrays(trajectory: Trajectory, index: int) -> Trajectory:
    """The arrays of a trajectory, of real numbers; lists and tensors count as arrays."""
    if not isinstance(trajectory, Mapping):
        kind = type(trajectory).__name__
        raise TypeError(f"trajectory {index} must be a mapping name -> array, got {kind}")
    arrays = {}
    for name, values in trajectory.items():
        try:
            arrays[name] = np.asarray(values)
        except (ValueError, TypeError, RuntimeError) as error:
            kind = type(values).__name__
            raise TypeError(
                f"trajectory {index}, field {name} must be an array, got {kind}: {error}"
            ) from error
    _check_real(arrays, index)
    return arrays


def _check_real(trajectory: Trajectory, index: int) -> None:
    """Raise unless arrays hold real numbers: an imaginary part would be dropped."""
    for name, array in trajectory.items():
        if array.dtype.kind not in "fiub":
            raise ValueError(
                f"trajectory {index}, field {name} must hold real numbers, got {array.dtype}: "
                "store real and imaginary parts as two fields"
            )


def check_names(header: Header, trajectory: Trajectory, index: int) -> None:
    """Raise unless a trajectory has all fields of the header, all that is given, and its place."""
    expected = {*(q.name for q in header.quantities), *header.place}
    if set(trajectory) != expected:
        raise ValueError(
            f"trajectory {index} has fields {sorted(trajectory)}, expected {sorted(expected)}"
        )


def check_trajectory(
    header: Header, trajectory: Trajectory, index: int, rounding: float = 0.0
) -> None:
    """Raise unless a trajectory has the shapes of the header, and numbers that are possible.

    Args:
        header: of the data.
        trajectory: name -> array.
        index: its number.
        rounding: see `check_symmetric`.
    """
    points, grades = 1, {q.name: q.grade for q in header.quantities}
    if header.place and trajectory["positions"].ndim:
        points = max(1, len(trajectory["positions"]))
    for name, array in trajectory.items():
        if array.shape != (shape := header.shape(name, points)):
            raise ValueError(
                f"trajectory {index}, field {name}: shape {array.shape}, expected {shape}"
                + ": add the axis of components, x[..., None]" * (array.shape == shape[:-1])
                + size_hint(grades.get(name, 0), len(header.metric))
            )
        if not np.isfinite(array).all():
            bad = int((~np.isfinite(array)).sum())
            raise ValueError(
                f"trajectory {index}, field {name}: {bad} of {array.size} numbers are NaN or "
                f"infinite as {array.dtype}"
            )
        if name == "weights" and name in header.place and array.min() <= 0:
            raise ValueError(
                f"trajectory {index}: weights are shares of a volume and must be positive, got "
                f"{array.min()}"
            )
    for quantity in header.quantities:
        if quantity.grade == SYMMETRIC:
            first = 0 if header.axes_of(quantity.name)[0] else None
            try:
                check_symmetric(trajectory[quantity.name], first, rounding)
            except ValueError as error:
                raise ValueError(f"trajectory {index}, field {quantity.name}: {error}") from error


def check_symmetric(tensors: np.ndarray, first: int | None = None, rounding: float = 0.0) -> None:
    """Raise unless matrices equal their transposes; the message shows the worst one.

    Args:
        tensors: (..., dim²), row by row.
        first: number of the first frame, if the first axis is time.
        rounding: part of the largest number by which components may differ.
    """
    square = as_matrices(tensors)
    off = np.abs(square - square.swapaxes(-1, -2)).max((-1, -2))
    if off.max() <= rounding * np.abs(tensors).max():
        return
    where = tuple(int(i) for i in np.unravel_index(off.argmax(), off.shape))
    text, place = "", where
    if first is not None:
        text, place = f" in frame {first + where[0]}", where[1:]
    text += f" at {place}" if place else ""
    raise ValueError(
        f"a symmetric tensor must equal its transpose, got {square[where].tolist()}{text}: "
        "its symmetric part is (T + Tᵀ) / 2, its antisymmetric part is a bivector"
    )


def symmetric_parts(header: Header, trajectory: Trajectory) -> Trajectory:
    """Those of symmetric tensors, (T + Tᵀ) / 2: what is symmetric keeps every bit."""
    names = [q.name for q in header.quantities if q.grade == SYMMETRIC]
    return {name: symmetric_part(trajectory[name]) for name in names}


def symmetric_part(tensors: np.ndarray) -> np.ndarray:
    """(T + Tᵀ) / 2 of matrices (..., dim²)."""
    square = as_matrices(tensors)
    part: np.ndarray = (square + square.swapaxes(-1, -2)) / 2
    return part.reshape(tensors.shape)


def as_matrices(tensors: np.ndarray) -> np.ndarray:
    """(..., dim²) -> (..., dim, dim)"""
    dim = math.isqrt(tensors.shape[-1])
    return tensors.reshape(*tensors.shape[:-1], dim, dim)
