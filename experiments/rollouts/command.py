"""The command of a study of rollouts."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module

from cscnn._util.files import check_folder
from experiments.command import check_known, run_study, study_parser
from experiments.rollouts.plan import PARTS, Contender, Recipe, Setting


def rollout_command(
    argv: Sequence[str] | None,
    *,
    name: str,
    description: str,
    only: str,
    presets: tuple[Mapping[str, Setting], Mapping[str, Contender], Mapping[str, Recipe]],
    parts: Sequence[str] = PARTS,
    networks: Callable[[], None] | None = None,
) -> int:
    """Run a study and write its page; returns the exit code.

    Args:
        argv: arguments of the command.
        name: of the folder in ``experiments``, of the page and of the files beside it. Its module
            ``page`` has ``write_page(results, folder)``, which returns the file.
        description: what the study does.
        only: some of the networks, for the help text.
        presets: settings, contenders and recipes.
        parts: of all, those that the study has.
        networks: see `Study`.
    """
    settings, contenders, recipes = presets
    parser = study_parser(
        f"python -m experiments.{name}", description, f"--only {only} --out {name} --workers 2",
        out=name,
        page=f"write {name}.md, its records and figure here",
        known=("DIR", f"folder with {name}.json"),
    )  # fmt: skip
    parser.add_argument(
        "--only", nargs="+", metavar="NETWORK", help=f"of {', '.join(contenders)} (default: all)"
    )
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts, help="(default: all)")
    parser.add_argument("--seconds", type=float, help="of a training (default: as the task has it)")
    parser.add_argument("--seeds", type=int, help="of the best recipe")

    def run(args: argparse.Namespace) -> int:
        check_known("network", args.only or (), contenders)
        check_folder(args.out, "for the files of the study", create=True)
        from experiments.rollouts.results import Study  # take seconds to import
        from experiments.rollouts.runner import open_results
        from experiments.rollouts.runner import run as run_missing

        given = {name: getattr(args, name) for name in ("seconds", "seeds")}
        changes = {name: value for name, value in given.items() if value}
        changed = {task: replace(setting, **changes) for task, setting in settings.items()}
        study = Study(changed, contenders, recipes, name, networks)
        results = open_results(study, args.out, args.known, workers=args.workers)
        chosen = {key: contenders[key] for key in args.only or contenders}
        results.study = replace(study, contenders=chosen)
        if not args.draw:
            for task in changed:
                run_missing(results, task, args.parts, workers=args.workers)
        results.study = study
        if args.page is not None:
            module = import_module(f"experiments.{name}.page")
            print(f"wrote {module.write_page(results, args.page)}")
        return 0

    return run_study(parser, argv, run)
