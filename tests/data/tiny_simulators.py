"""Simulators of a size for tests."""

from cscnn.data.simulators import Simulator, create

TINY = {
    "navier_stokes": {"grid": (12, 10), "frames": 3},
    "maxwell3d": {"cells": 22, "keep": 6, "warmup": 8, "every": 3, "frames": 3},
    "maxwell_spacetime": {"grid": (7, 6), "frames": 5, "distance": 1.0},
    "maxwell_spacetime4d": {"grid": (4, 5, 4), "frames": 4, "distance": 1.0},
    "sine_gordon": {"grid": (6,), "frames": 5},
    "elastodynamics": {"cells": 7, "frames": 3, "smoothness": 0.2},
    "viscoelastic": {"cells": 7, "frames": 3, "warmup": 2, "every": 1, "smoothness": 0.2},
    "acoustic_points": {"points": (20, 30), "frames": 5},
}


def tiny(name: str, **options: object) -> Simulator:
    return create(name, **{**TINY[name], **options})
