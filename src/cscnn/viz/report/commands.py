"""The command about runs: ``cscnn report``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from cscnn._util.command import add_overwrite
from cscnn._util.files import check_output
from cscnn._util.progress import status
from cscnn._util.resources import size


def add_commands(commands: Any) -> None:
    """Add the subcommand to those of ``cscnn``."""
    report = commands.add_parser(
        "report",
        help="write a page that compares training runs",
        description="Writes one HTML page about one or several runs: errors, forecasts beside the "
        "truth, symmetry, learning curves, kernels. It needs no network and can be sent around. "
        "Run cscnn evaluate on each run before. Runs that differ by their seed alone share a "
        "line in charts of rollouts.",
        epilog="example: cscnn report runs/cs_resnet runs/resnet --out report.html",
    )
    report.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="folder of a run")
    report.add_argument(
        "--out", type=Path, default=Path("report.html"), help="(default: %(default)s)"
    )
    add_overwrite(report)
    report.set_defaults(run=_report)


def _report(args: argparse.Namespace) -> int:
    from cscnn.forecasting.runs import EVALUATED, TRAINED
    from cscnn.viz.report.page import write_report

    inputs = [run / name for run in args.runs for name in (*TRAINED, *EVALUATED)]
    check_output(args.out, inputs=inputs, overwrite=args.overwrite)
    status(f"drawing {args.out}")
    path = write_report(args.runs, args.out)
    print(f"{path}: {size(path.stat().st_size)}")
    return 0
