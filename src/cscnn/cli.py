"""The command line."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import cscnn
from cscnn.atomic import write_text
from cscnn.data.commands import add_commands as add_data_commands
from cscnn.evaluation.commands import add_commands as add_evaluation_commands
from cscnn.study.commands import add_commands as add_study_commands
from cscnn.viz.commands import add_commands as add_picture_commands
from cscnn.viz.report.commands import add_commands as add_report_commands


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    parser = _parser()
    args, rest = parser.parse_known_args(argv)
    args.debug = args.debug or "--debug" in rest  # also after the command
    rest = [text for text in rest if text != "--debug"]
    if rest and args.run is not _train:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    args.rest = rest
    try:
        return int(args.run(args))
    except BrokenPipeError:  # the reader, e.g. head, has seen enough
        sys.stderr.close()
        return 0
    except (ValueError, TypeError, LookupError, ArithmeticError, OSError, ImportError) as error:
        if args.debug:
            raise
        print(f"cscnn: error: {error}", file=sys.stderr)
        return 1
    except Exception as error:  # nothing that we expect, or a message of a library
        if args.debug:
            raise
        text = " ".join(str(error).split())
        print(
            f"cscnn: error: {type(error).__name__}: {text} (--debug shows where)", file=sys.stderr
        )
        return 1
    except KeyboardInterrupt:
        print("cscnn: interrupted", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cscnn", description="Equivariant convolutional networks on multivector fields."
    )
    parser.add_argument("--version", action="version", version=f"cscnn {cscnn.__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of errors")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    bench = commands.add_parser(
        "bench",
        help="measure speed, memory and rounding error beside the alternatives",
        description="Runs every hot path side by side with its competitors in this process: times "
        "are medians of interleaved repeats, ratios are relative to the reference of each case.",
        epilog="example: cscnn bench --only geometric_product --repeats 31",
    )
    bench.add_argument("--only", nargs="+", metavar="NAME", help="some benchmarks (see --list)")
    bench.add_argument("--list", action="store_true", help="list the benchmarks and stop")
    bench.add_argument("--repeats", type=int, default=15, help="per variant (default: %(default)s)")
    bench.add_argument("--strict", action="store_true", help="exit with 1 if a target is missed")
    bench.add_argument(
        "--tune",
        action="store_true",
        help="instead measure the rates by which convolutions choose between direct and spectral "
        "on this machine, and keep them in the user's cache folder or in $CSCNN_TUNING",
    )
    bench.add_argument("--device", default="cpu", help="for --tune (default: %(default)s)")
    bench.add_argument(
        "--jax", type=Path, metavar="DIR", help="checkout of the published JAX code, to compare"
    )
    bench.add_argument("--json", type=Path, metavar="FILE", help="also write the rows as JSON")
    bench.add_argument("--markdown", type=Path, metavar="FILE", help="also write a page of tables")
    bench.set_defaults(run=_bench)

    info = commands.add_parser(
        "info",
        help="describe the Clifford algebra of a metric, or the models",
        description="Lists the blades of Cl(p, q) by grade, i.e. by the number of axes they span, "
        "and their squares.",
        epilog="example: cscnn info --metric=+-- (spacetime with time first and two space axes)",
    )
    info.add_argument(
        "--metric",
        default="+++",
        help="one sign per axis, attached with = (default: --metric=%(default)s)",
    )
    info.add_argument(
        "subject",
        nargs="?",
        choices=("algebra", "models"),
        default="algebra",
        help="models: parameters, operations, memory and step time of every model on every task",
    )
    info.add_argument(
        "--params", type=int, default=100_000, help="for models: their size (default: %(default)s)"
    )
    info.add_argument(
        "--task", nargs="+", default=[], metavar="NAME", help="for models: some tasks"
    )
    info.set_defaults(run=_info)
    train = commands.add_parser("train", help="train a model", add_help=False)
    train.set_defaults(run=_train)
    add_data_commands(commands)
    add_evaluation_commands(commands)
    add_picture_commands(commands)
    add_report_commands(commands)
    add_study_commands(commands)
    return parser


def _bench(args: argparse.Namespace) -> int:
    from cscnn import bench
    from cscnn.bench import competitors, report
    from cscnn.bench.registry import get

    if args.tune:
        return _tune(args.device)
    if args.repeats < 1:
        raise ValueError(f"--repeats must be at least 1, got {args.repeats}")
    competitors.jax_checkout = args.jax
    chosen = [get(name) for name in (args.only or bench.names())]
    if args.list:
        for entry in chosen:
            print(f"{entry.name:<24} {entry.title}")
        return 0
    for path in (args.json, args.markdown):  # find out before the long part, not after it
        if path is not None and not path.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} into")
    rows: list[bench.Row] = []
    for i, entry in enumerate(chosen):
        if missing := entry.missing():
            print(f"\n{entry.title} [{entry.name}]\nskipped: {missing}", flush=True)
            continue
        print(f"\n{entry.title} [{entry.name}]\n{report.HEADER}", flush=True)
        try:
            for row in bench.run(entry.name, repeats=args.repeats, progress=report.progress):
                rows.append(row)
                print(report.line(row), flush=True)
        finally:  # after each benchmark, and also if it is interrupted
            if args.json is not None and rows:
                data = {"machine": bench.machine(), "rows": [asdict(row) for row in rows]}
                write_text(args.json, json.dumps(data, indent=2) + "\n")
            if args.markdown is not None and rows:
                page = report.markdown(chosen[: i + 1], rows, bench.machine())
                write_text(args.markdown, page)
    return int(args.strict and any("MISSED" in row.target for row in rows))


def _train(args: argparse.Namespace) -> int:
    from cscnn.training.commands import run

    return run(args.rest)


def _tune(device: str) -> int:
    from cscnn.bench import report, tune
    from cscnn.conv.backend import tuning_file

    try:
        result = tune.tune(device, progress=report.progress)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"cannot measure on device {device!r}: {error}") from error
    tune.save(device, result.rates)
    rates = result.rates
    direct = ", ".join(f"{r / 1e9:.0f}" for r in rates.direct)
    print(f"direct convolution in 1 to 4 dimensions: {direct} billion operations/s")
    print(f"matrix products: {rates.matmul / 1e9:.0f} billion operations/s")
    print(f"memory: {rates.memory / 1e9:.1f} GB/s; a call: {rates.call * 1e6:.1f} µs")
    print(f"they predict the measured times to {result.deviation:.0%} (median)")
    print(f"written to {tuning_file()}")
    return 0


def _info_models(params: int, tasks: list[str]) -> int:
    from cscnn.bench.report import progress
    from cscnn.bench.zoo import measure
    from cscnn.measure import machine
    from cscnn.models.tasks import get_task

    for name in tasks:
        get_task(name)
    print(
        "# What the models cost\n\n"
        f"All with about {params:,} parameters, written by `cscnn info models`. Multiply-adds are "
        "those of a forward pass with direct convolutions; peak memory and time are those of a "
        "training step (forward and backward).\n\n"
        f"Machine: {', '.join(f'{k} {v}' for k, v in machine().items())}. Batch 1.\n"
    )
    print(
        "| task | grid, points | model | parameters | multiply-adds | peak memory | training step |"
    )
    print("|---|---|---|---:|---:|---:|---:|")
    for cost in measure(params, tuple(tasks)):
        row = f"| {cost.task} | {cost.size} | {cost.name} |"
        if cost.why_not:
            row += f" – | | | {cost.why_not} |"
        else:
            row += (
                f" {cost.parameters:,} | {cost.multiply_adds / 1e6:,.0f} M "
                f"| {cost.peak_bytes / 1e6:,.0f} MB | {cost.seconds * 1e3:,.0f} ms |"
            )
        print(row, flush=True)
        progress(f"{cost.task}: {cost.name}")
    return 0


def _info(args: argparse.Namespace) -> int:
    if args.subject == "models":
        return _info_models(args.params, args.task)
    if not set(args.metric) <= {"+", "-"}:
        raise ValueError(
            f"--metric takes + and - signs only, e.g. --metric=+--, got {args.metric!r}"
        )
    algebra = cscnn.CliffordAlgebra(args.metric)
    p, q = algebra.signature
    print(f"Cl({p}, {q}), metric {algebra.metric}: {algebra.n_blades} blades")
    print(f"{'grade':<7}{'holds':<14}blades (square)")
    names = {0: "scalar", 1: "vector", 2: "bivector", 3: "trivector"}
    for k in range(algebra.n_grades):
        name = names.get(k, f"{k}-vector")
        entries = [
            f"{algebra.blade_names[i]} ({algebra.blade_square(i):+d})"
            for i in range(*algebra.grade_slice(k).indices(algebra.n_blades))
        ]
        print(f"{k:<7}{name:<14}{', '.join(entries)}")
    kinds = [kind for kind in algebra.kinds() if kind != "any"]
    print(f"transformations that it tells apart: {', '.join(kinds)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
