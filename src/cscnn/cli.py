"""The command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import nullcontext

import cscnn
from cscnn._util.command import Parser, interruptible, run_command


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code.

    Args:
        argv: arguments; by default those of this process, which then is the program ``cscnn``.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    with interruptible("cscnn") if argv is None else nullcontext():
        return run_command("cscnn", lambda: _run(arguments), debug="--debug" in arguments)


def _run(arguments: list[str]) -> int:
    parser = _parser()
    given = [text for text in arguments if text != "--debug"]  # also after the command
    args, rest = parser.parse_known_args(given)
    if rest and args.run is not _train:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    args.rest = rest
    return int(args.run(args))


def _parser() -> argparse.ArgumentParser:
    from cscnn.data.commands import add_commands as add_data_commands  # these import torch
    from cscnn.forecasting.commands import add_commands as add_forecasting_commands
    from cscnn.viz.commands import add_commands as add_picture_commands
    from cscnn.viz.report.commands import add_commands as add_report_commands

    parser = Parser(
        prog="cscnn", description="Equivariant convolutional networks on multivector fields."
    )
    parser.add_argument("--version", action="version", version=f"cscnn {cscnn.__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of errors")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    info = commands.add_parser(
        "info",
        help="describe the Clifford algebra of a metric",
        description="Lists the blades of Cl(p, q) by grade, i.e. by the number of axes they span, "
        "and their squares.",
        epilog="example: cscnn info --metric=+-- (spacetime with time first and two space axes)",
    )
    info.add_argument(
        "--metric",
        default="+++",
        help="one sign per axis, attached with = (default: --metric=%(default)s)",
    )
    info.set_defaults(run=_info)
    tune = commands.add_parser(
        "tune",
        help="fit the choice between direct and spectral convolution to this machine",
        description="Measures direct and spectral convolutions for a minute or two, and keeps the "
        "rates by which backend='auto' chooses between them in the user's cache folder, or in the "
        "file $CSCNN_TUNING.",
        epilog="example: cscnn tune --device cuda",
    )
    tune.add_argument("--device", default="cpu", help="(default: %(default)s)")
    tune.set_defaults(run=_tune)
    train = commands.add_parser("train", help="train a forecaster", add_help=False)
    train.set_defaults(run=_train)
    add_data_commands(commands)
    add_forecasting_commands(commands)
    add_picture_commands(commands)
    add_report_commands(commands)
    return parser


def _train(args: argparse.Namespace) -> int:
    from cscnn.forecasting.training.command import run

    return run(args.rest)


def _tune(args: argparse.Namespace) -> int:
    from cscnn._util.progress import status
    from cscnn.conv.spectral.cost import tuning_file
    from cscnn.conv.spectral.tune import measure_rates, save_rates

    try:
        tuning = measure_rates(args.device, progress=status)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"cannot measure on device {args.device!r}: {error}") from error
    save_rates(args.device, tuning.rates)
    rates = tuning.rates
    direct = ", ".join(f"{r / 1e9:.0f}" for r in rates.direct)
    print(f"direct convolution in 1 to 4 dimensions: {direct} billion operations/s")
    print(f"matrix products: {rates.matmul / 1e9:.0f} billion operations/s")
    print(f"memory: {rates.memory / 1e9:.1f} GB/s; a call: {rates.call * 1e6:.1f} µs")
    print(f"they predict the measured times to {tuning.deviation:.0%} (median)")
    print(f"written to {tuning_file()}")
    return 0


def _info(args: argparse.Namespace) -> int:
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
