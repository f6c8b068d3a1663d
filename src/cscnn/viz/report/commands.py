"""The command about runs: ``cscnn report``."""

from __future__ import annotations

import argparse
from pathlib import Path

from cscnn._util.files import check_output
from cscnn._util.parser import Parser, add_out, add_quiet
from cscnn._util.resources import size


def add_report(command: Parser) -> None:
    """``cscnn report``."""
    command.describe(
        "Writes one HTML page about one or several runs: errors, forecasts beside the "
        "truth, symmetry, learning curves, kernels. It needs no network and can be sent around. "
        "Run cscnn evaluate on each run before. Runs that differ by their seed alone share a "
        "line in charts of rollouts.",
        "cscnn report runs/smoke",
        "cscnn report runs/cs_resnet runs/resnet --out comparison.html --overwrite",
    )
    command.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="folder of a run")
    add_out(command, "FILE", "the page (default: %(default)s)", default=Path("report.html"))
    add_quiet(command)
    command.set_defaults(run=_report)


def _report(args: argparse.Namespace) -> int:
    from cscnn.forecasting.runs import EVALUATED, TRAINED
    from cscnn.viz.report.page import write_report

    inputs = [run / name for run in args.runs for name in (*TRAINED, *EVALUATED)]
    check_output(args.out, inputs=inputs, overwrite=args.overwrite)
    path = write_report(args.runs, args.out, quiet=args.quiet)
    print(f"{path}: {size(path.stat().st_size)}")
    return 0
