"""The command ``python -m experiments.rollouts``."""

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
from experiments.rollouts.presets import CONTENDERS, RECIPES, SETTINGS

PROGRAM = "python -m experiments.rollouts"


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    args = _parser().parse_args(argv)
    return run_command(PROGRAM, lambda: _run(args), debug=args.debug)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog=PROGRAM,
        description="Trains networks with several recipes in the same time, and measures how long "
        "their forecasts last. Learning rate and recipe of each are chosen on the validation "
        "split. Run it again after an interruption and it goes on.",
        examples=[f"{PROGRAM} --only cs_resnet resnet --out rollouts --workers 2"],
    )
    parser.add_argument("--out", type=Path, default=Path("rollouts"), help="(default: %(default)s)")
    parser.add_argument(
        "--only", nargs="+", metavar="NETWORK", help=f"of {', '.join(CONTENDERS)} (default: all)"
    )
    parser.add_argument("--parts", nargs="+", choices=("levers", "time", "steps"), help="of all")
    parser.add_argument("--seconds", type=float, help="of a training (default: as the task has it)")
    parser.add_argument("--seeds", type=int, help="of the best recipe")
    parser.add_argument(
        "--workers", type=int, default=1, help="trainings at a time (default: %(default)s)"
    )
    parser.add_argument(
        "--page", type=Path, metavar="DIR", help="write rollouts.md, its records and figure here"
    )
    parser.add_argument(
        "--known", type=Path, metavar="DIR",
        help="folder with rollouts.json of an earlier study: what is in it is not run again",
    )  # fmt: skip
    parser.add_argument("--draw", action="store_true", help="train nothing, use what there is")
    parser.add_argument("--debug", action="store_true", help="show the traceback of errors")
    return parser


def _run(args: argparse.Namespace) -> int:
    if unknown := [key for key in args.only or () if key not in CONTENDERS]:
        raise ValueError(f"unknown network {unknown[0]!r}: choose from {', '.join(CONTENDERS)}")
    check_int("--workers", args.workers, low=1)
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
