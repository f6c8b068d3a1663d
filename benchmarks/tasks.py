"""The forecasting tasks on which networks are measured: those of the simulators."""

from __future__ import annotations

from cscnn.data.simulators import create
from cscnn.forecasting import Task


def simulator_task(name: str) -> Task:
    """The usual forecasting task on the data of a simulator, at its full size."""
    simulator = create(name)
    return Task.from_header(simulator.header(), name=name, frames_in=simulator.frames_in)
