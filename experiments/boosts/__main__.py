"""The command ``python -m experiments.boosts``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace

from cscnn._util.files import check_folder
from experiments.boosts import PARTS, records
from experiments.boosts.presets import MODELS, SETTINGS
from experiments.boosts.results import Results
from experiments.boosts.verdicts import verdicts
from experiments.command import add_tasks, check_known, run_study, study_parser

PROGRAM = "python -m experiments.boosts"


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    return run_study(_parser(), argv, _run)


def _parser() -> argparse.ArgumentParser:
    parser = study_parser(
        PROGRAM,
        "Trains networks on solutions seen at rest, and measures their forecasts of new events for "
        "observers that move. Padding and learning rate of each model are chosen on the validation "
        "split, at rest.",
        "sine_gordon --out boosts --workers 2 --page docs",
        out="boosts",
        page="write boosts.md, its records and figures here",
        known=("FILE", "boosts.json"),
    )
    add_tasks(parser, SETTINGS, PARTS)
    parser.add_argument("--seeds", type=int, help="of each model (default: as the task has it)")
    parser.add_argument("--steps", type=int, help="of a training (default: as the task has it)")
    return parser


def _run(args: argparse.Namespace) -> int:
    check_known("task", args.tasks, SETTINGS)
    if args.known is not None and not args.known.is_file():
        raise FileNotFoundError(f"there is no file {args.known}")
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
