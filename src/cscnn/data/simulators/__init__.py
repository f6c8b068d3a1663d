"""The equations behind the data sets, solved."""

from __future__ import annotations

from typing import Any

from cscnn._util.modules import named_classes
from cscnn._util.suggest import check_known
from cscnn.data.header import Header
from cscnn.data.laws import Law
from cscnn.data.simulators.acoustic_points import AcousticPoints
from cscnn.data.simulators.base import Simulator, stream
from cscnn.data.simulators.charges import MaxwellSpacetime, MaxwellSpacetime4D
from cscnn.data.simulators.elastodynamics import Elastodynamics
from cscnn.data.simulators.exact import ExactSimulator, Solution
from cscnn.data.simulators.maxwell3d import Maxwell3D
from cscnn.data.simulators.navier_stokes import NavierStokes
from cscnn.data.simulators.sine_gordon import SineGordon
from cscnn.data.simulators.viscoelastic import Viscoelastic

#: By name: all that the modules of this folder define.
SIMULATORS: dict[str, type[Simulator]] = named_classes(__name__, Simulator)
#: Those whose data are on a grid.
ON_GRIDS = tuple(name for name, simulator in SIMULATORS.items() if not simulator.on_points)


def create(name: str, preset: str | None = None, **options: Any) -> Simulator:
    """A simulator by the name of its task.

    Args:
        name: one of `SIMULATORS`.
        preset: by default the first of the simulator, which is the largest.
        options: that differ from those of the preset.

    Example:
        >>> create("navier_stokes", "small", viscosity=0.02).header().shape("velocity")
        (14, 64, 64, 2)
    """
    return SIMULATORS[check_known("task", name, SIMULATORS)].create(preset, **options)


def exact_simulator(header: Header) -> ExactSimulator[Any] | None:
    """The simulator that made the data, if it knows solutions in every frame and is unchanged.

    It has the grid of the original data, also for the header of a coarse view of them.

    Example:
        >>> exact_simulator(SineGordon(frames=8).describe(seed=0, split="test")).frames
        8
        >>> exact_simulator(NavierStokes().describe(seed=0, split="test"))
    """
    simulator = SIMULATORS.get(header.generator)
    if simulator is None or not issubclass(simulator, ExactSimulator):
        return None
    if simulator.version != header.generator_version:
        return None
    return simulator.create(**header.parameters)


def laws_of(header: Header) -> tuple[Law, ...]:
    """The equations that the data obey; none are known for those of other programs.

    Example:
        >>> [law.equation for law in laws_of(SineGordon().describe(seed=0, split="test"))]
        ['∇⌟∇φ + sin φ = 0', '∇∧∇φ = 0']
    """
    simulator = SIMULATORS.get(header.generator)
    return () if simulator is None else simulator.laws


__all__ = [
    "ON_GRIDS",
    "SIMULATORS",
    "AcousticPoints",
    "Elastodynamics",
    "ExactSimulator",
    "Maxwell3D",
    "MaxwellSpacetime",
    "MaxwellSpacetime4D",
    "NavierStokes",
    "Simulator",
    "SineGordon",
    "Solution",
    "Viscoelastic",
    "create",
    "exact_simulator",
    "laws_of",
    "stream",
]
