"""The command ``python -m benchmarks.models``: what each network costs on each task.

Parameters, operations, memory and time of a training step, as a Markdown page.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.runner import REPEATS, timings
from benchmarks.tasks import simulator_task
from cscnn._util.checks import check_int
from cscnn._util.command import run_command
from cscnn._util.machine import machine, peak_memory
from cscnn._util.progress import status
from cscnn.algebra import CliffordAlgebra
from cscnn.conv import use_backend
from cscnn.data.simulators import ON_GRIDS
from cscnn.forecasting import Task
from cscnn.networks import (
    FieldType,
    Neighbourhood,
    build,
    count_parameters,
    fit_budget,
    names,
    noise_edges,
)
from cscnn.networks.registry import entry

PROGRAM = "python -m benchmarks.models"

#: Grids on which the tasks are measured, by the number of axes.
GRIDS = {1: (256,), 2: (64, 64), 3: (16, 16, 16), 4: (8, 8, 8, 8)}
#: Point sets on which networks along edges are measured: metric and number of points.
CLOUDS = {
    "points of R^2": ((1, 1), 2000),
    "points of R^3": ((1, 1, 1), 1000),
    "events of R^{1,3}": ((1, -1, -1, -1), 400),
}


@dataclass(frozen=True)
class Cost:
    """A network on a task or on a point set.

    Attributes:
        network, task: which.
        size: the grid, or the number of points and edges.
        parameters: number of trainable numbers.
        multiply_adds: of one forward pass of one sample with direct convolutions.
        peak_bytes: peak memory of a training step beyond parameters and input.
        seconds: duration of a training step.
        obstacle: instead of all that, why the network does not serve the task.
    """

    network: str
    task: str
    size: str
    parameters: int = 0
    multiply_adds: int = 0
    peak_bytes: int = 0
    seconds: float = 0.0
    obstacle: str = ""

    def row(self) -> str:
        """A row of the table in Markdown."""
        start = f"| {self.task} | {self.size} | {self.network} |"
        if self.obstacle:
            return f"{start} – | | | {self.obstacle} |"
        return (
            f"{start} {self.parameters:,} | {self.multiply_adds / 1e6:,.0f} M "
            f"| {self.peak_bytes / 1e6:,.0f} MB | {self.seconds * 1e3:,.0f} ms |"
        )


def measure(params: int, tasks: Sequence[str] = ()) -> Iterator[Cost]:
    """Costs of all networks at a budget of parameters.

    Args:
        params: how many parameters each network shall have.
        tasks: names of simulators. By default all of them, followed by the point sets `CLOUDS`.
    """
    for task in map(simulator_task, tasks or ON_GRIDS):
        for name in names():
            if entry(name).interface != "points":
                status(f"{task.name}: {name}")
                yield grid_cost(name, task, params)
    for cloud in () if tasks else CLOUDS:
        for name in names():
            if entry(name).interface == "points":
                status(f"{cloud}: {name}")
                yield point_cost(name, cloud, params)


def grid_cost(name: str, task: Task, params: int) -> Cost:
    """What a network costs on the grid of a task."""
    grid = GRIDS[task.dim]
    cost = Cost(name, task.name, "×".join(map(str, grid)))
    signature = (name, task.input_type, task.output_type)
    try:
        network = build(*signature, task.grid, **fit_budget(*signature, params, task.grid))
    except (ValueError, ImportError) as error:
        return replace(cost, obstacle=str(error))
    x = torch.randn(1, task.input_type.channels, *grid, task.algebra.n_blades)
    use_backend(network, "direct")
    multiply_adds = count_multiply_adds(lambda: network(x))
    use_backend(network, "auto")
    return _measured(replace(cost, multiply_adds=multiply_adds), network, lambda: network(x))


def point_cost(name: str, cloud: str, params: int) -> Cost:
    """What a network costs on a point set."""
    metric, points = CLOUDS[cloud]
    algebra = CliffordAlgebra(metric)
    near, channel = Neighbourhood(), FieldType.full(algebra, 1)
    signature = (name, channel, channel)
    network = build(*signature, near, **fit_budget(*signature, params, near))
    edges = noise_edges(algebra.dim, points, near)
    x = torch.randn(points, 1, algebra.n_blades)
    cost = Cost(
        name,
        cloud,
        f"{points:,} × {near.neighbours} edges",
        multiply_adds=count_multiply_adds(lambda: network(x, edges)),
    )
    return _measured(cost, network, lambda: network(x, edges))


def count_multiply_adds(forward: Callable[[], Tensor]) -> int:
    """Multiply-adds of matrix products and convolutions of a forward pass."""
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        forward()
    return counter.get_total_flops() // 2


def _measured(cost: Cost, network: nn.Module, forward: Callable[[], Tensor]) -> Cost:
    """The cost with parameters, memory and time (minimum) of a training step."""

    def step() -> list[Tensor]:
        loss = forward().square().mean()
        return list(torch.autograd.grad(loss, list(network.parameters()), allow_unused=True))[:1]

    return replace(
        cost,
        parameters=count_parameters(network),
        peak_bytes=peak_memory(step),
        seconds=min(timings({"step": step}, REPEATS)["step"]),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Tabulates parameters, operations, memory and step time of every network on "
        "every task, as Markdown.",
        epilog="example: python -m benchmarks.models --params 100000 --task navier_stokes",
    )
    parser.add_argument(
        "--params", type=int, default=100_000, help="size of each network (default: %(default)s)"
    )
    parser.add_argument(
        "--task", nargs="+", default=[], metavar="NAME", help="these tasks (default: all)"
    )
    parser.add_argument("--debug", action="store_true", help="show the traceback of errors")
    args = parser.parse_args(argv)
    return run_command(PROGRAM, lambda: _print_page(args.params, args.task), debug=args.debug)


def _print_page(params: int, tasks: Sequence[str]) -> int:
    check_int("--params", params, low=1)
    if unknown := [name for name in tasks if name not in ON_GRIDS]:
        raise ValueError(f"unknown task {unknown[0]!r}: choose from {', '.join(ON_GRIDS)}")
    facts = ", ".join(f"{name} {value}" for name, value in machine().items())
    print(
        "# What the networks cost\n\n"
        "After this page you can choose a network by its cost. All networks have about "
        f"{params:,}\nparameters. `make models` writes this page.\n\n"
        "- **Multiply-adds** are those of a forward pass with direct convolutions.\n"
        "- **Peak memory** and time are those of a training step: forward and backward.\n"
        f"- **Times** are minima of {REPEATS} timings.\n\n"
        f"{textwrap.fill(f'Machine: {facts}. Batch 1.', 100)}\n\n"
        "| task | grid, points | network | parameters | multiply-adds | peak memory "
        "| training step |\n"
        "|---|---|---|---:|---:|---:|---:|"
    )
    for cost in measure(params, tasks):
        print(cost.row(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
