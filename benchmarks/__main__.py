"""The command ``python -m benchmarks``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks import competitors, report, work
from benchmarks.registry import Benchmark, get, names
from benchmarks.runner import REPEATS, Row, run
from cscnn._util.command import run_command
from cscnn._util.files import check_output, write_text
from cscnn._util.machine import machine, usable_device
from cscnn._util.parser import Parser, add_overwrite
from cscnn._util.progress import status

PROGRAM = "python -m benchmarks"


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    args = _parser().parse_args(argv)
    return run_command(PROGRAM, lambda: _run(args), debug=args.debug)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog=PROGRAM,
        description="Runs every hot path and its competitors, interleaved in this process. Times "
        "are minima of interleaved timings; ratios are relative to the reference of each case.",
        examples=[
            "python -m benchmarks --only geometric_product --repeats 31",
            "python -m benchmarks --only pointwise compiled --device cuda",
        ],
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these benchmarks (see --list)")
    parser.add_argument("--list", action="store_true", help="list the benchmarks and stop")
    parser.add_argument(
        "--repeats", type=int, default=REPEATS, help="timings per variant (default: %(default)s)"
    )
    parser.add_argument(
        "--device", default="cpu", help="where the networks of pointwise and compiled compute"
    )
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a target is missed")
    parser.add_argument(
        "--jax", type=Path, metavar="DIR", help="checkout of the published JAX code, to compare"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows as JSON")
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE",
        help="also write a page of tables; with --only, what else is on it is kept",
    )  # fmt: skip
    add_overwrite(parser)
    parser.add_argument("--debug", action="store_true", help="show the traceback of errors")
    return parser


def _run(args: argparse.Namespace) -> int:
    if args.repeats < 1:
        raise ValueError(f"--repeats must be at least 1, got {args.repeats}")
    chosen = [get(name) for name in (args.only or names())]
    work.device = usable_device(args.device)
    if args.list:
        for entry in chosen:
            print(f"{entry.name:<24} {entry.title}")
        return 0
    for path in (args.json, args.markdown):  # say so before the measurements, not after them
        if path is not None:
            check_output(path, overwrite=args.overwrite)
    if args.jax is not None:
        competitors.check_jax(args.jax)
    competitors.jax_checkout = args.jax
    rows: list[Row] = []
    for done, entry in enumerate(chosen, start=1):
        print(f"\n{entry.title} [{entry.name}]", flush=True)
        if missing := entry.missing():
            print(missing, flush=True)
        print(report.HEADER, flush=True)
        try:
            for row in run(entry.name, repeats=args.repeats, progress=status):
                rows.append(row)
                print(report.line(row), flush=True)
        finally:  # after each benchmark, and also if it is interrupted
            _write(args, chosen[:done], rows)
    return int(args.strict and any("MISSED" in row.target for row in rows))


def _write(args: argparse.Namespace, measured: Sequence[Benchmark], rows: Sequence[Row]) -> None:
    """The files that were asked for, with all rows so far."""
    if not rows:
        return
    if args.json is not None:
        data = {"machine": machine(), "rows": [asdict(row) for row in rows]}
        write_text(args.json, json.dumps(data, indent=2) + "\n")
    if args.markdown is not None:
        earlier = args.only and args.markdown.is_file()
        page = args.markdown.read_text(encoding="utf-8") if earlier else ""
        text = report.markdown(measured, rows, machine(), args.repeats, page)
        write_text(args.markdown, text)


if __name__ == "__main__":
    sys.exit(main())
