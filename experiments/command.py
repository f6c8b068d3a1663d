"""What the commands of studies share: options, checks, and trainings one after the other."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from cscnn._util.command import run_command
from cscnn._util.parser import Parser
from cscnn._util.progress import Bar
from experiments.pool import run_all


class Named(Protocol):
    """A training that a study has planned."""

    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=Named)


def study_parser(
    program: str,
    description: str,
    example: str,
    *,
    out: str,
    page: str,
    known: tuple[str, str],
    workers: int | None = 1,
) -> argparse.ArgumentParser:
    """The parser of a study, with the options that all of them have.

    Args:
        program: what is typed.
        description: what it does.
        example: arguments for the help text.
        out: folder of the study unless told otherwise.
        page: what ``--page`` says.
        known: what ``--known`` takes, and what it says.
        workers: trainings at a time; None for one for each core.
    """
    parser = Parser(
        prog=program,
        description=f"{description} Run it again after an interruption and it goes on.",
        examples=[f"{program} {example}"],
    )
    usual = "%(default)s" if workers else "one for each core; with an accelerator one"
    parser.add_argument("--out", type=Path, default=Path(out), help="(default: %(default)s)")
    parser.add_argument(
        "--workers", type=int, default=workers, help=f"trainings at a time (default: {usual})"
    )
    parser.add_argument("--page", type=Path, metavar="DIR", help=page)
    parser.add_argument(
        "--known", type=Path, metavar=known[0],
        help=f"{known[1]} of an earlier study: what is in it is not run again",
    )  # fmt: skip
    parser.add_argument("--draw", action="store_true", help="train nothing, use what there is")
    parser.add_argument("--debug", action="store_true", help="show the traceback of errors")
    return parser


def add_tasks(parser: argparse.ArgumentParser, tasks: Iterable[str], parts: Sequence[str]) -> None:
    """Arguments that choose tasks and parts of a study."""
    parser.add_argument(
        "tasks", nargs="*", metavar="TASK", help=f"of {', '.join(tasks)} (default: all)"
    )
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts, help="(default: all)")


def run_study(
    parser: argparse.ArgumentParser,
    argv: Sequence[str] | None,
    run: Callable[[argparse.Namespace], int],
) -> int:
    """The exit code of a command, whose errors are told in one line."""
    args = parser.parse_args(argv)
    return run_command(parser.prog, lambda: _checked(run, args), debug=args.debug)


def _checked(run: Callable[[argparse.Namespace], int], args: argparse.Namespace) -> int:
    if args.workers is not None and args.workers < 1:
        raise ValueError(f"--workers must be positive, got {args.workers}")
    return run(args)


def check_known(kind: str, chosen: Iterable[str], known: Collection[str]) -> None:
    """Raise if something is chosen that a study does not have.

    Args:
        kind: of things, e.g. ``"task"``.
        chosen: their names.
        known: those that there are.
    """
    if unknown := [name for name in chosen if name not in known]:
        raise ValueError(f"unknown {kind} {unknown[0]!r}: choose from {', '.join(known)}")


def run_trials(
    title: str,
    work: Callable[..., Any],
    trials: Sequence[T],
    results: Any,
    *,
    record: Callable[[T], Path | None],
    tell: Callable[[Any], str],
    workers: int = 1,
    quiet: bool = False,
) -> None:
    """Run trainings, several at a time, and see that each has left a record.

    Args:
        title: of the progress bar.
        work: (trial, results) -> what ``tell`` makes a line of; it keeps a record.
        trials: what to run.
        results: of the study, which is handed to the processes.
        record: the file of a training if it is missing, else None.
        tell: a finished training in one line.
        workers: trainings at a time.
        quiet: show no progress.
    """
    bar = Bar("trainings", quiet=quiet)
    bar(title, 0, len(trials))
    finished = run_all(work, [(trial, results) for trial in trials], workers)
    for done, outcome in enumerate(finished, 1):
        if not quiet:
            print(tell(outcome), flush=True)
        bar(title, done, len(trials))
    if lost := [file for trial in trials if (file := record(trial)) is not None]:
        raise RuntimeError(f"there is no record {lost[0]}")
