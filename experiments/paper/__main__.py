"""The command ``python -m experiments.paper``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from cscnn._util.command import run_command
from cscnn._util.files import check_folder
from cscnn._util.parser import Parser
from cscnn._util.progress import duration
from experiments.paper import PARTS
from experiments.paper.presets import STUDIES
from experiments.paper.records import Archive
from experiments.paper.results import Results

PROGRAM = "python -m experiments.paper"
#: Results of the repository, whose timings serve where there are no others.
PUBLISHED = Path(__file__).parents[2] / "docs" / "results.json"
TASKS = tuple(STUDIES["small"].settings)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    args = _parser().parse_args(argv)
    return run_command(PROGRAM, lambda: _run(args), debug=args.debug)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog=PROGRAM,
        description="Reproduces the paper's comparisons. Trains every model on tasks of the paper "
        "for several numbers of training simulations and seeds, after choosing its learning rate "
        "on the validation split, measures errors and symmetries, and writes a page of results. "
        "Run it again after an interruption and it goes on; when everything is there it only "
        "draws.",
        examples=[f"{PROGRAM} navier_stokes --preset small --out study --workers 2"],
    )
    parser.add_argument(
        "tasks", nargs="*", metavar="TASK", help=f"of {', '.join(TASKS)} (default: all)"
    )
    parser.add_argument("--preset", default="small", choices=tuple(STUDIES))
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="(default: all)")
    parser.add_argument("--models", nargs="+", metavar="NAME", help="only these (default: all)")
    parser.add_argument("--out", type=Path, default=Path("study"), help="(default: %(default)s)")
    parser.add_argument(
        "--page", type=Path, metavar="DIR", help="folder of results.md (default: that of --out)"
    )
    parser.add_argument(
        "--workers", type=int,
        help="trainings at a time (default: one for each core; with an accelerator one)",
    )  # fmt: skip
    parser.add_argument(
        "--known", type=Path, metavar="FILE",
        help="results.json of an earlier study: what is in it is not run again",
    )  # fmt: skip
    parser.add_argument("--draw", action="store_true", help="only draw what there is")
    parser.add_argument("--list", action="store_true", help="list the trainings and stop")
    parser.add_argument("--debug", action="store_true", help="show the traceback of errors")
    return parser


def _run(args: argparse.Namespace) -> int:
    study = STUDIES[args.preset]
    chosen = study.only(args.models) if args.models else study
    tasks = args.tasks or list(study.settings)
    if unknown := [task for task in tasks if task not in study.settings]:
        raise ValueError(f"unknown task {unknown[0]!r}: choose from {', '.join(study.settings)}")
    if args.workers is not None and args.workers < 1:
        raise ValueError(f"--workers must be positive, got {args.workers}")
    known = Archive.load(args.known) if args.known else Archive()
    results = Results(chosen, args.out, known)
    if args.list:
        for task in tasks:
            _list(results, task, args.parts)
        return 0
    folder = args.page or args.out
    page = Archive.find(folder / "results.json")  # keep what is on it
    for path in (args.out, folder):
        check_folder(path, "for the files of the study", create=True)
    if not args.draw:
        workers = args.workers or _workers()
        for task in tasks:
            print(_announcement(results, task, args.parts, workers), flush=True)
        from experiments.paper.runner import Runner  # takes seconds to import, as does the page

        args.out.mkdir(parents=True, exist_ok=True)
        runner = Runner(results, workers)
        for task in tasks:
            runner.run(task, args.parts)
    joined = Archive({**page.records, **known.records}, {**page.timings, **known.timings})
    complete = Results(study, args.out, joined)
    if not args.draw:
        for task in tasks:
            Runner(complete, workers).measure_seconds(task)
    from experiments.paper.page import write_page

    print(f"drawing {folder / 'results.md'}", flush=True)
    path = write_page(complete, list(study.settings), folder)
    complete.archive().save(path.with_suffix(".json"))
    return 0


def _workers() -> int:
    import torch

    return 1 if torch.accelerator.is_available() else max(1, os.cpu_count() or 1)


def _announcement(results: Results, task: str, parts: Sequence[str], workers: int) -> str:
    """What will be done, and how long it takes as far as steps of these networks were timed."""
    trials, certain = results.forecast(task, parts)
    missing = [trial for trial in trials if results.find(trial) is None]
    text = f"{task}: {'' if certain else 'about '}{len(missing)} of {len(trials)} trainings to run"
    if not missing:
        return text
    known = results.seconds(task) or Results(
        results.study, results.out, Archive.find(PUBLISHED)
    ).seconds(task)
    if not known:
        return f"{text}, {workers} at a time; how long they take is not known before the first"
    usual = sum(known.values()) / len(known)
    seconds = sum(
        trial.setting.steps * trial.step_factor * known.get(trial.key, usual) for trial in missing
    )
    return (
        f"{text}, {workers} at a time; their steps take about {duration(seconds / workers)} on the "
        "machine where such steps were timed"
    )


def _list(results: Results, task: str, parts: Sequence[str]) -> None:
    trials, certain = results.forecast(task, parts)
    done = sum(results.find(trial) is not None for trial in trials)
    about = "" if certain else "about "
    print(f"{task}: {about}{len(trials)} trainings, {done} done")
    for trial in trials:
        print("  " + trial.name.replace("-lrnan-", "-lr?-"))  # not known yet


if __name__ == "__main__":
    sys.exit(main())
