"""The command about runs: ``cscnn report``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_commands(commands: Any) -> None:
    """Add the subcommand to those of ``cscnn``."""
    report = commands.add_parser(
        "report",
        help="write a page that compares training runs",
        description="Writes one HTML page about one or several runs: errors, forecasts beside the "
        "truth, symmetry, learning curves, kernels. It needs no network and can be sent around. "
        "Run cscnn evaluate on each run before.",
        epilog="example: cscnn report runs/cs_resnet runs/resnet --out report.html",
    )
    report.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="folder of a run")
    report.add_argument(
        "--out", type=Path, default=Path("report.html"), help="(default: %(default)s)"
    )
    report.set_defaults(run=_report)


def _report(args: argparse.Namespace) -> int:
    from cscnn.viz.report.page import write_report

    path = write_report(args.runs, args.out)
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB")
    return 0
