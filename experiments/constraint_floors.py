"""The command ``python -m experiments.constraint_floors``: how much constraints change true states.

Data obey a law in the discretisation of their solver. In another one, or as means over coarser
cells, they obey it up to an error, which no forecast with that constraint can fall below. The table
in docs/guides/calculus.md is made by this program.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import torch
from torch import Tensor

from cscnn._util.command import run_command
from cscnn.algebra.grids import cell_means
from cscnn.data.coarse import coarse_header
from cscnn.data.simulators import NavierStokes, stream
from cscnn.forecasting import Constraint, Task
from cscnn.forecasting.constraints import Constraints

PROGRAM = "python -m experiments.constraint_floors"
#: Cells per axis as simulated, and how many are joined.
GRIDS = ((128, 1), (128, 2), (64, 1), (64, 2), (64, 4))
#: Title of a column -> the constraint.
SCHEMES = {
    "`staggered`": Constraint("velocity", "divergence_free"),
    "`spectral`": Constraint("velocity", "divergence_free", "spectral"),
    "`differences`, accuracy 2": Constraint("velocity", "divergence_free", "differences"),
    "accuracy 4": Constraint("velocity", "divergence_free", "differences", accuracy=4),
}


def floors(box: NavierStokes, coarsen: int, count: int) -> dict[str, float]:
    """By how much each constraint changes what is to be forecast, relative to its size.

    The mean of the smoke is that of the frame before, and its change is relative to the standard
    deviation.

    Args:
        box: the simulator.
        coarsen: cells per axis that are joined.
        count: trajectories.
    """
    header = box.header()
    made = box.simulate([stream(header.generator, 0, "train", index) for index in range(count)])
    stored = {name: x.float().double() for name, x in made.items()}
    fields = {n: cell_means(x, coarsen, range(2, x.dim() - 1)) for n, x in stored.items()}
    task = Task.from_header(coarse_header(header, coarsen), constants=False)
    smoke = fields["smoke"]
    fields = {**fields, "smoke": smoke - smoke.mean()}
    known, state = (
        task.pack({name: _windows(x, *cut) for name, x in fields.items()})
        for cut in ((0, task.frames_in), (task.frames_in, task.span))
    )
    measured = {
        title: Constraints(task, (constraint,)).floor(state, known)[constraint.field]
        for title, constraint in SCHEMES.items()
    }
    mean = Constraints(task, (Constraint("smoke", "keep_mean"),))
    return {**measured, "`keep_mean` of smoke": mean.floor(state, known)["smoke"]}


def _windows(x: Tensor, start: int, stop: int) -> Tensor:
    """Frames from start to stop of all windows of (batch, frames, *space, components)."""
    count = x.shape[1] - Task.frames_in - Task.frames_out + 1
    return torch.cat([x[:, i + start : i + stop] for i in range(count)])


def table(sizes: Sequence[tuple[int, int]], count: int) -> str:
    """A table of Markdown, a row for each grid."""
    lines: list[str] = []
    for points, coarsen in sizes:
        measured = floors(NavierStokes(grid=(points, points)), coarsen, count)
        if not lines:
            lines = [f"| data | {' | '.join(measured)} |", "|---" + "|---:" * len(measured) + "|"]
        low = min(value for title, value in measured.items() if title in SCHEMES)
        cells = [f"**{v:.1e}**" if v == low else f"{v:.1e}" for v in measured.values()]
        seen = "as stored" if coarsen == 1 else f"coarsen {coarsen}"
        lines.append(f"| {points}², {seen} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    parser = argparse.ArgumentParser(prog=PROGRAM, description=__doc__, allow_abbrev=False)
    parser.add_argument("--trajectories", type=int, default=8, help="(default: %(default)s)")
    parser.add_argument(
        "--points",
        type=int,
        nargs="+",
        metavar="N",
        help="cells per axis of each row, not joined (default: the rows of the documentation)",
    )
    options = parser.parse_args(arguments)

    def run() -> int:
        if options.trajectories < 1 or any(n < 8 for n in options.points or ()):
            raise ValueError(
                "--trajectories must be at least 1 and --points at least 8, got "
                f"{options.trajectories} and {options.points}"
            )
        sizes = [(n, 1) for n in options.points] if options.points else GRIDS
        print(table(sizes, options.trajectories))
        return 0

    return run_command(PROGRAM, run)


if __name__ == "__main__":
    sys.exit(main())
