"""The command ``python -m experiments.nbody``."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from cscnn._util.files import check_folder
from cscnn._util.progress import duration
from experiments.command import check_known, run_study, run_trials, study_parser
from experiments.nbody.presets import CONTENDERS, SETTING, Setting
from experiments.nbody.records import Record, Results, load
from experiments.nbody.simulate import open_data
from experiments.nbody.training import run_trial

PROGRAM = "python -m experiments.nbody"


def main(argv: Sequence[str] | None = None, setting: Setting = SETTING) -> int:
    """Entry point; returns the exit code."""
    return run_study(_parser(setting), argv, partial(_run, setting))


def _parser(setting: Setting) -> argparse.ArgumentParser:
    parser = study_parser(
        PROGRAM,
        "Trains networks on five charged particles, and measures their forecasts of the published "
        "test split.",
        "--only products --seeds 1 --minutes 10 --out nbody --page docs",
        out="nbody",
        page="write nbody.md and its records here",
        known=("DIR", "folder with nbody.json"),
    )
    add = parser.add_argument
    add("--only", nargs="+", metavar="NETWORK", help=f"of {', '.join(CONTENDERS)} (default: all)")
    add("--seeds", type=int, default=setting.seeds, help="of each (default: %(default)s)")
    add("--steps", type=int, default=setting.steps, help="of a training (default: %(default)s)")
    add("--minutes", type=float, default=0.0, help="of a training, instead of steps")
    return parser


def _run(setting: Setting, args: argparse.Namespace) -> int:
    check_known("network", args.only or (), CONTENDERS)
    for name in ("seeds", "steps"):
        if getattr(args, name) < 1:
            raise ValueError(f"--{name} must be positive, got {getattr(args, name)}")
    if not 0 <= args.minutes < math.inf:
        raise ValueError(f"--minutes must not be negative, got {args.minutes:g}")
    check_folder(args.out, "for the files of the study", create=True)
    setting = replace(setting, seeds=args.seeds, steps=args.steps, minutes=args.minutes)
    known = load(args.known) if args.known is not None else ()
    results = Results(setting, CONTENDERS, args.out, known)
    if not args.draw:
        chosen = {key: CONTENDERS[key] for key in args.only or CONTENDERS}
        _train(Results(setting, chosen, args.out, known), args.workers)
    if args.page is not None:
        from experiments.nbody.page import write_page

        print(f"wrote {write_page(results, args.page)}")
    return 0


def _train(results: Results, workers: int) -> None:
    """Everything that is not there yet."""
    if not (missing := results.missing()):
        return
    open_data(results.out / "data.npz", results.setting.sizes)
    run_trials(
        "nbody", partial(run_trial, quiet=workers > 1), missing, results,
        record=results.lost, tell=_outcome, workers=workers,
    )  # fmt: skip


def _outcome(record: Record) -> str:
    """A training in one line."""
    if record.test is None:
        return f"{record.name}: diverged at step {record.steps}"
    return (
        f"{record.name}: {record.test:.5f}, valid {record.valid:.5f} at step {record.best} of "
        f"{record.steps}, in {duration(record.seconds)}"
    )


if __name__ == "__main__":
    sys.exit(main())
