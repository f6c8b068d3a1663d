"""The equations behind the data sets, solved."""

from __future__ import annotations

from typing import Any

from cscnn.data.simulators.base import Simulator, stream
from cscnn.data.simulators.charges import MaxwellSpacetime, MaxwellSpacetime4D
from cscnn.data.simulators.maxwell3d import Maxwell3D
from cscnn.data.simulators.navier_stokes import NavierStokes
from cscnn.data.simulators.sine_gordon import SineGordon

SIMULATORS: dict[str, type[Simulator]] = {
    kind.name: kind
    for kind in (NavierStokes, Maxwell3D, MaxwellSpacetime, MaxwellSpacetime4D, SineGordon)
}


def create(name: str, preset: str = "paper", **options: Any) -> Simulator:
    """A simulator by the name of its task."""
    if name not in SIMULATORS:
        raise ValueError(f"unknown task {name!r}: choose from {', '.join(SIMULATORS)}")
    return SIMULATORS[name].create(preset, **options)


__all__ = [
    "SIMULATORS",
    "Maxwell3D",
    "MaxwellSpacetime",
    "MaxwellSpacetime4D",
    "NavierStokes",
    "Simulator",
    "SineGordon",
    "create",
    "stream",
]
