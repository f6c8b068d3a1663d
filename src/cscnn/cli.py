"""The command line.

Commands are defined in the rooms that they are about, by functions that fill in a `Parser`. This
table has their names and purposes, so that ``cscnn --help`` imports none of them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NoReturn

import cscnn
from cscnn._util.command import interruptible, run_command
from cscnn._util.completion import SHELLS
from cscnn._util.parser import Parser, add_device, add_quiet, named, unknown_words
from cscnn._util.suggest import did_you_mean


@dataclass(frozen=True)
class Command:
    """A command: what it does, in a few words, and the function that defines its options."""

    text: str
    source: str

    def load(self) -> Any:
        """The function."""
        module, _, name = self.source.partition(":")
        return getattr(import_module(module), name)


TRAIN = "train"  #: the command whose options are those of a configuration

#: Words of a command -> the command.
COMMANDS = {
    "generate": Command("simulate a data set", "cscnn.data.commands:add_generate"),
    TRAIN: Command("train a forecaster", "cscnn.forecasting.training.command:run"),
    "evaluate": Command(
        "measure a trained forecaster: errors, rollouts, symmetry, cost",
        "cscnn.forecasting.commands:add_evaluate",
    ),
    "predict": Command("write forecasts as data", "cscnn.forecasting.commands:add_predict"),
    "export": Command(
        "write a forecaster for programs without this library",
        "cscnn.forecasting.commands:add_export",
    ),
    "report": Command(
        "write a page that compares training runs", "cscnn.viz.report.commands:add_report"
    ),
    "plot": Command("draw stills or a film of stored fields", "cscnn.viz.commands:add_plot"),
    "data info": Command(
        "describe files: fields, grid, boundary, how they were made",
        "cscnn.data.commands:add_info",
    ),
    "data check": Command(
        "read every number, compare the checksums, measure the laws of physics",
        "cscnn.data.commands:add_check",
    ),
    "data merge": Command("join shards into one file", "cscnn.data.commands:add_merge"),
    "data export": Command(
        "write files for other tools: The Well, ParaView (VTK), netCDF",
        "cscnn.data.commands:add_export",
    ),
    "hub save": Command(
        "write a folder with a forecaster and its card, to share",
        "cscnn.forecasting.hub.commands:add_save",
    ),
    "hub push": Command(
        "upload a forecaster with its card", "cscnn.forecasting.hub.commands:add_push"
    ),
    "hub zoo": Command(
        "list the forecasters that come with the package",
        "cscnn.forecasting.hub.commands:add_zoo",
    ),
    "info": Command("describe the Clifford algebra of a metric", "cscnn.cli:add_info"),
    "tune": Command(
        "fit the choice between direct and spectral convolution to this machine",
        "cscnn.cli:add_tune",
    ),
    "completion": Command(
        "print a script by which a shell completes commands", "cscnn.cli:add_completion"
    ),
}

#: First words of several commands.
GROUPS = {"data": "inspect, verify, join and export data files", "hub": "share forecasters"}


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code.

    Args:
        argv: arguments; by default those of this process, which then is the program ``cscnn``.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    with interruptible("cscnn") if argv is None else nullcontext():
        return run_command("cscnn", lambda: _run(arguments), debug="--debug" in arguments)


def _run(arguments: list[str]) -> int:
    given = [text for text in arguments if text != "--debug"]  # also after the command
    name, rest = split(given)
    if name == TRAIN:
        return int(COMMANDS[TRAIN].load()(rest))
    args = parser_of(name).parse_args(rest)
    return int(args.run(args))


def split(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """The words of a command, and what follows; it ends with help, a version or an error."""
    first, *rest = arguments or [""]
    if first in COMMANDS:
        return first, rest
    if first in GROUPS:
        name = f"{first} {rest[0]}" if rest else ""
        if name in COMMANDS:
            return name, rest[1:]
        _end(first, rest)
    _end("", list(arguments))


def _end(group: str, arguments: list[str]) -> NoReturn:
    """Help, the version, or an error, if there is no command."""
    parser, names = _overview(group)
    first = arguments[0] if arguments else ""
    if first.startswith("-"):
        options = ["-h", "--help", "--debug"] + ["--version"] * (not group)
        if first in ("-h", "--help"):
            parser.print_help()
            parser.exit()
        if first == "--version" and not group:
            from cscnn._util.versions import versions

            print(versions("cscnn", cscnn.__version__))
            parser.exit()
        parser.error(unknown_words([first], options))
    if not first:
        parser.error(f"a command must be given: one of {', '.join(names)}")
    elsewhere = [f"cscnn {name}" for name in COMMANDS if name.split()[-1] == first]
    hint = f": did you mean {' or '.join(elsewhere)}?" if elsewhere else did_you_mean(first, names)
    parser.error(f"unknown command {first!r}{hint}")


def _overview(group: str) -> tuple[Parser, list[str]]:
    """The parser of the program or of a group, for its help, and the names of its commands."""
    texts = {name: command.text for name, command in COMMANDS.items()}
    if group:
        parser = Parser(f"cscnn {group}", f"Commands that {GROUPS[group]}.")
        names = {n.split()[1]: t for n, t in texts.items() if n.startswith(f"{group} ")}
    else:
        parser = Parser("cscnn", "Equivariant convolutional networks on multivector fields.")
        parser.add_argument("--version", action="store_true", help="versions, for reports of bugs")
        names = {n: t for n, t in texts.items() if " " not in n} | GROUPS
    parser.add_argument("--debug", action="store_true", help="show the traceback of errors")
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", parser_class=argparse.ArgumentParser
    )
    for name, text in names.items():
        commands.add_parser(name, help=text, add_help=False)
    return parser, list(names)


def parser_of(name: str) -> Parser:
    """The parser of a command, other than that of the training."""
    parser = Parser(f"cscnn {name}")
    COMMANDS[name].load()(parser)
    return parser


# --- commands about the library and the program ---------------------------------------------------


def add_info(command: Parser) -> None:
    """``cscnn info``."""
    command.describe(
        "Lists the blades of Cl(p, q) by grade, i.e. by the number of axes they span, and their "
        "squares. What a data file holds is shown by cscnn data info FILE.",
        "cscnn info --metric=++",
        "cscnn info --metric=+--  # spacetime with time first and two axes of space",
        "cscnn info --metric=+++ --symmetric  # with stress and strain",
    )
    command.add_argument(
        "--metric",
        default="+++",
        help="one sign per axis, attached with = (default: --metric=%(default)s)",
    )
    command.add_argument(
        "--symmetric",
        action="store_true",
        help="with symmetric tensors (stress, strain) as one more grade",
    )
    command.set_defaults(run=_info)


def _info(args: argparse.Namespace) -> int:
    if not set(args.metric) <= {"+", "-"}:
        raise ValueError(
            f"--metric takes + and - signs only, e.g. --metric=+--, got {args.metric!r}"
        )
    algebra = cscnn.CliffordAlgebra(args.metric, args.symmetric)
    p, q = algebra.signature
    print(f"Cl({p}, {q}), metric {algebra.metric}: {algebra.n_blades} blades")
    print(f"{'grade':<7}{'holds':<14}blades (square)")
    names = {0: "scalar", 1: "vector", 2: "bivector", 3: "trivector"}
    names |= {algebra.dim + 1: "tensor"}
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


def add_tune(command: Parser) -> None:
    """``cscnn tune``."""
    command.describe(
        "Measures direct and spectral convolutions for a minute or two, and keeps the rates by "
        "which backend='auto' chooses between them in the user's cache folder, or in the file "
        "$CSCNN_TUNING. Those of the same device from before are replaced.",
        "cscnn tune",
        "cscnn tune --device cuda",
    )
    add_device(command)
    add_quiet(command)
    command.set_defaults(run=_tune)


def _tune(args: argparse.Namespace) -> int:
    from cscnn._util.progress import Bar
    from cscnn.conv.spectral.cost import tuning_file
    from cscnn.conv.spectral.tune import measure_rates, save_rates

    try:
        tuning = measure_rates(args.device, progress=Bar("convolutions", quiet=args.quiet))
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


def add_completion(command: Parser) -> None:
    """``cscnn completion``."""
    command.describe(
        "Prints a script by which a shell completes commands, options and names. Keep it where the "
        "shell looks for it, and open a new shell.",
        "cscnn completion bash > ~/.local/share/bash-completion/completions/cscnn",
        "cscnn completion zsh > ~/.zfunc/_cscnn  # a folder of $fpath",
        "cscnn completion fish > ~/.config/fish/completions/cscnn.fish",
    )
    command.add_argument(
        "shell",
        metavar="SHELL",
        type=named("shell", lambda: SHELLS),
        help=f"one of {', '.join(SHELLS)}",
    )
    command.set_defaults(run=_completion)


def _completion(args: argparse.Namespace) -> int:
    print(SHELLS[args.shell](_program()), end="")
    return 0


def _program() -> Any:
    """All commands with their options, and the names that these take."""
    from cscnn._util import completion
    from cscnn.data.simulators import SIMULATORS
    from cscnn.forecasting.training.command import SHORT, make_parser, presets
    from cscnn.networks import names

    values: dict[str, dict[str, Sequence[str]]] = {
        TRAIN: {"--preset": presets(), "--model.name": names()},
        "generate": {"--compression": ("none", "lzf", "gzip"), "--dtype": ("float32", "float64")},
    }
    arguments = {"generate": tuple(SIMULATORS), "completion": tuple(SHELLS)}
    commands = []
    for name, command in COMMANDS.items():
        parser = make_parser() if name == TRAIN else parser_of(name)
        options = completion.options_of(parser, values.get(name, {}))
        if name == TRAIN:
            options += tuple(completion.Option(f"--{short}") for short in SHORT)
        commands.append(completion.Command(name, command.text, options, arguments.get(name, ())))
    return completion.Program("cscnn", tuple(commands), GROUPS)


if __name__ == "__main__":
    sys.exit(main())
