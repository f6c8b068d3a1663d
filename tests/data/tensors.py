"""Small data with a symmetric tensor: stress, pressure, velocity, and a given stiffness."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cscnn.data import Background, Field, Given, Header
from cscnn.data.files import write

SOLID = Header(
    metric=(1, 1),
    axes=("x", "y"),
    spacing=(0.5, 0.5),
    boundary=("periodic", "periodic"),
    fields=(Field("pressure", 0, "Pa"), Field("stress", "symmetric", "Pa"), Field("velocity", 1)),
    frames=6,
    grid=(8, 8),
    backgrounds=(Background("load", "symmetric", (1.0, 0.5, 0.5, -2.0)),),
    given=(Given("stiffness", "symmetric", "static"), Given("heating", 0, "constant")),
    units={"length": "m", "time": "s"},
    split="train",
)


def solid(dim: int = 2, size: int = 8) -> Header:
    """The same in other dimensions, with nothing known beside."""
    return SOLID.replace(
        metric=(1,) * dim,
        axes=tuple("xyz"[:dim]),
        spacing=(0.5,) * dim,
        boundary=("periodic",) * dim,
        grid=(size,) * dim,
        backgrounds=(),
        given=(),
    )


def trajectory(seed: int, header: Header = SOLID) -> dict[str, np.ndarray]:
    """Random numbers; tensors are symmetric."""
    rng = np.random.default_rng(seed)
    arrays = {}
    for quantity in header.quantities:
        x = rng.standard_normal(header.shape(quantity.name))
        arrays[quantity.name] = transposed_mean(x) if quantity.grade == "symmetric" else x
    return arrays


def transposed_mean(x: np.ndarray) -> np.ndarray:
    """(T + Tᵀ) / 2 of rows (..., dim²)."""
    dim = round(x.shape[-1] ** 0.5)
    square = x.reshape(*x.shape[:-1], dim, dim)
    return ((square + square.swapaxes(-1, -2)) / 2).reshape(x.shape)


def rotated(g: np.ndarray, x: np.ndarray) -> np.ndarray:
    """g T gᵀ of rows (..., dim²)."""
    square = x.reshape(*x.shape[:-1], len(g), len(g))
    return (g @ square @ g.T).reshape(x.shape)


def solid_file(path: Path, header: Header = SOLID, dtype: str = "float64", first: int = 0) -> Path:
    """A file of two random trajectories, those of seeds from the first on."""
    write(path, header, [trajectory(first + n, header) for n in range(2)], range(2), dtype=dtype)
    return path
