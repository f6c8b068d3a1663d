"""The command ``python -m experiments.rollouts``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace

from cscnn._util.files import check_folder
from experiments.command import check_known, run_study, study_parser
from experiments.rollouts.presets import CONTENDERS, RECIPES, SETTINGS

PROGRAM = "python -m experiments.rollouts"


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    return run_study(_parser(), argv, _run)


def _parser() -> argparse.ArgumentParser:
    parser = study_parser(
        PROGRAM,
        "Trains networks with several recipes in the same time, and measures how long their "
        "forecasts last. Learning rate and recipe of each are chosen on the validation split.",
        "--only cs_resnet resnet --out rollouts --workers 2",
        out="rollouts",
        page="write rollouts.md, its records and figure here",
        known=("DIR", "folder with rollouts.json"),
    )
    parser.add_argument(
        "--only", nargs="+", metavar="NETWORK", help=f"of {', '.join(CONTENDERS)} (default: all)"
    )
    parser.add_argument("--parts", nargs="+", choices=("levers", "time", "steps"), help="of all")
    parser.add_argument("--seconds", type=float, help="of a training (default: as the task has it)")
    parser.add_argument("--seeds", type=int, help="of the best recipe")
    return parser


def _run(args: argparse.Namespace) -> int:
    check_known("network", args.only or (), CONTENDERS)
    check_folder(args.out, "for the files of the study", create=True)
    from experiments.rollouts.results import PARTS, Study  # take seconds to import
    from experiments.rollouts.runner import open_results, run

    changes = {name: getattr(args, name) for name in ("seconds", "seeds") if getattr(args, name)}
    settings = {task: replace(setting, **changes) for task, setting in SETTINGS.items()}
    study = Study(settings, CONTENDERS, RECIPES)
    results = open_results(study, args.out, args.known, workers=args.workers)
    chosen = Study(settings, {k: CONTENDERS[k] for k in args.only or CONTENDERS}, RECIPES)
    results.study = chosen
    if not args.draw:
        for task in settings:
            run(results, task, args.parts or PARTS, workers=args.workers)
    results.study = study
    if args.page is not None:
        from experiments.rollouts.page import write_page

        print(f"wrote {write_page(results, args.page)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
