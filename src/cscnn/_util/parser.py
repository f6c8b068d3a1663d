"""The parser of every command: one dialect of options, examples, errors in one line."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from cscnn._util.suggest import did_you_mean

#: What values of a type are called in errors.
WORDS = {
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "str": "a text",
    "Path": "a path",
    "dict": "options by name, such as {blocks: 4}",
    "list": "a list, such as [1, 4]",
    "NoneType": "null",
}


class Parser(argparse.ArgumentParser):
    """A parser of arguments with examples, whose errors are one line and suggest what was meant.

    Args:
        prog: the words of the command, e.g. ``"cscnn evaluate"``.
        description: begins with a sentence that says what it is for.
        examples: whole command lines.
    """

    def __init__(self, prog: str, description: str = "", examples: Sequence[str] = ()):
        super().__init__(prog=prog, description=description, allow_abbrev=False)
        self.examples = tuple(examples)
        self.settings: Callable[[], Iterable[str]] = tuple  #: names that ``--set`` takes

    def describe(self, description: str, *examples: str) -> None:
        """Say what the command is for.

        Args:
            description: begins with a sentence of its own.
            examples: whole command lines, at least two.
        """
        self.description, self.examples = description, examples

    def format_help(self) -> str:
        """The help, with the examples below."""
        lines = [f"  {example}\n" for example in self.examples]
        return super().format_help() + ("\nexamples:\n" + "".join(lines) if lines else "")

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """The values of all options; what is unknown is an error."""
        parsed, rest = self.parse_known_args(args, namespace)
        if rest:
            self.error(unknown_words(rest, option_names(self), tuple(self.settings())))
        return parsed

    def error(self, message: str) -> NoReturn:
        """End with the message and where to read more."""
        text = one_line(in_our_words(message))
        self.exit(2, f"{self.prog}: error: {text} (see {self.prog} --help)\n")


def option_names(parser: argparse.ArgumentParser) -> list[str]:
    """All options of a parser, e.g. ``--out``."""
    return [name for action in parser._actions for name in action.option_strings]


def unknown_words(rest: Sequence[str], known: Iterable[str], settings: Sequence[str] = ()) -> str:
    """An error about words that no option takes.

    Args:
        rest: the words.
        known: all options.
        settings: names that ``--set`` takes.

    Example:
        >>> unknown_words(["--step", "3"], ["--steps", "--out"])
        'unknown option --step: did you mean --steps?'
        >>> unknown_words(["one", "two"], [])
        'do not know what to do with one two'
        >>> unknown_words(["--grid", "32"], ["--out"], settings=["grid", "frames"])
        'unknown option --grid: write --set grid=VALUE'
    """
    options = [word for word in rest if word.startswith("-")]
    if not options:
        return f"do not know what to do with {' '.join(rest)}"
    name = options[0].partition("=")[0]
    setting = name.lstrip("-").replace("-", "_")
    if setting in settings:
        return f"unknown option {name}: write --set {setting}=VALUE"
    return f"unknown option {name}{did_you_mean(name, known)}"


def in_our_words(message: str) -> str:
    """An error of argparse without its jargon.

    Example:
        >>> in_our_words("argument --steps: invalid int value: 'x'")
        "--steps takes an integer, got 'x'"
        >>> in_our_words("the following arguments are required: RUN, --out")
        'RUN, --out must be given'
    """
    for pattern, change in _MESSAGES:
        if match := re.fullmatch(pattern, message, re.DOTALL):
            return change(match)
    return message


_MESSAGES: tuple[tuple[str, Callable[[re.Match[str]], str]], ...] = (
    (
        r"argument (\S+): invalid (\w+) value: (.*)",
        lambda m: f"{m[1]} takes {WORDS.get(m[2], m[2])}, got {m[3]}",
    ),
    (r"the following arguments are required: (.*)", lambda m: f"{m[1]} must be given"),
    (r"argument (\S+): expected one argument", lambda m: f"{m[1]} needs a value"),
    (r"argument (\S+): expected at least one argument", lambda m: f"{m[1]} needs a value"),
    (r"argument (\S+): ignored explicit argument (.*)", lambda m: f"{m[1]} takes no value"),
    (r"argument (?:RUN|SHELL): (.*)", lambda m: m[1]),  # by functions of ours
)


def one_line(text: str) -> str:
    """A text in one line, without characters that a terminal would obey."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))


# --- options that several commands have -----------------------------------------------------------


def add_out(
    command: argparse.ArgumentParser,
    metavar: str,
    text: str,
    *,
    required: bool = False,
    default: Path | None = None,
) -> None:
    """Where a command writes, and the option by which it replaces files that exist.

    `cscnn._util.files.check_output` obeys the latter.
    """
    command.add_argument(
        "--out", type=Path, metavar=metavar, help=text, required=required, default=default
    )
    add_overwrite(command)


def add_overwrite(command: argparse.ArgumentParser) -> None:
    """The option by which a command replaces files."""
    command.add_argument(
        "--overwrite", action="store_true", help="replace files that exist (default: refuse)"
    )


def add_device(command: argparse.ArgumentParser) -> None:
    """Where a command computes."""
    command.add_argument(
        "--device", default="cpu", help="where to compute, e.g. cuda (default: %(default)s)"
    )


def add_batch(command: argparse.ArgumentParser, text: str, default: int | None = None) -> None:
    """What is computed together."""
    if default is not None:
        text += " (default: %(default)s)"
    command.add_argument("--batch", type=int, metavar="N", default=default, help=text)


def add_seed(command: argparse.ArgumentParser) -> None:
    """Of random numbers."""
    command.add_argument(
        "--seed", type=int, metavar="N", default=0, help="of random numbers (default: %(default)s)"
    )


def add_workers(command: argparse.ArgumentParser) -> None:
    """Processes."""
    command.add_argument(
        "--workers", type=int, metavar="N", default=1, help="processes (default: %(default)s)"
    )


def add_quiet(command: argparse.ArgumentParser) -> None:
    """No progress, for scripts."""
    command.add_argument("--quiet", action="store_true", help="show no progress")


def named(kind: str, known: Callable[[], Iterable[str]]) -> Any:
    """The type of an argument that is one of some names.

    Args:
        kind: what it names, for errors.
        known: gives the names when they are needed.
    """

    def read(text: str) -> str:
        names = tuple(known())
        if text not in names:
            raise argparse.ArgumentTypeError(f"unknown {kind} {text!r}{did_you_mean(text, names)}")
        return text

    return read
