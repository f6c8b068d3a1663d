"""The command ``python -m experiments.boosts``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cscnn._util.checks import check_int
from cscnn._util.command import run_command
from cscnn._util.files import check_folder
from cscnn._util.parser import Parser
from experiments.boosts import PARTS, records
from experiments.boosts.presets import MODELS, SETTINGS
from experiments.boosts.results import Results
from experiments.boosts.verdicts import verdicts

PROGRAM = "python -m experiments.boosts"


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    args = _parser().parse_args(argv)
    return run_command(PROGRAM, lambda: _run(args), debug=args.debug)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog=PROGRAM,
        description="Trains networks on solutions seen at rest, and measures their forecasts of "
        "new events for observers that move. Padding and learning rate of each model are chosen on "
        "the validation split, at rest. Run it again after an interruption and it goes on.",
        examples=[f"{PROGRAM} sine_gordon --out boosts --workers 2 --page docs"],
    )
    parser.add_argument(
        "tasks", nargs="*", metavar="TASK", help=f"of {', '.join(SETTINGS)} (default: all)"
    )
    parser.add_argument("--out", type=Path, default=Path("boosts"), help="(default: %(default)s)")
    parser.add_argument("--seeds", type=int, help="of each model (default: as the task has it)")
    parser.add_argument("--steps", type=int, help="of a training (default: as the task has it)")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="(default: all)")
    parser.add_argument(
        "--workers", type=int, default=1, help="trainings at a time (default: %(default)s)"
    )
    parser.add_argument(
        "--page", type=Path, metavar="DIR", help="write boosts.md, its records and figures here"
    )
    parser.add_argument(
        "--known", type=Path, metavar="FILE",
        help="boosts.json of an earlier study: what is in it is not run again",
    )  # fmt: skip
    parser.add_argument("--draw", action="store_true", help="train nothing, use what there is")
    parser.add_argument("--debug", action="store_true", help="show the traceback of errors")
    return parser


def _run(args: argparse.Namespace) -> int:
    if unknown := [task for task in args.tasks if task not in SETTINGS]:
        raise ValueError(f"unknown task {unknown[0]!r}: choose from {', '.join(SETTINGS)}")
    if args.known is not None and not args.known.is_file():
        raise FileNotFoundError(f"there is no file {args.known}")
    check_int("--workers", args.workers, low=1)
    changes = {name: getattr(args, name) for name in ("seeds", "steps") if getattr(args, name)}
    settings = {task: replace(setting, **changes) for task, setting in SETTINGS.items()}
    results = Results(settings, MODELS, args.out, records.load(args.known) if args.known else ())
    check_folder(args.out, "for the files of the study", create=True)
    tasks = args.tasks or list(settings)
    if not args.draw:
        from experiments.boosts.runner import run  # takes seconds to import

        args.out.mkdir(parents=True, exist_ok=True)
        for task in tasks:
            run(results, task, args.parts, workers=args.workers)
    for task in tasks:
        _tell(results, task)
    if args.page is not None:
        from experiments.boosts.page import write_page

        print(f"wrote {write_page(results, args.page)}")
    return 0


def _tell(results: Results, task: str) -> None:
    """The verdicts of a task."""
    found = [record for part in PARTS for record in results.finished(task, part)]
    for verdict in verdicts(task, found, results.settings[task].seeds):
        print(f"{task}: {verdict.text}: {verdict.verdict} {verdict.numbers}".rstrip())


if __name__ == "__main__":
    sys.exit(main())
