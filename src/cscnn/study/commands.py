"""The command ``cscnn study``."""

from __future__ import annotations

import argparse
import math
import os
from pathlib import Path
from typing import Any

from cscnn.study import PARTS

TASKS = ("navier_stokes", "maxwell_spacetime", "maxwell3d")


def add_commands(commands: Any) -> None:
    """Add the subcommand to those of ``cscnn``."""
    study = commands.add_parser(
        "study",
        help="reproduce the paper's comparisons: train all models, tabulate, draw",
        description="Trains every model on tasks of the paper for several numbers of training "
        "simulations and seeds, after choosing its learning rate on the validation split, measures "
        "errors and symmetries, and writes a page of results. Run it again after an interruption "
        "and it goes on; when everything is there it only draws.",
        epilog="example: cscnn study navier_stokes --preset small --out study --workers 2",
    )
    study.add_argument(
        "tasks", nargs="*", metavar="TASK", help=f"some of {', '.join(TASKS)} (default: all)"
    )
    study.add_argument("--preset", default="small", choices=("small", "paper"))
    study.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="(default: all)")
    study.add_argument("--models", nargs="+", metavar="NAME", help="only these (default: all)")
    study.add_argument("--out", type=Path, default=Path("study"), help="(default: %(default)s)")
    study.add_argument(
        "--page", type=Path, metavar="DIR", help="folder of results.md (default: that of --out)"
    )
    study.add_argument(
        "--workers", type=int,
        help="trainings at a time (default: one for each core; with an accelerator one)",
    )  # fmt: skip
    study.add_argument(
        "--known", type=Path, metavar="FILE",
        help="results.json of an earlier study: what is in it is not run again",
    )  # fmt: skip
    study.add_argument("--draw", action="store_true", help="only draw what there is")
    study.add_argument("--list", action="store_true", help="list the trainings and stop")
    study.set_defaults(run=_study)


def _study(args: argparse.Namespace) -> int:
    from cscnn.study.page import write_page
    from cscnn.study.presets import STUDIES
    from cscnn.study.runner import Runner, read_known

    whole = STUDIES[args.preset]
    study = whole.only(args.models) if args.models else whole
    tasks = args.tasks or list(TASKS)
    if unknown := [task for task in tasks if task not in study.settings]:
        raise ValueError(f"unknown task {unknown[0]!r}: choose from {', '.join(TASKS)}")
    if args.workers is not None and args.workers < 1:
        raise ValueError(f"--workers must be positive, got {args.workers}")
    known = read_known(args.known) if args.known else {}
    runner = Runner(study, args.out, args.workers or _workers(), known)
    if args.list:
        return _list(runner, tasks, args.parts)
    args.out.mkdir(parents=True, exist_ok=True)
    if not args.draw:
        for task in tasks:
            runner.run(task, args.parts)
    folder = args.page or args.out
    runner = Runner(whole, args.out, runner.workers, known)
    if (folder / "results.json").is_file():
        runner.known = {**read_known(folder / "results.json"), **known}  # keep what is on the page
    print(f"drawing {folder / 'results.md'}", flush=True)
    page = write_page(runner, list(TASKS), folder)
    runner.save(page.with_suffix(".json"))
    return 0


def _workers() -> int:
    import torch

    return 1 if torch.accelerator.is_available() else max(1, os.cpu_count() or 1)


def _list(runner: Any, tasks: list[str], parts: tuple[str, ...]) -> int:
    for task in tasks:
        tuning, rates = runner.tuning(task, parts), runner.rates(task)
        unknown = {trial.key: math.nan for trial in tuning if trial.key not in rates}
        trials = [*tuning]
        for part in parts:
            trials += runner.study.trials(task, {**rates, **unknown}, part)
        trials = list({trial.name: trial for trial in trials}.values())
        done = sum(runner.find(trial) is not None for trial in trials)
        about = "about " if unknown else ""
        print(f"{task}: {about}{len(trials)} trainings, {done} done")
        for trial in trials:
            print("  " + trial.name.replace("-lrnan-", "-lr?-"))  # not known yet
    return 0
