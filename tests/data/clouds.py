"""Small data on points for tests."""

from pathlib import Path

import numpy as np

from cscnn.data import Field, Given, Header
from cscnn.data.files import write
from cscnn.data.source import Trajectory

SIZES = (12, 20, 9, 15)
GIVEN = (Given("wall", 1, "static"), Given("heat", 0, "forcing"), Given("stiffness", 0, "constant"))


def cloud_header(**changes: object) -> Header:
    """A scalar and a vector on points of the plane."""
    options: dict = {"period": (1.0, None), "weights": True, "split": "train", **changes}
    return Header.of_points((1, 1), (Field("dye", 0), Field("flow", 1)), 8, **options)


def random_clouds(
    header: Header, sizes: tuple[int, ...] = SIZES, seed: int = 0
) -> list[Trajectory]:
    """Random numbers on random points."""
    rng = np.random.default_rng(seed)
    names = [q.name for q in header.quantities]
    return [
        {
            **{name: rng.uniform(0.1, 1, header.shape(name, n)) for name in header.place},
            **{name: rng.standard_normal(header.shape(name, n)) for name in names},
        }
        for n in sizes
    ]


def cloud_file(
    path: Path, sizes: tuple[int, ...] = SIZES, seed: int = 0, **changes: object
) -> Path:
    """A file of them."""
    header = cloud_header(**changes)
    write(path, header, random_clouds(header, sizes, seed), range(len(sizes)), dtype="float64")
    return path
